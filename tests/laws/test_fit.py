"""Fits find the parameters that made the data within their stated errors, and report what the data cannot determine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError

pytest.importorskip("scipy")
T = np.arange(0.0, 6.0, 0.01)
U = 2.0 * np.sin(2.0 * T) + np.sin(5.3 * T)
TRUE = {"bob.mass": 1.0, "bob.com.z": -1.0, "hinge.damping": 0.3, "hinge.q": 0.4}
WRONG = {"bob.mass": 1.4, "hinge.damping": 0.1, "hinge.q": 0.2}


def plant() -> bc.System:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.3)
    return bc.system(b.build(), control=lambda t, q, v, x, u: {"hinge": u["torque"]}, inputs=["torque"])


@pytest.fixture(scope="module")
def run() -> bc.Record:
    return bc.simulate(
        plant(), T[-1], q0=[0.4], inputs={"torque": U}, input_step=0.01, every=0.01, step=0.01, progress=False
    )


def noisy(run: bc.Record, seed: int, sigma: float = 0.01) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"t": run.t, "torque": U, "hinge.q": run["hinge.q"] + sigma * rng.normal(size=len(T))}


def test_numbers_are_inside_their_errors(run: bc.Record) -> None:
    """Over repetitions, a share of 0.95 lies within 1.96 errors, as far as 32 samples can show."""
    inside = []
    for seed in range(8):
        found = bc.fit(plant(), noisy(run, seed), list(TRUE), begin=WRONG, step=0.01)
        inside += [abs(found[n] - x) < 1.96 * e for (n, x), e in zip(TRUE.items(), found.errors)]
        assert abs(found.noise["hinge.q"] / 0.01 - 1.0) < 0.1
        assert found.held == ()
    assert np.mean(inside) > 0.85


def test_parameter_without_effect_is_reported_and_unchanged(run: bc.Record) -> None:
    """The moment about z has no effect on a pendulum about y; its mass and the torque's scale would be one number."""
    found = bc.fit(plant(), noisy(run, 0), ["hinge.damping", "bob.inertia.zz", "hinge.q"], q0={"hinge": 0.3}, step=0.01)
    assert found.held == ("bob.inertia.zz",)
    assert found["bob.inertia.zz"] == 0.1
    assert found.errors[1] == np.inf
    assert found.untold == ("bob.inertia.zz",)
    assert "the data do not identify bob.inertia.zz" in str(found)
    assert abs(found["hinge.damping"] - 0.3) < 4 * found.errors[0]


def test_two_numbers_that_are_one() -> None:
    """Without gravity, the data determine only the ratio of a spring's stiffness and a mass."""
    b = bc.Builder("oscillator")
    b.body("block", mass=2.0, inertia=(1, 1, 1))
    b.joint("slide", "prismatic", "ground", "block", axis=(1, 0, 0), stiffness=50.0)
    m = b.build()
    made = bc.simulate(m, 3.0, q0=[0.1], step=0.01, every=0.01, progress=False)
    data = {"t": made.t, "slide.q": made["slide.q"] + 1e-4 * np.random.default_rng(0).normal(size=len(made.t))}
    found = bc.fit(m, data, ["block.mass", "slide.stiffness"], begin={"block.mass": 2.2}, q0={"slide": 0.1}, step=0.01)
    assert len(found.held) == 1
    assert len(found.untold) == 1
    assert "block.mass" in found.untold[0]
    assert "slide.stiffness" in found.untold[0]
    assert abs(found["slide.stiffness"] / found["block.mass"] - 25.0) < 0.02


def test_outliers_need_a_robust_loss(run: bc.Record) -> None:
    data = noisy(run, 1)
    data["hinge.q"] = data["hinge.q"].copy()
    data["hinge.q"][50::60] += 1.5
    asked: dict[str, Any] = {"free": ["bob.mass", "hinge.damping"], "q0": {"hinge": 0.4}, "step": 0.01}
    plain, robust = (bc.fit(plant(), data, loss=loss, begin=None, **asked) for loss in ("linear", "cauchy"))
    assert abs(robust["hinge.damping"] - 0.3) < 0.3 * abs(plain["hinge.damping"] - 0.3)
    assert abs(robust["hinge.damping"] - 0.3) < 4 * robust.errors[1]
    assert robust.noise["hinge.q"] < 0.02


