"""Summaries of a run equal numpy's results over all rows; an integral equals an integrated state."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.integrate import INTEGRATORS
from bellcrank.model import Mechanism
from motions import slope
from trees import few, random_tree, trees

Array = np.ndarray[Any, Any]
G = 9.81
WAYS: list[tuple[str, dict[str, Any]]] = [
    *((name, {"step": 2e-3}) for name in INTEGRATORS),
    *((name, {"tolerance": 1e-6}) for name, i in INTEGRATORS.items() if i.adaptive),
]
every_way = pytest.mark.parametrize(("name", "how"), WAYS, ids=[f"{n}-{next(iter(h))}" for n, h in WAYS])
FOUND = {"min": np.nanmin, "max": np.nanmax}


def servo(m: Mechanism, inputs: tuple[str, ...] = ()) -> bc.System:
    """A control with every kind of column: its own states, commands, outputs."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {n: -3.0 * v[n] + (u[0] if inputs else 0.5) for n in m.columns[1]}, [v[0] - x["slow"]]

    return bc.system(
        m, control=control, states={"slow": 0.0}, inputs=inputs,
        outputs={"power": lambda t, q, v, x, u: sum((a * a for a in v), 0.1 * t)},
    )  # fmt: skip


def watched(m: Mechanism) -> list[str]:
    """A column of every kind."""
    last, frame = m.columns[1][-1], list(m.frames)[-1]
    own = [f"{m.columns[0][0]}.q", *(f"{last}.{k}" for k in ("v", "a", "tau")), "slow", "power"]
    return [*own, "energy", "kinetic_energy", "potential_energy", f"{frame}.x", f"{frame}.z", f"{frame}.speed"]


def asked(columns: list[str]) -> list[str]:
    return [f"{kind}({name})" for name in columns for kind in ("min", "max", "t_min", "t_max", "final")]


def agree(short: bc.Record, rows: bc.Record, columns: list[str], tolerance: float = 1e-11) -> None:
    """Compare extremes, their times and last values of all runs."""
    assert len(short) == 1
    assert short.batch == rows.batch
    times = np.broadcast_to(rows.t, rows[columns[0]].shape)
    last = np.isfinite(times).sum(axis=-1) - 1
    for name in columns:
        x = rows[name]
        near = tolerance * max(1.0, np.nanmax(np.abs(x)))
        np.testing.assert_allclose(short[f"final({name})"], np.take_along_axis(x, last[..., None], -1), atol=near)
        for kind, of in FOUND.items():
            best = of(x, axis=-1, keepdims=True)
            np.testing.assert_allclose(short[f"{kind}({name})"], best, rtol=0, atol=near, err_msg=f"{kind}({name})")
            # the time belongs to a row that has the extreme, up to rounding
            there = np.abs(x - best) <= 2 * near
            off = np.where(there, np.abs(times - short[f"t_{kind}({name})"]), np.inf).min(axis=-1)
            assert (off < 1e-9).all(), f"t_{kind}({name})"


@every_way
def test_summaries_are_those_of_the_rows(name: str, how: dict[str, Any]) -> None:
    """A batch with a partial block, on two threads."""
    m = random_tree(5, ["revolute", "spherical", "prismatic"], passive=True)
    s, columns = servo(m), watched(m)
    q, v, _ = m.random(1, 11)
    given: dict[str, Any] = {"q0": q, "v0": v, "integrator": name, "solver": bc.Solver(resolve=0.0), **how}
    rows = bc.simulate(s, 0.1, every="step", **given)
    short = bc.simulate(s, 0.1, summary=asked(columns), threads=2, **given)
    agree(short, rows, columns)
    ends = np.array([r[np.isfinite(r[:, 0])][-1] for r in rows.q])
    np.testing.assert_allclose(short.q[:, 0], ends, rtol=1e-11, atol=1e-11)
    assert {stop.reason for stop in short.stops} == {"end"}
    assert "events" not in short.provenance


@few(15)
@given(trees(max_bodies=4, passive=True), st.integers(0, 10**6), st.sampled_from(WAYS[:7]))
def test_summaries_of_random_mechanisms(m: Mechanism, seed: int, way: tuple[str, dict[str, Any]]) -> None:
    name = way[0]
    s, columns = servo(m), watched(m)
    q, v, _ = m.random(seed)
    given: dict[str, Any] = {"q0": q, "v0": 0.3 * v, "integrator": name, "step": 2e-3}
    rows = bc.simulate(s, 0.02, every="step", **given)
    short = bc.simulate(s, 0.02, summary=asked(columns), **given)
    agree(short, rows, columns, 1e-10)


