"""A time limit for the search of hypothesis: of five hundred examples, those that fit into the time of the test.

Some tests take a second for an example, and others a millisecond. With five hundred examples each, `make test-all` took
five hours of processor time. With a time limit for each test, fast tests still try all their examples.
"""

from __future__ import annotations

import time
from functools import wraps
from typing import Any

import pytest
from hypothesis.errors import UnsatisfiedAssumption


class TimeIsUp(pytest.skip.Exception):
    """An exception that hypothesis passes on at once, whatever it was about to draw."""


class Search:
    """The time limit of one test after the other."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until, self.failed = 0.0, False

    def begin(self, item: pytest.Item) -> None:
        """Start a test. The first example that ends after the limit ends the test (TimeIsUp)."""
        self.until, self.failed = time.monotonic() + self.seconds, False
        given = getattr(getattr(item, "obj", None), "hypothesis", None)
        if given is not None and not hasattr(given.inner_test, "timed"):
            given.inner_test = self._timed(given.inner_test)

    def _timed(self, test: Any) -> Any:
        @wraps(test)
        def timed(*args: Any, **named: Any) -> None:
            try:
                test(*args, **named)
            except UnsatisfiedAssumption:  # an example that hypothesis rejects
                raise
            except Exception:
                self.failed = True
                raise
            # a failing example is still shrunk, however long it takes
            if time.monotonic() > self.until and not self.failed:
                raise TimeIsUp("time is up")

        timed.timed = True  # type: ignore[attr-defined]
        return timed
