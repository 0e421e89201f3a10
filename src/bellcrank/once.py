"""Values that exist once in a process, whichever threads ask for them first.

functools.cache calls its function in every thread that asks before the first value is there. All but the last value are
then dropped, which is no harm to numbers and texts. It is fatal where somebody else already holds the address of memory
that the dropped value owned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
# One lock for all functions, so that forks.py can wait for it; the same thread may enter it again.
LOCK = threading.RLock()


def once(function: Function) -> Function:
    """Call a function once for the same positional arguments; other threads wait for its value.

    If the function raises, the next call tries again. Its value must not be None.
    """
    known: dict[tuple[Any, ...], Any] = {}

    @wraps(function)
    def ask(*args: Any) -> Any:
        if (found := known.get(args)) is None:
            with LOCK:
                if (found := known.get(args)) is None:
                    found = known[args] = function(*args)
        return found

    return ask  # type: ignore[return-value]
