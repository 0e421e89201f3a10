"""Simulations whose results on a GPU must equal those on the CPU.

test_cuda_loop.py emulates the GPU, test_cuda_device.py needs a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.actuators import PID, DCMotor, SpringDamper, StribeckFriction
from bellcrank.integrate import INTEGRATORS
from bellcrank.model import Mechanism
from bellcrank.scalar import sin

Case = tuple[Any, float, dict[str, Any]]  # a mechanism or system, seconds, and further arguments of simulate
G = 9.81


def arm(name: str, adaptive: bool) -> Case:
    """Rows between the adaptive steps of one integrator, and at some of the fixed steps of another."""
    m = bc.zoo.load("stanford")
    q, v, _ = m.random(0, (5,))
    how = {"tolerance": 1e-8} if adaptive else {"step": 1e-3}
    return m, 0.1, {"q0": 0.3 * q, "v0": 0.3 * v, "integrator": name, "every": 0.01, **how}


def ball() -> Mechanism:
    b = bc.Builder("ball", gravity=(0, 0, -G))
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))
    return b.build()


BOUNCE = bc.Event("bounce", lambda t, q, v, x, u: q["z"], "switch", -1, lambda t, q, v, x, u: {"v": -0.9 * v})
TOP = bc.Event("top", lambda t, q, v, x, u: v["z"], "record", -1)


def bounces(**how: Any) -> Case:
    """More bounces than the record has room for at first, and different ones in every run."""
    return ball(), 6.0, {"q0": np.linspace(0.2, 1.0, 5)[:, None], "every": 0.5, "events": [BOUNCE, TOP], **how}


def stops(**how: Any) -> Case:
    """Some runs meet the floor, and others reach the end time first."""
    floor = bc.Event("floor", lambda t, q, v, x, u: q["z"])
    return ball(), 0.5, {"q0": np.linspace(0.1, 3.0, 6)[:, None], "every": 0.1, "events": [floor], **how}


def fed(**how: Any) -> Case:
    """Inputs, parameters and starts that differ in every run."""
    m = bc.zoo.puma600()
    m = m.free(f"{m.bodies[2].name}.mass")
    (name,) = m.parameters

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
        return [u[0] - 2.0 * q[i] - 0.5 * v[i] + 0.1 * sin(t) for i in range(6)]

    push = np.random.default_rng(0).normal(size=(4, 10))
    settings = {"inputs": {"push": push}, "input_step": 0.01, "parameters": {name: np.linspace(2.0, 8.0, 4)}}
    return bc.system(m, control=control, inputs=["push"]), 0.1, {"every": 0.01, **settings, **how}


def fed_event(**how: Any) -> Case:
    """An event inside a step that ends with new inputs; the event must not use them."""
    s = bc.system(ball(), control=lambda t, q, v, x, u: [u["lift"]], inputs=["lift"])
    lift = np.random.default_rng(1).uniform(0, 12, (3, 20))
    more = {"inputs": {"lift": lift}, "input_step": 0.05, "every": 0.05, "events": [BOUNCE, TOP]}
    return s, 1.0, {"q0": np.linspace(0.1, 0.3, 3)[:, None], **more, **how}


def actuated(**how: Any) -> Case:
    """Motors with currents, limits and friction, and a controller with an integral: states beside those of joints."""
    m = bc.zoo.chain(3)
    a, b, c = (joint.name for joint in m.joints)
    parts = [
        DCMotor(a, k=0.05, R=2.0, L=0.01, n=100.0, voltage=24.0), PID(b, kp=40.0, ki=20.0, kd=2.0, limit=9.0),
        StribeckFriction(b, F_c=1.0, F_s=1.5), SpringDamper(c, k=3.0, d=0.5, rest=0.1),
    ]  # fmt: skip
    s = bc.system(m, parts, control=lambda t, q, v, x, u: [12.0 * sin(9.0 * t) - 30.0 * q[0], 0.5])
    return s, 0.2, {"q0": np.random.default_rng(2).normal(size=(4, 3)), "every": 0.02, **how}


def rod(at: Sequence[float] = (0.1, 1.0, 2.5), **how: Any) -> Case:
    """Closed loops that need other dependent coordinates during the run."""
    m = bc.zoo.rod_pendulum()
    q = np.array([m.assemble([1 - np.cos(a), -np.sin(a), 0.0])[0] for a in at])
    return m, 1.5, {"q0": q, "every": 0.1, **how}


def rod_event(**how: Any) -> Case:
    m, seconds, settings = rod(**how)
    low = bc.Event("half", lambda t, q, v, x, u: q[0] - 0.5, "record")
    return m, seconds, settings | {"events": [low]}


def derivatives(**how: Any) -> Case:
    m = ball().free("ball.mass")
    s = bc.system(m, control=lambda t, q, v, x, u: [-4.0 * q["z"] - 0.3 * v["z"]])
    more = {"parameters": {"ball.mass": np.array([0.5, 1.0, 2.0])}, "sensitivities": ["ball.mass", "z.q"]}
    return s, 1.0, {"q0": [0.1], "every": 0.1, **more, **how}


ADAPTIVE = [name for name, i in INTEGRATORS.items() if i.adaptive]
CHOSEN: dict[str, Any] = {"integrator": "dopri5", "tolerance": 1e-9}
MULTISTEP: dict[str, Any] = {"integrator": "abm4"}
ARM = ("min(*.v)", "max(*.a)", "max(energy)", "rms(*.v)", "integral(kinetic_energy)")
BALL = ("min(z.v)", "max(z.v)", "t_max(z.v)", "max(z.q)", "mean(z.q)", "final(energy)")
CASES: dict[str, Callable[[], Case]] = {
    **{f"arm {name}": lambda name=name: arm(name, False) for name in INTEGRATORS},
    **{f"arm {name} chosen": lambda name=name: arm(name, True) for name in ADAPTIVE},
    "bounces rk4": lambda: bounces(step=0.01),
    "bounces dopri5": lambda: bounces(**CHOSEN),
    "bounces abm4": lambda: bounces(step=0.01, **MULTISTEP),
    "bounces abm4 chosen": lambda: bounces(tolerance=1e-9, **MULTISTEP),
    "bounces each step": lambda: _each(bounces(**CHOSEN)),
    "limited rk4": lambda: ended(bounces(step=0.01), max_steps=60),
    "limited dopri5": lambda: ended(bounces(**CHOSEN), max_steps=9),
    "stops rk4": lambda: stops(step=0.01),
    "stops dopri5": lambda: stops(**CHOSEN),
    "stops rodas4": lambda: stops(integrator="rodas4", tolerance=1e-9),
    "stops final": lambda: ended(stops(**CHOSEN), keep="final"),
    "fed rk4": lambda: fed(step=1e-3),
    "fed abm4": lambda: fed(step=1e-3, **MULTISTEP),
    "fed dopri5": lambda: fed(**CHOSEN),
    "fed abm4 chosen": lambda: fed(tolerance=1e-9, **MULTISTEP),
    "fed event rk4": lambda: fed_event(step=0.01),
    "fed event abm4": lambda: fed_event(step=0.01, **MULTISTEP),
    "fed event dopri5": lambda: fed_event(**CHOSEN),
    "actuated rk4": lambda: actuated(step=1e-3),
    "actuated rodas4": lambda: actuated(integrator="rodas4", tolerance=1e-8),
    "rod rk4": lambda: rod(step=1e-3),
    "rod in pairs": lambda: rod((0.1, 0.12, 1.0, 1.03, 2.5, 2.55), step=1e-3),
    "rod alone": lambda: (*rod()[:2], {"step": 1e-3, "every": 0.1}),
    "rod dopri5": lambda: rod(**CHOSEN),
    "rod event": lambda: rod_event(step=1e-3),
    "rod final": lambda: ended(rod(**CHOSEN), keep="final"),
    "rod projected": lambda: rod(step=1e-3, form="projected"),
    "summary arm rk4": lambda: summed(arm("rk4", False), *ARM),
    "summary arm abm4": lambda: summed(arm("abm4", False), *ARM),
    "summary arm dopri5 chosen": lambda: summed(arm("dopri5", True), *ARM),
    "summary bounces rk4": lambda: summed(bounces(step=0.01), *BALL),
    "summary bounces dopri5": lambda: summed(bounces(**CHOSEN), *BALL),
    "summary stops rodas4": lambda: summed(stops(integrator="rodas4", tolerance=1e-9), *BALL),
    "summary fed rk4": lambda: summed(fed(step=1e-3), "max(*.tau)", "rms(*.tau)", "min(*.a)"),
    "summary fed abm4 chosen": lambda: summed(fed(tolerance=1e-9, **MULTISTEP), "max(*.tau)", "mean(*.tau)"),
    "summary rod rk4": lambda: summed(rod(step=1e-3), "max(*.v)", "min(*.q)", "integral(*.q)"),
    "summary derivatives": lambda: summed(derivatives(step=0.01), "max(d(z.v)/d(ball.mass))", "integral(z.q)"),
    "derivatives rk4": lambda: derivatives(step=0.01),
    "derivatives dopri5": lambda: derivatives(**CHOSEN),
}


def ended(case: Case, **more: Any) -> Case:
    """Return the case with a record of the end only."""
    m, seconds, settings = case
    return m, seconds, {key: x for key, x in settings.items() if key != "every"} | more


def summed(case: Case, *asked: str) -> Case:
    return ended(case, summary=asked)


def _each(case: Case) -> Case:
    m, _, settings = case
    return m, 1.0, settings | {"every": "step"}


def done(name: str, target: str, **more: Any) -> bc.Record:
    what, seconds, settings = CASES[name]()
    return bc.simulate(what, seconds, target=target, progress=False, **settings, **more)


def same(gpu: bc.Record, cpu: bc.Record, tolerance: float = 1e-9) -> None:
    """Check rows, events, and the reason why each run stopped."""
    assert gpu.provenance["target"] == "cuda"
    assert list(gpu.columns) == list(cpu.columns)
    for name in cpu.columns:
        want = np.asarray(cpu[name])
        np.testing.assert_allclose(gpu[name], want, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=name)
    happened, expected = (run.provenance.get("events", []) for run in (gpu, cpu))
    assert [(e["run"], e["event"]) for e in happened] == [(e["run"], e["event"]) for e in expected]
    for a, b in zip(happened, expected, strict=True):
        assert abs(a["time"] - b["time"]) < 10 * tolerance
        np.testing.assert_allclose(a["y"], b["y"], rtol=10 * tolerance, atol=10 * tolerance)
    assert [s.reason for s in gpu.stops] == [s.reason for s in cpu.stops]
    np.testing.assert_allclose([s.time for s in gpu.stops], [s.time for s in cpu.stops], atol=10 * tolerance)
