"""The selection of `make test` follows from measured times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import long_tests
import seconds

TESTS = Path(__file__).resolve().parents[1]
FILES = {path.name: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}


def test_a_family_is_one_line_but_for_cases_far_from_it() -> None:
    measured = {f"test_a.py::test_x[{k}]": 0.4 for k in range(4)} | {"test_a.py::test_x[big]": 3.0}
    assert seconds.table_of(measured) == {"test_a.py::test_x": 0.4, "test_a.py::test_x[big]": 3.0}
    assert seconds.table_of({"test_a.py::test_y": 0.9}) == {}
    assert seconds.table_of({"test_a.py::test_y": 1.234}) == {"test_a.py::test_y": 1.23}


def test_measured_tests_replace_only_their_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seconds, "TABLE", tmp_path / "seconds.txt")
    seconds.TABLE.write_text("3 test_a.py::test_x\n9 test_a.py::test_x[a, b]\n4 test_b.py::test_x\n", encoding="utf-8")
    seconds.known.cache_clear()
    try:
        assert seconds.seconds("test_a.py::test_x[a, b]") == 9.0
        assert seconds.seconds("test_a.py::test_x[c]") == 3.0
        assert seconds.seconds("test_c.py::test_x") == 0.0
        seconds.write({"test_a.py::test_x[c]": 2.0})
        assert seconds.TABLE.read_text(encoding="utf-8") == "2 test_a.py::test_x\n4 test_b.py::test_x\n"
    finally:
        seconds.known.cache_clear()


def test_evenly_spread_cases_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    took = {"test_a.py::test_x": 0.25, "test_a.py::test_x[9]": 5.0, "test_a.py::test_long": 5.0}
    monkeypatch.setattr(long_tests, "seconds", lambda name: took.get(name, took.get(seconds.family(name), 0.0)))
    cases = [f"tests/unit/test_a.py::test_x[{k}]" for k in range(10)]
    new = ["tests/unit/test_b.py::test_new", "tests/unit/test_a.py::test_long"]
    stay = set(cases + new) - long_tests.long_among(cases + new)
    assert stay == {cases[0], cases[2], cases[4], cases[6], new[0]}
    assert long_tests.long_among(cases[:1]) == set()
    monkeypatch.setattr(long_tests, "ALLOWED", {"test_a.py::test_x": 2.25, "test_a.py::test_long": 5.0})
    assert long_tests.long_among(cases + new) == {cases[9]}


def test_named_tests_exist() -> None:
    for name in long_tests.ALLOWED:
        file, _, test = name.partition("::")
        assert f"def {test}(" in FILES[file], name
    for pattern in long_tests.LONG:
        file = pattern.partition("::")[0]
        assert any(re.fullmatch(file.replace(".", r"\.").replace("*", ".*"), known) for known in FILES), pattern
