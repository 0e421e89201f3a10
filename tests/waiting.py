"""Wait for a condition that another thread or process makes true, instead of for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0  # s; a busy machine may need long


def wait(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, f"not so in {PATIENCE:g} s"
        time.sleep(0.01)
