"""Comparison with MuJoCo on MJCF text written here, so that both sides share no file.

MuJoCo's free joint has its linear velocity in world axes, ours in body axes. Otherwise the conventions agree: balls and
hinges in the child's frame, and several joints of one body for kinds that MuJoCo does not have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.model import Joint, Mechanism
from trees import Array, close, random_tree

mujoco = pytest.importorskip("mujoco")

# Our joints as one or two MuJoCo joints, in order.
TYPES = {
    "revolute": ["hinge"],
    "prismatic": ["slide"],
    "cylindrical": ["hinge", "slide"],
    "universal": ["hinge", "hinge"],
} | {
    "spherical": ["ball"],
    "floating": ["free"],
}


def numbers(*values: float) -> str:
    return " ".join(repr(float(x)) for x in values)


def joints(j: Joint) -> str:
    text = ""
    for k, kind in enumerate(TYPES[j.kind]):
        axis = j.axis if k == 0 or j.kind != "universal" else j.second_axis
        spring = f'stiffness="{j.stiffness!r}" springref="{j.rest!r}"' if kind in ("hinge", "slide") else ""
        forces = f'armature="{j.armature!r}" damping="{j.damping!r}" {spring}'
        text += f'<joint name="{j.name}.{k}" type="{kind}" axis="{numbers(*axis)}" {forces}/>'
    return text


def mjcf(m: Mechanism) -> str:
    def body(i: int) -> str:
        b, j = m.bodies[i], m.joints[i]
        R, I = np.array(j.rotation), np.array(b.inertia)
        inside = "".join(body(k) for k, p in enumerate(m.parent) if p == i)
        full = numbers(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        return (
            f'<body name="{b.name}" pos="{numbers(*j.point)}" xyaxes="{numbers(*R[:, 0], *R[:, 1])}">{joints(j)}'
            f'<inertial pos="{numbers(*b.com)}" mass="{b.mass!r}" fullinertia="{full}"/>{inside}</body>'
        )

    roots = "".join(body(i) for i, p in enumerate(m.parent) if p < 0)
    return (
        '<mujoco><compiler angle="radian" autolimits="false"/>'
        f'<option gravity="{numbers(*m.gravity)}"><flag contact="disable"/></option>'
        f"<worldbody>{roots}</worldbody></mujoco>"
    )


class Peer:
    """MuJoCo's data at a state, and H with (its v) = H (our v)."""

    def __init__(self, m: Mechanism, q: Array, v: Array) -> None:
        self.model = mujoco.MjModel.from_xml_string(mjcf(m))
        self.data = mujoco.MjData(self.model)
        assert self.model.nv == m.nv
        self.m, self.H, self.v = m, np.zeros((m.nv, m.nv)), v
        for j, link in zip(m.joints, m.tree.links):
            its = self.model.joint(f"{j.name}.0")
            at_q, at_v = its.qposadr[0], its.dofadr[0]
            x = q[list(link.q_index)]
            if j.kind in ("spherical", "floating"):
                x = [*x[:-4], x[-1], *x[-4:-1]]  # w first
            if j.kind == "floating":  # its pose is in the world, for any placement of the joint
                assert np.array_equal(j.rotation, np.eye(3))
                x[:3] = x[:3] + np.array(j.point)
            self.data.qpos[at_q : at_q + len(x)] = x
            turn = np.eye(len(link.v_index))
            if j.kind == "floating":
                turn[:3, :3] = np.array(kinematics.pose(m.tree, q.tolist(), j.child))[:3, :3]
            self.H[np.ix_(range(at_v, at_v + len(turn)), link.v_index)] = turn
        self.data.qvel[:] = self.H @ v
        mujoco.mj_forward(self.model, self.data)

    def M_times(self, x: Array) -> Array:
        y = np.zeros(self.model.nv)
        mujoco.mj_mulM(self.model, self.data, y, np.ascontiguousarray(x))
        return y

    def mass_matrix(self) -> Array:
        return self.H.T @ np.transpose([self.M_times(column) for column in self.H.T])

    def drift(self) -> Array:
        """dH/dt v: MuJoCo's acceleration where ours is zero, because the body's axes rotate with the velocity."""
        out = np.zeros(self.m.nv)
        for j, link in zip(self.m.joints, self.m.tree.links):
            if j.kind == "floating":
                lin, ang = self.v[list(link.v_index[:3])], self.v[list(link.v_index[3:])]
                rows = self.model.joint(f"{j.name}.0").dofadr[0] + np.arange(3)
                out[rows] = self.H[np.ix_(rows, link.v_index[:3])] @ np.cross(ang, lin)
        return out

    def bias(self) -> Array:
        """MuJoCo's qfrc_bias plus M times the drift, in our velocities."""
        return self.H.T @ (self.data.qfrc_bias + self.M_times(self.drift()))

    def passive_torque(self) -> Array:
        return self.H.T @ self.data.qfrc_passive

    def forward_dynamics(self, tau: Array) -> Array:
        self.data.qfrc_applied[:] = np.linalg.solve(self.H.T, tau)
        mujoco.mj_forward(self.model, self.data)
        return np.linalg.solve(self.H, self.data.qacc - self.drift())


def anchored(m: Mechanism) -> Mechanism:
    """Let floating joints start at the world's axes, as MuJoCo's do."""
    eye = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    return replace(m, joints=tuple(replace(j, rotation=eye) if j.kind == "floating" else j for j in m.joints))


MECHANISMS = {
    "chain": lambda: bc.zoo.chain(6),
    "chain, general": lambda: bc.zoo.chain(7, twist="general", joints=["revolute", "prismatic", "universal"]),
    "tree": lambda: bc.zoo.tree(9, branching=2, twist="general"),
    "puma": bc.zoo.puma600,
    "stanford": bc.zoo.stanford,
    "mixed": lambda: random_tree(
        3, ["universal", "spherical", "cylindrical", "revolute", "prismatic"], [0, 1, 1, 2, 3]
    ),
    "rotors, springs and dampers": lambda: random_tree(
        4, ["revolute", "cylindrical", "prismatic", "universal"], [0, 1, 1, 2], armature=True, passive=True
    ),
    "floating": lambda: random_tree(5, ["floating", "revolute", "spherical", "prismatic"], [0, 0, 1, 1], rooted=True),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanism(name: str) -> None:
    m = anchored(MECHANISMS[name]())
    m = replace(
        m, joints=tuple(replace(j, friction=0.0) for j in m.joints)
    )  # MuJoCo handles dry friction in its constraint solver
    for seed in range(3):
        Q, V, TAU = m.random(seed)
        q, v, tau = Q.tolist(), V.tolist(), TAU.tolist()
        peer = Peer(m, Q, V)
        # MuJoCo diagonalises each inertia and stores a quaternion, which leaves eleven digits.
        close(crba.mass_matrix(m.tree, q), peer.mass_matrix(), 1e-10)
        close(rnea.bias(m.tree, q, v), peer.bias(), 1e-10)
        close(kinematics.passive_torque(m.tree, q, v), peer.passive_torque(), 1e-12)
        close(crba.forward_dynamics(m.tree, q, v, tau), peer.forward_dynamics(TAU), 1e-9)
        for b in m.bodies:
            f, its = m.frames[b.name], peer.data.body(b.name)  # a table's frame may be elsewhere on the body
            R, X = its.xmat.reshape(3, 3), np.array(kinematics.pose(m.tree, q, b.name))
            close(X[:3, :3], R @ f.rotation, 1e-11)
            close(X[:3, 3], its.xpos + R @ f.point, 1e-11)
