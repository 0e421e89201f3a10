"""Waiting for what another thread or process does: until it is so, and not for as long as it takes on a quiet day."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0  # s; a busy machine takes its time


def wait(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, f"not so in {PATIENCE:g} s"
        time.sleep(0.01)
