"""Program of a run with a fixed step and without events: the shortest code from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellcrank.graph import Graph, Layout, Program
from bellcrank.graph.counters import Counter
from bellcrank.graph.program import FINISHED, NOT_CLOSED, NOT_FINITE, STATE_LIMIT, list_width
from bellcrank.integrate import Integrator, Problem
from bellcrank.scalar import Scalar, fabs, maximum, where
from bellcrank.sim.program.step_check import StepCheck
from bellcrank.sim.program.summary import EMPTY_SUMMARY, Summary, SummaryGraph
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.system.sampling import any_due, clocks, first_phases, next_phases, sampled_state

EARLY_STEPS = 1e-3  # part of a step by which rounding may make a line of inputs begin early


def layout(
    dynamics: Dynamics,
    integrator: Integrator,
    summary: Summary = EMPTY_SUMMARY,
    dtype: str = "float64",
    check: StepCheck | None = None,
) -> Layout:
    """Return the layout of the program's state, beginning with the row: t, y, and the valid line of the inputs.

    n counts the steps; `held` counts those since the line of inputs began; see sampling.py for phases.

    Parameters
    ----------
    dynamics
        The dynamics.
    integrator
        The integrator.
    summary
        Summaries that the run computes.
    dtype
        Floating-point type of the compiled code, which decides the number of words of a counter.
    check
        Check of the steps.
    """
    s = dynamics.system
    inputs = {"input": 1} if s.inputs else {}
    signs = dict.fromkeys(("live", "due", "status"), 1)
    counters = dict.fromkeys(("n", "last", "next", "stride"), Counter.for_dtype(dtype))
    clock = {"input_steps": 1, "input_last": 1, "held": 1} if s.inputs else {}
    clock |= {"fresh": 1} if s.inputs or s.sampled else {}
    phases = {"phases": list_width(len(clocks(s)))} if s.sampled else {}
    memory = integrator.memory(dynamics.problem())
    return Layout(
        {
            "t": 1,
            "y": list_width(dynamics.size),
            **inputs,
            **signs,
            **counters,
            "begin": 1,
            "h": 1,
            **clock,
            **phases,
            "memory": list_width(memory),
            **dict.fromkeys(dynamics.measured_fields, 1),
            "summary": list_width(len(summary.cells)),
            **(check.fields if check else {}),
        }
    )


def program(
    dynamics: Dynamics,
    integrator: Integrator,
    summary: Summary = EMPTY_SUMMARY,
    rows: bool = True,
    dtype: str = "float64",
    check: StepCheck | None = None,
) -> Program:
    """Return the program in which a lane takes `last` steps of size h from the time `begin`.

    It writes every stride-th state and the last. With a check, `locate` repeats some of the steps.

    Parameters
    ----------
    dynamics
        The dynamics.
    integrator
        The integrator.
    summary
        Summaries that the run computes.
    rows
        Write rows; False if only the final state is needed.
    dtype
        Floating-point type of the compiled code, which decides the number of words of a counter.
    check
        Check of the steps.
    """
    s, places = dynamics.system, layout(dynamics, integrator, summary, dtype, check)
    watch = SummaryGraph(summary, dynamics) if summary.cells else None

    def tick(s: Any, u: Any = ()) -> dict[str, Any]:
        old = places.read(s)
        t, h, n = old["t"], old["h"], old["n"].incremented()
        integrated = integrator.step(dynamics.problem(u, h), t, old["y"], h, old["memory"])
        y, trouble, measured = dynamics.step_end_state(integrated, old)
        accepted = is_acceptable(y, trouble)
        go = where(accepted, old["live"], 0.0) > 0.0
        ended = n.reached(old["last"])
        on_grid = n.reached(old["next"])
        new = {
            "t": old["begin"] + n.value * h,
            "y": y,
            **measured,
            "memory": integrated.memory,
            "n": n,
            "next": select(on_grid, old["next"].plus(old["stride"]), old["next"]) if rows else old["next"],
        }
        if "phases" in old:
            new["phases"] = next_phases(dynamics.system, old["phases"], h)
        new["summary"] = watch.updated_over_step(old["summary"], t, old["y"], new["t"], y, u) if watch else []
        fields = {key: select(go, new[key], old[key]) for key in new}
        fields["live"] = where(go, where(ended, 0.0, is_untroubled(trouble)), 0.0)
        fields["due"] = where(go, where(ended, 1.0, where(on_grid, 1.0, 0.0)), 0.0) if rows else 0.0
        outcome = where(accepted, where(ended, float(FINISHED), trouble), failure_status(trouble))
        fields["status"] = where(old["live"] > 0.0, outcome, old["status"])
        if "input" in old:
            fields |= input_line_by_steps(old, go)
        if "phases" in new:
            fields["fresh"] = maximum(fields.get("fresh", 0.0), where(go, any_due(new["phases"]), 0.0))
        fields |= check.after_tick(old, n.value, y, go) if check else {}
        return {"s": places.to_list(old | fields)}

    def start(s: Any, u: Any = ()) -> dict[str, Any]:
        fields = places.read(s)
        fields["memory"] = initial_memory(integrator, dynamics.problem(u, fields["h"]), fields)
        if dynamics.system.sampled:
            running = fields["n"].value > 0.0
            fields["fresh"] = where(running, fields["fresh"], 1.0)
            fields["phases"] = select(running, fields["phases"], first_phases(dynamics.system, fields["h"]))
        fields["summary"] = watch.updated(fields["summary"], fields["t"], fields["y"], u) if watch else []
        return {"s": places.to_list(fields)}

    inputs = {"u": (len(s.inputs),)} if s.inputs else {}
    remembers = integrator.memory(dynamics.problem())
    name, shapes = integrator.name, {"s": (places.size,), **inputs}
    return Program(
        places,
        tick=dynamics.trace(f"{name}.tick", tick, shapes),
        start=dynamics.trace(f"{name}.start", start, shapes),
        row=1 + dynamics.size + (1 if s.inputs else 0),
        renew=renewal_graph(places, integrator, dynamics, dynamics.problem)
        if s.sampled or (s.inputs and remembers)
        else None,
        locate=check_graph(dynamics, integrator, places, check) if check else None,
        ports=dynamics.ports,
    )


def check_graph(dynamics: Dynamics, integrator: Integrator, places: Layout, check: StepCheck) -> Graph:
    """Return the graph that repeats the last step where the tick requested it.

    Parameters
    ----------
    dynamics
        The dynamics.
    integrator
        The integrator.
    places
        Layout of the program's state.
    check
        Check of the steps.
    """

    def locate(s: Any, u: Any = ()) -> dict[str, Any]:
        fields = places.read(s)
        return {"s": places.to_list(fields | check.after_repetition(fields, fields["h"], u))}

    inputs = {"u": (len(dynamics.system.inputs),)} if dynamics.system.inputs else {}
    return dynamics.trace(f"{integrator.name}.locate", locate, {"s": (places.size,), **inputs})


def initial_memory(integrator: Integrator, problem: Problem, fields: dict[str, Any]) -> list[Scalar]:
    """Return the integrator's memory before its first step from here.

    Parameters
    ----------
    integrator
        The integrator.
    problem
        The problem it solves.
    fields
        Fields t, y and h.
    """
    return list(integrator.begin(problem, fields["t"], fields["y"], fields["h"])) if integrator.memory(problem) else []


def is_untroubled(trouble: Scalar) -> Scalar:
    """Return 1 if a run with this `trouble` goes on, else 0."""
    return 1.0 if isinstance(trouble, float) else where(trouble > 0.0, 0.0, 1.0)


def failure_status(trouble: Scalar) -> Scalar:
    """Return the status of a step that cannot be kept, from its `trouble`."""
    return float(NOT_FINITE) if isinstance(trouble, float) else where(trouble > 0.0, trouble, float(NOT_FINITE))


def is_acceptable(y: list[Scalar], trouble: Scalar) -> Scalar:
    """Return whether a step ended with a state `y` and `trouble` that can be kept."""
    finite = absolute_sum(y) < STATE_LIMIT
    if isinstance(trouble, float):
        return finite
    return where(finite, where(trouble < float(NOT_CLOSED), 1.0, 0.0), 0.0) > 0.0


def absolute_sum(y: list[Scalar]) -> Scalar:
    """Return the sum of absolute values of `y`: finite exactly if y is finite."""
    total: Scalar = 0.0
    for x in y:
        total = total + fabs(x)
    return total


def select(condition: Scalar, new: Any, old: Any) -> Any:
    """Return `new` where the `condition` holds, else `old`, for numbers or lists."""
    if isinstance(new, list):
        return [where(condition, a, b) for a, b in zip(new, old, strict=True)]
    return where(condition, new, old)


def input_line(old: dict[str, Any], now: Scalar, duration: Scalar, early: Scalar) -> dict[str, Scalar]:
    """Return the valid line of the table of inputs, and whether it has just begun; the last line holds for ever.

    Parameters
    ----------
    old
        Fields of the program's state.
    now
        Present time or number of steps.
    duration
        How long a line holds, in the same unit.
    early
        How much earlier a line may begin, to allow for rounding.
    """
    k = old["input"] + 1.0
    arrived = now >= k * duration - early
    line = where(arrived, where(k <= old["input_last"], k, old["input"]), old["input"])
    return {"input": line, "fresh": where(line > old["input"], 1.0, 0.0)}


def input_line_by_steps(old: dict[str, Any], go: Scalar) -> dict[str, Scalar]:
    """Return the valid line of inputs, like `input_line`, from the number of steps since the line began.

    `old` are the fields of the program's state, `go` is 1 if a step was taken. This count stays small. In single
    precision a time can be slightly before the begin of a line, and the number of all steps is not one scalar.
    """
    held = where(go, old["held"] + 1.0, old["held"])
    following = old["input"] < old["input_last"]
    arrived = where(following, where(held >= old["input_steps"] - EARLY_STEPS, 1.0, 0.0), 0.0)
    return {
        "input": where(arrived > 0.0, old["input"] + 1.0, old["input"]),
        "held": where(arrived > 0.0, held - old["input_steps"], held),
        "fresh": arrived,
    }


def renewal_graph(
    places: Layout, integrator: Integrator, dynamics: Dynamics, problem: Callable[[Any, Scalar], Problem]
) -> Graph:
    """Return the graph that takes due samples and begins the integrator's memory again where inputs are fresh.

    Parameters
    ----------
    places
        Layout of the program's state.
    integrator
        The integrator.
    dynamics
        The dynamics.
    problem
        Function of inputs and step that returns the problem of the integrator.
    """

    def renew(s: Any, u: Any = ()) -> dict[str, Any]:
        fields, system = places.read(s), dynamics.system
        if system.sampled:
            y = sampled_state(system, fields["t"], fields["y"], u, fields["phases"])
            fields["y"] = select(fields["fresh"] > 0.0, y, fields["y"])
        new = initial_memory(integrator, problem(u, fields["h"]), fields)
        fields["memory"] = select(fields["fresh"] > 0.0, new, fields["memory"])
        fields["fresh"] = 0.0
        return {"s": places.to_list(fields)}

    inputs = {"u": (len(dynamics.system.inputs),)} if dynamics.system.inputs else {}
    return dynamics.trace(f"{integrator.name}.renew", renew, {"s": (places.size,), **inputs})
