"""Global-memory access of a GPU thread: strided, or staged through a tile in shared memory; and prefetch of inputs.

Every array is passed as a pointer and two strides in elements, from row to row and from column to column. With
column-major arrays (the states of one quantity are contiguous), neighbouring threads access neighbouring words and
the accesses are coalesced. With row-major arrays they would not be: then the threads of a block cooperatively copy
their rows, in memory order, to a tile whose rows have an odd length, so that all threads can read one column of it
without bank conflicts. Results go the opposite way.

Where a batch's results are most of the traffic, the memory is busy writing, and every read of a few hundred bytes in
between switches its direction. So inputs for later blocks are prefetched into the L2 cache in long pieces: among as
many blocks as make a long piece of a column, each block prefetches one column's piece for blocks that run an eighth of
a wave later: long enough for the memory to deliver it, and short enough that results, which pass through the same
cache, have not evicted it. (UR5 derivatives in float64 on an H200: 3.66e9 instead of 3.36e9 per s; half a wave ahead,
the gain is gone.) With more than MAX_PREFETCH_WARPS warps one of them is always ready to run, and float32 loses 2 % by
prefetching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bellcrank.emit.llvm.lanes import Writer, indented

PIECE_BYTES = 32 * 1024  # bytes of a column
CACHE_LINE_BYTES = 128  # bytes of a cache line
MULTIPROCESSORS = 132  # multiprocessors of an H200
WAVE_FRACTION = 8  # the prefetch distance is 1/WAVE_FRACTION of a wave of blocks
MAX_PREFETCH_WARPS = 8  # warps on a multiprocessor up to which prefetching pays


@dataclass(frozen=True)
class StridedArray:
    """Array that a thread accesses in global memory; %NAME.at points to the thread's row."""

    name: str

    def emit_entry(self, w: Writer) -> None:
        """Emit the address of the thread's row, whose index is %row, with the writer `w`."""
        a = self.name
        w.do(f"%{a}.rows = zext i32 %{a}.row to i64")
        w.do(f"%{a}.o = mul i64 %row, %{a}.rows")
        w.do(f"%{a}.at = getelementptr {w.type}, ptr addrspace(1) %{a}, i64 %{a}.o")
        w.do(f"%{a}.columns = zext i32 %{a}.column to i64")

    def address(self, w: Writer, k: int) -> str:
        """Return the address of element `k` of the thread's row; `w` emits a 32-bit product and a 64-bit sum."""
        if not k:
            return f"ptr addrspace(1) %{self.name}.at"
        offset = w.let(f"mul nuw i64 %{self.name}.columns, {k * w.bytes}")
        address = w.let(f"getelementptr i8, ptr addrspace(1) %{self.name}.at, i64 {offset}", "p")
        return f"ptr addrspace(1) {address}"

    def emit_exit(self, w: Writer) -> None:
        """Emit nothing with `w`: results are already in global memory."""
        pass


@dataclass(frozen=True)
class TiledArray:
    """Row-major array that is staged in shared memory; its tile begins at element `start` of the shared memory."""

    name: str
    size: int
    threads: int
    start: int
    output: bool

    @property
    def row_length(self) -> int:
        """Elements from one row of the tile to the next: odd, to avoid bank conflicts."""
        return self.size | 1

    @property
    def elements(self) -> int:
        """Elements of the whole tile."""
        return self.row_length * self.threads

    def emit_entry(self, w: Writer) -> None:
        """Emit the thread's row of the tile and, for an input, the copy from global memory, with the writer `w`."""
        a = self.name
        w.do(f"%{a}.rows = zext i32 %{a}.row to i64")
        w.do(f"%{a}.mine.o = mul i32 %tid, {self.row_length}")
        w.do(f"%{a}.mine.i = add i32 %{a}.mine.o, {self.start}")
        w.do(f"%{a}.mine = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %{a}.mine.i")
        if not self.output:
            for j in range(self.size):
                far, near, _ = self._element_addresses(w, j, "%tid")
                value = w.let(f"load {w.type}, ptr addrspace(1) {far}", "x")
                w.do(f"store {w.type} {value}, ptr addrspace(3) {near}")

    def _element_addresses(self, w: Writer, j: int, tid: str) -> tuple[str, str, str]:
        """Return global address, tile address and existence flag of element j * threads + tid of the block."""
        e = w.let(f"add i32 {tid}, {j * self.threads}")
        r = w.let(f"udiv i32 {e}, {self.size}")
        c = w.let(f"sub i32 {e}, {w.let(f'mul i32 {r}, {self.size}')}")
        row = w.let(f"add i64 %before, {w.let(f'zext i32 {r} to i64')}")
        exists = w.let(f"icmp ult i64 {row}, %n")
        row = w.let(f"select i1 {exists}, i64 {row}, i64 %last")
        first = w.let(f"mul i64 {row}, %{self.name}.rows")
        index = w.let(f"add i64 {first}, {w.let(f'zext i32 {c} to i64')}")
        far = w.let(f"getelementptr {w.type}, ptr addrspace(1) %{self.name}, i64 {index}", "p")
        place = w.let(f"add i32 {e}, {w.let(f'add i32 {r}, {self.start}')}" if self.row_length > self.size
                      else f"add i32 {e}, {self.start}")  # fmt: skip
        return far, w.let(f"getelementptr {w.type}, ptr addrspace(3) @shared, i32 {place}", "p"), exists

    def address(self, w: Writer, k: int) -> str:
        """Return the address of element `k` of the thread's row of the tile, emitted by `w`."""
        address = w.let(f"getelementptr {w.type}, ptr addrspace(3) %{self.name}.mine, i32 {k}", "p")
        return f"ptr addrspace(3) {address}"

    def emit_exit(self, w: Writer) -> None:
        """Emit, for an output, the copy from the tile to global memory with the writer `w`."""
        if self.output:
            # read %tid.x again: otherwise LLVM would reuse the addresses of enter() and keep them in registers
            tid = w.let('call i32 asm sideeffect "mov.u32 $0, %tid.x;", "=r"()')
            for j in range(self.size):
                far, near, exists = self._element_addresses(w, j, tid)
                value = w.let(f"load {w.type}, ptr addrspace(3) {near}", "x")
                put, join_label = w.name("put"), w.name("on")
                w.do(f"br i1 {exists}, label {put}, label {join_label}")
                w.do(f"{put[1:]}:")
                w.do(f"store {w.type} {value}, ptr addrspace(1) {far}")
                w.do(f"br label {join_label}")
                w.do(f"{join_label[1:]}:")


