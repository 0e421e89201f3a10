"""Programs of runs: their state, what fixed and adaptive steps share, and the program of fixed steps without events.

A Program keeps its state as a vector; `RunState` is how its graphs see it: every field with its kind, its value before
the first tick, and its meaning. A program has the fields that it needs, in its own order, and the others are None.

A tick is a sequence of functions of the state before it, in physical order: the step of the integrator with its end
projected onto the constraints (`step_taken`), the summary (`summarised`), the end of the run, the next line of inputs
and the clocks of samples, and the check of the step. Samples that are due are taken between two ticks (`renewed`).
adaptive_steps.py adds the error estimate, events and rows between the ends of steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from bellcrank.graph import Graph, Layout, Program
from bellcrank.graph.layout import Counter, CounterWords, Width, list_width, split_words
from bellcrank.graph.program import FINISHED, NEVER_TIME, NOT_CLOSED, NOT_FINITE, STATE_LIMIT
from bellcrank.integrate import Integrator, Problem, Step
from bellcrank.integrate.problem import State, select
from bellcrank.scalar import Scalar, fabs, maximum, where
from bellcrank.sim.program.step_check import StepCheck
from bellcrank.sim.program.summary import EMPTY_SUMMARY, Summary, SummaryGraph
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.system.sampling import any_due, clocks, first_phases, next_phases, sampled_state

# ruff: noqa: RUF009  # the calls in the class return dataclass fields


def _scalar(meaning: str, initial: float = 0.0) -> Any:
    return field(default=None, metadata={"kind": 1, "initial": initial, "meaning": meaning})


def _list(meaning: str) -> Any:
    return field(default=None, metadata={"kind": list_width, "initial": 0.0, "meaning": meaning})


def _counter(meaning: str, initial: float = 0.0) -> Any:
    return field(default=None, metadata={"kind": Counter, "initial": initial, "meaning": meaning})


@dataclass(frozen=True, eq=False, kw_only=True)
class RunState:
    """Fields of the state of a run. Initial values are those of a run without end; times are in seconds."""

    t: Scalar = _scalar("time")
    y: State = _list("state of the system, its integrals and sensitivities")
    live: Scalar = _scalar("1 while the run continues", 1.0)
    due: Scalar = _scalar("1 if a row must be written before the next tick")
    hit: Scalar = _scalar("positive if `locate` must be called after this tick")
    status: Scalar = _scalar("reason why the run has ended, or 0 (graph/program.py)")
    # steps
    n: CounterWords = _counter("steps since the start")
    last: CounterWords = _counter("steps of the whole run", NEVER_TIME)
    stride: CounterWords = _counter("steps between two rows", 1.0)
    next: Any = _counter("step of the next row; with adaptive steps, number of its grid point", NEVER_TIME)
    grid: CounterWords = _counter("passed points of a grid with spacing `step`, for steppers and exports")
    begin: Scalar = _scalar("time of the start")
    end: Scalar = _scalar("time of the end")
    h: Scalar = _scalar("length of the next step")
    step: Scalar = _scalar("length of the fixed steps, which an event may shorten")
    every: Scalar = _scalar("time between two rows")
    memory: State = _list("memory of the integrator")
    # inputs and sampled controllers
    input: Scalar = _scalar("valid line of the table of inputs")
    input_old: Scalar = _scalar("line that was valid during the last step")
    input_last: Scalar = _scalar("last line")
    input_step: Scalar = _scalar("time that a line holds")
    input_steps: Scalar = _scalar("steps that a line holds", NEVER_TIME)
    held: Scalar = _scalar("steps since the line began")
    fresh: Scalar = _scalar("1 if `renew` must be called before the next tick")
    phases: State = _list("steps since the last tick of each clock of samples (system/sampling.py)")
    # error control
    tried: Scalar = _scalar("tried steps")
    most: Scalar = _scalar("largest number of tried steps")
    rtol: Scalar = _scalar("relative tolerance")
    atol: Scalar = _scalar("absolute tolerance")
    # the last step, for rows and events in it
    t_old: Scalar = _scalar("its begin")
    h_old: Scalar = _scalar("its length", 1.0)
    dense: State = _list("coefficients of its polynomial")
    g_old: State = _list("event functions at its begin")
    g: State = _list("event functions at its end")
    pending: State = _list("time of a row that is due for each event, or NEVER_TIME")
    which: Scalar = _scalar("number of the event that ended the run, from 1")
    # closed loops
    open: Scalar = _scalar("largest gap of loops so far")
    bound: Scalar = _scalar("largest element of E that the coordinate partition allows", NEVER_TIME)
    noise: Scalar = _scalar("size of rounding errors")
    # results
    summary: State = _list("cells of the summaries")
    check: Mapping[str, Any] = field(default_factory=dict)  # fields of the step check, by name

    @staticmethod
    def read(places: Layout, s: Any) -> RunState:
        """Return the state from a vector `s` with the layout `places`."""
        return RunState().changed(places.read(s))

    @property
    def fields(self) -> dict[str, Any]:
        """The existing fields by name, those of the step check among them."""
        own = {name: x for name, x in vars(self).items() if x is not None and name != "check"}
        return {**own, **self.check}

    def changed(self, new: Mapping[str, Any]) -> RunState:
        """Return the state with the fields in `new` changed."""
        own = {name: x for name, x in new.items() if name in DECLARED}
        checks = {name: x for name, x in new.items() if name not in DECLARED}
        return replace(self, **own, check={**self.check, **checks})

    def selected(self, condition: Scalar, new: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields in `new` where the `condition` holds, else those of this state."""
        old = self.fields
        return {name: select(condition, x, old[name]) for name, x in new.items()}


