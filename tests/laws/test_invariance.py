"""Results do not depend on the description: other frames, another order, another world, another base body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.model import Body, Frame, Joint, Mechanism, Mimic, mechanism_of
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import matrix, triple
from trees import SINGLE, Array, close, rotation, state, trees

seeds = st.integers(0, 1000)
everything = st.one_of(
    trees(armature=st.booleans(), passive=st.booleans()),
    trees(kinds=SINGLE, coupled=True, passive=st.booleans()),
    trees(base="floating"),
)

Pose = tuple[Array, Array]  # rotation and point
HERE: Pose = (np.eye(3), np.zeros(3))


def times(a: Pose, b: Pose) -> Pose:
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def inverse(a: Pose) -> Pose:
    return a[0].T, -a[0].T @ a[1]


def placed(part: Joint | Frame, pose: Pose) -> dict[str, object]:
    return {"rotation": matrix(pose[0]), "point": triple(pose[1])}


def pose_of(part: Joint | Frame) -> Pose:
    return np.array(part.rotation), np.array(part.point)


def seen_from(b: Body, T: Pose) -> Body:
    """The body described in a frame at pose T of its old frame."""
    R, t = T
    return replace(b, com=triple(R.T @ (np.array(b.com) - t)), inertia=matrix(R.T @ np.array(b.inertia) @ R))


def rebuilt(m: Mechanism, bodies: list[Body], joints: list[Joint], frames: list[Frame], **changes: object) -> Mechanism:
    return mechanism_of(m.name, bodies, joints, frames, **{"ground": m.ground, "gravity": m.gravity} | changes)


def in_other_frames(m: Mechanism, choose: Callable[[Joint], Pose]) -> Mechanism:
    """Return the mechanism with each body's frame moved by choose(its joint), otherwise unchanged."""
    T = {m.ground: HERE} | {j.child: choose(j) for j in m.joints}
    joints = []
    for j in m.joints:
        R = T[j.child][0]
        turned = {
            "axis": triple(R.T @ j.axis),
            "second_axis": None if j.second_axis is None else triple(R.T @ j.second_axis),
        }
        joints.append(replace(j, **placed(j, times(inverse(T[j.parent]), times(pose_of(j), T[j.child]))), **turned))
    frames = [replace(f, **placed(f, times(inverse(T[f.body]), pose_of(f)))) for f in m.frames.values()]
    return rebuilt(m, [seen_from(b, T[b.name]) for b in m.bodies], joints, frames)


@given(everything, seeds)
def test_frames_of_bodies_do_not_matter(m: Mechanism, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def choose(j: Joint) -> Pose:
        """Choose only moves that leave the joint's coordinates unchanged."""
        along = np.array(j.axis) * rng.uniform(-1, 1)
        return {
            "prismatic": (rotation(rng), rng.uniform(-1, 1, 3)),
            "universal": (rotation(rng), np.zeros(3)),
            "planar": (np.eye(3), along),
            "spherical": HERE,
            "floating": HERE,
        }.get(j.kind, (rotation(rng), along))

    other = in_other_frames(m, choose)
    q, v, a = state(m, seed)
    close(crba.mass_matrix(other.tree, q), crba.mass_matrix(m.tree, q), 1e-12)
    close(rnea.inverse_dynamics(other.tree, q, v, a), rnea.inverse_dynamics(m.tree, q, v, a), 1e-11)
    close(kinematics.potential_energy(other.tree, q), kinematics.potential_energy(m.tree, q), 1e-12)
    close(kinematics.momentum(other.tree, q, v), kinematics.momentum(m.tree, q, v), 1e-12)
    for frame in m.frames:
        close(kinematics.pose(other.tree, q, frame), kinematics.pose(m.tree, q, frame), 1e-12)
        close(kinematics.jacobian(other.tree, q, frame), kinematics.jacobian(m.tree, q, frame), 1e-12)


@given(everything, seeds)
def test_the_world_may_be_turned(m: Mechanism, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W: Pose = (rotation(rng), rng.uniform(-1, 1, 3))
    joints = [replace(j, **placed(j, times(W, pose_of(j)))) if j.parent == m.ground else j for j in m.joints]
    frames = [f for f in m.frames.values() if f.body != m.ground]
    other = rebuilt(m, list(m.bodies), joints, frames, gravity=W[0] @ m.gravity)
    q, v, a = state(m, seed)
    close(crba.mass_matrix(other.tree, q), crba.mass_matrix(m.tree, q), 1e-12)
    close(rnea.inverse_dynamics(other.tree, q, v, a), rnea.inverse_dynamics(m.tree, q, v, a), 1e-11)
    close(kinematics.com(other.tree, q), W[0] @ kinematics.com(m.tree, q) + W[1], 1e-12)
    h = np.array(kinematics.momentum(m.tree, q, v))
    close(kinematics.momentum(other.tree, q, v), [*(W[0] @ h[:3]), *(W[0] @ h[3:])], 1e-12)


@given(everything, seeds)
def test_the_order_of_joints_is_only_an_order(m: Mechanism, seed: int) -> None:
    rng = np.random.default_rng(seed)
    other = rebuilt(
        m, *([parts[i] for i in rng.permutation(len(parts))] for parts in (m.bodies, m.joints, list(m.frames.values())))
    )
    q, v, a = state(m, seed)
    columns_q, columns_v = ([mine.index(c) for c in its] for mine, its in zip(m.columns, other.columns))
    q2, v2, a2 = np.array(q)[columns_q].tolist(), np.array(v)[columns_v].tolist(), np.array(a)[columns_v].tolist()
    M = np.array(crba.mass_matrix(m.tree, q))
    close(crba.mass_matrix(other.tree, q2), M[np.ix_(columns_v, columns_v)], 1e-12)
    close(
        rnea.inverse_dynamics(other.tree, q2, v2, a2),
        np.array(rnea.inverse_dynamics(m.tree, q, v, a))[columns_v],
        1e-11,
    )


def quaternion(R: Array) -> Array:
    """(x, y, z, w) of a rotation: an eigenvector, which has no singular angles."""
    xx, yy, zz = np.diag(R)
    K = np.array(
        [
            [xx - yy - zz, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]],
            [R[0, 1] + R[1, 0], yy - xx - zz, R[1, 2] + R[2, 1], R[0, 2] - R[2, 0]],
            [R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], zz - xx - yy, R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], xx + yy + zz],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1]


