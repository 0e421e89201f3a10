"""Calls of an FMU that no importer should make: each is an error, and leaves all as it was."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from targets.test_c99 import needs_cc
from targets.test_export_fmu import get, instance, plant, set_

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
both = pytest.mark.parametrize("version", [2, 3])


def keep(made: Any) -> bytes:
    """All that an instance remembers."""
    old = hasattr(made, "getFMUstate")
    state = made.getFMUstate() if old else made.getFMUState()
    data = made.serializeFMUstate(state) if old else made.serializeFMUState(state)
    (made.freeFMUstate if old else made.freeFMUState)(state)
    return bytes(data)


def refuses(made: Any, call: Callable[[], Any]) -> None:
    before = keep(made)
    with pytest.raises(Exception, match="fmi"):
        call()
    assert keep(made) == before


def go_back(made: Any, data: bytes) -> None:
    old = hasattr(made, "getFMUstate")
    state = made.deSerializeFMUstate(data) if old else made.deserializeFMUState(data)
    (made.setFMUstate if old else made.setFMUState)(state)
    (made.freeFMUstate if old else made.freeFMUState)(state)


@needs_cc
@both
def test_wrong_calls(version: int, tmp_path: Path) -> None:
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}")
    other = bc.export(plant(), tmp_path / "other.fmu", to=f"fmu{version}", step=2e-3)
    with instance(path) as (made, at), instance(other) as (stranger, _):
        made.doStep(0.0, 0.01)
        many = max(at.values()) + 1
        for name in ("time", "der(sum)", "height"):  # what is computed; and of several none is set
            refuses(made, lambda name=name: set_(made, [at["push"], at[name]], [9.0, 1.0]))
        refuses(made, lambda: set_(made, [at["push"], many], [9.0, 1.0]))
        refuses(made, lambda: get(made, [many]))
        refuses(made, lambda: made.doStep(0.01, -0.01))
        refuses(made, lambda: made.doStep(0.01, float("nan")))
        refuses(made, lambda: made.doStep(0.01, float("inf")))
        refuses(made, lambda: made.doStep(0.0, 0.01))  # it is later already
        refuses(made, lambda: made.doStep(0.5, 0.01))  # and not so late
        for knowns, unknowns in (([at["time"]], [at["height"]]), ([at["push"]], [many]), ([at["height"]], [at["sum"]])):
            refuses(made, lambda k=knowns, u=unknowns: made.getDirectionalDerivative(u, k, [1.0]))
        theirs, mine = keep(stranger), keep(made)
        assert len(theirs) == len(mine)  # as long, and of another model
        for data in (theirs, mine[:-8], mine + bytes(8), b"", bytes(len(mine))):
            refuses(made, lambda data=data: go_back(made, data))
        made.doStep(0.01, 0.01)
        go_back(made, mine)
        assert keep(made) == mine


@needs_cc
@both
def test_failed_step_is_rolled_back(version: int, tmp_path: Path) -> None:
    """The first ones of a hundred steps of the machine succeed."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [bc.where(t < 0.0305, 0.0, 1e308) * 1e10]

    b = bc.Builder("arm")
    b.body("link", mass=1.0, com=(1, 0, 0), inertia=(1, 1, 1))
    b.joint("hinge", "revolute", "ground", "link", axis=(0, 1, 0))
    path = bc.export(bc.system(b.build(), control=control), tmp_path / "it.fmu", to=f"fmu{version}")
    with instance(path) as (made, at):
        refuses(made, lambda: made.doStep(0.0, 0.1))
        made.doStep(0.0, 0.03)
        assert abs(get(made, [at["time"]])[0] - 0.03) < 1e-12
        refuses(made, lambda: made.doStep(0.03, 0.07))