@every_way
def test_an_integral_is_a_state_of_the_control(name: str, how: dict[str, Any]) -> None:
    """To the last bits: the equation and the error norm are the same."""
    m = random_tree(3, ["revolute", "revolute"])

    def power(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return v[0] * v[0] + q[1]

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [-2.0 * a for a in v], [power(t, q, v, x, u)]

    q, v, _ = m.random(2, 3)
    given: dict[str, Any] = {"q0": q, "v0": v, "integrator": name, **how}
    by_hand = bc.simulate(bc.system(m, control=control, states={"sum": 0.0}), 0.2, keep="final", **given)
    plain = bc.system(m, control=lambda t, q, v, x, u: [-2.0 * a for a in v], outputs={"power": power})
    short = bc.simulate(plain, 0.2, summary=["integral(power)", "mean(power)"], **given)
    np.testing.assert_allclose(short["integral(power)"], by_hand["sum"], rtol=1e-13)
    np.testing.assert_allclose(short["mean(power)"], by_hand["sum"] / 0.2, rtol=1e-13)
    assert short.provenance["steps"] == by_hand.provenance["steps"]
    assert short.x.shape == (3, 1, 0)  # it is not among the system's own states


@pytest.mark.parametrize("name", ["rk4", "abm4", "midpoint", "dopri5"])
def test_an_integral_has_the_order_of_the_integrator(name: str) -> None:
    """Compare with a sum over the rows of a run whose steps are so short that its error is negligible."""
    m = random_tree(3, ["revolute", "revolute"])
    q, v, _ = m.random(2)
    j = m.columns[1][0]
    fine = bc.simulate(m, 0.4, q, v, integrator="dopri5", step=1e-4)[f"{j}.v"] ** 2
    exact = (fine[0] + fine[-1] + 4 * fine[1::2].sum() + 2 * fine[2:-1:2].sum()) * 1e-4 / 3  # Simpson's rule
    steps, errors = [0.02, 0.01, 0.005], []
    for h in steps:
        run = bc.simulate(m, 0.4, q, v, integrator=name, step=h, summary=[f"rms({j}.v)"])
        errors.append(abs(float(run[f"rms({j}.v)"][0]) ** 2 * 0.4 - exact))
    assert slope(steps, errors) > INTEGRATORS[name].order - 0.5


# -- events


def ball() -> Mechanism:
    b = bc.Builder("ball", gravity=(0, 0, -G))
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1))
    return b.build()


BALL = ["z.q", "z.v", "energy"]
EVENTS = [("rk4", {"step": 0.01}), ("abm4", {"step": 0.01}), ("dopri5", {"tolerance": 1e-9})]
some_ways = pytest.mark.parametrize(("name", "how"), EVENTS)


@some_ways
def test_a_run_that_an_event_stops(name: str, how: dict[str, Any]) -> None:
    """The part of the step after the event does not count; other runs continue."""
    floor = bc.Event("floor", lambda t, q, v, x, u: q[0])
    given: dict[str, Any] = {"q0": [[0.2], [1.0], [50.0]], "integrator": name, "events": [floor], **how}
    rows = bc.simulate(ball(), 1.0, every="step", **given)
    short = bc.simulate(ball(), 1.0, summary=asked(BALL), **given)
    agree(short, rows, BALL)
    assert [s.reason for s in short.stops] == ["event", "event", "end"]
    np.testing.assert_allclose(short["t_min(z.v)"][:2, 0], np.sqrt(2 * np.array([0.2, 1.0]) / G), atol=1e-6)
    assert abs(short["min(z.q)"][1, 0]) < 1e-9
    assert 'event "floor" at 0.45' in short.stops[1].message


@some_ways
def test_both_sides_of_a_switch_count(name: str, how: dict[str, Any]) -> None:
    """The largest downward speed of a bouncing ball is before the first bounce, the largest upward speed after it."""
    bounce = bc.Event(
        "bounce", lambda t, q, v, x, u: q[0], "switch", direction=-1, then=lambda t, q, v, x, u: {"v": -0.8 * v}
    )
    asks = ["min(z.v)", "max(z.v)", "t_max(z.v)", "min(z.q)"]
    run = bc.simulate(ball(), 2.0, [1.0], integrator=name, events=[bounce], summary=asks, **how)
    fall = math.sqrt(2 / G)
    assert run["min(z.v)"][0] == pytest.approx(-G * fall, abs=1e-6)
    assert run["max(z.v)"][0] == pytest.approx(0.8 * G * fall, abs=1e-6)
    assert run["t_max(z.v)"][0] == pytest.approx(fall, abs=1e-6)
    assert abs(run["min(z.q)"][0]) < 1e-8
    whole = bc.simulate(ball(), 2.0, [1.0], integrator=name, events=[bounce], **how)
    np.testing.assert_allclose(run.q[-1], whole.q[-1], atol=1e-9)


