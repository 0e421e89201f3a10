"""Measurement of the time of a simulation step, beside the prediction."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bellcrank.cli.timing import BATCH_ROWS, REPEAT_SECONDS, REPEATS
from bellcrank.model import Mechanism
from bellcrank.sim.run.simulator import Simulator

STEP_SECONDS = 1e-7  # s, size of the timed steps


@dataclass(frozen=True)
class StepTiming:
    """Predicted and measured time of a step of a simulation, in seconds."""

    integrator: str
    predicted: float  # for a single run, before anything is compiled
    one: float  # for a single run
    batch: float  # per run of a batch, one thread


def measure_step(mechanism: Mechanism, integrator: str, rows: int = BATCH_ROWS) -> StepTiming:
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
    simulator = Simulator(mechanism, integrator)
    predicted = simulator.predicted

    def run_seconds(steps: int, batch: int | None) -> float:
        began = time.perf_counter()
        seconds = steps * STEP_SECONDS
        simulator.run(seconds, step=STEP_SECONDS, every=seconds, batch=batch, threads=1)
        return time.perf_counter() - began

    def measured(batch: int | None, guess: float) -> float:
        runs = batch or 1
        steps = max(2, int(REPEAT_SECONDS / (guess * runs)))
        run_seconds(steps, batch)  # compiles
        short, long = (min(run_seconds(n, batch) for _ in range(REPEATS)) for n in (steps, 3 * steps))
        return (long - short) / (2 * steps * runs)

    return StepTiming(integrator, predicted.one, measured(None, predicted.one), measured(rows, predicted.batch))
