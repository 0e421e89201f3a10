"""Fixtures of all tests: a private cache folder, and a hypothesis profile that makes runs repeatable."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import just

import robot_counts
from long_tests import long_among
from search import Search, TimeIsUp, example_counts
from skips import summary

# Fill buffers of generated code with NaN before it writes them (bellcrank.buffers). The package reads this variable
# when it is imported, and none of the modules above imports it; processes that tests start inherit it.
assert "bellcrank" not in sys.modules
os.environ.setdefault("BELLCRANK_POISON", "1")

# Use a fixed set of examples, so that a failure is caused by the change at hand. BELLCRANK_HYPOTHESIS=deep tries new
# ones, for BELLCRANK_HYPOTHESIS_SECONDS a test.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", parent=settings.get_profile("fixed"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("BELLCRANK_HYPOTHESIS", "fixed"))
DEEP = os.environ.get("BELLCRANK_HYPOTHESIS") == "deep"
search = Search(seconds=float(os.environ.get("BELLCRANK_HYPOTHESIS_SECONDS", "30"))) if DEEP else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = long_among([item.nodeid for item in items])
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    if search is not None:
        search.begin(item)
    try:
        with suppress(TimeIsUp):
            yield
    finally:
        if search is not None:
            search.end(item)


def pytest_collection_finish() -> None:
    """Freeze the half million objects of collected tests, so that the garbage collector does not scan them.

    The scans took an eighth of the time of all tests.
    """
    # hypothesis inspects the referrers of its own objects once, which must happen before they are frozen
    given(just(0))(lambda x: None)()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Cache object code of the tests outside the user's cache: one folder for the run, shared by all workers."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELLCRANK_CACHE", str(folder))
        yield folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    lines = summary(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    if lines:
        terminalreporter.section("not tested here, and [what would bring it]", sep="-")
        terminalreporter.write_line("\n".join(lines))
    reports = [r for which in terminalreporter.stats.values() for r in which if isinstance(r, pytest.TestReport)]
    properties = [pair for r in reports if r.when == "call" for pair in r.user_properties]
    if examples := example_counts(properties):
        terminalreporter.section("examples of random tests", sep="-")
        terminalreporter.write_line("\n".join(examples))
    counts = robot_counts.summary(properties)
    if counts:
        terminalreporter.section("robot files of installed packages, against MuJoCo and Pinocchio", sep="-")
        terminalreporter.write_line("\n".join(counts))
    if pairs := crossed(config):
        terminalreporter.section("pairs of features that were crossed", sep="-")
        terminalreporter.write_line("\n".join(pairs))


def crossed(config: pytest.Config) -> list[str]:
    """Return what the tests of combinations have covered, or nothing where none was run."""
    folder = config._tmp_path_factory.getbasetemp() / "crossing"  # type: ignore[attr-defined]
    if not folder.exists():
        return []
    from crossing.features import REPORTED
    from crossing.pair_coverage import report

    return report(folder, REPORTED)
