"""How a thread reaches its row of an array: by strides where it lies, or through a tile in shared memory.

Every array comes as a pointer and two strides in elements, from row to row and from column to column. With the states
of one quantity side by side (column-major), neighbouring threads touch neighbouring words, and all is well. With rows
side by side they would not: then the threads of a block copy their rows together, word by word in the order of the
memory, to a tile whose rows have an odd length, so that all may read a column of it at once. Results go the other way.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.emit.cpu.lanes import Writer


@dataclass(frozen=True)
class Strided:
    """%NAME.at is the thread's row."""

    name: str

    def enter(self, w: Writer, row: str = "%row") -> None:
        a = self.name
        w.do(f"%{a}.rows = zext i32 %{a}.row to i64")
        w.do(f"%{a}.o = mul i64 {row}, %{a}.rows")
        w.do(f"%{a}.at = getelementptr {w.type}, ptr addrspace(1) %{a}, i64 %{a}.o")
        w.do(f"%{a}.columns = zext i32 %{a}.column to i64")

    def address(self, w: Writer, k: int) -> str:
        """One instruction: a product of 32 bits and a sum of 64."""
        if not k:
            return f"ptr addrspace(1) %{self.name}.at"
        offset = w.let(f"mul nuw i64 %{self.name}.columns, {k * w.bytes}")
        at = w.let(f"getelementptr i8, ptr addrspace(1) %{self.name}.at, i64 {offset}", "p")
        return f"ptr addrspace(1) {at}"

    def leave(self, w: Writer) -> None:
        pass


@dataclass(frozen=True)
class Tiled:
    """Columns side by side in memory; the tile begins `start` elements into the shared memory."""

    name: str
    size: int
    threads: int
    start: int
    output: bool

    @property
    def length(self) -> int:
        return self.size | 1

    @property
    def elements(self) -> int:
        return self.length * self.threads

    def enter(self, w: Writer) -> None:
        a = self.name
        w.do(f"%{a}.rows = zext i32 %{a}.row to i64")
        w.do(f"%{a}.mine.o = mul i32 %tid, {self.length}")
        w.do(f"%{a}.mine.i = add i32 %{a}.mine.o, {self.start}")
        w.do(f"%{a}.mine = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %{a}.mine.i")
        if not self.output:
            for j in range(self.size):
                far, near, _ = self._places(w, j, "%tid")
                value = w.let(f"load {w.type}, ptr addrspace(1) {far}", "x")
                w.do(f"store {w.type} {value}, ptr addrspace(3) {near}")

    def _places(self, w: Writer, j: int, tid: str) -> tuple[str, str, str]:
        """Element j * threads + tid of the block's rows: where it is, where in the tile, and whether it exists."""
        e = w.let(f"add i32 {tid}, {j * self.threads}")
        r = w.let(f"udiv i32 {e}, {self.size}")
        c = w.let(f"sub i32 {e}, {w.let(f'mul i32 {r}, {self.size}')}")
        row = w.let(f"add i64 %before, {w.let(f'zext i32 {r} to i64')}")
        exists = w.let(f"icmp ult i64 {row}, %n")
        row = w.let(f"select i1 {exists}, i64 {row}, i64 %last")
        first = w.let(f"mul i64 {row}, %{self.name}.rows")
        index = w.let(f"add i64 {first}, {w.let(f'zext i32 {c} to i64')}")
        far = w.let(f"getelementptr {w.type}, ptr addrspace(1) %{self.name}, i64 {index}", "p")
        place = w.let(f"add i32 {e}, {w.let(f'add i32 {r}, {self.start}')}" if self.length > self.size
                      else f"add i32 {e}, {self.start}")  # fmt: skip
        return far, w.let(f"getelementptr {w.type}, ptr addrspace(3) @shared, i32 {place}", "p"), exists

    def address(self, w: Writer, k: int) -> str:
        at = w.let(f"getelementptr {w.type}, ptr addrspace(3) %{self.name}.mine, i32 {k}", "p")
        return f"ptr addrspace(3) {at}"

    def leave(self, w: Writer) -> None:
        if self.output:
            # asked anew: else all that follows from it, known since the beginning, would wait in registers
            tid = w.let('call i32 asm sideeffect "mov.u32 $0, %tid.x;", "=r"()')
            for j in range(self.size):
                far, near, exists = self._places(w, j, tid)
                value = w.let(f"load {w.type}, ptr addrspace(3) {near}", "x")
                put, on = w.name("put"), w.name("on")
                w.do(f"br i1 {exists}, label {put}, label {on}")
                w.do(f"{put[1:]}:")
                w.do(f"store {w.type} {value}, ptr addrspace(1) {far}")
                w.do(f"br label {on}")
                w.do(f"{on[1:]}:")
