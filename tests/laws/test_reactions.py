"""Joint reactions against momentum, drives and textbooks (test_methods.py has every method)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.dynamics import METHODS, aba, candidates, crba, kinematics, reactions
from bellcrank.graph import trace
from bellcrank.model import Mechanism
from trees import ALL, close, few, random_tree, state, trees

seeds = st.integers(0, 1000)
everything = st.one_of(
    trees(armature=st.booleans(), passive=st.booleans()),
    trees(base="floating", armature=st.booleans(), passive=st.booleans()),
    trees(kinds=("revolute", "prismatic", "helical", "spherical"), armature=st.booleans(), coupled=True),
)


def pose(m: Mechanism, q: Any, frame: str) -> Any:
    return np.array(kinematics.pose(m.tree, q, frame), dtype=float)


@few(60)
@given(everything, seeds)
def test_the_ground_pays_for_the_momentum(m: Mechanism, seed: int) -> None:
    """Ground reactions = rate of momentum - weight - wrenches, about the centre of mass."""
    q, v, tau = state(m, seed)
    frames, wrench = [f"f{len(m.bodies) - 1}"], np.random.default_rng(seed).normal(size=(1, 6))
    by = crba if m.tree.coupled else aba
    a = by.forward_dynamics(m.tree, q, v, tau, frames, wrench.tolist())
    rate = kinematics.rate(m.tree, q, v)

    def moved(t: Any) -> Any:
        x, u = [c + t * d for c, d in zip(q, rate)], [c + t * d for c, d in zip(v, a)]
        return kinematics.momentum(m.tree, x, u)

    change = trace("h", lambda t: {"h": moved(t)}, {"t": ()}).jacobian("h", "t").evaluate(t=0.0)["dh_dt"]
    centre = np.array(kinematics.com(m.tree, q), dtype=float)
    force, at = wrench[0, :3], pose(m, q, frames[0])[:3, 3]
    change[:3] -= np.array(m.gravity) * sum(b.mass for b in m.bodies) + force
    change[3:] -= np.cross(at - centre, force) + wrench[0, 3:]
    passed = np.zeros(6)
    for i, f in enumerate(np.array(reactions.reactions(m.tree, q, v, tau, frames, wrench.tolist()), dtype=float)):
        if m.parent[i] < 0:
            arm = pose(m, q, m.bodies[i].name)[:3, 3] - centre
            passed += [*f[:3], *(f[3:] + np.cross(arm, f[:3]))]
    close(passed, change, 1e-10)


@few(60)
@given(everything, seeds)
def test_reactions_along_free_axes_equal_joint_forces(m: Mechanism, seed: int) -> None:
    q, v, tau = state(m, seed)
    by = crba if m.tree.coupled else aba
    a, passive = by.forward_dynamics(m.tree, q, v, tau), kinematics.passive_torque(m.tree, q, v)
    drive = [t + p for t, p in zip(tau, passive)]
    felt = np.zeros(m.nv)
    found = np.array(reactions.reactions(m.tree, q, v, tau), dtype=float)
    for i, link in enumerate(m.tree.links):
        body = link.name
        own = np.array(kinematics.jacobian(m.tree, q, body), dtype=float)
        if link.parent >= 0:  # without the motion of the point that the joint does not cause
            J = np.array(kinematics.jacobian(m.tree, q, m.bodies[link.parent].name), dtype=float)
            arm = pose(m, q, body)[:3, 3] - pose(m, q, m.bodies[link.parent].name)[:3, 3]
            own = own - np.vstack([J[:3] + np.cross(J[3:].T, arm).T, J[3:]])
        felt += own.T @ found[i]
        for k in link.v_index:
            drive[k] = drive[k] - link.armature * a[k]
    close(felt, drive, 1e-10)


def test_a_pendulum_pulls_at_its_hinge() -> None:
    """Released at rest, the rod carries m g cos(q); at the bottom with speed u, m g + m u^2 l."""
    m, g = bc.zoo.pendulum(length=0.5, mass=2.0), 9.81
    q = 0.7
    force = m.reactions([q], [0.0], [0.0])[0, :3]
    along = -np.array([math.sin(-q), 0.0, -math.cos(q)])  # from the bob to the hinge
    assert force @ along == pytest.approx(2.0 * g * math.cos(q))
    np.testing.assert_allclose(force, 2.0 * g * math.cos(q) * along, atol=1e-12)
    np.testing.assert_allclose(m.reactions([0.0], [3.0], [0.0])[0], [0, 0, 2 * (g + 9 * 0.5), 0, 0, 0], atol=1e-12)


def test_a_table_of_two_stands_on_both_joints() -> None:
    """At rest, every joint carries the weight above it, wherever the frames are."""
    m = random_tree(3, ["revolute", "prismatic", "helical", "universal"], [0, 0, 1, 2])
    q = m.random(0)[0]
    still = m.inverse_dynamics(q, np.zeros(m.nv), np.zeros(m.nv))
    found = m.reactions(q, np.zeros(m.nv), still)
    weight = [-np.array(m.gravity) * b.mass for b in m.bodies]
    for i in reversed(range(4)):
        np.testing.assert_allclose(found[i, :3], weight[i], atol=1e-9)
        if m.parent[i] >= 0:
            weight[m.parent[i]] = weight[m.parent[i]] + weight[i]


def test_batches_wrenches_and_float32() -> None:
    m = random_tree(5, ALL[:5], [0, 1, 1, 2, 0], armature=True, passive=True)
    q, v, tau = m.random(1, (2, 9))
    w = np.random.default_rng(0).normal(size=(9, 6))
    found = m.reactions(q, v, tau, wrenches={"f3": w})
    assert found.shape == (2, 9, 5, 6)
    one = reactions.reactions(m.tree, q[1, 4].tolist(), v[1, 4].tolist(), tau[1, 4].tolist(), ["f3"], [w[4].tolist()])
    close(found[1, 4], one, 1e-10)
    single = bc.kernel(m, "reactions", dtype="float32")(q, v, tau)
    assert np.abs(single - m.reactions(q, v, tau)).max() < 1e-2 * np.abs(single).max()


def test_bodies_without_extent_are_left_to_the_sweep() -> None:
    """A point mass has no inertia about itself, so (7) has no Mbar^-1; the pendulum of the zoo is one."""
    m = bc.zoo.pendulum()
    assert [by.name for by in candidates("reactions", m.tree)] == ["reactions"]
    assert not METHODS["newton_euler_symbolic"].applies(m.tree, "reactions")
    with pytest.raises(bc.InputError, match="every body needs mass and extent"):
        bc.kernel(m, "reactions", method="newton_euler_symbolic")
