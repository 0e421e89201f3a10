"""Forces in a record: drives, springs, friction and external forces, each in its own columns.

Checked by Newton's law of every free body, from the recorded accelerations, and by the balance of power.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.model import Frame, Mechanism, Spring
from bellcrank.scalar import sin
from loops import closed
from trees import ALL, close, random_tree

SPAN, STEP = 0.02, 5e-4
FREE = ("revolute", "prismatic", "spherical", "universal", "helical", "floating", "planar")


def wind(t: Any, pose: Any, velocity: Any) -> Any:
    """A force that depends on time, position and speed, with a moment."""
    return [3.0 * sin(9.0 * t) - velocity[0], 2.0 * pose[2, 3], 1.5], [0.4, -velocity[4], 0.3 * pose[0, 3]]


def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [2.0 * sin(5.0 * t + i) - 0.3 * s for i, s in enumerate(v)]


@cache
def tree(seed: int) -> bc.System:
    rng = np.random.default_rng(seed)
    kinds = [str(k) for k in rng.choice(FREE if seed % 2 else ALL, size=3)]
    m = random_tree(seed, kinds, [0, 1, 0], armature=True, passive=True)
    m, _ = closed(m, seed, [], springs=2)
    return bc.system(m, control=control, forces={"f2": wind, "f1": wind})


@cache
def linkage() -> bc.System:
    """A loop, a spring with a damper across it, friction, an actuator on the crank, and a hand on the coupler."""
    m = bc.zoo.four_bar()
    first, second = m.bodies[0].name, m.bodies[1].name
    frames = {**m.frames, "s.a": Frame("s.a", m.ground, point=(0.3, 0.2, 0.6)), "hand": Frame("hand", second)}
    frames["s.b"] = Frame("s.b", second, point=(0.1, 0.0, 0.05))
    joints = tuple(replace(j, damping=0.002, friction=0.1, friction_speed=50.0) for j in m.joints)
    ties = (Spring("s", "s.a", "s.b", 30.0, 0.2, 0.1),)
    m = replace(m, frames=frames, joints=joints, springs=ties)
    crank = next(j.name for j in m.joints if j.child == first)
    servo = [PD(crank, 1.0, 0.01)]
    return bc.system(m, servo, control=lambda t, q, v, x, u: [0.4 + sin(t)], forces={"hand": wind})


@cache
def run_of(what: str) -> bc.Record:
    if what == "linkage":
        s = linkage()
        q0, v0 = s.mechanism.assemble(s.mechanism.neutral(), {s.commands[0]: 3.0})
        return bc.simulate(s, SPAN, q0=q0, v0=v0, step=STEP)
    s = tree(int(what))
    q, v, _ = s.mechanism.random(int(what))
    return bc.simulate(s, SPAN, q0=q, v0=v, step=STEP)


RUNS = ["1", "2", "3", "linkage"]


def placed(m: Mechanism, run: bc.Record, frame: str) -> tuple[Any, Any]:
    X = m.pose(run.q, frame=frame)
    return X[..., :3, :3], X[..., :3, 3]


def change(m: Mechanism, run: bc.Record, of: Callable[[Any, Any], Any]) -> Any:
    """The derivative of a function of q and v along the recorded motion."""
    e = 1e-5
    there = [of(run.q + s * e * m.rate(run.q, run.v), run.v + s * e * run.a) for s in (-1, 1)]
    return (there[1] - there[0]) / (2 * e)


def newton(m: Mechanism, run: bc.Record, i: int) -> Any:
    """[force, moment about the origin of its frame] required by body i, without its weight."""
    b = m.bodies[i]
    R, _ = placed(m, run, b.name)
    omega = m.velocity(run.q, run.v, frame=b.name)[..., 3:]
    A = change(m, run, lambda q, v: m.velocity(q, v, frame=b.name))
    c = R @ np.array(b.com)
    inertia = R @ np.array(b.inertia) @ R.swapaxes(-1, -2)
    turned = np.cross(A[..., 3:], c) + np.cross(omega, np.cross(omega, c))
    force = b.mass * (A[..., :3] + turned - np.array(m.gravity))
    spin = np.einsum("tij,tj->ti", inertia, omega)
    moment = np.einsum("tij,tj->ti", inertia, A[..., 3:]) + np.cross(omega, spin) + np.cross(c, force)
    return np.concatenate([force, moment], axis=-1)


def moved(w: Any, arm: Any) -> Any:
    """A wrench about another point; its own point is at `arm` from there."""
    return np.concatenate([w[..., :3], w[..., 3:] + np.cross(arm, w[..., :3])], axis=-1)


def sprung(m: Mechanism, run: bc.Record) -> list[tuple[str, Any]]:
    """The forces of each spring on its two ends, computed independently."""
    found = []
    for s in m.springs:
        (_, a), (_, b) = placed(m, run, s.a), placed(m, run, s.b)
        u = [m.velocity(run.q, run.v, frame=f)[..., :3] for f in (s.a, s.b)]
        L = np.linalg.norm(b - a, axis=-1, keepdims=True)
        n = (b - a) / L
        T = s.stiffness * (L - s.length) + s.damping * ((u[1] - u[0]) * n).sum(-1, keepdims=True)
        found += [(s.a, np.concatenate([T * n, 0 * n], -1)), (s.b, np.concatenate([-T * n, 0 * n], -1))]
    return found


@pytest.mark.parametrize("what", RUNS)
def test_reactions_of_a_record_carry_every_body(what: str) -> None:
    run = run_of(what)
    m = run.mechanism
    assert m is not None
    given = (run.q, run.v, run.tau)
    reactions = m.reactions(*given, wrenches=run.wrenches)
    acts = [*run.wrenches.items(), *sprung(m, run)]
    if m.loops:
        for loop, w in zip(m.loops, np.moveaxis(m.loop_forces(*given, wrenches=run.wrenches), -2, 0), strict=True):
            (_, a), (_, b) = placed(m, run, loop.a), placed(m, run, loop.b)
            acts += [(loop.b, w), (loop.a, -moved(w, b - a))]
    for i, body in enumerate(m.bodies):
        _, origin = placed(m, run, body.name)
        total = reactions[..., i, :].copy()
        for k, other in enumerate(m.bodies):
            if m.parent[k] == i:
                total -= moved(reactions[..., k, :], placed(m, run, other.name)[1] - origin)
        for frame, w in acts:
            if m.frames[frame].body == body.name:
                total += moved(w, placed(m, run, frame)[1] - origin)
        close(total, newton(m, run, i), 1e-6)


@pytest.mark.parametrize("what", RUNS)
def test_forces_of_a_record_give_its_accelerations(what: str) -> None:
    run = run_of(what)
    m = run.mechanism
    assert m is not None
    close(m.forward_dynamics(run.q, run.v, run.tau, wrenches=run.wrenches), run.a, 1e-8)
    close(m.forward_dynamics(run.q, run.v, run.tau + run.external), run.a, 1e-8)
    close(run.passive, m.passive_torque(run.q, run.v), 1e-12)
    assert np.abs(run.external).max() > 0.01
    units = {run.column(f"{n}.{k}").unit for n in m.columns[1] for k in ("tau", "passive", "external")}
    assert units <= {"N", "N m"}


@pytest.mark.parametrize("what", RUNS)
def test_power_equals_the_rate_of_energy(what: str) -> None:
    """At each row, power equals the derivative of the energy; over the run, the record's own balance holds."""
    run = run_of(what)
    m = run.mechanism
    assert m is not None
    rate = change(m, run, lambda q, v: m.kinetic_energy(q, v) + m.potential_energy(q))
    parts = {name: run[name] for name in ("drive_power", "passive_power", "external_power")}
    close(sum(parts.values()), rate, 1e-6)
    close(parts["drive_power"], (run.tau * run.v).sum(-1), 1e-12)
    assert (parts["passive_power"] <= 0.0).all()
    assert run.residuals()["energy"] < 1e-5
    for name in parts:  # each part is large enough to be missed
        assert np.abs(parts[name]).max() > 1e-3


