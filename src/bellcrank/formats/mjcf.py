"""Reader of MJCF, MuJoCo's model files: compiled by MuJoCo itself (the extra `mjcf`; mjcf_model.py).

Defaults, classes, includes and frames are a language of their own, which only MuJoCo implements completely; the reader
uses the arrays of the compiled model. The zero configuration is that of the file, so a coordinate is MuJoCo's less its
`ref`, and ball joints and free bodies begin unrotated (q in our order, scalar last; a free body's velocity in its own
axes, see docs/conventions.md). A body with several joints is carried by massless ones in between, named BODY.JOINT.
Equalities become loops that hold exactly; MuJoCo's own are compliant. Flags decide what acts. Everything else has a
line in the report, and a table defines the treatment of every field of the compiled model (mjcf_report.py).

Gravity compensation reduces gravity where it can. MuJoCo lifts each body by the share `gravcomp` of its weight, and
applies that force joint by joint. Along a joint with `actuatorgravcomp` it belongs to the forces of the actuators: it
acts only if the model has an actuator, on any joint, and actuation is not disabled. A mechanism has one gravity for all
bodies. So compensation is used if it carries the same share of every body along every joint, and the report warns
otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, ReadError
from bellcrank.formats.locked_joints import Lock, lock_joints
from bellcrank.formats.mjcf_model import (
    NAMES_SHOWN,
    ElementNames,
    ModelFlags,
    body_frame_offsets,
    compile_model,
    element_list,
    joint_contributions,
    model_flags,
    report_names,
    rotation,
)
from bellcrank.formats.mjcf_report import report_lines, unknown_fields
from bellcrank.formats.urdf_loops import coupling
from bellcrank.lazy_import import optional_import
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.model.parts import EQUATIONS, Array, Body, Frame, Joint, Limits, Loop, ReportLine, matrix, triple

CONNECT, WELD, JOINT = 0, 1, 2  # of mjtEq
SITE = 6  # of mjtObj


class EqualityLoops:
    """Loops, the frames where they meet, joints that are held still with their values, and lines of the report."""

    def __init__(self, model: Any, names: ElementNames, offset: Array, kinds: Mapping[str, str], used: bool) -> None:
        """Convert the equalities of a compiled model.

        Parameters
        ----------
        model
            Compiled MuJoCo model.
        names
            Names of its elements.
        offset
            Origin of each body's frame in MuJoCo's body frame, (nbody, 3), m.
        kinds
            Joint types by name.
        used
            Equalities are not disabled by a flag.
        """
        self.m, self.names, self.offset, self.kinds = model, names, offset, kinds
        self.lines: list[ReportLine] = []
        self.frames: list[Frame] = []
        self.held_joints: dict[str, float] = {}
        self.loops = list(self._loops(used))

    def _loops(self, used: bool) -> Iterator[Loop]:
        for i, name in enumerate(self.names.equality):
            where, kind = f'equality "{name}"', self.m.eq_type[i]
            if not used:
                self.lines.append(ReportLine(where, "not used: a flag disables equalities", "note"))
            elif not self.m.eq_active0[i]:
                self.lines.append(ReportLine(where, "not active: not used", "note"))
            elif kind in (CONNECT, WELD):
                yield self._closure(where, name, i)
            elif kind == JOINT:
                yield from self._coupling(where, name, i)
            else:
                self.lines.append(ReportLine(where, "not used: only connect, weld and joint are", "warning"))

    def _closure(self, where: str, name: str, i: int) -> Loop:
        m, data, ids = self.m, self.m.eq_data[i], (self.m.eq_obj1id[i], self.m.eq_obj2id[i])
        held = m.eq_type[i] == WELD and data[10] > 0.0  # torquescale 0 constrains the point only
        if m.eq_objtype[i] == SITE:
            places = [(m.site_bodyid[k], m.site_pos[k], rotation(m.site_quat[k])) for k in ids]
        elif m.eq_type[i] == CONNECT:
            places = [(ids[0], data[0:3], np.eye(3)), (ids[1], data[3:6], np.eye(3))]
        else:
            places = [(ids[0], data[3:6], rotation(data[6:10])), (ids[1], data[0:3], np.eye(3))]
        ends = [self.names.frames.add_unique(f"{name}.{letter}") for letter in "ab"]
        for end, (body, point, R) in zip(ends, places, strict=True):
            self.frames.append(Frame(end, self.names.body[body], matrix(R), triple(point - self.offset[body])))
        kind = "fixed" if held else "spherical"
        self.lines.append(ReportLine(where, f"closes a loop, {kind}: {EQUATIONS[kind]} equations, held exactly"))
        return Loop(name, kind, ends[0], ends[1])

    def _coupling(self, where: str, name: str, i: int) -> Iterator[Loop]:
        """Convert joint1 = c0 + c1 joint2 + ..., both relative to their values in the file."""
        c0, c1, *more = (float(x) for x in self.m.eq_data[i][:5])
        first = self.names.joint[self.m.eq_obj1id[i]]
        if self.m.eq_obj2id[i] < 0 or (c1 == 0.0 and not any(more)):
            self.held_joints[first] = c0
            self.lines.append(ReportLine(where, f'holds joint "{first}" at {c0:g}'))
            return
        second = self.names.joint[self.m.eq_obj2id[i]]
        if any(more):
            raise ReadError(
                f'{where} couples "{first}" to "{second}" by a polynomial {[c0, c1, *more]}; expected a straight line '
                "(polycoef with two numbers and zeros)."
            )
        self.lines.append(ReportLine(where, f"{first} = {c1:g} * {second} + {c0:g}: kept, held exactly"))
        yield coupling(name, {joint: self.kinds[joint] for joint in (second, first)}, c1, c0)


def effective_gravity(
    model: Any, flags: ModelFlags, user_gravity: Sequence[float] | None
) -> tuple[list[float], list[ReportLine]]:
    """Return gravity in world axes, and lines for the report.

    Parameters
    ----------
    model
        Compiled MuJoCo model.
    flags
        Its flags.
    user_gravity
        The user's gravity, or None for that of the model. It also replaces a gravity that a flag disables.
    """
    g: Array = np.array(model.opt.gravity if user_gravity is None else user_gravity, float)
    lines = []
    if user_gravity is None and "gravity" in flags.off:
        g = np.zeros(3)
        lines.append(ReportLine("gravity", "0, as a flag disables it"))
    if flags.passive and g.any():
        compensation = _Compensation(model, flags)
        lines += compensation.lines()
        share = compensation.common_share
        if share:
            g = g * (1.0 - share)
            text = f"{share:g} of the weight of all bodies: gravity is {g.tolist()}"
            lines.append(ReportLine("gravcomp", text, "note"))
    return (g + 0.0).tolist(), lines


class _Compensation:
    """Gravity compensation of a model: its bodies, the joints along which it acts, and their common share."""

    def __init__(self, model: Any, flags: ModelFlags) -> None:
        self.model = model
        self.through_actuators = np.array(getattr(model, "jnt_actgravcomp", np.zeros(model.njnt)), bool)
        self.why_not = "the model has no actuator" if not getattr(model, "nactuator", model.nu) else ""
        if "actuation" in flags.off:
            self.why_not = "a flag disables actuation"
        idle = self.through_actuators & bool(self.why_not)
        heavy = model.body_mass > 0.0
        self.lifted = heavy & _carried_by(model, ~idle)  # bodies along some joint
        self.hanging = heavy & _carried_by(model, idle)  # bodies along some joint without compensation
        self.acts = bool(np.any(model.body_gravcomp > 0.0))  # MuJoCo counts positive shares, and then uses all
        self.bodies = np.flatnonzero((self.lifted | self.hanging) & (model.body_gravcomp != 0.0))
        shares = {*model.body_gravcomp[self.lifted].tolist(), *([0.0] if self.hanging.any() else [])}
        self.uniform = len(shares) < 2 or not self.acts
        self.common_share = float(shares.pop()) if shares and self.uniform and self.acts else 0.0

    def lines(self) -> Iterator[ReportLine]:
        """Yield report lines for compensation that is not used, or that goes through actuators."""
        if not len(self.bodies):
            return
        names = report_names(self.model, "body")
        bodies = element_list("body", [names[i] for i in self.bodies])
        if not self.acts:
            yield ReportLine(bodies, "gravcomp: not used, as in MuJoCo where no body has a positive one", "note")
            return
        if not self.uniform:
            shares = ", ".join(f"{self.model.body_gravcomp[i]:g}" for i in self.bodies[:NAMES_SHOWN])
            more = ", ..." if len(self.bodies) > NAMES_SHOWN else ""
            how = "they have their weight. A force on a frame (bc.system, forces=) can carry them"
            condition = f" In MuJoCo it acts on joints without actuatorgravcomp only, because {self.why_not}"
            text = f"gravcomp {shares}{more}: not used, {how}"
            yield ReportLine(bodies, f"{text}.{condition}" if np.any(self.hanging[self.bodies]) else text, "warning")
        elif self.common_share:
            yield from self._actuator_lines()
        else:
            text = f"gravcomp: acts on no joint, because of actuatorgravcomp, and {self.why_not}"
            yield ReportLine(bodies, text, "note")

    def _actuator_lines(self) -> Iterator[ReportLine]:
        names = report_names(self.model, "joint")
        joints = [name for name, x in zip(names, self.through_actuators, strict=True) if x]
        if joints:
            text = "actuatorgravcomp: the compensation acts while actuators are enabled, driven or not; here always"
            yield ReportLine(element_list("joint", joints), text, "note")
        limited = self.through_actuators & np.array(self.model.jnt_actfrclimited, bool)
        joints = [name for name, x in zip(names, limited, strict=True) if x]
        if joints:
            text = "actuatorgravcomp: the compensation is limited by actuatorfrcrange in MuJoCo, and has no limit here"
            yield ReportLine(element_list("joint", joints), text, "warning")


def _carried_by(model: Any, joints: Array) -> Array:
    """Return for each body whether one of the `joints` (a mask) carries it, or a body above it."""
    carried: Array = np.zeros(model.nbody, bool)
    carried[model.jnt_bodyid[joints]] = True
    for i in range(1, model.nbody):  # parents come first
        carried[i] |= carried[model.body_parentid[i]]
    return carried


JOINT_KINDS = ("floating", "spherical", "prismatic", "revolute")  # in the order of MuJoCo's mjtJoint


def read_mjcf(
    text: str | None, source: str, *, gravity: Sequence[float] | None = None, check: str = "error", lock: Lock = ()
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
