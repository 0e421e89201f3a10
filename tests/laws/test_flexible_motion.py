"""Flexible bodies: Coriolis matrix, frame accelerations and centroidal motion equal differences."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import centroidal, coriolis, crba, frame_motion, kinematics, rnea

STEEL = bc.Material.steel()
E = 1e-6


@cache
def arm(base: str) -> Any:
    """A slanted beam with a node in the middle, a second beam at its end, and bodies after and beside it."""
    b = bc.Builder("arm")
    s = 1 / math.sqrt(2)
    along = np.array([s, 0, s])
    b.beam(
        "boom", length=2.0, section=bc.Section.box(0.2, 0.1, 0.01), material=STEEL, axis=along, elements=6, modes=1,
        below=250.0, nodes={"end": 1.0, "middle": 0.5},
    )  # fmt: skip
    b.joint("base", base, "ground", "boom", **({"axis": (0, 1, 0)} if base == "revolute" else {}))
    end = 2.0 * along
    b.beam(
        "stick", length=1.0, section=bc.Section.rectangle(0.05, 0.1), material=STEEL, start=end, axis=(0, 0, -1),
        elements=4, modes=1, below=400.0, motions=("bend_y", "twist"),
    )  # fmt: skip
    b.joint("elbow", "universal", "boom.end", "stick", point=end, axis=(0, 1, 0), second_axis=(1, 0, 0))
    b.body("tool", mass=2.0, com=end + np.array([0.1, 0, -1.1]), inertia=(0.02, 0.02, 0.01))
    b.joint("wrist", "revolute", "stick.end", "tool", point=end + np.array([0, 0, -1.0]), axis=(1, 0, 0))
    b.body("beside", mass=1.0, com=along + np.array([0, 0.2, 0.1]), inertia=(0.01, 0.02, 0.02))
    b.joint("swivel", "spherical", "boom.middle", "beside", point=along)
    return b.build()


def state(m: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return a state with deflections far above rounding error."""
    q, v, a = m.random(seed)
    for body in m.tree.flexible:
        q[list(body.q_index)] *= 10
    return q, v, a


def moved(m: Any, q: Any, dv: Any) -> list[float]:
    return kinematics.integrate(m.tree, q.tolist(), np.asarray(dv).tolist())


def rate(m: Any, q: Any, v: Any, of: Any) -> Any:
    """Rate of change along v, by differences."""
    return (np.array(of(moved(m, q, E * v)), float) - np.array(of(moved(m, q, -E * v)), float)) / (2 * E)


BASES = ("revolute", "floating", "fixed")


@pytest.mark.parametrize("base", BASES)
def test_the_coriolis_matrix(base: str) -> None:
    m = arm(base)
    q, v, _ = state(m, 3)
    C = np.array(coriolis.coriolis_matrix(m.tree, q.tolist(), v.tolist()), float)
    forces = np.array(rnea.coriolis_torque(m.tree, q.tolist(), v.tolist()), float)
    assert C @ v == pytest.approx(forces, rel=1e-10, abs=1e-10 * np.abs(forces).max())
    change = rate(m, q, v, lambda q: crba.mass_matrix(m.tree, q))
    assert pytest.approx(change, rel=1e-6, abs=1e-7 * np.abs(change).max()) == C + C.T


@pytest.mark.parametrize("base", BASES[:2])
def test_the_motion_of_the_whole(base: str) -> None:
    m = arm(base)
    t, (q, v, a) = m.tree, state(m, 5)
    Q, V = q.tolist(), v.tolist()
    A = np.array(centroidal.momentum_matrix(t, Q), float)
    momentum = np.array(kinematics.momentum(t, Q, V), float)
    assert A @ v == pytest.approx(momentum, rel=1e-11, abs=1e-11 * np.abs(momentum).max())
    assert np.array(centroidal.com(t, Q), float) == pytest.approx(np.array(kinematics.com(t, Q), float), rel=1e-12)
    change = rate(m, q, v, lambda q: kinematics.com(t, q))
    assert np.array(centroidal.com_velocity(t, Q, V), float) == pytest.approx(change, rel=1e-7, abs=1e-8)
    change = rate(m, q, v, lambda q: centroidal.momentum_matrix(t, q))
    found = np.array(centroidal.momentum_matrix_rate(t, Q, V), float)
    assert found == pytest.approx(change, rel=1e-6, abs=1e-7 * np.abs(change).max())
    whole = np.array(centroidal.momentum_rate(t, Q, V, a.tolist()), float)
    assert whole == pytest.approx(A @ a + found @ v, rel=1e-10, abs=1e-10 * np.abs(whole).max())
    mass = sum(b.mass for b in m.bodies)
    assert np.array(centroidal.com_acceleration(t, Q, V, a.tolist()), float) * mass == pytest.approx(
        whole[:3], rel=1e-9
    )


@pytest.mark.parametrize("reference", ["aligned", "local", "world"])
@pytest.mark.parametrize("frame", ["boom.middle", "boom.end", "tool", "beside"])
def test_frame_acceleration_is_the_jacobian_product(frame: str, reference: str) -> None:
    m = arm("revolute")
    t, (q, v, a) = m.tree, state(m, 7)
    Q, V, A = q.tolist(), v.tolist(), a.tolist()
    J = np.array(kinematics.jacobian(t, Q, frame, reference), float)
    dJ = np.array(frame_motion.jacobian_rate(t, Q, V, frame, reference), float)
    change = rate(m, q, v, lambda q: kinematics.jacobian(t, q, frame, reference))
    assert dJ == pytest.approx(change, rel=1e-6, abs=1e-7 * np.abs(change).max())
    if reference == "aligned":
        found = np.array(frame_motion.acceleration(t, Q, V, A, frame, reference), float)
        assert found == pytest.approx(J @ a + dJ @ v, rel=1e-10, abs=1e-10 * np.abs(found).max())


def test_motion_quantities_are_compiled() -> None:
    m = arm("revolute")
    q, v, a = state(m, 9)
    assert m.coriolis_matrix(q, v) @ v == pytest.approx(m.coriolis_torque(q, v), rel=1e-9, abs=1e-7)
    assert m.acceleration(q, v, a, frame="boom.end")[:3] == pytest.approx(
        (m.jacobian(q, frame="boom.end") @ a + m.jacobian_rate(q, v, frame="boom.end") @ v)[:3], rel=1e-10
    )
