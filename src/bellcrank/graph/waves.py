"""Vectorisation of a recursion: groups of identical, independent runs at equal depth.

Runs at equal depth do not depend on each other: dependent runs are farther out or farther in. A processor runs as many
at a time as it has lanes, several cores share them, and a GPU assigns a thread to each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.graph.recursion import Recursion, Run

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Wave:
    """Identical runs at equal depth, counted in runs between them and the ground."""

    cells: tuple[int, ...]
    repeats: int
    depth: int
    runs: tuple[Run, ...]

    @property
    def places(self) -> int:
        """Number of places of one run."""
        return self.repeats * len(self.cells)


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
    return [Wave(cells, repeats, d, tuple(wave_runs)) for (d, cells, repeats), wave_runs in sorted(groups.items())]
