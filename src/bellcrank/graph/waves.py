"""Vectorisation of a recursion: groups of identical, independent runs at equal depth, and elision of copies.

Runs at equal depth do not depend on each other: dependent runs are farther out or farther in. A processor runs as many
at a time as it has lanes, several cores share them, and a GPU assigns a thread to each.

Copy elision removes the places that only forward values; their neighbours connect directly. Inwards, such a place
forwards the values of its one child. Outwards it forwards elements of its parent, starting at an offset that is the
same for all elements of a channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.graph.cells import Cell, channel_output
from bellcrank.graph.recursion import Recursion, Run
from bellcrank.nodes.node import Node

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class WaveCode:
    """The common code of waves with the same cells and repeats.

    Runs are numbered through all waves; those of each wave are padded with its last run to a multiple of the width.
    """

    cells: tuple[int, ...]
    repeats: int
    runs: tuple[Run, ...]

    @property
    def places(self) -> int:
        """Number of places of one run."""
        return self.repeats * len(self.cells)

    @property
    def begins(self) -> Array:
        """First place of each run."""
        return np.array([run.begin for run in self.runs])

    def rows(self, k: int) -> Array:
        """Return the first table row of the cell at position `k` of each run."""
        return np.array([run.rows[k] for run in self.runs])

    def places_of_cell(self, k: int) -> Array:
        """Return the places of the cell at position `k`, shape (runs, repeats)."""
        places: Array = self.begins[:, None] + k + len(self.cells) * np.arange(self.repeats)[None]
        return places


@dataclass(frozen=True, eq=False)
class Wave(WaveCode):
    """Identical runs at equal depth, counted in runs between them and the ground."""

    depth: int


@dataclass(frozen=True)
class WaveRange:
    """Range of the runs of a wave within its shape."""

    shape: int
    depth: int
    first: int
    last: int


def group_waves(r: Recursion, width: int) -> tuple[list[WaveCode], list[WaveRange]]:
    """Group the waves of recursion `r` by their code, padded to multiples of the vector `width`."""
    runs: dict[tuple[tuple[int, ...], int], list[Run]] = {}
    shares = []
    for wave in waves(r):
        pattern_runs = runs.setdefault((wave.cells, wave.repeats), [])
        first = len(pattern_runs)
        pattern_runs += [*wave.runs, *[wave.runs[-1]] * (-len(wave.runs) % width)]
        shares.append(WaveRange(list(runs).index((wave.cells, wave.repeats)), wave.depth, first, len(pattern_runs)))
    return [WaveCode(*key, tuple(wave_runs)) for key, wave_runs in runs.items()], shares


def waves(r: Recursion) -> list[Wave]:
    """Return all runs of recursion `r` grouped into waves, those nearest to the ground first."""
    runs, parent = r.tree.runs, r.tree.parent
    run_of = np.empty(len(parent), int)
    depth = [0] * len(runs)
    groups: dict[tuple[int, tuple[int, ...], int], list[Run]] = {}
    for k, run in enumerate(runs):
        run_of[run.begin : run.end] = k
        up = int(parent[run.begin])
        depth[k] = depth[run_of[up]] + 1 if up >= 0 else 0
        groups.setdefault((depth[k], run.cells, run.repeats), []).append(run)
    return [Wave(cells, repeats, tuple(wave_runs), d) for (d, cells, repeats), wave_runs in sorted(groups.items())]


@dataclass(frozen=True, eq=False)
class ElidedRecursion:
    """A recursion after copy elision.

    `offsets` is for each place and outward channel the offset at which its parent stores the values meant for it.
    """

    r: Recursion
    offsets: Array  # (places, channels)


def forwarding_offsets(cell: Cell) -> tuple[int, ...] | None:
    """Return the offset of each channel if `cell` only forwards values; None if it does anything else."""
    if cell.children != 1 or cell.on_ground or any(n.op != "input" for n in cell.graph.nodes):
        return None
    offsets_of_channel = []
    for k, outwards in enumerate(cell.outwards):
        given = [(e, x) for e, x in enumerate(cell.graph.outputs[channel_output(k)].flat) if isinstance(x, Node)]
        steps = {x.args[1] - e for e, x in given if x.args[0] in cell.sources(k)}
        if len(steps) != 1 or len(given) != sum(x.args[0] in cell.sources(k) for _, x in given):
            return None
        offsets_of_channel.append(steps.pop())
        if not outwards and offsets_of_channel[-1]:
            return None
    return tuple(offsets_of_channel)


def elide_copies(r: Recursion) -> ElidedRecursion:
    """Remove the forwarding places of recursion `r`."""
    parent, children = r.tree.parent.copy(), r.tree.children.copy()
    offsets = np.zeros((len(parent), len(r.outwards)), int)
    offsets_of_cell = [
        forwarding_offsets(cell) if not table.size else None for cell, table in zip(r.cells, r.tables, strict=True)
    ]
    remaining_runs = []
    for run in r.tree.runs:
        step = offsets_of_cell[run.cells[0]] if run.end - run.begin == 1 else None
        if step is None:
            remaining_runs.append(run)
            continue
        place, up, below = run.begin, int(parent[run.begin]), int(children[run.begin, 0])
        children[up] = np.where(children[up] == place, below, children[up])
        parent[below] = up
        offsets[below] = offsets[place] + step
    tree = replace(r.tree, parent=parent, children=children, runs=tuple(remaining_runs))
    return ElidedRecursion(Recursion(r.name, r.inputs, r.output, r.cells, r.tables, tree, True, r.shape), offsets)
