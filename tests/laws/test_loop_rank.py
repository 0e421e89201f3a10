"""The rank of loop equations from the gap in the singular values, for linkages of any length, size and mass.

Each family has its known mobility, accelerations equal a dense reference with 40 digits, and runs in every form keep
their loops closed and conserve energy.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops import equation_analysis
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.dynamics.loops.constraint_values import CLEAR_GAP_RATIO, decide_ranks
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.model import Mechanism
from bellcrank.sim.settings import FORMS
from dense_reference import accelerations, state
from linkage_families import (
    HEAVIEST,
    LARGEST,
    LIGHTEST,
    SMALLEST,
    UNITS,
    Linkage,
    four_bar,
    ladder,
    lift,
    ring,
    row,
    tower,
)

SIZES = np.geomspace(LARGEST, SMALLEST, 6)  # from large to small, like a tower of units
STAGES = [2, 9, 12, 20, 35, 50]
CUTS = {"rollers": (True, False), "slides": (False, False), "shuffled": (False, True)}
LINKAGES: dict[str, Linkage] = {
    **{f"lift{n}": lift(n) for n in (2, 5, 9)},
    **{f"ring{n}": ring(n) for n in (4, 7, 12)},
    **{f"ladder{n}": ladder(n) for n in (3, 8)},
    **{f"{name}s": row([name] * len(SIZES), SIZES) for name in UNITS},
    "all": row([*UNITS], np.geomspace(SMALLEST, LARGEST, len(UNITS))),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*not exact:RuntimeWarning")


def built_lift(stages: int, cut: str, length: float = 2.0) -> Mechanism:
    rollers, shuffled = CUTS[cut]
    return lift(stages, length, rollers=rollers).built(shuffled=shuffled, seed=stages)


def masses(linkage: Linkage, seed: int) -> dict[str, float]:
    """Masses over twelve orders of magnitude, in random order."""
    rng = np.random.default_rng(seed)
    at = np.log10([LIGHTEST, HEAVIEST])
    return dict(zip(linkage.bodies, 10.0 ** rng.permutation(np.linspace(*at, len(linkage.bodies))), strict=True))


def in_motion(m: Mechanism, which: int = 3, speed: float = 1.0) -> tuple[Any, Any]:
    """A reachable configuration and a velocity in the null space, with each joint scaled by its size."""
    found = m.loop_analysis
    q = found.samples[min(which, len(found.samples) - 1)]
    free = np.random.default_rng(which).normal(size=m.nv) * found.scales.columns
    return q, speed * consistent_velocity(m.tree, q, free)


def forward(m: Mechanism, q: Any, v: Any, tau: Any, refinements: int | None = None) -> Any:
    """Forward dynamics by the source of the kernels, evaluated numerically."""
    rank = m.loop_analysis.rank
    layer = LoopLayer(METHODS["aba"], rank if refinements is None else replace(rank, refinements=refinements))
    return np.array(layer.forward_dynamics(m.tree, q.tolist(), v.tolist(), tau.tolist()), float)


def agree(found: Any, expected: Any, tolerance: float) -> None:
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


# -- mobility


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("stages", STAGES)
def test_a_scissor_lift_has_one_freedom(stages: int, cut: str) -> None:
    """An earlier threshold of 3e-4 gave two freedoms from nine stages on and sixteen from twenty on."""
    found = built_lift(stages, cut).loop_analysis
    assert found.mobility == 1
    assert not found.doubts
    counts, rest = found.gap
    assert counts > 1e6 * rest
    assert rest < 1e-10


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", LINKAGES)
def test_mobility(name: str, shuffled: bool) -> None:
    for seed in range(2):
        found = LINKAGES[name].built(seed=seed, shuffled=shuffled).loop_analysis
        assert found.mobility == LINKAGES[name].mobility
        assert found.gap[0] > CLEAR_GAP_RATIO * found.gap[1]


@pytest.mark.parametrize("name", [*UNITS])
@pytest.mark.parametrize("size", [SMALLEST, 1.0, LARGEST])
def test_the_decision_does_not_depend_on_the_size(name: str, size: float) -> None:
    """Singular values, groups and kept equations equal those of the same linkage in metres."""
    found, metre = (UNITS[name](s, 1).built(seed=1).loop_analysis for s in (size, 1.0))
    assert found.mobility == metre.mobility == UNITS[name](1.0, 1).mobility
    assert found.gap[0] == pytest.approx(metre.gap[0], rel=1e-3)
    assert found.rank.groups == metre.rank.groups
    assert found.kept == metre.kept


@pytest.mark.parametrize("name", [*UNITS])
@pytest.mark.parametrize("shuffled", [False, True])
def test_towers_of_all_sizes(name: str, shuffled: bool) -> None:
    """Stacked linkages over seven orders of magnitude."""
    one = tower([name] * len(SIZES), SIZES)
    found = one.built(shuffled=shuffled).loop_analysis
    assert found.mobility == one.mobility


def test_rank_gap_is_reported() -> None:
    found = built_lift(9, "rollers").loop_analysis
    counts, rest = found.gap
    assert f"{counts:.1e} and larger count, {rest:.1e} and smaller are zero" in str(found)


# -- no gap, or isolated small values


def tilted_ladder(tilts: Any) -> Mechanism:
    """Cranks that are parallel up to these angles, each of which constrains the bar by that amount."""
    one = ladder(len(tilts))
    b = bc.Builder("tilted", gravity=(0, 0, -9.81))
    for body, size in one.sizes().items():
        if body != "ground":
            b.body(body, mass=1.0, com=(0, 0, 0), inertia=[0.1 * size**2] * 3)
    for p in one.pins:
        tilt = tilts[int(p.name[1:])] if p.name[0] == "B" else 0.0
        axis = (np.sin(tilt), np.cos(tilt), 0.0)
        if p.name[0] == "A" or p.name == "B0":
            b.joint(p.name, "revolute", p.one, p.other, point=p.point, axis=axis)
        else:
            b.close(p.name, "revolute", p.one, p.other, point=p.point, axis=axis)
    return b.build()


def test_missing_rank_gap_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    U, V = np.linalg.qr(rng.normal(size=(12, 12)))[0], np.linalg.qr(rng.normal(size=(13, 13)))[0]
    gradual = U * 10.0 ** -np.linspace(0.0, 14.5, 12) @ V[:12]  # down to rounding
    (block,) = decide_ranks(np.stack([gradual] * 3))
    assert block.ratio < CLEAR_GAP_RATIO
    m = ladder(6).built()
    monkeypatch.setattr(equation_analysis, "CLEAR_GAP_RATIO", 1e30)
    with pytest.warns(RuntimeWarning, match="it is not clear how many") as caught:
        m.loop_analysis  # noqa: B018
    told = str(caught[0].message)
    assert "the singular values of C there are" in told
    assert "all digits" in told
    assert "it is not clear how many" in str(m.loop_analysis)


@pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning")  # with the largest tilt
def test_small_singular_values_with_a_gap_are_reported() -> None:
    for tilt in (1e-9, 1e-6, 1e-4):
        found = tilted_ladder(np.array([0.0, 0.0, tilt])).loop_analysis
        assert found.mobility == 1
        assert ("numbers are not exact" in str(found)) == (tilt > 1e-8)
    assert tilted_ladder(np.array([0.0, 0.0, 1e-2])).loop_analysis.mobility == 0


def test_clear_rank_gap_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("ladder8", "lift9", "ring7"):
            assert not LINKAGES[name].built().loop_analysis.warnings


def test_values_that_fall_off_gradually_count_and_such_that_stand_apart_do_not() -> None:
    rng = np.random.default_rng(0)

    def matrices(values: Any) -> Any:
        U, V = np.linalg.qr(rng.normal(size=(8, 8)))[0], np.linalg.qr(rng.normal(size=(9, 9)))[0]
        noise = rng.uniform(0.7, 1.4, size=(5, len(values)))
        return np.stack([U[:, : len(values)] * (values * x) @ V[: len(values)] for x in noise])

    gradual = 10.0 ** -np.arange(0.0, 8.0)  # 1 to 1e-7
    assert [x.rank for x in decide_ranks(matrices(gradual))] == [8]
    assert [x.rank for x in decide_ranks(matrices(np.array([1.0, 0.5, 0.2, 1e-5, 3e-6])))] == [3]
    (apart,) = decide_ranks(matrices(np.array([1.0, 0.5, 0.2, 1e-5, 3e-6])))
    assert apart.strict(1e-11).rank == 5
    assert apart.ratio > CLEAR_GAP_RATIO


# -- dynamics


def closed_form(stages: int, m: Mechanism, length: float, angle: float, speed: float, g: Any) -> float:
    """Angular acceleration of the arms, by Lagrange's equation with the angle as the only coordinate."""
    s, c, body = np.sin(angle), np.cos(angle), {b.name: b.mass for b in m.bodies}
    inertia = slope = force = 0.0
    for i in range(stages):
        for name in (f"rise{i}", f"fall{i}"):
            x, z = -0.5 * length * s, (i + 0.5) * length * c  # velocity of the centre per unit rate of the angle
            inertia += body[name] * (x * x + z * z + 0.1 * length**2)
            slope += body[name] * (2 * x * -0.5 * length * c + 2 * z * -(i + 0.5) * length * s)
            force += body[name] * (g[0] * x + g[2] * z)
    z = stages * length * c
    inertia += body["table"] * z * z
    slope += body["table"] * 2 * z * -stages * length * s
    force += body["table"] * g[2] * z
    return float((force - 0.5 * slope * speed**2) / inertia)


