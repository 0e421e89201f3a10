"""Runs of one mechanism in MuJoCo and in Pinocchio, made from its own numbers: RK4, no joint forces.

MuJoCo steps in its own loop (`mj_step` with a number of steps), with contacts, constraints and sensors off. Pinocchio
has no integrator for this, so its loop is ours (pinocchio_rk4.cpp), in the builds of bench/baseline.py. Both return the
state at the end besides the time, to check that the runs are the same.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.model import Mechanism
from bench import baseline

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Run:
    """The best nanoseconds per step, and q and v after the last."""

    ns: float
    end: Array


def revolute(m: Mechanism) -> None:
    others = [j.name for j in m.joints if j.kind != "revolute" or j.mimic is not None]
    if others:
        raise ValueError(f"{m.name}: only revolute joints are written for the peers; {', '.join(others)} are not.")


# -- MuJoCo


def mjcf(m: Mechanism, step: float) -> str:
    revolute(m)

    def numbers(*values: float) -> str:
        return " ".join(repr(float(x)) for x in values)

    def body(i: int) -> str:
        b, j = m.bodies[i], m.joints[i]
        R, I = np.array(j.rotation), np.array(b.inertia)
        inside = "".join(body(k) for k, p in enumerate(m.parent) if p == i)
        full = numbers(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        forces = f'armature="{j.armature!r}" damping="{j.damping!r}"'
        return (
            f'<body name="{b.name}" pos="{numbers(*j.point)}" xyaxes="{numbers(*R[:, 0], *R[:, 1])}">'
            f'<joint name="{j.name}" type="hinge" axis="{numbers(*j.axis)}" {forces}/>'
            f'<inertial pos="{numbers(*b.com)}" mass="{b.mass!r}" fullinertia="{full}"/>{inside}</body>'
        )

    roots = "".join(body(i) for i, p in enumerate(m.parent) if p < 0)
    return (
        '<mujoco><compiler angle="radian" autolimits="false"/>'
        f'<option gravity="{numbers(*m.gravity)}" integrator="RK4" timestep="{step!r}">'
        '<flag contact="disable" constraint="disable" sensor="disable"/></option>'
        f"<worldbody>{roots}</worldbody></mujoco>"
    )


def mujoco_run(m: Mechanism, q: Array, v: Array, steps: int, step: float, seconds: float = 1.0) -> Run:
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf(m, step))
    data = mujoco.MjData(model)
    places = [model.joint(j.name).qposadr[0] for j in m.joints]
    best, until, first = float("inf"), time.perf_counter() + seconds, True
    while first or time.perf_counter() < until:
        mujoco.mj_resetData(model, data)
        data.qpos[places], data.qvel[places] = q, v
        t0 = time.thread_time_ns()
        mujoco.mj_step(model, data, steps)
        best, first = min(best, (time.thread_time_ns() - t0) / steps), False
        if any(w.number for w in data.warning):
            raise RuntimeError(f"MuJoCo gave up on {m.name}: its run is no run to compare with.")
    return Run(best, np.concatenate([data.qpos[places], data.qvel[places]]))


# -- Pinocchio


def depth_first(m: Mechanism) -> list[int]:
    """Return the bodies depth first, so that each subtree is consecutive, as constraintDynamics requires."""
    order: list[int] = []

    def visit(i: int) -> None:
        order.extend([i] if i >= 0 else [])
        for k in (k for k, p in enumerate(m.parent) if p == i):
            visit(k)

    visit(-1)
    return order


def pinocchio_model(m: Mechanism, order: Sequence[int] | None = None) -> Any:
    """Return Pinocchio's model with its joints in our order, or in another one."""
    import pinocchio as pin

    revolute(m)
    model = pin.Model()
    model.gravity.linear = np.array(m.gravity)
    aligned = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}
    ids: dict[int, int] = {-1: 0}
    order = range(len(m.bodies)) if order is None else order
    for i in order:
        b, j = m.bodies[i], m.joints[i]
        kind = aligned.get(tuple(j.axis))
        joint = kind() if kind else pin.JointModelRevoluteUnaligned(np.array(j.axis))
        ids[i] = model.addJoint(ids[m.parent[i]], joint, pin.SE3(np.array(j.rotation), np.array(j.point)), j.name)
        inertia = pin.Inertia(b.mass, np.array(b.com), np.array(b.inertia))
        model.appendBodyToJoint(ids[i], inertia, pin.SE3.Identity())
    model.armature = np.array([m.joints[i].armature for i in order])
    return model


def pinocchio_runs(
    m: Mechanism, q: Array, v: Array, steps: int, step: float, core: int, seconds: float = 0.5
) -> Sequence[Run]:
    """Run every build, the usual one first."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        pinocchio_model(m).saveToText(f"{folder}/model.txt")
        np.savetxt(f"{folder}/start.txt", np.concatenate([q, v]), fmt="%.17g")
        for program in baseline.build(baseline.RK4).values():
            given = [str(core), f"{folder}/model.txt", f"{folder}/start.txt", str(steps), repr(step), str(seconds)]
            said = json.loads(subprocess.run([program, *given], stdout=subprocess.PIPE, text=True, check=True).stdout)
            found.append(Run(said["ns_min"], np.array(said["end"])))
    return found