@some_ways
def test_recorded_event_changes_nothing(name: str, how: dict[str, Any]) -> None:
    passing = bc.Event("passing", lambda t, q, v, x, u: q[0] - 0.3, "record")
    given: dict[str, Any] = {"q0": [1.0], "integrator": name, "events": [passing], **how}
    agree(bc.simulate(ball(), 0.5, summary=asked(BALL), **given), bc.simulate(ball(), 0.5, every="step", **given), BALL)


@some_ways
def test_both_sides_of_a_jump_of_the_inputs_count(name: str, how: dict[str, Any]) -> None:
    """The force acts until a new line of the table begins, so its last value counts."""
    s = bc.system(ball(), control=lambda t, q, v, x, u: [u[0] + t], inputs=["push"])
    table = np.array([1.0, -2.0, 5.0, 3.0])
    given: dict[str, Any] = {"inputs": {"push": table}, "input_step": 0.1, "integrator": name, **how}
    run = bc.simulate(s, 0.4, summary=["min(z.tau)", "max(z.tau)", "t_max(z.tau)", "max(z.v)"], **given)
    assert run["min(z.tau)"][0] == pytest.approx(-1.9)  # at the beginning of the second line
    assert run["max(z.tau)"][0] == pytest.approx(5.3)  # end of the third line; rows have the fourth already
    assert run["t_max(z.tau)"][0] == pytest.approx(0.3)
    rows = bc.simulate(s, 0.4, every="step", **given)
    assert rows["z.tau"].max() < 5.3 - 1e-6
    assert run["max(z.v)"][0] == pytest.approx(rows["z.v"].max(), abs=1e-12)


# -- combined with other features


def test_closed_loops_that_change_their_coordinates() -> None:
    """A run that continues with other graphs keeps its summary of the first."""
    m = bc.zoo.four_bar(ground=0.5, crank=0.3, coupler=0.2, rocker=0.3)
    q, v = m.assemble(bc.zoo.start(m)[0])
    v = m.assemble(q, 6.0 * np.ones(m.nv))[1]
    columns = [f"{n}.v" for n in m.columns[1]] + [f"{n}.q" for n in m.columns[0]] + ["energy"]
    given: dict[str, Any] = {"q0": q, "v0": v, "step": 1e-3}
    rows = bc.simulate(m, 1.0, every="step", **given)
    assert rows.stops[0].reason == "end"
    assert rows.provenance["partitions changed"] > 0
    short = bc.simulate(m, 1.0, summary=asked(columns), **given)
    agree(short, rows, columns)
    energy = bc.simulate(m, 1.0, summary=["mean(energy)"], **given)["mean(energy)"][0]
    assert energy == pytest.approx(rows["energy"].mean(), rel=1e-6)


def test_sensitivities_of_a_cost() -> None:
    b = bc.Builder("pendulum")
    b.body("bob", mass=bc.parameter("mass", 1.0, unit="kg"), com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.5)
    m = b.build()
    asks = ["integral(hinge.v)", "rms(hinge.v)", "max(d(hinge.v)/d(mass))"]
    run = bc.simulate(m, 1.0, [1.0], sensitivities=["mass"], summary=asks)
    e = 1e-5
    near = bc.simulate(m, 1.0, [1.0], summary=asks[:2], parameters={"mass": [1.0 - e, 1.0 + e]})
    squares = near["rms(hinge.v)"][:, 0] ** 2
    assert run["d(integral(hinge.v^2))/d(mass)"][0] == pytest.approx((squares[1] - squares[0]) / (2 * e), rel=1e-6)
    rows = bc.simulate(m, 1.0, [1.0], sensitivities=["mass"])
    assert run["max(d(hinge.v)/d(mass))"][0] == pytest.approx(rows["d(hinge.v)/d(mass)"].max(), rel=1e-12)


def test_failed_run_summarises_its_valid_part() -> None:
    """The summary covers the time until its last good step; the other run is unaffected."""
    m = bc.zoo.chain(2)
    v = np.array([[1e60, 1e60], [0.1, 0.1]])
    first = f"{m.columns[1][0]}.v"
    given: dict[str, Any] = {"v0": v, "step": 1e-3}
    rows = bc.simulate(m, 0.05, every="step", **given)
    short = bc.simulate(m, 0.05, summary=asked([first]), **given)
    agree(short, rows, [first])
    assert [s.reason for s in short.stops] == ["not finite", "end"]
    assert short.t[0, 0] == short.stops[0].time < 0.05
    assert short.stops == pickle.loads(pickle.dumps(short)).stops


