"""Checkpointed adjoint sweeps: runs forwards and weights back through them, in CPU lanes or on the GPU.

If the notes of all steps fit into memory, one sweep writes them and one pulls the weights back. Otherwise the first
sweep notes only the first step of each stretch; then, from the last stretch to the first, the steps are computed again
with notes, and the weights are pulled back through them. All numbers are the same either way.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import cupy, free_bytes, to_numpy
from bellcrank.graph import Program
from bellcrank.sim.gradient.adjoint_steps import AdjointSteps
from bellcrank.sim.run.batch_execution import PARTS_PER_THREAD
from bellcrank.sim.run.gpu_runs import MEMORY_SHARE
from bellcrank.sim.run.lane_blocks import LaneBlocks
from bellcrank.sim.run_arguments import count

Array = np.ndarray[Any, Any]
# bytes for notes: of one block, and of all runs of one sweep, which stay in the cache.
NOTE_BYTES, CACHE_BYTES = 2**28, 2**21


@dataclass(frozen=True, eq=False)
class AdjointTask:
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

    def run_groups(self, group_size: int) -> list[Any]:
        """Return the indices of the runs of each group, with `group_size` runs in every group.

        The last group is filled by repeating the last run.
        """
        if group_size == self.runs:
            return [slice(None)]
        runs = np.minimum(np.arange(-(-self.runs // group_size) * group_size), self.runs - 1)
        return [runs[k : k + group_size] for k in range(0, len(runs), group_size)]

    @property
    def note_count(self) -> int:
        """Number of notes of a run that are in memory at once."""
        return self.steps if self.stretch >= self.steps else self.stretch + self.stretch_count

    @property
    def stretch_count(self) -> int:
        """Number of stretches between checkpoints."""
        return -(-self.steps // self.stretch)

    def subset(self, runs: Any) -> AdjointTask:
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


FinalWeights = Callable[[Array, Array, Array], Weights]  # arguments: y at the end, inputs there, parameters


@dataclass(frozen=True, eq=False)
class SweepResult:
    """Result of a sweep.

    It holds the state (size, runs), the rows in the layout of the backend, and how many rows each run wrote.
    """

    state: Any
    rows: Any
    count: int


@dataclass(eq=False)
class SweepBackend(ABC):
    """Backend of the sweeps: CPU lanes or the GPU. `code` compiles a program; rows have the layout of the backend."""

    code: Callable[[Program], Any]

    @property
    def array_options(self) -> tuple[Any, str]:
        """Module and type of the arrays of the backend."""
        return np, "float64"

    def initial_state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        """Return an initial state of `runs` runs of `program`, with `values` by field."""
        return program.layout.array(runs, values, *self.array_options)

    def to_host(self, x: Any) -> Array:
        """Return the array `x` of the backend as a float64 array on the host."""
        return np.asarray(x, float)

    @abstractmethod
    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""

    @abstractmethod
    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` are computed at once; `note` is the number of elements of one note."""

    @abstractmethod
    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the table of inputs and the parameters of `task` in the layout of the backend."""

    @abstractmethod
    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs as returned by `transferred_inputs`, or the rows of an earlier sweep.
        parameters
            Free parameters as returned by `transferred_inputs`.
        room
            Capacity, in rows of each run.
        """

    @abstractmethod
    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs), in the layout of the backend."""

    @abstractmethod
    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result` on the host, the last first, (runs, count, row)."""


def pull_back(steps: AdjointSteps, backend: SweepBackend, task: AdjointTask, weigh: FinalWeights) -> Weights:
    """Return the scalar of each run and the weights of its start, parameters and inputs.

    Parameters
    ----------
    steps
        Forward and backward programs.
    backend
        Backend that computes them.
    task
        The runs.
    weigh
        Function that returns the weights at the end of the runs.
    """
    has_checkpoints = task.stretch < task.steps
    table, parameters = backend.transferred_inputs(task)
    clock = {"h": task.h, "live": 1.0, "input_steps": task.input_steps, "input_last": task.table.shape[1] - 1.0}

    def run_forwards(initial_fields: Mapping[str, Any], room: int) -> SweepResult:
        state = backend.initial_state(steps.forward_program, task.runs, {**clock, **initial_fields})
        return backend.sweep(steps.forward_program, state, table, parameters, room)

    def recomputed_notes(k: int) -> Any:
        """Return the notes of the k-th stretch, computed again from the note of its first step."""
        note, n, end = backend.row(notes.rows, k), k * task.stretch, min((k + 1) * task.stretch, task.steps)
        fields = {key: note[steps.note_layout.places[key]].T for key in ("y", "memory", "fresh", "line")}
        fields |= {"input": fields["line"], "n": n, "next": n, "stride": 1.0, "last": end}
        return run_forwards(fields, end - n).rows

    begin = {"y": task.y, "fresh": 1.0, "last": task.steps, "stride": task.stretch if has_checkpoints else 1.0}
    notes = run_forwards(begin, task.stretch_count if has_checkpoints else task.steps)
    places = steps.forward_program.layout.places
    y = backend.to_host(notes.state[places["y"]]).T
    line, fresh = (int(backend.to_host(notes.state[places[key]])[0]) if steps.nu else 0 for key in ("input", "fresh"))
    trouble, stuck = np.zeros(task.runs), np.zeros((task.runs, 0))
    if steps.has_loops:
        trouble, stuck = (backend.to_host(notes.state[places[key]]).T for key in ("trouble", "stuck"))
        y = np.where(trouble[:, None] > 0.5, np.nan, y)
    last = weigh(y, task.table[:, line], task.parameters)
    # A line that begins at the very end belongs to no step, and its weights are complete.
    initial_fields = {"w_y": last.y, "g_p": last.p, "sum_u": np.zeros_like(last.u) if fresh else last.u, "h": task.h}
    state = backend.initial_state(steps.backward_program, task.runs, initial_fields)
    places, stretch_rows = steps.backward_program.layout.places, []
    for k in reversed(range(task.stretch_count)):
        noted = recomputed_notes(k) if has_checkpoints else notes.rows
        count = min(task.stretch, task.steps - k * task.stretch)
        for key, value in (("live", 1.0), ("due", 0.0), ("input", count - 1.0)):
            state[places[key]] = value
        swept = backend.sweep(steps.backward_program, state, noted, parameters, min(count, task.table.shape[1]))
        state = swept.state
        stretch_rows += [backend.rows(swept)] if steps.nu else []
    w, p = (backend.to_host(state[places[key]]).T for key in ("w_y", "g_p"))
    u = _joined_input_weights(task, stretch_rows, line, last.u if fresh else None)
    return Weights(last.value, w, p, u, trouble, stuck)