def test_a_record_that_forgot_its_drives_has_no_balance(tmp_path: Any) -> None:
    run = run_of("1")
    again = bc.load_record(run.save(tmp_path / "run.npz"))
    assert "energy" not in again.residuals()
    with pytest.raises(bc.InputError, match=r"has no tau.*including"):
        _ = again.tau
    m = run.mechanism
    assert m is not None
    names = [f"{n}.{k}" for n in m.columns[1] for k in ("tau", "external")]
    wrenches = [n for n in run.names if n.rpartition(".")[2] in ("fx", "fy", "fz", "mx", "my", "mz")]
    whole = bc.load_record(run.including(*names, *wrenches).save(tmp_path / "run.npz"))
    assert whole.residuals() == run.residuals()
    np.testing.assert_array_equal(whole.tau, run.tau)
    assert set(whole.wrenches) == {"f1", "f2"}


def test_summaries_include_forces_of_parts() -> None:
    """Work by an integral of the run equals that from its rows; and a wrench at its largest."""
    s = tree(1)
    q, v, _ = s.mechanism.random(1)
    asked = ["integral(drive_power)", "integral(passive_power)", "integral(external_power)", "max(f2.fx)"]
    short = bc.simulate(s, SPAN, q0=q, v0=v, step=STEP, summary=asked).final
    run = run_of("1")
    work = run["energy"][-1] - run["energy"][0]
    assert sum(short[name] for name in asked[:3]) == pytest.approx(work, abs=1e-6 * np.abs(run["energy"]).max())
    assert short["max(f2.fx)"] == pytest.approx(run["f2.fx"].max(), rel=1e-12)
