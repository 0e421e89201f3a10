"""Gradients of runs on the GPU by the discrete adjoint, against the runs themselves: 1000 steps, 1000 inputs each."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import bellcrank as bc
from bench.gpu.mechanisms import robot
from bench.gradients import STEP, STEPS

RUNS = 2**14


def table() -> None:
    print(
        f"{'gradient of 1000 steps':28}{'runs':>8}{'run, s':>10}{'gradient, s':>13}{'ratio':>8}{'must':>6}{'error':>10}"
    )
    for name in ("ur5", "panda"):
        m = robot(name)

        def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
            return [u["torque"] - w for w in v]

        plant = bc.system(m, control=control, inputs=["torque"])
        final = f"{m.columns[0][-1]}.q"
        s, adjoint = bc.Simulator(plant), bc.Adjoint(plant, lambda t, q, v, x, u: u["torque"] ** 2, final)
        given: dict[str, Any] = {"inputs": {"torque": np.random.default_rng(0).normal(size=STEPS)}, "input_step": STEP}
        given |= {"step": STEP}
        start = m.random(0, RUNS)[0]
        gradient = _best(lambda a=adjoint, x=start, g=given: a.run(STEPS * STEP, x, target="cuda", **g))
        run = _best(
            lambda s=s, x=start, g=given: s.run(STEPS * STEP, x, target="cuda", keep="final", progress=False, **g)
        )
        got = adjoint.run(STEPS * STEP, start[:4], target="cuda", **given).q0
        want = adjoint.run(STEPS * STEP, start[:4], **given).q0
        error = float(np.abs(np.asarray(got) - np.asarray(want)).max() / np.abs(np.asarray(want)).max())
        print(
            f"{name:28}{RUNS:>8}{run:>10.3g}{gradient:>13.3g}{gradient / run:>8.2f}{'8':>6}{error:>10.1e}", flush=True
        )


def _best(work: Any) -> float:
    """Return seconds of the best of three whole calls, after a first one."""
    work()
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best
