"""Runs forwards and weights back through them, with checkpoints, in lanes or on the GPU.

Where the notes of all steps fit the memory, one sweep takes them down and one takes the weights back. Where they do
not, the first sweep notes only where each stretch of steps begins; then stretch by stretch, from the last to the first,
the steps are done again and noted, and the weights go back through them. Every number is the same either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.graph import Program
from bellcrank.sim.adjoint_steps import AdjointSteps
from bellcrank.sim.amounts import count
from bellcrank.sim.run import SHARE
from bellcrank.sim.runner import Blocks, Compiled

Array = np.ndarray[Any, Any]
ROOM, NEAR = 2**28, 2**21  # bytes for notes: of a run, and of runs that are made together, near the processor


@dataclass(frozen=True, eq=False)
class Task:
    """Runs that are made together: from where, how far, with what."""

    y: Array  # (runs, n)
    table: Array  # of inputs, (runs, lines, nu)
    parameters: Array  # (runs, np)
    h: float
    steps: int
    input_steps: float  # how many a line of inputs holds
    stretch: int  # steps between checkpoints

    @property
    def runs(self) -> int:
        return len(self.y)

    def shares(self, some: int) -> list[Any]:
        """Which runs are made together, so many each. The last has as many: who is too many does what the last does."""
        if some == self.runs:
            return [slice(None)]
        runs = np.minimum(np.arange(-(-self.runs // some) * some), self.runs - 1)
        return [runs[k : k + some] for k in range(0, len(runs), some)]

    @property
    def notes(self) -> int:
        """How many there are of a run at once."""
        return self.steps if self.stretch >= self.steps else self.stretch + self.stretches

    @property
    def stretches(self) -> int:
        return -(-self.steps // self.stretch)

    def part(self, runs: Any) -> Task:
        """Some of the runs."""
        return replace(self, y=self.y[runs], table=self.table[runs], parameters=self.parameters[runs])


@dataclass(frozen=True, eq=False)
class Weights:
    """A scalar of each run, and how fast it changes with what the run ends with, or, when weights are back, with what
    it began with, with its free numbers and with each line of its inputs. trouble: with loops, else 0; stuck: where.
    """

    value: Array  # (runs,)
    y: Array  # (runs, n)
    p: Array  # (runs, np)
    u: Array  # (runs, nu), or (runs, lines, nu)
    trouble: Array  # (runs,)
    stuck: Array  # (runs, n); of a tree (runs, 0)


Weigh = Callable[[Array, Array, Array], Weights]  # of (y at the end, inputs there, parameters)


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep left: the state (size, runs), rows as they lie there, and how many of them each run has written."""

    state: Any
    rows: Any
    count: int


