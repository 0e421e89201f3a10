"""Every joint type against Pinocchio's type of the same kind: URDF files have only four of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.dynamics import aba, crba, kinematics, rnea
from bellcrank.model import Body, Joint, Mechanism, mechanism_of
from bellcrank.model.joints import KINDS
from trees import ALL, close, few, random_tree, trees

pin = pytest.importorskip("pinocchio")
from pinocchio_map import Peer  # noqa: E402


def joint_model(j: Joint) -> object:
    axis = np.array(j.axis)
    if j.kind == "cylindrical":
        composite = pin.JointModelComposite(pin.JointModelRevoluteUnaligned(axis))
        composite.addJoint(pin.JointModelPrismaticUnaligned(axis))
        return composite
    return {
        "revolute": lambda: pin.JointModelRevoluteUnaligned(axis),
        "prismatic": lambda: pin.JointModelPrismaticUnaligned(axis),
        "helical": lambda: pin.JointModelHelicalUnaligned(axis, j.pitch),
        "universal": lambda: pin.JointModelUniversal(axis, np.array(j.second_axis)),
        "spherical": pin.JointModelSpherical,
        "planar": pin.JointModelPlanar,
        "floating": pin.JointModelFreeFlyer,
    }[j.kind]()


def peer_of(m: Mechanism) -> Peer:
    model = pin.Model()
    model.gravity.linear = np.array(m.gravity)
    at = {m.ground: 0}
    for j, b in in_depth(m, m.ground):
        X = pin.SE3(np.array(j.rotation), np.array(j.point))
        at[b.name] = model.addJoint(at[j.parent], joint_model(j), X, j.name)
        model.appendBodyToJoint(
            at[b.name], pin.Inertia(b.mass, np.array(b.com), np.array(b.inertia)), pin.SE3.Identity()
        )
        model.addBodyFrame(b.name, at[b.name], pin.SE3.Identity(), 0)
    peer = Peer(model, m)
    model.armature = peer.G @ np.array([link.armature for link in m.tree.links for _ in link.v_index])
    peer.data = model.createData()
    return peer


def in_depth(m: Mechanism, parent: str) -> Iterator[tuple[Joint, Body]]:
    """Order joints depth-first: in any other order some of Pinocchio's results are wrong."""
    for j, b in zip(m.joints, m.bodies):
        if j.parent == parent:
            yield j, b
            yield from in_depth(m, b.name)


def with_plane_along_z(m: Mechanism) -> Mechanism:
    """Pinocchio's planar joint moves only in xy."""
    joints = [Joint(**vars(j) | {"axis": (0.0, 0.0, 1.0)}) if j.kind == "planar" else j for j in m.joints]
    return mechanism_of(m.name, m.bodies, joints, list(m.frames.values()), gravity=m.gravity)


def armature_in_turning_axes(m: Mechanism, v: np.ndarray) -> np.ndarray:
    """Return armature w x v:

    Pinocchio's armature multiplies dv/dt alone, which is no inertia in rotating axes; MuJoCo's is.
    """
    out = np.zeros(m.nv)
    for link in m.tree.links:
        columns = list(link.v_index)
        if link.kind.name == "floating":
            out[columns[:3]] = link.armature * np.cross(v[columns[3:]], v[columns[:3]])
        if link.kind.name == "planar":
            x, y, turn = v[columns]
            out[columns[:2]] = link.armature * turn * np.array([-y, x])
    return out


def compare(m: Mechanism, seed: int) -> None:
    m = with_plane_along_z(m)
    Q, V, TAU = m.random(seed)
    peer = peer_of(m).at(Q, V)
    q, v, tau = Q.tolist(), V.tolist(), TAU.tolist()
    close(crba.mass_matrix(m.tree, q), peer.mass_matrix(), 1e-11)
    close(rnea.bias(m.tree, q, v), peer.bias(), 1e-11)
    turning = armature_in_turning_axes(m, V)
    close(rnea.inverse_dynamics(m.tree, q, v, tau), peer.inverse_dynamics(TAU) + turning, 1e-11)
    close(crba.forward_dynamics(m.tree, q, v, tau), peer.forward_dynamics(TAU - turning), 1e-10)
    close(aba.forward_dynamics(m.tree, q, v, tau), peer.forward_dynamics(TAU - turning), 1e-10)
    close(kinematics.potential_energy(m.tree, q), peer.potential_energy(), 1e-11)
    # From its M: Pinocchio 4.1 includes the rotors' energy for prismatic and ball joints, but not for hinges.
    close(kinematics.kinetic_energy(m.tree, q, v), 0.5 * V @ peer.mass_matrix() @ V, 1e-11)
    close(kinematics.momentum(m.tree, q, v), peer.momentum(), 1e-11)
    close(kinematics.com(m.tree, q), peer.com(), 1e-12)
    for b in m.bodies:
        close(kinematics.pose(m.tree, q, b.name), peer.pose(b.name), 1e-12)
        close(kinematics.jacobian(m.tree, q, b.name), peer.jacobian(b.name), 1e-12)
    # Integration on the manifold has the same definition in both.
    moved = peer_of(m).at(np.array(kinematics.integrate(m.tree, q, v)), V)
    there = pin.integrate(peer.model, peer.q, peer.v)
    for b in m.bodies:
        close(moved.pose(b.name), peer_pose(peer, there, b.name), 1e-12)


def peer_pose(peer: Peer, q: object, frame: str) -> object:
    peer.q = q
    return peer.pose(frame)


@pytest.mark.parametrize("kind", ALL)
def test_each_kind(kind: str) -> None:
    for seed in range(5):
        compare(random_tree(seed, [kind], armature=True), seed)
        compare(random_tree(seed, ["revolute", kind, "prismatic"], armature=True), seed)
    assert KINDS[kind].name == kind


@few(60)
@given(st.one_of(trees(armature=st.booleans()), trees(base="floating")), st.integers(0, 1000))
def test_mixed_trees(m: Mechanism, seed: int) -> None:
    compare(m, seed)
