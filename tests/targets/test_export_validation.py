"""Public validation problems as FMUs: what FMPy makes of them is what was published (see test_validation_loops.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from papers.test_validation_loops import ANDREWS, FOUR_BARS, PENDULUM
from targets.test_c99 import needs_cc

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
both = pytest.mark.parametrize("version", [2, 3])
KINDS = ("CoSimulation", "ModelExchange")


def ended(path: Path, m: bc.Mechanism, seconds: float, kind: str, step: float, **start: Any) -> np.ndarray:
    """q and v at the end."""
    names = [f"{n}.{x}" for x, columns in zip("qv", m.columns, strict=True) for n in columns]
    found = fmpy.simulate_fmu(
        str(path), stop_time=seconds, output_interval=seconds / 10, output=names, fmi_type=kind, step_size=step,
        relative_tolerance=1e-10, start_values=dict(zip(names, np.concatenate(list(start.values())), strict=True)),
    )  # fmt: skip
    return np.array([found[x][-1] for x in names])


def published(m: bc.Mechanism, y: np.ndarray, frame: str) -> np.ndarray:
    return np.asarray(m.pose(y[: m.nq], frame)[:2, 3])


@needs_cc
@both
@pytest.mark.parametrize("form", ["minimal", "projected"])
def test_a_pendulum_on_a_rod(version: int, form: str, tmp_path: Path) -> None:
    """In the minimal form it changes its dependent coordinates on its way."""
    m = zoo.rod_pendulum()
    path = bc.export(bc.system(m), tmp_path / "it.fmu", to=f"fmu{version}", form=form)
    q, v = zoo.start(m)
    for kind, most in zip(KINDS, (1e-8, 1e-5), strict=True):
        y = ended(path, m, 2.0, kind, 1e-3, q=q, v=v)
        np.testing.assert_allclose(published(m, y, "P"), PENDULUM[2], rtol=0, atol=most, err_msg=kind)


@needs_cc
@both
def test_two_windows_go_through_where_they_are_flat(version: int, tmp_path: Path) -> None:
    m = zoo.n_four_bar(2)
    path = bc.export(bc.system(m), tmp_path / "it.fmu", to=f"fmu{version}")
    q, v = zoo.start(m)
    for kind, most in zip(KINDS, (1e-8, 1e-6), strict=True):
        y = ended(path, m, 1.0, kind, 1e-3, q=q, v=v)
        np.testing.assert_allclose(published(m, y, "B0"), FOUR_BARS[2][1], rtol=0, atol=most, err_msg=kind)


@needs_cc
@both
def test_andrews_squeezer(version: int, tmp_path: Path) -> None:
    m, torque = zoo.andrews(), zoo.data("andrews")["mom"]
    motor = m.columns[1].index("beta")
    s = bc.system(m, control=lambda t, q, v, x, u: [torque if k == motor else 0.0 for k in range(m.nv)])
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}", step=1e-5)
    q, v = zoo.start(m)
    for kind, most in zip(KINDS, (1e-6, 1e-4), strict=True):
        y = ended(path, m, 0.03, kind, 1e-5, q=q, v=v)
        expected = np.array([ANDREWS[n] for n in m.columns[1]]).T.ravel()
        np.testing.assert_allclose(y, expected, rtol=most, atol=most, err_msg=kind)