def test_priors_bounds_and_starts(run: bc.Record) -> None:
    data = noisy(run, 2)
    asked: dict[str, Any] = {"q0": {"hinge": 0.4}, "step": 0.01}
    sure = bc.fit(plant(), data, ["bob.mass"], priors={"bob.mass": (1.3, 1e-6)}, **asked)
    assert abs(sure["bob.mass"] - 1.3) < 1e-3
    held = bc.fit(plant(), data, ["bob.mass"], bounds={"bob.mass": (0.5, 0.9)}, begin={"bob.mass": 0.7}, **asked)
    assert held["bob.mass"] == pytest.approx(0.9, abs=1e-6)
    wide = {"bob.mass": (0.2, 5.0), "hinge.damping": (0.0, 2.0)}
    far = bc.fit(plant(), data, list(wide), bounds=wide, begin={"bob.mass": 4.0}, starts=2, **asked)
    assert abs(far["bob.mass"] - 1.0) < 4 * far.errors[0]


def test_equation_error(run: bc.Record) -> None:
    data = {"t": run.t, "torque": U, "hinge.q": run["hinge.q"], "hinge.v": run["hinge.v"]}
    found = bc.fit(plant(), data, ["bob.mass", "hinge.damping"], error="equation", begin={"bob.mass": 1.5})
    assert abs(found["bob.mass"] - 1.0) < 2e-3
    assert abs(found["hinge.damping"] - 0.3) < 3e-3


@pytest.mark.parametrize("how", [{"error": "equation"}, {"q0": {"hinge": 0.3}, "step": 0.01}], ids=["rates", "runs"])
def test_search_may_try_invalid_values(how: dict[str, Any]) -> None:
    """For a growing oscillation the best damping would be negative, which is not allowed."""
    m = bc.Builder("pendulum")
    m.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    m.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=bc.parameter("d", 1.0))
    t = np.linspace(0.0, 2.0, 201)
    found = bc.fit(m.build(), {"t": t, "hinge.q": 0.3 * np.exp(0.4 * t) * np.cos(3.0 * t)}, ["d"], **how)
    assert 0.0 <= found["d"] < 1.0


def test_files_and_several_experiments(run: bc.Record, tmp_path: Path) -> None:
    two = [noisy(run, 3), noisy(run, 4)]
    rows = np.column_stack(list(two[0].values()))
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="t [s],torque,hinge.q [rad]", comments="")
    asked: dict[str, Any] = {"free": ["hinge.damping"], "q0": {"hinge": 0.4}, "step": 0.01}
    one = bc.fit(plant(), str(tmp_path / "a.csv"), **asked)
    both = bc.fit(plant(), two, **asked)
    assert both.errors[0] < 0.8 * one.errors[0]
    assert abs(both["hinge.damping"] - 0.3) < 4 * both.errors[0]


