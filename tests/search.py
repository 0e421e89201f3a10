"""How long hypothesis may look for an example that fails: of five hundred, those that a test has the time for.

Some tests take a second for an example, and others a millisecond. With five hundred of each `make test-all` took five
hours of a processor, so that nobody ran it from end to end. Now each has some time, and those that are quick look at
all of theirs.
"""

from __future__ import annotations

import time
from functools import wraps
from typing import Any

import pytest
from hypothesis.errors import UnsatisfiedAssumption


class TimeIsUp(pytest.skip.Exception):
    """What hypothesis lets through at once, whatever it was about to draw."""


class Search:
    """The time of one test after the other."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until, self.failed = 0.0, False

    def begin(self, item: pytest.Item) -> None:
        """A test begins. The first example that ends too late ends it (TimeIsUp)."""
        self.until, self.failed = time.monotonic() + self.seconds, False
        given = getattr(getattr(item, "obj", None), "hypothesis", None)
        if given is not None and not hasattr(given.inner_test, "timed"):
            given.inner_test = self._timed(given.inner_test)

    def _timed(self, test: Any) -> Any:
        @wraps(test)
        def timed(*args: Any, **named: Any) -> None:
            try:
                test(*args, **named)
            except UnsatisfiedAssumption:  # an example that says nothing
                raise
            except Exception:
                self.failed = True
                raise
            if time.monotonic() > self.until and not self.failed:  # what failed is made smaller, however long it takes
                raise TimeIsUp("time is up")

        timed.timed = True  # type: ignore[attr-defined]
        return timed
