"""Numpy interpreter of a recursion: the reference for every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.graph.cells import RESULT, CellOperand, LoopBody
from bellcrank.graph.graph import Array, Shape

if TYPE_CHECKING:
    from bellcrank.graph.recursion import Recursion, Run


def evaluate(r: Recursion, arrays: Mapping[str, Array]) -> Array:
    """Return the output of recursion `r` for inputs `arrays`, which may have leading axes."""
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
    state = PlaceValues(r, {k: np.broadcast_to(a, (*batch, a.shape[-1])) for k, a in arrays.items()}, batch)
    for run in r.tree.runs:
        state.run_loop([cut.angles for cut in r.cell_loops], run, True)
    state.compute_sines()
    for k, outwards in enumerate(r.outwards):
        for run in r.tree.runs if outwards else reversed(r.tree.runs):
            state.run_loop([cut.bodies[k] for cut in r.cell_loops], run, outwards)
    return state.result.reshape((*batch, *r.shape))


class PlaceValues:
    """Values of all places, as numpy arrays."""

    def __init__(self, r: Recursion, inputs: Mapping[str, Array], batch: Shape) -> None:
        """Allocate the values.

        Parameters
        ----------
        r
            The recursion.
        inputs
            Its inputs, shape (*batch, size), by name.
        batch
            Shape of the leading axes.
        """
        n = len(r.tree.parent)
        self.r, self.inputs, self.batch = r, inputs, batch
        self.stored = np.full((n, max(c.stored_values for c in r.cell_loops), *batch), np.nan)
        self.angles = np.zeros((n, max(c.angle_count for c in r.cell_loops), *batch))
        self.handed = [np.full((n, len(w), *batch), np.nan) for w in r.wanted]
        self.result = np.full((*batch, r.output[1]), np.nan)

    def compute_sines(self) -> None:
        """Compute the sines and cosines of all angles."""
        self.sine, self.cosine = np.sin(self.angles), np.cos(self.angles)

    def run_loop(self, bodies: Sequence[LoopBody], run: Run, forwards: bool) -> None:
        """Run one loop over a run: place by place, or all at once if no place depends on another.

        Parameters
        ----------
        bodies
            The loop body of each cell.
        run
            The run.
        forwards
            Direction of the loop.
        """
        if not self.r.tree.chained:
            self.run_body(bodies[run.cells[0]], run.places_of_cell(0), run.cells[0], run.rows[0])
            return
        p = len(run.cells)
        for i in range(run.end - run.begin) if forwards else reversed(range(run.end - run.begin)):
            cell = run.cells[i % p]
            self.run_body(
                bodies[cell], np.array([run.begin + i]), cell, run.rows[i % p] + i // p * run.row_stride(i % p)
            )

    def run_body(self, body: LoopBody, places: Array, cell: int, row: int) -> None:
        """Run a loop body at some places.

        Parameters
        ----------
        body
            The loop body.
        places
            The places.
        cell
            Their cell.
        row
            First row in its table.
        """
        if not body.writes:
            return
        x = [self.read(p, places, cell, row) for p in body.reads]
        columns = np.stack(x, axis=-1) if x else np.zeros((len(places), *self.batch, 0))
        y = np.broadcast_to(body.graph.evaluate(x=columns)["y"], (len(places), *self.batch, len(body.writes)))
        for i, p in enumerate(body.writes):
            self.write(p, places, y[..., i])

    def read(self, p: CellOperand, places: Array, cell: int, row: int) -> Array:
        """Return one operand of several places.

        Parameters
        ----------
        p
            The operand.
        places
            The places.
        cell
            Their cell.
        row
            First row in its table.
        """
        tree = self.r.tree
        if p.kind == "input":
            return np.moveaxis(self.inputs[p.name][..., tree.elements[p.name][places, p.element]], -1, 0)
        if p.kind == "table":
            column = self.r.tables[cell][row : row + len(places), p.element]
            return np.broadcast_to(column.reshape((-1, *[1] * len(self.batch))), (len(places), *self.batch))
        if p.kind == "parent":
            places, source = tree.parent[places], self.handed[int(p.name)]
        elif p.kind == "child":
            places, source = tree.children[places, p.child], self.handed[int(p.name)]
        else:
            source = {"kept": self.stored, "sine": self.sine, "cosine": self.cosine}[p.kind]
        values: Array = source[places, p.element]
        return values

    def write(self, p: CellOperand, places: Array, y: Array) -> None:
        """Store the values `y` of operand `p` at `places`."""
        if p.kind == "output":
            self.result[..., self.r.tree.elements[RESULT][places, p.element]] = np.moveaxis(y, 0, -1)
        elif p.kind == "handed":
            self.handed[int(p.name)][places, p.element] = y
        else:
            {"kept": self.stored, "angle": self.angles}[p.kind][places, p.element] = y
