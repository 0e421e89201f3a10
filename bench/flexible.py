"""`python -m bench flexible`: a slider-crank with a rod of eight modes, against Exudyn with the same reduced model.

Both programs take the same steps; Exudyn uses its own integrator and tolerance. tests/peers/test_exudyn.py checks that
both give the same motion, to 1e-6 m. A thousand variants run at once in lanes, on one core.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import bellcrank as bc
from bench import exudyn_rod
from bench.row import Row
from bench.simulation import fastest

STEP, SECONDS = 1e-5, 0.05
THEIR_SECONDS = 0.02
MANY, SHORT = 1000, 0.01


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
    speeds = np.linspace(0.7, 1.3, MANY)
    Q, V = np.tile(q, (MANY, 1)), np.outer(speeds, v)

    def many() -> float:
        took = fastest(lambda: s.run(SHORT, q0=Q, v0=V, step=STEP, every=0.01, threads=1))
        return 1e6 * STEP / SHORT / MANY * took

    yield Row(f"{MANY} states, the same with {MANY} speeds, step of each", many(), theirs, "us", 20)
