"""What waits in shared memory: where more values are alive than registers can hold, those that are needed last leave.

The rule is Belady's (IBM Systems Journal 5, 1966): of all values in registers, park the one whose next use is furthest
away. A parked value has a slot in shared memory, one word for each thread of the block, and is fetched before that use.
An input is never parked: it is dropped, and read again from where it came. So is what another member of a team made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bellcrank.emit.cuda.units import Unit
from bellcrank.graph import Node


class Step(NamedTuple):
    """One thing to do: compute a unit, park a node in a slot, fetch it from there, or drop an input."""

    what: str
    unit: Unit | None = None
    node: Node | None = None
    slot: int = 0


@dataclass(frozen=True)
class Parking:
    steps: Sequence[Step]
    slots: int
    most: int  # values in registers at once


def parked(sequence: Sequence[Unit], room: int, elsewhere: Collection[int] = ()) -> Parking:
    """The same units with values parked so that at most `room` are in registers (and what one unit needs at once).

    elsewhere: values that can be read again, as inputs can.
    """
    registers = _Registers(sequence, room, elsewhere)
    for unit in sequence:
        registers.compute(unit)
    return Parking(registers.steps, registers.slots.count, registers.most)


class _Slots:
    """Slots of shared memory: who has which, and how many there had to be."""

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
    """The values in registers, and the steps that brought them there."""

    def __init__(self, sequence: Sequence[Unit], room: int, elsewhere: Collection[int]) -> None:
        self.room, self.elsewhere = room, elsewhere
        self.uses: dict[int, list[int]] = {}  # of each value those to come, the next one last
        for i in range(len(sequence) - 1, -1, -1):
            for serial in sequence[i].reads:
                self.uses.setdefault(serial, []).append(i)
        self.steps: list[Step] = []
        self.held: dict[int, Node] = {}
        self.slots = _Slots()
        self.most = 0

    def compute(self, unit: Unit) -> None:
        """What it needs is fetched, what nobody needs after it goes, and then there is room for its own."""
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
        """Whether it can be read from where it came, and needs no slot."""
        return n.op == "input" or n.serial in self.elsewhere
