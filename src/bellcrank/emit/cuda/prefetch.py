"""Prefetch of inputs for later blocks into the L2 cache, in long pieces.

Where a batch's results are most of the traffic, the memory is busy writing, and every read of a few hundred bytes in
between switches its direction. So among as many blocks as make a long piece of a column, each block prefetches one
column's piece for blocks that run an eighth of a wave later: long enough for the memory to deliver it, and short enough
that results, which pass through the same cache, have not evicted it. (UR5 derivatives in float64 on an H200: 3.66e9
instead of 3.36e9 per s; half a wave ahead, the gain is gone.) With more than MAX_PREFETCH_WARPS warps one of them is
always ready to run, and float32 loses 2 % by prefetching.
"""

from __future__ import annotations

from collections.abc import Mapping

PIECE_BYTES = 32 * 1024  # bytes of a column
CACHE_LINE_BYTES = 128  # bytes of a cache line
MULTIPROCESSORS = 132  # multiprocessors of an H200
WAVE_FRACTION = 8  # the prefetch distance is 1/WAVE_FRACTION of a wave of blocks
MAX_PREFETCH_WARPS = 8  # warps on a multiprocessor up to which prefetching pays


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
    return "".join(f"  {line}\n" for line in [*lines, "own:"])


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
