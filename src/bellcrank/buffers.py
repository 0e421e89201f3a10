"""Allocation of memory that generated code writes: results, rows, workspaces and spare states.

With BELLCRANK_POISON=1 in the environment every such buffer is filled with NaN before generated code gets it. An
element that the code does not write, or reads before writing it, is then NaN instead of arbitrary. The code itself is
the same. The tests of this package run in this mode.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
POISON_VARIABLE = "BELLCRANK_POISON"
POISONED = os.environ.get(POISON_VARIABLE, "") not in ("", "0")
POISON_BYTE = 0xFF  # a float with all bits set is a quiet NaN, in either precision


def empty_buffer(shape: int | tuple[int, ...], dtype: Any = "float64", xp: Any = np) -> Any:
    """Allocate an array of floats for generated code to write.

    Parameters
    ----------
    shape
        Its shape.
    dtype
        Type of the numbers.
    xp
        Library that allocates it, numpy or cupy.
    """
    return poisoned(xp.empty(shape, dtype))


def poisoned(array: T) -> T:
    """Fill an `array` of floats (of any library) with NaN if buffers are poisoned; return the same array."""
    if POISONED:
        whole: Any = array
        whole[...] = np.nan
    return array
