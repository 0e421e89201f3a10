"""Over-constrained linkages run without stops, jumps and force noise where the full Jacobian keeps its rank.

This holds for any cut joint, in every form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from test_looped_dynamics import reference

import bellcrank as bc
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.dynamics.loops.rank import LoopRank, solve_multipliers
from bellcrank.model import Mechanism
from bellcrank.sim.settings import FORMS
from overconstrained import KINDS, Hinge, cases, linkage, some
from trees import close

STEPS: dict[str, dict[str, float]] = {
    "rk4": {"step": 5e-4},
    "dopri5": {"tolerance": 1e-11, "every": 1e-3},
    "rodas4": {"tolerance": 1e-10, "every": 1e-3},
}


def three_cranks() -> Mechanism:
    pivots, arm = ((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.7, 1.5, 0.0)), np.array([0.0, 0.5, 0.0])
    b = bc.Builder("three_cranks", gravity=(0, 0, 0))
    b.body("plate", mass=2.0, com=(0.9, 1.0, 0.0), inertia=(0.3, 0.3, 0.5))
    for k, p in enumerate(pivots):
        b.body(f"crank{k}", mass=0.5, com=p + 0.5 * arm, inertia=(0.01, 0.002, 0.01))
        b.joint(f"A{k}", "revolute", "ground", f"crank{k}", point=p)
        b.joint(f"B{k}", "revolute", f"crank{k}", "plate", point=p + arm)
    return b.build()


def least(m: Mechanism, q: Any) -> Any:
    """Smallest nonzero singular value of the whole Jacobian, relative to the largest."""
    s = np.linalg.svd(m.closure_jacobian(q), compute_uv=False)
    return s[..., m.loop_analysis.rank.rank - 1] / s[..., 0]


def started(m: Mechanism, seed: int, speed: float = 2.0) -> tuple[Any, Any]:
    q = m.loop_analysis.samples[seed % len(m.loop_analysis.samples)]
    v = m.assemble(q, np.random.default_rng(seed).normal(size=m.nv))[1]
    return q, speed * v / np.abs(v).max()


def goes_on(m: Mechanism, form: str, integrator: str, seed: int, seconds: float) -> None:
    q, v = started(m, seed)
    how: Any = {"form": form, "integrator": integrator, **STEPS[integrator]}
    run = bc.simulate(m, seconds, q, v, **how)
    (stop,) = run.stops
    if stop.reason != "end":  # allowed where the linkage is singular
        assert least(m, run.q[-1]) < 1e-3, stop.message
    if least(m, run.q).min() > 0.02:
        assert stop.reason == "end", stop.message
        lost = run.residuals()["energy"]
        if (
            integrator == "rk4" and form != "lagrange" and 1e-9 <= lost < 1e-8
        ):  # the integrator's error, which falls with the fourth power of the step
            finer = bc.simulate(m, seconds, q, v, **{**how, "step": 0.5 * how["step"]})
            assert finer.residuals()["energy"] < min(1e-9, lost / 12.0)
        else:
            assert lost < (1e-6 if form == "lagrange" and integrator == "rk4" else 1e-9)
    assert np.abs(m.closure(run.q)).max() < (1e-4 if form == "lagrange" else 1e-10)


@pytest.mark.parametrize("integrator", STEPS)
@pytest.mark.parametrize("form", FORMS)
def test_plate_on_three_cranks_completes_a_turn(form: str, integrator: str) -> None:
    """Any three of its four equations become dependent somewhere; all four never lose their rank."""
    m = three_cranks()
    assert m.loop_analysis.mobility == 1
    q, v = m.assemble({}, {"A0": 1.0}, fixed=["A0"])
    run = bc.simulate(m, 7.0, q, v, form=form, integrator=integrator, **STEPS[integrator])
    assert run.stops[0].reason == "end", run.stops[0].message
    assert run.residuals()["energy"] < 1e-9
    assert np.abs(np.abs(run.v) - 1.0).max() < (1e-7 if form == "lagrange" else 1e-9)
    assert np.abs(run["A0.a"]).max() < 1e-6


def test_forces_of_three_cranks_do_not_jump() -> None:
    """Over a full turn with a torque on one crank, forces have no noise and no jumps between equations."""
    m = three_cranks()
    angles = np.linspace(0.0, 2 * np.pi, 2001)
    q = np.stack([angles, -angles, angles, angles], axis=1)[
        :, [["A0", "B0", "A1", "A2"].index(c) for c in m.columns[0]]
    ]
    v = np.sign(m.assemble({}, {"A0": 1.0})[1]) * np.ones((len(q), 1))
    tau = np.zeros_like(q)
    tau[:, m.columns[1].index("A0")] = 1.0
    assert np.abs(m.closure(q)).max() < 1e-14
    for name in ("loop_forces", "reactions"):
        forces = getattr(m, name)(q, v, tau)
        assert np.isfinite(forces).all()
        assert np.abs(forces).max() < 20.0
        assert np.abs(np.diff(forces, axis=0)).max() < 0.05
    driven = m.inverse_dynamics(q, v, m.forward_dynamics(q, v, tau), actuated=["A1"])
    assert np.abs(np.abs(driven).max(axis=1) - 1.0).max() < 1e-9


@given(case=cases)
@settings(max_examples=15)
def test_dynamics(case: tuple[str, int]) -> None:
    """Accelerations equal the least-squares solution; forces are those of minimum norm."""
    m = some(*case)
    rank = m.loop_analysis.rank
    assert rank.groups
    q, v = started(m, case[1])
    tau = np.random.default_rng(case[1]).normal(size=m.nv)
    if least(m, q) < 1e-2:
        return
    now = (q.tolist(), v.tolist(), tau.tolist())
    layer = LoopLayer(METHODS["crba"], rank)
    close(layer.forward_dynamics(m.tree, *now), reference(m, *now), 1e-8)


@given(case=cases)
@settings(max_examples=12)
def test_multipliers_are_the_smallest(case: tuple[str, int]) -> None:
    """N^+ b for any right-hand side in the range of N, each row scaled by its usual size."""
    m = some(*case)
    rank = m.loop_analysis.rank
    C = evaluate_constraints(m.tree, m.loop_analysis.samples[-1]).C[list(rank.rows)] / np.array(rank.scale)[:, None]
    N, b = C @ C.T, C @ np.random.default_rng(case[1]).normal(size=m.nv)
    plain = LoopRank(rank.rows, rank.groups, tuple(1.0 for _ in rank.rows), rank.loop)
    found = solve_multipliers(plain, lambda i, j: float(N[i, j]), b.tolist())
    if found.conditioning > 1e-2:
        close(np.array(found.values, float), np.linalg.pinv(N, rcond=1e-9, hermitian=True) @ b, 1e-7)


@pytest.mark.parametrize(
    ("kind", "form", "integrator"),
    [
        ("four cranks", "minimal", "rk4"),
        ("stack", "projected", "dopri5"),
        ("bennett", "minimal", "dopri5"),
        ("bennett", "projected", "rk4"),
        ("sarrus", "lagrange", "rodas4"),
        ("sarrus", "minimal", "rodas4"),
    ],
)
def test_random_linkages_go_on(kind: str, form: str, integrator: str) -> None:
    goes_on(some(kind, 7), form, integrator, 7, 2.0)


@pytest.mark.long
@pytest.mark.parametrize("integrator", STEPS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [*range(5), 102])
def test_many_random_linkages_go_on(kind: str, form: str, integrator: str, seed: int) -> None:
    goes_on(some(kind, seed), form, integrator, seed, 3.0 if seed < 100 else 2.0)


# -- inexact numbers


def four_bar(tilt: float, tilted: str = "B", dropped: float = 0.0) -> Mechanism:
    """A planar four-bar with one tilted hinge, or with one pin out of the plane of the others."""
    at = {"A": (0, 0, 0), "B": (0, 1, 0), "C": (2, 1.4, dropped), "D": (2, 0, 0)}
    bodies = ["ground", "crank", "coupler", "rocker", "ground"]
    axes = {k: (np.sin(tilt), 0.0, np.cos(tilt)) if k == tilted else (0, 0, 1) for k in at}
    return linkage("bars", [Hinge(k, bodies[i], bodies[i + 1], at[k], axes[k]) for i, k in enumerate(at)], ["C"], 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tilt", [1e-12, 1e-10, 1e-8, np.pi / 2 - 1.5708, 1e-5, 1.571 - np.pi / 2])
def test_axes_that_are_parallel_but_for_rounding(form: str, tilt: float) -> None:
    exact, m = four_bar(0.0), four_bar(tilt)
    runs = []
    for x in (exact, m):
        with pytest.warns(RuntimeWarning, match="numbers are not exact") if x is m and abs(tilt) > 1e-9 else quiet():
            runs.append(bc.simulate(x, 1.0, *x.assemble({}, {"A": 2.0}, fixed=["A"]), form=form, step=1e-3))
    assert m.loop_analysis.mobility == 1
    assert ("numbers are not exact" in str(m.loop_analysis)) == (abs(tilt) > 1e-9)
    assert runs[1].stops[0].reason == "end"
    close(runs[1].q, runs[0].q, max(1e-8, 100.0 * abs(tilt)))
    assert runs[1].residuals()["energy"] < max(1e-8, tilt**2)  # the projection's energy loss is of second order


@pytest.mark.filterwarnings("ignore:.*numbers are not exact:RuntimeWarning")
@pytest.mark.parametrize(("tilted", "cut"), ["CC", "AB", "DA"])
def test_forces_do_not_jump_where_an_equation_is_rounding(tilted: str, cut: str) -> None:
    """An equation of a tilted axis that is only rounding error must not constrain the linkage.

    In a coordinate plane it stood alone, with no other terms: it locked the whole linkage without an error, whereas the
    rotated linkage above makes full turns.
    """
    at = {"A": (0.0, 0.0, 0.0), "B": (0.0, 0.5, 0.0), "C": (1.2, 0.9, 0.0), "D": (1.0, 0.0, 0.0)}
    bodies = ["ground", "crank", "coupler", "rocker", "ground"]

    def bars(tilt: float) -> Mechanism:
        axes = {k: (np.sin(tilt), 0.0, np.cos(tilt)) if k == tilted else (0, 0, 1) for k in at}
        hinges = [Hinge(k, bodies[i], bodies[i + 1], at[k], axes[k]) for i, k in enumerate(at)]
        return linkage("bars", hinges, [cut], 0, turned=False)

    def falls(m: Mechanism) -> Any:
        rank, still = m.loop_analysis.rank, [0.0] * m.nv
        assert m.loop_analysis.mobility == 1
        assert all(g.rank for g in rank.groups)
        return np.array(LoopLayer(METHODS["crba"], rank).forward_dynamics(m.tree, still, still, still), float)

    exact = falls(bars(0.0))
    assert np.abs(exact).max() > 1.0
    for tilt in (1e-8, 1e-4):
        close(falls(bars(tilt)), exact, max(1e-7, 100.0 * tilt))


@pytest.mark.parametrize("form", FORMS)
def test_wall_linkage_falls(form: str) -> None:
    at = {"A": (0.0, 0.0, 0.0), "B": (0.0, 0.5, 0.0), "C": (1.2, 0.9, 0.0), "D": (1.0, 0.0, 0.0)}
    bodies = ["ground", "crank", "coupler", "rocker", "ground"]
    hinges = [Hinge(k, bodies[i], bodies[i + 1], at[k], (1e-6 * (k == "C"), 0, 1)) for i, k in enumerate(at)]
    m = linkage("bars", hinges, ["C"], 0, turned=False)
    with pytest.warns(RuntimeWarning, match="numbers are not exact"):
        run = bc.simulate(m, 0.2, form=form, step=1e-3)
    assert run.stops[0].reason == "end"
    assert np.abs(run.q[-1]).max() > 0.01
    assert run.residuals()["energy"] < 1e-8


class quiet:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_linkage_that_cannot_move_is_warned_about() -> None:
    m = four_bar(0.01)
    with pytest.warns(RuntimeWarning, match="it cannot move"):
        bc.simulate(m, 0.01)
    assert m.loop_analysis.mobility == 0
    assert "it cannot move" in str(m.loop_analysis)


# -- singular configurations


def parallelogram() -> Mechanism:
    """Two cranks of 1 m, 2 m apart, at a quarter turn per second: after 1 s all bars are in a line."""
    at = {"A0": (0, 0, 0), "B0": (0, 1, 0), "B1": (2, 1, 0), "A1": (2, 0, 0)}
    bodies = ["ground", "left", "bar", "right", "ground"]
    b = bc.Builder("parallelogram", gravity=(0, 0, 0))
    for name, x, y in (("left", 0.0, 0.5), ("bar", 1.0, 1.0), ("right", 2.0, 0.5)):
        b.body(name, mass=1.0, com=(x, y, 0.0), inertia=(0.1, 0.1, 0.1))
    for i, (name, p) in enumerate(at.items()):
        b.joint(name, "revolute", bodies[i], bodies[i + 1], point=p)
    return b.build()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("integrator", ["rk4", "dopri5"])
def test_a_row_on_a_singular_configuration_is_no_noise(form: str, integrator: str) -> None:
    m, speed = parallelogram(), np.pi / 2
    q, v = m.assemble({}, {"A0": speed}, fixed=["A0"])
    run = bc.simulate(m, 1.5, q, v, form=form, integrator=integrator, every=0.01,
                      **({"step": 0.01} if integrator == "rk4" else {"tolerance": 1e-9}))  # fmt: skip
    assert run.stops[0].reason == "end", run.stops[0].message
    k = int(np.argmin(np.abs(run.t - 1.0)))
    assert run.t[k] == pytest.approx(1.0)
    assert np.abs(np.abs(run.v[:, :1]) - speed).max() < 1e-5
    assert np.isnan(run["A0.a"][k]) or abs(run["A0.a"][k]) < 1e-3
    assert np.nanmax(np.abs(run["A0.a"])) < 1e-3
    assert np.isnan(m.forward_dynamics(run.q[k], run.v[k], np.zeros(m.nv))).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("integrator", ["rodas4", "midpoint"])
@pytest.mark.parametrize("step", [5e-4, 2.5e-4])
def test_no_step_leaps_from_a_singular_configuration(step: float, integrator: str, form: str) -> None:
    """A step that begins near a singularity may end anywhere without a sign of error.

    It must cross, or stop. Stages of rodas4 that meet the singularity within rounding leave an end whose velocity the
    projection changes by more than is accepted, so that it may stop in minimal form, too.
    """
    m, speed = parallelogram(), np.pi / 2
    q, v = m.assemble({}, {"A0": speed}, fixed=["A0"])
    q[0] += 0.9 * speed  # 0.1 s before it
    q, v = m.assemble(q, v, fixed=["A0"])
    run = bc.simulate(m, 0.2, q, v, form=form, integrator=integrator, step=step, every=step)
    assert run.stops[0].reason in ("end", "not closed")
    assert run.stops[0].reason == "end" or form != "minimal" or integrator == "rodas4"
    assert np.abs(np.abs(run.v) - speed).max() < 0.01


def test_nor_are_derivatives_there() -> None:
    """Accelerations were NaN, and their derivatives zero, or 1e25."""
    m = parallelogram()
    q = m.assemble({"A0": np.pi / 2}, fixed=["A0"])[0]
    v, tau = m.assemble(q, {"A0": 1.0})[1], np.random.default_rng(0).normal(size=m.nv)
    assert np.isnan(m.forward_dynamics(q, v, tau)).all()
    for x in m.forward_dynamics_derivatives(q, v, tau):
        assert np.isnan(x).all()
    with pytest.warns(RuntimeWarning, match="singular"):
        assert np.isnan(bc.linearize(m, at=q).A).all()
    near = m.assemble({"A0": np.pi / 2 - 0.01}, fixed=["A0"])[0]
    for x in m.forward_dynamics_derivatives(near, 0.0 * v, tau):
        assert np.isfinite(x).all()
