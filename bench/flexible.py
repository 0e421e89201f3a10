"""`python -m bench flexible`: a slider-crank with a rod of eight modes, against Exudyn with the same reduced model; and
a thousand of it at once, with other masses and speeds.

Both programs take the same steps; Exudyn's are those of its own integrator, at its own tolerance. That both are the
same motion is in tests/peers/test_exudyn.py, to 1e-6 m.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import bellcrank as bc
from bench import exudyn_rod
from bench.row import Row
from bench.simulation import fastest

STEP, SECONDS, VARIANTS = 1e-5, 0.05, 1000
THEIR_SECONDS = 0.02


def rows() -> Iterator[Row]:
    per_step = 1e6 * STEP / SECONDS
    m = exudyn_rod.ours()
    q, v = exudyn_rod.start(m)
    s = bc.Simulator(m, "rk4")

    def one() -> float:
        return per_step * fastest(lambda: s.run(SECONDS, q0=q, v0=v, step=STEP, every=0.01))

    first = one()
    theirs = min(exudyn_rod.exudyn_run(THEIR_SECONDS, STEP, 0.01).seconds for _ in range(3)) * 1e6
    yield Row("one state, slider-crank, rod of 8 modes, step, Exudyn", min(first, one()), theirs, "us", 20)
    yield Row(
        f"the same, {VARIANTS} variants in lanes, a step of one", per_step * in_lanes() / VARIANTS, first, "us", None
    )


def variants(target: str = "cpu", dtype: str = "float64") -> Any:
    """A run of all of them: (seconds) -> a Record of their ends."""
    m = exudyn_rod.ours(bc.parameter("slider.mass", exudyn_rod.SLIDER, "kg"))
    q, v = exudyn_rod.start(m)
    speeds = np.linspace(0.5, 1.5, VARIANTS)[:, None] * v
    masses = {"slider.mass": np.linspace(0.1, 1.0, VARIANTS)}
    s = bc.Simulator(m, "rk4", form="projected", **({} if target == "cpu" else {"target": target, "dtype": dtype}))
    return lambda seconds: s.run(seconds, q0=q, v0=speeds, parameters=masses, step=STEP, keep="final")


def in_lanes() -> float:
    run = variants()
    return fastest(lambda: run(SECONDS / 10)) * 10
