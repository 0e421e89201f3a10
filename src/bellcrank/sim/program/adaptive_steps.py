"""Program of runs with adaptive steps or events, whose rows are interpolated by the dense output of each step.

A tick tries a step. If its error is too large, it is repeated with a shorter one. An accepted step leaves its
polynomial; `observe` reads rows from it at the times of the record's grid and of events, one at a time, and `locate`
finds the time of an event in the step. If only the final state is kept there are no rows to observe, and without events
the polynomial is not needed. A run that tries more than `most` steps ends there: a stiff system, or a ball that comes
to rest in infinitely many bounces, would run for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from bellcrank.graph import Graph, Layout, Program
from bellcrank.graph.counters import Counter, to_counter
from bellcrank.graph.program import FINISHED, NEVER_TIME, STATE_LIMIT, TOO_SMALL, EventSpec, list_width
from bellcrank.integrate import Integrator, Problem, State, Step, interpolate
from bellcrank.integrate.problem import unscaled_memory
from bellcrank.scalar import Scalar, clip, exp, fabs, floor, log, maximum, minimum, sqrt, where
from bellcrank.sim.program.event_location import located_events, step_limit_status
from bellcrank.sim.program.events import Event, crossing_flag, crossing_graph, switch_graph
from bellcrank.sim.program.fixed_steps import (
    failure_status,
    initial_memory,
    input_line,
    is_acceptable,
    is_untroubled,
    renewal_graph,
    select,
)
from bellcrank.sim.program.step_check import EVENTS, StepCheck
from bellcrank.sim.program.summary import EMPTY_SUMMARY, Summary, SummaryGraph
from bellcrank.sim.program.system_graphs import Dynamics

SMALLEST_STEP_RATIO = 1e-14  # smallest step, relative to the time or to one second
GRID_ROUNDING = 1e-3  # share of a grid interval: rounding of a time that a user sets
EARLY_SHARE = 1e-6  # share of a step after which an event function that starts at zero has its sign


class AdaptiveProgram:
    """The graphs of a run with adaptive steps or events; they share the layout of the state."""

    def __init__(
        self,
        dynamics: Dynamics,
        integrator: Integrator,
        events: Sequence[Event],
        adaptive: bool,
        grid: bool,
        summary: Summary = EMPTY_SUMMARY,
        rows: bool = True,
        dtype: str = "float64",
        check: StepCheck | None = None,
    ) -> None:
        self.check = None if adaptive else check
        self.rows, self.summary_graph = rows, SummaryGraph(summary, dynamics)
        self.dynamics, self.integrator, self.events = dynamics, integrator, tuple(events)
        self.adaptive, self.grid = adaptive, grid  # grid: rows at multiples of `every`, else one per step
        s = dynamics.system
        problem = dynamics.problem()
        self.nu, self.nd = len(s.inputs), self._degree() + 1
        single = [
            *("live", "due", "hit", "status", "tried", "most", "h", "step", "begin", "end", "every", "next"),
            *("which", "rtol", "atol", "t_old", "h_old"),
        ]
        # The integrator's memory restarts after a change of inputs, and after a step that an event shortened.
        self.restarts_memory = integrator.memory(problem) > 0 and (
            self.nu > 0 or (len(self.events) > 0 and not adaptive)
        )
        clock = {"input_step": 1, "input_last": 1, "input_old": 1} if self.nu else {}
        clock |= {"fresh": 1} if self.nu or self.restarts_memory else {}
        self.layout = Layout(
            {
                "t": 1,
                "y": list_width(dynamics.size),
                **({"input": 1} if self.nu else {}),
                "n": Counter.for_dtype(dtype),
                # Number of passed points of a grid with spacing `step`, for steppers and exports.
                **({} if rows else {"grid": Counter.for_dtype(dtype)}),
                **dict.fromkeys(single, 1),
                **clock,
                **dict.fromkeys(dynamics.measured_fields, 1),
                "memory": list_width(integrator.memory(problem)),
                "dense": list_width(self.nd * dynamics.size if rows or self.events else 0),
                "g_old": list_width(len(self.events)),
                "g": list_width(len(self.events)),
                "pending": list_width(len(self.events) if rows else 0),
                "summary": list_width(len(summary.cells)),
                **(self.check.fields if self.check else {}),
            }
        )

    def _degree(self) -> int:
        """Return the degree of the integrator's dense output, measured on a tiny system."""
        tiny = Problem(lambda t, y: [0.0 * y[0], 0.0 * y[0]], 1, 1, 0, lambda t, y: ([[0.0, 0.0]] * 2, [0.0, 0.0]))
        memory = self.integrator.begin(tiny, 0.0, [0.0, 0.0], 1.0)
        return len(self.integrator.step(tiny, 0.0, [0.0, 0.0], 1.0, memory).dense) - 1

    def problem(self, u: Any, h: Scalar) -> Problem:
        """Return the problem of the integrator with inputs `u`; `h` is the length of fixed, partly implicit steps."""
        return self.dynamics.problem(u, None if self.adaptive else h)

    # -- graphs

    def program(self) -> Program:
        """Return the Program of the run."""
        shapes = {"s": (self.layout.size,), **({"u": (self.nu,)} if self.nu else {})}

        def traced(name: str, function: Callable[..., dict[str, Any]]) -> Graph:
            return self.dynamics.trace(f"{self.integrator.name}.{name}", function, shapes)

        return Program(
            self.layout,
            tick=traced("tick", self._tick),
            row=2 + self.dynamics.size + (1 if self.nu else 0),
            observe=traced("observe", self._observe) if self.rows else None,
            locate=traced("locate", partial(located_events, self)) if self.events else None,
            start=traced("start", self._start),
            renew=renewal_graph(self.layout, self.integrator, self.dynamics, self.problem)
            if self.restarts_memory
            else None,
            ports=replace(
                self.dynamics.ports,
                events=tuple(EventSpec(e.name, e.action, e.direction) for e in self.events),
                make_indicators=lambda: self.crossings,
                make_switch=lambda: switch_graph(self.dynamics, self.events),
                adaptive=self.adaptive,
            ),
        )

    @cached_property
    def crossings(self) -> Graph:
        """Return the graph of the event functions."""
        return crossing_graph(self.dynamics, self.events)

    def _start(self, s: Any, u: Any = ()) -> dict[str, Any]:
        """Return the state before the first step, completed from t, y and h."""
        fields = self.layout.read(s)
        fields["memory"] = initial_memory(self.integrator, self.problem(u, fields["h"]), fields)
        fields["dense"] = [*fields["y"], *[0.0] * (len(fields["dense"]) - len(fields["y"]))] if fields["dense"] else []
        fields["pending"] = [NEVER_TIME] * len(fields["pending"])
        fields["summary"] = self.summary_graph.updated(fields["summary"], fields["t"], fields["y"], u)
        if "grid" in fields:
            fields["grid"] = self._passed_points(fields)
        if self.events:
            fields["g"] = fields["g_old"] = list(self.dynamics.call(self.crossings, fields["t"], fields["y"], u)["g"])
        return {"s": self.layout.to_list(fields)}

    def _passed_points(self, fields: dict[str, Any]) -> list[Scalar]:
        """Return the number of passed grid points: the counter, unless the time was changed from outside."""
        words = self.layout.words("grid")
        assert words is not None
        passed = (fields["t"] - fields["begin"]) / fields["step"]
        excess = passed - fields["grid"].value
        is_valid = where(excess > -0.5, where(excess < 1.0 - GRID_ROUNDING, 1.0, 0.0), 0.0) > 0.0
        return list(select(is_valid, fields["grid"], to_counter(floor(passed + GRID_ROUNDING), words)))

    def _tick(self, s: Any, u: Any = ()) -> dict[str, Any]:
        old = self.layout.read(s)
        t, y = old["t"], old["y"]
        h, memory = old["h"], old["memory"]
        problem = self.problem(u, h)
        if self.adaptive:
            remaining = old["end"] - t
            if self.nu:  # no step crosses a jump of the inputs
                until = (old["input"] + 1.0) * old["input_step"] - t
                remaining = where(old["input"] < old["input_last"], minimum(remaining, until), remaining)
            tried = minimum(h, remaining)
            memory = self.integrator.rescale(problem, memory, tried / h)
            h = tried
        result = self.integrator.step(problem, t, y, h, memory)
        y_new, trouble, measured = self.dynamics.step_end_state(result, old)
        is_finite = is_acceptable(y_new, trouble)
        n = old["n"].incremented()
        if self.adaptive:
            atol = old["atol"] + measured.get("noise", 0.0)
            accepted, factor = acceptance_and_ratio(self.integrator, y, result, is_finite, old["rtol"], atol)
            wanted_step = h * factor
            left = old["end"] - t
            t_new = where(h < left, t + h, old["end"])
            is_stuck = where(
                accepted > 0.0, 0.0, where(wanted_step < SMALLEST_STEP_RATIO * maximum(fabs(t), 1.0), 1.0, 0.0)
            )
            ended = t_new >= old["end"]
            # a step that was shortened to end on time does not limit the next one
            h_next = where(
                accepted > 0.0, where(h < old["h"], maximum(wanted_step, old["h"]), wanted_step), wanted_step
            )
            ratio = h_next / h
        else:
            accepted = where(is_finite, 1.0, 0.0)
            is_stuck = where(is_finite, 0.0, 1.0)
            t_new = old["begin"] + n.value * old["step"]
            ended = t_new >= old["end"] - 1e-9 * old["step"]
            h_next = old["step"]
            ratio = 1.0
        advances = where(old["live"] > 0.0, accepted, 0.0) > 0.0
        new = {"t": t_new, "y": y_new, "n": n, "t_old": t, "h_old": h, **measured}
        new["dense"] = [x for d in result.dense for x in d] if old["dense"] else []
        new["summary"] = self.summary_graph.updated_over_step(old["summary"], t, y, t_new, y_new, u)
        fields = {key: select(advances, new[key], old[key]) for key in new}
        fields["memory"] = self._next_memory(problem, advances, result.memory, memory, ratio, old["memory"])
        fields["h"] = where(old["live"] > 0.0, h_next, old["h"])
        fields["tried"] = where(old["live"] > 0.0, old["tried"] + 1.0, old["tried"])
        going = where(ended, 0.0, is_untroubled(trouble))
        fields["live"] = where(advances, going, where(is_stuck > 0.0, 0.0, old["live"]))
        failure = (
            failure_status(trouble)
            if not self.adaptive
            else where(is_finite, float(TOO_SMALL), failure_status(trouble))
        )
        outcome = where(advances, where(ended, float(FINISHED), trouble), where(is_stuck > 0.0, failure, 0.0))
        fields["status"] = where(old["live"] > 0.0, outcome, old["status"])
        fields |= step_limit_status(fields["live"], fields["status"], fields["tried"], old["most"])
        fields["next"] = old["next"] if self.grid else where(advances, 0.0, old["next"])
        if self.nu:
            fields |= input_line(old, fields["t"], old["input_step"], 1e-9 * old["input_step"]) | {
                "input_old": old["input"]
            }
        if self.restarts_memory and not self.adaptive:
            fields["fresh"] = where(h < old["step"], 1.0, fields.get("fresh", 0.0))
        if self.events:
            g = list(self.dynamics.call(self.crossings, fields["t"], fields["y"], u)["g"])
            # an event function that is zero now, like the height of a bouncing ball, takes its sign from shortly
            # afterwards: it may return to zero within this step
            early = self.dynamics.call(self.crossings, t + EARLY_SHARE * h, interpolate(result.dense, EARLY_SHARE), u)[
                "g"
            ]
            before = [where(fabs(a) > 0.0, a, e) for a, e in zip(old["g"], early, strict=True)]
            fields["g_old"], fields["g"] = before, select(advances, g, old["g"])
            hits = [crossing_flag(e, a, b) for e, a, b in zip(self.events, before, g, strict=True)]
            happened = where(advances, sum(hits[1:], hits[0]), 0.0) > 0.0
            fields["hit"] = where(happened, EVENTS, 0.0)
            # after a hit, `locate` determines the end of this step and updates the summary there
            fields["summary"] = select(happened, old["summary"], fields["summary"])
        if self.check:
            noticed = self.check.after_tick(old, n.value, y_new, advances)
            fields |= noticed | {"hit": fields.get("hit", 0.0) + noticed["hit"]}
        return self.result(old | fields)

    def _next_memory(self, problem: Any, go: Scalar, new: Any, tried: Any, ratio: Scalar, old: Any) -> list[Scalar]:
        if not new:
            return []
        if not self.adaptive:
            return list(select(go, self.integrator.rescale(problem, new, ratio), old))
        accepted = self.integrator.rescale(problem, new, ratio)
        repeated = self.integrator.rescale(problem, tried, ratio)
        return list(select(go, accepted, repeated))

    def _row_times(self, fields: dict[str, Any]) -> tuple[Scalar, Scalar, list[Scalar]]:
        """Return the time of the next grid row (NEVER_TIME if not yet due), of any next row, and of rows of events."""
        if self.grid:
            grid_time = minimum(fields["next"] * fields["every"], fields["end"])
            grid_time = where(fields["next"] < NEVER_TIME, grid_time, NEVER_TIME)
            is_due = grid_time <= fields["t"] + 1e-9 * fields["every"]
            regular = where(is_due, minimum(grid_time, fields["t"]), NEVER_TIME)
        else:
            regular = where(fields["next"] < NEVER_TIME, fields["t"], NEVER_TIME)
        pending = list(fields["pending"])
        first = regular
        for p in pending:
            first = minimum(first, p)
        return regular, first, pending

    def result(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return `fields` as the array of the state, with the flag `due` set if a row is due."""
        fields["due"] = where(self._row_times(fields)[1] < NEVER_TIME, 1.0, 0.0) if self.rows else 0.0
        return {"s": self.layout.to_list(fields)}

    def dense(self, fields: dict[str, Any]) -> list[list[Scalar]]:
        """Return the coefficients of the polynomial of the last step, from `fields`."""
        n = self.dynamics.size
        return [fields["dense"][k * n : (k + 1) * n] for k in range(self.nd)]

    def _observe(self, s: Any, u: Any = ()) -> dict[str, Any]:
        fields = self.layout.read(s)
        regular, first, pending = self._row_times(fields)
        event: Scalar = 0.0
        for k, p in reversed([*enumerate(pending)]):  # simultaneous events are written in the order of the list
            event = where(p <= first, k + 1.0, event)
        on_grid = where(event > 0.0, 0.0, where(regular <= first, 1.0, 0.0)) > 0.0
        y, doubt = self.dynamics.observed_row(
            interpolate(self.dense(fields), (first - fields["t_old"]) / fields["h_old"])
        )
        new = dict(fields)
        new["pending"] = [_without_written_event(event, k + 1.0, p) for k, p in enumerate(pending)]
        if self.grid:
            after = where(first >= fields["end"] - 1e-9 * fields["every"], NEVER_TIME, fields["next"] + 1.0)
        else:
            after = NEVER_TIME
        due = where(fields["due"] > 0.0, 1.0, 0.0) > 0.0
        new["next"] = where(on_grid, after, fields["next"])
        changed = {key: select(due, new[key], fields[key]) for key in ("pending", "next")}
        event_code = event if isinstance(doubt, float) else where(event > 0.0, event, -doubt)
        row = [first, *y, *([self._input_at(fields, first)] if self.nu else []), event_code]
        return {"row": row, **self.result(fields | changed)}

    def _input_at(self, fields: dict[str, Any], t: Scalar) -> Scalar:
        """Return the line of the inputs at a time in the last step: only its end may have a new one."""
        return where(t < fields["t"] - 1e-9 * fields["h_old"], fields["input_old"], fields["input"])


def _without_written_event(written: Scalar, event: float, pending: Scalar) -> Scalar:
    """Clear the pending time of the event whose row was written."""
    return where(fabs(written - event) < 0.5, NEVER_TIME, pending)


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
