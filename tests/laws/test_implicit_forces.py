"""Damping, dry friction and contacts with too long steps: implicit forces still damp and hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD, PID, SpringDamper, StribeckFriction
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.forces import Box, Contact, Plane, Sphere, Terrain
from bellcrank.integrate import INTEGRATORS
from bellcrank.sim.program import implicit_forces
from loops import at_random, closed
from trees import ALL, random_tree

EXPLICIT = [name for name, method in INTEGRATORS.items() if not method.stiff]
FORMS = ["tree", "minimal", "projected", "lagrange"]
UNRESOLVED = "ignore:.*bounce off less:RuntimeWarning"
H = 1e-3
MASS, SIDE = 2.0, 3.0  # kg; and the mass that the loop couples to the block

# Steps that are too long for the forces must stay stable; such a run may report that it is not resolved.
STABLE = ("end", "not resolved")


def settings(form: str) -> dict[str, Any]:
    return {} if form == "tree" else {"form": form}


def geared(b: Any, first: str, kind: str, loop: bool) -> bc.Mechanism:
    """With loop: a gear couples a second body of SIDE kg or kg m^2 to the first."""
    if loop:
        b.body("side", mass=SIDE, inertia=(SIDE, SIDE, SIDE))
        b.joint("side", kind, "ground", "side", axis=(0, 1, 0))
        b.close("gear", "gear", joints=(first, "side"), ratio=1.0)
    return b.build()


def rotor(loop: bool = False, inertia: float = 1.0, **numbers: float) -> bc.Mechanism:
    b = bc.Builder("rotor", gravity=(0, 0, 0))
    b.body("rotor", mass=1.0, inertia=(1.0, inertia, 1.0))
    b.joint("hinge", "revolute", "ground", "rotor", axis=(0, 1, 0), **numbers)
    return geared(b, "hinge", "revolute", loop)


def sled(angle: float, loop: bool) -> bc.Mechanism:
    """A block on a slope that slides along x and sinks along z."""
    b = bc.Builder("sled", gravity=(9.81 * math.sin(angle), 0, -9.81 * math.cos(angle)))
    b.body("carriage")
    b.body("block", mass=MASS)
    b.joint("x", "prismatic", "ground", "carriage", axis=(1, 0, 0))
    b.joint("z", "prismatic", "carriage", "block", axis=(0, 0, 1))
    return geared(b, "x", "prismatic", loop)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EXPLICIT)
def test_damped_joints_come_to_rest_without_turning_back(name: str, form: str) -> None:
    """For every h D/M the speed falls in every step and never changes its sign."""
    for rate in (1e2, 9e2, 3e3, 1e5, 1e8):
        inertia = 1.0 + SIDE * (form != "tree")
        m = rotor(form != "tree", damping=rate * inertia)
        v0 = [1.0] * m.nv
        run = bc.simulate(m, 0.05, None, v0, integrator=name, step=H, every="step", **settings(form))
        v = run["hinge.v"]
        assert run.stops[0].reason in STABLE
        assert (np.diff(v) <= 1e-15).all()
        assert (v > -1e-15).all()
        assert v[-1] < 0.02


@pytest.mark.parametrize("name", EXPLICIT)
def test_every_resistance_damps(name: str) -> None:
    """Joint friction and actuators with damping, on a rotor that is far too light for the step."""
    parts: dict[str, tuple[dict[str, float], list[Any]]] = {
        "dry": ({"friction": 2.0}, []),
        "Stribeck": ({}, [StribeckFriction("hinge", 2.0, 3.0)]),
        "PD": ({}, [PD("hinge", 0.0, 5.0)]),
        "PD with a limit": ({}, [PD("hinge", 0.0, 5.0, limit=0.01)]),
        "PID": ({}, [PID("hinge", 0.0, 0.0, 5.0)]),
        "damper": ({}, [SpringDamper("hinge", d=5.0)]),
    }
    for what, (numbers, actuators) in parts.items():
        m = rotor(inertia=1e-3, **numbers)
        s = bc.system(m, actuators, (lambda t, q, v, x, u: [0.0]) if "P" in what else None)
        run = bc.simulate(s, 0.5, None, [1.0], integrator=name, step=H, every="step")
        energy = run["hinge.v"] ** 2
        assert np.diff(energy).max() < 1e-9, what
        assert abs(run["hinge.v"][-1]) < 1e-2, what


@pytest.mark.parametrize("name", EXPLICIT)
def test_resolved_damping_stays_explicit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is equal to the last bit, also if the same graphs filter unresolved damping."""
    m = rotor(damping=300.0)
    filtered = bc.simulate(m, 0.05, None, [1.0], integrator=name, step=2.5e-4)
    by = implicit_forces.implicit_forces(bc.system(m), bc.Solver(name, step=H))
    assert by is not None
    assert by.joints
    long = bc.Simulator(m, solver=bc.Solver(name, step=H))
    assert long.dynamics.implicit is not None
    again = long.run(0.05, None, [1.0], step=2.5e-4)
    monkeypatch.setattr("bellcrank.sim.program.tree_dynamics.implicit_forces", lambda *given: None)
    plain = bc.simulate(m, 0.05, None, [1.0], integrator=name, step=2.5e-4)
    np.testing.assert_allclose(filtered.v, plain.v, rtol=1e-14)
    np.testing.assert_allclose(again.v, plain.v, rtol=1e-14)


