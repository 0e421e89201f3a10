"""Straight-line code of one GPU thread: the units of a graph in schedule order, with spills and reloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.emit.cpu.lanes import Writer
from bellcrank.emit.cuda.arith import Arithmetic
from bellcrank.emit.cuda.park import Step
from bellcrank.emit.cuda.team import MEET
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.graph import Node


class Body:
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
        first: int = 0,
        near: int | None = None,
    ) -> None:
        """Describe the spill slots: %parked is the thread's slot 0, slots are `threads` values apart.

        Slots of this body begin at `first`; those numbered `near` or higher lie in local memory instead, at %far.
        """
        self.units, self.w, self.read, self.write, self.threads, self.first = units, w, read, write, threads, first
        self.near = near
        self.arithmetic = Arithmetic(w)
        self.names: dict[int, str] = {}

    def spelled(self, steps: Sequence[Step]) -> None:
        """Emit `steps`: compute, spill, reload or drop values."""
        for step in steps:
            if step.unit is not None:
                self._compute(step.unit)
            elif step.node is not None and step.what == "park":
                value = self.value(step.node)
                del self.names[step.node.serial]
                self.w.do(f"store volatile {self.w.type} {value}, {self._at(step.slot)}")
            elif step.node is not None and step.what == "fetch":
                self.names[step.node.serial] = self.w.let(f"load volatile {self.w.type}, {self._at(step.slot)}", "x")
            elif step.node is not None:
                self.names.pop(step.node.serial, None)

    def _at(self, slot: int) -> str:
        if self.near is not None and slot >= self.near:
            return "ptr " + self.w.let(f"getelementptr {self.w.type}, ptr %far, i32 {slot - self.near}", "p")
        kind = f"[{self.threads} x {self.w.type}]"
        at = self.w.let(f"getelementptr {kind}, ptr addrspace(3) %parked, i32 {self.first + slot}", "p")
        return f"ptr addrspace(3) {at}"

    def value(self, x: Node | float) -> str:
        """Return the operand for `x`, a node or a constant."""
        if not isinstance(x, Node):
            return self.w.constant(x)
        if x.serial in self.units.inside:
            return self._operation(x)
        if x.serial not in self.names:
            self.names[x.serial] = self.read(x)
        return self.names[x.serial]

    def _compute(self, unit: Unit) -> None:
        if unit is MEET:
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
        product = self.units.product(node)
        if product is None:
            return self.arithmetic.op(node.op, *(self.value(a) for a in node.args))
        a, b = node.args
        x, y = (self.value(p) for p in product.args)
        z = self.value(b if a is product else a)
        if node.op == "sub" and a is product:
            z = self.arithmetic.op("neg", z)
        elif node.op == "sub":
            y = self.arithmetic.op("neg", y)
        return self.arithmetic.fma(x, y, z)
