"""Straight-line code of one GPU thread: the units of a graph in schedule order, with spills and reloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bellcrank.emit.cuda.arithmetic import Arithmetic
from bellcrank.emit.cuda.spilling import SpillStep
from bellcrank.emit.cuda.team import BARRIER
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.llvm_printer import fused
from bellcrank.graph import Node


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
