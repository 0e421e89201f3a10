"""Mass matrices of many bodies, computed column by column, equal those computed body by body, and each other."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import buffers
from bellcrank.build import policy
from bellcrank.dynamics import quantity
from bellcrank.errors import InputError


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the threshold to some forty bodies."""
    monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 2_000)
    monkeypatch.setattr(policy, "MAX_MATRIX_OPERATIONS", 2_000)


@pytest.mark.usefixtures("small")
def test_columns_are_those_of_straight_line_code() -> None:
    m = bc.zoo.chain(40)
    q = m.random(1)[0]
    assert policy.columns(m, quantity("mass_matrix"))
    mass, inverse = m.mass_matrix(q), m.inverse_mass_matrix(q)
    want = bc.kernel(m, "mass_matrix")(q)
    assert np.abs(mass - want).max() <= 1e-13 * np.abs(want).max()
    assert np.array_equal(mass, mass.T)
    assert np.array_equal(inverse, inverse.T)
    assert np.abs(inverse @ mass - np.eye(m.nv)).max() <= 1e-13 * np.linalg.cond(want)
    both = m.mass_matrix(np.stack([q, 2 * q]))
    np.testing.assert_allclose(both[0], mass, rtol=1e-14)
    assert both.shape == (2, 40, 40)
    kept = np.empty((40, 40))
    assert m.mass_matrix(q, out=kept) is kept
    assert np.array_equal(kept, mass)


def test_many_bodies_have_a_mass_matrix_and_small_ones_straight_line_code() -> None:
    m = bc.zoo.chain(300)
    q, v, _ = m.random(0)
    mass = m.mass_matrix(q)
    assert np.isclose(0.5 * v @ mass @ v, m.kinetic_energy(q, v), rtol=1e-10)
    assert not policy.columns(bc.zoo.chain(40), quantity("mass_matrix"))
    assert not policy.columns(bc.zoo.tree(255), quantity("mass_matrix"))


def test_large_matrix_is_shared_despite_cheap_products() -> None:
    """The matrix uses rolled loops even if one product is small.

    Coriolis forces of a hundred bodies are straight-line code; their matrix would have 430,000 operations.
    """
    m = bc.zoo.chain(100)
    q, v, _ = m.random(2)
    assert policy.columns(m, quantity("coriolis_matrix"))
    np.testing.assert_allclose(m.coriolis_matrix(q, v) @ v, m.coriolis_torque(q, v), atol=1e-11, rtol=1e-11)
    assert not policy.columns(bc.zoo.chain(60), quantity("coriolis_matrix"))
    assert not policy.columns(bc.zoo.random_tree(1, 90), quantity("mass_matrix_factors"))


def test_matrix_too_large_for_memory_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.zoo.chain(300)
    monkeypatch.setattr(buffers, "free_memory", lambda: 1e6)
    monkeypatch.setattr(buffers, "UNCHECKED_BYTES", 1e5)
    with pytest.raises(InputError, match="inverse_dynamics"):
        m.mass_matrix(np.zeros(300))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["mass_matrix", "coriolis_matrix", "forward_dynamics_derivatives"])
def test_wrong_arrays_end_in_a_sentence_as_those_of_kernels_do(name: str) -> None:
    m = bc.zoo.chain(40, twist="general").free("link3.mass")
    f, given = getattr(m, name), m.random(0)[: len(quantity(name).inputs)]
    f(*given)
    for wrong in (1.0, None, "a", ["a"] * 40, given[0] + 1j, [[1, 2], [3]], given[0][:-1], {"q": 0.0}):
        with pytest.raises(InputError, match=f'{name}: input "q"'):
            f(wrong, *given[1:])
    for p in (1.0, np.ones(2), "a"):
        with pytest.raises(InputError, match=f'{name}: input "p"'):
            f(*given, p=p)
    if quantity(name).result is None:
        for out in ([1], np.empty(3), np.empty((40, 40), np.float32), np.empty((2, 40, 40))):
            with pytest.raises(InputError, match=rf"{name}: out must be .* \(40, 40\)"):
                f(*given, out=out)
