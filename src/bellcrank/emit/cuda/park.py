"""Spilling to shared memory: where more values are live than registers can hold, those needed last are spilled.

The rule is Belady's (IBM Systems Journal 5, 1966): of all values in registers, spill the one whose next use is furthest
away. A spilled value has a slot in shared memory, one word for each thread of the block, and is reloaded before that
use. An input is never spilled: it is dropped, and read again from its array. The same applies to values of another
member of a team, which lie in the mailbox.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bellcrank.emit.cuda.units import Unit
from bellcrank.graph import Node


class Step(NamedTuple):
    """One action: compute a unit, spill a node to a slot ("park"), reload it from there ("fetch"), or drop a value."""

    what: str
    unit: Unit | None = None
    node: Node | None = None
    slot: int = 0


@dataclass(frozen=True)
class Parking:
    """Spill plan: a sequence of steps, with its slots and register pressure."""

    steps: Sequence[Step]
    slots: int
    most: int  # values in registers at once


def parked(sequence: Sequence[Unit], room: int, elsewhere: Collection[int] = ()) -> Parking:
    """Return the spill plan of a sequence of units.

    Parameters
    ----------
    sequence
        Units in schedule order.
    room
        Maximum number of values in registers, apart from what a single unit needs at once.
    elsewhere
        Values that can be read again, as inputs can.
    """
    registers = _Registers(sequence, room, elsewhere)
    for unit in sequence:
        registers.compute(unit)
    return Parking(registers.steps, registers.slots.count, registers.most)


class _Slots:
    """Allocator of spill slots in shared memory."""

    def __init__(self) -> None:
        self.taken: dict[int, int] = {}
        self.free: list[int] = []
        self.count = 0

    def take(self, serial: int) -> int:
        if not self.free:
            self.free.append(self.count)
            self.count += 1
        self.taken[serial] = self.free.pop()
        return self.taken[serial]

    def give_back(self, serial: int) -> None:
        if serial in self.taken:
            self.free.append(self.taken.pop(serial))


class _Registers:
    """Values in registers, and the steps that led to them."""

    def __init__(self, sequence: Sequence[Unit], room: int, elsewhere: Collection[int]) -> None:
        self.room, self.elsewhere = room, elsewhere
        self.uses: dict[int, list[int]] = {}  # future uses of each value, the next one last
        for i in range(len(sequence) - 1, -1, -1):
            for serial in sequence[i].reads:
                self.uses.setdefault(serial, []).append(i)
        self.steps: list[Step] = []
        self.held: dict[int, Node] = {}
        self.slots = _Slots()
        self.most = 0

    def compute(self, unit: Unit) -> None:
        """Reload operands, release values after their last use, and make room for the results of a unit."""
        held, needed = self.held, set(unit.reads)
        for serial, n in zip(unit.reads, unit.uses, strict=True):
            if serial not in held:
                self._make_room(1, needed)
                if not self._found_again(n):
                    self.steps.append(Step("fetch", None, n, self.slots.taken[serial]))
                held[serial] = n
        for serial in unit.reads:
            later = self.uses[serial]
            later.pop()
            if not later:
                del held[serial]
                needed.discard(serial)
                self.slots.give_back(serial)
        wanted = [n for n in unit.defines if n.serial in self.uses]
        if len(held) + len(wanted) > self.room:
            self._make_room(len(wanted), needed)
        self.steps.append(Step("compute", unit))
        for n in wanted:
            held[n.serial] = n
        if len(held) > self.most:
            self.most = len(held)

    def _make_room(self, wanted: int, keep: Collection[int]) -> None:
        while len(self.held) + wanted > self.room:
            candidates = [(self.uses[serial][-1], serial) for serial in self.held if serial not in keep]
            if not candidates:
                return
            _, serial = max(candidates)
            node = self.held.pop(serial)
            if self._found_again(node) or serial in self.slots.taken:
                self.steps.append(Step("drop", node=node))
            else:
                self.steps.append(Step("park", node=node, slot=self.slots.take(serial)))

    def _found_again(self, n: Node) -> bool:
        """Return whether a value can be read from its origin, and needs no slot."""
        return n.op == "input" or n.serial in self.elsewhere
