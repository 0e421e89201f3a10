"""How large the next step should be: the error of this one against what is allowed, and the order of its estimate."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.graph.program import HUGE
from bellcrank.integrate import Integrator, State, Step
from bellcrank.integrate.problem import unscaled
from bellcrank.scalar import Scalar, clip, exp, fabs, log, maximum, sqrt, where

SAFETY, LEAST, MOST = 0.9, 0.2, 5.0  # of the next step size against the last
FAILED = 0.1  # where the step left the numbers


def judged(
    integrator: Integrator, y: State, made: Step, sound: Scalar, rtol: Scalar, atol: Scalar
) -> tuple[Scalar, Scalar]:
    """1 where the step from y may be taken, else 0; and the next step size as a part of this one."""
    err = _norm(made.error or [], y, made.y, rtol, atol)
    power = 4.0 if integrator.stiff else 5.0  # of h, with which the estimate goes
    grown = SAFETY * exp(log(maximum(err, 1e-10)) * (-1.0 / power))
    if integrator.rescale is not unscaled:
        # A memory in which h appears is worse after every change: then rather none, or twice the step.
        grown = where(grown > 1.0, where(grown < 2.0, 1.0, 2.0), grown)
    fits = where(sound, where(err <= 1.0, 1.0, 0.0), 0.0)
    return fits, where(sound, where(err < HUGE, clip(grown, LEAST, MOST), LEAST), FAILED)


def _norm(error: Sequence[Scalar], a: Sequence[Scalar], b: Sequence[Scalar], rtol: Scalar, atol: Scalar) -> Scalar:
    """Root mean square of the error against what is allowed."""
    total: Scalar = 0.0
    for e, x, y in zip(error, a, b, strict=True):
        r = e / (atol + rtol * maximum(fabs(x), fabs(y)))
        total = total + r * r
    return sqrt(total * (1.0 / max(1, len(error))))
