"""Every force element works on every target: lanes, GPU code, steppers, C, FMUs, derivatives.

Elements are combined into a few systems by what they connect, so that each target is compiled once for many of them.
The reference is the run on one core, whose elements have tests of their own (tests/laws).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import forces
from bellcrank.forces import (
    BearingFriction,
    Belt,
    Box,
    Bushing,
    Cable,
    Capsule,
    Contact,
    Cylinder,
    Element,
    EndStop,
    Gear,
    JointLaw,
    JointSpring,
    Latch,
    Law,
    LinearTyre,
    MagicTyre,
    NonlinearSpring,
    Plane,
    Rack,
    Sphere,
    Terrain,
    Worm,
    curve,
    damping_of,
)
from emulated import emulated
from targets.test_c99 import needs_cc
from targets.test_export_c import ran

__all__ = ["emulated"]  # a fixture
CURVE = curve([(-0.5, -90.0), (-0.1, -5.0), (0.0, 0.0), (0.1, 6.0), (0.5, 40.0)])
MAGIC = {
    "FNOMIN": 40.0, "PCX1": 1.65, "PDX1": 1.2, "PKX1": 22.0, "PCY1": 1.3, "PDY1": -1.05, "PKY1": -18.0, "PKY2": 1.8,
}  # fmt: skip
STEP, STEPS = 1e-3, 40
SECONDS = STEP * STEPS


def between() -> list[Element]:
    return [
        Bushing("rubber", "a", "b", (90.0, 80.0, 70.0, 3.0, 2.0, 1.0), (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)),
        NonlinearSpring("table", "ground", "b", CURVE, lambda u: 5.0 * u + u * u * u, 0.1),
        Cable("rope", "ground", "a", length=0.05, stiffness=50.0, damping=2.0),
        Law("mine", "ground", "b", lambda t, X, V: ([-3.0 * V[0], 0.0, 0.0], [0.0, -0.1 * V[4], 0.0])),
    ]


def joints() -> list[Element]:
    return [
        EndStop("stop", ("one",), -0.2, 0.05, 40.0, damping_of(0.4, 0.8)),
        JointSpring("torque", ("one",), CURVE, lambda u: 0.3 * u, rest=0.05),
        Gear("teeth", ("one", "two"), -2.5, 30.0, 0.1, 0.05),
        Rack("rack", ("one", "two"), 0.04, 1e3, 1e-3, 2.0),
        Belt("belt", ("one", "two"), 0.1, 0.2, 1e3, 20.0, 50.0),
        Worm("worm", ("one", "two"), 0.02, 0.1, 0.1, 1e4, 30.0, 0.05),
        JointLaw("own", ("one", "two"), lambda t, q, v: [-v[0], -0.5 * v[1]]),
        BearingFriction("pin", "two", 0.3, radius=0.05, thrust_radius=0.04, span=0.3, slow=0.02),
    ]


def contacts() -> list[Element]:
    how = {"stiffness": 300.0, "damping": 0.3, "friction": 0.5}
    hills = Terrain(lambda x, y: 0.02 * bc.sin(2.0 * x) - 0.05)
    return [
        Contact("ball", "ground", "a", Plane(), Sphere(0.3), **how),
        Contact("capsule", "ground", "a", Plane(), Capsule(0.2, 0.1), **how, exponent=1.5),
        Contact("box", "ground", "b", hills, Box((0.4, 0.5, 0.6)), **how),
        Contact("rim", "ground", "b", Plane(), Cylinder(0.3, 0.5), **how),
        Contact("pair", "a", "b", Sphere(0.12), Capsule(0.13, 0.5), **how),
        Contact("bristles", "ground", "a", Plane(), Sphere(0.25), **how, bristles=500.0),
    ]


def unresolved() -> list[Element]:
    """Contacts and friction that are too stiff for the step, which is therefore implicit."""
    how = {"stiffness": 3e4, "damping": 20.0, "friction": 0.7, "slow": 1e-3}
    return [
        Contact("foot", "ground", "a", Plane(), Sphere(0.2), **how),
        Contact("brush", "ground", "b", Plane(), Sphere(0.22), **how, bristles=2e4),
        Contact("touch", "a", "b", Sphere(0.12), Sphere(0.15), **how),
    ]


def tyres() -> list[Element]:
    return [
        LinearTyre("linear", "ground", "a", 0.3, 400.0, 5.0, longitudinal=80.0, lateral=50.0, friction=0.9),
        MagicTyre("magic", "ground", "b", 0.3, 400.0, 5.0, coefficients=MAGIC),
    ]


def flying() -> bc.Mechanism:
    b = bc.Builder("flying")
    b.body("a", mass=1.0, com=(0.02, 0, 0), inertia=(0.02, 0.03, 0.04))
    b.body("b", mass=2.0, com=(0, 0.03, 0), inertia=(0.05, 0.03, 0.04))
    b.joint("free_a", "floating", "ground", "a")
    b.joint("free_b", "floating", "ground", "b")
    return b.build()


def turning() -> bc.Mechanism:
    b = bc.Builder("turning")
    for name, I in (("one", 0.1), ("two", 0.3)):
        b.body(name, mass=1.0, inertia=(I, I, I))
        b.joint(name, "revolute", "ground", name)
    return b.build()


def light() -> bc.Mechanism:
    """The system of `flying` with a tenth of the mass."""
    b = bc.Builder("light")
    b.body("a", mass=0.1, com=(0.02, 0, 0), inertia=(0.002, 0.003, 0.004))
    b.body("b", mass=0.2, com=(0, 0.03, 0), inertia=(0.005, 0.003, 0.004))
    b.joint("free_a", "floating", "ground", "a", damping=0.1)
    b.joint("free_b", "floating", "ground", "b", friction=0.3)
    return b.build()


def carts() -> bc.Mechanism:
    """Two carts on one rail, the first with a brake."""
    b = bc.Builder("carts")
    for name, damping in (("one", 0.7), ("two", 0.0)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", "ground", name, axis=(1, 0, 0), damping=damping)
    return b.build()


def coupling() -> list[Element]:
    return [Latch("coupling", "one", "two", closed=True)]


SYSTEMS: dict[str, tuple[Callable[[], bc.Mechanism], Callable[[], list[Element]]]] = {
    "between": (flying, between),
    "joints": (turning, joints),
    "contacts": (flying, contacts),
    "tyres": (flying, tyres),
    "unresolved": (light, unresolved),
    "coupling": (carts, coupling),
}


def made(name: str) -> tuple[bc.System, Any, Any]:
    """Return the system, and a start in which its elements act."""
    mechanism, elements = SYSTEMS[name]
    m = mechanism()
    if name == "coupling":
        return bc.system(m, elements=elements()), np.array([0.15, 0.15]), np.array([2.0, 2.0])
    if m.nq == 2:
        return bc.system(m, elements=elements()), np.array([0.15, 0.02]), np.array([2.0, -1.0])
    q0, v0 = m.neutral(), np.array([0.4, 0.1, -0.2, 0.3, 2.0, 0.1, -0.2, 0.3, 0.1, 0.2, 1.0, -0.4])
    q0[:3], q0[7:10] = (0.02, 0.01, 0.18), (0.2, 0.1, 0.2)
    return bc.system(m, elements=elements()), q0, v0


def many(q0: Any, v0: Any) -> dict[str, Any]:
    """Return five starts, of which the first is the given one."""
    faster = np.linspace(1.0, 1.4, 5)[:, None]
    return {"q0": np.tile(q0, (5, 1)), "v0": faster * v0, "step": STEP, "every": 10 * STEP}


def test_no_element_is_forgotten() -> None:
    """Every kind of element is in a system and acts there; a new kind must be added to the table above."""
    kinds = {x for name in forces.__all__ if inspect.isclass(x := getattr(forces, name)) and issubclass(x, Element)} - {
        forces.Element,
        forces.Between,
        forces.Coupling,
    }
    assert kinds == {type(e) for _, elements in SYSTEMS.values() for e in elements()}
    for name in SYSTEMS:
        s, q0, v0 = made(name)
        run = bc.simulate(s, SECONDS, q0, v0, step=STEP)
        for e in (*s.elements, *s.solved_elements):
            parts = {n for n in run.names if n.startswith(f"{e.name}.")} - {z.name for z in s.states}
            assert max(np.abs(run[n]).max() for n in parts if not n.endswith((".energy", ".loss"))) > 0.1, e.name


def test_some_are_implicit() -> None:
    found = bc.Simulator(made("unresolved")[0]).dynamics.implicit
    assert found is not None
    assert len(found.elements) == 3
    assert found.joints


@pytest.mark.parametrize("name", SYSTEMS)
def test_lanes(name: str) -> None:
    s, q0, v0 = made(name)
    run = bc.simulate(s, SECONDS, **many(q0, v0))
    alone = bc.simulate(s, SECONDS, q0, 1.4 * v0, step=STEP, every=10 * STEP)
    np.testing.assert_allclose(run.q[4], alone.q, atol=1e-12)
    np.testing.assert_allclose(run.v[4], alone.v, atol=1e-11)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_gpus_code(emulated: Any, name: str) -> None:
    s, q0, v0 = made(name)
    cpu, gpu = (bc.simulate(s, SECONDS, **many(q0, v0), target=target) for target in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.q, cpu.q, atol=1e-11)
    np.testing.assert_allclose(gpu.v, cpu.v, atol=1e-10)


@pytest.mark.parametrize("name", SYSTEMS)
def test_steppers(name: str) -> None:
    s, q0, v0 = made(name)
    run = bc.simulate(s, SECONDS, q0, v0, step=STEP, every=SECONDS)
    env = bc.stepper(s, every=10 * STEP, step=STEP)
    x = [float(run[z.name][0]) for z in s.states]
    env.reset(start=np.concatenate([q0, v0, x]))
    for _ in range(STEPS // 10):
        env.step()
    y = np.asarray(env.state).reshape(-1)
    np.testing.assert_allclose(y[: s.mechanism.nq], run.q[-1], atol=1e-12)
    np.testing.assert_allclose(y[s.mechanism.nq :][: s.mechanism.nv], run.v[-1], atol=1e-11)


@pytest.mark.filterwarnings("ignore:export. state of rest:RuntimeWarning")  # another state is set before the steps
@needs_cc
@pytest.mark.parametrize("name", SYSTEMS)
def test_c(name: str, tmp_path: Path) -> None:
    s, q0, v0 = made(name)
    run = bc.simulate(s, SECONDS, q0, v0, step=STEP)
    rows = np.column_stack([run.q, run.v, *(run[z.name] for z in s.states)])
    bc.export(s, tmp_path / "it", step=STEP)
    y, status = ran(tmp_path / "it", s.mechanism.name, rows.shape[1], STEPS, rows[0], np.empty(0))
    assert status == 0
    np.testing.assert_allclose(y, rows[-1], rtol=0, atol=1e-12 * np.abs(rows).max())


@pytest.mark.filterwarnings("ignore:export. state of rest:RuntimeWarning")  # another state is set before the steps
@needs_cc
@pytest.mark.parametrize("name", SYSTEMS)
def test_fmus(name: str, tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
    s, q0, v0 = made(name)
    native = bc.simulate(s, SECONDS, q0, v0, step=STEP, every=10 * STEP)
    path = bc.export(s, tmp_path / "it.fmu", to="fmu3", step=STEP)
    m = s.mechanism
    start = {f"{n}.q": float(x) for n, x in zip(m.columns[0], q0, strict=True)}
    start |= {f"{n}.v": float(x) for n, x in zip(m.columns[1], v0, strict=True)}
    found = fmpy.simulate_fmu(
        str(path), stop_time=SECONDS, output_interval=10 * STEP, start_values=start, output=list(start)
    )
    for column in start:
        np.testing.assert_allclose(found[column], native[column], rtol=0, atol=1e-11, err_msg=column)


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives(name: str) -> None:
    """The gradient of a run by the starting velocity is the difference of runs."""
    s, q0, v0 = made(name)
    adjoint = bc.Adjoint(s, lambda t, q, v, x, u: v[0] * v[1], lambda t, q, v, x, u: sum(a * a for a in v) + q[0])
    found = adjoint.run(SECONDS, q0=q0, v0=v0, step=STEP)
    h, n = 1e-7, len(v0)  # contacts change the value within 1e-6: the difference converges with h**2
    nearby = np.tile(v0, (2 * n, 1)) + h * np.concatenate([np.eye(n), -np.eye(n)])
    values = adjoint.run(SECONDS, q0=np.tile(q0, (2 * n, 1)), v0=nearby, step=STEP).value
    differences = (values[:n] - values[n:]) / (2 * h)
    np.testing.assert_allclose(found.v0, differences, atol=2e-5 * max(1.0, np.abs(differences).max()))