@needs_cc
@both
def test_invalid_instances_are_rejected(version: int, tmp_path: Path) -> None:
    path = bc.export(bc.zoo.pendulum(), tmp_path / "it.fmu", to=f"fmu{version}")
    about = fmpy.read_model_description(str(path))
    folder = fmpy.extract(str(path), str(tmp_path / "it"))
    with instance(path) as (made, _):
        code = ctypes.CDLL(made.dll._name)  # as C has it: FMPy's own checks what it is given
        none: Any = None
        if version == 2:
            make = code.fmi2Instantiate
            make.restype = ctypes.c_void_p
            token = about.guid.encode()
            assert make(b"it", 1, b"another", none, none, 0, 0) is none
            assert make(none, 1, token, none, none, 0, 0) is none
            assert make(b"it", 7, token, none, none, 0, 0) is none
            found = make(b"", 0, token, none, none, 0, 0)  # without anybody to tell of errors
            code.fmi2FreeInstance(ctypes.c_void_p(found))
            code.fmi2FreeInstance(none)
            assert code.fmi2SetFMUstate(ctypes.c_void_p(made.component), none) == 3
        else:
            make = code.fmi3InstantiateModelExchange
            make.restype = ctypes.c_void_p
            assert make(b"it", b"another", none, False, False, none, none) is none
            assert make(b"it", none, none, False, False, none, none) is none
            code.fmi3FreeInstance(none)
            assert code.fmi3SetFMUState(ctypes.c_void_p(made.component), none) == 3
    assert Path(folder).is_dir()


@needs_cc
@both
def test_derivatives_are_differences_along_a_motion(version: int, tmp_path: Path) -> None:
    """Both ways, with respect to everything at once, not where it rests."""
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}")
    draw = np.random.default_rng(3)
    with instance(path, "ModelExchange") as (made, at):
        states = ["a/b.q", "elbow.q", "a/b.v", "elbow.v", "sum"]
        which = [at[x] for x in (*states, "push", "<want>", "upper.mass")]
        unknowns = [*(at[f"der({x})"] for x in states), at["height"], at["a/b.tau"], at["elbow.q"]]
        here, way = draw.uniform(0.2, 1.0, len(which)), draw.normal(size=len(which))

        def found(step: float) -> Any:
            set_(made, which, (here + step * way).tolist())
            return np.array(get(made, unknowns))

        differences = (found(1e-6) - found(-1e-6)) / 2e-6
        found(0.0)
        along = np.array(made.getDirectionalDerivative(unknowns, which, way.tolist()))
        np.testing.assert_allclose(along, differences, rtol=0, atol=1e-7 * np.abs(differences).max())
        if version == 3:
            weights = draw.normal(size=len(unknowns))
            back = np.array(made.getAdjointDerivative(unknowns, which, weights.tolist(), len(which)))
            assert back @ way == pytest.approx(weights @ along, rel=1e-12)


@needs_cc
@both
def test_a_reset_is_a_new_instance(version: int, tmp_path: Path) -> None:
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}", integrator="abm4")
    with instance(path) as (used, at), instance(path) as (new, _):
        set_(used, [at["push"], at["upper.mass"]], [3.0, 5.0])
        used.doStep(0.0, 0.0123)
        used.reset()
        if version == 2:
            used.setupExperiment(startTime=0.0)
        used.enterInitializationMode()
        used.exitInitializationMode()
        assert keep(used) == keep(new)
        for made in (used, new):
            made.doStep(0.0, 0.05)
        assert keep(used) == keep(new)


@needs_cc
@both
@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_steps_continue_from_a_time_that_is_set(version: int, integrator: str, tmp_path: Path) -> None:
    """Setting time is for Model Exchange; steps after it went on from where they had been counted."""
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}", integrator=integrator)
    with instance(path, "ModelExchange") as (made, at):
        for t, seconds in ((100.0, 0.002), (-1.87, 1e-3), (0.25, 0.0123), (1e-9, 1.0), (7.0, 1e-3)):
            made.setTime(t)
            code = ctypes.CDLL(made.dll._name)
            call = [ctypes.c_void_p(made.component), ctypes.c_double(t), ctypes.c_double(seconds)]
            flags = [ctypes.byref(ctypes.c_double()) for _ in range(4)] if version == 3 else []
            assert getattr(code, f"fmi{version}DoStep")(*call, ctypes.c_bool(False), *flags) == 0
            assert get(made, [at["time"]])[0] == pytest.approx(t + seconds, abs=1e-12)
