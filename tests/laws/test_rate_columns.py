"""Columns of rates: d(NAME)/dt of every state of a record is the slope of NAME along the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PID
from bellcrank.excavators import spool_control
from bellcrank.papers.wong.experiments import excavator_system


def satellite() -> Any:
    b = bc.Builder("satellite", gravity=(0, 0, -1.0))
    b.body("hull", mass=3.0, com=(0.1, 0.0, 0.05), inertia=(0.2, 0.3, 0.4))
    b.joint("free", "floating", "ground", "hull")
    b.body("arm", mass=0.5, com=(0.0, 0.5, 0.3), inertia=(0.03, 0.01, 0.03))
    b.joint("elbow", "revolute", "hull", "arm", point=(0.0, 0.3, 0.0), axis=(1.0, 0.0, 0.0))
    return bc.system(b.build(), [PID("elbow", 4.0, 2.0, 0.4)], lambda t, q, v, x, u: [bc.sin(3.0 * t)])


def runs() -> dict[str, Any]:
    spin = [0.3, -0.2, 0.5, 1.0, 2.0, -1.5, 2.0]
    return {
        "satellite": lambda: bc.simulate(satellite(), 0.4, v0=spin, step=1e-3),
        "loop": lambda: bc.simulate(bc.zoo.four_bar(), 0.1, step=1e-3),
        "batch": lambda: bc.simulate(bc.zoo.chain(2), 0.4, q0=[[0.5, 1.0], [1.0, 0.2]], step=1e-3),
        "inputs": lambda: bc.simulate(
            bc.system(bc.zoo.chain(1), control=lambda t, q, v, x, u: ([u["push"]], [u["push"] - x["lag"]]),
                      inputs=["push"], states={"lag": 0.2}), 0.4, inputs={"push": 0.7}, step=1e-3),
        "sensitivities": lambda: bc.simulate(
            bc.zoo.chain(2), 0.4, q0=[0.5, 1.0], step=1e-3, sensitivities=[f"{bc.zoo.chain(2).columns[0][0]}.q"]
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", runs())
def test_rates_are_the_slopes_of_the_states(name: str) -> None:
    run = runs()[name]()
    m = run.mechanism
    states = [*(f"{n}.q" for n in m.columns[0]), *(f"{n}.v" for n in m.columns[1]), *run.states]
    assert run.rate_names == tuple(f"d({n})/dt" for n in states)
    for state, rate in zip(states, run.rate_names, strict=True):
        x, slope = run[state], run[rate]
        differences = (8 * (x[..., 3:-1] - x[..., 1:-3]) - (x[..., 4:] - x[..., :-4])) / (12 * 1e-3)
        size = max(1.0, np.abs(slope).max())
        np.testing.assert_allclose(slope[..., 2:-2], differences, atol=2e-7 * size, err_msg=rate)
    for n in m.columns[1]:
        np.testing.assert_allclose(run[f"d({n}.v)/dt"], run[f"{n}.a"], rtol=1e-12, atol=1e-12)


def test_rates_of_hydraulics_have_units_and_are_stored(tmp_path: Path) -> None:
    """The excavator's pressures: each rate has the unit of the state per second, and a file keeps it."""
    run = bc.simulate(excavator_system(spool_control.joint_mode()), 0.05, q0=spool_control.poses()[0], step=1e-3)
    psi = [n for n in run.states if run.column(n).unit == "psi"]
    assert psi
    stored = run.including(*run.rate_names)
    path = stored.save(tmp_path / "run.csv")
    again = bc.load_record(path)
    assert again.rate_names == run.rate_names
    for n in psi:
        rate = f"d({n})/dt"
        assert run.column(rate).unit == "psi/s"
        x = run[n]
        assert np.abs(run[rate][1:-1] - (x[2:] - x[:-2]) / 2e-3).max() <= 0.05 * np.abs(run[rate]).max()
        np.testing.assert_array_equal(again[rate], run[rate])
    assert run.column("d(boom.q)/dt").unit == "rad/s"
    assert run.column("d(boom.v)/dt").unit == "rad/s^2"
