"""References that the garbage collector does not see: what they hold goes after all that might still use it.

Whatever is in a cycle is first finalised, all of it and in any order, and then emptied, again in any order. Machine
code that is in a cycle with its kernel would be unmapped by the first, while somebody else's `__del__` may still call
it. What is held from here looks, to the collector, as if it were held from outside: it is not a part of any cycle, is
finalised by nobody, and goes when the last of those that hold it has been emptied.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which goes through a growing graph again and again and finds nothing to take."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def unseen(*things: object) -> np.ndarray[Any, Any]:
    """An array of objects, the only container that the collector does not look into.

    It must not hold, by any path, who holds it: such a cycle would never be found.
    """
    held = np.empty(len(things), object)
    for i, thing in enumerate(things):
        held[i] = thing
    return held