def re_rooted(m: Mechanism, root: str) -> Mechanism:
    """A floating mechanism with its free joint on another body; the joints in between change direction."""
    by_child = {j.child: j for j in m.joints}
    T: dict[str, Pose] = {m.ground: HERE} | {b.name: HERE for b in m.bodies}
    reversed_joints = {}
    base, at = m.joints[0], root
    while by_child[at] is not base:
        j = by_child[at]
        T[j.parent] = pose_of(j)  # the old parent's frame is now at the joint
        back = replace(j, parent=j.child, child=j.parent, axis=triple(-np.array(j.axis)))
        reversed_joints[j.name] = replace(back, **placed(j, inverse(T[j.child])))
        at = j.parent
    joints = [replace(base, child=root)]
    for j in m.joints[1:]:
        joints.append(reversed_joints.get(j.name) or replace(j, **placed(j, times(inverse(T[j.parent]), pose_of(j)))))
    frames = [replace(f, **placed(f, times(inverse(T[f.body]), pose_of(f)))) for f in m.frames.values()]
    return rebuilt(m, [seen_from(b, T[b.name]) for b in m.bodies], joints, frames)


@given(trees(kinds=SINGLE, base="floating", armature=st.booleans(), passive=st.booleans()), seeds)
def test_any_body_may_be_the_base(m: Mechanism, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Forces on the base must not move with it, so its joint has no armature and no friction.
    m = replace(m, joints=(replace(m.joints[0], armature=0.0, damping=0.0, friction=0.0), *m.joints[1:]))
    root = m.bodies[int(rng.integers(len(m.bodies)))].name
    other = re_rooted(m, root)
    q, v, tau = state(m, seed)

    X = np.array(kinematics.pose(m.tree, q, root))
    R, p = times(inverse(pose_of(m.joints[0])), (X[:3, :3], X[:3, 3]))
    order = [6 + m.columns[1][6:].index(name) for name in other.columns[1][6:]]
    turn = np.kron(np.eye(2), X[:3, :3].T)
    H = np.vstack([turn @ kinematics.jacobian(m.tree, q, root), np.eye(m.nv)[order]])  # the other v is H v
    q2 = [*p, *quaternion(R), *(q[i + 1] for i in order)]
    v2 = (H @ v).tolist()

    close(H.T @ np.array(crba.mass_matrix(other.tree, q2)) @ H, crba.mass_matrix(m.tree, q), 1e-12)
    close(kinematics.kinetic_energy(other.tree, q2, v2), kinematics.kinetic_energy(m.tree, q, v), 1e-12)
    close(kinematics.potential_energy(other.tree, q2), kinematics.potential_energy(m.tree, q), 1e-12)
    close(kinematics.momentum(other.tree, q2, v2), kinematics.momentum(m.tree, q, v), 1e-12)
    for frame in m.frames:
        close(kinematics.pose(other.tree, q2, frame), kinematics.pose(m.tree, q, frame), 1e-12)
    joints_only = [0.0] * 6 + tau[6:]
    a = np.array(crba.forward_dynamics(m.tree, q, v, joints_only))
    a2 = crba.forward_dynamics(other.tree, q2, v2, [0.0] * 6 + [tau[i] for i in order])
    close(a2[6:], a[order], 1e-10)


@pytest.mark.parametrize("tilt", [0.0, 1e-7, 2e-6, 7.3e-6, 1e-4, 1e-2])
def test_axes_that_are_almost_parallel(tilt: float) -> None:
    """Files write 3.1416 for pi. The common perpendicular of such axes is kilometres away and unusable for a frame."""

    def turned(axis: int, angle: float) -> Array:
        c, s = np.cos(angle), np.sin(angle)
        return np.roll([[1, 0, 0], [0, c, -s], [0, s, c]], axis, (0, 1))

    placements = [turned(1, 1.2), turned(1, 1.2), turned(0, tilt), turned(0, 2 * tilt), turned(1, 1.2)]
    bodies = [Body(f"b{i}", 1.0, (0.1, 0.2, 0.3), matrix(np.diag([0.1, 0.2, 0.15]))) for i in range(5)]
    joints = [
        Joint(f"j{i}", "revolute", f"b{i - 1}" if i else "ground", f"b{i}", matrix(R), (0.3, 0.4, 0.2))
        for i, R in enumerate(placements)
    ]
    m = mechanism_of("almost", bodies, joints)
    q, _, _ = state(m)
    X, M, axes = HERE, np.zeros((5, 5)), []
    for i, j in enumerate(joints):  # M = sum of J^T diag(m, I) J over the bodies, by the textbook
        X = times(times(X, pose_of(j)), (turned(2, q[i]), np.zeros(3)))
        axes.append((X[0][:, 2], X[1]))
        centre = X[1] + X[0] @ bodies[i].com
        lin, ang = np.zeros((3, 5)), np.zeros((3, 5))
        for k, (z, p) in enumerate(axes):
            lin[:, k], ang[:, k] = np.cross(z, centre - p), z
        M += lin.T @ lin + ang.T @ X[0] @ np.array(bodies[i].inertia) @ X[0].T @ ang
        close(kinematics.pose(m.tree, q, f"b{i}")[0], [*X[0][0], X[1][0]], 1e-13)
    close(crba.mass_matrix(m.tree, q), M, 1e-13)


@given(trees(kinds=SINGLE, passive=st.booleans(), armature=st.booleans()), st.integers(0, 1000))
def test_a_coupled_mechanism_is_the_free_one_moved_together(free: Mechanism, seed: int) -> None:
    """With q_free = G q + offset the results follow by the chain rule; couplings may themselves be coupled."""
    rng = np.random.default_rng(seed)
    joints, rows, offsets, n = [], [], [], 0
    for i, j in enumerate(free.joints):
        if i and rng.random() < 0.6:
            master, multiplier, offset = int(rng.integers(i)), rng.uniform(-2, 2), rng.uniform(-1, 1)
            joints.append(replace(j, mimic=Mimic(free.joints[master].name, multiplier, offset)))
            rows.append(multiplier * rows[master])
            offsets.append(multiplier * offsets[master] + offset)
        else:
            joints.append(j)
            rows.append(np.eye(len(free.joints))[n])
            offsets.append(0.0)
            n += 1
    m = rebuilt(free, list(free.bodies), joints, list(free.frames.values()))
    G, offset = np.array(rows)[:, :n], np.array(offsets)
    q, v, a = state(m, seed)
    q2, v2, a2 = (G @ q + offset).tolist(), (G @ v).tolist(), (G @ a).tolist()
    assert m.nv == n
    close(crba.mass_matrix(m.tree, q), G.T @ np.array(crba.mass_matrix(free.tree, q2)) @ G, 1e-12)
    close(rnea.inverse_dynamics(m.tree, q, v, a), G.T @ rnea.inverse_dynamics(free.tree, q2, v2, a2), 1e-11)
    close(kinematics.potential_energy(m.tree, q), kinematics.potential_energy(free.tree, q2), 1e-12)
    for frame in m.frames:
        close(kinematics.pose(m.tree, q, frame), kinematics.pose(free.tree, q2, frame), 1e-12)
        close(kinematics.jacobian(m.tree, q, frame), np.array(kinematics.jacobian(free.tree, q2, frame)) @ G, 1e-12)


def test_neutral_is_where_the_parts_were_described() -> None:
    """At the neutral configuration each body's frame is at its joint's described placement, for every kind."""
    for kind in KINDS:
        R, second = matrix(rotation(np.random.default_rng(3))), (0.0, 0.0, 1.0) if kind == "universal" else None
        j = Joint("j", kind, "ground", "b", R, (0.1, 0.2, 0.3), (0.6, 0.8, 0.0), second, 0.1 * (kind == "helical"))
        m = mechanism_of("one", [Body("b", 1.0)], [j])
        X = np.array(kinematics.pose(m.tree, m.neutral().tolist(), "b"))
        close(X[:3, :3], j.rotation, 1e-15)
        close(X[:3, 3], j.point, 1e-15)
