"""Elements of values that a user gives as a sequence: lists, tuples, arrays, generators and memoryviews."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

# Iterable types without an order, or whose elements are characters.
NOT_SEQUENCES = (str, bytes, bytearray, set, frozenset, Mapping)


def sequence_elements(value: Any) -> list[Any] | None:
    """Return the elements of an ordered `value` as a list, or None if it is something else.

    The elements of a matrix, an array or a memoryview of two dimensions, are its rows.
    """
    if isinstance(value, NOT_SEQUENCES) or not isinstance(value, Iterable):
        return None
    try:
        # Python cannot iterate over a memoryview of several dimensions, but numpy can.
        return list(np.asarray(value) if is_matrix_view(value) else value)
    except (TypeError, ValueError, OverflowError):  # an array without dimensions, or a memoryview that was released
        return None


def is_matrix_view(value: Any) -> bool:
    """Return True if `value` is a memoryview without or of several dimensions, over which Python cannot iterate."""
    try:
        return isinstance(value, memoryview) and value.ndim != 1
    except ValueError:  # it was released
        return True
