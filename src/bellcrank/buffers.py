"""Memory that generated code writes: results, rows, workspaces and spare states are allocated here.

With BELLCRANK_POISON=1 in the environment every such buffer is filled with NaN before generated code gets it. An
element that the code does not write, or reads before it writes it, is then NaN instead of whatever lay in memory. The
code itself is the same. The tests of this package run so.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
VARIABLE = "BELLCRANK_POISON"
POISONED = os.environ.get(VARIABLE, "") not in ("", "0")
POISON_BYTE = 0xFF  # a number whose bits are all set is a quiet NaN, in either precision


def empty_buffer(shape: int | tuple[int, ...], dtype: Any = "float64", xp: Any = np) -> Any:
    """Allocate an array of floats for generated code to write.

    xp: the library that allocates it, numpy or cupy.
    """
    return poisoned(xp.empty(shape, dtype))


def poisoned(array: T) -> T:
    """Fill an array of floats (of any library) with NaN if buffers are poisoned; return the same array."""
    if POISONED:
        whole: Any = array
        whole[...] = np.nan
    return array
