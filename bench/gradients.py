"""Part of `python -m bench derivatives`: the gradient of a run of 1000 steps.

The gradient is with respect to 1000 inputs, the start and all other free quantities. It is compared with the run itself
(one row of it kept for each step, and only its end).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bellcrank as bc
from bench.row import Row, robot

STEPS, STEP, RUNS = 1000, 1e-3, 256
ROUNDS = 7  # in turn, so that a disturbance affects both


def rows() -> Iterator[Row]:
    for name in ("ur5", "panda"):
        m = robot(name)

        def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
            return [u["torque"] - w for w in v]

        plant = bc.system(m, control=control, inputs=["torque"])
        s, final = bc.Simulator(plant), f"{m.columns[0][-1]}.q"
        adjoint = bc.Adjoint(plant, lambda t, q, v, x, u: u["torque"] ** 2, final)
        table = np.random.default_rng(0).normal(size=STEPS)
        given: dict[str, Any] = {"inputs": {"torque": table}, "input_step": STEP, "step": STEP}
        for title, start in (("one run", m.random(0)[0]), (f"batch of {RUNS}", m.random(0, RUNS)[0])):
            calls = (
                lambda start=start, given=given, adjoint=adjoint: adjoint.run(STEPS * STEP, start, **given),
                lambda start=start, given=given, s=s: s.run(STEPS * STEP, start, **given),
                lambda start=start, given=given, s=s: s.run(STEPS * STEP, start, keep="final", **given),
            )
            gradient, run, end = in_turn(*calls)
            work = f"gradient of 1000 steps with 1000 inputs, {name}, {title}"
            yield Row(f"{work}, in runs", gradient / run, None, "x", 8.0, 4.0)
            yield Row(f"{work}, in runs that keep their end", gradient / end, None, "x", 8.0, 4.0)


def in_turn(*calls: Callable[[], Any]) -> list[float]:
    """Return the best CPU time of each call, timed in turns."""
    for call in calls:
        call()
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            began = time.thread_time()
            call()
            best[k] = min(best[k], time.thread_time() - began)
    return best