@pytest.mark.parametrize(("stages", "length"), [(2, 2.0), (9, 2.0), (9, 2e-4), (12, 2e3), (20, 2.0), (50, 2.0)])
def test_a_lift_by_its_one_equation(stages: int, length: float) -> None:
    one = lift(stages, length)
    m = one.built(masses=masses(one, stages))
    q, _ = m.assemble({"foot": 0.2}, fixed=["foot"])
    v = consistent_velocity(m.tree, q, np.random.default_rng(0).normal(size=m.nv))
    k = m.columns[1].index("foot")
    v *= 1.5 / v[k]
    a = forward(m, q, v, np.zeros(m.nv))
    expected = closed_form(stages, m, length, 0.3 + 0.2, 1.5, (0.3, 0.1, -9.5))
    assert float(a[k]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", LINKAGES)
def test_accelerations(name: str) -> None:
    one = LINKAGES[name]
    m = one.built(shuffled=True)
    q, v = in_motion(m)
    for tau in (np.zeros(m.nv), np.random.default_rng(0).normal(size=m.nv) * np.diag(m.mass_matrix(q))):
        agree(forward(m, q, v, tau), accelerations(m, q, v, tau, one.mobility), 1e-9)


def built_tower(names: list[str], sizes: Any, seed: int = 0, mixed: bool = False) -> tuple[Linkage, Mechanism]:
    one = tower(names, sizes, seed)
    return one, one.built(shuffled=True, seed=seed, masses=masses(one, seed) if mixed else None)


def told_as_inexact(m: Mechanism) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m.loop_analysis  # noqa: B018
    told = [str(x.message) for x in caught if "accelerations and the forces of loops are not exact" in str(x.message)]
    assert bool(told) == bool(m.loop_analysis.inexact)
    return bool(told)


def worst(one: Linkage, m: Mechanism, refinements: int | None = None, which: int = 3) -> float:
    """Return the largest relative error of accelerations; infinite if they are refused, as NaN in kernels."""
    q, v = in_motion(m, which)
    q, v = (np.array(x).astype(float) for x in state(m, q, v, one.mobility))
    still = np.zeros(m.nv)
    expected = accelerations(m, q, v, still, one.mobility)
    try:
        found = forward(m, q, v, still, refinements)
    except ValueError:  # the root of a negative number, which is NaN in a kernel
        return np.inf
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("upwards", [False, True])
@pytest.mark.parametrize("name", ["four_bar", "ring", "lift"])
def test_accelerations_of_towers(name: str, upwards: bool) -> None:
    """Upwards no digits are lost, and no loss is reported.

    The condition number of M is 1e12 to 1e16, but its factors are graded.
    """
    one, m = built_tower([name] * len(SIZES), SIZES[::-1] if upwards else SIZES)
    assert not told_as_inexact(m)
    assert worst(one, m) < 1e-9


@pytest.mark.parametrize("upwards", [False, True])
@pytest.mark.parametrize("name", ["bennett", "bricard", "sarrus", "ladder"])
def test_towers_of_redundant_units_are_accurate_or_warn(name: str, upwards: bool) -> None:
    if name == "ladder" and not upwards:
        pytest.skip("at coordinates of 1 km the numbers of a ladder of 0.1 mm do not fit to more than 1e-9")
    one, m = built_tower([name] * len(SIZES), SIZES[::-1] if upwards else SIZES)
    assert told_as_inexact(m) or worst(one, m) < 1e-9


@pytest.mark.parametrize("seed", [*range(8), *range(9, 14), 17, 25])  # with 8 the positions fit only to 1e-9
def test_mixed_towers_are_accurate_or_warn(seed: int) -> None:
    """All units in any order of sizes, from the third on with masses over twelve orders of magnitude."""
    sizes = np.random.default_rng(seed).permutation(np.geomspace(LARGEST, SMALLEST, len(UNITS)))
    one, m = built_tower([*UNITS], sizes, seed, mixed=seed > 2)
    told, error = told_as_inexact(m), worst(one, m)
    assert told or error < 1e-9 or error == np.inf


def test_loss_of_digits_warns() -> None:
    """Rounding of parallel cranks of 0.1 mm that hold 1 km upright loses more than 1e-9 in any case."""
    one, m = built_tower(["ladder"] * len(SIZES), SIZES[::-1])
    with pytest.warns(RuntimeWarning, match="accelerations and the forces of loops are not exact") as caught:
        m.loop_analysis  # noqa: B018
    assert max(worst(one, m, which=k) for k in range(3)) > 1e-9  # not in every configuration
    text = str(caught[0].message)
    assert 'at joint "u0_' in text
    assert 'in the loops "u0_' in text
    assert m.loop_analysis.inexact in str(m.loop_analysis)


@pytest.mark.parametrize("seed", [0, 1, 5, 6, 13])
def test_refinements_are_measured(seed: int) -> None:
    """Without refinements the loss is 1e-8 or more, because M loses digits that no pivot of the loops shows."""
    sizes = np.random.default_rng(seed).permutation(np.geomspace(LARGEST, SMALLEST, len(UNITS)))
    one, m = built_tower([*UNITS], sizes, seed, mixed=seed > 2)
    assert worst(one, m) < 1e-9
    assert worst(one, m, refinements=0) > 1e-8


@pytest.mark.parametrize("name", LINKAGES)
def test_exact_linkages_give_no_warning(name: str) -> None:
    assert not told_as_inexact(LINKAGES[name].built(shuffled=True))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "name", ["lift2", "lift5", "lift9", "ladder3", "ladder8", "four_bar", "bennett", "bricard", "sarrus"]
)
def test_masses_of_twelve_orders(name: str, seed: int) -> None:
    """C M^-1 C^T loses up to twelve digits there; iterative refinement makes the multipliers accurate."""
    one = LINKAGES[name] if name in LINKAGES else UNITS[name](1.0, seed)
    m = one.built(masses=masses(one, seed), shuffled=bool(seed % 2), seed=seed)
    q, v = in_motion(m)
    still = np.zeros(m.nv)
    agree(forward(m, q, v, still), accelerations(m, q, v, still, 1), 1e-9)


