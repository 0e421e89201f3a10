"""Tyres: slopes and plateaus of their curves, forces of a wheel on a road, energy, and files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_elements import moving, rate

import bellcrank as bc
from bellcrank.errors import InputError, ReadError
from bellcrank.forces import LinearTyre, MagicTyre, Terrain, read_tyre
from bellcrank.forces.tyres import magic_formula

C = {
    "FNOMIN": 4000.0, "PCX1": 1.65, "PDX1": 1.2, "PDX2": -0.08, "PEX1": -0.5, "PKX1": 22.0, "PKX3": 0.2,
    "PCY1": 1.3, "PDY1": -1.05, "PDY2": 0.15, "PEY1": -0.8, "PKY1": -18.0, "PKY2": 1.8,
}  # fmt: skip
FILE = """[DIMENSION]
UNLOADED_RADIUS = 0.31 $ m
[VERTICAL]
VERTICAL_STIFFNESS = 2.1e+05
VERTICAL_DAMPING = 50
FNOMIN = 4000 ! N
"""


def linear(**more: Any) -> LinearTyre:
    return LinearTyre("tyre", "ground", "wheel", 0.3, 2e5, 500.0, longitudinal=8e4, lateral=5e4, friction=0.9, **more)


def rolling(tyre: Any, speed: float, side: float, slip: float, load: float) -> Any:
    """Force and moment on the hub of a wheel that moves forward and sideways, with a slip, under a load."""
    X = np.eye(4)
    X[2, 3] = tyre.radius - load / tyre.stiffness
    V = [speed, side, 0.0, 0.0, speed * (1 + slip) / X[2, 3], 0.0]
    return tyre(0.0, X, V, [])


@pytest.mark.parametrize("tyre", [linear(), MagicTyre("m", "a", "b", 0.3, coefficients=C)], ids=["linear", "magic"])
def test_slopes_and_plateaus(tyre: Any) -> None:
    """For small slip, the force is stiffness times slip, limited by friction; N carries the load."""
    load = 4000.0
    f, n, _ = rolling(tyre, 20.0, 0.0, 1e-5, load)
    K = 8e4 if isinstance(tyre, LinearTyre) else load * C["PKX1"]
    assert math.isclose(float(f[0]) / 1e-5, K, rel_tol=1e-2)
    assert math.isclose(float(f[2]), load, rel_tol=1e-9)
    assert math.isclose(float(n[1]), float(f[0]) * -(0.3 - load / 2e5), rel_tol=1e-9)  # it brakes the wheel
    f, _, _ = rolling(tyre, 20.0, 20.0 * 1e-5, 0.0, load)
    K = 5e4 if isinstance(tyre, LinearTyre) else 18.0 * 4000.0 * math.sin(2 * math.atan(1 / 1.8))
    assert math.isclose(-float(f[1]) / 1e-5, K, rel_tol=1e-2)
    for side, slip in ((3.0, 0.0), (0.0, 0.5), (5.0, 0.8), (-8.0, -0.9)):
        f, _, _ = rolling(tyre, 20.0, side, slip, load)
        assert math.hypot(float(f[0]), float(f[1])) <= 1.25 * load
        assert float(f[1]) * side <= 0.0
        assert float(f[0]) * slip >= 0.0


def test_the_magic_formula_has_its_slope_and_its_peak() -> None:
    K, shape, D = 9e4, 1.6, 4000.0
    x = np.linspace(-1.0, 1.0, 20001)
    y = magic_formula(x, K, shape, D, -0.5)
    assert math.isclose((y[10001] - y[9999]) / (x[10001] - x[9999]), K, rel_tol=1e-3)
    assert math.isclose(y.max(), D, rel_tol=1e-6)
    assert magic_formula(0.3, 0.0, shape, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("road", [None, Terrain(lambda x, y: 0.02 * bc.sin(x) + 0.01 * y)], ids=["level", "hills"])
def test_power_balances(road: Any) -> None:
    rng, tyre, touched = np.random.default_rng(0), linear(road=road), 0
    for _ in range(60):
        X, V, jets = moving(rng)
        X[2, 3] = rng.uniform(0.1, 0.35)
        jets[2, 3].x = X[2, 3]
        f, n, _ = tyre(0.0, X, V, [])
        given = float(np.dot([*f, *n], V))
        touched += given != 0.0
        if road is None:
            balance = -rate(tyre.energy(0.0, jets, [])) - float(tyre.loss(0.0, X, V, []))
            assert math.isclose(given, balance, rel_tol=1e-9, abs_tol=1e-6)
    assert touched > 10


def test_released_wheel_starts_to_roll() -> None:
    """Started without spin, its speed becomes v = v0 / (1 + I / (m r^2)), as for a ball, and it rolls."""
    b = bc.Builder("wheel")
    b.body("hub", mass=1e-6)
    b.body("bob")
    b.body("wheel", mass=20.0, com=(0, 0, 0.3), inertia=(0.5, 0.9, 0.5))
    b.joint("x", "prismatic", "ground", "bob", axis=(1, 0, 0), point=(0, 0, 0.3))
    b.joint("z", "prismatic", "bob", "hub", axis=(0, 0, 1), point=(0, 0, 0.3))
    b.joint("spin", "revolute", "hub", "wheel", axis=(0, 1, 0), point=(0, 0, 0.3))
    m = b.build()
    sunk = 20.0 * 9.81 / 2e5
    run = bc.simulate(bc.system(m, elements=[linear(slow=0.05)]), 3.0, [0, -sunk, 0], [5.0, 0, 0], step=2e-4)
    R = 0.3 - sunk
    assert abs(run["x.v"][-1] / (5.0 / (1 + 0.9 / (20.0 * R * R))) - 1) < 2e-3
    assert abs(run["spin.v"][-1] * R / run["x.v"][-1] - 1) < 1e-3


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "tyre.tir"
    path.write_text(FILE + "".join(f"{k} = {x} $ of the formula\n" for k, x in C.items() if k != "FNOMIN"))
    tyre = read_tyre(path, "front", "ground", "wheel", trail=0.02)
    assert (tyre.radius, tyre.stiffness, tyre.trail, tyre["PKY2"]) == (0.31, 2.1e5, 0.02, 1.8)
    path.write_text(FILE)
    with pytest.raises(ReadError, match=r"tyre\.tir: no PCX1, PDX1"):
        read_tyre(path, "front", "ground", "wheel")
    with pytest.raises(ReadError, match="No such file"):
        read_tyre(tmp_path / "none.tir", "front", "ground", "wheel")
    with pytest.raises(InputError, match="coefficients has no FNOMIN"):
        MagicTyre("m", "a", "b", 0.3)
    with pytest.raises(InputError, match="radius"):
        LinearTyre("m", "a", "b", 0.0)
