"""Open trees with bodies of very different sizes: accelerations are accurate, or a warning has the error."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build.kernels import auto_method
from bellcrank.build.rounding_doubts import rounding_error
from bellcrank.dynamics import METHODS, aba
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import ModelError
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.model.parts import matrix, triple
from dense_reference import extended
from trees import few, random_tree, trees

ORDINARY, SINGLE = ("spherical", "universal", "cylindrical", "helical", "planar", "floating"), ("revolute", "prismatic")
SEEN_ERROR = 2e-5  # relative error of an acceleration that must not be silent


def graded(seed: int, sizes: bool, masses: bool) -> Mechanism:
    """Return a random tree whose sizes, masses or both are spread over twelve orders of magnitude."""
    rng = np.random.default_rng(10**6 + seed)
    kinds = [str(rng.choice(SINGLE if rng.random() < 0.6 else ORDINARY)) for _ in range(int(rng.integers(2, 9)))]
    m = random_tree(seed, kinds, [] if rng.random() < 0.6 else rng.integers(0, 100, len(kinds)).tolist())
    L, M = (10.0 ** (on * rng.uniform(-6, 6, len(kinds))) for on in (sizes, masses))
    bodies = [
        replace(b, mass=b.mass * k, com=triple(np.array(b.com) * s), inertia=matrix(np.array(b.inertia) * k * s * s))
        for b, k, s in zip(m.bodies, M, L, strict=True)
    ]
    size = {b.name: float(s) for b, s in zip(m.bodies, L, strict=True)}
    joints = [replace(j, point=triple(np.array(j.point) * size.get(j.parent, 1.0))) for j in m.joints]
    return mechanism_of(m.name, bodies, joints, (), gravity=m.gravity)


def error(m: Mechanism) -> float:
    """Return the largest relative error of compiled accelerations, against 40 digits."""
    largest = 0.0
    for seed in range(100, 108):
        state = m.random(seed)
        right = np.array([float(x) for x in aba.forward_dynamics(m.tree, *map(extended, state))])
        largest = max(largest, float(np.abs(m.forward_dynamics(*state) / right - 1.0).max()))
    return largest


def warned(run: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return any("accelerations are not exact" in str(w.message) for w in caught)


def sample(numbers: Any) -> list[tuple[int, bool, bool]]:
    return [(k, sizes, masses) for k in numbers for sizes, masses in ((True, False), (False, True), (True, True))]


@pytest.mark.filterwarnings("ignore:.*accelerations are not exact:RuntimeWarning")
@pytest.mark.parametrize(("seed", "sizes", "masses"), sample(range(100, 108)))
def test_accelerations_are_accurate_or_warned_of(seed: int, sizes: bool, masses: bool) -> None:
    try:
        m = graded(seed, sizes, masses)
        is_warned = warned(lambda: m.forward_dynamics(*m.random(0)))
    except ModelError:  # refused, with the reason
        return
    assert is_warned or error(m) < SEEN_ERROR


@pytest.mark.parametrize(("seed", "sizes", "masses"), [(33, True, False), (75, False, True), (63, True, False)])
def test_auto_chooses_an_accurate_method(seed: int, sizes: bool, masses: bool) -> None:
    """Factors of the mass matrix lose digits there, and articulated inertias do not."""
    m = graded(seed, sizes, masses)
    assert not warned(lambda: m.forward_dynamics(*m.random(0)))
    assert error(m) < 1e-7
    q, v, tau = m.random(0)
    right = np.array([float(x) for x in aba.forward_dynamics(m.tree, *map(extended, (q, v, tau)))])
    by_factors = METHODS["crba"].function("forward_dynamics")(m.tree, q.tolist(), v.tolist(), tau.tolist())
    assert np.abs(np.array(by_factors, float) / right - 1.0).max() > 1e-7
    assert warned(lambda: bc.kernel(m, "forward_dynamics", method="crba")(q, v, tau))


def test_every_door_warns_of_accelerations_that_are_not_exact() -> None:
    doors: list[Any] = [
        lambda m: m.forward_dynamics(*m.random(0)),
        lambda m: m.forward_dynamics(*m.random(0)),  # from the cache
        lambda m: m.inverse_mass_matrix(m.random(0)[0]),
        lambda m: bc.simulate(m, 1e-3, step=1e-3),
        lambda m: bc.stepper(bc.system(m), step=1e-3),
    ]
    for door in doors:
        assert warned(lambda door=door: door(graded(75, True, True)))


@few(60)
@given(trees(max_bodies=8), st.sampled_from(["aba", "crba"]))
def test_trees_of_usual_sizes_are_not_measured(m: Mechanism, method: str) -> None:
    assert rounding_error(m, METHODS[method]) == (0.0, 0)


@pytest.mark.parametrize("n", [30, 150])
def test_long_chain_of_equal_links_is_not_measured(n: int) -> None:
    m = bc.zoo.chain(n)
    name = auto_method(m, Request("forward_dynamics")).name
    assert rounding_error(m, METHODS[name]) == (0.0, 0)
