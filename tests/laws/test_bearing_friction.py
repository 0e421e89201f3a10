"""Friction of bearings: closed forms, an independent dense solution, power, derivatives, and refusal where it jams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import aba, kinematics
from bellcrank.dynamics.reactions import reactions
from bellcrank.errors import InputError
from bellcrank.forces import BearingFriction, Bushing
from bellcrank.forces.bearings import NUMBERS
from bellcrank.record.evaluation import time_integral
from bellcrank.sim.run.simulator import system_dynamics
from trees import random_tree

G = 9.81
Array = np.ndarray[Any, Any]


def seen(s: bc.System, q: Any, v: Any, t: float = 0.0, form: str = "auto") -> dict[str, Array]:
    """Return the columns that follow from a state, without compiling."""
    dynamics = system_dynamics(s, bc.Solver("rk4", form=form), (), (), "float64")
    given = {"t": t, "y": np.concatenate([q, v]), "u": [], "p": s.parameters.nominal}
    found = dynamics.outputs.evaluate(**{name: given[name] for name in dynamics.outputs.inputs})
    return {name: np.asarray(found[key], float)[k] for name, (key, k) in dynamics.columns.items()}


# -- closed forms


def block(angle: float, mu: float) -> bc.System:
    """A block of 2 kg on an inclined plane."""
    b = bc.Builder("incline")
    b.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", "prismatic", "ground", "block", axis=(np.cos(angle), 0, -np.sin(angle)))
    return bc.system(b.build(), elements=[BearingFriction("rub", "slide", mu)])


def test_block_on_an_incline_slides_or_sticks() -> None:
    angle, mu = 0.5, 0.3
    fast = bc.simulate(block(angle, mu), 0.2, v0=[1.0], step=1e-2)
    assert np.allclose(fast["slide.a"], G * (np.sin(angle) - mu * np.cos(angle)), rtol=1e-13)
    assert np.allclose(fast["slide.v"][-1], 1.0 + 0.2 * fast["slide.a"][0], rtol=1e-12)
    assert np.allclose(fast["rub.load"], 2.0 * G * np.cos(angle), rtol=1e-13)
    uphill = seen(block(angle, mu), [0.0], [-1.0])
    assert uphill["slide.a"] == pytest.approx(G * (np.sin(angle) + mu * np.cos(angle)), rel=1e-13)
    angle = 0.2  # below the angle of friction, which is 0.29
    stuck = bc.simulate(block(angle, mu), 0.2, step=1e-2)
    assert stuck["slide.v"][-1] == pytest.approx(1e-3 * np.tan(angle) / mu, rel=1e-6)  # it creeps
    assert abs(stuck["slide.a"][-1]) < 1e-6


def pendulum(mu: float, radius: float, name: str = "hinge") -> bc.System:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.5, com=(0, 0, -0.4), inertia=(0.05, 0.05, 0.05))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    return bc.system(b.build(), elements=[BearingFriction("pin", name, mu, radius=radius)])


def test_pendulum_loses_the_work_of_its_bearing() -> None:
    """E(0) - E(t) is the integral of mu r |N| |w|, with N from the equations of a pendulum."""
    mu, r, m, l = 0.2, 0.05, 1.5, 0.4
    run = bc.simulate(pendulum(mu, r), 2.0, q0=[1.0], step=5e-4)
    q, w, a = run["hinge.q"], run["hinge.v"], run["hinge.a"]
    N = np.hypot(m * G * np.cos(q) + m * l * w * w, m * G * np.sin(q) + m * l * a)
    assert np.allclose(run["pin.load"], N, rtol=1e-12)
    torque = -mu * r * N * np.clip(r * w / 1e-3, -1.0, 1.0)
    assert np.allclose(run["pin.hinge"], torque, rtol=1e-11, atol=1e-13)
    assert np.allclose((0.05 + m * l * l) * a, torque - m * G * l * np.sin(q), rtol=1e-11, atol=1e-11)
    energy = 0.5 * (0.05 + m * l * l) * w * w - m * G * l * np.cos(q)
    lost = time_integral(run.t, -torque * w)[-1]
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-4)
    assert lost > 0.1 * np.ptp(energy)
    assert run.residuals()["energy"] < 1e-6


# -- a slider-crank in absolute coordinates


LENGTHS = (0.2, 0.6)
MASSES, INERTIAS, COMS = (1.0, 0.8, 0.5), (0.01, 0.05, 0.02), (0.1, 0.3, 0.0)
MU, RADII = 0.2, (0.03, 0.02, 0.025)
HINGES = {
    "A": ("revolute", "ground", "crank", (0.0, 0, 0), (0, 1, 0)),
    "B": ("revolute", "crank", "rod", (0.2, 0, 0), (0, 1, 0)),
    "C": ("revolute", "rod", "piston", (0.8, 0, 0), (0, 1, 0)),
    "D": ("prismatic", "piston", "ground", (0.8, 0, 0), (1, 0, 0)),
}


def slider_crank(cut: str) -> bc.System:
    b = bc.Builder("slider-crank")
    at = (0.0, 0.2, 0.8)
    for name, m, I, c, x in zip(("crank", "rod", "piston"), MASSES, INERTIAS, COMS, at, strict=True):
        b.body(name, mass=m, com=(x + c, 0, 0), inertia=(0.6 * I, I, I))
    for name, (kind, parent, child, point, axis) in HINGES.items():
        (b.close if name == cut else b.joint)(name, kind, parent, child, point=point, axis=axis)
    radii = dict(zip("ABC", RADII, strict=True))
    return bc.system(
        b.build(), elements=[BearingFriction(f"f{x}", x, MU, radius=radii.get(x, 0.0), slow=0.05) for x in HINGES]
    )


def turn(angle: float) -> Array:
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def dense_slider_crank(phi: float, w: float) -> dict[str, float]:
    """Return acceleration of the crank and loads, by 9 absolute coordinates (x, z, angle) and 8 constraints.

    Friction and multipliers are found by plain iteration. Angles are about y, so that (x, z) turns by [c s; -s c].
    """
    l1, l2 = LENGTHS
    psi = np.arcsin(-l1 * np.sin(phi) / l2)  # of the rod: both heights cancel
    u = -l1 * np.cos(phi) * w / (l2 * np.cos(psi))  # dpsi/dt
    angles, rates = (phi, psi, 0.0), (w, u, 0.0)
    M = np.diag([x for m, I in zip(MASSES, INERTIAS, strict=True) for x in (m, m, I)])
    C, gamma = np.zeros((8, 9)), np.zeros(8)

    def pin(row: int, body: int, x: float, sign: float) -> None:
        """Add the motion of a point of a body, at x on its axis from its centre of mass."""
        arm = np.array([x, 0.0])
        C[row : row + 2, 3 * body : 3 * body + 2] += sign * np.eye(2)
        C[row : row + 2, 3 * body + 2] += sign * turn(angles[body] + np.pi / 2) @ arm
        gamma[row : row + 2] += sign * turn(angles[body]) @ arm * rates[body] ** 2

    pin(0, 0, -0.1, 1.0)
    pin(2, 0, 0.1, -1.0), pin(2, 1, -0.3, 1.0)
    pin(4, 1, 0.3, -1.0), pin(4, 2, 0.0, 1.0)
    C[6, 7], C[7, 8] = 1.0, 1.0  # the piston keeps its height and does not turn
    slip = np.array([RADII[0] * w, RADII[1] * (u - w), RADII[2] * -u])
    speed = -l1 * np.sin(phi) * w - l2 * np.sin(psi) * u
    weight = np.array([x for m in MASSES for x in (0.0, -m * G, 0.0)])
    K = np.block([[M, -C.T], [C, np.zeros((8, 8))]])
    friction = np.zeros(9)
    for _ in range(200):
        solution = np.linalg.solve(K, np.concatenate([weight + friction, gamma]))
        lam = solution[9:]
        N = np.array([np.hypot(*lam[0:2]), np.hypot(*lam[2:4]), np.hypot(*lam[4:6]), abs(lam[6])])
        drag = MU * N * np.clip(np.append(slip, speed) / 0.05, -1.0, 1.0)
        torque = drag[:3] * RADII
        friction = np.zeros(9)
        friction[2] = -torque[0] + torque[1]
        friction[5] = -torque[1] + torque[2]
        friction[8] = -torque[2]
        friction[6] = -drag[3]
    found = dict(zip(("fA.load", "fB.load", "fC.load", "fD.load"), N, strict=True))
    losses = drag * np.append(slip, speed)
    return found | {"A.a": solution[2]} | dict(zip(("fA.loss", "fB.loss", "fC.loss", "fD.loss"), losses, strict=True))


@pytest.mark.parametrize(("cut", "form"), [("B", "minimal"), ("C", "projected"), ("D", "lagrange"), ("D", "minimal")])
def test_slider_crank_is_the_dense_solution_for_every_cut_joint(cut: str, form: str) -> None:
    s = slider_crank(cut)
    for phi, w in ((0.7, 5.0), (1.2, -0.9)):
        q, v = s.mechanism.assemble({"A": phi}, {"A": w}, fixed=["A"])
        found = seen(s, q, v, form=form)
        for name, x in dense_slider_crank(phi, w).items():
            assert found[name] == pytest.approx(x, rel=1e-10), name


# -- any tree


def law(e: BearingFriction, kind: str, F: Array, M: Array, u: Array) -> tuple[Array, float]:
    """Return friction and load of a bearing, by the formulas of the page."""
    z, r, mu = np.array([0.0, 0.0, 1.0]), float(e.radius), float(e.coefficient)
    across = np.array([F[0], F[1], 0.0])
    sides = [np.linalg.norm(across / 2 + s * np.cross(M, z) / e.span) for s in (1, -1)] if e.span else []
    radial = sum(sides) if e.span else np.linalg.norm(across)
    pads: dict[str, list[tuple[float, Array]]] = {
        "revolute": [(radial, np.array([[r]])), (abs(F[2]), np.array([[e.thrust_radius]]))],
        "prismatic": [(radial + (abs(M[2]) / r if r else 0.0), np.eye(1))],
        "cylindrical": [(radial, np.diag([r, 1.0]))],
        "spherical": [(float(np.linalg.norm(F)), r * np.eye(3))],
        "planar": [(abs(F[2]), np.diag([1.0, 1.0, r]))],
    }
    total = np.zeros(len(u))
    for N, B in pads[kind]:
        total -= mu * N * B.T @ (B @ u) / max(np.linalg.norm(B @ u), e.slow)
    return total, float(sum(N for N, _ in pads[kind]))


def bearing(name: str, joint: str, kind: str, rng: np.random.Generator) -> BearingFriction:
    """Return a bearing with all numbers that its kind of joint has."""
    numbers = {x: float(rng.uniform(0.02, 0.05)) for x in NUMBERS[kind][0] if x != "span"}
    numbers |= {"span": float(rng.uniform(0.5, 1.0))} if "span" in NUMBERS[kind][0] and rng.random() < 0.7 else {}
    return BearingFriction(name, joint, float(rng.uniform(0.02, 0.15)), **numbers, slow=float(rng.uniform(0.01, 0.3)))


@pytest.mark.parametrize("seed", range(4))
def test_friction_and_reactions_of_a_tree_agree(seed: int) -> None:
    """The reactions of the public quantity, with the friction in tau, give that friction by its law."""
    rng = np.random.default_rng(seed)
    kinds = [*rng.permutation(sorted(NUMBERS))[:3].tolist(), *(["spherical"] if seed % 2 else [])]
    m = random_tree(seed, [*kinds, "revolute"], passive=True)
    last = m.bodies[-1].name
    bearings = [bearing(f"f{k}", j.name, j.kind, rng) for k, j in enumerate(m.joints[:-1])]

    def wind(t: Any, X: Any, V: Any) -> Any:
        return [1.0 - V[0], X[1, 3], 2.0], [0.0, 0.3, -0.1 * V[5]]

    rubber = Bushing("rubber", "ground", last, (9.0, 8.0, 7.0, 0.3, 0.2, 0.1), (1.0, 2.0, 3.0, 0.1, 0.2, 0.3))
    s = bc.system(m, forces={last: wind}, elements=[rubber, *bearings])
    q = m.integrate(m.neutral(), rng.normal(size=m.nv))
    v = rng.normal(size=m.nv)
    found = seen(s, q, v)
    names = m.columns[1]
    friction = np.array([found[f"{n}.element"] for n in names])
    friction -= np.asarray(s.summed(s.acts(0.0, [*q, *v]), [*q, *v]), float)
    wrench = [found[f"{last}.{c}"] + found[f"rubber.{c}"] for c in ("fx", "fy", "fz", "mx", "my", "mz")]
    given = m.tree, q.tolist(), v.tolist(), friction.tolist(), [last], [wrench]
    a, loads = (np.asarray(f(*given), float) for f in (aba.forward_dynamics, reactions))
    assert np.allclose(a, [found[f"{n}.a"] for n in names], rtol=1e-9, atol=1e-9)
    for e, link, W in zip(bearings, m.tree.links, loads, strict=False):
        R = np.array(kinematics.pose(m.tree, q.tolist(), link.name), float)[:3, :3]
        R = R @ np.array([list(row) for row in m.tree.frames[link.name][1].rows], float).T
        F, M = R.T @ W[:3], R.T @ W[3:]
        own = list(link.v_index)
        torque, load = law(e, link.joint.kind, F, M, v[own])
        assert np.allclose(friction[own], torque, rtol=1e-8, atol=1e-10)
        assert found[f"{e.name}.load"] == pytest.approx(load, rel=1e-8)
        assert found[f"{e.name}.loss"] >= 0.0
        assert friction[own] @ v[own] <= 0.0


def test_drives_and_forces_on_all_bodies_load_bearings() -> None:
    """A lever that is held by a drive at its end, in a wind on every body: N is the rest of all forces."""
    b = bc.Builder("lever", gravity=(0, 0, 0))
    b.body("lever", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "lever", axis=(0, 0, 1))
    b.frame("end", "lever", point=(1.0, 0, 0))
    s = bc.system(
        b.build(),
        elements=[BearingFriction("pin", "hinge", 0.3, radius=0.1)],
        everywhere=lambda place, velocity, mass: [3.0 * mass, 4.0, 0.0],
        motions={"end.y": lambda t: 2.0 * t},
    )
    found = seen(s, [0.0], [2.0])
    # The end keeps its speed along y: a = 0, and the centre of mass turns with 2 rad/s.
    drive, pin = found["end.y.drive"], found["pin.hinge"]
    force = np.array([-2.0 * 0.5 * 4.0 - 6.0, -4.0 - drive])
    assert found["hinge.a"] == pytest.approx(0.0, abs=1e-12)
    assert found["pin.load"] == pytest.approx(float(np.linalg.norm(force)), rel=1e-12)
    assert pin == pytest.approx(-0.3 * 0.1 * float(np.linalg.norm(force)), rel=1e-12)
    assert 4.0 * 0.5 + drive + pin == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("w", [5.0, 0.3])
def test_derivatives_are_differences(w: float) -> None:
    """Also while the friction depends on the speed, below `slow`."""
    s = slider_crank("C")
    dynamics = system_dynamics(s, bc.Solver("rk4", form="projected"), (), (), "float64")
    q, v = s.mechanism.assemble({"A": 0.7}, {"A": w}, fixed=["A"])
    y = np.concatenate([q, v])

    def f(y: Array) -> Array:
        return np.asarray(dynamics.f.evaluate(t=0.0, y=y)["dy"], float)

    exact = np.asarray(dynamics.state_jacobian.evaluate(t=0.0, y=y)["ddy_dy"], float)
    h = 1e-5
    differences = np.array([(8 * (f(y + h * e) - f(y - h * e)) - f(y + 2 * h * e) + f(y - 2 * h * e)) / (12 * h)
                            for e in np.eye(len(y))]).T  # fmt: skip
    assert np.allclose(exact, differences, atol=1e-7 * np.abs(exact).max())


# -- where it is not determined


def drawer(mu: float) -> bc.System:
    """A drawer whose centre of mass is far from its short guide: friction loads the guide that causes it."""
    b = bc.Builder("drawer", gravity=(0, 0, 0))
    b.body("drawer", mass=2.0, com=(0, 0.5, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("guide", "prismatic", "ground", "drawer", axis=(1, 0, 0))
    force = {"drawer": lambda t, X, V: ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])}
    return bc.system(b.build(), forces=force, elements=[BearingFriction("shoes", "guide", mu, span=0.2)])


def test_jam_ends_the_run_with_a_reason() -> None:
    """A force F in the line of the guide loads both shoes with h (F - f)/L: f = mu 2 h (F - f)/L, with 2 h/L = 5.

    Where mu 2 h/L is above 1, f = mu 2 h (f - F)/L is another solution.
    """
    found = seen(drawer(0.15), [0.0], [1.0])
    assert found["shoes.guide"] == pytest.approx(-0.75 / (1.0 + 0.75), rel=1e-12)
    stop = bc.simulate(drawer(0.25), 0.1, v0=[1.0], step=1e-2).stops[0]
    assert stop.reason == "not finite"
    assert "margin -0.25" in stop.message
    assert '"shoes"' in stop.message


def test_load_that_redundant_constraints_share_is_reported() -> None:
    def four_bar(side: float) -> bc.System:
        b = bc.Builder("fourbar")
        for name, x, z in (("one", 0.0, 0.5), ("two", 0.5, 1.0), ("three", 1.2, 0.5)):
            b.body(name, mass=1.0, com=(x, side, z), inertia=(0.1, 0.1, 0.1))
        points = {"A": (0, 0, 0), "B": (0, 0, 1), "C": (1.2, 0, 1.1), "D": (1.2, 0, 0)}
        chain = ("ground", "one", "two", "three", "ground")
        for (name, point), parent, child in zip(points.items(), chain, chain[1:], strict=False):
            b.joint(name, "revolute", parent, child, point=point, axis=(0, 1, 0))
        return bc.system(b.build(), elements=[BearingFriction("pin", "A", 0.1, radius=0.05, span=0.1)])

    solver = bc.Solver("rk4")
    system_dynamics(four_bar(0.0), solver, (), (), "float64")  # a plane mechanism: no force across the plane
    with pytest.warns(RuntimeWarning, match='bearings "pin" is not determined'):
        system_dynamics(four_bar(0.2), solver, (), (), "float64")


@pytest.mark.parametrize(
    ("bearing", "words"),
    [
        (BearingFriction("x", "nowhere", 0.1, radius=0.1), "nowhere"),
        (BearingFriction("x", "hinge", 0.1), "radius and thrust_radius are 0"),
        (BearingFriction("x", "ball", 0.1, radius=0.1, span=0.2), "a spherical joint has no span"),
        (BearingFriction("x", "screw", 0.1, radius=0.1), "is a helical joint; expected one of revolute"),
    ],
)
def test_bearing_that_does_not_fit_is_refused(bearing: BearingFriction, words: str) -> None:
    b = bc.Builder("parts")
    for name, kind in (("hinge", "revolute"), ("ball", "spherical"), ("screw", "helical")):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, kind, "ground", name, **({"pitch": 0.1} if kind == "helical" else {}))
    m = b.build()
    with pytest.raises(InputError, match=words):
        bc.system(m, elements=[bearing])


def test_second_bearing_of_a_joint_and_negative_numbers_are_refused() -> None:
    pins = [BearingFriction(name, "hinge", 0.1, radius=0.1) for name in ("a", "b")]
    with pytest.raises(InputError, match='both in the joint "hinge"'):
        bc.system(pendulum(0.1, 0.1).mechanism, elements=pins)
    with pytest.raises(InputError, match="coefficient"):
        BearingFriction("x", "hinge", -0.1)


def test_friction_that_steps_cannot_follow_is_reported() -> None:
    """Prescribed motions make fixed steps explicit: mu N/slow = 0.3 * 19.6 N/1e-3 m/s slows 2 kg down in 0.34 ms."""
    b = bc.Builder("sledge")
    b.body("sledge", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", "prismatic", "ground", "sledge", axis=(1, 0, 0))
    b.body("motor", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("motor", "revolute", "ground", "motor")
    s = bc.system(b.build(), elements=[BearingFriction("rub", "slide", 0.3)], motions={"motor": lambda t: 2.0 * t})
    with pytest.warns(RuntimeWarning, match=r'dry friction ends a slow motion of joint "slide" in 0\.00034 s'):
        bc.simulate(s, 0.1, v0={"motor": 2.0}, step=1e-2)
