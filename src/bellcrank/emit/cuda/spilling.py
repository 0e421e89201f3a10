"""Spilling to shared memory: where more values are live than registers can hold, those needed last are spilled.

The rule is Belady's (emit/llvm/register_file.py). A spilled value has a slot in shared memory, one word for each thread
of the block, and is reloaded before its next use. An input is never spilled: it is dropped, and read again from its
array. The same applies to values of another member of a team, which lie in the mailbox.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bellcrank.emit.cuda.units import Unit
from bellcrank.emit.llvm.register_file import RegisterFile
from bellcrank.graph import Node


class SpillStep(NamedTuple):
    """One action: compute a unit, "spill" a node to a slot, "reload" it from there, or drop a value."""

    action: str
    unit: Unit | None = None
    node: Node | None = None
    slot: int = 0


@dataclass(frozen=True)
class SpillPlan:
    """Spill plan: a sequence of steps, with its slots and register pressure."""

    steps: Sequence[SpillStep]
    slots: int
    max_registers: int  # values in registers at once


def plan_spills(sequence: Sequence[Unit], register_limit: int, rereadable: Collection[int] = ()) -> SpillPlan:
    """Return the spill plan of a sequence of units.

    Parameters
    ----------
    sequence
        Units in schedule order.
    register_limit
        Maximum number of values in registers, apart from what a single unit needs at once.
    rereadable
        Values that can be read again, as inputs can.
    """
    registers = _Registers(sequence, register_limit, rereadable)
    for unit in sequence:
        registers.compute(unit)
    return SpillPlan(registers.steps, registers.slots.count, registers.max_registers)


class _SlotAllocator:
    """Allocator of spill slots in shared memory."""

    def __init__(self) -> None:
        self.slot_of: dict[int, int] = {}
        self.free: list[int] = []
        self.count = 0

    def allocate(self, serial: int) -> int:
        if not self.free:
            self.free.append(self.count)
            self.count += 1
        self.slot_of[serial] = self.free.pop()
        return self.slot_of[serial]

    def release(self, serial: int) -> None:
        if serial in self.slot_of:
            self.free.append(self.slot_of.pop(serial))


class _Registers(RegisterFile):
    """Values in registers, and the steps that led to them."""

    def __init__(self, sequence: Sequence[Unit], register_limit: int, rereadable: Collection[int]) -> None:
        super().__init__([unit.used_serials for unit in sequence], register_limit, int)
        self.rereadable = rereadable
        self.steps: list[SpillStep] = []
        self.slots = _SlotAllocator()
        self.max_registers = 0

    def compute(self, unit: Unit) -> None:
        """Reload operands, release values after their last use, and make room for the results of a unit."""
        resident, needed = self.resident, set(unit.used_serials)
        for serial, n in zip(unit.used_serials, unit.uses, strict=True):
            if serial not in resident:
                self._make_room(1, needed)
                if not self._is_rereadable(n):
                    self.steps.append(SpillStep("reload", None, n, self.slots.slot_of[serial]))
                resident[serial] = n
        for serial in unit.used_serials:
            if self.read(serial):
                del resident[serial]
                needed.discard(serial)
                self.slots.release(serial)
        used_results = [n for n in unit.defines if n.serial in self.uses]
        if len(resident) + len(used_results) > self.limit:
            self._make_room(len(used_results), needed)
        self.steps.append(SpillStep("compute", unit))
        for n in used_results:
            resident[n.serial] = n
        if len(resident) > self.max_registers:
            self.max_registers = len(resident)

    def _make_room(self, wanted: int, keep: Collection[int]) -> None:
        for node in self.evict(wanted, keep):
            serial = node.serial
            if self._is_rereadable(node) or serial in self.slots.slot_of:
                self.steps.append(SpillStep("drop", node=node))
            else:
                self.steps.append(SpillStep("spill", node=node, slot=self.slots.allocate(serial)))

    def _is_rereadable(self, n: Node) -> bool:
        """Return whether a value can be read from its origin, and needs no slot."""
        return n.op == "input" or n.serial in self.rereadable
