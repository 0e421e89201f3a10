"""State of a run between two ticks: every field with its kind, its value before the first tick, and its meaning.

A Program keeps its state as a vector; `RunState` is how its graphs see it. A program has the fields that it needs,
in its own order, and the others are None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from bellcrank.graph import Layout
from bellcrank.graph.layout import Counter, CounterWords, Width, list_width, split_words
from bellcrank.graph.program import NEVER_TIME
from bellcrank.integrate.problem import State, select
from bellcrank.scalar import Scalar

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
