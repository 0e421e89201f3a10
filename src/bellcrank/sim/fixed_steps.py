"""The loop of a run with a fixed step and nothing else to watch: the shortest way from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellcrank.graph import Graph, Layout, Program
from bellcrank.graph.counting import Counter
from bellcrank.graph.program import FINISHED, HUGE, NOT_CLOSED, NOT_FINITE, size
from bellcrank.integrate import Integrator, Problem
from bellcrank.scalar import Scalar, fabs, maximum, where
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.sampling import any_due, clocks, first_phases, next_phases, taken
from bellcrank.sim.step_check import StepCheck
from bellcrank.sim.summary import NOTHING, Summary, Watch

EARLY = 1e-3  # of a step


def layout(
    dynamics: Dynamics,
    integrator: Integrator,
    summary: Summary = NOTHING,
    dtype: str = "float64",
    check: StepCheck | None = None,
) -> Layout:
    """The row comes first: t, y, and which line of the inputs was valid.

    n counts the steps; `held` counts those since the line of inputs began; see sampling.py for phases.
    """
    s = dynamics.system
    inputs = {"input": 1} if s.inputs else {}
    signs = dict.fromkeys(("live", "due", "status"), 1)
    counters = dict.fromkeys(("n", "last", "next", "stride"), Counter.of(dtype))
    clock = {"input_steps": 1, "input_last": 1, "held": 1} if s.inputs else {}
    clock |= {"fresh": 1} if s.inputs or s.sampled else {}
    phases = {"phases": size(len(clocks(s)))} if s.sampled else {}
    memory = integrator.memory(dynamics.problem())
    return Layout(
        {
            "t": 1,
            "y": size(dynamics.size),
            **inputs,
            **signs,
            **counters,
            "begin": 1,
            "h": 1,
            **clock,
            **phases,
            "memory": size(memory),
            **dict.fromkeys(dynamics.measured, 1),
            "summary": size(len(summary.cells)),
            **(check.fields if check else {}),
        }
    )


def program(
    dynamics: Dynamics,
    integrator: Integrator,
    summary: Summary = NOTHING,
    rows: bool = True,
    dtype: str = "float64",
    check: StepCheck | None = None,
) -> Program:
    """A lane takes `last` steps of size h from the time `begin`.

    It writes every stride-th state, and the last; or none, where its state at the end is all that is asked for. With a
    check, `locate` repeats some of the steps. dtype: of the numbers it will be computed with, which decides how
    counters lie.
    """
    s, places = dynamics.system, layout(dynamics, integrator, summary, dtype, check)
    watch = Watch(summary, dynamics) if summary.cells else None

    def tick(s: Any, u: Any = ()) -> dict[str, Any]:
        old = places.read(s)
        t, h, n = old["t"], old["h"], old["n"].next()
        made = integrator.step(dynamics.problem(u, h), t, old["y"], h, old["memory"])
        y, trouble, measured = dynamics.settled(made, old)
        sound = is_sound(y, trouble)
        go = where(sound, old["live"], 0.0) > 0.0
        ended = n.reached(old["last"])
        on_grid = n.reached(old["next"])
        new = {
            "t": old["begin"] + n.value * h,
            "y": y,
            **measured,
            "memory": made.memory,
            "n": n,
            "next": chosen(on_grid, old["next"].plus(old["stride"]), old["next"]) if rows else old["next"],
        }
        if "phases" in old:
            new["phases"] = next_phases(dynamics.system, old["phases"], h)
        new["summary"] = watch.passed(old["summary"], t, old["y"], new["t"], y, u) if watch else []
        kept = {key: chosen(go, new[key], old[key]) for key in new}
        kept["live"] = where(go, where(ended, 0.0, untroubled(trouble)), 0.0)
        kept["due"] = where(go, where(ended, 1.0, where(on_grid, 1.0, 0.0)), 0.0) if rows else 0.0
        outcome = where(sound, where(ended, float(FINISHED), trouble), broken(trouble))
        kept["status"] = where(old["live"] > 0.0, outcome, old["status"])
        if "input" in old:
            kept |= fed_by_steps(old, go)
        if "phases" in new:
            kept["fresh"] = maximum(kept.get("fresh", 0.0), where(go, any_due(new["phases"]), 0.0))
        kept |= check.noticed(old, n.value, y, go) if check else {}
        return {"s": places.written(old | kept)}

    def start(s: Any, u: Any = ()) -> dict[str, Any]:
        now = places.read(s)
        now["memory"] = begun(integrator, dynamics.problem(u, now["h"]), now)
        if dynamics.system.sampled:
            running = now["n"].value > 0.0
            now["fresh"] = where(running, now["fresh"], 1.0)
            now["phases"] = chosen(running, now["phases"], first_phases(dynamics.system, now["h"]))
        now["summary"] = watch.noted(now["summary"], now["t"], now["y"], u) if watch else []
        return {"s": places.written(now)}

    inputs = {"u": (len(s.inputs),)} if s.inputs else {}
    remembers = integrator.memory(dynamics.problem())
    name, shapes = integrator.name, {"s": (places.size,), **inputs}
    return Program(
        places,
        tick=dynamics.trace(f"{name}.tick", tick, shapes),
        start=dynamics.trace(f"{name}.start", start, shapes),
        row=1 + dynamics.size + (1 if s.inputs else 0),
        renew=renewed(places, integrator, dynamics, dynamics.problem)
        if s.sampled or (s.inputs and remembers)
        else None,
        locate=located(dynamics, integrator, places, check) if check else None,
        ports=dynamics.ports,
    )


def located(dynamics: Dynamics, integrator: Integrator, places: Layout, check: StepCheck) -> Graph:
    """The graph that repeats the last step where the tick asked for that."""

    def locate(s: Any, u: Any = ()) -> dict[str, Any]:
        now = places.read(s)
        return {"s": places.written(now | check.judged(now, now["h"], u))}

    inputs = {"u": (len(dynamics.system.inputs),)} if dynamics.system.inputs else {}
    return dynamics.trace(f"{integrator.name}.locate", locate, {"s": (places.size,), **inputs})


def begun(integrator: Integrator, problem: Problem, now: dict[str, Any]) -> list[Scalar]:
    """What the integrator remembers before its first step from here."""
    return list(integrator.begin(problem, now["t"], now["y"], now["h"])) if integrator.memory(problem) else []


def untroubled(trouble: Scalar) -> Scalar:
    """1 where a run goes on."""
    return 1.0 if isinstance(trouble, float) else where(trouble > 0.0, 0.0, 1.0)


def broken(trouble: Scalar) -> Scalar:
    """The status of a step that cannot be kept."""
    return float(NOT_FINITE) if isinstance(trouble, float) else where(trouble > 0.0, trouble, float(NOT_FINITE))


def is_sound(y: list[Scalar], trouble: Scalar) -> Scalar:
    """Whether a step ended with a state that can be kept."""
    finite = size_of(y) < HUGE
    if isinstance(trouble, float):
        return finite
    return where(finite, where(trouble < float(NOT_CLOSED), 1.0, 0.0), 0.0) > 0.0


def size_of(y: list[Scalar]) -> Scalar:
    """Finite exactly if y is, and small if y is."""
    total: Scalar = 0.0
    for x in y:
        total = total + fabs(x)
    return total


def chosen(condition: Scalar, new: Any, old: Any) -> Any:
    if isinstance(new, list):
        return [where(condition, a, b) for a, b in zip(new, old, strict=True)]
    return where(condition, new, old)


def fed(old: dict[str, Any], now: Scalar, each: Scalar, early: Scalar) -> dict[str, Scalar]:
    """Which line of the table of inputs is valid now, and whether it is a new one. The last line holds for ever.

    each: how long a line holds. early: by how much a line may be before its time, for that is rounded.
    """
    k = old["input"] + 1.0
    arrived = now >= k * each - early
    line = where(arrived, where(k <= old["input_last"], k, old["input"]), old["input"])
    return {"input": line, "fresh": where(line > old["input"], 1.0, 0.0)}


def fed_by_steps(old: dict[str, Any], go: Scalar) -> dict[str, Scalar]:
    """The same in steps since the line began, which stay small; go: whether a step was taken.

    In single precision a time can be a trifle short of the line's, and the number of all steps is not one scalar.
    """
    held = where(go, old["held"] + 1.0, old["held"])
    following = old["input"] < old["input_last"]
    arrived = where(following, where(held >= old["input_steps"] - EARLY, 1.0, 0.0), 0.0)
    return {
        "input": where(arrived > 0.0, old["input"] + 1.0, old["input"]),
        "held": where(arrived > 0.0, held - old["input_steps"], held),
        "fresh": arrived,
    }


def renewed(
    places: Layout, integrator: Integrator, dynamics: Dynamics, problem: Callable[[Any, Scalar], Problem]
) -> Graph:
    """Samples that are due are taken. What the integrator remembers is of old inputs: it begins anew where they are
    fresh.
    """

    def renew(s: Any, u: Any = ()) -> dict[str, Any]:
        now, system = places.read(s), dynamics.system
        if system.sampled:
            y = taken(system, now["t"], now["y"], u, now["phases"])
            now["y"] = chosen(now["fresh"] > 0.0, y, now["y"])
        new = begun(integrator, problem(u, now["h"]), now)
        now["memory"] = chosen(now["fresh"] > 0.0, new, now["memory"])
        now["fresh"] = 0.0
        return {"s": places.written(now)}

    inputs = {"u": (len(dynamics.system.inputs),)} if dynamics.system.inputs else {}
    return dynamics.trace(f"{integrator.name}.renew", renew, {"s": (places.size,), **inputs})
