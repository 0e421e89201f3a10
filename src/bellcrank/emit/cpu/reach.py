"""The workspace from places in its middle: an address that is near one of them takes one byte instead of four.

Instructions of AVX-512 count short displacements in vectors, so that one byte reaches 256 of them. Half of what a large
graph does with the workspace is then a third shorter, and code that no cache of instructions holds is fetched sooner.
LLVM would add the displacements up again; it does not look through assembly, be it empty.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

PLACES = 12  # in registers, beside those of the arrays
WORTH = 4  # addresses that a place must have near it
ADDRESS = re.compile(r"(%p\d+ = getelementptr i8), ptr %ws, i64 (\d+)")


def near(lines: Sequence[str], size: int) -> list[str]:
    """The lines of a function with such places, of which it has the addresses first. size: bytes of a vector."""
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