@pytest.mark.parametrize("name", EXPLICIT)
def test_the_order_is_kept(name: str) -> None:
    """Starting with too long steps, errors fall at least with the method's order."""
    m = rotor(damping=1000.0)
    simulator = bc.Simulator(m, solver=bc.Solver(name, step=4e-3))
    errors = []
    for h in (4e-3, 2.5e-4, 6.25e-5):
        v = simulator.run(0.004, None, [1.0], step=h, every=0.004).v[-1, 0]
        errors.append(abs(v - math.exp(-4.0)))
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < errors[1] * 4.0 ** (0.2 - INTEGRATORS[name].order)


def stiffly_damped(m: bc.Mechanism, rng: np.random.Generator) -> bc.Mechanism:
    """Return the mechanism with joint damping and dry friction over seven orders of magnitude."""
    found = []
    for j in m.joints:
        damping, friction = (10.0 ** rng.uniform(-1.0, top) * (rng.random() < p) for top, p in ((6.0, 0.7), (4.0, 0.3)))
        found.append(j if j.kind == "fixed" else replace(j, damping=float(damping), friction=float(friction)))
    return replace(m, joints=tuple(found))


def loses_energy(m: bc.Mechanism, seed: int, q0: Any, v0: Any, **how: Any) -> None:
    """Without springs and gravity the kinetic energy falls in every step."""
    name = EXPLICIT[seed % len(EXPLICIT)]
    run = bc.simulate(m, 0.2, q0, v0, integrator=name, step=H, every="step", **how)
    energy = run["energy"]
    assert run.stops[0].reason in STABLE
    limit = 1e-3 if name == "euler" else 1e-5  # Coriolis forces are explicit
    assert (energy - np.minimum.accumulate(energy)).max() < limit * energy[0]


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_lose_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [str(k) for k in rng.choice(ALL, int(rng.integers(2, 6)))]
    parents = [int(x) for x in rng.integers(0, 5, 3)]
    m = stiffly_damped(random_tree(seed, kinds, parents, coupled=True, gravity=False), rng)
    loses_energy(m, seed, m.random(seed)[0], 0.3 * rng.normal(size=m.nv))


