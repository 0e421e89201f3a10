"""Closed loops against Pinocchio's constraintDynamics: coincident points, and welded bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints as numbers
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.model import Frame, Mechanism
from loops import closed, pose
from trees import close, few, random_tree, state

pin = pytest.importorskip("pinocchio")
from test_pinocchio_joints import peer_of  # noqa: E402

JOINTS = ("revolute", "prismatic", "universal", "spherical", "floating", "cylindrical")


def placement(f: Frame) -> Any:
    return pin.SE3(np.array(f.rotation), np.array(f.point))


def theirs(m: Mechanism, q: Any, v: Any, tau: Any) -> tuple[Any, Any]:
    """Pinocchio's accelerations, and the force of each loop on its body b, in world axes."""
    peer = peer_of(m).at(np.array(q), np.array(v))
    at = {m.ground: 0} | {b.name: peer.model.getJointId(j.name) for b, j in zip(m.bodies, m.joints)}
    models = pin.StdVec_RigidConstraintModel()
    for loop in m.loops:
        a, b = m.frames[loop.a], m.frames[loop.b]
        kind = pin.ContactType.CONTACT_3D if loop.kind == "spherical" else pin.ContactType.CONTACT_6D
        models.append(
            pin.RigidConstraintModel(
                kind, peer.model, at[a.body], placement(a), at[b.body], placement(b), pin.ReferenceFrame.LOCAL
            )
        )
    datas = pin.StdVec_RigidConstraintData([c.createData() for c in models])
    pin.initConstraintDynamics(peer.model, peer.data, models, datas)
    settings = pin.ProximalSettings(1e-14, 0.0, 1)
    a = pin.constraintDynamics(peer.model, peer.data, peer.q, peer.v, peer.G @ np.array(tau), models, datas, settings)
    forces = []
    for loop, data in zip(m.loops, datas):
        R, f = pose(m, q, loop.a)[:3, :3], data.contact_force  # on body a, in the axes of frame a
        forces.append([*(-R @ f.linear), *(-R @ f.angular)])
    return peer.G.T @ a, np.array(forces)


@few(60)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from(JOINTS), min_size=1, max_size=3).map(lambda more: ["floating", *more, "floating"]),
    st.lists(st.sampled_from(["spherical", "fixed"]), min_size=1, max_size=2),
)
def test_forward_dynamics_and_forces(seed: int, joints: list[str], kinds: list[str]) -> None:
    """Pinocchio requires independent equations."""
    m, q = closed(random_tree(seed, joints), seed, kinds)
    C = numbers(m.tree, np.array(q)).C
    s = np.linalg.svd(C, compute_uv=False)
    assume(len(C) <= m.nv and s[-1] > 1e-3 * s[0])
    _, v, tau = state(m, seed)
    v = consistent_velocity(m.tree, np.array(q), np.array(v)).tolist()
    a, forces = theirs(m, q, v, tau)
    rank = analysis(m, np.array(q)).rank
    assert len(rank.rows) == len(C)
    layer = LoopLayer(METHODS["crba"], rank)
    close(layer.function("forward_dynamics")(m.tree, q, v, tau), a, 1e-9)
    ours = np.array(layer.function("loop_forces")(m.tree, q, v, tau), dtype=float)
    close(ours, forces, 1e-8)
