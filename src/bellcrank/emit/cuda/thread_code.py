"""Straight-line code of one GPU thread: the units of a graph in schedule order, with spills and reloads.

Where more values are live than registers can hold, those needed last are spilled to shared memory. The rule is Belady's
(emit/llvm/register_allocation.py). A spilled value has a slot in shared memory, one word for each thread of the block,
and is reloaded before its next use. An input is never spilled: it is dropped, and read again from its array. The same
applies to values of another member of a team, which lie in the mailbox.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bellcrank.emit.cuda.arithmetic import Arithmetic
from bellcrank.emit.cuda.units import BARRIER, Unit, Units
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.llvm_printer import fused
from bellcrank.emit.llvm.register_allocation import RegisterFile
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


class ThreadCode:
    """Emitter of straight-line code.

    `read` returns a value that is not computed here, such as an input; `write` receives every value that is computed.
    """

    def __init__(
        self,
        units: Units,
        w: Writer,
        read: Callable[[Node], str],
        write: Callable[[Node, str], None],
        threads: int,
        first_slot: int = 0,
        shared_slots: int | None = None,
    ) -> None:
        """Describe the spill slots: %parked is the thread's slot 0, slots are `threads` values apart.

        Slots of this body begin at `first_slot`; those numbered `shared_slots` or higher lie in local memory instead,
        at %far.
        """
        self.units, self.w, self.read, self.write, self.threads, self.first_slot = (
            units,
            w,
            read,
            write,
            threads,
            first_slot,
        )
        self.shared_slots = shared_slots
        self.arithmetic = Arithmetic(w)
        self.names: dict[int, str] = {}

    def emit_steps(self, steps: Sequence[SpillStep]) -> None:
        """Emit `steps`: compute, spill, reload or drop values."""
        for step in steps:
            if step.unit is not None:
                self._compute(step.unit)
            elif step.node is not None and step.action == "spill":
                value = self.value(step.node)
                del self.names[step.node.serial]
                self.w.do(f"store volatile {self.w.type} {value}, {self._slot_address(step.slot)}")
            elif step.node is not None and step.action == "reload":
                self.names[step.node.serial] = self.w.let(
                    f"load volatile {self.w.type}, {self._slot_address(step.slot)}", "x"
                )
            elif step.node is not None:
                self.names.pop(step.node.serial, None)

    def _slot_address(self, slot: int) -> str:
        if self.shared_slots is not None and slot >= self.shared_slots:
            return "ptr " + self.w.let(f"getelementptr {self.w.type}, ptr %far, i32 {slot - self.shared_slots}", "p")
        kind = f"[{self.threads} x {self.w.type}]"
        address = self.w.let(f"getelementptr {kind}, ptr addrspace(3) %parked, i32 {self.first_slot + slot}", "p")
        return f"ptr addrspace(3) {address}"

    def value(self, x: Node | float) -> str:
        """Return the operand for `x`, a node or a constant."""
        if not isinstance(x, Node):
            return self.w.constant(x)
        if x.serial in self.units.inlined:
            return self._operation(x)
        if x.serial not in self.names:
            self.names[x.serial] = self.read(x)
        return self.names[x.serial]

    def _compute(self, unit: Unit) -> None:
        if unit is BARRIER:
            self.w.do("call void @llvm.nvvm.barrier0()")
            return
        first = unit.defines[0]
        if first.op == "input":
            self.value(first)
            return
        if first.op in ("sin", "cos"):
            s, c = self.arithmetic.sincos(self.value(first.args[0]))
            for n in unit.defines:
                self.names[n.serial] = s if n.op == "sin" else c
        else:
            self.names[first.serial] = self._operation(first)
        for n in unit.defines:
            self.write(n, self.names[n.serial])

    def _operation(self, node: Node) -> str:
        product = self.units.fused_product(node)
        if product is None:
            return self.arithmetic.op(node.op, *(self.value(a) for a in node.args))
        return fused(node, product, self.value, partial(self.arithmetic.op, "neg"), self.arithmetic.fma)
