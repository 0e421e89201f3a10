"""Model Exchange by CVode, which knows of a state's size only what the FMU says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import HydraulicCylinder, ProportionalValve
from bellcrank.excavators.machines import MACHINES
from bellcrank.sim.system.observed_columns import nominals
from targets.test_c99 import needs_cc
from targets.test_export_fmu import instance

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
both = pytest.mark.parametrize("version", [2, 3])


def states_of(path: Path) -> list[Any]:
    """Its variables that are states, in their order."""
    about = fmpy.read_model_description(str(path))
    return [d.variable.derivative for d in about.derivatives]


def lift() -> bc.System:
    """A slide with a pressure behind it, which is millions where the place is one."""
    b = bc.Builder("lift")
    b.body("platform", mass=1000.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("slide", "prismatic", "ground", "platform", axis=(0, 0, 1), damping=2e4, lower=0.0, upper=3.0)
    valve = ProportionalValve(flow=2e-3, p_pump=1.8e7, relief=2.5e7)
    jack = HydraulicCylinder("slide", valve, bore=0.1, rod=0.05, stroke=3.0, p_A=1.25e6, friction=200.0)
    return bc.system(b.build(), [jack], lambda t, q, v, x, u: [u[0]], inputs={"stick": 0.0})


@needs_cc
@both
def test_nominals_are_in_the_description_and_in_the_binary(version: int, tmp_path: Path) -> None:
    s = lift()
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}")
    expected = nominals(s).tolist()
    assert expected == [3.0, 3.0, 1.8e7, 1.8e7, 1.0]
    assert [float(v.nominal) for v in states_of(path)] == expected
    with instance(path, "ModelExchange") as (made, _):
        sizes = (fmpy.fmi2.fmi2Real if version == 2 else fmpy.fmi3.fmi3Float64) * len(expected)
        given = sizes()
        made.getNominalsOfContinuousStates(given, len(expected))
        assert list(given) == expected
        with pytest.raises(Exception, match="NominalsOfContinuousStates"):
            made.getNominalsOfContinuousStates(given, len(expected) - 1)


def off(s: bc.System, path: Path, inputs: dict[str, float], seconds: float, every: float, tolerance: float) -> float:
    """Return the relative error of CVode against our run with a far tighter tolerance."""
    names = [v.name for v in states_of(path)]
    form = "projected" if s.mechanism.loops else None
    native = bc.simulate(s, seconds, inputs=inputs, every=every, tolerance=1e-11, integrator="dopri5", form=form)
    found = fmpy.simulate_fmu(
        str(path), stop_time=seconds, output_interval=every, start_values=inputs, output=names,
        fmi_type="ModelExchange", relative_tolerance=tolerance,
    )  # fmt: skip
    sizes = nominals(s)
    errors = [
        np.abs(found[n] - native[n]).max() / (a + np.abs(native[n]).max()) for n, a in zip(names, sizes, strict=True)
    ]
    return float(max(errors))


@needs_cc
@both
def test_pressures_beside_places(version: int, tmp_path: Path) -> None:
    s = lift()
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}")
    for tolerance in (1e-6, 1e-9):
        assert off(s, path, {"stick": 0.7}, 0.5, 0.005, tolerance) < 200 * tolerance


@needs_cc
@both
@pytest.mark.parametrize("name", ["excavator", "excavator_linkage"])
def test_excavators_with_full_sticks(name: str, version: int, tmp_path: Path) -> None:
    """Nearer to the truth than our own steps of a millisecond; without nominals CVode gives up on one of them. BDF of
    an error of `tolerance` in each step ends a few hundred times that away, as our own integrators do.
    """
    s = MACHINES[name]().system
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}")
    sticks = {n: 1.0 if k < 4 else s.defaults.get(n, 0.0) for k, n in enumerate(s.inputs)}
    for tolerance in (1e-6, 1e-9):
        assert off(s, path, sticks, 1.0, 0.005, tolerance) < 500 * tolerance
