"""Variants of the slider-crank whose rod has eight modes, all at once: in lanes of one core, and on the GPU."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import bellcrank as bc
from bench import exudyn_rod

STEP, SECONDS = 1e-5, 0.05
RUNS = (1000, 10_000, 100_000)
LONG = 3.0  # seconds of a call


def table() -> None:
    m = exudyn_rod.ours()
    q, v = exudyn_rod.start(m)
    s = bc.Simulator(m, "rk4")
    print(f"{'slider-crank, rod of 8 modes':40}{'runs':>10}{'steps/s':>10}{'us a step':>11}{'apart by':>10}")
    for runs in RUNS:
        Q, V = np.tile(q, (runs, 1)), np.outer(np.linspace(0.7, 1.3, runs), v)
        given: dict[str, Any] = {"q0": Q, "v0": V, "step": STEP, "keep": "final", "progress": False}
        lanes = None
        if runs == RUNS[0]:
            lanes = _row("lanes of one core", runs, lambda given=given: s.run(SECONDS, threads=1, **given))
        card = _row("GPU", runs, lambda given=given: s.run(SECONDS, target="cuda", **given), lanes)
        del card


def _row(label: str, runs: int, work: Any, other: Any = None) -> Any:
    """Print the better of two calls after the first, by wall time, and the difference of its states from another run.

    A call that takes seconds is repeated only once, so that everything is over in a minute.
    """
    began = time.perf_counter()
    got, best = work(), float("inf")
    for _ in range(2 if time.perf_counter() - began < LONG else 1):
        began = time.perf_counter()
        got = work()
        best = min(best, time.perf_counter() - began)
    steps = runs * round(SECONDS / STEP)
    apart = "" if other is None else f"{np.abs(np.asarray(got.q) - np.asarray(other.q)).max():.1e}"
    print(
        f"{label + ', whole call':40}{runs:>10}{steps / best:>10.3g}{1e6 * best / steps:>11.3g}{apart:>10}", flush=True
    )
    return got
