"""Flexible bodies.

All methods agree, energy and momentum are conserved, and blades, rods and cantilevers match references.
"""

from __future__ import annotations

import json
import math
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, applicable_methods, kinematics, rnea
from bellcrank.dynamics.flexible_layer import FORCE_QUANTITIES, FlexibleLayer
from bellcrank.errors import InputError, ModelError
from bellcrank.record.description import read_mechanism as from_plain
from bellcrank.record.description import to_plain
from bellcrank.structures.beam import Beam
from bellcrank.structures.reduction import frequencies
from bending import SPUN, SPUN_LENGTH, at_rest

STEEL = bc.Material.steel()
BAR = bc.Section.rectangle(0.05, 0.1)
TAPER = (bc.Section.box(0.2, 0.1, 0.01), bc.Section.box(0.1, 0.1, 0.01))


def arm(base: str = "floating") -> Any:
    """Two slanted flexible bodies in series, with rigid bodies between, after and beside them."""
    b = bc.Builder("arm")
    s = 1 / math.sqrt(2)
    b.beam(
        *("boom",), length=2.0, section=TAPER, material=STEEL,
        start=(0.3, 0.1, 0.2), axis=(s, 0, s), side=(0, 1, 0), elements=8, modes=2, below=300.0,
        nodes={"end": 1.0, "middle": 0.5}, damping=0.01,
    )  # fmt: skip
    b.joint("base", base, "ground", "boom", point=(0.1, 0, 0), **({"axis": (0, 1, 0)} if base == "revolute" else {}))
    end = np.array([0.3, 0.1, 0.2]) + 2.0 * np.array([s, 0, s])
    b.body("knuckle", mass=4.0, com=end + np.array([0.1, 0, 0]), inertia=(0.05, 0.06, 0.07))
    b.joint("elbow", "revolute", "boom.end", "knuckle", point=end, axis=(0, 1, 0), armature=0.3)
    b.beam(
        *("stick",), length=1.0, section=BAR, material=STEEL, start=end, axis=(0, 0, -1), elements=6, modes=1,
        below=400.0, rayleigh=(0.1, 1e-4), motions=("bend_y", "twist"),
    )  # fmt: skip
    b.joint("weld", "fixed", "knuckle", "stick", point=end)
    b.body("tool", mass=2.0, com=end + np.array([0, 0, -1.1]), inertia=(0.02, 0.02, 0.01))
    b.joint("wrist", "fixed", "stick.end", "tool", point=end + np.array([0, 0, -1.0]))
    middle = np.array([0.3, 0.1, 0.2]) + np.array([s, 0, s])
    b.body("beside", mass=1.0, com=middle + np.array([0, 0.2, 0.1]), inertia=(0.01, 0.02, 0.02))
    b.joint("swivel", "spherical", "boom.middle", "beside", point=middle)
    return b.build()


