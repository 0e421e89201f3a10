"""The armature of a joint with velocities in body axes acts as an inertia, as it does along fixed axes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import aba, crba, derivatives
from bellcrank.model import Body, Joint, Mechanism, mechanism_of
from bellcrank.model.parts import matrix
from trees import Array, close, random_tree

ARMATURE = 0.7
INERTIA = matrix(np.diag([0.3, 0.5, 0.6]))
FREE = {"floating": ("xyz", "spherical"), "planar": ("xy", "revolute")}
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def in_one(kind: str) -> Mechanism:
    body = Body("body", 2.0, (0.1, 0.2, 0.3), INERTIA)
    return mechanism_of("one", [body], [Joint("free", kind, "ground", "body", armature=ARMATURE)])


def in_series(kind: str) -> Mechanism:
    """Return slides along fixed axes, then the rotation: each with the same armature."""
    slides, turn = FREE[kind]
    names = ["ground", *slides]
    joints = [Joint(f"slide {to}", "prismatic", at, to, axis=AXES[to], armature=ARMATURE) for at, to in pairwise(names)]
    joints.append(Joint("turn", turn, names[-1], "body", armature=ARMATURE))
    bodies = [*(Body(name, declared=False) for name in slides), Body("body", 2.0, (0.1, 0.2, 0.3), INERTIA)]
    return mechanism_of("series", bodies, joints)


def axes(kind: str, m: Mechanism, q: Array) -> Array:
    """Return the velocities along fixed axes from those of the joint."""
    k = len(FREE[kind][0])
    turn = np.eye(m.nv)
    turn[:k, :k] = m.pose(q, "body")[:k, :k]
    return turn


@pytest.mark.parametrize("kind", FREE)
def test_armature_equals_that_of_fixed_axes(kind: str) -> None:
    one, series = in_one(kind), in_series(kind)
    q, v, tau = one.random(3)
    H = axes(kind, one, q)
    k = len(FREE[kind][0])
    turning = np.zeros(one.nv)
    turning[:k] = np.cross([0, 0, v[-1]] if k == 2 else v[3:], [*v[:k], 0][:3])[:k]
    expected = np.linalg.solve(H, series.forward_dynamics(q, H @ v, np.linalg.solve(H.T, tau))) - turning
    for method in (aba, crba):
        close(method.forward_dynamics(one.tree, q.tolist(), v.tolist(), tau.tolist()), expected, 1e-12)
    close(one.forward_dynamics(q, v, tau), expected, 1e-12)
    close(one.inverse_dynamics(q, v, expected), tau, 1e-12)


@pytest.mark.parametrize("kind", FREE)
def test_armature_derivatives_equal_finite_differences(kind: str) -> None:
    m = random_tree(2, [kind, "revolute"], [0, 1], rooted=True)
    m = replace(m, joints=(replace(m.joints[0], armature=ARMATURE), *m.joints[1:]))
    q, v, tau = m.random(1)
    a = m.forward_dynamics(q, v, tau)
    _, dv, *_ = derivatives.inverse_dynamics_derivatives(m.tree, q.tolist(), v.tolist(), a.tolist())
    h = 1e-6
    columns = [
        (m.inverse_dynamics(q, v + h * e, a) - m.inverse_dynamics(q, v - h * e, a)) / (2 * h) for e in np.eye(m.nv)
    ]
    np.testing.assert_allclose(np.array(dv, float), np.transpose(columns), atol=1e-7)
    got = m.forward_dynamics_derivatives(q, v, tau).dv
    columns = [
        (m.forward_dynamics(q, v + h * e, tau) - m.forward_dynamics(q, v - h * e, tau)) / (2 * h) for e in np.eye(m.nv)
    ]
    np.testing.assert_allclose(got, np.transpose(columns), atol=1e-7)


def test_energy_is_kept() -> None:
    """A body in free flight without gravity keeps its energy; its only inertia is that of the rotor."""
    m = replace(in_one("floating"), gravity=(0.0, 0.0, 0.0))
    q = m.neutral()
    run = bc.simulate(m, 2.0, q, [1.0, 2.0, 3.0, 0.5, -1.0, 2.0], step=1e-3, every=0.1)
    energy = np.asarray(run["kinetic_energy"])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)
