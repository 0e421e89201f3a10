"""Some test lowers every threshold between code paths, and every module that reads it gets the lowered value."""

from __future__ import annotations

import ast
import sys
from itertools import combinations

import pytest

import lowered
from crossing.thresholds import GROUPS, PATHS
from lowered import TABLE, lower
from not_lowered import NOT_LOWERED, listed


def test_every_deciding_constant_is_listed() -> None:
    """A new constant must be added to TABLE of lowered.py with a value, or to not_lowered.py with a reason."""
    missing = sorted(lowered.deciding() - set(TABLE) - listed())
    assert not missing, f"neither in tests/lowered.py nor in tests/not_lowered.py: {', '.join(missing)}"


def test_listed_constants_exist() -> None:
    known = lowered.constants()
    assert not (set(TABLE) | listed()) - known
    assert not set(TABLE) & listed()
    assert all(NOT_LOWERED)
    names = [n for text in NOT_LOWERED.values() for line in text.split("\n") for n in line.partition(":")[2].split()]
    assert len(names) == len(listed()), "a constant stands under two reasons"


def test_no_threshold_is_a_default_of_an_argument() -> None:
    """A default is evaluated when the module is loaded, so that lowering the threshold would have no effect."""
    assert not set(TABLE) & lowered.defaults()


def test_every_threshold_is_on_some_path() -> None:
    groups = {g for row in TABLE.values() for g in row.groups}
    assert groups - {"large"} == {g for each in GROUPS.values() for g in each}
    assert set(TABLE) == {name for values in PATHS.values() for name in values}
    assert all(one != other for one, other in combinations(PATHS.values(), 2))


@pytest.mark.parametrize("name", TABLE)
def test_lowered_threshold_applies_in_every_module(name: str) -> None:
    """Also in modules that import it by name; afterwards it has its old value."""
    places = [(name.rpartition(".")[0], name.rpartition(".")[2]), *lowered.importers(name)]
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, {name: TABLE[name].value})
        modules = [(sys.modules[f"bellcrank.{module}"], called) for module, called in places]
        assert all(getattr(module, called) == TABLE[name].value for module, called in modules)
    assert all(getattr(module, called) != TABLE[name].value for module, called in modules)


def test_constants_are_recognised() -> None:
    """Check with a module that has one constant of every kind."""
    text = "A = 3\nB, C = 2**4, 'x'\nD: float = -1.5\nE = [1]\nF = 10 * A\ng = 4\nif A > 2: pass\ndef h(x=B): f(F)\n"
    tree = ast.parse(text)
    found = {name for name, value in lowered._assigned(tree) if name.isupper() and lowered.numeric(value)}
    assert found == {"A", "B", "D", "F"}
