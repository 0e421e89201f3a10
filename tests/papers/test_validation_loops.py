"""Public validation problems with closed loops, run as mechanisms; and machines of the zoo.

Sources: M. Gonzalez, D. Dopico, U. Lugris and J. Cuadrado, 2006 (IFToMM A01 to A03); E. Hairer and G. Wanner, 1996,
section VII.7 (Andrews' squeezer).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from bellcrank.dynamics.loops.absolute import absolute, state

STEP = 1e-3
PENDULUM = {1: (0.9862917511, -0.1650108531), 2: (-0.7935661953, -0.6084839304), 5: (-0.9423054350, -0.3347543384),
            10: (-0.2750874626, -0.9614192051)}  # fmt: skip
FOUR_BARS: dict[int, dict[int, tuple[float, float]]] = {
    2: {1: (-0.1950203019, -0.9807992057), 2: (0.0578157958, 0.9983272679), 5: (-0.8113104610, -0.5846155454),
        10: (0.3284581115, 0.9445185382)},
    40: {1: (-0.1153568806, -0.9933241113), 5: (-0.5401900507, -0.8415430525), 10: (0.1805122267, 0.9835727406)},
}  # fmt: skip
SPEEDS = {2: (1.4230514702, -0.4948688455), 40: (1.1484412775, -0.2107700668)}
ANDREWS = {  # at 0.03 s: q and v
    "beta": (15.81077119629904, 1139.920302151208),
    "theta": (-15.75637105984298, -1424.379294994111),
    "gamma": (0.04082224013073101, 11.03291221937134),
    "phi": (-0.5347301163226948, 19.29337464421385),
    "delta": (0.5244099658805304, 0.5735699284790808),
    "omega": (0.5347301163226948, -19.29337464421385),
    "epsilon": (1.048080741042263, 0.3231791658026955),
}


def ended(run: bc.Record) -> bc.Record:
    assert all(stop.reason == "end" for stop in run.stops), run.stops
    return run


def off(m: bc.Mechanism, run: bc.Record, frame: str, expected: dict[int, tuple[float, float]]) -> float:
    rows = [int(np.argmin(np.abs(run.t - t))) for t in expected]
    return float(np.abs(m.pose(run.q[rows], frame)[:, :2, 3] - list(expected.values())).max())


# -- A01: a pendulum


def test_a_pendulum_as_a_tree() -> None:
    b = bc.Builder("tree", gravity=(0, -9.81, 0))
    b.body("ball", mass=1.0, com=(-1, 0, 0), inertia=(0, 0, 0))
    b.joint("hinge", "revolute", "ground", "ball", axis=(0, 0, 1))
    b.frame("P", "ball", point=(-1, 0, 0))
    m = b.build()
    assert off(m, ended(bc.simulate(m, 10, step=STEP, every=1.0)), "P", PENDULUM) < 1e-8


@pytest.mark.parametrize("form", ["minimal", "projected", "lagrange"])
def test_a_pendulum_as_a_free_ball_on_a_rod(form: str) -> None:
    """In minimal coordinates x and y take turns: where one is stationary, the other is independent."""
    m = zoo.rod_pendulum()
    run = ended(bc.simulate(m, 10, step=STEP, every=1.0, form=form))
    assert off(m, run, "P", PENDULUM) < 1e-8
    assert run.provenance["loops open by at most"] < (1e-9 if form == "lagrange" else 1e-14)
    assert (run.provenance["partitions changed"] > 10) == (form == "minimal")


# -- A02: windows in a row, repeatedly through their flat position, where they are free to fold


@pytest.mark.parametrize("n", FOUR_BARS)
def test_n_four_bars(n: int) -> None:
    m = zoo.n_four_bar(n)
    q, v = zoo.start(m)
    run = ended(bc.simulate(m, 10, q0=q, v0=v, step=STEP, every=0.1))
    assert off(m, run, "B0", FOUR_BARS[n]) < 1e-8
    np.testing.assert_allclose(m.velocity(run.q[-1], run.v[-1], "B0")[:2], SPEEDS[n], atol=1e-7)
    assert run.provenance["loops open by at most"] < 1e-10
    assert run.residuals()["energy"] < 1e-8


def test_four_bars_are_flat_again_and_again() -> None:
    """Otherwise the test above would not reach its singular configuration."""
    m = zoo.n_four_bar(2)
    q, v = zoo.start(m)
    run = bc.simulate(m, 10, q0=q, v0=v, step=STEP)
    height = m.pose(run.q, "B0")[:, 1, 3]
    assert np.count_nonzero(np.diff(np.sign(height))) == 10
    C = m.closure_jacobian(run.q[np.argmin(np.abs(height))])[list(m.loop_analysis.kept)]
    assert np.linalg.cond(C) > 100


# -- A03: Andrews' squeezer


@pytest.mark.parametrize("form", ["minimal", "projected"])
def test_andrews_squeezer(form: str) -> None:
    m, torque = zoo.andrews(), zoo.data("andrews")["mom"]
    q, v = zoo.start(m)
    driven = m.columns[1].index("beta")

    def motor(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[float]:
        return [torque if k == driven else 0.0 for k in range(m.nv)]

    run = ended(bc.simulate(m, 0.03, q0=q, v0=v, step=1e-5, every=0.03, control=motor, form=form))
    for name, (angle, speed) in ANDREWS.items():
        assert run[f"{name}.q"][-1] == pytest.approx(angle, abs=1e-6)
        assert run[f"{name}.v"][-1] == pytest.approx(speed, abs=1e-3, rel=1e-6)
    assert run.provenance["loops open by at most"] < 1e-10


# -- spatial and over-constrained machines (tests/unit/test_assembly.py checks which equations are redundant)


def delta() -> bc.Mechanism:
    """With springs in place of its drives; without them it falls through many singular configurations."""
    m = zoo.delta()
    return replace(m, joints=tuple(replace(j, stiffness=30.0 * (j.name in SHOULDERS)) for j in m.joints))


SHOULDERS = ("shoulder1", "shoulder2", "shoulder3")
MACHINES: dict[str, tuple[Any, dict[str, float], float]] = {  # builder, initial push, energy tolerance
    "bricard": (zoo.bricard, {}, 1e-11),
    "double_wishbone": (lambda: zoo.double_wishbone(damping=0.0), {"lower_pivot": 1.0}, 1e-8),
    "delta": (delta, {"shoulder1": 0.5, "shoulder2": -0.3}, 1e-7),
    "stewart": (zoo.stewart, {"P1": 0.2, "U2.0": 0.3}, 1e-8),
    "parallel_cranks": (zoo.parallel_cranks, {"A0": 2.0}, 1e-8),
}


@pytest.mark.parametrize("name", MACHINES)
def test_machines_keep_their_loops_and_their_energy(name: str) -> None:
    make, pushed, most = MACHINES[name]
    m = make()
    q, v = m.assemble(zoo.start(m)[0], pushed)
    run = ended(bc.simulate(m, 10, q0=q, v0=v, step=STEP, every=0.01))
    assert run.provenance["loops open by at most"] < 1e-10
    assert np.abs(m.closure(run.q)).max() < 1e-10
    assert run.residuals()["energy"] < most
    assert np.ptp(run.q, axis=0).max() > 0.1  # it does move


# -- absolute coordinates: every body is free, every joint is a loop


@pytest.mark.parametrize("form", ["minimal", "projected"])
def test_a_pendulum_in_absolute_coordinates(form: str) -> None:
    b = bc.Builder("tree", gravity=(0, -9.81, 0))
    b.body("ball", mass=1.0, com=(-1, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("hinge", "revolute", "ground", "ball", axis=(0, 0, 1))
    b.frame("P", "ball", point=(-1, 0, 0))
    joint = b.build()
    m = absolute(joint)
    q, v = state(joint, np.zeros(1), np.zeros(1))
    run = ended(bc.simulate(m, 1, q0=q, v0=v, step=STEP, form=form))
    same = bc.simulate(joint, 1, step=STEP)
    apart = m.pose(run.q, "P")[:, :2, 3] - joint.pose(same.q, "P")[:, :2, 3]
    assert np.abs(apart).max() < 1e-9
