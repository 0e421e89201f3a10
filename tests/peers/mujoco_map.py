"""A file read by `bc.read` and by MuJoCo: MuJoCo's accelerations in our order and conventions.

MuJoCo's quaternions have the scalar first, its free joints move along the world's axes, and its coordinates begin at
`ref`. Everything that our report lists as missing is removed from MuJoCo's model, so that the rest must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from bellcrank.formats.mjcf_model import ElementNames
from bellcrank.model import Mechanism
from bellcrank.model.parts import Report

Array = np.ndarray[Any, Any]
# Element of a warning -> the unused fields of MuJoCo's model. Constraints and actuators need no entry, because smooth
# accelerations do not contain them.
TAKEN_OUT = {
    "fluid": ("opt.density", "opt.viscosity"),
    "they have their weight": ("body_gravcomp",),
    "limited by actuatorfrcrange": ("jnt_actfrclimited",),
    "stiffness is not linear": ("jnt_stiffnesspoly",),
    "damping is not linear": ("dof_dampingpoly", "actuator_dampingpoly"),
    "tendon": ("tendon_stiffness", "tendon_stiffnesspoly", "tendon_damping", "tendon_dampingpoly", "tendon_armature"),
}
HARMLESS = ("geoms", "actuator", "equality", "range", "frictionloss", "massless", "MuJoCo")
UNCOMPARED = ("flexes", "plugins", "springyield")


def smooth(m: Mechanism) -> Mechanism:
    """The mechanism without loops and dry friction, which are constraints in MuJoCo."""
    return replace(m, loops=(), joints=tuple(replace(j, friction=0.0) for j in m.joints))


def take_out(model: Any, report: Report) -> list[str]:
    """Set everything that the report warns of to zero, and return what cannot be removed."""
    left = []
    for line in report.warnings:
        said = f"{line.element} {line.outcome}"
        fields = [field for key, names in TAKEN_OUT.items() if key in said for field in names]
        for field in fields:
            _zero(model, field)
        if "has no angle that a spring could measure" in said:
            model.jnt_stiffness[model.jnt_type < 2] = 0.0
        elif any(key in said for key in UNCOMPARED) or (not fields and not any(key in said for key in HARMLESS)):
            left.append(said)
    return left


def _zero(model: Any, field: str) -> None:
    if field.startswith("opt."):
        setattr(model.opt, field[4:], 0.0)
    elif hasattr(model, field):
        getattr(model, field)[:] = 0.0


class FilePeer:
    """MuJoCo's data at the state (q, v) of a mechanism that was read from the model's file.

    Without `actuation`, actuators have no forces of their own; their share of gravity compensation remains.
    """

    def __init__(self, model: Any, m: Mechanism, q: Array, v: Array, actuation: bool = False) -> None:
        self.model, self.m, self.v = model, m, v
        off = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        self.actuated = bool(model.nu) and not model.opt.disableflags & off
        if not actuation:
            model.opt.disableflags |= off
        self.data = mujoco.MjData(model)
        self.index = {name: k for k, name in enumerate(ElementNames(model).joint)}
        self.H = np.zeros((model.nv, m.nv))  # maps our velocities to MuJoCo's
        self._hold(m.report)
        for j, link in zip(m.joints, m.tree.links):
            self._place(j.kind, self.index[j.name], q[list(link.q_index)], link.v_index)
        self.data.qvel[:] = self.H @ v
        mujoco.mj_forward(model, self.data)
        self.M = np.zeros((model.nv, model.nv))
        for column, e in zip(self.M, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, self.data, column, e)
        self.mass_matrix = self.H.T @ self.M @ self.H

    def _hold(self, report: Report) -> None:
        """Set joints that an equality fixes to their fixed position."""
        for line in report.lines:
            name = line.element.removeprefix('joint "').removesuffix('"')
            if line.outcome.startswith("locked at ") and name in self.index:
                k = self.model.jnt_qposadr[self.index[name]]
                self.data.qpos[k] = self.model.qpos0[k] + float(line.outcome.split()[2].rstrip(","))

    def _place(self, kind: str, k: int, x: Array, columns: Sequence[int]) -> None:
        at, row, start = self.model.jnt_qposadr[k], self.model.jnt_dofadr[k], self.model.qpos0
        turn = np.eye(len(columns))
        if kind == "floating":
            quaternion = np.zeros(4)
            mujoco.mju_mulQuat(quaternion, start[at + 3 : at + 7], np.array([x[6], *x[3:6]]))
            self.data.qpos[at : at + 3] = start[at : at + 3] + _rotation(start[at + 3 : at + 7]) @ x[:3]
            self.data.qpos[at + 3 : at + 7] = quaternion
            turn[:3, :3] = _rotation(quaternion)
        elif kind == "spherical":
            self.data.qpos[at : at + 4] = [x[3], *x[:3]]
        else:
            self.data.qpos[at] = start[at] + x[0]
        self.H[np.ix_(range(row, row + len(columns)), columns)] = turn

    def accelerations(self, tau: Array) -> Array:
        """Without constraints, in our coordinates: M a = tau - bias + passive, for the joints that are not fixed."""
        d = self.data
        own = d.qfrc_actuator  # 0 if the flag disables actuation
        if self.actuated and self.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
            own = np.where(self.model.jnt_actgravcomp[self.model.dof_jntid], d.qfrc_gravcomp, 0.0)
        forces = self.H.T @ (own + d.qfrc_passive - d.qfrc_bias - self.M @ self._turning()) + tau
        return np.linalg.solve(self.mass_matrix, forces)

    def _turning(self) -> Array:
        """dH/dt v: MuJoCo's acceleration where ours is zero, because the body's axes rotate."""
        out = np.zeros(self.model.nv)
        for j, link in zip(self.m.joints, self.m.tree.links):
            if j.kind == "floating":
                linear, angular = self.v[list(link.v_index[:3])], self.v[list(link.v_index[3:])]
                row = self.model.jnt_dofadr[self.index[j.name]]
                out[row : row + 3] = self.H[row : row + 3, link.v_index[:3]] @ np.cross(angular, linear)
        return out


def _rotation(quaternion: Array) -> Array:
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, quaternion)
    return R.reshape(3, 3)
