"""Measure a step of a simulation and compare it with the prediction."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bellcrank.cli.timing import REPEATS, ROWS, SECONDS
from bellcrank.model import Mechanism
from bellcrank.sim.simulator import Simulator

STEP = 1e-7  # s, of the steps that are timed


@dataclass(frozen=True)
class StepTiming:
    """Predicted and measured time of a step of a simulation, in seconds."""

    integrator: str
    predicted: float  # before anything was compiled
    one: float  # of a single run
    batch: float  # of each run of a batch, one thread


def measure_step(mechanism: Mechanism, integrator: str, rows: int = ROWS) -> StepTiming:
    """Predict and measure a step without recording: two runs, one of them longer by a known number of steps.

    Steps are so short that nothing moves far: what is measured is the work, wherever the mechanism would go.
    """
    made = Simulator(mechanism, integrator)
    predicted = made.predicted

    def spent(steps: int, batch: int | None) -> float:
        began = time.perf_counter()
        seconds = steps * STEP
        made.run(seconds, step=STEP, every=seconds, batch=batch, threads=1)
        return time.perf_counter() - began

    def measured(batch: int | None, guess: float) -> float:
        runs = batch or 1
        steps = max(2, int(SECONDS / (guess * runs)))
        spent(steps, batch)  # compiles
        short, long = (min(spent(n, batch) for _ in range(REPEATS)) for n in (steps, 3 * steps))
        return (long - short) / (2 * steps * runs)

    return StepTiming(integrator, predicted.one, measured(None, predicted.one), measured(rows, predicted.batch))
