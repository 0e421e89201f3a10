"""The time limit of hypothesis for each test (tests/search.py)."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.strategies import data, integers

from search import Search, TimeIsUp


def item(test: Any) -> pytest.Function:
    return cast(pytest.Function, SimpleNamespace(obj=test))


def test_examples_that_come_too_late_pass_by() -> None:
    seen = []

    @settings(max_examples=200, database=None)
    @given(integers())
    def slow(x: int) -> None:
        seen.append(x)
        time.sleep(0.01)

    Search(0.05).begin(item(slow))
    with pytest.raises(TimeIsUp):
        slow()
    assert 1 <= len(seen) <= 6


def test_rejected_examples_are_no_failures() -> None:
    seen = []

    @settings(max_examples=200, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(integers(0, 10**6))
    def assumes(x: int) -> None:
        seen.append(x)
        time.sleep(0.01)
        assume(x % 2)

    Search(0.1).begin(item(assumes))
    with pytest.raises(TimeIsUp):
        assumes()
    assert 1 <= len(seen) <= 40


def test_interactive_draws_end_when_time_is_up() -> None:
    @settings(max_examples=200, database=None)
    @given(data())
    def draws(found: Any) -> None:
        for _ in range(found.draw(integers(1, 5))):
            found.draw(integers())
        time.sleep(0.005)

    Search(0.05).begin(item(draws))
    with pytest.raises(TimeIsUp):
        draws()


def test_quick_tests_run_all_examples_and_times_are_separate() -> None:
    seen = []

    @settings(max_examples=50, database=None, derandomize=True)
    @given(integers(0, 10**9))
    def quick(x: int) -> None:
        seen.append(x)

    search = Search(60.0)
    search.begin(item(quick))
    quick()
    assert len(seen) == 50
    search.until = 0.0  # as if the time were used up
    search.begin(item(quick))
    quick()
    assert len(seen) == 100


def test_failing_example_is_shrunk_when_time_is_up() -> None:
    search = Search(0.02)

    @settings(max_examples=100, database=None, derandomize=True)
    @given(integers(0, 10**6))
    def fails(x: int) -> None:
        time.sleep(0.001)
        assert x < 7

    search.begin(item(fails))
    with pytest.raises(AssertionError, match="assert 7 < 7"):
        fails()