@at_random
@pytest.mark.parametrize("seed", range(20))
def test_random_loops_lose_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [str(k) for k in rng.choice(ALL, int(rng.integers(4, 7)))]
    parents = [int(x) for x in rng.integers(0, 5, 3)]
    loop = str(rng.choice(("revolute", "distance", "spherical", "point_on_line", "gear")))
    m, q0 = closed(random_tree(seed, kinds, parents, gravity=False), seed, [loop])
    m = stiffly_damped(m, rng)
    v0 = consistent_velocity(m.tree, np.array(q0), 0.3 * rng.normal(size=m.nv))
    loses_energy(m, seed, q0, v0, form=("minimal", "projected")[seed // 5 % 2])


LAWS: dict[str, dict[str, float]] = {"Coulomb": {}, "bristles": {"bristles": 5e3}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", EXPLICIT)
def test_a_block_on_a_slope(name: str, law: str, form: str) -> None:
    """Below the friction angle it creeps no faster than `slow` allows.

    Above it, it slides as Coulomb friction requires.
    """
    mu, k, slow = 0.5, 2e4, 1e-3
    for angle in (0.35, 0.55):
        m = sled(angle, form != "tree")
        e = Contact("c", "ground", "block", Plane(), Sphere(0.1), k, 20.0, mu, slow=slow, **LAWS[law])
        start = {"z": 0.1 - MASS * 9.81 * math.cos(angle) / k}
        run = bc.simulate(bc.system(m, elements=[e]), 1.0, start, integrator=name, step=H, every=0.1, **settings(form))
        v = run["x.v"]
        assert run.stops[0].reason in STABLE
        assert abs(run["c.fz"][-1] / (MASS * 9.81 * math.cos(angle)) - 1.0) < 1e-3
        if math.tan(angle) < mu:
            r = math.tan(angle) / mu
            assert abs(v[-1]) < 1.01 * slow * r / math.sqrt(1 - r * r)
            assert run["block.x"][-1] > -1e-4
        else:
            inertia = MASS + SIDE * (form != "tree")
            expected = MASS * 9.81 * (math.sin(angle) - mu * math.cos(angle)) / inertia
            assert abs((v[-1] - v[5]) / 0.5 / expected - 1.0) < 2e-3


@pytest.mark.filterwarnings(UNRESOLVED)
@pytest.mark.parametrize("name", EXPLICIT)
def test_block_on_a_sloped_terrain(name: str) -> None:
    """With a normal that is not along an axis, the result is that of a plane, rotated."""
    slope = 0.3
    b = bc.Builder("sled")
    b.body("carriage")
    b.body("block", mass=0.05)
    b.joint("x", "prismatic", "ground", "carriage", axis=(1, 0, 0))
    b.joint("z", "prismatic", "carriage", "block", axis=(0, 0, 1))
    e = Contact("c", "ground", "block", Terrain(lambda x, y: slope * x), Sphere(0.1), 2e4, 20.0, 0.8)
    start = {"z": 0.1 * math.hypot(1.0, slope)}
    run = bc.simulate(bc.system(b.build(), elements=[e]), 1.0, start, integrator=name, step=H, every=0.1)
    assert abs(run["block.speed"][-1]) < 1e-2
    assert abs(run["block.x"][-1]) < 1e-2


@pytest.mark.filterwarnings(UNRESOLVED)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", EXPLICIT)
def test_no_energy_comes_from_a_contact(name: str, law: str) -> None:
    """The kinetic and lifting energy of a light tumbling box, far too stiff for the step, decreases."""
    for size, mass in (((0.05, 0.05, 0.05), 0.1), ((0.2, 0.1, 0.05), 0.02)):
        x, y, z = size
        b = bc.Builder("box")
        b.body("box", mass=mass, inertia=[mass / 12 * s for s in (y * y + z * z, x * x + z * z, x * x + y * y)])
        b.joint("free", "floating", "ground", "box")
        m = b.build()
        e = Contact("c", "ground", "box", Plane(), Box(size), **LAWS[law])
        q0 = m.neutral()
        q0[2] = 0.15
        run = bc.simulate(
            bc.system(m, elements=[e]), 1.0, q0, [1.0, 0.3, 0, 2.0, 1.0, 3.0], integrator=name, step=H, every="step"
        )
        energy = run["energy"]
        assert run.stops[0].reason in STABLE
        assert energy.max() < energy[0] * (1 + 1e-9)
        assert energy[-1] < 0.5 * energy[0]


@pytest.mark.parametrize("law", LAWS)
def test_half_the_step_changes_little(law: str) -> None:
    """A foot lands, slides and stops: its final position is accurate to a millimetre at 1 ms."""
    ends = []
    for h in (1e-3, 5e-4, 5e-5):
        e = Contact("c", "ground", "block", Plane(), Sphere(0.1), 2e4, 20.0, 0.5, **LAWS[law])
        m = replace(sled(0.0, False))
        run = bc.simulate(bc.system(m, elements=[e]), 1.0, {"z": 0.11}, {"x": 1.0}, step=h, every=0.1)
        ends.append(run["block.x"][-1])
    assert abs(ends[0] - ends[2]) < 2e-3
    assert abs(ends[1] - ends[2]) < 0.6 * abs(ends[0] - ends[2]) + 1e-5


@pytest.mark.filterwarnings(UNRESOLVED)
@pytest.mark.parametrize("mass", [1.0, 10.0])  # lighter ones rock by a millimetre because nothing damps them
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ["euler", "rk4"])
def test_three_boxes_stay_on_each_other(name: str, law: str, mass: float) -> None:
    """Three boxes stay stacked at the default step with default contacts."""
    sizes = [(s, s, s) for s in (0.4, 0.3, 0.2)]
    b, elements, q0, top = bc.Builder("stack"), [], [], 0.0
    for i, size in enumerate(sizes):
        b.body(f"box{i}", mass=mass, inertia=(mass * size[0] ** 2 / 6,) * 3)
        b.joint(f"free{i}", "floating", "ground", f"box{i}")
        below = (Plane(), "ground") if i == 0 else (Box(sizes[i - 1]), f"box{i - 1}")
        elements.append(Contact(f"c{i}", below[1], f"box{i}", below[0], Box(size), **LAWS[law]))
        q0 += [0.01 * i, 0.0, top + 0.5 * size[2], 0.0, 0.0, 0.0, 1.0]
        top += size[2]
    run = bc.simulate(bc.system(b.build(), elements=elements), 3.0, np.array(q0), integrator=name, every=0.1)
    assert run.stops[0].reason in STABLE
    assert np.abs(run.q[-1] - q0).max() < 2e-3
    assert np.abs(run.v[-1]).max() < 1e-2


def test_explicit_forces_are_rejected_where_unstable() -> None:
    """Explicit forces are refused where they would be unstable.

    This concerns steps longer than the Simulator's, prescribed motions, and large mechanisms.
    """
    simulator = bc.Simulator(rotor(damping=100.0))
    with pytest.raises(bc.InputError, match=r'joint "hinge" in 0.01 s.*step=0.02 or less.*where it is made'):
        simulator.run(10.0, None, [1.0], step=0.1)
    simulator.run(0.1, None, [1.0], step=0.01)
    bc.simulate(rotor(damping=100.0), 10.0, None, [1.0], step=0.1)
    b = bc.Builder("two")
    for name in ("held", "free"):
        b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(name, "revolute", "ground", name, axis=(0, 1, 0), damping=1e5)
    moved = bc.system(b.build(), motions={"held": lambda t: 0.0 * t})
    with pytest.raises(bc.InputError, match=r'joint "free".*with prescribed motions'):
        bc.simulate(moved, 0.1)
    b = bc.Builder("many")
    for i in range(65):
        b.body(f"b{i}", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
        b.joint(f"j{i}", "revolute", "ground", f"b{i}", axis=(0, 1, 0), damping=1e3 if i == 3 else 0.0)
    with pytest.raises(bc.InputError, match=r'joint "j3".*that large'):
        bc.simulate(b.build(), 0.1)


@pytest.mark.parametrize("resisting", [{"damping": 0.1}, {"friction": 0.1}, {"damping": 1e6, "friction": 1e3}], ids=str)
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("actuated", [False, True])
def test_prescribed_motions_need_no_stability_check(
    integrator: str, resisting: dict[str, float], actuated: bool
) -> None:
    """No force changes fully prescribed motions, so no step is too long for one."""
    motions = {"hinge": lambda t: 0.5 * t}
    servo = [PD("hinge", 1e5, 1e5)] if actuated else []
    plant = bc.system(rotor(**resisting), servo, (lambda t, q, v, x, u: [0.0]) if actuated else None, motions=motions)
    run = bc.simulate(plant, 0.2, None, [0.5], step=1e-2, integrator=integrator)
    assert run.stops[0].reason == "end"
    assert abs(run["hinge.q"][-1] - 0.1) < 1e-9


def test_values_far_from_nominal_are_rejected_where_unstable() -> None:
    """Nominal values decide which forces are implicit; another inertia may need a shorter step."""
    m = rotor(damping=10.0).free("rotor.inertia.yy")
    bc.simulate(m, 0.1, None, [1.0], parameters={"rotor.inertia.yy": [0.5, 2.0]})
    with pytest.raises(bc.InputError, match=r'joint "hinge" in 0.0001 s.*step=0.0002'):
        bc.simulate(m, 0.1, None, [1.0], parameters={"rotor.inertia.yy": [0.5, 1e-3]})


def test_systems_without_resistance_keep_their_graphs() -> None:
    """Systems without such forces, and those that a step resolves, keep their graphs."""
    free = rotor()
    assert bc.Simulator(free).dynamics.implicit is None
    assert bc.Simulator(rotor(damping=1.0)).dynamics.implicit is None
    assert bc.Simulator(rotor(damping=1e4), "rodas4").dynamics.implicit is None
    assert bc.Simulator(rotor(damping=1e4)).dynamics.implicit is not None
