"""Every allowed pair of features occurs in some case, and every case obeys all laws.

`make test` runs every thirtieth case, and traces all of them (test_graph_agreement.py); `make test-all` runs all.
conftest.py reports how many pairs they cover.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.forces import JointSpring
from bellcrank.graph import Recursion
from bellcrank.graph.waves import waves
from bellcrank.scheduling import ScheduleError
from crossing.allowed import KNOWN, MEANINGLESS, REFUSED, UNWRITTEN, allowed, waits
from crossing.energy import balance
from crossing.features import LEFT_OUT, SUITES, SYSTEM_SUITE
from crossing.files import WRITERS, Parts
from crossing.laws import LAWS, holds
from crossing.mechanisms import TAIL
from crossing.pair_coverage import FLOOR, note, planned
from crossing.pairwise import Case, Dimension, all_pairs, covering, pair, pairs_of
from crossing.quantities import check
from crossing.systems import World
from crossing.tables import rows
from crossing.thresholds import PATHS, SEGMENTED, small_thresholds
from emulated import emulated

__all__ = ["emulated"]  # a fixture
GROUPS = 90  # groups of cases: lower bound of the number of cases


@cache
def plan(suite: str) -> tuple[list[Case], float]:
    """Return the cases of a suite and the share of pairs that they cover, computed once per process."""
    return planned(SUITES[suite])


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
        with small_thresholds(world.one("path"), held), warnings.catch_warnings():
            if {("event", "switch"), ("trait", "motion")} <= set(case):  # the switch halves the prescribed velocity
                warnings.filterwarnings("ignore", "(?s).*was not followed")
            for way in ways:
                holds(world, way, tmp_path / f"{seed} {way}")
        note(held, "systems", [*rest, *(("way", x) for x in ways)])


@pytest.mark.parametrize("case", [pytest.param(case, id=r.reason) for r, case in KNOWN])
@pytest.mark.xfail(strict=True, reason="a known defect; once it is repaired its rule goes out of KNOWN")
def test_known_defects(case: Case, held: Path, tmp_path: Path, emulated: Any) -> None:
    world = World(case)
    with small_thresholds(world.one("path"), held):
        holds(world, world.one("way"), tmp_path / "known")


@pytest.mark.filterwarnings("ignore:.*once; the result is cached:RuntimeWarning")
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
    """A new feature is crossed, or left out with a reason."""
    for dimension, names in rows().items():
        known = {x for suite in SUITES.values() if dimension in suite for x in suite[dimension].values}
        missing = [n for n in names if n not in known and (dimension, n) not in LEFT_OUT]
        assert not missing, f"{dimension}: {', '.join(missing)} are in no case; see tests/crossing/features.py"
    assert all(LEFT_OUT.values())


def test_every_way_has_a_law() -> None:
    assert set(SYSTEM_SUITE["way"].values) == set(LAWS)


def test_every_rule_is_of_values_that_exist() -> None:
    """A rule with an unknown value would forbid nothing without any error."""
    for r in (*REFUSED, *MEANINGLESS, *UNWRITTEN, *(r for r, _ in KNOWN)):
        assert r.reason
        for term in r.terms:
            for name, value in term:
                assert any(name in s and value in s[name].values for s in SUITES.values()), (r.reason, name, value)


def test_a_covering_has_all_pairs() -> None:
    """Compare with all pairs of a small table that has a rule, a value for absence and two values at once."""
    table = {"a": Dimension(("none", "1", "2", "3"), 2), "b": Dimension(("x", "y", "z")), "c": Dimension(("0", "1"))}

    def no_3x(case: Any) -> bool:
        return not {("a", "3"), ("b", "x")} <= set(case)

    cases = covering(table, no_3x)
    assert set().union(*map(pairs_of, cases)) == all_pairs(table, no_3x)
    assert pair(("b", "x"), ("a", "3")) not in all_pairs(table, no_3x)
    assert all(no_3x(case) and {name for name, _ in case} == set(table) for case in cases)
    assert all(case.count(("a", "none")) + sum(n == "a" for n, _ in case) <= 2 for case in cases)
    assert len(cases) <= 9


def test_the_segmented_path_cuts_branches(tmp_path: Path) -> None:
    """Otherwise these cases would compare a recursion with itself."""
    world = World((("joint", "prismatic"), ("path", SEGMENTED)), 3)
    with small_thresholds(SEGMENTED, tmp_path):
        kernel = bc.kernel(world.mechanism, "forward_dynamics", "dca")
        assert isinstance(kernel.graph, Recursion)
        assert kernel.graph.has_parallel_runs
        assert max(len(wave.runs) for wave in waves(kernel.graph)) == TAIL
        check(world, "forward_dynamics")


def test_missing_message_of_a_schedule_is_detected() -> None:
    graph = bc.kernel(bc.zoo.chain(3), "forward_dynamics", "aba").graph
    s = bc.schedule(graph, machine="complete:2", kind="ideal", level="node")
    given = {name: np.ones(shape) for name, shape in graph.inputs.items()}
    assert s.messages
    assert s.execute(**given).observed == s
    with pytest.raises(ScheduleError, match="it has no value of"):
        replace(s, messages=()).execute(**given)
    first = replace(s.messages[0], hops=tuple(replace(h, finish=h.finish + s.makespan) for h in s.messages[0].hops))
    late = replace(s, messages=(first, *s.messages[1:]))
    assert late.execute(**given).observed != late


def test_lost_energy_is_detected() -> None:
    """The balance detects a spring with half of its energy."""

    class Half(JointSpring):
        def energy(self, t: Any, q: Any, x: Any) -> Any:
            return 0.5 * super().energy(t, q, x)

    world = World((("integrator", "rk4"),), 1)
    spring = Half("s", (world.single[0],), lambda u: 300.0 * u)
    wrong = replace(world.system, elements=(spring,))
    found = [balance(w, w.run()) for w in (world, World((("integrator", "rk4"),), 1))]
    assert all(x.off < 1e-10 * x.scale for x in found)
    vars(world)["system"] = wrong
    off = balance(world, world.run())
    assert off.off > 1e-6 * off.scale


@pytest.mark.parametrize("source", WRITERS)
def test_a_changed_number_of_one_body_is_detected(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison detects a changed number of one body."""
    case = World((("joint", "spherical"), ("source", source)), 5)
    assert case.bare.bodies
    heavier = Parts.loose

    def loose(self: Parts) -> Any:
        bodies, *rest = heavier(self)
        return [replace(bodies[0], mass=1.001 * bodies[0].mass), *bodies[1:]], *rest

    monkeypatch.setattr(Parts, "loose", loose)
    with pytest.raises(AssertionError, match="of what was read"):
        _ = World((("joint", "spherical"), ("source", source)), 5).bare


def test_thresholds_exist(tmp_path: Path) -> None:
    """A renamed constant would leave the large path untested."""
    for path in PATHS:
        with small_thresholds(path, tmp_path):
            pass