def stretch_length(steps: int, fit: int, checkpoints: int | None) -> int:
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


def _joined_input_weights(task: AdjointTask, stretch_rows: list[Array], line: int, last: Array | None) -> Array:
    """Join the rows of the stretches (the last stretch first); a line that no step used has weight zero."""
    runs, lines, nu = task.table.shape
    blank = np.zeros((runs, lines - sum(x.shape[1] for x in stretch_rows), nu))
    parts = [*stretch_rows[::-1], blank]
    all_rows = parts[0] if len(parts) == 2 and not blank.size else np.concatenate(parts, axis=1)
    if last is not None:
        all_rows[:, line] = last
    return all_rows


# -- on the CPU


@dataclass(eq=False)
class LaneSweeps(SweepBackend):
    """CPU backend: blocks of lanes, one after the other."""

    lanes: int
    threads: int = 1

    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""
        return NOTE_BYTES // (8 * note * self.lanes)

    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` are computed at once; `note` is the number of elements of one note.

        These are whole blocks, few enough for their notes to stay in the cache, and several groups for each thread.
        """
        blocks, needed_blocks = CACHE_BYTES // (8 * note * task.note_count * self.lanes), -(-task.runs // self.lanes)
        blocks = min(blocks, needed_blocks if self.threads == 1 else needed_blocks // (PARTS_PER_THREAD * self.threads))
        return max(1, blocks) * self.lanes

    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the table of inputs and the parameters of `task`."""
        return task.table, task.parameters.T

    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
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
        blocks = LaneBlocks(self.code(program), state, parameters, table, rows)
        while not blocks.done:
            blocks.advance()
        return SweepResult(blocks.state, blocks.rows, int(blocks.counts[0]))

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs)."""
        return rows[:, k].T

    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result`, the last first, (runs, count, row)."""
        rows: Array = result.rows[:, : result.count][:, ::-1]
        return rows


# -- on the GPU

BUSY_RUNS = 2**14  # runs at once that keep a GPU busy; recomputing steps is better than launching fewer
UNLIMITED_TICKS = 2**40  # ticks: more than any run has, so that a launch ends when every run has stopped


@dataclass(eq=False)
class GpuSweeps(SweepBackend):
    """GPU backend of the adjoint sweeps (`SweepBackend` in adjoint_sweeps.py).

    A table of inputs is a pair: its numbers, and the distances in memory between neighbouring runs and between
    neighbouring lines of one run.
    """

    dtype: str
    runs: int

    @property
    def _free_numbers(self) -> int:
        """Floating-point numbers for which there is free GPU memory."""
        return int(MEMORY_SHARE * free_bytes()) // (8 if self.dtype == "float64" else 4)

    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""
        return self._free_numbers // (note * min(self.runs, BUSY_RUNS))

    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` fit into memory at once; `note` is the number of elements of one note."""
        numbers_per_run: int = task.table[0].size + task.parameters.shape[1]
        return max(1, min(task.runs, self._free_numbers // (note * (task.note_count + 4) + numbers_per_run)))

    @property
    def array_options(self) -> tuple[Any, str]:
        """Module and type of the arrays on the GPU."""
        return cupy(), self.dtype

    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the inputs and the parameters of `task` on the GPU.

        They are transposed there, which is faster than on the CPU; a table that all runs share is copied once.
        """
        parameters = self._transposed(task.parameters)
        if task.table.strides[0] == 0:
            return (cupy().asarray(np.ascontiguousarray(task.table[0]), self.dtype), (0, 1)), parameters
        return (self._transposed(task.table), (1, task.runs)), parameters

    def _transposed(self, x: Array) -> Any:
        cp = cupy()
        return cp.ascontiguousarray(cp.moveaxis(cp.asarray(np.ascontiguousarray(x), self.dtype), 0, -1))

    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs, as `transferred_inputs` or an earlier sweep leaves them.
        parameters
            Free parameters, (np, runs).
        room
            Capacity, in rows of each run.
        """
        cp, runs, (lines, steps) = cupy(), state.shape[1], table
        rows, counts = empty_buffer((room, program.row, runs), self.dtype, cp), cp.zeros(runs, cp.int64)
        self.code(program).launch(UNLIMITED_TICKS, state, parameters, lines, steps, rows, room, counts)
        return SweepResult(state, (rows, (1, runs)), int(cp.asnumpy(counts)[0]))

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs), on the GPU."""
        return rows[0][k]

    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result` on the host, the last first, (runs, count, row)."""
        cp = cupy()
        device_rows = cp.ascontiguousarray(cp.moveaxis(result.rows[0][: result.count][::-1], -1, 0))
        array: Array = to_numpy(device_rows).astype(float, copy=False)
        return array

    def to_host(self, x: Any) -> Array:
        """Return `x` as a float64 array on the host."""
        return super().to_host(to_numpy(x))
