"""Reader of MJCF, MuJoCo's model files: compiled by MuJoCo itself (the extra `mjcf`; mujoco_process.py).

Defaults, classes, includes and frames are a language of their own, which only MuJoCo implements completely; the reader
uses the arrays of the compiled model. The zero configuration is that of the file, so a coordinate is MuJoCo's less its
`ref`, and ball joints and free bodies begin unrotated (q in our order, scalar last; a free body's velocity in its own
axes, see docs/conventions.md). A body with several joints is carried by massless ones in between, named BODY.JOINT.
Equalities become loops that hold exactly (mjcf_equalities.py). Flags decide what acts (mjcf_flags.py). Gravity
compensation reduces gravity where it can (mjcf_gravity.py). Everything else has a line in the report (mjcf_report.py),
and a table defines the treatment of every field of the compiled model (mjcf_fields.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.formats.locked_joints import Lock, lock_joints
from bellcrank.formats.mjcf_equalities import EqualityLoops
from bellcrank.formats.mjcf_fields import unknown_fields
from bellcrank.formats.mjcf_flags import ModelFlags, model_flags
from bellcrank.formats.mjcf_gravity import effective_gravity
from bellcrank.formats.mjcf_model import ElementNames, body_frame_offsets, joint_contributions, rotation
from bellcrank.formats.mjcf_report import report_lines
from bellcrank.formats.mujoco_process import compile_model
from bellcrank.lazy_import import optional_import
from bellcrank.model import mechanism_of
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import Body, Frame, Joint, Limits, ReportLine, matrix, triple

JOINT_KINDS = ("floating", "spherical", "prismatic", "revolute")  # in the order of MuJoCo's mjtJoint


def read_mjcf(
    text: str | None,
    source: str,
    *,
    gravity: Sequence[float] | None = None,
    check: str = "error",
    lock: Lock = (),
) -> Mechanism:
    """Read a mechanism from MJCF.

    Parameters
    ----------
    text
        The model itself, or None to read the file `source` with all that it includes.
    source
        Name of the file, also for errors and the report.
    gravity
        In world axes, m/s^2; None for that of the model.
    check, lock
        As in `read`.
    """
    model, warnings = compile_model(text, source)
    mujoco = optional_import("mujoco", "mjcf", source)
    flags = model_flags(model, mujoco)
    reader = _MjcfReader(model, flags)
    with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused by name below
        bodies, joints = reader.bodies()
    closing = EqualityLoops(model, reader.names, reader.offset, reader.joint_kinds, "equality" not in flags.off)
    joints, lock_lines = lock_joints(joints, lock)
    joints, held_lines = lock_joints(joints, closing.held_joints)
    g, gravity_lines = effective_gravity(model, flags, gravity)
    lines = [*(ReportLine("MuJoCo", message, "warning") for message in warnings), *reader.names.lines, *reader.lines]
    lines += [
        *lock_lines,
        *closing.lines,
        *held_lines,
        *gravity_lines,
        *report_lines(model, flags),
        *unknown_fields(model, mujoco.__version__),
    ]
    try:
        name, parts = _model_name(model, source), (bodies, joints, [*reader.sites(), *closing.frames], closing.loops)
        return mechanism_of(name, *parts, ground="world", gravity=g, source=source, lines=lines, checks=check)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None


def _model_name(model: Any, source: str) -> str:
    name = bytes(model.names).split(b"\0", 1)[0].decode("utf-8", "replace")
    return name or source.rsplit("/", 1)[-1].removesuffix(".xml")


class _MjcfReader:
    def __init__(self, model: Any, flags: ModelFlags) -> None:
        self.m, self.flags = model, flags
        self.names = ElementNames(model)
        self.lines: list[ReportLine] = []
        self.offset = body_frame_offsets(model)
        self.joint_kinds: dict[str, str] = {}

    def note(self, kind: str, name: str, text: str, level: str = "note") -> None:
        self.lines.append(ReportLine(f'{kind} "{name}"', text, level))

    def bodies(self) -> tuple[list[Body], list[Joint]]:
        m, names = self.m, self.names
        bodies, joints = [], []
        for i in range(1, m.nbody):
            name, parent = names.body[i], names.body[m.body_parentid[i]]
            count, first = m.body_jntnum[i], m.body_jntadr[i]
            R, point = rotation(m.body_quat[i]), m.body_pos[i] - self.offset[m.body_parentid[i]]
            anchor = np.zeros(3)
            if not count:
                held = names.motions.add_unique(f"{name}.fixed")
                joints.append(Joint(held, "fixed", parent, name, rotation=matrix(R), point=triple(point)))
            for k in range(first, first + count):
                j = self.joint(k)
                last = k == first + count - 1
                child = name if last else names.frames.add_unique(f"{name}.{j.name}")
                joint_anchor = np.zeros(3) if j.kind == "floating" else m.jnt_pos[k]
                step = point + R @ (joint_anchor - anchor)
                joints.append(replace(j, parent=parent, child=child, rotation=matrix(R), point=triple(step)))
                anchor, parent, R, point = joint_anchor, child, np.eye(3), np.zeros(3)
                if not last:
                    bodies.append(Body(child, declared=False))
            bodies.append(self.body(i, name))
        return bodies, joints

    def body(self, i: int, name: str) -> Body:
        m = self.m
        if m.body_mass[i] == 0.0 and not np.any(m.body_inertia[i]):
            self.note("body", name, "massless", "ok")
            return Body(name, declared=False)
        R = rotation(m.body_iquat[i])
        self.note("body", name, f"{m.body_mass[i]:g} kg: kept", "ok")
        com = triple(m.body_ipos[i] - self.offset[i])
        return Body(name, float(m.body_mass[i]), com, matrix(R @ np.diag(m.body_inertia[i]) @ R.T))

    def joint(self, k: int) -> Joint:
        m, name, disabled = self.m, self.names.joint[k], self.flags.off
        kind, v, reference = JOINT_KINDS[m.jnt_type[k]], m.jnt_dofadr[k], m.qpos0[m.jnt_qposadr[k]]
        self.joint_kinds[name] = kind
        armature, damping = joint_contributions(m, k)
        if armature or damping:
            self.note("joint", name, f"armature {armature:g} and damping {damping:g} of its actuators: kept", "ok")
        forces: dict[str, Any] = {
            "armature": float(m.dof_armature[v]) + armature,
            "damping": 0.0 if "damper" in disabled else float(m.dof_damping[v]) + damping,
            "friction": 0.0 if "friction" in disabled else float(m.dof_frictionloss[v]),
            "stiffness": 0.0 if "spring" in disabled else float(m.jnt_stiffness[k]),
        }
        self.note("joint", name, f"{kind}: kept", "ok")
        if kind in ("floating", "spherical"):
            return Joint(name, kind, "", "", **forces)
        ref = float(reference)
        if ref:
            self.note("joint", name, f"ref {ref:g}: its coordinate is MuJoCo's less {ref:g}")
        low, high = m.jnt_range[k] - ref if m.jnt_limited[k] else (-np.inf, np.inf)
        rest_position = float(m.qpos_spring[m.jnt_qposadr[k]]) - ref
        limits = Limits(float(low), float(high), effort=self.effort(k, name))
        return Joint(name, kind, "", "", axis=triple(m.jnt_axis[k]), rest=rest_position, limits=limits, **forces)

    def effort(self, k: int, name: str) -> float:
        """Return the limit of the sum of the joint's actuator forces, actuatorfrcrange; here it is symmetric."""
        if not self.m.jnt_actfrclimited[k]:
            return math.inf
        low, high = map(float, self.m.jnt_actfrcrange[k])
        if low != -high:
            text = f"actuatorfrcrange {low:g} {high:g}: its effort is {max(abs(low), abs(high)):g} either way"
            self.note("joint", name, text)
        return max(abs(low), abs(high))

    def sites(self) -> list[Frame]:
        """Return a frame for each site that has a name."""
        m, frames = self.m, []
        for i, name in enumerate(self.names.site):
            if name:
                body = m.site_bodyid[i]
                point = triple(m.site_pos[i] - self.offset[body])
                frames.append(Frame(name, self.names.body[body], matrix(rotation(m.site_quat[i])), point))
        if frames:
            self.lines.append(ReportLine(f"{len(frames)} sites", "frames of the same names"))
        if len(frames) < m.nsite:
            self.lines.append(ReportLine(f"{m.nsite - len(frames)} sites without a name", "not used"))
        return frames
