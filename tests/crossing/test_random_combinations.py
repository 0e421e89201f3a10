"""Random combinations of any number of features, found by hypothesis; only `make test-all` runs many of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossing.allowed import allowed, waits
from crossing.features import SUITES
from crossing.laws import holds
from crossing.pairwise import Case
from crossing.quantities import check
from crossing.systems import World
from crossing.thresholds import small_thresholds
from emulated import emulated
from trees import few

__all__ = ["emulated"]  # a fixture


@st.composite
def cases(draw: st.DrawFn, suite: str) -> Case:
    """Draw values of one dimension after the other, restricted to those allowed with the values drawn before."""
    found: list[tuple[str, str]] = []
    for name, d in SUITES[suite].items():
        wanted = draw(st.lists(st.sampled_from(d.values), min_size=1, max_size=d.most, unique=True))
        chosen = [x for x in wanted if x not in d.alone] or wanted[:1]
        found += [(name, x) for x in chosen if allowed([*found, (name, x)])]
        if all(n != name for n, _ in found):
            found += [next((name, x) for x in d.values if allowed([*found, (name, x)]))]
    return tuple(sorted(found))


@settings(few(1), suppress_health_check=list(HealthCheck))
@given(case=cases("systems"), seed=st.integers(0, 1000))
def test_any_system(case: Case, seed: int, emulated: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    world, cache = World(case, seed), tmp_path_factory.getbasetemp() / "deep"
    with small_thresholds(world.one("path"), cache), tempfile.TemporaryDirectory() as folder:
        for way in world.of("way"):
            if not waits([*(x for x in case if x[0] != "way"), ("way", way)]):
                holds(world, way, Path(folder) / way)


@settings(few(1), suppress_health_check=list(HealthCheck))
@given(case=cases("quantities"), seed=st.integers(0, 1000))
def test_any_quantity(case: Case, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    world, cache = World(case, seed), tmp_path_factory.getbasetemp() / "deep"
    with small_thresholds(world.one("path"), cache):
        for quantity in world.of("quantity"):
            check(world, quantity)
