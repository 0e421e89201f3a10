"""Simulation of systolic arrays: cells on a grid that compute in lockstep.

In every cycle each cell receives the words that its neighbours sent in the cycle before, computes, and sends words to
them. A cell has no access to the memory of other cells. A cell is a generator that receives the words of one cycle by
the side they came from, and yields those it sends:

    def doubling() -> Cell:
        sent: Words = {}
        while True:
            got = yield sent
            sent = {"east": 2 * got["west"]} if "west" in got else {}

Words are scalars of any kind, or small tuples of them. Words that leave the grid are stored in `left`, by cycle, cell
and side.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

Place = tuple[int, int]  # row, column
Words = dict[str, Any]  # by side
Cell = Generator[Words, Words, None]
When = tuple[int, Place, str]  # cycle (the first is 1), cell and side

OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
TOWARDS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


class Array:
    """Grid of cells with their inputs from outside.

    Parameters
    ----------
    cells
        Generator of each cell.
    fed
        Words that enter from outside the grid.
    """

    def __init__(self, cells: Mapping[Place, Cell], fed: Mapping[When, Any]) -> None:
        """Start all `cells`; `fed` are the words that enter from outside the grid."""
        self.cells = dict(cells)
        self.cycles = 0
        self.left: dict[When, Any] = {}
        self._coming: dict[Place, Words] = {}
        self._fed: dict[int, list[tuple[Place, str, Any]]] = {}
        for (cycle, place, side), word in fed.items():
            self._fed.setdefault(cycle, []).append((place, side, word))
        for cell in self.cells.values():
            next(cell)

    def cycle(self) -> None:
        """Run one cycle."""
        self.cycles += 1
        now, self._coming = self._coming, {}
        for place, side, word in self._fed.get(self.cycles, ()):
            now.setdefault(place, {})[side] = word
        for place, cell in self.cells.items():
            for side, word in cell.send(now.get(place, {})).items():
                self._sent(place, side, word)

    def run(self, cycles: int) -> None:
        """Run a number of `cycles`."""
        for _ in range(cycles):
            self.cycle()

    def _sent(self, place: Place, side: str, word: Any) -> None:
        down, right = TOWARDS[side]
        there = (place[0] + down, place[1] + right)
        if there in self.cells:
            self._coming.setdefault(there, {})[OPPOSITE[side]] = word
        else:
            self.left[self.cycles, place, side] = word