def test_nan_values_are_ignored() -> None:
    from bellcrank.scalar import sqrt

    seen = {"root": lambda t, q, v, x, u: sqrt(0.5 - t), "never": lambda t, q, v, x, u: sqrt(-1.0 - t)}
    s = bc.system(ball(), outputs=seen)
    run = bc.simulate(s, 1.0, step=0.01, summary=["min(root)", "max(root)", "max(never)"])
    assert run["max(root)"][0] == pytest.approx(math.sqrt(0.5))
    assert run["min(root)"][0] == pytest.approx(0.0, abs=1e-7)
    assert math.isnan(run["max(never)"][0])


@pytest.mark.parametrize("section", [bc.Section.box(0.1, 0.15, 0.006), bc.Section.circle(0.1)], ids=["box", "circle"])
def test_every_column_of_a_record_can_be_summarised(section: bc.Section) -> None:
    """A beam with sections, a motor and wind: all kinds of columns."""
    b = bc.Builder("boom")
    how: dict[str, Any] = {"material": bc.Material.steel(), "below": 500.0, "damping": 0.3}
    b.beam("boom", length=3.0, section=section, modes=1, sections={"root": 0.0, "splice": 0.4}, **how)
    b.joint("luff", "revolute", "ground", "boom", axis=(0, 1, 0), damping=50.0)
    s = bc.system(
        b.build(),
        control=lambda t, q, v, x, u: {"luff": u["push"]},
        inputs={"push": 100.0},
        outputs={"tip": lambda t, q, v, x, u: v["luff"]},
        forces={"boom.end": lambda t, pose, velocity: ([3.0 - velocity[0], 0.0, 0.0], [0.0, 1.0, 0.0])},
    )
    given: dict[str, Any] = {"step": 1e-5, "q0": {"luff": -0.3}, "solver": bc.Solver(resolve=0.0)}
    run = bc.simulate(s, 2e-4, **given)
    # Rates are computed from the rows of a record.
    names = [name for name in run.names if name != "t" and not name.startswith(("input.", "d("))]
    assert {"boom.root.stress", "boom.splice.My", "boom.end.fx", "external_power", "tip"} < set(names)
    short = bc.simulate(s, 2e-4, summary=[f"final({name})" for name in names], **given)
    for name in names:
        assert short.column(f"final({name})").unit == run.column(name).unit, name
        near = 1e-9 * max(1e-3, np.abs(run[name]).max())
        np.testing.assert_allclose(short[f"final({name})"][0], run[name][-1], rtol=0, atol=near, err_msg=name)


def test_stars_stand_for_columns() -> None:
    m = bc.zoo.puma600()
    run = bc.simulate(m, 0.01, summary=["max(*.a)", "rms(*.tau)"])
    assert [n for n in run.columns if n.startswith("max(")] == [f"max({n}.a)" for n in m.columns[1]]
    assert len([n for n in run.columns if n.startswith("rms(")]) == 6


def test_units_names_and_files(tmp_path: Any) -> None:
    m = ball()
    run = bc.simulate(m, 0.1, summary=["max(z.v)", "t_max(z.v)", "integral(z.v)", "rms(z.tau)"])
    assert [run.column(n).unit for n in run.columns[-4:]] == ["m/s", "s", "m/s s", "N"]
    assert run["integral(z.v)"][0] == pytest.approx(-G * 0.1**2 / 2)
    assert run["z.a"][0] == pytest.approx(-G)  # follows from the last state
    again = bc.load_record(run.save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(again["max(z.v)"], run["max(z.v)"])


def test_invalid_summaries_raise() -> None:
    m = ball()
    for summary, said in (
        (["max(z.w)"], 'no column "z.w".*z.v'),
        (["most(z.v)"], 'no kind "most".*rms'),
        (["z.v"], "expected KIND"),
        ([3], "cannot be read"),
        ("max(z.v)", "expected a list"),
        (["max(z.v)", "max(z.v)"], "more than one"),
        (["max(*.w)"], "no column"),
    ):
        with pytest.raises(InputError, match=said):
            bc.simulate(m, 0.1, summary=summary)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one row for each run"):
        bc.simulate(m, 0.1, summary=["max(z.v)"], keep="rows")
    with pytest.raises(InputError, match=r"every is 0\.01"):
        bc.simulate(m, 0.1, summary=["max(z.v)"], every=0.01)
    with pytest.raises(InputError, match="of the column itself"):
        bc.simulate(m, 0.1, [1.0], summary=["integral(d(z.v)/d(z.q))"], sensitivities=["z.q"])


@pytest.mark.parametrize("how", [{"step": 1e-3}, {"integrator": "dopri5"}])
def test_memory_does_not_grow_with_the_steps(how: dict[str, Any]) -> None:
    sim = bc.Simulator(ball(), how.pop("integrator", "rk4"), summary=["max(z.v)"])
    for seconds in (0.01, 10.0):
        run = sim.run(seconds, batch=5, **how)
        assert run["z.q"].shape == (5, 1)
        assert run["max(z.v)"].shape == (5, 1)
