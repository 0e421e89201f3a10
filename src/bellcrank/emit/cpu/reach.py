"""Rebased workspace pointers: an address near one of them needs a displacement of one byte instead of four.

AVX-512 instructions count short displacements in vectors, so that one byte reaches 256 of them. Half of the workspace
accesses of a large graph become a third shorter, and code that exceeds the instruction cache is fetched faster. LLVM
would add the displacements up again; an empty inline assembly statement prevents that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

PLACES = 12  # base pointers in registers, beside those of the arrays
WORTH = 4  # addresses that must be near a base pointer to make it worthwhile
ADDRESS = re.compile(r"(%p\d+ = getelementptr i8), ptr %ws, i64 (\d+)")


def near(lines: Sequence[str], size: int) -> list[str]:
    """Return the `lines` of a function with base pointers, computed first; `size` is the bytes of a vector."""
    reach = 256 * size
    found = [ADDRESS.fullmatch(line) for line in lines]
    asked = Counter(int(m[2]) // reach for m in found if m)
    middles = {k: k * reach + reach // 2 for k, n in asked.most_common(PLACES) if n > WORTH}
    first = []
    for k, middle in middles.items():
        first.append(f"%middle{k} = getelementptr i8, ptr %ws, i64 {middle}")
        first.append(f'%near{k} = call ptr asm "", "=r,0"(ptr %middle{k})')
    return first + [
        f"{m[1]}, ptr %near{k}, i64 {int(m[2]) - middles[k]}" if m and (k := int(m[2]) // reach) in middles else line
        for m, line in zip(found, lines, strict=True)
    ]
