"""Step-size control: the next step from the error estimate, the tolerance, and the order of the estimate."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.graph.program import STATE_LIMIT
from bellcrank.integrate import Integrator, State, Step
from bellcrank.integrate.problem import unscaled_memory
from bellcrank.scalar import Scalar, clip, exp, fabs, log, maximum, sqrt, where

# Safety factor, and limits of the ratio of the next step to the last.
SAFETY_FACTOR, LEAST_RATIO, MOST_RATIO = 0.9, 0.2, 5.0
FAILURE_RATIO = 0.1  # ratio after a step whose result is not finite


def acceptance_and_ratio(
    integrator: Integrator, y: State, result: Step, is_finite: Scalar, rtol: Scalar, atol: Scalar
) -> tuple[Scalar, Scalar]:
    """Return 1 if a step is accepted, else 0; and the ratio of the next step size to this one.

    Parameters
    ----------
    integrator
        Integrator.
    y
        State before the step.
    result
        Result of the step, with its error estimate.
    is_finite
        Condition: the result is finite.
    rtol, atol
        Relative and absolute tolerance.
    """
    err = _error_norm(result.error or [], y, result.y, rtol, atol)
    power = 4.0 if integrator.stiff else 5.0  # of h, with which the estimate goes
    ratio = SAFETY_FACTOR * exp(log(maximum(err, 1e-10)) * (-1.0 / power))
    if integrator.rescale is not unscaled_memory:
        # Rescaling a memory that depends on h loses accuracy: keep the step, or double it.
        ratio = where(ratio > 1.0, where(ratio < 2.0, 1.0, 2.0), ratio)
    accepted = where(is_finite, where(err <= 1.0, 1.0, 0.0), 0.0)
    return accepted, where(
        is_finite, where(err < STATE_LIMIT, clip(ratio, LEAST_RATIO, MOST_RATIO), LEAST_RATIO), FAILURE_RATIO
    )


def _error_norm(
    error: Sequence[Scalar], a: Sequence[Scalar], b: Sequence[Scalar], rtol: Scalar, atol: Scalar
) -> Scalar:
    """Return the root mean square of the error relative to the tolerance."""
    total: Scalar = 0.0
    for e, x, y in zip(error, a, b, strict=True):
        r = e / (atol + rtol * maximum(fabs(x), fabs(y)))
        total = total + r * r
    return sqrt(total * (1.0 / max(1, len(error))))