def test_a_kernel_is_refined_too() -> None:
    one = LINKAGES["lift5"]
    m = one.built(masses=masses(one, 3), shuffled=True)
    assert m.loop_analysis.rank.refinements
    q, v = in_motion(m)
    agree(m.forward_dynamics(q, v, np.zeros(m.nv)), accelerations(m, q, v, np.zeros(m.nv), 1), 1e-9)


@pytest.mark.parametrize("name", ["lift5", "ladder8", "bennetts", "four_bars"])
def test_inverse_dynamics_reproduces_the_motion(name: str) -> None:
    one = LINKAGES[name]
    m = one.built()
    q, v = in_motion(m)
    driven = [
        p.name for p in one.pins if "ground" in (p.one, p.other) and p.name.rpartition("_")[2] in ("foot", "A0", "R0")
    ]
    assert len(driven) == one.mobility
    tau = np.zeros(m.nv)
    at = [m.columns[1].index(x) for x in driven]
    tau[at] = np.diag(m.mass_matrix(q))[at]
    a = m.forward_dynamics(q, v, tau)
    found = m.inverse_dynamics(q, v, a, actuated=driven)
    # the static force against gravity is a part of it, so the result is compared with all forces
    scale = np.maximum(np.abs(tau), np.abs(m.inverse_dynamics(q, v, 0.0 * a, actuated=driven)))
    assert (np.abs(found - tau)[at] <= 1e-9 * scale[at]).all()