def test_closed_loops_go_by_differences() -> None:
    m = bc.zoo.four_bar()
    q0, _ = bc.zoo.loops.start(m)
    crank = m.columns[0][0]
    begin = dict(zip(m.columns[0], q0))
    made = bc.simulate(m, 0.5, q0=q0, step=1e-3, every=0.01, progress=False)
    data = {"t": made.t, f"{crank}.q": made[f"{crank}.q"] + 1e-4 * np.random.default_rng(0).normal(size=len(made.t))}
    body = m.bodies[1].name
    mass = m.bodies[1].mass
    found = bc.fit(m, data, [f"{body}.mass"], begin={f"{body}.mass": 1.3 * mass}, q0=begin)
    assert abs(found[f"{body}.mass"] - mass) < 4 * found.errors[0]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"free": ["bob.mas"]}, "no number"),
        ({"free": []}, "each once"),
        ({"loss": "l3"}, "no loss"),
        ({"error": "what"}, "no kind"),
        ({"bounds": {"bob.mass": (2.0, 1.0)}}, "empty range"),
        ({"bounds": {"bob.mass": (2.0, 3.0)}}, "outside its bounds"),
        ({"priors": {"hinge.q": (0.0, 1.0)}}, "no free number"),
        ({"priors": {"bob.mass": (0.0, 0.0)}}, "above zero"),
        ({"starts": 3}, "needs bounds"),
        ({"noise": {"hinge.q": 0.0}}, "above zero"),
        ({"noise": {"hinge.q": np.nan}}, "above zero"),
        ({"noise": {"hinge.p": 1.0}}, "no column"),
        ({"error": "equation", "starts": 3}, "for runs"),
        ({"error": "equation", "q0": {"hinge": 0.4}}, "for runs"),
        ({"error": "equation", "step": -1.0}, "above zero"),
        ({"observe": ["hinge.w"]}, "no column"),
        ({"data": {"t": [0, 1, 2], "torque": [0, 0, 0], "hinge.q": [0, 1]}}, "length"),
        ({"data": {"t": [0, 1, 0.5], "torque": [0, 0, 0], "hinge.q": [0, 1, 2]}}, "backwards"),
        ({"data": {"t": [0, 1, 2], "torque": [0, 0, 0], "hinge.q": [0, np.nan, 2]}}, "row 1 is nan"),
        ({"data": {"t": [0, 1, 2.5], "torque": [0, 0, 0], "hinge.q": [0, 1, 2]}}, "not equal"),
        ({"data": {"t": [0, 1, 2], "hinge.q": [0, 1, 2]}}, 'input "torque"'),
        ({"data": {"t": [0, 1, 2], "torque": [0, 0, 0], "hinge.q [deg]": [0, 1, 2]}}, "in deg, but the plant"),
        ({"data": {"t": [0, 1, 2], "torque": [0, 0, 0], "x": [0, 1, 2]}}, "none of the columns"),
        ({"data": []}, "empty"),
        ({"data": "none.csv"}, "cannot be read"),
    ],
)
def test_bad_input(change: dict[str, Any], word: str) -> None:
    good = {"t": [0.0, 0.01, 0.02], "torque": [0.0, 0.0, 0.0], "hinge.q": [0.1, 0.1, 0.1]}
    asked: dict[str, Any] = {"data": good, "free": ["bob.mass"], **change}
    with pytest.raises(ValueError, match=word):
        bc.fit(plant(), asked.pop("data"), asked.pop("free"), **asked)


# -- design


def test_the_stiffness_that_stops_a_block_soonest() -> None:
    """With the force limited to 10, the shortest displacement is reached if the largest force is 10.

    A block that starts at speed 1 moves by at most x = sqrt(m / k), with a largest force of sqrt(m k).
    """
    b = bc.Builder("buffer")
    b.body("block", mass=2.0, inertia=(1, 1, 1))
    b.joint("slide", "prismatic", "ground", "block", axis=(1, 0, 0), stiffness=20.0)
    found = bc.minimize(
        b.build(), "max(slide.q)", {"slide.stiffness": bc.uniform(5.0, 200.0)}, seconds=2.0, step=1e-3,
        within={"min(slide.passive)": (-10.0, None)}, v0={"slide": 1.0}, tries=16,
    )  # fmt: skip
    assert abs(found.values["slide.stiffness"] - 50.0) < 0.05
    assert abs(found.least - 0.2) < 1e-4
    assert found.before == pytest.approx(np.sqrt(2.0 / 20.0), rel=1e-4)


def test_a_minimum_inside() -> None:
    """A pendulum's period is least if its length equals the radius of gyration: sqrt(0.1 / 1)."""
    b = bc.Builder("physical pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1.0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    found = bc.minimize(
        b.build(), "final(hinge.q)", {"bob.com.z": bc.uniform(-1.5, -0.1)}, seconds=0.4, step=1e-2, q0={"hinge": 0.01}
    )
    assert abs(found.values["bob.com.z"] + np.sqrt(0.1)) < 1e-3


