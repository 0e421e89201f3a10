"""Sobol indices against closed forms: Ishigami's function, and a pendulum's energy over its mass and start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.studies.sampling_plans import Indices, points, sobol_indices

distributed = pytest.importorskip("distributed")
A, B = 7.0, 0.1
ISHIGAMI = {name: bc.uniform(-np.pi, np.pi) for name in ("x1", "x2", "x3")}


def ishigami(x: dict[str, Any]) -> Any:
    return np.sin(x["x1"]) + A * np.sin(x["x2"]) ** 2 + B * x["x3"] ** 4 * np.sin(x["x1"])


def known() -> tuple[np.ndarray, np.ndarray]:
    """First-order and total indices, by analytical integration."""
    V1, V2 = (1 + B * np.pi**4 / 5) ** 2 / 2, A**2 / 8
    V13 = 8 * B**2 * np.pi**8 / 225
    V = V1 + V2 + V13
    return np.array([V1, V2, 0.0]) / V, np.array([V1 + V13, V2, V13]) / V


def within(found: Indices, first: Any, total: Any) -> None:
    """Check that errors are below three standard errors, which are small enough to be meaningful."""
    assert (abs(found.first - first) < 3 * found.first_error).all(), str(found)
    assert found.first_error.max() < 0.03
    if total is not None:
        assert (abs(found.total - total) < 3 * found.total_error).all(), str(found)
        assert found.total_error.max() < 0.03


@pytest.mark.parametrize("seed", range(5))
def test_ishigami(seed: int) -> None:
    made = points(ISHIGAMI, 5 * 8192, "saltelli", seed)
    within(sobol_indices(made, ishigami(dict(made.columns)), "f"), *known())


@pytest.mark.parametrize("design", ["random", "latin"])
def test_ishigami_from_any_independent_points(design: str) -> None:
    made = points(ISHIGAMI, 20000, design, 3)
    within(sobol_indices(made, ishigami(dict(made.columns)), "f"), known()[0], None)


def test_stated_errors_equal_the_scatter() -> None:
    """Over many studies the scatter of the estimates equals the stated errors within a fifth."""
    found = []
    for seed in range(60):
        made = points(ISHIGAMI, 2000, "random", seed)
        found.append(sobol_indices(made, ishigami(dict(made.columns)), "f"))
    scatter = np.std([f.first for f in found], axis=0, ddof=1)
    said = np.mean([f.first_error for f in found], axis=0)
    assert np.all(abs(np.log(said / scatter)) < 0.5), (said, scatter)


def test_a_result_without_variance_and_lost_runs() -> None:
    with pytest.raises(InputError, match="independent points"):
        sobol_indices(points(ISHIGAMI, 64, "sobol", 0), np.ones(64), "f")
    made = points(ISHIGAMI, 5 * 512, "saltelli", 0)
    assert np.isnan(sobol_indices(made, np.ones(len(made)), "f").first).all()
    f = ishigami(dict(made.columns))
    f[7] = np.nan
    assert sobol_indices(made, f, "f").used == 511
    some = points(ISHIGAMI, 128, "random", 0)
    rare = sobol_indices(some, np.where(np.arange(128) == 17, 1.0, 0.0), "f")  # one run has a value, the others zero
    assert np.isfinite(rare.first).all()
    assert np.isnan(rare.first_error).all()
    assert "\N{PLUS-MINUS SIGN} ?" in str(rare)


def test_a_pendulum(tmp_path: Path) -> None:
    """Its energy is constantly -m g l cos(q0), a product of independent numbers."""
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    over = {"bob.mass": bc.uniform(0.5, 2.0), "hinge.q": bc.uniform(0.0, 1.2)}
    with distributed.LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster:
        done = bc.study(
            b.build(), over, 4 * 4096, seconds=0.2, step=0.01, summary=["final(energy)", "max(hinge.v)"],
            points="saltelli", to=tmp_path / "s", cluster=cluster,
        )  # fmt: skip
    w = 1.2
    mean = {"m": 1.25, "c": np.sin(w) / w}
    square = {"m": 1.25**2 + 1.5**2 / 12, "c": 0.5 + np.sin(2 * w) / (4 * w)}
    V = square["m"] * square["c"] - (mean["m"] * mean["c"]) ** 2
    var = {k: square[k] - mean[k] ** 2 for k in mean}
    first = np.array([var["m"] * mean["c"] ** 2, var["c"] * mean["m"] ** 2]) / V
    total = np.array([var["m"] * square["c"], var["c"] * square["m"]]) / V
    within(done.sobol("final(energy)"), first, total)
