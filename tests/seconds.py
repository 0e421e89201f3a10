"""Measured times of tests: `make seconds` runs them all with this plugin, and writes seconds.txt beside it.

    0.31 test_modes.py::test_modes_of_a_beam             each case of a family, on average
    2.40 test_modes.py::test_modes_of_a_beam[clamped]    a case that takes far longer than the others

Times are seconds of processor time, children included; for pages, whose browser works across tests, they are wall time.
Very short families and families without a measurement are not listed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from functools import cache
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("seconds.txt")
RAW = "BELLCRANK_SECONDS"  # folder where the processes of a run write their measurements
LEAST = 1.0  # seconds of a family that are worth a line
FAR = 2.0  # times the average of its family, and more than half a second: the case gets a line of its own


def name_of(node: str) -> str:
    """Return the name of a test without its folders."""
    path, _, name = node.partition("::")
    return f"{path.rpartition('/')[2]}::{name}"


def family(name: str) -> str:
    return name.partition("[")[0]


@cache
def known() -> dict[str, float]:
    rows = (line.split(" ", 1) for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {name: float(number) for number, name in rows}


def seconds(name: str) -> float:
    """Return the seconds of one case; 0 without a measurement."""
    table = known()
    return table[name] if name in table else table.get(family(name), 0.0)


def table_of(measured: Mapping[str, float]) -> dict[str, float]:
    """Return the lines of seconds.txt for measured cases."""
    families: dict[str, dict[str, float]] = {}
    for name, took in measured.items():
        families.setdefault(family(name), {})[name] = took
    found = {}
    for of, cases in families.items():
        if sum(cases.values()) < LEAST:
            continue
        usual = sorted(cases.values())[len(cases) // 2]
        far = {name: took for name, took in cases.items() if name != of and took > max(0.5, FAR * usual)}
        rest = [took for name, took in cases.items() if name not in far]
        found[of] = sum(rest) / len(rest)
        found |= far
    return {name: round(took, 2) for name, took in sorted(found.items())}


def write(measured: Mapping[str, float]) -> None:
    """Replace the lines of the measured families."""
    new = {family(name) for name in measured}
    table = {name: took for name, took in known().items() if family(name) not in new} | table_of(measured)
    TABLE.write_text("".join(f"{took:g} {name}\n" for name, took in sorted(table.items())), encoding="utf-8")


# -- the plugin

# Tests whose time says nothing about `make test`: skipped ones, and those that search for new examples.
_skipped: set[str] = set()
_DEEP = os.environ.get("BELLCRANK_HYPOTHESIS") == "deep"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[RAW] = str(Path(config.rootpath, f".seconds.{os.getpid()}"))  # the workers inherit it


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _skipped.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before, began = sum(os.times()[:4]), time.perf_counter()
    answer = yield
    took = time.perf_counter() - began if "/pages/" in item.nodeid else sum(os.times()[:4]) - before
    searched = _DEEP and hasattr(getattr(item, "obj", None), "hypothesis")
    if item.nodeid not in _skipped and not searched:
        with open(os.environ[RAW], "a", encoding="utf-8") as raw:
            raw.write(f"{took:.3f} {name_of(item.nodeid)}\n")
    return answer


def pytest_unconfigure(config: pytest.Config) -> None:
    raw = Path(os.environ[RAW])
    if not hasattr(config, "workerinput") and raw.exists():
        rows = (line.split(" ", 1) for line in raw.read_text(encoding="utf-8").splitlines())
        write({name: float(number) for number, name in rows})
        raw.unlink()
