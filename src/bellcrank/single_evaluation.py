"""One evaluation per process: a thread-safe cache decorator.

functools.cache calls its function in every thread that arrives before the first value is stored. All but the last value
are then dropped, which is harmless for numbers and texts, but fatal if other code already holds the address of memory
that the dropped value owned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
# One lock for all functions, so that the fork handlers can wait for it; re-entrant.
EVALUATION_LOCK = threading.RLock()


def evaluated_once(function: Function) -> Function:
    """Decorate a `function` to run once for the same positional arguments; other threads wait for its value.

    If the function raises, the next call tries again. Its value must not be None.
    """
    values: dict[tuple[Any, ...], Any] = {}

    @wraps(function)
    def evaluate(*args: Any) -> Any:
        if (value := values.get(args)) is None:
            with EVALUATION_LOCK:
                if (value := values.get(args)) is None:
                    value = values[args] = function(*args)
        return value

    return evaluate  # type: ignore[return-value]
