"""Simulation of systolic arrays: cells on a grid that compute in lockstep.

In every cycle each cell receives the words that its neighbours sent in the cycle before, computes, and sends words to
them. A cell has no access to the memory of other cells. A cell is a generator that receives the words of one cycle by
the side they came from, and yields those it sends:

    def doubling() -> Cell:
        sent: Words = {}
        while True:
            got = yield sent
            sent = {"east": 2 * got["west"]} if "west" in got else {}

Words are scalars of any kind, or small tuples of them. Words that leave the grid are stored in `outputs`, by cycle,
cell and side.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

GridPosition = tuple[int, int]  # row, column
Words = dict[str, Any]  # by side
Cell = Generator[Words, Words, None]
WordEvent = tuple[int, GridPosition, str]  # cycle (the first is 1), cell and side

OPPOSITE_SIDES = {"north": "south", "south": "north", "east": "west", "west": "east"}
SIDE_OFFSETS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


class SystolicArray:
    """Grid of cells with their inputs from outside.

    Parameters
    ----------
    cells
        Generator of each cell.
    fed
        Words that enter from outside the grid.
    """

    def __init__(self, cells: Mapping[GridPosition, Cell], fed: Mapping[WordEvent, Any]) -> None:
        """Start all `cells`; `fed` are the words that enter from outside the grid."""
        self.cells = dict(cells)
        self.cycles = 0
        self.outputs: dict[WordEvent, Any] = {}
        self._pending: dict[GridPosition, Words] = {}
        self._inputs: dict[int, list[tuple[GridPosition, str, Any]]] = {}
        for (cycle, place, side), word in fed.items():
            self._inputs.setdefault(cycle, []).append((place, side, word))
        for cell in self.cells.values():
            next(cell)

    def cycle(self) -> None:
        """Run one cycle."""
        self.cycles += 1
        received, self._pending = self._pending, {}
        for place, side, word in self._inputs.get(self.cycles, ()):
            received.setdefault(place, {})[side] = word
        for place, cell in self.cells.items():
            for side, word in cell.send(received.get(place, {})).items():
                self._deliver(place, side, word)

    def run(self, cycles: int) -> None:
        """Run a number of `cycles`."""
        for _ in range(cycles):
            self.cycle()

    def _deliver(self, place: GridPosition, side: str, word: Any) -> None:
        down, right = SIDE_OFFSETS[side]
        target = (place[0] + down, place[1] + right)
        if target in self.cells:
            self._pending.setdefault(target, {})[OPPOSITE_SIDES[side]] = word
        else:
            self.outputs[self.cycles, place, side] = word
