"""MJCF, MuJoCo's model files: compiled by MuJoCo itself (the extra `mjcf`; mujoco_process.py), read from its arrays.

Defaults, classes, includes and frames are its own language, and only it knows all of them. What is ours to decide: the
zero configuration is that of the file, so a coordinate is MuJoCo's less its `ref`, and balls and free bodies begin
unturned (q in our order, scalar last; a free body's velocity in its own axes, see docs/conventions.md). A body with
several joints hangs on massless ones in between, named BODY.JOINT. Equalities become loops that hold exactly, where
MuJoCo's give way a little. Contacts, tendons and actuators are not read, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, ReadError
from bellcrank.formats.locked_joints import Lock, locked
from bellcrank.formats.mujoco_process import compiled
from bellcrank.model import mechanism_of
from bellcrank.model.loops import TURNING
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import EQUATIONS, Array, Body, Frame, Joint, Limits, Line, Loop, matrix, triple
from bellcrank.model.quaternion import rotation_matrix

KINDS = ("floating", "spherical", "prismatic", "revolute")  # in the order of MuJoCo's mjtJoint
CONNECT, WELD, JOINT = 0, 1, 2  # of mjtEq
SITE = 6  # of mjtObj


def read_mjcf(
    text: str | None,
    source: str,
    *,
    gravity: Sequence[float] | None = None,
    check: str = "error",
    lock: Lock = (),
) -> Mechanism:
    """text: the model itself, or None to read the file `source` with all that it includes."""
    model, said = compiled(text, source)
    warned = [Line("MuJoCo", message, "warning") for message in said]
    reader = _Reader(model)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by its name below
        bodies, joints = reader.bodies()
    joints, held = locked(joints, lock)
    loops = list(reader.loops())
    joints, stopped = locked(joints, reader.stopped)
    lines = [*reader.lines, *warned, *held, *stopped, *_not_read(model)]
    try:
        return mechanism_of(
            _model_name(model, source),
            bodies,
            joints,
            reader.frames,
            loops,
            ground="world",
            gravity=model.opt.gravity.tolist() if gravity is None else gravity,
            source=source,
            lines=lines,
            checks=check,
        )
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None


def _model_name(model: Any, source: str) -> str:
    name = bytes(model.names).split(b"\0", 1)[0].decode("utf-8", "replace")
    return name or source.rsplit("/", 1)[-1].removesuffix(".xml")


class _Reader:
    def __init__(self, model: Any) -> None:
        self.m = model
        self.lines: list[Line] = []
        self.frames: list[Frame] = []
        self.stopped: dict[str, float] = {}
        self.offset = np.zeros((model.nbody, 3))  # our body frame in MuJoCo's: at the last joint's anchor
        self.joint_kinds: dict[str, str] = {}

    def body_name(self, i: int) -> str:
        return "world" if i == 0 else self.m.body(i).name or f"body{i}"

    def joint_name(self, i: int) -> str:
        return self.m.joint(i).name or f"joint{i}"

    def bodies(self) -> tuple[list[Body], list[Joint]]:
        m = self.m
        bodies, joints = [], []
        for i in range(1, m.nbody):
            name, parent = self.body_name(i), self.body_name(m.body_parentid[i])
            count, first = m.body_jntnum[i], m.body_jntadr[i]
            R, point = _rotation(m.body_quat[i]), m.body_pos[i] - self.offset[m.body_parentid[i]]
            if not count:
                joints.append(Joint(f"{name}.fixed", "fixed", parent, name, rotation=matrix(R), point=triple(point)))
            for k in range(first, first + count):
                j = self.joint(k)
                child = name if k == first + count - 1 else f"{name}.{j.name}"
                at = np.zeros(3) if j.kind == "floating" else m.jnt_pos[k]
                step = point + R @ (at - self.offset[i])
                joints.append(replace(j, parent=parent, child=child, rotation=matrix(R), point=triple(step)))
                self.offset[i], parent, R, point = at, child, np.eye(3), np.zeros(3)
                if child != name:
                    bodies.append(Body(child, declared=False))
            bodies.append(self.body(i, name))
        return bodies, joints

    def body(self, i: int, name: str) -> Body:
        m = self.m
        if m.body_mass[i] == 0.0:
            self.lines.append(Line(f'body "{name}"', "massless"))
            return Body(name, declared=False)
        R = _rotation(m.body_iquat[i])
        self.lines.append(Line(f'body "{name}"', f"{m.body_mass[i]:g} kg: kept"))
        com = triple(m.body_ipos[i] - self.offset[i])
        return Body(name, float(m.body_mass[i]), com, matrix(R @ np.diag(m.body_inertia[i]) @ R.T))

    def joint(self, k: int) -> Joint:
        m, name = self.m, self.joint_name(k)
        kind, v, at = KINDS[m.jnt_type[k]], m.jnt_dofadr[k], m.jnt_qposadr[k]
        self.joint_kinds[name] = kind
        forces: dict[str, Any] = {
            "armature": float(m.dof_armature[v]),
            "damping": float(m.dof_damping[v]),
            "friction": float(m.dof_frictionloss[v]),
            "stiffness": float(m.jnt_stiffness[k]),
        }
        self.lines.append(Line(f'joint "{name}"', f"{kind}: kept"))
        if kind in ("floating", "spherical"):
            return Joint(name, kind, "", "", **forces)
        ref = float(m.qpos0[at])
        if ref:
            self.lines.append(Line(f'joint "{name}"', f"ref {ref:g}: its coordinate is MuJoCo's less {ref:g}", "note"))
        low, high = m.jnt_range[k] - ref if m.jnt_limited[k] else (-np.inf, np.inf)
        rest = float(m.qpos_spring[at]) - ref
        limits = Limits(float(low), float(high), effort=self.effort(k, name))
        return Joint(name, kind, "", "", axis=triple(m.jnt_axis[k]), rest=rest, limits=limits, **forces)

    def effort(self, k: int, name: str) -> float:
        """What the joint's actuators may give together, actuatorfrcrange; ours is the same either way."""
        if not self.m.jnt_actfrclimited[k]:
            return math.inf
        low, high = map(float, self.m.jnt_actfrcrange[k])
        if low != -high:
            told = f"actuatorfrcrange {low:g} {high:g}: its effort is {max(abs(low), abs(high)):g} either way"
            self.lines.append(Line(f'joint "{name}"', told, "note"))
        return max(abs(low), abs(high))

    def loops(self) -> Iterator[Loop]:
        m = self.m
        for i in range(m.neq):
            name = m.equality(i).name or f"equality{i}"
            where, kind = f'equality "{name}"', m.eq_type[i]
            if not m.eq_active0[i]:
                self.lines.append(Line(where, "not active: not used", "note"))
            elif kind in (CONNECT, WELD):
                yield self.closure(where, name, i)
            elif kind == JOINT:
                yield from self.coupling(where, name, i)
            else:
                self.lines.append(Line(where, "not used: only connect, weld and joint are", "warning"))

    def closure(self, where: str, name: str, i: int) -> Loop:
        m, data, ids = self.m, self.m.eq_data[i], (self.m.eq_obj1id[i], self.m.eq_obj2id[i])
        held = m.eq_type[i] == WELD and data[10] > 0.0  # torquescale 0 holds the point only
        if m.eq_objtype[i] == SITE:
            places = [(m.site_bodyid[k], m.site_pos[k], _rotation(m.site_quat[k])) for k in ids]
        elif m.eq_type[i] == CONNECT:
            places = [(ids[0], data[0:3], np.eye(3)), (ids[1], data[3:6], np.eye(3))]
        else:
            places = [(ids[0], data[3:6], _rotation(data[6:10])), (ids[1], data[0:3], np.eye(3))]
        for letter, (body, point, R) in zip("ab", places, strict=True):
            at = triple(point - self.offset[body])
            self.frames.append(Frame(f"{name}.{letter}", self.body_name(body), matrix(R), at))
        kind = "fixed" if held else "spherical"
        self.lines.append(Line(where, f"closes a loop, {kind}: {EQUATIONS[kind]} equations, held exactly"))
        return Loop(name, kind, f"{name}.a", f"{name}.b")

    def coupling(self, where: str, name: str, i: int) -> Iterator[Loop]:
        """joint1 = c0 + c1 joint2 + ..., both from where they are in the file."""
        c0, c1, *rest = (float(x) for x in self.m.eq_data[i][:5])
        first = self.joint_name(self.m.eq_obj1id[i])
        if self.m.eq_obj2id[i] < 0 or (c1 == 0.0 and not any(rest)):
            self.stopped[first] = c0
            self.lines.append(Line(where, f'holds joint "{first}" at {c0:g}'))
            return
        second = self.joint_name(self.m.eq_obj2id[i])
        if any(rest):
            raise ReadError(
                f'{where} couples "{first}" to "{second}" by a polynomial {[c0, c1, *rest]}; expected a straight line '
                "(polycoef with two numbers and zeros)."
            )
        turning = [self.joint_kinds[x] in TURNING for x in (second, first)]
        self.lines.append(Line(where, f"{first} = {c1:g} * {second} + {c0:g}: kept, held exactly"))
        if turning == [False, True]:  # a rack turns first
            yield Loop(name, "rack", value=1.0 / c1, offset=-c0 / c1, joints=(first, second))
            return
        yield Loop(name, "rack" if turning[0] != turning[1] else "gear", value=c1, offset=c0, joints=(second, first))


def _not_read(m: Any) -> Iterator[Line]:
    if m.ngeom:
        yield Line(f"{m.ngeom} geoms", "not used beside their inertia: there is no contact", "note")
    if m.nu:
        yield Line(f"{m.nu} actuators", "not used: forces on joints are yours to give", "note")
    if m.ntendon:
        yield Line(f"{m.ntendon} tendons", "not used: what they pull is missing", "warning")
    if np.any(m.body_gravcomp):
        yield Line("gravcomp", "not used: all bodies have their weight", "warning")
    if any(np.any(getattr(m, name, 0.0)) for name in ("jnt_stiffnesspoly", "dof_dampingpoly")):
        yield Line("joints", "springs or dampers that are not linear: used as linear ones", "warning")


def _rotation(wxyz: Array) -> Array:
    """Of a quaternion with its scalar first, quarter turns exact to rounding."""
    w, x, y, z = (float(e) for e in wxyz / np.linalg.norm(wxyz))
    rows = rotation_matrix((x, y, z, w))
    R = np.array([[float(e) for e in row] for row in (rows.a, rows.b, rows.c)])
    return np.where(np.abs(R - np.round(R)) < 1e-15, np.round(R), R) + 0.0