def slider_crank(**rod: Any) -> Any:
    b = bc.Builder("slider_crank")
    b.body("crank", mass=1.0, com=(0.1, 0, 0), inertia=(1e-3, 5e-3, 5e-3))
    b.joint("shaft", "revolute", "ground", "crank", axis=(0, 1, 0))
    b.beam("rod", length=0.6, start=(0.2, 0, 0), material=STEEL, **{"section": bc.Section.circle(0.01)} | rod)
    b.joint("pin", "revolute", "crank", "rod", point=(0.2, 0, 0), axis=(0, 1, 0))
    b.body("slider", mass=0.5, com=(0.8, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("rail", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.close("eye", "revolute", "rod.end", "slider", point=(0.8, 0, 0), axis=(0, 1, 0))
    return b.build()


def random(m: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return a state with deflections far above rounding error."""
    q, v, tau = m.random(seed)
    for body in m.tree.flexible:
        q[list(body.q_index)] *= 10
    return q, v, tau


PLANE = {"motions": ("bend_y",), "modes": 2, "elements": 8}


def of(m: Any, quantity: str, method: str, q: Any, v: Any, x: Any) -> Any:
    """Evaluate a quantity by one method on floats, with the code that is traced."""
    by = METHODS[method]
    inputs = {"forward_dynamics": (q, v, x), "bias": (q, v), "coriolis_torque": (q, v)}
    given = [z.tolist() for z in inputs.get(quantity, (q,))]
    return np.array(by.function(quantity)(graphs.quantity_tree(m, quantity, by), *given), float)


@pytest.mark.parametrize(
    "quantity", ["forward_dynamics", "mass_matrix", "bias", "gravity_torque", "coriolis_torque", "inverse_mass_matrix"]
)
@pytest.mark.parametrize("base", ["revolute", "floating"])
def test_all_methods_are_one(base: str, quantity: str) -> None:
    m = arm(base)
    q, v, x = random(m, 3)
    ways = [by.name for by in applicable_methods(quantity, m.tree)]
    assert set(ways) >= {"crba"} if "mass" in quantity or "forward" in quantity else set(ways) >= {"rnea"}
    results = [of(m, quantity, way, q, v, x) for way in ways]
    for way, found in zip(ways, results, strict=True):
        assert found == pytest.approx(results[0], rel=1e-10, abs=1e-10 * np.abs(results[0]).max()), way


@pytest.mark.parametrize("quantity", FORCE_QUANTITIES)
@pytest.mark.parametrize("base", ["revolute", "floating"])
def test_layer_over_newton_euler_of_rigid_bodies_is_newton_euler_of_bodies_that_bend(base: str, quantity: str) -> None:
    """Registered methods for rigid bodies are extended by this layer; rnea, extended by it, equals itself."""
    m = arm(base)
    q, v, a = (x.tolist() for x in random(m, 3))
    inputs = {"inverse_dynamics": (q, v, a), "gravity_torque": (q,)}.get(quantity, (q, v))
    layer = FlexibleLayer(partial(getattr, rnea), (quantity,))
    expected = np.array(getattr(rnea, quantity)(m.tree, *inputs), float)
    found = np.array(layer.function(quantity)(m.tree, *inputs), float)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10 * np.abs(expected).max())


def test_all_but_three_methods_cover_bodies_that_bend() -> None:
    ways = {by.name for by in applicable_methods("forward_dynamics", arm().tree)}
    every = {by.name for by in METHODS.values() if "forward_dynamics" in by.solves}
    assert every - ways == {"featherstone", "dca", "angeles"}


@pytest.mark.parametrize("name", ["featherstone", "dca", "angeles"])
def test_method_without_flexible_bodies_raises(name: str) -> None:
    with pytest.raises(InputError, match="flexible bodies"):
        bc.kernel(arm(), "forward_dynamics", method=name)


@pytest.mark.parametrize("base", ["revolute", "floating"])
def test_quantities_belong_together(base: str) -> None:
    m = arm(base)
    q, v, tau = random(m, 5)
    a, M = m.forward_dynamics(q, v, tau), m.mass_matrix(q)
    assert m.inverse_dynamics(q, v, a) == pytest.approx(tau, abs=1e-8 * np.abs(M @ a).max())
    assert M @ a + m.bias(q, v) - m.passive_torque(q, v) == pytest.approx(tau, abs=1e-8 * np.abs(M @ a).max())
    assert m.kinetic_energy(q, v) == pytest.approx(0.5 * v @ M @ v, rel=1e-12)
    e = 1e-6
    still = np.zeros(m.nv)
    for k, unit in enumerate(np.eye(m.nv)):
        slope = m.potential_energy(m.integrate(q, e * unit)) - m.potential_energy(m.integrate(q, -e * unit))
        wanted = (m.gravity_torque(q) - m.passive_torque(q, still))[k]
        assert slope / (2 * e) == pytest.approx(wanted, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("frame", ["boom", "boom.middle", "boom.end", "tool", "beside"])
def test_frame_velocity_is_the_rate_of_the_pose(frame: str) -> None:
    m = arm()
    q, v, _ = random(m, 7)
    e = 1e-6
    now = m.velocity(q, v, frame=frame)
    assert m.jacobian(q, frame=frame) @ v == pytest.approx(now, rel=1e-12, abs=1e-12)
    a, b = (m.pose(m.integrate(q, s * e * v), frame=frame) for s in (1, -1))
    rate = (a - b) / (2 * e)
    W = rate[:3, :3] @ m.pose(q, frame=frame)[:3, :3].T
    assert now == pytest.approx([*rate[:3, 3], W[2, 1], W[0, 2], W[1, 0]], rel=1e-6, abs=1e-8)


def test_wrenches_on_nodes_and_reactions() -> None:
    m = arm("revolute")
    q, v, tau = random(m, 11)
    w = np.array([[3.0, -2.0, 5.0, 0.3, 0.2, -0.1]])
    forward = bc.kernel(m, "forward_dynamics", wrenches=("boom.end",))
    M, J = m.mass_matrix(q), m.jacobian(q, frame="boom.end")
    more = M @ (forward(q, v, tau, w) - m.forward_dynamics(q, v, tau))
    assert more == pytest.approx(J.T @ w[0], rel=1e-7, abs=1e-7)
    # At rest the base carries the weight of everything.
    still, nothing = np.zeros(m.nv), np.zeros(m.nv)
    q = m.neutral()
    a = m.forward_dynamics(q, still, nothing)
    reaction = np.asarray(m.reactions(q, still, nothing))[0]
    mass = sum(body.mass for body in m.bodies)
    e = 1e-4
    lifted = (m.momentum(m.integrate(q, e * e / 2 * a), e * a) - m.momentum(q, still))[:3] / e
    assert reaction[:3] == pytest.approx(lifted + np.array([0, 0, 9.81 * mass]), rel=1e-3, abs=1e-1)


def test_energy_and_momentum_stay() -> None:
    b = bc.Builder("free", gravity=(0, 0, 0))
    b.beam("rod", length=2.0, section=BAR, material=STEEL, elements=6, modes=1, below=300.0)
    b.joint("base", "floating", "ground", "rod")
    b.body("end", mass=3.0, com=(2.1, 0, 0.1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "rod.end", "end", point=(2, 0, 0), axis=(0, 1, 0))
    m = b.build()
    q, v, _ = random(m, 2)
    run = bc.simulate(m, 0.2, q0=q, v0=4 * v, step=1e-5, every=0.02)
    assert run.residuals()["energy"] < 1e-9
    P = np.array([m.momentum(q, v) for q, v in zip(run.q, run.v, strict=True)])
    assert np.ptp(P, axis=0).max() < 1e-8 * np.abs(P).max()


def test_a_loop_over_a_rod_that_bends() -> None:
    m = slider_crank(**PLANE)
    assert m.loop_analysis.mobility == 1 + 4
    q, v = m.assemble({"shaft": 0.7}, {"shaft": 30.0}, fixed=["shaft"])
    ways = [by.name for by in applicable_methods("forward_dynamics", m.tree)]
    tau = np.zeros(m.nv)
    results = [bc.kernel(m, "forward_dynamics", method=way)(q, v, tau) for way in ways]
    for found in results:
        assert found == pytest.approx(results[0], rel=1e-8, abs=1e-8 * np.abs(results[0]).max())
    run = bc.simulate(m, 0.05, q0=q, v0=v, step=5e-6, every=1e-3)
    assert run.residuals()["energy"] < 1e-8
    assert np.abs(run.q[:, 2]).max() > 1e-4


def test_all_forms_of_the_loops_are_one_motion() -> None:
    m = slider_crank(**PLANE)
    q, v = m.assemble({"shaft": 0.7}, {"shaft": 30.0}, fixed=["shaft"])
    ends = [
        bc.simulate(m, 1e-3, q0=q, v0=v, step=2e-6, form=form).q[-1] for form in ("minimal", "projected", "lagrange")
    ]
    assert ends[1] == pytest.approx(ends[0], abs=1e-9)
    assert ends[2] == pytest.approx(ends[0], abs=1e-9)


@pytest.mark.filterwarnings("ignore:beam. sound would run:RuntimeWarning")
def test_infinitely_stiff_is_rigid() -> None:
    stiff = bc.Material(STEEL.E * 1e4, STEEL.nu, STEEL.density)
    ends = []
    for bends in (True, False):
        b = bc.Builder("pendulum")
        if bends:
            b.beam("rod", length=1.0, section=BAR, material=stiff, elements=6, modes=1, attached=False)
        else:
            mass = STEEL.density * BAR.numbers.area
            b.body("rod", mass=mass, com=(0.5, 0, 0), inertia=(_slices(mass, 0), _slices(mass, 1), _slices(mass, 2)))
            b.body("rod.end")
            b.joint("rod.end", "fixed", "rod", "rod.end", point=(1, 0, 0))
        b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0))
        b.body("bob", mass=5.0, com=(1.3, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint("elbow", "revolute", "rod.end", "bob", point=(1, 0, 0), axis=(0, 1, 0))
        run = bc.simulate(b.build(), 0.3, q0={"hinge": 0.3}, v0={"elbow": 2.0}, step=1e-5, every=0.1)
        ends.append([run["hinge.q"], run["elbow.q"]])
    assert np.array(ends[0]) == pytest.approx(np.array(ends[1]), abs=1e-6)


def _slices(mass: float, axis: int) -> float:
    n = BAR.numbers
    per = STEEL.density
    return (per * (n.Iy + n.Iz), per * n.Iy + mass / 12, per * n.Iz + mass / 12)[axis]


def spun(modes: int, **beam: Any) -> Any:
    b = bc.Builder("spun", gravity=(0, 0, 0))
    b.beam("beam", length=SPUN_LENGTH, section=SPUN, elements=30, theory="euler", modes=modes, attached=False, **beam)
    b.joint("base", "revolute", "ground", "beam", armature=1e12)
    return b.build()


def test_spin_up() -> None:
    """A linear beam with centrifugal stiffening; without it the deflection would diverge."""
    m = spun(12, motions=("bend_z",))

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"base": 1e12 * 0.4 * (1 - bc.cos(2 * math.pi / 15 * t))}

    run = bc.simulate(bc.system(m, control=control), 10.0, step=2.5e-4, every=0.01)
    X, angle = m.pose(run.q, frame="beam.end"), run["base.q"]
    across = np.cos(angle) * X[:, 1, 3] - np.sin(angle) * X[:, 0, 3]
    assert across.min() == pytest.approx(-0.574373, rel=1e-5)
    assert run.t[across.argmin()] == pytest.approx(6.76, abs=0.005)
    assert across[[500, 1000]] == pytest.approx([-0.468782, -0.362849], rel=1e-5)


def steady(m: Any, speed: float) -> Any:
    """Return q for steady rotation of the base."""
    q, v, still = m.neutral(), np.zeros(m.nv), np.zeros(m.nv)
    v[0] = speed
    for _ in range(8):
        J = m.inverse_dynamics_derivatives(q, v, still)[0][1:, 1:]
        q[1:] -= np.linalg.solve(J, m.inverse_dynamics(q, v, still)[1:])
    return q


def test_a_spinning_beam_stretches() -> None:
    b = bc.Builder("spun", gravity=(0, 0, 0))
    b.beam("beam", length=SPUN_LENGTH, section=SPUN, elements=40, theory="euler", modes=8, motions=("stretch",))
    b.joint("base", "revolute", "ground", "beam")
    m = b.build()
    q = steady(m, 6.0)
    q[0] = 0.0
    assert m.pose(q, frame="beam.end")[0, 3] - SPUN_LENGTH == pytest.approx(5.14317e-4, rel=1e-5)


# A. D. Wright, C. E. Smith, R. W. Thresher and J. L. C. Wang, Vibration modes of centrifugally stiffened beams, J.
# Applied Mechanics 49, 1982: out of the plane of rotation. Southwell's problem.
SOUTHWELL = {
    0: (3.5160, 22.0345), 1: (3.6816, 22.1810), 3: (4.7973, 23.3203), 6: (7.3604, 26.8091), 12: (13.1702, 37.6031)
}  # fmt: skip


@pytest.mark.parametrize("speed", SOUTHWELL)
def test_a_blades_frequencies_rise_with_its_speed(speed: float) -> None:
    """Compare with the paper and with a Ritz solution without finite elements, modes or a mechanism.

    The Ritz functions are polynomials clamped at 0, with the bending energy and that of the tension speed^2 (1 - x^2) /
    2 on the slopes, in units of sqrt(EI / rhoA L^4).
    """
    x, weight = np.polynomial.legendre.leggauss(40)
    x, weight = (x + 1) / 2, weight / 2
    square, power = np.polynomial.Polynomial([0, 0, 1]), np.polynomial.Polynomial
    shapes = [square * np.polynomial.Legendre.basis(k, [0, 1]).convert(kind=power) for k in range(12)]
    w, slope, curvature = (np.array([f.deriv(d)(x) if d else f(x) for f in shapes]) for d in range(3))
    K = (curvature * weight) @ curvature.T + (slope * weight * speed**2 * (1 - x**2) / 2) @ slope.T
    exact = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve((w * weight) @ w.T, K)).real))[:2]
    assert exact == pytest.approx(SOUTHWELL[speed], abs=6e-5)
    m = spun(10, motions=("bend_y",))
    unit = math.sqrt(SPUN.EIy / (SPUN.rhoA * SPUN_LENGTH**4))
    q, v, still = m.neutral(), np.zeros(m.nv), np.zeros(m.nv)
    v[0] = speed * unit
    K = m.inverse_dynamics_derivatives(q, v, still)[0][1:, 1:]
    omega = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(m.mass_matrix(q)[1:, 1:], K)).real))[:2]
    assert omega / unit == pytest.approx(exact, rel=2e-5)


def cantilever(**beam: Any) -> Any:
    b = bc.Builder("cantilever", gravity=(0, 0, -9.81))
    b.beam("beam", **{"length": 2.0, "section": BAR, "material": STEEL} | beam)
    b.joint("root", "fixed", "ground", "beam")
    return b.build()


def test_a_cantilever_rings_and_sags() -> None:
    m = cantilever(modes=16)
    K, M = Beam(2.0, BAR, STEEL).matrices
    q = m.neutral()
    stiffness = np.diag([*m.flexible[0].stiffness])
    found = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(m.mass_matrix(q), stiffness)).real))
    assert found[:3] == pytest.approx(frequencies(K, M, range(6))[:3], rel=1e-4)
    load, n = 30.0, BAR.numbers
    w = STEEL.density * n.area * 9.81
    bent = 2.0**4 * w / (8 * STEEL.E * n.Iy) + load * 2.0**3 / (3 * STEEL.E * n.Iy)
    sheared = (w * 2.0**2 / 2 + load * 2.0) / (STEEL.G * n.area * n.kz)
    q = at_rest(m, "beam.end", (0, 0, -load))
    assert m.pose(q, frame="beam.end")[2, 3] == pytest.approx(-bent - sheared, rel=1e-5)


@pytest.mark.filterwarnings("ignore:beam. sound would run:RuntimeWarning")
def test_small_deflections_only() -> None:
    """The limit of the modal form: a deflection of a third of the length is too large (docs/flexible.md)."""
    I = bc.Section.rectangle(12.3777e-3, 3.2024e-3).numbers
    m = cantilever(
        length=0.508, section=bc.Section.general(I.area, I.Iy, I.Iz, I.J), material=bc.Material(71.7e9, 0.31, 1.0)
    )
    q = at_rest(m, "beam.end", (0, 0, 8.896))
    assert m.pose(q, frame="beam.end")[2, 3] > 1.05 * 0.14624598


def test_damping_takes_energy() -> None:
    quiet, ringing = (cantilever(modes=1, below=100.0, damping=d) for d in (0.05, 0.0))
    runs = [bc.simulate(m, 0.5, q0=[0.01] * m.nq, step=1e-4) for m in (quiet, ringing)]
    assert max(run.residuals()["energy"] for run in runs) < 1e-5  # the energy balance includes damping
    ends = [run["energy"] for run in runs]
    assert ends[0][-1] < ends[0][0] - 0.5 * abs(ends[0][0])
    assert ends[1][-1] == pytest.approx(ends[1][0], rel=1e-6)


def test_mechanism_can_be_written_and_read() -> None:
    m = arm()
    for other in (from_plain(json.loads(json.dumps(to_plain(m)))), pickle.loads(pickle.dumps(m))):
        assert other.fingerprint == m.fingerprint
        q, v, tau = random(m, 1)
        assert np.array_equal(other.forward_dynamics(q, v, tau), m.forward_dynamics(q, v, tau))
    stiffer = cantilever(modes=2)
    assert stiffer.fingerprint != cantilever(modes=2, damping=0.01).fingerprint


@pytest.mark.parametrize(
    ("beam", "words"),
    [
        ({"nodes": {"tip": 0.33}}, "elements"),
        ({"nodes": {}}, "no nodes; expected at least one"),
        ({"nodes": {"hook": 0.5, "stay": 0.5}}, 'nodes "hook" and "stay" are both at 0.5'),
        ({"modes": 0, "attached": False}, "modes"),
        ({"modes": 1000}, "modes is"),
        ({"below": 1.0}, "lowest frequency"),
        ({"motions": ("shear_y",)}, "bend"),
    ],
)
def test_modes_that_cannot_be(beam: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        cantilever(**beam)


def test_builder_rejects_a_modal_joint() -> None:
    b = bc.Builder("by hand")
    b.body("arm", mass=1.0)
    with pytest.raises(ModelError, match="modal 3"):
        b.joint("bend", "modal 3", "ground", "arm")


def test_a_step_that_the_fastest_mode_does_not_allow() -> None:
    m = cantilever(modes=2)
    K = np.diag(m.flexible[0].stiffness)
    fastest = math.sqrt(np.linalg.eigvals(np.linalg.solve(m.mass_matrix(m.neutral()), K)).real.max())
    words = f'"beam" has a mode of {fastest / 2 / math.pi:.4g} Hz.*rk4.*step=.*rodas4'
    with pytest.raises(InputError, match=words) as error:
        bc.simulate(m, 0.01, step=1e-3)
    step = float(str(error.value).partition("step=")[2].split()[0])
    assert 2.0 < step * fastest < 2.83  # rk4 is stable up to 2 sqrt(2)
    with pytest.warns(RuntimeWarning, match="is not resolved"):  # but the motion stays bounded
        bc.simulate(m, 100 * step, step=step)
    with pytest.warns(RuntimeWarning, match="is not resolved"):
        bc.simulate(m, 0.01, step=1e-3, integrator="midpoint")


def test_parameters_of_the_modes_cannot_be_free() -> None:
    m = slider_crank(**PLANE)
    for name in ("rod.mass", "rod.com", "rod.end.point"):
        with pytest.raises(InputError, match="the body is flexible"):
            m.free(name)
    assert "crank.mass" in m.free("crank.mass").parameters


def test_page_shows_a_flexible_body(tmp_path: Any) -> None:
    bc.simulate(cantilever(modes=1, below=100.0), 0.01, q0={"beam.end.mode1": 0.01}, step=1e-3).report(
        tmp_path / "run.html"
    )
    assert (tmp_path / "run.html").stat().st_size > 1000


def tree(seed: int, gravity: float = -9.81) -> Any:
    """A tree of rigid and flexible bodies on random joints at random positions."""
    rng = np.random.default_rng(seed)
    b = bc.Builder("tree", gravity=(0, 0, gravity))
    places = ["ground"]
    for i in range(5):
        name, point = f"body{i}", rng.uniform(-1, 1, 3)
        if i % 2 == seed % 2:
            axis, side = rng.normal(size=(2, 3))
            b.beam(
                name, length=1.5, section=TAPER, material=STEEL, start=point, axis=axis, side=side, elements=4,
                modes=int(rng.integers(1, 3)), below=float(rng.choice([200.0, 400.0])), nodes={"end": 1.0, "on": 0.5},
                theory=str(rng.choice(["euler", "timoshenko"])), damping=0.01,
            )  # fmt: skip
        else:
            b.body(name, mass=rng.uniform(1, 5), com=point + rng.uniform(-0.3, 0.3, 3), inertia=rng.uniform(1, 1.5, 3))
        kind = str(rng.choice(["revolute", "prismatic", "cylindrical", "spherical", "fixed", "floating", "planar"]))
        axis = {} if kind in ("spherical", "floating", "fixed") else {"axis": rng.normal(size=3)}
        b.joint(f"joint{i}", kind, str(rng.choice(places)), name, point=point, **axis)
        places += [name] if i % 2 != seed % 2 else [name, f"{name}.end", f"{name}.on"]
    return b.build()


def test_beams_welded_to_a_node_and_to_each_other() -> None:
    """Modes of two beams end at a node of a third, all of whose axes stay open."""
    b = bc.Builder("welded")
    bar = {"section": BAR, "material": STEEL, "elements": 4, "modes": 2, "below": 400.0}
    b.beam("first", length=1.0, start=(0, 0, 0), axis=(1, 0, 0), side=(0, 1, 0), **bar)
    b.joint("hinge", "revolute", "ground", "first", axis=(0, 1, 0))
    for name, axis, carrier in (("second", (0, 0.6, 0.8), "first.end"), ("third", (0, -0.6, 0.8), "second")):
        b.beam(name, length=0.7, start=(1, 0, 0), axis=axis, side=(1, 0, 0), **bar)
        b.joint(f"weld of {name}", "fixed", carrier, name, point=(1, 0, 0))
    m = b.build()
    assert [body.link for body in m.tree.flexible] == [0, 1, 1]
    q, v, x = random(m, 0)
    for quantity in ("forward_dynamics", "bias", "mass_matrix"):
        ways = [by.name for by in applicable_methods(quantity, m.tree)]
        expected, *results = [of(m, quantity, way, 0.1 * q, 10.0 * v, x) for way in ways]
        for way, found in zip(ways[1:], results, strict=True):
            assert found == pytest.approx(expected, rel=1e-8, abs=1e-8 * np.abs(expected).max()), (quantity, way)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed: int) -> None:
    m = tree(seed)
    q, v, x = random(m, seed)
    for quantity in ("forward_dynamics", "mass_matrix", "bias"):
        ways = [by.name for by in applicable_methods(quantity, m.tree)]
        results = [of(m, quantity, way, q, v, x) for way in ways]
        for way, found in zip(ways, results, strict=True):
            assert found == pytest.approx(results[0], rel=1e-9, abs=1e-10 * np.abs(results[0]).max()), (quantity, way)
    given = [z.tolist() for z in (q, v)]
    M = of(m, "mass_matrix", "crba", q, v, x)
    assert kinematics.kinetic_energy(m.tree, *given) == pytest.approx(0.5 * v @ M @ v, rel=1e-11)
    a = of(m, "forward_dynamics", "crba", q, v, np.zeros(m.nv))
    power = np.array(kinematics.passive_torque(m.tree, *given))
    elastic = np.array(kinematics.passive_torque(m.tree, given[0], [0.0] * m.nv))
    assert (power - elastic) @ v <= 0.0
    e = 1e-6

    def energy(s: float) -> float:
        there = kinematics.integrate(m.tree, given[0], (s * v).tolist())
        speed = (v + s * a).tolist()
        return float(kinematics.kinetic_energy(m.tree, there, speed) + kinematics.potential_energy(m.tree, there))

    scale = np.abs(elastic * v).max() + np.abs(M @ a * v).max()
    assert (energy(e) - energy(-e)) / (2 * e) == pytest.approx((power - elastic) @ v, abs=1e-5 * scale)


@pytest.mark.parametrize("modes", [1, 2])
def test_one_name_for_a_modal_coordinate(modes: int) -> None:
    """The name is the same in q and v, in records and as linearisation states, also for a single mode."""
    b = bc.Builder("whip")
    b.beam("whip", length=2.0, section=bc.Section.circle(0.02), material=bc.Material.steel(), elements=4,
           motions=("bend_y",), modes=modes, attached=False)  # fmt: skip
    b.joint("hub", "revolute", "ground", "whip", axis=(0, 1, 0))
    whip = b.build()
    names = tuple(f"whip.end.mode{k + 1}" for k in range(modes))
    assert whip.columns == (("hub", *names), ("hub", *names))
    run = bc.simulate(whip, 1e-3, integrator="rodas4", every=1e-3, q0={names[0]: 0.01}, v0={names[-1]: 0.1})
    assert run[f"{names[0]}.q"][0] == 0.01
    assert run[f"{names[-1]}.v"][0] == 0.1
    assert bc.linearize(whip).states == tuple(f"{n}.{c}" for c in "qv" for n in ("hub", *names))
