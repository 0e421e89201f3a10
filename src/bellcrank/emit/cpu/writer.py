"""Lines of LLVM IR with fresh names, for one number of lanes and one precision."""

from __future__ import annotations

import struct

import numpy as np


class Writer:
    """`lanes` values side by side: a plain scalar for one, a vector type for more."""

    def __init__(self, lanes: int, dtype: str, pool: bool = False) -> None:
        self.lanes, self.dtype = lanes, dtype
        self.pool: list[str] | None = [] if pool else None  # constants in memory, see literal
        self.element, short = ("double", "f64") if dtype == "float64" else ("float", "f32")
        self.bytes = 8 if dtype == "float64" else 4
        self.type = self.element if lanes == 1 else f"<{lanes} x {self.element}>"
        self.mangled = short if lanes == 1 else f"v{lanes}{short}"  # in names of LLVM's own functions
        self.mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.align = self.bytes * lanes
        self.lines: list[str] = []
        self._count = 0

    def name(self, prefix: str = "t") -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

    def let(self, text: str, prefix: str = "t") -> str:
        """A new value; returns its name."""
        name = self.name(prefix)
        self.lines.append(f"{name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(text)

    def constant(self, x: float) -> str:
        """Exact, as the bits of a double; single precision is rounded first, as the format wants."""
        return self._bits(x) if self.lanes == 1 else self.literal(self.element, self._bits(x))

    def immediate(self, x: float) -> str:
        """A constant that LLVM may fold, never from the pool."""
        return self._bits(x) if self.lanes == 1 else f"splat ({self.element} {self._bits(x)})"

    def _bits(self, x: float) -> str:
        if self.dtype == "float32":
            with np.errstate(over="ignore"):  # what single precision does not reach is infinite there
                x = float(np.float32(x))
        return "0x" + struct.pack(">d", x).hex().upper()

    def literal(self, kind: str, text: str) -> str:
        """The same constant in all lanes. With a pool, every use has a place of its own in memory: then the constant is
        an operand of the instruction, where LLVM would otherwise spend a register and a shuffle on what is used twice.
        """
        if self.pool is None:
            return f"splat ({kind} {text})"
        self.pool.append(f"{kind} {text}")
        place = f"getelementptr ({self.element}, ptr @pool, i64 {len(self.pool) - 1})"
        one = self.let(f"load <1 x {kind}>, ptr {place}, align {self.bytes}, !invariant.load !0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector <1 x {kind}> {one}, <1 x {kind}> poison, {lanes}")

    def pooled(self) -> str:
        """Text that defines the pool."""
        kinds = ", ".join(c.split()[0] for c in self.pool or [])
        return f"@pool = internal global {{{kinds}}} {{{', '.join(self.pool or [])}}}, align 64\n!0 = !{{}}"

    def at(self, base: str, offset: int) -> str:
        """An address `offset` bytes on."""
        return base if offset == 0 else self.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")

    def load(self, pointer: str, kind: str = "", align: int = 0) -> str:
        return self.let(f"load {kind or self.type}, ptr {pointer}, align {align or self.align}", "x")

    def store(self, value: str, pointer: str, kind: str = "", align: int = 0, volatile: bool = False) -> None:
        word = "store volatile" if volatile else "store"
        self.do(f"{word} {kind or self.type} {value}, ptr {pointer}, align {align or self.align}")

    def shuffle(self, kind: str, a: str, b: str, lanes: list[int]) -> str:
        mask = ", ".join(f"i32 {i}" for i in lanes)
        return self.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{mask}>", "s")