def test_bad_designs() -> None:
    m = bc.zoo.chain(2)
    with pytest.raises(InputError, match="expected bellcrank"):
        bc.minimize(m, "max(joint1.v)", {"link1.mass": [1, 2]}, seconds=1.0)  # type: ignore[dict-item]
    with pytest.raises(InputError, match="over is empty"):
        bc.minimize(m, "max(joint1.v)", {}, seconds=1.0)
    with pytest.raises(InputError, match="no number"):
        bc.minimize(m, "max(joint1.v)", {"link9.mass": bc.uniform(1, 2)}, seconds=1.0)


# -- invalid values

HUGE = (1e154, -1e154, 1e300, -1e308, 1e77, 1e49, 1e-300, 5e-324)


def short(run: bc.Record) -> dict[str, Any]:
    found = {"t": run.t, "torque": U} | {f"hinge.{k}": run[f"hinge.{k}"] for k in "qv"}
    return {name: np.array(x[:40]) for name, x in found.items()}


def attempted(data: dict[str, Any], free: list[str], **asked: Any) -> None:
    """Return a fit of finite numbers, or the text of the package's error."""
    with contextlib.suppress(bc.BellcrankError):
        assert np.isfinite(bc.fit(plant(), data, free, **{"step": 0.01, **asked}).values).all()


@pytest.mark.parametrize("error", ["output", "equation"])
@pytest.mark.parametrize("value", HUGE)
def test_numbers_of_any_size_end_in_numbers_or_in_words(run: bc.Record, value: float, error: str) -> None:
    """Their squares overflow, a run with them ends before the measurement, and no decomposition converges."""
    free = ["bob.mass", "hinge.damping"]
    for column in ("t", "torque", "hinge.q", "hinge.v"):
        one, every = short(run), short(run)
        one[column][3], every[column] = value, np.clip(every[column], -1, 1) * value
        attempted(one, free, error=error)
        attempted(every, free, error=error)
    for asked in (
        {"begin": {"bob.mass": value}}, {"bounds": {"bob.mass": (-abs(value), abs(value))}},
        {"priors": {"bob.mass": (value, 1.0)}}, {"priors": {"bob.mass": (1.0, abs(value))}},
        {"noise": {"hinge.q": abs(value)}},
    ):  # fmt: skip
        attempted(short(run), free, error=error, **asked)
    if error == "output":
        for asked in ({"q0": {"hinge": value}}, {"v0": {"hinge": value}}, {"step": abs(value)}):
            attempted(short(run), free, **asked)
        attempted(short(run), ["hinge.q"], begin={"hinge.q": value})


def test_a_run_that_ends_before_the_measurement_is_named(run: bc.Record) -> None:
    asked: dict[str, Any] = {"v0": {"hinge": 1e20}, "integrator": "euler", "step": 0.01}
    with pytest.raises(InputError, match=r'the model has no usable value of "hinge\.q" at sample'):
        bc.fit(plant(), short(run), ["bob.mass"], **asked)


@pytest.mark.parametrize("unit", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("integrator", ["rk4", "dopri5"])
def test_times_that_are_not_in_seconds(run: bc.Record, unit: float, integrator: str) -> None:
    """Times in micro- or nanoseconds would span years and are refused; milliseconds could be intended."""
    data = short(run)
    data["t"] = data["t"] * unit
    if unit == 1e3:
        data = {name: x[:4] for name, x in data.items()}
        attempted(data, ["hinge.damping"], integrator=integrator)
        return
    with pytest.raises(InputError, match=r"the time is .* s, which takes .* steps of .*Is it in seconds"):
        bc.fit(plant(), data, ["hinge.damping"], integrator=integrator, step=1e-5 if unit < 1e9 else 1e-3)
