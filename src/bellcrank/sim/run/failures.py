"""Failure messages of runs: the coordinate that diverged, and the reason for very short steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph.program import NOT_FINITE
from bellcrank.sim.program.system_graphs import sensitivity_name
from bellcrank.sim.run_arguments import whole_multiple

if TYPE_CHECKING:
    from bellcrank.sim.run.record_builder import Outcome

Array = np.ndarray[Any, Any]
LONG_SPAN_STEPS = 100_000  # a proposed step has so many digits that it divides spans of so many steps
MIN_STEP_SHARE = 0.02  # a proposed step is not shorter than this part of the present one, since it is a guess
STEP_DIVISORS = sorted(2**a * 5**b for a in range(8) for b in range(4))  # numbers by which a step is divided
STIFF_STEP_RATE = 1.0  # step times fastest rate above which stability, not accuracy, limits an explicit step


def failure_message(o: Outcome, code: int, t: float, y: Array, run: int) -> str:
    """Return why a run failed, naming the coordinate whose rate is the first not finite, or else the largest.

    Parameters
    ----------
    o
        Outcome of the runs.
    code
        Status of the failed run.
    t
        Time of its last good state, s.
    y
        Its last good state.
    run
        Number of the run.
    """
    line = int(o.final_value("input")[run]) if o.system.inputs else 0
    values = {"t": t, "y": y, "u": o.inputs[run, line], "p": o.parameters[run]}
    h = float(o.final_value("h")[run])
    start = dy = np.zeros(y.shape)
    for ahead in (0.0, 0.5 * h, h):  # the state is the last good one, and the failure may lie ahead of it
        values |= {"t": t + ahead, "y": y + ahead * start}
        dy = o.dynamics.f.evaluate(**{key: values[key] for key in o.dynamics.f.inputs})["dy"]
        start = dy if ahead == 0.0 else start
        if not np.isfinite(dy).all():
            break
    bad = np.flatnonzero(~np.isfinite(dy))
    k = int(bad[0]) if len(bad) else int(np.argmax(np.abs(dy)))
    elements = o.dynamics.elements
    names = elements + [sensitivity_name(element, w) for w in o.dynamics.wrt for element in elements]
    rate = f"its rate is {dy[k]:.3g}, its value {y[k]:.3g}"
    near = _near_text(o, y, run)
    if code == NOT_FINITE:
        stiff = "at which its equations have a solution" if o.integrator.stiff else "a stiff integrator (rodas4)"
        advice = f"take a smaller step, {stiff}, or look at the control"
        return f'"{names[k]}" diverges after {t:.6g} s ({rate}){near}; {advice}'
    advice = "the tolerance may be too tight, or the motion has a jump there: describe it as an event"
    around = f'the step shrinks to nothing at {t:.6g} s around "{names[k]}" ({rate})'
    return f"{around}{near}; {advice}"


def step_limit_message(o: Outcome, t: float, y: Array, run: int) -> str:
    """Return why a run was given up after the largest number of steps.

    Parameters
    ----------
    o
        Outcome of the runs.
    t
        Time that the run reached, s.
    y
        Its state.
    run
        Number of the run.
    """
    tried, h = int(o.final_value("tried")[run]), float(o.final_value("h")[run])
    progress = f"after {tried} steps it is at {t:.6g} s of {o.settings['seconds']:g} s, and the step is {h:.2g} s"
    if o.settings.get("step") is not None:
        return (
            f"{progress}: events that change the state follow each other without end. Stop the run, or switch to rest, "
            "when they become small; or give max_steps=..."
        )
    fastest = _fastest_rate(o, t, y, run)
    near = _near_text(o, y, run)
    if not o.integrator.stiff and h * fastest > STIFF_STEP_RATE:
        return (
            f"{progress}{near}. It is stiff: its fastest time constant is {1 / fastest:.1g} s, and {o.integrator.name} "
            "must take steps as short as that, however smooth the motion is. Take integrator=rodas4, reduce the fast "
            "terms (gains, stiffness, friction, baumgarte), or give max_steps=..."
        )
    return (
        f"{progress}{near}. The tolerance may be too tight, or the motion is discontinuous there: describe jumps as "
        "events, or give max_steps=..."
    )


def _near_text(o: Outcome, y: Array, run: int) -> str:
    near = o.dynamics.closure.near_singular_text(y, o.parameters[run])
    return f"; {near}: close to a singular configuration" if near else ""


def unresolved_message(o: Outcome, element: str, run: int) -> str:
    """Return why a finished run with fixed steps is not resolved, and which step would be short enough.

    Parameters
    ----------
    o
        Outcome of the runs.
    element
        Element of the state with the largest error.
    run
        Number of the run.
    """
    step_error, tolerance, h = (float(o.final_value(name)[run]) for name in ("step_error", "resolve", "h"))
    worst_time = float(o.final_value("step_error_time")[run])
    changed = f"by {100 * step_error:.2g} % of its way" if step_error < 1.0 else "by more than its way"
    # Steps that are implicit in forces which they do not resolve are of first order with any method.
    order = o.integrator.order if o.dynamics.implicit is None else 1
    share = max((0.5 * tolerance / step_error) ** (1 / order), MIN_STEP_SHARE)
    spans = (o.settings.get(name) for name in ("seconds", "every"))  # which steps must divide
    shorter = _shorter_step(h, share, [float(x) for x in spans if isinstance(x, int | float)])
    return (
        f'the step of {h:g} s is too long: step by step, halving it changes "{element}" {changed}, most at '
        f"{worst_time:.6g} s. Take a step of {shorter} s or less, a tolerance (integrator=dopri5, or rodas4 for what "
        f"is stiff), or solver=bc.Solver(resolve=...), which allows {100 * tolerance:.2g} %, for a larger share"
    )


def _shorter_step(h: float, share: float, spans: list[float]) -> str:
    """Return the longest h/k up to the share of h with k = 2^a 5^b, written so that it divides the spans.

    A whole part of h divides all that h divides: the run, the time between rows, and the periods of samples. Such k
    keep decimal fractions short.
    """
    parts = min(p for p in STEP_DIVISORS if p * share >= 1.0 - 1e-9)
    step = h / parts
    spans = [*spans, LONG_SPAN_STEPS * step]  # periods and delays of samples, which are not known here
    for digits in range(1, 17):
        text = f"{step:.{digits}g}"
        if abs(float(text) / step - 1.0) < 1e-9 and all(_divides(float(text), span) for span in spans):
            return text
    return repr(step)


def _divides(step: float, span: float) -> bool:
    try:
        return whole_multiple("span", span, step, "step") > 0
    except InputError:
        return False


def _fastest_rate(o: Outcome, t: float, y: Array, run: int) -> float:
    """Return the largest magnitude of an eigenvalue of df/dy, 1/s, by differences; 0 if df/dy is not finite."""
    line = int(o.final_value("input")[run]) if o.system.inputs else 0
    e = 1e-7 * np.maximum(np.abs(y), 1.0)
    values = {"t": t, "u": o.inputs[run, line], "p": o.parameters[run]}
    other_inputs = {name: values[name] for name in o.dynamics.f.inputs if name != "y"}
    with np.errstate(all="ignore"):
        f = o.dynamics.f.evaluate(y=np.concatenate([[y], y + np.diag(e)]), **other_inputs)["dy"]
        J = (f[1:] - f[:1]).T / e
    return float(np.abs(np.linalg.eigvals(J)).max()) if np.isfinite(J).all() else 0.0
