"""Validation of random seeds: only integers reach numpy.

numpy converts other seeds in C, where a list that contains itself ends the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.scalar import is_whole


def generator(seed: int | None) -> np.random.Generator:
    """Return numpy's random generator for an integer `seed` of at least 0, or for a fresh seed if it is None."""
    return np.random.default_rng(None if seed is None else checked_seed(seed))


def checked_seed(seed: Any) -> int:
    """Return the `seed` as an int; raise InputError if it is not an integer of at least 0."""
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed is {brief(seed)}; expected a whole number of at least 0.")
    return int(seed)
