"""Limits of fixed steps, checked before anything is compiled for them: stability, samples, and counters in float32.

Runs of a counter in float32 that exceed it are refused, because a stuck counter raises no error. Step counters of a run
have two words (graph/layout.py). Other counts are single numbers because they restart regularly: steps of a sampling
period or a delay, steps and lines of a table of inputs. They must stay below 2**24. A gradient counts its steps in one
number as well and finds samples by the time, which needs three more bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bellcrank.errors import InputError
from bellcrank.graph.layout import WORD_RANGE
from bellcrank.integrate import Integrator
from bellcrank.sim.program.damping_stability import check_damping
from bellcrank.sim.program.element_stability import check_steps
from bellcrank.sim.program.mode_stability import step_advice
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.system.sampling import check_sampling
from bellcrank.sim.system.systems import System

SPARE_BITS = 3  # for the rounding of n * h and of its quotient by h


def check_fixed_steps(
    dynamics: Dynamics, integrator: Integrator, h: float, y: Any, advice: Callable[[float], str] = step_advice
) -> None:
    """Raise an InputError or warn if fixed steps are too long for a system, or not in time with its samples.

    Parameters
    ----------
    dynamics
        Dynamics of the system.
    integrator
        Integrator.
    h
        Step, s.
    y
        Initial state.
    advice
        Function that formats the advice to use a given step.
    """
    check_sampling(dynamics.system, h, False)
    check_steps(dynamics.system, integrator, h, y, advice)
    check_damping(dynamics.system, dynamics.implicit, integrator, h, advice)


def check_counts(system: System, h: float, dtype: str, hold: float = 0.0, lines: int = 1) -> None:
    """Raise an InputError if float32 cannot hold the counts of a run.

    Parameters
    ----------
    system
        System.
    h
        Step, s.
    dtype
        Number type; "float64" needs no check.
    hold
        Seconds that a line of inputs holds.
    lines
        Number of lines in the table of inputs.
    """
    if dtype != "float32":
        return
    for what, count in _counted(system, h, hold, lines):
        if count > WORD_RANGE:
            raise _too_many(what, count, WORD_RANGE)


def check_gradient_counts(system: System, h: float, dtype: str, steps: int, hold: float, lines: int) -> None:
    """Raise an InputError if float32 cannot hold the counts of a gradient, which has no counters of two words.

    Parameters
    ----------
    system, h, dtype, hold, lines
        See `check_counts`.
    steps
        Number of steps of the run.
    """
    limit = WORD_RANGE / 2.0**SPARE_BITS if system.sampled else WORD_RANGE
    if dtype == "float32" and steps > limit:
        raise _too_many("the steps of the gradient", steps, limit)
    check_counts(system, h, dtype, hold, lines)


def _counted(system: System, h: float, hold: float, lines: int) -> Iterator[tuple[str, float]]:
    for c in system.sampled:
        yield f"steps in a period of the sampled controller {c.name}", c.every / h
        yield f"steps in the delay of the sampled controller {c.name}", c.delay / h
    if lines > 1:
        yield "steps that a line of inputs holds (input_step)", hold / h
        yield "lines of inputs", lines


def _too_many(what: str, count: float, most: float) -> InputError:
    return InputError(
        f"{what}: {count:.0f} exceed the limit of float32 here, {most:.0f}; "
        'give dtype="float64", longer steps, or fewer of them.'
    )
