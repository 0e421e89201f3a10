"""Seeds of what is drawn at random: whole numbers, and nothing else ever reaches numpy.

What else numpy takes for a seed it turns over in C: a list that holds itself ends the process there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.scalar import is_whole


def generator(seed: int | None) -> np.random.Generator:
    """numpy's, from a whole number from 0 up; from a number of its own where None is given."""
    return np.random.default_rng(None if seed is None else whole_seed(seed))


def whole_seed(seed: Any) -> int:
    """The seed, if it is one."""
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed is {brief(seed)}; expected a whole number from 0 up.")
    return int(seed)