def prefetch_code(inputs: Mapping[str, int], kind: str, size: int, states: int, blocks: int) -> str:
    """Return LLVM IR that precedes a block's own work and prefetches inputs.

    Rows must be contiguous: other arrays are not prefetched.

    Parameters
    ----------
    inputs
        Numbers of columns by array name.
    kind
        LLVM type of a number.
    size
        Bytes of a number.
    states
        States of a block, as many as its threads.
    blocks
        Resident blocks of a multiprocessor.
    """
    group = PIECE_BYTES // (states * size)
    ahead = max(1, blocks * MULTIPROCESSORS // WAVE_FRACTION // group) * group * states
    columns = [(name, k) for name, count in inputs.items() for k in range(count)]
    lines = [
        f"%ahead.group = and i32 %block, {group - 1}",
        "%ahead.first = sub i32 %block, %ahead.group",
        "%ahead.wide = zext i32 %ahead.first to i64",
        f"%ahead.rows = mul i64 %ahead.wide, {states}",
        f"%ahead.row = add i64 %ahead.rows, {ahead}",
        f"%ahead.end = add i64 %ahead.row, {group * states}",
        "%ahead.exists = icmp ule i64 %ahead.end, %n",
        "br i1 %ahead.exists, label %ahead.some, label %own",
        "ahead.some:",
        f"switch i32 %ahead.group, label %own [{_cases(len(columns), group)}]",
    ]
    for turn in range(min(group, len(columns))):
        lines.append(f"ahead.{turn}:")
        for name, k in columns[turn::group]:
            lines += _piece(name, k, kind, states)
        lines.append("br label %own")
    return indented([*lines, "own:"])


def _cases(columns: int, group: int) -> str:
    return " ".join(f"i32 {turn}, label %ahead.{turn}" for turn in range(min(group, columns)))


def _piece(name: str, k: int, kind: str, states: int) -> list[str]:
    """Return the code that prefetches a piece of column k, divided among the threads.

    Nothing is prefetched if rows are not contiguous.
    """
    prefix, stride = f"%ahead.{name}.{k}", states * CACHE_LINE_BYTES
    fetch = [
        f'call void asm sideeffect "prefetch.global.L2 [$0+{turn * stride}];", "l"(ptr addrspace(1) {prefix}.mine)'
        for turn in range(PIECE_BYTES // stride)
    ]
    return [
        f"{prefix}.near = icmp eq i32 %{name}.row, 1",
        f"br i1 {prefix}.near, label {prefix}.fetch, label {prefix}.left",
        f"{prefix[1:]}.fetch:",
        f"{prefix}.wide = zext i32 %{name}.column to i64",
        f"{prefix}.begin = mul i64 {prefix}.wide, {k}",
        f"{prefix}.row = add i64 {prefix}.begin, %ahead.row",
        f"{prefix}.piece = getelementptr {kind}, ptr addrspace(1) %{name}, i64 {prefix}.row",
        f"{prefix}.o = mul i64 %place.wide, {CACHE_LINE_BYTES}",
        f"{prefix}.mine = getelementptr i8, ptr addrspace(1) {prefix}.piece, i64 {prefix}.o",
        *fetch,
        f"br label {prefix}.left",
        f"{prefix[1:]}.left:",
    ]
