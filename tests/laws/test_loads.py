"""Loads of a run: Newton's law of the whole and of each body with any forces; largest values, and tables of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.errors import InputError
from bellcrank.forces import Bushing, EndStop, Gear, NonlinearSpring


def arm() -> bc.Mechanism:
    b = bc.Builder("arm")
    b.body("upper", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
    b.body("lower", mass=1.0, com=(1.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, -1, 0))
    b.joint("elbow", "revolute", "upper", "lower", point=(1, 0, 0), axis=(0, -1, 0), damping=0.3)
    b.frame("hand", "lower", point=(2, 0, 0.1))
    b.frame("wall", "ground", point=(1.5, 0.2, 0.7))
    return b.build()


def plant(m: bc.Mechanism) -> bc.System:
    return bc.system(
        m,
        [PD("shoulder", 30.0, 3.0)],
        lambda t, q, v, x, u: [0.4],
        forces={"hand": lambda t, X, V: ([2.0, 1.0, -5.0 * bc.sin(t)], [0.1, 0.2, 0.3])},
        elements=[
            NonlinearSpring("strut", "wall", "lower", lambda s: 80.0 * s + 200.0 * s**3, lambda u: 2.0 * u, 0.4),
            Bushing("rubber", "upper", "lower", (50.0, 60.0, 70.0, 1.0, 2.0, 3.0), (1.0,) * 6, rest=(1.0, 0.0, 0.0)),
            Gear("teeth", ("shoulder", "elbow"), -1.0, 40.0, 0.2),
            EndStop("stop", ("elbow",), upper=0.2, stiffness=500.0),
        ],
    )


@pytest.fixture(scope="module")
def run() -> bc.Record:
    return bc.simulate(plant(arm()), 0.5, [0.2, 0.1], [0.5, 1.0], step=1e-3)


def rate(m: bc.Mechanism, run: bc.Record, bodies: slice) -> tuple[Any, Any]:
    """Rates of momentum and of angular momentum about the origin of these bodies, by differences of the states."""
    h = 1e-5

    def momentum(q: Any, v: Any) -> Any:
        total = np.zeros((len(q), 6))
        for b in m.bodies[bodies]:
            X, V = m.pose(q, b.name), m.velocity(q, v, b.name)
            c = np.einsum("rij,j->ri", X[:, :3, :3], b.com)
            p = b.mass * (V[:, :3] + np.cross(V[:, 3:], c))
            I = np.einsum("rij,jk,rlk->ril", X[:, :3, :3], np.array(b.inertia), X[:, :3, :3])
            L = np.cross(X[:, :3, 3] + c, p) + np.einsum("rij,rj->ri", I, V[:, 3:])
            total += np.concatenate([p, L], axis=-1)
        return total

    forth = momentum(m.integrate(run.q, h * run.v), run.v + h * run.a)
    back = momentum(m.integrate(run.q, -h * run.v), run.v - h * run.a)
    change = (forth - back) / (2 * h)
    weight = np.zeros_like(change)
    for b in m.bodies[bodies]:
        X = m.pose(run.q, b.name)
        c = X[:, :3, 3] + np.einsum("rij,j->ri", X[:, :3, :3], b.com)
        G = np.tile(b.mass * np.array(m.gravity, float), (len(c), 1))
        weight += np.concatenate([G, np.cross(c, G)], axis=-1)
    return change, weight


def about_origin(m: bc.Mechanism, run: bc.Record, frame: str, W: Any) -> Any:
    p = m.pose(run.q, frame)[:, :3, 3]
    return np.concatenate([W[:, :3], W[:, 3:] + np.cross(p, W[:, :3])], axis=-1)


def test_newtons_law_of_each_body(run: bc.Record) -> None:
    """The recorded loads of pin, strut, bushing and hand give the complete motion of the lower arm.

    With the shoulder instead of the elbow and the bushing, they give that of both arms.
    """
    m, found = arm(), run.loads()
    pins = {"upper": found.wrench("shoulder"), "lower": found.wrench("elbow")}
    others = about_origin(m, run, "lower", found.wrench("strut")) + about_origin(m, run, "hand", found.wrench("hand"))
    change, weight = rate(m, run, slice(None))
    np.testing.assert_allclose(change, weight + about_origin(m, run, "upper", pins["upper"]) + others, atol=1e-6)
    change, weight = rate(m, run, slice(1, 2))
    rubber = about_origin(m, run, "lower", found.wrench("rubber"))
    elbow = about_origin(m, run, "lower", pins["lower"])
    np.testing.assert_allclose(change, weight + elbow + others + rubber, atol=1e-6)


def test_forces_are_kept_apart(run: bc.Record) -> None:
    """tau contains only the servo."""
    np.testing.assert_allclose(
        run["shoulder.tau"], 30.0 * (0.4 - run["shoulder.q"]) - 3.0 * run["shoulder.v"], atol=1e-12
    )
    assert np.abs(run["elbow.tau"]).max() == 0.0
    names = run.loads().record.names
    assert {"shoulder.tau", "elbow.element", "elbow.external", "elbow.passive", "shoulder.fx", "strut.fz"} <= set(names)


def test_axes_of_the_body(run: bc.Record) -> None:
    m = arm()
    world, body = run.loads().wrench("elbow"), run.loads("body").wrench("elbow")
    R = m.pose(run.q, "lower")[:, :3, :3]
    np.testing.assert_allclose(np.einsum("rij,rj->ri", R, body[:, :3]), world[:, :3], atol=1e-12)


def test_peaks_are_the_largest_loads(run: bc.Record, tmp_path: Path) -> None:
    found = run.loads()
    size = np.linalg.norm(found.wrench("elbow")[:, :3], axis=1)
    (peak,) = [p for p in found.peaks() if (p.name, p.what) == ("elbow", "force")]
    assert peak.size == size.max()
    assert peak.time == run.t[np.argmax(size)]
    (later,) = [p for p in found.peaks(begin=0.3) if (p.name, p.what) == ("elbow", "force")]
    assert later.time >= 0.3
    assert "elbow" in str(found)
    assert "force, N" in str(found)
    text = found.save(tmp_path / "loads.csv").read_text("utf-8")
    assert "elbow.fx" in text
    assert "N m" in text
    with pytest.raises(InputError, match="joint, loop"):
        found.wrench("knee")
    with pytest.raises(InputError, match="axes"):
        run.loads("local")
    with pytest.raises(InputError, match="no row"):
        found.peaks(begin=99.0)


def test_loops_batches_and_motions() -> None:
    """The joint loads of a driven four-bar: with a prescribed crank its torque is the moment about its axis."""
    m = bc.zoo.four_bar()
    crank = m.columns[1][0]
    q0, v0 = m.assemble({crank: 1.0}, {crank: 3.0}, fixed=[crank])
    run = bc.simulate(bc.system(m, motions={crank: lambda t: 1.0 + 3.0 * t}), 0.3, np.tile(q0, (2, 1)), v0, step=1e-3)
    found = run.loads()
    joint = next(j for j in m.joints if j.name == crank)
    R = m.pose(run.q, joint.child)[..., :3, :3]
    axis = np.einsum("...ij,j->...i", R, joint.axis)
    torque = np.einsum("...i,...i->...", axis, found.wrench(crank)[..., 3:])
    np.testing.assert_allclose(torque, run[f"{crank}.drive"], atol=1e-8)
    assert found.wrench(m.loops[0].name).shape == (*run.t.shape, 6)
    whole = m.momentum_rate(run.q, run.v, run.a)[..., :3]
    weight = sum(b.mass for b in m.bodies) * np.array(m.gravity, float)
    ground = [j.name for j in m.joints if j.parent == m.ground]
    held = sum(found.wrench(name)[..., :3] for name in ground)
    sign = 1.0 if m.frames[m.loops[0].a].body == m.ground else 0.0 if m.frames[m.loops[0].b].body != m.ground else -1.0
    np.testing.assert_allclose(whole, weight + held + sign * found.wrench(m.loops[0].name)[..., :3], atol=1e-6)
