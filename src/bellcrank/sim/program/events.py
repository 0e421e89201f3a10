"""Events: a function of the state crosses zero, and the run stops, records it, or continues from another state.

The graph `locate` of programs with events finds the crossing in a step, and continues the run from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bellcrank.errors import InputError, brief, unknown
from bellcrank.forces.latch import LatchAction
from bellcrank.graph import Graph
from bellcrank.graph.program import EVENT, FINISHED, NEVER_TIME, TOO_MANY
from bellcrank.integrate import interpolate
from bellcrank.integrate.problem import select
from bellcrank.quoting import name_problem
from bellcrank.scalar import Scalar, fabs, minimum, where
from bellcrank.sim.program.fixed_steps import RunState
from bellcrank.sim.program.step_check import EVENTS
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.run_arguments import (
    NamedVector,
    as_tuple,
    call_user_function,
    check_known,
    check_unique_names,
    named_scalars,
)
from bellcrank.sim.system.latch_equations import switched_states
from bellcrank.sim.system.systems import System

if TYPE_CHECKING:
    from bellcrank.sim.program.adaptive_steps import AdaptiveSteps

ACTIONS = ("stop", "record", "switch")
SEARCH_ITERATIONS = 30  # iterations of the search for the zero


@dataclass(frozen=True)
class Event:
    """Event: function(t, q, v, x, u) crosses zero, rising (direction 1), falling (-1) or either (0).

        Event("floor", lambda t, q, v, x, u: q["height"])                                  the run ends there
        Event("bounce", lambda t, q, v, x, u: q["height"], "switch", -1, lambda t, q, v, x, u: {"v": -0.8 * v})

    The functions are traced once, on symbols, and compiled; they return numbers, not booleans. Zeros are searched
    between the ends of steps. Times and states of events are in run.provenance["events"].

    Parameters
    ----------
    name : str
        Name of the event in the record.
    function : callable
        function(t, q, v, x, u) -> number.
    action : {"stop", "record", "switch"}
        "stop" ends the run there, "record" notes time and state, "switch" continues from the state that `then` returns.
    direction : {-1, 0, 1}
        The direction of the crossing that counts.
    then : callable or LatchAction, optional
        then(t, q, v, x, u) -> mapping with any of "q", "v" and "x", or bc.attach or bc.release of latches; only for
        "switch".
    """

    name: str
    function: Callable[..., Scalar]
    action: str = "stop"
    direction: int = 0
    then: Callable[..., Mapping[str, Any]] | LatchAction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"the name of an event is {self.name!r}; expected a string that names it in the record.")
        if why := name_problem(self.name):
            raise InputError(f"the event {why}.")
        if not isinstance(self.action, str) or self.action not in ACTIONS:
            raise InputError(f'event "{self.name}": {unknown("action", self.action, ACTIONS)}')
        if not isinstance(self.direction, int) or self.direction not in (-1, 0, 1):
            raise InputError(f'event "{self.name}": direction is {brief(self.direction)}; expected -1, 0 or 1.')
        if not callable(self.function):
            raise InputError(f'event "{self.name}": {self.function!r} is not a function of (t, q, v, x, u).')
        if (self.action == "switch") != (self.then is not None):
            has = "there is none" if self.then is None else f'the action is "{self.action}"'
            raise InputError(f'event "{self.name}": action "switch" and then=... go together, and {has}.')


def checked_events(events: Any, wrt: Sequence[str]) -> tuple[Event, ...]:
    """Return `events` as a tuple, checked for a run with derivatives with respect to `wrt`."""
    checked = as_tuple("events", events, "events")
    for e in checked:
        if not isinstance(e, Event):
            raise InputError(f"events: {e!r} is not an event; write bellcrank.Event(name, function, action).")
        if e.action == "switch" and wrt:
            raise InputError(
                f'event "{e.name}": sensitivities do not support the action "switch", which changes the state '
                "discontinuously."
            )
    check_unique_names("event", [e.name for e in checked])
    return checked


def crossing_graph(dynamics: Dynamics, events: Sequence[Event]) -> Graph:
    """Return the graph (t, y, u, p) -> the functions of all `events` of the system of `dynamics`."""
    s = dynamics.system

    def values(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
        given = (t, *s.split(list(y)), NamedVector("u", s.inputs, u))
        results = [(e.name, call_user_function(f'event "{e.name}"', e.function, *given)) for e in events]
        return {"g": [named_scalars(f'event "{name}"', g, [name])[0] for name, g in results]}

    return dynamics.trace("events", values, dynamics.arguments)


def switch_graph(dynamics: Dynamics, events: Sequence[Event]) -> Graph:
    """Return the graph (t, y, u, e, p) -> state after those `events` of the system of `dynamics` that are 1 in e.

    It is for callers that locate events themselves.
    """

    def after(t: Scalar, y: Any, e: Any, u: Any = ()) -> dict[str, Any]:
        state = list(y)
        for happened, event in zip(e, events, strict=True):
            if event.action == "switch":
                new = dynamics.constrained_state(state_after_switch(dynamics.system, event, t, state, u))
                state = [where(happened > 0.5, a, b) for a, b in zip(new, state, strict=True)]
        return {"y": state}

    return dynamics.trace("switch", after, {**dynamics.arguments, "e": (len(events),)})


def state_after_switch(s: System, event: Event, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
    """Return the state after one event.

    Parameters
    ----------
    s
        The system.
    event
        An event with the action "switch".
    t
        Time of the event, s.
    y
        State before the event.
    u
        Inputs.
    """
    assert event.then is not None
    q, v, x = s.split(y)
    description = f'then of event "{event.name}"'
    if isinstance(event.then, LatchAction):
        changed = switched_states(s.mechanism, s.latches, event.then, list(q), dict(zip(x.names, x, strict=True)))
        return [*q, *v, *(changed.get(name, old) for name, old in zip(x.names, x, strict=True)), *y[s.size :]]
    result = call_user_function(description, event.then, t, q, v, x, NamedVector("u", s.inputs, u))
    if not isinstance(result, Mapping):
        raise InputError(f'{description} returned {result!r}; expected a mapping with any of "q", "v" and "x".')
    out: list[Scalar] = []
    for part in (q, v, x):
        new = result.get(part.what, part)
        if isinstance(new, Mapping):
            check_known(f"{description}, {part.what}", "element", new, part.names)
            out += [new.get(name, old) for name, old in zip(part.names, part, strict=True)]
        else:
            out += named_scalars(f"{description}, {part.what}", new, part.names)
    check_known(description, "part of the state", result, ("q", "v", "x"))
    return [*out, *y[len(out) :]]


def crossing_flag(event: Event, before: Scalar, after: Scalar) -> Scalar:
    """Return 1 if the function of `event` crossed zero from `before` to `after` in the counted direction, else 0."""
    rose = where(before < 0.0, where(after >= 0.0, 1.0, 0.0), 0.0)
    fell = where(before > 0.0, where(after <= 0.0, 1.0, 0.0), 0.0)
    return rose if event.direction == 1 else fell if event.direction == -1 else rose + fell


def zero_location(g: Callable[[Scalar], Scalar], before: Scalar, after: Scalar) -> Scalar:
    """Return the zero of g in [0, 1] by false position with the Illinois rule.

    Parameters
    ----------
    g
        The function.
    before
        Its value at 0.
    after
        Its value at 1.
    """
    a: Scalar = 0.0
    b: Scalar = 1.0
    fa, fb = before, after
    for _ in range(SEARCH_ITERATIONS):
        flat = fabs(fb - fa) < 1e-300
        c = where(flat, b, (a * fb - b * fa) / where(flat, 1.0, fb - fa))
        fc = g(c)
        other = fc * fb < 0.0  # the zero lies between b and c: b becomes the far end, else the far end counts half
        a, fa = where(other, b, a), where(other, fb, 0.5 * fa)
        b, fb = c, fc
    return b


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
            switched = run.dynamics.constrained_state(state_after_switch(system, e, t_end, y_new, u))
            y_new = select(together[k], switched, y_new)
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
