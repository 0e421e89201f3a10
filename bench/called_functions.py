"""A pytest plugin that records which functions of the package each passing test calls, and how long the test takes.

    CALLED_FUNCTIONS=folder python -m pytest -p bench.called_functions

Each process writes one JSON file: test -> [outcome, seconds, functions as "path:first line"]. A function whose result
is cached by an earlier test of the process counts for that one only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

VARIABLE = "CALLED_FUNCTIONS"
MARKER = f"{os.sep}src{os.sep}bellcrank{os.sep}"

_rows: dict[str, list[Any]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    started = time.perf_counter()
    sys.setprofile(note)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        own = [code for code in called if MARKER in code.co_filename]
        functions = {f"{code.co_filename.partition(MARKER)[2]}:{code.co_firstlineno}" for code in own}
        _rows.setdefault(item.nodeid, ["passed", 0.0, []])[1:] = [time.perf_counter() - started, sorted(functions)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.outcome != "passed":
        _rows.setdefault(item.nodeid, ["", 0.0, []])[0] = report.outcome
    return report


def pytest_sessionfinish() -> None:
    if _rows and VARIABLE in os.environ:
        folder = Path(os.environ[VARIABLE])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.json").write_text(json.dumps(_rows), "utf-8")
