"""Events, chosen steps and controllers that sample, in C packages and FMUs: they do what bc.simulate does."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.forces import Latch
from targets.test_c99 import needs_cc
from targets.test_export_c import library
from targets.test_export_fmu import both, fmpy, get, instance, validation

HEIGHT, GRAVITY, RESTITUTION = 2.0, 9.81, 0.8


def ball() -> bc.Mechanism:
    b = bc.Builder("ball", gravity=(0, 0, -GRAVITY))
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("height", "prismatic", "ground", "ball", axis=(0, 0, 1))
    return b.build()


def bounces(until: float) -> list[bc.Event]:
    return [
        bc.Event("bounce", lambda t, q, v, x, u: q[0], "switch", -1, lambda t, q, v, x, u: {"v": -RESTITUTION * v}),
        bc.Event("top", lambda t, q, v, x, u: v[0], "record", -1),
        bc.Event("late", lambda t, q, v, x, u: t - until, "stop", 1),
    ]


def fallen(t: float) -> float:
    """Return the height of a ball that was released at HEIGHT, in closed form."""
    begin, speed, height = 0.0, 0.0, HEIGHT
    while True:
        flight = (speed + math.sqrt(speed**2 + 2.0 * GRAVITY * height)) / GRAVITY
        if begin + flight > t:
            s = t - begin
            return height + speed * s - 0.5 * GRAVITY * s * s
        begin, speed, height = begin + flight, RESTITUTION * (GRAVITY * flight - speed), 0.0


class Machine:
    """A compiled package, and the numbers of one instance."""

    def __init__(self, folder: Path, name: str, inputs: int, dtype: Any = float) -> None:
        self.code, self.name = library(folder), name
        self.s, self.u = np.zeros(400, dtype), np.zeros(max(1, inputs), dtype)
        given = [self.s, self.u] if inputs else [self.s]
        self.given = [ctypes.c_void_p(x.ctypes.data) for x in given]
        self.call("init")

    def call(self, word: str) -> int:
        return int(self.code[f"{self.name}_{word}"](*self.given))

    def rows(self, steps: int, width: int) -> np.ndarray[Any, Any]:
        found = [self.s[: 1 + width].copy()]
        for _ in range(steps):
            assert self.call("step") == 0
            found.append(self.s[: 1 + width].copy())
        return np.array(found)


@needs_cc
@pytest.mark.parametrize("how", [{"step": 0.01}, {"step": 0.01, "tolerance": 1e-9, "integrator": "dopri5"}])
def test_a_ball_bounces_in_c(how: dict[str, Any], tmp_path: Path) -> None:
    bc.export(ball(), tmp_path / "it", events=bounces(3.005), **how)
    made = Machine(tmp_path / "it", "ball", 1)
    made.s[1] = HEIGHT
    made.call("start")
    rows = made.rows(300, 2)
    expected = [fallen(t) for t in rows[:, 0]]
    np.testing.assert_allclose(rows[:, 0], 0.01 * np.arange(301), rtol=1e-14)
    np.testing.assert_allclose(rows[:, 1], expected, rtol=0, atol=1e-9)
    assert made.call("step") == 4
    assert abs(made.s[0] - 3.005) < 1e-12
    assert made.call("step") == 0  # and goes on, to the end of the step that was cut short
    assert abs(made.s[0] - 3.01) < 1e-12


@needs_cc
def test_ticks_of_one_step_are_bounded(tmp_path: Path) -> None:
    bc.export(ball(), tmp_path / "it", events=bounces(100.0)[:1], step=0.05)
    made, status = Machine(tmp_path / "it", "ball", 1), 0
    made.s[1] = HEIGHT
    made.s[list_of(tmp_path / "it" / "ball.h").index("most")] = 1.0
    made.call("start")
    while status == 0:
        status = made.call("step")
    assert status == 7
    assert abs(made.s[0] - math.sqrt(2.0 * HEIGHT / GRAVITY)) < 1e-12


@needs_cc
def test_chosen_steps_of_one_call_are_those_of_a_run(tmp_path: Path) -> None:
    """One call of half a second is a run of half a second, to the bit; many short ones are near it."""
    m, q0 = bc.zoo.planar3r(), [0.4, -0.3, 0.2]
    native = bc.simulate(m, 0.5, q0=q0, tolerance=1e-8, integrator="dopri5", step=1e-3)
    bc.export(m, tmp_path / "one", tolerance=1e-8, integrator="dopri5", step=0.5)
    made = Machine(tmp_path / "one", "planar3r", 3)
    made.s[1:4] = q0
    made.s[list_of(tmp_path / "one" / "planar3r.h").index("next_step")] = 1e-3
    made.call("start")
    rows = made.rows(1, 6)
    np.testing.assert_allclose(rows[-1, 1:4], native.q[-1], rtol=0, atol=1e-13)
    bc.export(m, tmp_path / "many", tolerance=1e-8, integrator="dopri5", step=0.01)
    made = Machine(tmp_path / "many", "planar3r", 3)
    made.s[1:4] = q0
    made.call("start")
    np.testing.assert_allclose(made.rows(50, 6)[-1, 1:4], native.q[-1], rtol=0, atol=1e-6)


def list_of(header: Path) -> list[str]:
    """Members of the state, in their order."""
    body = header.read_text().partition("typedef struct {")[2].partition("}")[0]
    return [line.split()[1].rstrip(";") for line in body.strip().splitlines()]


def sampled_plant() -> bc.System:
    """A link whose controller samples every 5 ms, arrives 7 ms later, counts, and rounds; another plans every 20 ms."""
    b = bc.Builder("arm")
    b.body("link", mass=2.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "link", axis=(0, 1, 0), damping=0.5)

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [30.0 * (x["target"] - q[0]) - 4.0 * v[0]], [x["count"] + 1.0]

    plan = bc.Sampled(lambda t, q, v, x, u: [u[0] * bc.sin(3.0 * t)], every=0.02, outputs={"target": 0.1})
    mine = bc.Sampled(control, every=0.005, states={"count": 0.0}, delay=0.007, quantum=0.01)
    return bc.system(b.build(), control=mine, sampled=[plan], inputs={"swing": 1.0})


@needs_cc
@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_sampled_controllers_in_c(integrator: str, tmp_path: Path) -> None:
    s = sampled_plant()
    native = bc.simulate(s, 0.3, inputs={"swing": 0.7}, step=1e-3, integrator=integrator)
    bc.export(s, tmp_path / "it", step=1e-3, integrator=integrator)
    made = Machine(tmp_path / "it", "arm", 1)
    made.u[0] = 0.7
    made.call("start")
    names = ["hinge.q", "hinge.v", *(x.name for x in s.states)]
    rows = made.rows(300, len(names))
    for k, name in enumerate(names):
        np.testing.assert_allclose(rows[:, 1 + k], native[name], rtol=0, atol=1e-12, err_msg=name)
    assert native["count"][-1] == 60


@needs_cc
@both
def test_sampled_controllers_in_fmus(version: int, tmp_path: Path) -> None:
    s = sampled_plant()
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}", step=1e-3)
    assert validation.validate_fmu(str(path)) == []
    native = bc.simulate(s, 0.3, inputs={"swing": 0.7}, step=1e-3, every=0.01)
    names = ["hinge.q", "hinge.v", "count", "hinge.held", "target"]
    for kind, tolerance in (("CoSimulation", 1e-12), ("ModelExchange", 1e-5)):
        found = fmpy.simulate_fmu(
            str(path), stop_time=0.3, output_interval=0.01, start_values={"swing": 0.7}, output=names, fmi_type=kind,
            relative_tolerance=1e-9,
        )  # fmt: skip
        rows = ~np.append(np.diff(found["time"]) == 0.0, False)  # at a sample there are two rows
        if kind == "CoSimulation":
            for name in names:
                np.testing.assert_allclose(found[name], native[name], rtol=0, atol=tolerance, err_msg=name)
        for name in names[:2]:
            mine = np.interp(native.t, found["time"][rows], found[name][rows])
            np.testing.assert_allclose(mine, native[name], rtol=0, atol=max(tolerance, 2e-4), err_msg=name)
        assert found["count"][-1] in (60, 61)
    with instance(path) as (made, _), pytest.raises(Exception, match=r"[dD]oStep"):
        made.doStep(0.0, 0.00123)


@needs_cc
@both
def test_a_ball_bounces_in_fmus(version: int, tmp_path: Path) -> None:
    """By our steps, and by CVode, which finds the events by their indicators."""
    path = bc.export(ball(), tmp_path / "it.fmu", to=f"fmu{version}", events=bounces(3.005), step=0.01)
    assert validation.validate_fmu(str(path)) == []
    for kind, tolerance in (("CoSimulation", 1e-9), ("ModelExchange", 1e-4)):
        found = fmpy.simulate_fmu(
            str(path), stop_time=4.0, output_interval=0.01, start_values={"height.q": HEIGHT}, output=["height.q"],
            fmi_type=kind, relative_tolerance=1e-10, early_return_allowed=True,
        )  # fmt: skip
        assert abs(found["time"][-1] - 3.005) < 0.011, kind  # stopped by the event
        expected = [fallen(t) for t in found["time"]]
        np.testing.assert_allclose(found["height.q"], expected, rtol=0, atol=tolerance, err_msg=kind)
    about = fmpy.read_model_description(str(path))
    assert [v.name for v in about.modelVariables][-3:] == ["event(bounce)", "event(top)", "event(late)"]
    with instance(path, "ModelExchange") as (made, at):
        assert get(made, [at["event(late)"]]) == [-3.005]
        assert list(made.getDirectionalDerivative([at["event(bounce)"]], [at["height.q"]], [2.0])) == [2.0]


def meeting_carts() -> tuple[bc.System, list[bc.Event]]:
    """Two carts of 2 and 3 kg that couple when they are 0.1 m apart, and part after 0.4 s."""
    b = bc.Builder("carts", gravity=(0, 0, 0))
    for name, m in (("one", 2.0), ("two", 3.0)):
        b.body(name, mass=m, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", "ground", name, axis=(1, 0, 0))
    s = bc.system(b.build(), elements=[Latch("grip", "one", "two")])
    return s, [
        bc.Event("meet", lambda t, q, v, x, u: q["one"] - q["two"] + 0.1, "switch", 1, bc.attach("grip")),
        bc.Event("part", lambda t, q, v, x, u: t - 0.4, "switch", 1, bc.release("grip")),
    ]


@needs_cc
@both
def test_latches_close_and_open_in_fmus(version: int, tmp_path: Path) -> None:
    """In both kinds: the carts share their momentum, (2 * 2 - 3)/5 m/s, and are open again at the end."""
    s, events = meeting_carts()
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}", events=events, step=0.01)
    assert validation.validate_fmu(str(path)) == []
    start = {"one.q": -0.5, "one.v": 2.0, "two.v": -1.0}
    for kind in ("CoSimulation", "ModelExchange"):
        found = fmpy.simulate_fmu(
            str(path), fmi_type=kind, stop_time=0.5, output_interval=0.05, start_values=start,
            output=["one.v", "two.v", "grip.active"],
        )  # fmt: skip
        rows = np.array(found[["one.v", "two.v", "grip.active"]].tolist())
        np.testing.assert_allclose(rows[0], [2.0, -1.0, 0.0], atol=1e-12)
        np.testing.assert_allclose(rows[5], [0.2, 0.2, 1.0], atol=1e-9)
        np.testing.assert_allclose(rows[-1], [0.2, 0.2, 0.0], atol=1e-9)


@needs_cc
def test_chosen_steps_in_an_fmu_keep_the_importers_tolerance(tmp_path: Path) -> None:
    m = bc.zoo.planar3r()
    names = [f"{n}.q" for n in m.columns[0]]
    q0 = dict(zip(names, (0.4, -0.3, 0.2), strict=True))
    path = bc.export(m, tmp_path / "it.fmu", to="fmu3", tolerance=1e-3, integrator="dopri5", step=0.01)
    assert validation.validate_fmu(str(path)) == []
    exact = bc.simulate(m, 1.0, q0=list(q0.values()), tolerance=1e-11, integrator="dopri5", every=0.1)
    errors = []
    for asked in (1e-3, 1e-9):
        found = fmpy.simulate_fmu(
            str(path), stop_time=1.0, output_interval=0.1, start_values=q0, output=names, fmi_type="CoSimulation",
            relative_tolerance=asked,
        )  # fmt: skip
        errors.append(max(np.abs(found[x] - exact[x]).max() for x in names))
    assert errors[1] < 1e-6 < errors[0] < 0.1


def test_samples_must_fall_on_steps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sampled controller"):
        bc.export(sampled_plant(), tmp_path / "it", step=3e-3)
    with pytest.raises(InputError, match="fixed steps without events"):
        bc.export(sampled_plant(), tmp_path / "it", events=bounces(1.0)[2:])
    assert not list(tmp_path.iterdir())
