"""Program of runs with adaptive steps or events, whose rows are interpolated by the dense output of each step.

A tick tries a step. If its error is too large, it is repeated with a shorter one. An accepted step leaves its
polynomial; `observe` reads rows from it at the times of the record's grid and of events, one at a time, and `locate`
finds the time of an event in the step. If only the final state is kept there are no rows to observe, and without events
the polynomial is not needed. A run that tries more than `most` steps ends there: a stiff system, or a ball that comes
to rest in infinitely many bounces, would run for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

from bellcrank.graph import Graph, Program
from bellcrank.graph.layout import CounterWords, list_width, to_counter
from bellcrank.graph.program import FINISHED, NEVER_TIME, STATE_LIMIT, TOO_SMALL, EventSpec
from bellcrank.integrate import Integrator, Problem, State, Step, interpolate
from bellcrank.integrate.problem import select, unscaled_memory
from bellcrank.scalar import Scalar, clip, exp, fabs, floor, log, maximum, minimum, sqrt, where
from bellcrank.sim.program.events import (
    Event,
    crossing_flag,
    crossing_graph,
    located_events,
    step_limit_status,
    switch_graph,
)
from bellcrank.sim.program.fixed_steps import RunProgram, RunState, TakenStep, input_line
from bellcrank.sim.program.step_check import EVENTS, StepCheck
from bellcrank.sim.program.summary import EMPTY_SUMMARY, Summary
from bellcrank.sim.program.system_graphs import Dynamics

SMALLEST_STEP_RATIO = 1e-14  # smallest step, relative to the time or to one second
GRID_ROUNDING = 1e-3  # share of a grid interval: rounding of a time that a user sets
EARLY_SHARE = 1e-6  # share of a step after which an event function that starts at zero has its sign


class StepVerdict(NamedTuple):
    """Decision about a tried step: flags, the time after it, the next step, and its ratio to this one."""

    accepted: Scalar
    is_stuck: Scalar  # 1 if it failed and no shorter one is possible
    t: Scalar
    ended: Scalar
    h: Scalar
    ratio: Scalar


class AdaptiveSteps(RunProgram):
    """Program of a run with adaptive steps, or with fixed ones between events.

    Parameters
    ----------
    dynamics, integrator, summary, rows, check
        See RunProgram.
    events
        Events to be located.
    adaptive
        Steps are chosen by the error estimate.
    grid
        Rows at multiples of `every`, else one per step.
    dtype
        Floating-point type of the compiled code.
    """

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
        super().__init__(dynamics, integrator, summary, rows, dtype, None if adaptive else check)
        self.events, self.adaptive, self.grid, self.coefficients = tuple(events), adaptive, grid, self._degree() + 1
        # The integrator's memory restarts after a change of inputs, and after a step that an event shortened.
        self.restarts_memory = self.memory_size > 0 and (self.nu > 0 or (len(self.events) > 0 and not adaptive))

        self.widths |= {
            "next": 1,
            "dense": list_width(self.coefficients * dynamics.size if rows or self.events else 0),
            **dict.fromkeys(("g_old", "g"), list_width(len(self.events))),
            "pending": list_width(len(self.events) if rows else 0),
        }

    @property
    def field_names(self) -> list[str]:
        """Names of the fields of the state, in order, without those of the check."""
        return [
            *("t", "y", *(["input"] if self.nu else []), "n"),
            *([] if self.rows else ["grid"]),
            *("live", "due", "hit", "status", "tried", "most", "h", "step", "begin", "end", "every", "next"),
            *("which", "rtol", "atol", "t_old", "h_old"),
            *(["input_step", "input_last", "input_old"] if self.nu else []),
            *(["fresh"] if self.nu or self.restarts_memory else []),
            *self.dynamics.measured_fields,
            *("memory", "dense", "g_old", "g", "pending", "summary"),
        ]

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
        return Program(
            self.layout,
            tick=self.traced("tick", self.tick),
            row=2 + self.dynamics.size + (1 if self.nu else 0),
            observe=self._observing_graph() if self.rows else None,
            locate=self.traced("locate", partial(located_events, self)) if self.events else None,
            start=self.traced("start", self.start),
            renew=self.traced("renew", self.renewed) if self.restarts_memory else None,
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

    def event_values(self, t: Scalar, y: State, u: Any) -> State:
        """Return the event functions at the time `t` in the state `y` with the inputs `u`."""
        return list(self.dynamics.call(self.crossings, t, y, u)["g"])

    def start(self, old: RunState, u: Any) -> RunState:
        """Return the state before the first step, completed from t, y and h of `old`, with the inputs `u`."""
        new = super().start(old, u)
        fields: dict[str, Any] = {"pending": [NEVER_TIME] * len(old.pending)}
        fields["dense"] = [*old.y, *[0.0] * (len(old.dense) - len(old.y))] if old.dense else []
        if old.grid is not None:
            fields["grid"] = self._passed_points(old)
        if self.events:
            fields["g"] = fields["g_old"] = self.event_values(old.t, old.y, u)
        return new.changed(fields)

    def _passed_points(self, old: RunState) -> CounterWords:
        """Return the number of passed grid points: the counter, unless the time was changed from outside."""
        words = self.layout.words("grid")
        assert words is not None
        passed = (old.t - old.begin) / old.step
        excess = passed - old.grid.value
        is_valid = where(excess > -0.5, where(excess < 1.0 - GRID_ROUNDING, 1.0, 0.0), 0.0) > 0.0
        return CounterWords(select(is_valid, old.grid, to_counter(floor(passed + GRID_ROUNDING), words)))

    # -- the parts of a tick, in their order

    def tick(self, old: RunState, u: Any) -> RunState:
        """Return the state after a tried step from `old` with the inputs `u`."""
        old = self.commanded(old, u)
        problem = self.problem(u, old.h)
        h, memory = self._limited_step(problem, old) if self.adaptive else (old.h, old.memory)
        step = self.step_taken(problem, old, h, memory)
        n = old.n.incremented()
        verdict = self._adaptive_verdict(old, step, h) if self.adaptive else self._fixed_verdict(old, step, n)
        advances = where(old.live > 0.0, verdict.accepted, 0.0) > 0.0
        new = {"t": verdict.t, "y": step.y, "n": n, "t_old": old.t, "h_old": h, **step.measured}
        new["dense"] = [x for d in step.step.dense for x in d] if old.dense else []
        new["summary"] = self.summarised(old.summary, old.t, old.y, u, (verdict.t, step.y))
        fields = old.selected(advances, new)
        fields["memory"] = self._next_memory(problem, advances, step.step.memory, memory, verdict.ratio, old.memory)
        fields["h"] = where(old.live > 0.0, verdict.h, old.h)
        fields["tried"] = where(old.live > 0.0, old.tried + 1.0, old.tried)
        fields |= self._standing(old, step, verdict, advances)
        fields |= step_limit_status(fields["live"], fields["status"], fields["tried"], old.most)
        fields["next"] = old.next if self.grid else where(advances, 0.0, old.next)
        if self.nu:
            early = 1e-9 * old.input_step
            fields |= input_line(old.input, old.input_last, fields["t"], old.input_step, early)
            fields["input_old"] = old.input
        if self.restarts_memory and not self.adaptive:
            fields["fresh"] = where(h < old.step, 1.0, fields.get("fresh", 0.0))
        fields |= self._crossed_events(old, step, h, u, advances, fields) if self.events else {}
        if self.check:
            noticed = self.check.after_tick(old.fields, n.value, step.y, advances)
            fields |= noticed | {"hit": fields.get("hit", 0.0) + noticed["hit"]}
        return self.with_due_flag(old.changed(fields))

    def _limited_step(self, problem: Problem, old: RunState) -> tuple[Scalar, State]:
        """Return the length of an adaptive step, which crosses no jump of the inputs, and the memory for it."""
        remaining = old.end - old.t
        if self.nu:
            until = (old.input + 1.0) * old.input_step - old.t
            remaining = where(old.input < old.input_last, minimum(remaining, until), remaining)
        tried = minimum(old.h, remaining)
        return tried, self.integrator.rescale(problem, old.memory, tried / old.h)

    def _adaptive_verdict(self, old: RunState, step: TakenStep, h: Scalar) -> StepVerdict:
        """Return the decision about a step of length h by its error estimate."""
        atol = old.atol + step.measured.get("noise", 0.0)
        accepted, factor = acceptance_and_ratio(self.integrator, old.y, step.step, step.is_acceptable, old.rtol, atol)
        wanted_step = h * factor
        t = where(h < old.end - old.t, old.t + h, old.end)
        is_accepted = accepted > 0.0
        shortest = SMALLEST_STEP_RATIO * maximum(fabs(old.t), 1.0)
        is_stuck = where(is_accepted, 0.0, where(wanted_step < shortest, 1.0, 0.0))
        ended = t >= old.end
        # a step that was shortened to end on time does not limit the next one
        unlimited = where(h < old.h, maximum(wanted_step, old.h), wanted_step)
        h_next = where(is_accepted, unlimited, wanted_step)
        return StepVerdict(accepted, is_stuck, t, ended, h_next, h_next / h)

    def _fixed_verdict(self, old: RunState, step: TakenStep, n: CounterWords) -> StepVerdict:
        """Return the decision about a fixed step, the n-th, whose end only has to be acceptable."""
        accepted, is_stuck = where(step.is_acceptable, 1.0, 0.0), where(step.is_acceptable, 0.0, 1.0)
        t = old.begin + n.value * old.step
        return StepVerdict(accepted, is_stuck, t, t >= old.end - 1e-9 * old.step, old.step, 1.0)

    def _next_memory(
        self, problem: Problem, advances: Scalar, new: State, tried: State, ratio: Scalar, old: State
    ) -> State:
        """Return the memory for the next step, whose length is `ratio` times that of this one."""
        if not new:
            return []
        if not self.adaptive:
            return list(select(advances, self.integrator.rescale(problem, new, ratio), old))
        accepted = self.integrator.rescale(problem, new, ratio)
        repeated = self.integrator.rescale(problem, tried, ratio)
        return list(select(advances, accepted, repeated))

    def _standing(self, old: RunState, step: TakenStep, verdict: StepVerdict, advances: Scalar) -> dict[str, Scalar]:
        """Return whether the run continues after a step, and the reason why not."""
        going = where(verdict.ended, 0.0, step.continues)
        live = where(advances, going, where(verdict.is_stuck > 0.0, 0.0, old.live))
        failure = step.failure if not self.adaptive else where(step.is_acceptable, float(TOO_SMALL), step.failure)
        ending = where(verdict.ended, float(FINISHED), step.trouble)
        outcome = where(advances, ending, where(verdict.is_stuck > 0.0, failure, 0.0))
        return {"live": live, "status": where(old.live > 0.0, outcome, old.status)}

    def _crossed_events(
        self, old: RunState, step: TakenStep, h: Scalar, u: Any, advances: Scalar, fields: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the event functions after a step, the flag `hit` if one of them crossed zero, and the summary.

        An event function that is zero before the step, like the height of a bouncing ball, takes its sign from shortly
        afterwards: it may return to zero within this step. After a hit, `locate` determines the end of the step and
        updates the summary there.
        """
        g = self.event_values(fields["t"], fields["y"], u)
        early = self.event_values(old.t + EARLY_SHARE * h, interpolate(step.step.dense, EARLY_SHARE), u)
        before = [where(fabs(a) > 0.0, a, e) for a, e in zip(old.g, early, strict=True)]
        after = select(advances, g, old.g)
        hits = [crossing_flag(e, a, b) for e, a, b in zip(self.events, before, g, strict=True)]
        happened = where(advances, sum(hits[1:], hits[0]), 0.0) > 0.0
        hit = where(happened, EVENTS, 0.0)
        summary = select(happened, old.summary, fields["summary"])
        return {"g_old": before, "g": after, "hit": hit, "summary": summary}

    # -- rows

    def _row_times(self, state: RunState) -> tuple[Scalar, Scalar]:
        """Return the time of the next grid row (NEVER_TIME if not yet due), and of any next row."""
        if self.grid:
            grid_time = minimum(state.next * state.every, state.end)
            grid_time = where(state.next < NEVER_TIME, grid_time, NEVER_TIME)
            is_due = grid_time <= state.t + 1e-9 * state.every
            regular = where(is_due, minimum(grid_time, state.t), NEVER_TIME)
        else:
            regular = where(state.next < NEVER_TIME, state.t, NEVER_TIME)
        first = regular
        for p in state.pending:
            first = minimum(first, p)
        return regular, first

    def with_due_flag(self, state: RunState) -> RunState:
        """Return the `state` with the flag `due` set if a row is due."""
        due = where(self._row_times(state)[1] < NEVER_TIME, 1.0, 0.0) if self.rows else 0.0
        return state.changed({"due": due})

    def dense(self, state: RunState) -> list[State]:
        """Return the coefficients of the polynomial of the last step, from a `state`."""
        n = self.dynamics.size
        return [state.dense[k * n : (k + 1) * n] for k in range(self.coefficients)]

    def _observing_graph(self) -> Graph:
        """Return the graph that reads one row from the last step and removes it from those that are due."""

        def observed(s: Any, u: Any = ()) -> dict[str, Any]:
            row, state = self._observed(RunState.read(self.layout, s))
            return {"row": row, "s": self.layout.to_list(state.fields)}

        shapes = {"s": (self.layout.size,), **self.dynamics.input_shapes}
        return self.dynamics.trace(f"{self.integrator.name}.observe", observed, shapes)

    def _observed(self, old: RunState) -> tuple[State, RunState]:
        regular, first = self._row_times(old)
        event: Scalar = 0.0
        for k, p in reversed([*enumerate(old.pending)]):  # simultaneous events are written in the order of the list
            event = where(p <= first, k + 1.0, event)
        on_grid = where(event > 0.0, 0.0, where(regular <= first, 1.0, 0.0)) > 0.0
        y, doubt = self.dynamics.observed_row(interpolate(self.dense(old), (first - old.t_old) / old.h_old))
        new: dict[str, Any] = {}
        new["pending"] = [where(fabs(event - (k + 1.0)) < 0.5, NEVER_TIME, p) for k, p in enumerate(old.pending)]
        after = where(first >= old.end - 1e-9 * old.every, NEVER_TIME, old.next + 1.0) if self.grid else NEVER_TIME
        due = where(old.due > 0.0, 1.0, 0.0) > 0.0
        new["next"] = where(on_grid, after, old.next)
        changed = old.selected(due, new)
        event_code = event if isinstance(doubt, float) else where(event > 0.0, event, -doubt)
        row = [first, *y, *([self._input_at(old, first)] if self.nu else []), event_code]
        return row, self.with_due_flag(old.changed(changed))

    def _input_at(self, state: RunState, t: Scalar) -> Scalar:
        """Return the line of the inputs at a time in the last step: only its end may have a new one."""
        return where(t < state.t - 1e-9 * state.h_old, state.input_old, state.input)


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
    power = integrator.error_power if result.power is None else result.power
    ratio = SAFETY_FACTOR * exp(log(maximum(err, 1e-10)) * (-1.0 / power))
    if integrator.rescale is not unscaled_memory:
        # Rescaling a memory that depends on h loses accuracy: keep the step, or double it.
        ratio = where(ratio > 1.0, where(ratio < 2.0, 1.0, 2.0), ratio)
    accepted = where(is_finite, where(err <= 1.0, 1.0, 0.0), 0.0)
    finite_ratio = where(err < STATE_LIMIT, clip(ratio, LEAST_RATIO, MOST_RATIO), LEAST_RATIO)
    return accepted, where(is_finite, finite_ratio, FAILURE_RATIO)


def _error_norm(error: State, a: State, b: State, rtol: Scalar, atol: Scalar) -> Scalar:
    """Return the root mean square of the error relative to the tolerance."""
    total: Scalar = 0.0
    for e, x, y in zip(error, a, b, strict=True):
        r = e / (atol + rtol * maximum(fabs(x), fabs(y)))
        total = total + r * r
    return sqrt(total * (1.0 / max(1, len(error))))