class Place(Protocol):
    """Where sweeps are made."""

    def room(self, note: int) -> int:
        """For so many notes of a run. note: elements of one."""

    def together(self, task: Task, note: int) -> int:
        """How many runs are made at once."""

    def state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        """A state to begin with."""

    def given(self, task: Task) -> tuple[Any, Any]:
        """The table of inputs and the parameters, as they lie there."""

    def swept(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> Swept:
        """Runs to their ends; table: as given, or rows of a sweep. room: for so many rows of each."""

    def row(self, rows: Any, k: int) -> Any:
        """The k-th row of all runs, (row, runs), as it lies there."""

    def rows(self, found: Swept) -> Array:
        """All rows, the last first, (runs, count, row), here."""

    def numbers(self, x: Any) -> Array:
        """What lies there, here."""


def taken_back(steps: AdjointSteps, on: Place, task: Task, weigh: Weigh) -> Weights:
    """The weights of all that runs began with. weigh: gives those of what they end with."""
    cut = task.stretch < task.steps
    begin = {"y": task.y, "fresh": 1.0, "last": task.steps, "stride": task.stretch if cut else 1.0}
    fed = on.given(task)
    notes = _forwards(steps, on, task, fed, begin, task.stretches if cut else task.steps)
    places = steps.forwards.layout.places
    y = on.numbers(notes.state[places["y"]]).T
    line, fresh = (int(on.numbers(notes.state[places[key]])[0]) if steps.nu else 0 for key in ("input", "fresh"))
    trouble, stuck = np.zeros(task.runs), np.zeros((task.runs, 0))
    if steps.loops:
        trouble, stuck = on.numbers(notes.state[places["trouble"]]), on.numbers(notes.state[places["stuck"]]).T
        y = np.where(trouble[:, None] > 0.5, np.nan, y)
    last = weigh(y, task.table[:, line], task.parameters)
    # A line that is new at the very end is no step's, and its weights are complete.
    first = {"w_y": last.y, "g_p": last.p, "sum_u": np.zeros_like(last.u) if fresh else last.u, "h": task.h}
    state, places, found = on.state(steps.backwards, task.runs, first), steps.backwards.layout.places, []
    for k in reversed(range(task.stretches)):
        table = _again(steps, on, task, fed, on.row(notes.rows, k), k) if cut else notes.rows
        count = min(task.stretch, task.steps - k * task.stretch)
        for key, value in (("live", 1.0), ("due", 0.0), ("input", count - 1.0)):
            state[places[key]] = value
        swept = on.swept(steps.backwards, state, table, fed[1], min(count, task.table.shape[1]))
        state = swept.state
        found += [on.rows(swept)] if steps.nu else []
    w, p = (on.numbers(state[places[key]]).T for key in ("w_y", "g_p"))
    return Weights(last.value, w, p, _by_line(task, found, line, last.u if fresh else None), trouble, stuck)


def stretch_of(steps: int, fit: int, checkpoints: int | None) -> int:
    """Steps from one checkpoint to the next: as many as asked for, or as many as leave room. fit: so many notes do."""
    if checkpoints is not None:
        return -(-steps // min(count("checkpoints", checkpoints), steps))
    return steps if steps <= fit else max(math.isqrt(steps), fit - steps // max(1, fit))


def _forwards(
    steps: AdjointSteps, on: Place, task: Task, fed: tuple[Any, Any], first: Mapping[str, Any], room: int
) -> Swept:
    clock = {"input_steps": task.input_steps, "input_last": task.table.shape[1] - 1.0}
    state = on.state(steps.forwards, task.runs, {"h": task.h, "live": 1.0, **clock, **first})
    return on.swept(steps.forwards, state, *fed, room)


def _again(steps: AdjointSteps, on: Place, task: Task, fed: tuple[Any, Any], note: Any, k: int) -> Any:
    """The notes of the k-th stretch, from that of its first step."""
    n = k * task.stretch
    was = {key: note[steps.note.places[key]] for key in ("y", "memory", "fresh", "line")}
    was = {key: x.T for key, x in was.items()} | {"input": was["line"]}
    end = min(n + task.stretch, task.steps)
    return _forwards(steps, on, task, fed, {**was, "n": n, "next": n, "stride": 1.0, "last": end}, end - n).rows


def _by_line(task: Task, found: list[Array], line: int, last: Array | None) -> Array:
    """Rows of the stretches, the last stretch first; a line that no step had is worth nothing."""
    runs, lines, nu = task.table.shape
    blank = np.zeros((runs, lines - sum(x.shape[1] for x in found), nu))
    whole = found[0] if len(found) == 1 and not blank.size else np.concatenate([*found[::-1], blank], axis=1)
    if last is not None:
        whole[:, line] = last
    return whole


# -- on the CPU


@dataclass(eq=False)
class Lanes:
    """Blocks of lanes, one after the other."""

    code: Callable[[Program, int], Compiled]
    lanes: int
    threads: int = 1

    def room(self, note: int) -> int:
        return ROOM // (8 * note * self.lanes)

    def together(self, task: Task, note: int) -> int:
        """Whole blocks, so many that their notes stay near the processor, and some for each thread."""
        blocks, there = NEAR // (8 * note * task.notes * self.lanes), -(-task.runs // self.lanes)
        blocks = min(blocks, there if self.threads == 1 else there // (SHARE * self.threads))
        return max(1, blocks) * self.lanes

    def state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        return program.layout.array(runs, values)

    def given(self, task: Task) -> tuple[Any, Any]:
        return task.table, task.parameters.T

    def swept(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> Swept:
        rows = empty_buffer((state.shape[1], room, program.row))
        blocks = Blocks(self.code(program, self.lanes), state, parameters, table, rows)
        while not blocks.done:
            blocks.advance()
        return Swept(blocks.state, blocks.rows, int(blocks.counts[0]))

    def row(self, rows: Any, k: int) -> Any:
        return rows[:, k].T

    def rows(self, found: Swept) -> Array:
        rows: Array = found.rows[:, : found.count][:, ::-1]
        return rows

    def numbers(self, x: Any) -> Array:
        return np.asarray(x)