DECLARED = {f.name: f.metadata for f in fields(RunState) if f.metadata}


def run_layout(names: Iterable[str], dtype: str, widths: Mapping[str, Width], more: Mapping[str, Width]) -> Layout:
    """Return the layout of a program's state.

    Parameters
    ----------
    names
        Names of its fields, in order.
    dtype
        Floating-point type of the compiled code, which decides the number of words of a counter.
    widths
        Widths of the lists, by name; those of other fields are declared.
    more
        Further fields, with their widths.
    """
    counter = Counter.for_dtype(dtype)
    declared = {name: counter if row["kind"] is Counter else 1 for name, row in DECLARED.items()}
    return Layout({**{name: widths.get(name, declared[name]) for name in names}, **more})


def initial_fields(places: Layout) -> dict[str, Any]:
    """Return the fields of `places` before the first tick of a run without end, as constants of a trace."""
    values: dict[str, Any] = {}
    for name, width in places.fields.items():
        x = DECLARED[name]["initial"] if name in DECLARED else 0.0
        if isinstance(width, Counter):
            values[name] = CounterWords(split_words(x, width.words).tolist())
        else:
            values[name] = [x] * width[0] if isinstance(width, tuple) else x
    return values


EARLY_STEPS = 1e-3  # part of a step by which rounding may make a line of inputs begin early


@dataclass(frozen=True, eq=False)
class TakenStep:
    """A step of the integrator whose end is projected onto the constraints."""

    step: Step
    y: State  # at its end
    trouble: Scalar  # status with which the run ends after it, or 0
    measured: dict[str, Any]  # new values of the measured fields
    is_acceptable: Scalar  # condition: its end can be kept

    @property
    def continues(self) -> Scalar:
        """Return 1 if a run goes on after this step, else 0."""
        return 1.0 if isinstance(self.trouble, float) else where(self.trouble > 0.0, 0.0, 1.0)

    @property
    def failure(self) -> Scalar:
        """Return the status of a run if the step cannot be kept."""
        finite = isinstance(self.trouble, float)
        return float(NOT_FINITE) if finite else where(self.trouble > 0.0, self.trouble, float(NOT_FINITE))


