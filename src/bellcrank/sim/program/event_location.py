"""Location of events inside a step, and continuation of the run: the `locate` graph of programs with events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bellcrank.graph.program import EVENT, FINISHED, NEVER_TIME, TOO_MANY
from bellcrank.integrate import interpolate
from bellcrank.integrate.problem import select
from bellcrank.scalar import Scalar, fabs, minimum, where
from bellcrank.sim.program.events import crossing_flag, state_after_switch, zero_location
from bellcrank.sim.program.run_state import RunState
from bellcrank.sim.program.step_check import EVENTS

if TYPE_CHECKING:
    from bellcrank.sim.program.adaptive_steps import AdaptiveSteps

SIMULTANEOUS_STEPS = 1e-9  # part of a step: events closer than this are simultaneous


def located_events(run: AdaptiveSteps, old: RunState, u: Any) -> RunState:
    """Return the new state after a step in which functions of events crossed zero.

    Parameters
    ----------
    run
        The program that watches events.
    old
        State after the step.
    u
        Inputs.
    """
    system = run.dynamics.system
    dense, t0, h0 = run.dense(old), old.t_old, old.h_old
    hit = old.hit > EVENTS - 0.5

    def event(k: int, s: Scalar) -> Scalar:
        """Return the function of event k at the share s of the step."""
        y = interpolate(dense, s)
        return run.event_values(t0 + s * h0, y, u)[k]

    places: list[Scalar] = []
    for k, e in enumerate(run.events):
        a, b = old.g_old[k], old.g[k]
        is_crossed = where(hit, crossing_flag(e, a, b), 0.0) > 0.0
        zero = zero_location(partial(event, k), where(is_crossed, a, -1.0), where(is_crossed, b, 1.0))
        places.append(where(is_crossed, zero, 2.0))
    end: Scalar = 2.0  # where in the step the first event lies that interrupts it
    for place, e in zip(places, run.events, strict=True):
        if e.action != "record":
            end = minimum(end, place)
    halted = end < 1.5
    if not run.adaptive:  # the rest of a step must be long enough for a step of its own
        end = where(fabs(end - 1.0) < SIMULTANEOUS_STEPS, 1.0, end)
    t_end = where(end < 1.0, t0 + end * h0, old.t)
    y_end = run.dynamics.constrained_state(interpolate(dense, where(halted, end, 1.0)))
    together = [fabs(place - end) < SIMULTANEOUS_STEPS for place in places]
    new: dict[str, Any] = {}
    new["pending"] = [
        where(x < 1.5, where(x < end + SIMULTANEOUS_STEPS, t0 + minimum(x, end) * h0, NEVER_TIME), p)
        for x, p in zip(places if run.rows else [], old.pending, strict=True)
    ]
    y_new = y_end
    stop_event: Scalar = 0.0  # the event that stops the run
    for k, e in enumerate(run.events):
        if e.action == "stop":
            stop_event = where(together[k], k + 1.0, stop_event)
        elif e.action == "switch":
            y_new = select(
                together[k], run.dynamics.constrained_state(state_after_switch(system, e, t_end, y_new, u)), y_new
            )
    stops = stop_event > 0.0
    h_next, n, ended = old.h, old.n, t_end >= old.end
    if not run.adaptive:  # the rest of the step, and after it whole ones again
        h_next = where(end < 1.0, old.t - t_end, old.step)
        n, ended = select(end < 1.0, n.decremented(), n), t_end >= old.end - 1e-9 * old.step
    g_new = run.event_values(t_end, y_new, u)
    # The functions of located events are zero here except for rounding.
    g_new = [where(same, 0.0, g) for same, g in zip(together, g_new, strict=True)]
    going = where(stops, 0.0, where(ended, 0.0, 1.0))
    status = where(stops, float(EVENT), where(ended, float(FINISHED), 0.0))
    after = {
        **step_limit_status(going, status, old.tried, old.most),
        "t": t_end,
        "y": y_new,
        "g": g_new,
        "which": stop_event,
        "n": n,
        "h": h_next,
        "end": where(stops, t_end, old.end),
        "memory": run.initial_memory(run.problem(u, h_next), t_end, y_new, h_next),
    }
    if run.nu:  # the step was to end with new inputs, but did not get there
        after["input"] = where(end < 1.0, old.input_old, old.input)
    if run.restarts_memory:  # the memory above is of the inputs in u
        after["fresh"] = where(end < 1.0, 0.0, old.fresh)
    new |= old.selected(halted, after)
    seen = run.summarised(old.summary, t0, dense[0], u, (t_end, select(halted, y_end, old.y)))
    new["summary"] = run.summarised(seen, t_end, new["y"], u)  # note the states before and after a switch
    hit_fields = old.selected(hit, new)
    checked = run.check.after_repetition(old.fields, h0, u) if run.check else {}
    if run.check:  # the check must not repeat a step that an event cut short
        interrupted = run.check.after_event(old.fields, hit_fields["y"])
        ended = where(hit, where(halted, 1.0, 0.0), 0.0) > 0.0
        checked = {key: select(ended, interrupted.get(key, old.fields[key]), x) for key, x in checked.items()}
        checked["y_old"] = select(ended, interrupted["y_old"], old.check["y_old"])
    return run.with_due_flag(old.changed(hit_fields | checked | {"hit": 0.0}))


def step_limit_status(live: Scalar, status: Scalar, tried: Scalar, most: Scalar) -> dict[str, Scalar]:
    """Return the fields that end a run if it has used up all its steps.

    Parameters
    ----------
    live
        1 if the run would go on, else 0.
    status
        Status of the run.
    tried
        Number of steps tried.
    most
        Largest number of steps.
    """
    out = where(live > 0.0, where(tried >= most, 1.0, 0.0), 0.0) > 0.0
    return {"live": where(out, 0.0, live), "status": where(out, float(TOO_MANY), status)}
