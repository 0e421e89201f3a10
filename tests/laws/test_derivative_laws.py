"""Properties of derivatives by any method: random trees with springs between bodies, and random loops.

Energy changes by the power of the forces, dM is symmetric and C + C^T its rate, velocity-dependent forces are
homogeneous of degree two in v, and a derivative along v equals that along `integrate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.build import graphs
from bellcrank.dynamics import applicable_methods, kinematics
from bellcrank.dynamics.loops.assembly import assemble_batch, consistent_velocity
from bellcrank.model import Mechanism
from loops import FRAMED, Closed, at_random, closed, looped
from trees import HOLONOMIC, few, trees

Array = np.ndarray[Any, Any]
ROUTES = ("derivatives", "crba", "aba")


def evaluated(m: Mechanism, name: str, state: dict[str, Array], method: str = "auto", **more: Any) -> Array:
    graph = graphs.graph(m, name, method, **more)
    return np.asarray(graph.evaluate(**{key: state[key] for key in graph.inputs})[next(iter(graph.outputs))])


def along(m: Mechanism, name: str, state: dict[str, Array], method: str = "auto", **moved: Array) -> Array:
    """Rate of change of a quantity when some of its arguments move."""
    graph = graphs.graph(m, name, method).jvp([key for key in moved if key in graphs.graph(m, name, method).inputs])
    given = state | {f"d_{key}": x for key, x in moved.items()}
    return np.asarray(graph.evaluate(**{key: given[key] for key in graph.inputs})[f"d_{name}"])


def rate(m: Mechanism, q: Any, v: Any) -> Array:
    return np.array(kinematics.rate(m.tree, list(q), list(v)), float)


def started(m: Mechanism, seed: int) -> dict[str, Array]:
    return dict(zip(("q", "v", "tau"), m.random(seed), strict=True))


def power_is_the_rate_of_energy(m: Mechanism, s: dict[str, Array]) -> None:
    a, dq = evaluated(m, "forward_dynamics", s), rate(m, s["q"], s["v"])
    change = along(m, "kinetic_energy", s, q=dq, v=a) + along(m, "potential_energy", s, q=dq)
    scale = 1.0 + np.abs(s["tau"] * s["v"]).sum() + abs(evaluated(m, "kinetic_energy", s)) + np.abs(a * s["v"]).sum()
    assert abs(change - s["tau"] @ s["v"]) < 1e-8 * scale


@few(12)
@given(trees(HOLONOMIC, max_bodies=5), st.integers(0, 2), st.integers(0, 1000))
def test_energy_changes_by_the_power_of_the_forces(m: Mechanism, springs: int, seed: int) -> None:
    m = closed(m, seed, (), springs)[0].frictionless()
    m = m if not any(s.damping for s in m.springs) else closed(m, seed, (), 0)[0]
    power_is_the_rate_of_energy(m, started(m, seed))


@few(10)
@given(trees(max_bodies=5), st.integers(0, 1000))
def test_the_mass_matrix_changes_symmetrically(m: Mechanism, seed: int) -> None:
    """Along the motion, the mass matrix changes by the Coriolis matrix and its transpose."""
    s = started(m, seed)
    dM = along(m, "mass_matrix", s, q=rate(m, s["q"], s["v"]))
    C = evaluated(m, "coriolis_matrix", s)
    scale = 1.0 + np.abs(dM).max() + np.abs(C).max()
    np.testing.assert_allclose(dM, dM.T, atol=1e-11 * scale)
    np.testing.assert_allclose(C + C.T, dM, atol=1e-9 * scale)


@few(10)
@given(trees(max_bodies=5), st.integers(0, 1000))
def test_forces_of_motion_are_of_degree_two(m: Mechanism, seed: int) -> None:
    """Euler: (d tau / dv) v is twice the velocity forces, for bodies without springs, damping and friction."""
    m, s = m.frictionless(), started(m.frictionless(), seed)
    still, moving = ({**s, "a": 0.0 * s["v"], "v": x * s["v"]} for x in (0.0, 1.0))
    needed = evaluated(m, "inverse_dynamics", moving) - evaluated(m, "inverse_dynamics", still)
    _, dv, M = evaluated(m, "inverse_dynamics_derivatives", moving)
    np.testing.assert_allclose(dv @ s["v"], 2.0 * needed, atol=1e-9 * (1.0 + np.abs(dv).max() * np.abs(s["v"]).max()))
    np.testing.assert_allclose(M, evaluated(m, "mass_matrix", s), atol=1e-11 * (1.0 + np.abs(M).max()))


@few(4)
@given(trees(max_bodies=3, passive=True, coupled=True), st.integers(0, 2), st.integers(0, 1000))
def test_every_route_is_the_derivative_along_integrate(m: Mechanism, springs: int, seed: int) -> None:
    """With springs between bodies, and springs, damping and couplings of joints; by each applicable method."""
    m = closed(m, seed, (), springs)[0]
    s, h = started(m, seed), 1e-6
    xi = np.random.default_rng(seed).normal(size=m.nv)
    ends = [kinematics.integrate(m.tree, list(s["q"]), list(x * xi)) for x in (h, -h)]
    a, b = (evaluated(m, "forward_dynamics", {**s, "q": np.array(q, float)}) for q in ends)
    for by in (x.name for x in applicable_methods("forward_dynamics_derivatives", m.tree) if x.name in ROUTES):
        dq, _, dtau = evaluated(m, "forward_dynamics_derivatives", s, by)
        scale = 1.0 + np.abs(dq).max() * (1.0 + np.abs(xi).max())
        np.testing.assert_allclose(dq @ xi, (a - b) / (2 * h), atol=2e-5 * scale)
        np.testing.assert_allclose(dtau, dtau.T, atol=1e-9 * (1.0 + np.abs(dtau).max()))


@at_random
@few(6)
@given(looped(FRAMED, most=2, max_bodies=4), st.integers(0, 1000))
def test_loop_derivatives_along_feasible_motions(example: Closed, seed: int) -> None:
    """Power, symmetry, and the derivative along `integrate` with the loops closed again."""
    m, start = example
    m, q = m.frictionless(), np.array(start)
    found = m.loop_analysis
    C = evaluated(m, "closure_jacobian", {"q": q}) if m.loops else np.zeros((0, m.nv))
    sizes = np.linalg.svd(C, compute_uv=False)
    whole = m.nv - found.mobility
    if (
        not m.loops
        or not found.mobility
        or (whole and sizes[whole - 1] < 0.05)
        or sizes[whole:].max(initial=0.0) > 1e-9
    ):
        return
    rng, tree, tau = np.random.default_rng(seed), m.tree, np.random.default_rng(seed).normal(size=m.nv)
    v, xi = (np.asarray(consistent_velocity(tree, q, rng.normal(size=m.nv))) for _ in range(2))
    power_is_the_rate_of_energy(m, {"q": q, "v": v, "tau": tau})
    s = {"q": q, "v": 0.0 * v, "tau": tau}
    dq, dv, dtau = evaluated(m, "forward_dynamics_derivatives", s)
    scale, h = 1.0 + np.abs(dq).max() + np.abs(dv).max(), 1e-5
    np.testing.assert_allclose(dtau, dtau.T, atol=1e-9 * (1.0 + np.abs(dtau).max()))
    np.testing.assert_allclose(C @ dtau, 0.0, atol=1e-8 * (1.0 + np.abs(dtau).max()))
    ends = [
        assemble_batch(tree, np.array(kinematics.integrate(tree, list(q), list(x * xi)), float))[0] for x in (h, -h)
    ]
    a, b = (evaluated(m, "forward_dynamics", {**s, "q": x}) for x in ends)
    np.testing.assert_allclose(dq @ xi, (a - b) / (2 * h), atol=1e-4 * scale * (1.0 + np.abs(xi).max()))
    a, b = (evaluated(m, "forward_dynamics", {**s, "v": x * xi}) for x in (h, -h))
    np.testing.assert_allclose(dv @ xi, (a - b) / (2 * h), atol=1e-6 * scale * (1.0 + np.abs(xi).max()))
