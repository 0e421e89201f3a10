"""Checkpointed adjoint sweeps: runs forwards and weights back through them, in CPU lanes or on the GPU.

If the notes of all steps fit into memory, one sweep writes them and one pulls the weights back. Otherwise the first
sweep notes only the first step of each stretch; then, from the last stretch to the first, the steps are computed again
with notes, and the weights are pulled back through them. All numbers are the same either way.
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
ROOM, NEAR = 2**28, 2**21  # bytes for notes: of one block, and of all runs of one sweep, which stay in the cache


@dataclass(frozen=True, eq=False)
class Task:
    """Runs that are computed together: their starts, inputs, parameters and steps."""

    y: Array  # (runs, n)
    table: Array  # of inputs, (runs, lines, nu)
    parameters: Array  # (runs, np)
    h: float
    steps: int
    input_steps: float  # steps that a line of inputs holds
    stretch: int  # steps between checkpoints

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.y)

    def shares(self, some: int) -> list[Any]:
        """Return the indices of the runs of each group, with `some` runs in every group.

        The last group is filled by repeating the last run.
        """
        if some == self.runs:
            return [slice(None)]
        runs = np.minimum(np.arange(-(-self.runs // some) * some), self.runs - 1)
        return [runs[k : k + some] for k in range(0, len(runs), some)]

    @property
    def notes(self) -> int:
        """Number of notes of a run that are in memory at once."""
        return self.steps if self.stretch >= self.steps else self.stretch + self.stretches

    @property
    def stretches(self) -> int:
        """Number of stretches between checkpoints."""
        return -(-self.steps // self.stretch)

    def part(self, runs: Any) -> Task:
        """Return the task for the selected `runs`."""
        return replace(self, y=self.y[runs], table=self.table[runs], parameters=self.parameters[runs])


@dataclass(frozen=True, eq=False)
class Weights:
    """A scalar of each run and its derivatives at the end of the run or, after the backward pass, at its start.

    After the backward pass it also has derivatives with respect to the free parameters and to each line of inputs.
    trouble is nonzero for runs whose loops could not be followed; stuck is the state in which that began.
    """

    value: Array  # (runs,)
    y: Array  # (runs, n)
    p: Array  # (runs, np)
    u: Array  # (runs, nu), or (runs, lines, nu)
    trouble: Array  # (runs,)
    stuck: Array  # (runs, n); of a tree (runs, 0)


Weigh = Callable[[Array, Array, Array], Weights]  # arguments: y at the end, inputs there, parameters


@dataclass(frozen=True, eq=False)
class Swept:
    """Result of a sweep.

    It holds the state (size, runs), the rows in the layout of the backend, and how many rows each run wrote.
    """

    state: Any
    rows: Any
    count: int


class Place(Protocol):
    """Backend of the sweeps: CPU lanes or the GPU."""

    def room(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""

    def together(self, task: Task, note: int) -> int:
        """Return how many runs of `task` are computed at once; `note` is the number of elements of one note."""

    def state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        """Return an initial state of `runs` runs of `program`, with `values` by field."""

    def given(self, task: Task) -> tuple[Any, Any]:
        """Return the table of inputs and the parameters of `task` in the layout of the backend."""

    def swept(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> Swept:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs as returned by `given`, or the rows of an earlier sweep.
        parameters
            Free parameters as returned by `given`.
        room
            Capacity, in rows of each run.
        """

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs), in the layout of the backend."""

    def rows(self, found: Swept) -> Array:
        """Return all rows of the sweep `found` on the host, the last first, (runs, count, row)."""

    def numbers(self, x: Any) -> Array:
        """Return the array `x` of the backend on the host."""


def taken_back(steps: AdjointSteps, on: Place, task: Task, weigh: Weigh) -> Weights:
    """Return the scalar of each run and the weights of its start, parameters and inputs.

    Parameters
    ----------
    steps
        Forward and backward programs.
    on
        Backend that computes them.
    task
        The runs.
    weigh
        Function that returns the weights at the end of the runs.
    """
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
    # A line that begins at the very end belongs to no step, and its weights are complete.
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
    """Return the number of steps between checkpoints.

    Parameters
    ----------
    steps
        Steps of a run.
    fit
        Notes that fit into memory.
    checkpoints
        Number of checkpoints the user wants; None for as few as the memory allows.
    """
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
    """Return the notes of the k-th stretch, computed again from the note of its first step."""
    n = k * task.stretch
    was = {key: note[steps.note.places[key]] for key in ("y", "memory", "fresh", "line")}
    was = {key: x.T for key, x in was.items()} | {"input": was["line"]}
    end = min(n + task.stretch, task.steps)
    return _forwards(steps, on, task, fed, {**was, "n": n, "next": n, "stride": 1.0, "last": end}, end - n).rows


def _by_line(task: Task, found: list[Array], line: int, last: Array | None) -> Array:
    """Join the rows of the stretches (the last stretch first); a line that no step used has weight zero."""
    runs, lines, nu = task.table.shape
    blank = np.zeros((runs, lines - sum(x.shape[1] for x in found), nu))
    whole = found[0] if len(found) == 1 and not blank.size else np.concatenate([*found[::-1], blank], axis=1)
    if last is not None:
        whole[:, line] = last
    return whole


# -- on the CPU


@dataclass(eq=False)
class Lanes:
    """CPU backend: blocks of lanes, one after the other."""

    code: Callable[[Program, int], Compiled]
    lanes: int
    threads: int = 1

    def room(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""
        return ROOM // (8 * note * self.lanes)

    def together(self, task: Task, note: int) -> int:
        """Return how many runs of `task` are computed at once; `note` is the number of elements of one note.

        These are whole blocks, so many that their notes stay in the cache, and several groups for each thread.
        """
        blocks, there = NEAR // (8 * note * task.notes * self.lanes), -(-task.runs // self.lanes)
        blocks = min(blocks, there if self.threads == 1 else there // (SHARE * self.threads))
        return max(1, blocks) * self.lanes

    def state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        """Return an initial state of `runs` runs of `program`, with `values` by field."""
        return program.layout.array(runs, values)

    def given(self, task: Task) -> tuple[Any, Any]:
        """Return the table of inputs and the parameters of `task`."""
        return task.table, task.parameters.T

    def swept(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> Swept:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs, (runs, lines, nu).
        parameters
            Free parameters, (np, runs).
        room
            Capacity, in rows of each run.
        """
        rows = empty_buffer((state.shape[1], room, program.row))
        blocks = Blocks(self.code(program, self.lanes), state, parameters, table, rows)
        while not blocks.done:
            blocks.advance()
        return Swept(blocks.state, blocks.rows, int(blocks.counts[0]))

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs)."""
        return rows[:, k].T

    def rows(self, found: Swept) -> Array:
        """Return all rows of the sweep `found`, the last first, (runs, count, row)."""
        rows: Array = found.rows[:, : found.count][:, ::-1]
        return rows

    def numbers(self, x: Any) -> Array:
        """Return `x` as an array."""
        return np.asarray(x)
