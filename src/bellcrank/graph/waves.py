"""The runs of a recursion that can be gone through side by side: those that are alike and equally far from the root.

None of them waits for another, for who waits is further out, or further in. A processor takes as many at a time as it
has lanes, several cores share them out, and a GPU gives each a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.graph.recursion import Recursion, Run

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Wave:
    """Runs of the same cells, as often; depth: how many runs lie between them and the ground."""

    cells: tuple[int, ...]
    repeats: int
    depth: int
    runs: tuple[Run, ...]

    @property
    def places(self) -> int:
        """How many places one run has."""
        return self.repeats * len(self.cells)


@dataclass(frozen=True, eq=False)
class Shape:
    """What waves of the same cells and repeats have in common: their code. Runs are numbered through all of them, those
    of each filled up by its last to a multiple of the width.
    """

    cells: tuple[int, ...]
    repeats: int
    runs: tuple[Run, ...]

    @property
    def places(self) -> int:
        """How many places one run has."""
        return self.repeats * len(self.cells)

    @property
    def begins(self) -> Array:
        return np.array([run.begin for run in self.runs])

    def rows(self, k: int) -> Array:
        """Where the rows of the kth cell begin in its table."""
        return np.array([run.rows[k] for run in self.runs])

    def at(self, k: int) -> Array:
        """(runs, repeats): the places of the kth cell."""
        found: Array = self.begins[:, None] + k + len(self.cells) * np.arange(self.repeats)[None]
        return found


@dataclass(frozen=True)
class Share:
    """Where the runs of a wave lie among those of its shape."""

    shape: int
    depth: int
    first: int
    last: int


def shaped(r: Recursion, width: int) -> tuple[list[Shape], list[Share]]:
    runs: dict[tuple[tuple[int, ...], int], list[Run]] = {}
    shares = []
    for wave in waves(r):
        mine = runs.setdefault((wave.cells, wave.repeats), [])
        first = len(mine)
        mine += [*wave.runs, *[wave.runs[-1]] * (-len(wave.runs) % width)]
        shares.append(Share(list(runs).index((wave.cells, wave.repeats)), wave.depth, first, len(mine)))
    return [Shape(*key, tuple(found)) for key, found in runs.items()], shares


def waves(r: Recursion) -> list[Wave]:
    """All runs, those nearest to the ground first."""
    runs, parent = r.tree.runs, r.tree.parent
    run_of = np.empty(len(parent), int)
    depth = [0] * len(runs)
    together: dict[tuple[int, tuple[int, ...], int], list[Run]] = {}
    for k, run in enumerate(runs):
        run_of[run.begin : run.end] = k
        up = int(parent[run.begin])
        depth[k] = depth[run_of[up]] + 1 if up >= 0 else 0
        together.setdefault((depth[k], run.cells, run.repeats), []).append(run)
    return [Wave(cells, repeats, d, tuple(found)) for (d, cells, repeats), found in sorted(together.items())]
