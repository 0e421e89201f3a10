"""A time limit for the search of hypothesis: of five hundred examples, those that fit into the time of the test.

Some tests take a second for an example, and others a millisecond. With five hundred examples each, `make test-all` took
five hours of processor time. With a time limit for each test, fast tests still try all their examples.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import wraps
from typing import Any

import pytest
from hypothesis.errors import UnsatisfiedAssumption

FEW_EXAMPLES = 10  # a random test with fewer examples is named at the end of the run


class TimeIsUp(pytest.skip.Exception):
    """An exception that hypothesis passes on at once, whatever it was about to draw."""


class Search:
    """The time limit of one test after the other."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until, self.failed, self.examples = 0.0, False, 0

    def begin(self, item: pytest.Item) -> None:
        """Start a test. The first example that ends after the limit ends the test (TimeIsUp)."""
        self.until, self.failed, self.examples = time.monotonic() + self.seconds, False, 0
        given = getattr(getattr(item, "obj", None), "hypothesis", None)
        if given is not None and not hasattr(given.inner_test, "timed"):
            given.inner_test = self._timed(given.inner_test)

    def end(self, item: pytest.Item) -> None:
        """Note how many examples a random test has tried."""
        if getattr(getattr(item, "obj", None), "hypothesis", None) is not None:
            item.user_properties.append(("examples", (item.nodeid, self.examples)))

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
            self.examples += 1
            # a failing example is still shrunk, however long it takes
            if time.monotonic() > self.until and not self.failed:
                raise TimeIsUp("time is up")

        timed.timed = True  # type: ignore[attr-defined]
        return timed


def example_counts(properties: Iterable[tuple[str, Any]]) -> list[str]:
    """Return lines about the examples of random tests, with the names of those that had few.

    Parameters
    ----------
    properties
        The user properties of all reports.
    """
    counts = sorted((count, name) for key, (name, count) in (p for p in properties if p[0] == "examples"))
    few = [f"{count:5} {name}" for count, name in counts if count < FEW_EXAMPLES]
    total = sum(count for count, _ in counts)
    return (
        [f"{total} examples in {len(counts)} random tests, fewer than {FEW_EXAMPLES} in {len(few)}:", *few]
        if counts
        else []
    )