class RunProgram(ABC):
    """Graphs of a run, each a function from a RunState and the inputs to the next RunState.

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
        Floating-point type of the compiled code.
    check
        Check of the steps.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        integrator: Integrator,
        summary: Summary = EMPTY_SUMMARY,
        rows: bool = True,
        dtype: str = "float64",
        check: StepCheck | None = None,
    ) -> None:
        self.dynamics, self.integrator, self.rows, self.dtype, self.check = dynamics, integrator, rows, dtype, check
        self.summary_graph = SummaryGraph(summary, dynamics) if summary.cells else None
        self.nu, self.memory_size = len(dynamics.system.inputs), integrator.memory(dynamics.problem())
        self.widths: dict[str, Width] = {
            "y": list_width(dynamics.size),
            "memory": list_width(self.memory_size),
            "summary": list_width(len(summary.cells)),
            "phases": list_width(len(clocks(dynamics.system))),
        }

    @property
    @abstractmethod
    def field_names(self) -> list[str]:
        """Names of the fields of the state, in order, without those of the check."""

    @cached_property
    def layout(self) -> Layout:
        """Layout of the state."""
        return run_layout(self.field_names, self.dtype, self.widths, self.check.fields if self.check else {})

    @abstractmethod
    def tick(self, old: RunState, u: Any) -> RunState:
        """Return the state after a step from `old` with the inputs `u`."""

    def start(self, old: RunState, u: Any) -> RunState:
        """Return the state before the first step, completed from t, y and h of `old`, with the inputs `u`."""
        memory = self.initial_memory(self.problem(u, old.h), old.t, old.y, old.h)
        return old.changed({"memory": memory, "summary": self.summarised(old.summary, old.t, old.y, u)})

    def renewed(self, old: RunState, u: Any) -> RunState:
        """Return the state `old` with due samples taken, and the memory begun again where the inputs `u` are fresh."""
        y = old.y
        if self.dynamics.system.sampled:
            y = sampled_state(self.dynamics.system, old.t, y, u, old.phases)
            y = select(old.fresh > 0.0, y, old.y)
        memory = self.initial_memory(self.problem(u, old.h), old.t, y, old.h)
        return old.changed({"y": y, "memory": select(old.fresh > 0.0, memory, old.memory), "fresh": 0.0})

    def commanded(self, old: RunState, u: Any) -> RunState:
        """Return the state `old` before a step, with latches closed and opened by their commands with inputs `u`."""
        if not self.dynamics.system.commanded_latches:
            return old
        y, closes = self.dynamics.commanded_latches(old.t, old.y, u)
        live = old.live > 0.0
        fields: dict[str, Any] = {"y": select(live, y, old.y)}
        if self.memory_size:  # the memory is of another velocity
            memory = self.initial_memory(self.problem(u, old.h), old.t, y, old.h)
            fields["memory"] = select(where(live, closes, 0.0) > 0.0, memory, old.memory)
        return old.changed(fields)

    def problem(self, u: Any, h: Scalar) -> Problem:
        """Return the problem of the integrator with inputs `u`; `h` is the length of fixed, partly implicit steps."""
        return self.dynamics.problem(u, h)

    def initial_memory(self, problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
        """Return the integrator's memory before its first step.

        Parameters
        ----------
        problem
            The problem it solves.
        t, y, h
            Time, state and length of the step.
        """
        return list(self.integrator.begin(problem, t, y, h)) if self.memory_size else []

    def step_taken(self, problem: Problem, old: RunState, h: Scalar, memory: State) -> TakenStep:
        """Return a step from `old`, with its end projected onto the constraints.

        Parameters
        ----------
        problem
            The problem of the integrator.
        old
            State before the step.
        h, memory
            Length of the step, and the memory of the integrator.
        """
        step = self.integrator.step(problem, old.t, old.y, h, memory)
        y, trouble, measured = self.dynamics.step_end_state(step, old.fields)
        return TakenStep(step, y, trouble, measured, is_acceptable(y, trouble))

    def summarised(self, cells: State, t: Scalar, y: State, u: Any, end: tuple[Scalar, State] | None = None) -> State:
        """Return the `cells` of the summaries after the state `y` at `t`, or after a step from there to `end`.

        Parameters
        ----------
        cells
            The cells before.
        t, y, u
            Time, state and inputs.
        end
            Time and state after a step.
        """
        if self.summary_graph is None:
            return []
        if end is None:
            return self.summary_graph.updated(cells, t, y, u)
        return self.summary_graph.updated_over_step(cells, t, y, *end, u)

    def traced(self, name: str, function: Callable[[RunState, Any], RunState]) -> Graph:
        """Return the graph `name` of a `function` of the state and the inputs."""

        def graph(s: Any, u: Any = ()) -> dict[str, Any]:
            return {"s": self.layout.to_list(function(RunState.read(self.layout, s), u).fields)}

        shapes = {"s": (self.layout.size,), **self.dynamics.input_shapes}
        return self.dynamics.trace(f"{self.integrator.name}.{name}", graph, shapes)


class FixedSteps(RunProgram):
    """Program of a run with a fixed step and without events: the shortest code from step to step.

    A lane takes `last` steps of size h from the time `begin` and writes every stride-th state and the last. The state
    begins with the row: t, y, and the valid line of the inputs. With a check, `locate` repeats some of the steps.
    """

    @property
    def field_names(self) -> list[str]:
        """Names of the fields of the state, in order, without those of the check."""
        s = self.dynamics.system
        return [
            *("t", "y", *(["input"] if s.inputs else [])),
            *("live", "due", "status", "n", "last", "next", "stride", "begin", "h"),
            *(["input_steps", "input_last", "held"] if s.inputs else []),
            *(["fresh"] if s.inputs or s.sampled else []),
            *(["phases"] if s.sampled else []),
            *("memory", *self.dynamics.measured_fields, "summary"),
        ]

    def program(self) -> Program:
        """Return the program."""
        s = self.dynamics.system
        renews = bool(s.sampled) or (bool(s.inputs) and self.memory_size > 0)
        return Program(
            self.layout,
            tick=self.traced("tick", self.tick),
            start=self.traced("start", self.start),
            row=1 + self.dynamics.size + (1 if s.inputs else 0),
            renew=self.traced("renew", self.renewed) if renews else None,
            locate=self.traced("locate", self._repeated) if self.check else None,
            ports=self.dynamics.ports,
        )

    def tick(self, old: RunState, u: Any) -> RunState:
        """Return the state after a step from `old` with the inputs `u`."""
        old = self.commanded(old, u)
        n = old.n.incremented()
        step = self.step_taken(self.problem(u, old.h), old, old.h, old.memory)
        advances = where(step.is_acceptable, old.live, 0.0) > 0.0
        ended, on_grid = n.reached(old.last), n.reached(old.next)
        t = old.begin + n.value * old.h
        new = {"t": t, "y": step.y, **step.measured, "memory": step.step.memory, "n": n}
        new["next"] = select(on_grid, old.next.plus(old.stride), old.next) if self.rows else old.next
        if old.phases is not None:
            new["phases"] = next_phases(self.dynamics.system, old.phases, old.h)
        new["summary"] = self.summarised(old.summary, old.t, old.y, u, (t, step.y))
        fields = old.selected(advances, new)
        fields["live"] = where(advances, where(ended, 0.0, step.continues), 0.0)
        fields["due"] = where(advances, where(ended, 1.0, where(on_grid, 1.0, 0.0)), 0.0) if self.rows else 0.0
        outcome = where(step.is_acceptable, where(ended, float(FINISHED), step.trouble), step.failure)
        fields["status"] = where(old.live > 0.0, outcome, old.status)
        if self.nu:
            fields |= input_line_by_steps(old, advances)
        if old.phases is not None:
            due = where(advances, any_due(new["phases"]), 0.0)
            fields["fresh"] = maximum(fields.get("fresh", 0.0), due)
        fields |= self.check.after_tick(old.fields, n.value, step.y, advances) if self.check else {}
        return old.changed(fields)

    def start(self, old: RunState, u: Any) -> RunState:
        """Return the state before the first step, completed from t, y and h of `old`, with the inputs `u`."""
        fields: dict[str, Any] = {"memory": self.initial_memory(self.problem(u, old.h), old.t, old.y, old.h)}
        if self.dynamics.system.sampled:
            running = old.n.value > 0.0
            fields["fresh"] = where(running, old.fresh, 1.0)
            fields["phases"] = select(running, old.phases, first_phases(self.dynamics.system, old.h))
        return old.changed(fields | {"summary": self.summarised(old.summary, old.t, old.y, u)})

    def _repeated(self, old: RunState, u: Any) -> RunState:
        """Return the state after the last step was repeated for the check."""
        assert self.check is not None
        return old.changed(self.check.after_repetition(old.fields, old.h, u))


def is_acceptable(y: State, trouble: Scalar) -> Scalar:
    """Return whether a step ended with a state `y` and `trouble` that can be kept."""
    total: Scalar = 0.0  # finite exactly if y is finite
    for x in y:
        total = total + fabs(x)
    finite = total < STATE_LIMIT
    if isinstance(trouble, float):
        return finite
    return where(finite, where(trouble < float(NOT_CLOSED), 1.0, 0.0), 0.0) > 0.0


def input_line(line: Scalar, last: Scalar, now: Scalar, duration: Scalar, early: Scalar) -> dict[str, Scalar]:
    """Return the valid line of the table of inputs, and whether it has just begun; the last line holds for ever.

    Parameters
    ----------
    line, last
        The line that was valid, and the last one.
    now
        Present time or number of steps.
    duration
        How long a line holds, in the same unit.
    early
        How much earlier a line may begin, to allow for rounding.
    """
    k = line + 1.0
    arrived = now >= k * duration - early
    new = where(arrived, where(k <= last, k, line), line)
    return {"input": new, "fresh": where(new > line, 1.0, 0.0)}


def input_line_by_steps(old: RunState, advances: Scalar) -> dict[str, Scalar]:
    """Return the valid line of inputs, like `input_line`, from the number of steps since the line began.

    `old` is the state before a step, `advances` is 1 if it was taken. This count stays small. In single precision a
    time can be slightly before the begin of a line, and the number of all steps is not one scalar.
    """
    held = where(advances, old.held + 1.0, old.held)
    following = old.input < old.input_last
    arrived = where(following, where(held >= old.input_steps - EARLY_STEPS, 1.0, 0.0), 0.0)
    return {
        "input": where(arrived > 0.0, old.input + 1.0, old.input),
        "held": where(arrived > 0.0, held - old.input_steps, held),
        "fresh": arrived,
    }
