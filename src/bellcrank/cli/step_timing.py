"""Measurement of the time of a simulation step, beside the prediction."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bellcrank.cli.timing import REPEATS, ROWS, SECONDS
from bellcrank.model import Mechanism
from bellcrank.sim.simulator import Simulator

STEP = 1e-7  # s, size of the timed steps


@dataclass(frozen=True)
class StepTiming:
    """Predicted and measured time of a step of a simulation, in seconds."""

    integrator: str
    predicted: float  # for a single run, before anything is compiled
    one: float  # for a single run
    batch: float  # per run of a batch, one thread


def measure_step(mechanism: Mechanism, integrator: str, rows: int = ROWS) -> StepTiming:
    """Predict and measure a step without recording, as the difference of two runs of different length.

    The steps are so short that the mechanism hardly moves, so the time does not depend on its motion.

    Parameters
    ----------
    mechanism
        Mechanism to simulate.
    integrator
        Name of the integrator.
    rows
        Runs in the batch.
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
