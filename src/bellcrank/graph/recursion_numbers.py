"""Numpy interpreter of a recursion: the reference for every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.graph.cells import RESULT, Body, Place
from bellcrank.graph.graph import Array, Shape

if TYPE_CHECKING:
    from bellcrank.graph.recursion import Recursion, Run


def result(r: Recursion, arrays: Mapping[str, Array]) -> Array:
    """Return the output of recursion `r` for inputs `arrays`, which may have leading axes."""
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
    state = State(r, {k: np.broadcast_to(a, (*batch, a.shape[-1])) for k, a in arrays.items()}, batch)
    for run in r.tree.runs:
        state.go([cut.angles for cut in r.cuts], run, True)
    state.turn()
    for k, outwards in enumerate(r.outwards):
        for run in r.tree.runs if outwards else reversed(r.tree.runs):
            state.go([cut.bodies[k] for cut in r.cuts], run, outwards)
    return state.result.reshape((*batch, *r.shape))


class State:
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
        self.kept = np.full((n, max(c.kept for c in r.cuts), *batch), np.nan)
        self.angles = np.zeros((n, max(c.count for c in r.cuts), *batch))
        self.handed = [np.full((n, len(w), *batch), np.nan) for w in r.wanted]
        self.result = np.full((*batch, r.output[1]), np.nan)

    def turn(self) -> None:
        """Compute the sines and cosines of all angles."""
        self.sine, self.cosine = np.sin(self.angles), np.cos(self.angles)

    def go(self, bodies: Sequence[Body], run: Run, forwards: bool) -> None:
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
            self.do(bodies[run.cells[0]], run.at(0), run.cells[0], run.rows[0])
            return
        p = len(run.cells)
        for i in range(run.end - run.begin) if forwards else reversed(range(run.end - run.begin)):
            cell = run.cells[i % p]
            self.do(bodies[cell], np.array([run.begin + i]), cell, run.rows[i % p] + i // p * run.step(i % p))

    def do(self, body: Body, at: Array, cell: int, row: int) -> None:
        """Run a loop body at some places.

        Parameters
        ----------
        body
            The loop body.
        at
            The places.
        cell
            Their cell.
        row
            First row in its table.
        """
        if not body.writes:
            return
        x = [self.read(p, at, cell, row) for p in body.reads]
        columns = np.stack(x, axis=-1) if x else np.zeros((len(at), *self.batch, 0))
        y = np.broadcast_to(body.graph.evaluate(x=columns)["y"], (len(at), *self.batch, len(body.writes)))
        for i, p in enumerate(body.writes):
            self.write(p, at, y[..., i])

    def read(self, p: Place, at: Array, cell: int, row: int) -> Array:
        """Return one operand of several places.

        Parameters
        ----------
        p
            The operand.
        at
            The places.
        cell
            Their cell.
        row
            First row in its table.
        """
        tree = self.r.tree
        if p.kind == "input":
            return np.moveaxis(self.inputs[p.name][..., tree.elements[p.name][at, p.element]], -1, 0)
        if p.kind == "table":
            column = self.r.tables[cell][row : row + len(at), p.element]
            return np.broadcast_to(column.reshape((-1, *[1] * len(self.batch))), (len(at), *self.batch))
        if p.kind == "parent":
            at, of = tree.parent[at], self.handed[int(p.name)]
        elif p.kind == "child":
            at, of = tree.children[at, p.child], self.handed[int(p.name)]
        else:
            of = {"kept": self.kept, "sine": self.sine, "cosine": self.cosine}[p.kind]
        found: Array = of[at, p.element]
        return found

    def write(self, p: Place, at: Array, y: Array) -> None:
        """Store the values `y` of operand `p` at the places `at`."""
        if p.kind == "output":
            self.result[..., self.r.tree.elements[RESULT][at, p.element]] = np.moveaxis(y, 0, -1)
        elif p.kind == "handed":
            self.handed[int(p.name)][at, p.element] = y
        else:
            {"kept": self.kept, "angle": self.angles}[p.kind][at, p.element] = y
