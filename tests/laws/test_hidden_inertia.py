"""Chains of bodies of very different sizes: a refusal states the true reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.dynamics.singular_mass import carried_sizes, check_mass_matrix
from bellcrank.model import Mechanism
from loops import four_bar_tower as tower
from trees import few, random_tree

Sizes = list[tuple[int, int]]  # decimal exponents of length and mass of each body
exponents = st.integers(-6, 6)
chains = st.lists(st.tuples(exponents, exponents), min_size=2, max_size=4)


def chain(sizes: Sizes, massless: int = -1) -> Mechanism:
    """Return a chain of hinges along x, each with a rod to the next hinge; one body may be a point mass."""
    b = bc.Builder("rods", gravity=(0, 0, 0))
    x, parent = 0.0, "ground"
    for i, (length, mass) in enumerate(sizes):
        L, m = 10.0**length, 10.0**mass
        if i == massless:
            b.body(f"rod{i}", mass=m, com=(x, 0, 0))
        else:
            b.body(f"rod{i}", mass=m, com=(x + L / 2, 0, 0), inertia=(m * L * L / 12,) * 3)
        b.joint(f"hinge{i}", "revolute", parent, f"rod{i}", point=(x, 0, 0), axis=(0, 0, 1))
        x, parent = x + L, f"rod{i}"
    return b.build()


def refusal(m: Mechanism) -> str:
    """Return the message of the check of the mass matrix, or an empty text."""
    try:
        check_mass_matrix(m)
    except bc.ModelError as error:
        return str(error)
    return ""


@few(60)
@given(chains)
def test_chain_of_massive_bodies_is_never_called_massless(sizes: Sizes) -> None:
    text = refusal(chain(sizes))
    assert "without moving any inertia" not in text
    if text:
        hinge = next(i for i in range(len(sizes)) if f'about joint "hinge{i}"' in text)
        length, mass = sizes[hinge]
        reach = max(
            sum(10.0**x for x, _ in sizes[hinge : k + 1]) ** 2 * 10.0 ** sizes[k][1] for k in range(hinge, len(sizes))
        )
        assert reach > 1e9 * 10.0 ** (mass + 2 * length), "the named joint carries no much larger inertia"


@few(60)
@given(chains)
def test_point_on_its_own_hinge_is_called_massless_among_bodies_of_any_size(sizes: Sizes) -> None:
    last = len(sizes) - 1
    assert f'"hinge{last}" can move without moving any inertia' in refusal(chain(sizes, massless=last))


@pytest.mark.filterwarnings("ignore:.*not exact:RuntimeWarning")  # of the loops, before the refusal
@pytest.mark.parametrize("sizes", [[1e-4, 1e3], [1e-4, 1e-2, 1.0, 1e2, 1e3], [1e-4, 1e3, 1e-4, 1e3]])
@pytest.mark.parametrize("power", [0, 2])
def test_small_four_bar_that_carries_a_large_one_is_refused_for_its_ratio(sizes: list[float], power: int) -> None:
    m = tower(sizes, [x**power for x in sizes])
    with pytest.raises(bc.ModelError, match=r'about joint "A0" .* is \de\+\d\d times that of "crank0" alone'):
        m.forward_dynamics(*np.zeros((3, m.nv)))


@pytest.mark.parametrize("sizes", [[1e-3, 1e3], [1e3, 1e-4], [1e-2, 1.0, 1e2]])
def test_four_bars_within_the_range_of_float64_are_computed(sizes: list[float]) -> None:
    m = tower(sizes, [1.0] * len(sizes))
    a = m.forward_dynamics(*np.zeros((3, m.nv)))
    assert np.isfinite(a).all()
    assert not m.loop_analysis.doubts


@pytest.mark.parametrize("seed", range(3))
def test_carried_size_of_a_floating_base_is_that_of_the_whole_mechanism(seed: int) -> None:
    m = random_tree(seed, ["floating", "revolute", "spherical", "prismatic"], [0, 0, 1], rooted=True)
    q = m.random(seed)[0].tolist()
    sizes, M = carried_sizes(m.tree, q), np.asarray(m.mass_matrix(q))
    np.testing.assert_allclose(sizes[:3], sum(b.mass for b in m.bodies), rtol=1e-12)
    np.testing.assert_allclose(sizes[3:6], np.diag(M)[3:6].max(), rtol=1e-12)
