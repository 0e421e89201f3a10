"""Hostile durations and counts of exported machines: an error or a status at once, and never a state without numbers.

An importer's last step may be as short as the rounding of its clock: it changes nothing, and nothing is lost.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.graph.program import BAD_STEP
from bellcrank.integrate import INTEGRATORS
from targets.test_c99 import CC, needs_cc, run
from targets.test_export_events import ball, sampled_plant
from targets.test_export_wasm import needs_node, said

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
from targets.test_export_fmu import instance, plant  # noqa: E402

PATIENCE = 5.0
GROUND = bc.Event("ground", lambda t, q, v, x, u: q[0], "record")
H = 1e-3
BAD = {"minus": -1e-3, "nan": math.nan, "inf": math.inf, "minus inf": -math.inf, "1e14": 1e14, "1e300": 1e300}
SHORT = (1e-16, 1e-12, 1e-9)  # of a step
both = pytest.mark.parametrize("version", [2, 3])
METHODS = [(name, {}) for name in INTEGRATORS] + [
    (name, {"tolerance": 1e-6}) for name, i in INTEGRATORS.items() if i.adaptive
]
ids = [name + "-chosen" * bool(how) for name, how in METHODS]


@pytest.fixture
def soon() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PATIENCE


def bytes_of(made: Any) -> bytes:
    """All that an instance remembers."""
    three = not hasattr(made, "getFMUstate")
    state = made.getFMUState() if three else made.getFMUstate()
    found = made.serializeFMUState(state) if three else made.serializeFMUstate(state)
    (made.freeFMUState if three else made.freeFMUstate)(state)
    return bytes(found)


def numbers(made: Any) -> np.ndarray[Any, Any]:
    """Return the complete memory of an FMU.

    Numbers that were not written yet (rates and outputs without a request) are zero in a shipped FMU, and have all
    bits set in these tests.
    """
    found = np.frombuffer(bytes_of(made)[32:], float)
    return np.where(found.view(np.uint64) == 2**64 - 1, 0.0, found)


def refused(made: Any, t: float, h: float) -> bool:
    """Return whether a step is an error."""
    try:
        made.doStep(t, h)
    except fmpy.fmi1.FMICallException:
        return True
    return False


@needs_cc
@both
@pytest.mark.parametrize("kind", ["rk4", "abm4", "chosen", "events", "sampled"])
def test_steps_of_an_fmu(version: int, kind: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"integrator": kind} if kind in ("rk4", "abm4") else {}
    how |= {"integrator": "dopri5", "tolerance": 1e-6} if kind == "chosen" else {}
    thing: Any = plant() if kind in ("rk4", "abm4", "chosen") else sampled_plant()
    if kind == "events":
        thing, how = ball(), {"events": [GROUND]}
    path = bc.export(thing, tmp_path / "it.fmu", to=f"fmu{version}", step=H, **how)
    with instance(path) as (made, _):
        made.doStep(0.0, H)
        before = bytes_of(made)
        for word, h in BAD.items():
            began = time.monotonic()
            assert refused(made, H, h) or word == "1e14", word
            assert time.monotonic() - began < PATIENCE, word
            assert bytes_of(made) == before, word
        for t in (math.nan, math.inf, -1.0):
            assert refused(made, t, H)
        assert bytes_of(made) == before
        made.doStep(H, H)
        assert np.isfinite(numbers(made)).all()


@needs_cc
@both
def test_starts_and_tolerances_of_an_fmu(version: int, tmp_path: Path) -> None:
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}", integrator="dopri5", tolerance=1e-6)
    about = fmpy.read_model_description(str(path))
    made = fmpy.instantiate_fmu(fmpy.extract(str(path)), about, fmi_type="CoSimulation")
    begin = made.setupExperiment if version == 2 else made.enterInitializationMode
    for given in ({"startTime": math.nan}, {"startTime": math.inf}, {"tolerance": math.nan}, {"tolerance": -1.0}):
        with pytest.raises(fmpy.fmi1.FMICallException):
            begin(**given)
    begin(startTime=2.0, tolerance=1e-4)
    made.freeInstance()


@needs_cc
@pytest.mark.parametrize(("name", "how"), METHODS, ids=ids)
def test_an_importers_rounding_changes_nothing(name: str, how: dict[str, Any], tmp_path: Path) -> None:
    """The steps of an importer that ends each with what its clock had left, and of one that does not."""
    path = bc.export(plant(), tmp_path / "it.fmu", to="fmu2", step=H, integrator=name, **how)
    with instance(path) as (plain, _), instance(path) as (rounded, _):
        for k in range(6):
            plain.doStep(k * H, H)
            rounded.doStep(k * H, H)
            for part in SHORT:
                rounded.doStep((k + 1) * H, part * H)
        found, expected = numbers(rounded), numbers(plain)
        assert np.isfinite(found).all()
        different = np.flatnonzero(found != expected)
        if how:  # what is owed is part of the next step
            np.testing.assert_allclose(found[1:7], expected[1:7], rtol=0, atol=1e-9)
        else:
            assert len(different) <= 1, different  # the seconds that are owed


@needs_cc
@pytest.mark.parametrize(("name", "how"), METHODS, ids=ids)
@pytest.mark.parametrize("part", [1e-7, 1e-4, 0.3])
def test_a_short_last_step_is_one(name: str, how: dict[str, Any], part: float, tmp_path: Path) -> None:
    path = bc.export(plant(), tmp_path / "it.fmu", to="fmu2", step=H, integrator=name, **how)
    with instance(path) as (made, at):
        made.doStep(0.0, 5 * H)
        v = [at[n] for n in ("a/b.q", "elbow.q", "a/b.v", "elbow.v")]
        before = np.array(made.getReal(v))
        made.doStep(5 * H, part * H)
        moved = np.array(made.getReal(v)) - before
        assert np.isfinite(numbers(made)).all()
        np.testing.assert_allclose(moved[:2], part * H * before[2:], rtol=0.2, atol=1e-12 + 100 * (part * H) ** 2)
        made.doStep((5 + part) * H, H)
        assert np.isfinite(numbers(made)).all()


@needs_cc
@both
@pytest.mark.parametrize("integrator", ["dopri5", "rodas4"])
def test_a_long_step_may_take_as_many_steps_with_an_adaptive_step_size_as_with_fixed_steps(
    version: int, integrator: str, tmp_path: Path
) -> None:
    """More than 100,000, without an error that speaks of events."""
    tolerance, seconds = {"dopri5": (1e-9, 3000.0), "rodas4": (1e-9, 2000.0)}[integrator]
    m = bc.zoo.pendulum()
    path = bc.export(m, tmp_path / "it.fmu", to=f"fmu{version}", step=H, integrator=integrator, tolerance=tolerance)
    name = m.columns[0][0]
    native = bc.simulate(
        m, seconds, q0=[0.3], integrator=integrator, tolerance=tolerance, keep="final", max_steps=10**9
    )
    assert native.provenance["steps"] > 100_000
    with instance(path) as (made, at):
        (made.setReal if version == 2 else made.setFloat64)([at[f"{name}.q"]], [0.3])
        made.doStep(0.0, seconds)
        assert np.isfinite(numbers(made)).all()


WALLS = [
    bc.Event("low", lambda t, q, v, x, u: q[0], "switch", -1, lambda t, q, v, x, u: {"v": [1.0]}),
    bc.Event("high", lambda t, q, v, x, u: q[0] - 1e-6, "switch", 1, lambda t, q, v, x, u: {"v": [-1.0]}),
]


@needs_cc
@both
@pytest.mark.parametrize("how", [{}, {"integrator": "dopri5", "tolerance": 1e-8}], ids=["fixed", "adaptive"])
def test_events_that_follow_ever_closer_end_a_step(
    version: int, how: dict[str, Any], tmp_path: Path, soon: None, capfd: pytest.CaptureFixture[str]
) -> None:
    hummed = {"states": {"hum": 0.0}, "control": lambda t, q, v, x, u: ([0.0], [1e3 * bc.cos(1e4 * t)])}
    humming = bc.system(ball(), **hummed)  # type: ignore[arg-type]  # which keeps an adaptive step size short
    path = bc.export(humming, tmp_path / "it.fmu", to=f"fmu{version}", step=0.2, events=WALLS, **how)
    with instance(path) as (made, at):
        (made.setReal if version == 2 else made.setFloat64)([at["height.q"], at["height.v"]], [5e-7, 1.0])
        assert refused(made, 0.0, 1e6)
        assert "events follow ever closer" in capfd.readouterr().out


@needs_cc
def test_many_short_steps_are_not_lost(tmp_path: Path) -> None:
    """Each is below what is taken; together they are time that passes."""
    path = bc.export(plant(), tmp_path / "it.fmu", to="fmu2", step=H)
    with instance(path) as (made, at):
        t, each = 0.0, 0.4e-8 * H
        for _ in range(1000):
            made.doStep(t, each)
            t += each
        assert made.getReal([at.get("time", 0)])[0] == pytest.approx(t, abs=2e-8 * H)


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["rk4", "chosen", "events"])
def test_steps_of_c(dtype: str, kind: str, tmp_path: Path, soon: None) -> None:
    how: dict[str, Any] = {"rk4": {}, "chosen": {"tolerance": 1e-4, "integrator": "dopri5"}, "events": {}}[kind]
    how |= {"events": [GROUND]} if kind == "events" else {}
    bc.export(ball(), tmp_path / "it", dtype=dtype, step=H, **how)
    (source,) = (p for p in (tmp_path / "it").glob("*.c") if p.name != "main.c")
    run(tmp_path / "it", str(CC), "-std=c99", "-O1", "-fPIC", "-shared", source.name, "-o", "it.so", "-lm")
    code, text = ctypes.CDLL(str(tmp_path / "it" / "it.so")), source.with_suffix(".h").read_text()
    names = [line.split()[1].rstrip(";") for line in text.split("_state;")[0].splitlines() if line.startswith("    ")]
    real = [x for x in names if x.isidentifier()]
    state = np.zeros(len(real) + 8, dtype)
    u = np.zeros(8, dtype)
    given = [ctypes.c_void_p(x.ctypes.data) for x in (state, u)]
    code[f"{source.stem}_init"](*given)
    assert code[f"{source.stem}_step"](*given) == 0
    place, kept = real.index("step"), state.copy()
    tiny = [1e-300 if dtype == "float64" else 1e-38] if kind == "chosen" else []
    for h in (-1e-3, 0.0, math.nan, math.inf, -math.inf, *tiny):
        state[:] = kept
        state[place] = h
        before = state.copy()
        assert code[f"{source.stem}_step"](*given) == BAD_STEP, h
        np.testing.assert_array_equal(state, before)


@needs_node
@pytest.mark.parametrize("kind", ["rk4", "chosen", "events"])
def test_steps_of_wasm(kind: str, tmp_path: Path, soon: None) -> None:
    how: dict[str, Any] = {"rk4": {}, "chosen": {"tolerance": 1e-4, "integrator": "dopri5"}, "events": {}}[kind]
    how |= {"events": [GROUND]} if kind == "events" else {}
    bc.export(ball(), tmp_path / "it", to="wasm", step=H, **how)
    script = """const before = JSON.stringify(m.save().map((x) => [...x])), found = [];
        for (const x of [-1, NaN, Infinity, -Infinity, 0.5, 1e14, 2 ** 63, 1e300, "3", null, [2], {}, 3n, true]) {
          let how = "none"; try { m.step(x); } catch (error) { how = error.name; }
          found.push(how + (JSON.stringify(m.save().map((x) => [...x])) === before ? "" : ", changed"));
        }
        found.push(m.step(0), m.step(3), m.t);
        console.log(JSON.stringify(found));"""
    *errors, none, three, t = said(tmp_path / "it", script)
    assert set(errors) == {"RangeError"}
    assert (none, three, t) == (0, 0, pytest.approx(3 * H))


@needs_cc
@pytest.mark.parametrize("kind", ["chosen", "events"])
def test_float32_reports_a_time_that_no_longer_advances(kind: str, tmp_path: Path) -> None:
    """A step that no longer changes the time returns a status, and no call before it is lost."""
    how: dict[str, Any] = {"integrator": "dopri5", "tolerance": 1e-4} if kind == "chosen" else {"events": [GROUND]}
    bc.export(plant(), tmp_path / "it", dtype="float32", step=H, **how)
    (source,) = (p for p in (tmp_path / "it").glob("*.c") if p.name != "main.c")
    run(tmp_path / "it", str(CC), "-std=c99", "-O2", "-fPIC", "-shared", source.name, "-o", "it.so", "-lm")
    code, text = ctypes.CDLL(str(tmp_path / "it" / "it.so")), source.with_suffix(".h").read_text()
    names = [line.split()[1].rstrip(";") for line in text.split("_state;")[0].splitlines() if line.startswith("    ")]
    names = [x for x in names if x.isidentifier()]
    state, u, p = np.zeros(len(names) + 8, "float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    given = [ctypes.c_void_p(x.ctypes.data) for x in (state, u, p)]
    code[f"{source.stem}_init"](*given)
    low = names.index("grid_low")
    for seconds in (0, 8, 16, 1000, 4000):  # at a millisecond a number of float32 is no whole number of them
        count = round(seconds / H)
        state[low], state[0] = count, np.float32(count) * np.float32(H)
        state[names.index("steps_low")] = count
        for k in range(200):
            before = state[0]
            assert code[f"{source.stem}_step"](*given) == 0
            assert state[0] > before
            assert state[low] == count + k + 1
    for word in ("grid", "steps"):
        state[names.index(f"{word}_high")], state[names.index(f"{word}_low")] = 1.0, 0.0
    state[0] = np.float32(2**24) * np.float32(H)
    assert BAD_STEP in [code[f"{source.stem}_step"](*given) for _ in range(20)]
