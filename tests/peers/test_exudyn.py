"""Flexible bodies agree with Exudyn's, with the same finite elements and the same modes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc

pytest.importorskip("exudyn", reason="Exudyn is not installed")
SECONDS = 0.03


def rod_of_bench() -> object:
    """Import the rod from bench/, which is next to tests/ and not a package."""
    path = Path(__file__).resolve().parents[2] / "bench" / "exudyn_rod.py"
    spec = importlib.util.spec_from_file_location("exudyn_rod", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exudyn_rod"] = module
    spec.loader.exec_module(module)
    return module


def test_a_slider_crank_with_a_rod_of_eight_modes() -> None:
    """They agree to 1e-6 m for deflections hundreds of times larger, and better for a shorter step of Exudyn."""
    r = rod_of_bench()
    m = r.ours()
    assert m.flexible[0].modes == 8
    q, v = r.start(m)
    run = bc.simulate(m, SECONDS, q0=q, v0=v, step=5e-6, every=0.01)
    i = list(m.columns[0]).index("rail")
    slider = r.CRANK + r.ROD + run.q[:, i]
    bent = run.q[:, [k for k, n in enumerate(m.columns[0]) if n.startswith("rod.")]]
    assert np.abs(bent).max() > 2e-4
    structure = r.rod()[1]
    half = int(np.argmin(np.abs(structure.grid - [r.ROD / 2, 0, 0]).sum(axis=1)))
    places = structure.grid[half] + bent @ structure.shapes[half].T
    middle = [X[2] @ [*p, 1.0] for X, p in zip(m.pose(run.q, "rod"), places, strict=True)]
    off = []
    for step in (2e-5, 5e-6):
        theirs = r.exudyn_run(SECONDS, step, 0.01, 1e-11)
        assert np.allclose(theirs.t, run.t)
        off.append(max(np.abs(theirs.slider - slider).max(), np.abs(theirs.middle - middle).max()))
    assert off[1] < 1e-6
    assert off[1] < off[0] / 8  # Exudyn's step is of second order and causes the remaining error
