"""Systolic array: a grid of cells that work in lockstep and exchange words with their neighbours.

In every cycle each cell receives the words that its neighbours sent in the cycle before, computes, and sends words to
them. A cell has no access to the memory of other cells. A cell is a generator that receives the words of one cycle by
the side they came from, and yields those it sends:

    def doubling() -> Cell:
        sent: Words = {}
        while True:
            got = yield sent
            sent = {"east": 2 * got["west"]} if "west" in got else {}

Words are scalars of any kind, or small tuples of them. Words that leave the grid are stored in `outputs`, by cycle,
cell and side. A wire carries the words of one side of a cell to other cells than its neighbour, as a bus does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.scalar import Scalar, is_real

GridPosition = tuple[int, int]  # row, column
Words = dict[str, Any]  # by side
Cell = Generator[Words, Words, None]
WordEvent = tuple[int, GridPosition, str]  # cycle (the first is 1), cell and side
CellSide = tuple[GridPosition, str]
OperationCounter = Callable[[], int]  # number of operations so far

OPPOSITE_SIDES = {"north": "south", "south": "north", "east": "west", "west": "east"}
SIDE_OFFSETS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}
ASYMMETRY = 1e-12  # largest difference between a_ij and a_ji, relative to the largest element


class SystolicArray:
    """Grid of cells with their inputs from outside.

    Parameters
    ----------
    cells
        Generator of each cell.
    fed
        Words that enter from outside the grid.
    wires
        Cells and sides that get the words of a side, where this is not the neighbour on that side.
    counter
        Function that returns the number of operations so far; with it, `busy` counts the cycles in which cells compute.
    """

    def __init__(
        self,
        cells: Mapping[GridPosition, Cell],
        fed: Mapping[WordEvent, Any],
        wires: Mapping[CellSide, Sequence[CellSide]] | None = None,
        counter: OperationCounter | None = None,
    ) -> None:
        """Start all `cells`; `fed` are the words that enter from outside the grid."""
        self.cells = dict(cells)
        self.cycles = 0
        self.busy = 0  # cycles of all cells in which a cell does at least one operation
        self.outputs: dict[WordEvent, Any] = {}
        self._wires = wires or {}
        self._counter = counter or (lambda: 0)
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
            count = self._counter()
            sent = cell.send(received.get(place, {}))
            self.busy += self._counter() > count
            for side, word in sent.items():
                self._deliver(place, side, word)

    def run(self, cycles: int) -> None:
        """Run a number of `cycles`."""
        for _ in range(cycles):
            self.cycle()

    def _deliver(self, place: GridPosition, side: str, word: Any) -> None:
        for target, entry in self._wires.get((place, side)) or [self._neighbour(place, side)]:
            if target in self.cells:
                self._pending.setdefault(target, {})[entry] = word
            else:
                self.outputs[self.cycles, place, side] = word

    def _neighbour(self, place: GridPosition, side: str) -> CellSide:
        down, right = SIDE_OFFSETS[side]
        return (place[0] + down, place[1] + right), OPPOSITE_SIDES[side]


@dataclass(frozen=True)
class SystolicSolution:
    """Solution with its cycles and cells."""

    x: list[Scalar]
    cycles: int
    cells: int
    first_cycle: int  # cycle after which the first element is available outside the array
    busy: int = 0  # cycles of all cells in which a cell does at least one operation; 0 without a counter

    @property
    def utilisation(self) -> float:
        """Share of the cycles of all cells in which they compute."""
        return self.busy / (self.cells * self.cycles)


@dataclass
class CellValue:
    """Value stored in a cell, read when the computation is complete."""

    value: Scalar
    final_cycle: int = 0  # cycle in which the value was final


def collecting_cell(into: list[Scalar]) -> Cell:
    """Yield the words of a cell outside the array, which stores its input from the north in the list `into`."""
    while True:
        got = yield {}
        if "north" in got:
            into.append(got["north"])


def checked_size(A: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> int:
    """Return the number of equations of `A` x = `b`, after a check of the shapes."""
    n = len(b)
    if n < 1 or len(A) != n or any(len(row) != n for row in A):
        raise InputError(
            f"a system of {len(A)} rows and {n} right-hand sides; expected a square matrix with as many rows."
        )
    return n


def check_symmetric(A: Sequence[Sequence[Scalar]]) -> None:
    """Raise InputError if `A` has numbers and is not symmetric: a solver that reads one triangle would be wrong."""
    pairs = [(i, j) for i in range(len(A)) for j in range(i) if all(is_real(x) for x in (A[i][j], A[j][i]))]
    size = max((abs(A[i][j]) for i, j in pairs), default=0.0)
    for i, j in pairs:
        if abs(A[i][j] - A[j][i]) > ASYMMETRY * size:
            raise InputError(
                f"elements ({i + 1}, {j + 1}) and ({j + 1}, {i + 1}) of the matrix are {A[i][j]} and {A[j][i]}; "
                "expected a symmetric matrix. Solve general systems with feed_forward, qr_feed_forward or faddeev."
            )