@pytest.mark.parametrize("size", [SMALLEST, 1.0, LARGEST])
@pytest.mark.parametrize("stages", [2, 9, 20])
def test_linearize(stages: int, size: float) -> None:
    """Compare dA by the angle in closed form with central differences of extended steps."""
    m = built_lift(stages, "rollers", 2.0 * size)
    q, v = m.assemble({"foot": 0.1}, fixed=["foot"])
    A = bc.linearize(m, at={"q": q, "v": v}, independent=["foot"]).A
    h = 1e-4

    def rate(angle: float, speed: float) -> float:
        return closed_form(stages, m, 2.0 * size, angle, speed, (0.3, 0.1, -9.5))

    slope = (rate(0.4 + h, 0.0) - rate(0.4 - h, 0.0)) / (2 * h)
    assert np.abs(A[0] - [0.0, 1.0]).max() < 1e-9
    assert float(A[1, 0]) == pytest.approx(slope, rel=1e-6)


# -- runs


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["lift2", "lift9", "ladder8", "ring7", "bennett", "sarrus", "lift20"])
@pytest.mark.parametrize("size", [SMALLEST, 1.0, LARGEST])
def test_runs_keep_loops_and_energy(name: str, size: float, form: str) -> None:
    """Time scales with the root of the length. A run that reports its end has closed loops."""
    families: dict[str, Any] = {
        "ladder8": lambda: ladder(8, size),
        "ring7": lambda: ring(7, size),
        "bennett": lambda: UNITS["bennett"](size, 0),
        "sarrus": lambda: UNITS["sarrus"](size, 0),
    }
    one = families[name]() if name in families else lift(int(name[4:]), 2.0 * size)
    m = one.built()
    step = 2e-3 * float(np.sqrt(size))
    run = bc.simulate(m, 100 * step, *m.assemble({}), step=step, form=form)
    assert run.stops[0].reason == "end", run.stops[0].message
    sizes = m.loop_analysis.scales.rows
    assert np.abs(m.closure(run.q) * sizes).max() < (1e-5 if form == "lagrange" else 1e-10)
    assert run.residuals()["energy"] < (1e-6 if form == "lagrange" else 1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_of_all_sizes_at_once(form: str) -> None:
    one = row(["four_bar", "lift", "bennett"], [1e-4, 1.0, 1e3])
    m = one.built()
    step = 2e-3 * float(np.sqrt(1e-4))
    run = bc.simulate(m, 50 * step, *m.assemble({}), step=step, form=form)
    assert run.stops[0].reason == "end", run.stops[0].message
    assert np.abs(m.closure(run.q) * m.loop_analysis.scales.rows).max() < (1e-4 if form == "lagrange" else 1e-10)
    assert run.residuals()["energy"] < 1e-6


@pytest.mark.parametrize("form", ["minimal", "projected"])
@pytest.mark.parametrize("size", [SMALLEST, LARGEST])
def test_recorded_ends_have_closed_loops(size: float, form: str) -> None:
    """With far too long steps for a linkage of any size, every recorded end has closed loops."""
    m = four_bar(size).built()
    for step in np.sqrt(size) * np.array([0.1, 0.3, 1.0]):
        q, v = m.assemble({}, {"R0": 20.0 / float(np.sqrt(size))}, fixed=["R0"])
        run = bc.simulate(m, 20 * float(step), q, v, step=float(step), form=form)
        gap = np.abs(m.closure(run.q) * m.loop_analysis.scales.rows).max()
        assert gap < 1e-9
        assert run.stops[0].reason in ("end", "not closed", "not finite")


def test_open_start_is_rejected_at_any_size() -> None:
    for size in (SMALLEST, 1.0, LARGEST):
        m = four_bar(size).built()
        q, _ = m.assemble({})
        q[0] += 1e-3
        with pytest.raises(bc.errors.InputError, match="does not close"):
            bc.simulate(m, 0.01, q)
