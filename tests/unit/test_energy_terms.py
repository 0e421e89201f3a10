"""Kinetic energy: a mass matrix with a negative eigenvalue is an error, and nothing weaker is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.dynamics import crba
from bellcrank.errors import ModelError
from bellcrank.formats import Builder
from bellcrank.model import Body, Joint, Mechanism, energy_check, mechanism_of
from bellcrank.model.parts import matrix, triple
from trees import few, trees

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def diagonal(*moments: float) -> Any:
    return matrix(np.diag(moments))


@few(20)
@given(trees(armature=True))
def test_mass_matrix_equals_that_of_composite_bodies(m: Mechanism) -> None:
    q = m.random(1)[0]
    M = np.array(crba.mass_matrix(m.tree, q.tolist()), dtype=float)
    np.testing.assert_allclose(energy_check.mass_matrix(m, q), M, atol=1e-12 * np.abs(M).max())


def turns(*joints: tuple[str, Any]) -> list[int]:
    """Return the number of directions about which each body of a chain can turn."""
    names = ["ground", *(f"b{i}" for i in range(len(joints)))]
    chain = [Joint(f"j{i}", kind, names[i], names[i + 1], axis=axis) for i, (kind, axis) in enumerate(joints)]
    return [len(x) for x in list(energy_check.turning_directions(chain, "ground").values())[1:]]


def test_rotation_axes_of_a_body() -> None:
    hinge, slide = ("revolute", Z), ("prismatic", Y)
    assert turns(slide, hinge, slide, hinge, ("planar", Z), ("helical", Z)) == [0, 1, 1, 1, 1, 1]
    assert turns(hinge, ("revolute", Y)) == [1, 3]
    assert turns(hinge, ("revolute", (0.0, 1e-9, 1.0)), ("revolute", (0.0, 1e-3, 1.0))) == [1, 1, 3]
    assert turns(("spherical", Z), slide) == [3, 3]
    assert turns(slide, ("universal", Z)) == [0, 3]


def chain(moments: Any, kind: str = "revolute", **options: Any) -> Builder:
    b = Builder("planar", **options)
    for i, name in enumerate(("a", "b", "c")):
        b.body(name, mass=1.0, com=(0.0, 0.0, -i - 0.5), inertia=moments)
        b.joint(f"j{name}", kind, ("ground", "a", "b")[i], name, point=(0.0, 0.0, -i), axis=Y)
    return b


def test_planar_mechanisms_need_one_moment_and_no_trick() -> None:
    one, three = chain((0, 1, 0)).build(), chain((1, 1, 1)).build()
    assert not one.report.warnings
    q = one.random(0)[0].tolist()
    np.testing.assert_allclose(crba.mass_matrix(one.tree, q), crba.mass_matrix(three.tree, q), rtol=1e-13)


def test_single_moment_is_rejected_where_others_act() -> None:
    for moments, kind in (((0, 0, 1), "revolute"), ((0, 1, 0), "spherical")):
        with pytest.raises(ModelError, match=r'body "a".*triangle inequality'):
            chain(moments, kind).build()
        warnings = chain(moments, kind, check="warn").build().report.warnings
        assert any("no body has" in line.outcome for line in warnings)
    with pytest.raises(ModelError, match=r'body "a".*triangle inequality'):
        chain((0.1, 1, 0.1))  # refused at once: this is not a planar body but an invalid one


def test_builder_accepts_impossible_inertia_on_request() -> None:
    b = chain((1, 1, 3), check="warn")
    assert "no body has" in b.build().report.warnings[0].outcome
    with pytest.raises(ModelError, match='expected "error" or "warn"'):
        Builder("x", check="maybe")


def welded(moments: tuple[float, float, float], kind: str = "spherical", mass: float = 0.1) -> Any:
    """Return a camera with these moments, welded to a large body."""
    bodies = [Body("large", 5.0, inertia=diagonal(1, 1, 1)), Body("camera", mass, (0.1, 0, 0), diagonal(*moments))]
    joints = [Joint("j", kind, "ground", "large"), Joint("weld", "fixed", "large", "camera")]
    return mechanism_of("m", bodies, joints, checks="warn")


def test_welded_bodies_are_checked_together() -> None:
    for moments in ((-1e-3, 1e-3, 1e-3), (1e-4, 1e-4, 1e-2), (0.0, 0.0, 1e-3)):
        (warning,) = welded(moments).report.warnings
        assert warning.element == 'body "camera"'
    assert "mass is -0.1 kg" in welded((0, 0, 0), mass=-0.1).report.warnings[0].outcome
    with pytest.raises(ModelError, match="mass is -1 kg"):
        welded((0, 0, 0), mass=-6.0)


def test_negative_energy_is_an_error_that_shows_it() -> None:
    with pytest.raises(ModelError, match=r'negative eigenvalue, at q = .*moving j would .*body "large"'):
        welded((-3, 1, 1))
    assert welded((-3, -3, 1), "revolute").report.warnings  # only the moment about z has an effect
    with pytest.raises(ModelError, match="negative eigenvalue"):
        welded((1, 1, -3), "revolute")


def test_undecided_energy_warns() -> None:
    """A case that is neither proven nor refuted gives a warning.

    A hinge is insensitive to a small negative moment of a mass far out; that holds for every q, but not by the proof.
    """
    body = Body("x", 1.0, (1.0, 0, 0), diagonal(1, 1, -0.5))
    m = mechanism_of("m", [body], [Joint("j", "revolute", "ground", "x")], checks="warn")
    assert any("does not prove it for all others" in line.outcome for line in m.report.warnings)


@few(40)
@given(trees(), st.integers(0, 999))
def test_accepted_mass_matrix_is_positive_in_all_poses(m: Mechanism, seed: int) -> None:
    """Random trees with moments of either sign: proofs and counterexamples of positive energy are correct."""
    rng = np.random.default_rng(seed)
    bodies = []
    for b in m.bodies:
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        I = R @ np.diag(rng.uniform(-0.1, 1, 3)) @ R.T
        bodies.append(Body(b.name, float(rng.uniform(0, 2)), b.com, matrix((I + I.T) / 2)))
    try:
        made = mechanism_of(m.name, bodies, m.joints, ground=m.ground, checks="warn")
    except ModelError as error:
        said = str(error)
    else:
        said = str(made.report)
    if "negative eigenvalue" in said:  # refused, or accepted without a proof
        return
    for q in made.random(seed, 50)[0]:
        M = np.array(crba.mass_matrix(made.tree, q.tolist()), dtype=float)
        assert np.linalg.eigvalsh(M).min() > -1e-9 * np.abs(M).max()


@few(20)
@given(trees(), st.integers(0, 999))
def test_possible_parts_need_no_check_of_energy(m: Mechanism, seed: int) -> None:
    """The complete check, which is omitted where every part has a possible inertia, finds nothing there."""
    rng = np.random.default_rng(seed)

    def possible(name: str) -> Body:
        second_moments = rng.uniform(0, 1, 3) * rng.integers(0, 2, 3)
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        I = R @ np.diag(second_moments.sum() - second_moments) @ R.T
        return Body(name, float(rng.uniform(0.1, 2)), triple(rng.uniform(-3, 3, 3)), matrix((I + I.T) / 2))

    bodies = [possible(name) for b in m.bodies for name in (b.name, f"{b.name} part")]
    welds = [Joint(f"{b.name} weld", "fixed", b.name, f"{b.name} part", point=(0.5, -1.0, 2.0)) for b in m.bodies]
    made = mechanism_of(m.name, bodies, [*m.joints, *welds], ground=m.ground)
    assert list(energy_check.check_energy(made)) == []
