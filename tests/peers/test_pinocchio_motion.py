"""Quantities for robot control against Pinocchio: every robot of example-robot-data, and random trees.

Our numbers come from the methods on plain floats; a few robots are also tested through compiled kernels.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.dynamics import centroidal, coriolis, frame_motion, kinematics
from bellcrank.dynamics.quantities import REFERENCES
from bellcrank.model import Mechanism, regrouped
from bellcrank.model.joints import KINDS
from trees import ALL, few, random_tree, trees

pin = pytest.importorskip("pinocchio")
from pinocchio_map import Array, Peer  # noqa: E402
from test_pinocchio_joints import peer_of, with_plane_along_z  # noqa: E402
from test_pinocchio_robots import ONCE, near, pair  # noqa: E402


def motion(m: Mechanism, peer: Peer, seed: int, frames: list[str]) -> None:
    """All quantities at one state."""
    Q, V, A = m.random(seed)
    peer.at(Q, V)
    tree, q, v, a = m.tree, Q.tolist(), V.tolist(), A.tolist()
    near(frame_motion.poses(tree, q), [peer.pose(b.name) for b in m.bodies])
    for frame in frames:
        for seen in REFERENCES:
            near(kinematics.velocity(tree, q, v, frame, seen), peer.velocity(frame, seen))
            near(kinematics.jacobian(tree, q, frame, seen), peer.jacobian(frame, seen))
            near(frame_motion.acceleration(tree, q, v, a, frame, seen), peer.acceleration(A, frame, seen))
            near(
                frame_motion.spatial_acceleration(tree, q, v, a, frame, seen),
                peer.spatial_acceleration(A, frame, seen),
            )
            near(frame_motion.jacobian_rate(tree, q, v, frame, seen), peer.jacobian_rate(frame, seen))
    near(coriolis.coriolis_matrix(regrouped(tree), q, v), peer.coriolis_matrix())
    near(centroidal.com(tree, q), peer.com())
    near(centroidal.com_jacobian(tree, q), peer.com_jacobian())
    velocity, acceleration = peer.com_motion(A)
    near(centroidal.com_velocity(tree, q, v), velocity)
    near(centroidal.com_acceleration(tree, q, v, a), acceleration)
    matrix, rate = peer.momentum_matrices()
    near(centroidal.momentum_matrix(tree, q), matrix)
    near(centroidal.momentum_matrix_rate(tree, q, v), rate)
    near(centroidal.momentum(tree, q, v), peer.momentum())
    near(centroidal.momentum_rate(tree, q, v, a), peer.momentum_rate(A))
    there = elsewhere(m, Q, seed)
    near(kinematics.difference(tree, q, there.tolist()), peer.difference(there))


def elsewhere(m: Mechanism, q: Array, seed: int) -> Array:
    """Other positions at angles of less than half a turn: Pinocchio does not count turns of some joints."""
    q1, i = m.random(seed + 1)[0], 0
    for j in m.own_joints:
        kind = KINDS[j.kind]
        for k in range(i, i + kind.nq):
            if kind.nq == kind.nv:
                q1[k] = q[k] + np.clip(q1[k] - q[k], -3.0, 3.0)
        i += kind.nq
    return q1


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", ONCE)
def test_robot(path: str, base: str) -> None:
    m, peer = pair(path, base)
    if not m.bodies:
        assert peer.model.nv == 0
        return
    links = peer.frames()
    motion(m, peer, 1, links[:: max(1, len(links) // 4)])


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", ONCE)
def test_limits(path: str, base: str) -> None:
    """Limits of joints with one coordinate in both; Pinocchio also has numbers for quaternions and circles."""
    m, peer = pair(path, base)
    model, (q, v) = peer.model, m.columns
    for j in m.own_joints:
        theirs = model.joints[model.getJointId(j.name)]
        if theirs.nq == 1:
            i, k = q.index(j.name), v.index(j.name)
            span = model.lowerPositionLimit[theirs.idx_q], model.upperPositionLimit[theirs.idx_q]
            ours = m.limits.lower[i], m.limits.upper[i]
            # If a file has no limits, Pinocchio's are zero and ours are unlimited.
            assert ours == span or (span == (0.0, 0.0) and ours == (-np.inf, np.inf))
            assert m.limits.velocity[k] == model.upperVelocityLimit[theirs.idx_v]
            assert m.limits.effort[k] == model.upperEffortLimit[theirs.idx_v]
    if base == "floating":
        assert np.isinf(m.limits.lower[:7]).all()
        assert np.isinf(m.limits.effort[:6]).all()


# An arm, a gripper with a coupled finger, a quadruped: tested through tracing, LLVM and the call.
COMPILED = [
    ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    ("panda_description/urdf/panda.urdf", "floating"),
    ("anymal_b_simple_description/robots/anymal.urdf", "floating"),
]


@pytest.mark.parametrize(("path", "base"), COMPILED)
def test_robot_compiled(path: str, base: str) -> None:
    m, peer = pair(path, base)
    q, v, a = m.random(2, (11,))
    tool, there = m.bodies[-1].name, np.array([elsewhere(m, x, 2) for x in q])
    got = {
        "difference": m.difference(q, there),
        "coriolis_matrix": m.coriolis_matrix(q, v),
        "com_jacobian": m.com_jacobian(q),
        "momentum_rate": m.momentum_rate(q, v, a),
        "momentum": m.momentum(q, v),
    }
    poses, A, dA = m.poses(q), m.momentum_matrix(q), m.momentum_matrix_rate(q, v)
    for i in (0, 7, 10):
        peer.at(q[i], v[i])
        arguments = {"difference": [there[i]], "momentum_rate": [a[i]]}
        for name, x in got.items():
            near(x[i], getattr(peer, name)(*arguments.get(name, [])), 1e-9)
        near(poses[i], [peer.pose(b.name) for b in m.bodies], 1e-9)
        near([A[i], dA[i]], peer.momentum_matrices(), 1e-9)
        near([m.com_velocity(q[i], v[i]), m.com_acceleration(q[i], v[i], a[i])], peer.com_motion(a[i]), 1e-9)
        for seen in REFERENCES:
            near(m.acceleration(q, v, a, tool, reference=seen)[i], peer.acceleration(a[i], tool, seen), 1e-9)
            near(
                m.spatial_acceleration(q, v, a, tool, reference=seen)[i],
                peer.spatial_acceleration(a[i], tool, seen),
                1e-9,
            )
            near(m.jacobian_rate(q, v, tool, reference=seen)[i], peer.jacobian_rate(tool, seen), 1e-9)


# Pinocchio 4.1 treats the axes of a universal joint as fixed in its body in all rates, which is wrong.
# tests/laws/test_motion.py compares ours with derivatives.
STEADY = tuple(kind for kind in ALL if kind != "universal")


@pytest.mark.parametrize("kind", STEADY)
def test_each_kind(kind: str) -> None:
    for seed in range(5):
        for kinds in ([kind], ["revolute", kind, "prismatic"]):
            m = with_plane_along_z(random_tree(seed, kinds, armature=True))
            motion(m, peer_of(m), seed, [b.name for b in m.bodies])


@few(60)
@given(st.one_of(trees(STEADY, armature=st.booleans()), trees(STEADY, base="floating")), st.integers(0, 1000))
def test_mixed_trees(m: Mechanism, seed: int) -> None:
    m = with_plane_along_z(m)
    motion(m, peer_of(m), seed, [b.name for b in m.bodies])
