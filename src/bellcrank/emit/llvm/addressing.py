"""Rebased workspace pointers: an address near one of them needs a displacement of one byte instead of four.

AVX-512 instructions count short displacements in vectors, so that one byte reaches 256 of them. Half of the workspace
accesses of a large graph become a third shorter, and code that exceeds the instruction cache is fetched faster. LLVM
would add the displacements up again; an empty inline assembly statement prevents that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MAX_BASE_POINTERS = 12  # base pointers in registers, beside those of the arrays
MIN_NEAR_ADDRESSES = 4  # addresses that must be near a base pointer to make it worthwhile
ADDRESS_PATTERN = re.compile(r"(%p\d+ = getelementptr i8), ptr %ws, i64 (\d+)")


def rebase(lines: Sequence[str], size: int) -> list[str]:
    """Return the `lines` of a function with base pointers, computed first; `size` is the bytes of a vector."""
    reach_bytes = 256 * size
    matches = [ADDRESS_PATTERN.fullmatch(line) for line in lines]
    address_counts = Counter(int(m[2]) // reach_bytes for m in matches if m)
    base_offsets = {
        k: k * reach_bytes + reach_bytes // 2
        for k, n in address_counts.most_common(MAX_BASE_POINTERS)
        if n > MIN_NEAR_ADDRESSES
    }
    pointer_lines = []
    for k, middle in base_offsets.items():
        pointer_lines.append(f"%middle{k} = getelementptr i8, ptr %ws, i64 {middle}")
        pointer_lines.append(f'%near{k} = call ptr asm "", "=r,0"(ptr %middle{k})')
    return pointer_lines + [
        f"{m[1]}, ptr %near{k}, i64 {int(m[2]) - base_offsets[k]}"
        if m and (k := int(m[2]) // reach_bytes) in base_offsets
        else line
        for m, line in zip(matches, lines, strict=True)
    ]
