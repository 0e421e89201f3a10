"""Every pair of features that may be together is together in some case, and every case holds all laws.

`make test` takes every tenth case, `make test-all` all; conftest.py says how many pairs that were.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crossing.allowed import KNOWN, MEANINGLESS, REFUSED, allowed, waits
from crossing.features import LEFT_OUT, SUITES, SYSTEM_SUITE
from crossing.laws import LAWS, holds
from crossing.pair_coverage import FLOOR, note, planned
from crossing.pairwise import Case, Dimension, all_pairs, covering, pair, pairs_of
from crossing.quantities import check
from crossing.systems import World
from crossing.tables import rows
from crossing.thresholds import PATHS, small_thresholds
from emulated import emulated

__all__ = ["emulated"]  # a fixture
GROUPS = 90  # of cases: as many as there are at least


@cache
def plan(suite: str) -> tuple[list[Case], float]:
    """Return the cases of a suite and the share of pairs that they cover, computed once for each process."""
    return planned(SUITES[suite])


@pytest.fixture(scope="session")
def held(cache_folder: Path) -> Path:
    """Where every process writes which cases have held their laws."""
    return cache_folder.parent / "crossing"


def group(suite: str, k: int) -> Iterator[tuple[int, Case]]:
    """Yield the cases of a group with their numbers, which are their seeds."""
    cases = plan(suite)[0]
    return ((i, cases[i]) for i in range(k, len(cases), GROUPS))


@pytest.mark.parametrize("k", range(GROUPS))
def test_systems(k: int, held: Path, tmp_path: Path, emulated: Any) -> None:
    for seed, case in group("systems", k):
        world = World(case, seed)
        rest = [x for x in case if x[0] != "way"]
        ways = [x for x in world.of("way") if not waits([*rest, ("way", x)])]
        with small_thresholds(world.one("path"), held):
            for way in ways:
                holds(world, way, tmp_path / f"{seed} {way}")
        note(held, "systems", [*rest, *(("way", x) for x in ways)])


@pytest.mark.parametrize("case", [pytest.param(case, id=r.reason) for r, case in KNOWN])
@pytest.mark.xfail(strict=True, reason="a known defect; once it is repaired its rule goes out of KNOWN")
def test_known_defects(case: Case, held: Path, tmp_path: Path, emulated: Any) -> None:
    world = World(case)
    with small_thresholds(world.one("path"), held):
        holds(world, world.one("way"), tmp_path / "known")


@pytest.mark.filterwarnings("ignore:.*all of it new; a second time it comes from the cache:RuntimeWarning")
@pytest.mark.parametrize("k", range(GROUPS))
def test_quantities(k: int, held: Path) -> None:
    for seed, case in group("quantities", k):
        world = World(case, seed)
        answered: set[str] = set()
        with small_thresholds(world.one("path"), held):
            for quantity in world.of("quantity"):
                answered |= {name for name, _ in check(world, quantity)}
        note(held, "quantities", [x for x in case if x[0] != "quantity" or x[1] in answered])


# -- the plan


@pytest.mark.parametrize("suite", SUITES)
def test_all_pairs_are_planned(suite: str) -> None:
    cases, share = plan(suite)
    assert share >= FLOOR, f"{100 * share:.1f} % of the allowed pairs are planned"
    assert len(cases) >= GROUPS
    assert all(allowed(case) for case in cases)


def test_every_row_of_every_table_is_a_value() -> None:
    """A feature that somebody adds is crossed, or left out with a reason."""
    for dimension, names in rows().items():
        known = {x for suite in SUITES.values() if dimension in suite for x in suite[dimension].values}
        missing = [n for n in names if n not in known and (dimension, n) not in LEFT_OUT]
        assert not missing, f"{dimension}: {', '.join(missing)} are in no case; see tests/crossing/features.py"
    assert all(LEFT_OUT.values())


def test_every_way_has_a_law() -> None:
    assert set(SYSTEM_SUITE["way"].values) == set(LAWS)


def test_every_rule_is_of_values_that_exist() -> None:
    """A rule that has lost its meaning would forbid nothing, and say so to nobody."""
    for r in (*REFUSED, *MEANINGLESS, *(r for r, _ in KNOWN)):
        assert r.reason
        for term in r.terms:
            for name, value in term:
                assert any(name in s and value in s[name].values for s in SUITES.values()), (r.reason, name, value)


def test_a_covering_has_all_pairs() -> None:
    """Against all pairs of a small table, with a rule, a value of absence and two values at once."""
    table = {"a": Dimension(("none", "1", "2", "3"), 2), "b": Dimension(("x", "y", "z")), "c": Dimension(("0", "1"))}

    def no_3x(case: Any) -> bool:
        return not {("a", "3"), ("b", "x")} <= set(case)

    cases = covering(table, no_3x)
    assert set().union(*map(pairs_of, cases)) == all_pairs(table, no_3x)
    assert pair(("b", "x"), ("a", "3")) not in all_pairs(table, no_3x)
    assert all(no_3x(case) and {name for name, _ in case} == set(table) for case in cases)
    assert all(case.count(("a", "none")) + sum(n == "a" for n, _ in case) <= 2 for case in cases)
    assert len(cases) <= 9


def test_thresholds_exist(tmp_path: Path) -> None:
    """A constant that was renamed would leave the large path untried."""
    for path in PATHS:
        with small_thresholds(path, tmp_path):
            pass
