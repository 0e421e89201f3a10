"""Simulation on the GPU: one thread per run with its state in registers, or in memory for large mechanisms.

See emit/cuda/run_kernel.py, also for large mechanisms, where the bodies of a link class share code. Rows are copied to
the host in pieces: if the GPU's memory does not hold the rows of all runs, as many runs are computed at once as fit. A
run can have more rows than its capacity, because the number of adaptive steps or events is not known in advance; then
the present rows are copied, and the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import DeviceError, DeviceFunction, cupy, free_bytes, out_of_memory_error, release_pool
from bellcrank.emit.cuda.rolled_kernels import affordable_blocks, allocate_workspace
from bellcrank.emit.cuda.run_kernel import LargeRunKernel, RunKernel
from bellcrank.emit.cuda.run_kernel_code import START_TICKS
from bellcrank.errors import warn
from bellcrank.graph import Layout, Program
from bellcrank.graph.program import NOT_CLOSED, REPARTITION
from bellcrank.graph.recursion import recursions
from bellcrank.sim.program.step_check import RESULT_FIELDS
from bellcrank.sim.program.system_graphs import Dynamics, RunGroup
from bellcrank.sim.run.batch_execution import Batch, ProgressReporter, RowMemory, RunRows

Array = np.ndarray[Any, Any]
PAUSE_SECONDS = 0.2  # seconds between checks of Ctrl-C and of the progress
FIRST_TICKS = 64  # ticks of the first launch, before the time of a tick is known
MEMORY_SHARE = 0.8  # part of the free memory that one group of runs may take
NOT_BEGUN = -1.0
# Fields that sim/run/record_builder.py reads.
FETCHED_FIELDS = ("t", "y", "input", "status", "n", "tried", "which", "h", "open", "summary", "resolve", *RESULT_FIELDS)


@dataclass(frozen=True, eq=False)
class GpuProgram:
    """A program compiled for the GPU."""

    program: Program
    dtype: str

    def __post_init__(self) -> None:
        self.program.check_counters(self.dtype)

    @cached_property
    def loop(self) -> RunKernel | LargeRunKernel:
        """The generated code: a loop with state in registers, or with state in memory if bodies share code."""
        return (LargeRunKernel if _has_recursions(self.program) else RunKernel)(self.program, self.dtype)

    @cached_property
    def kernel(self) -> DeviceFunction:
        """The loaded kernel."""
        loop = self.loop
        return DeviceFunction(loop.ptx, "run", loop.threads, loop.shared, single_piece=bool(loop.workspace))

    def blocks(self, runs: int) -> int:
        """Return how many thread blocks have a workspace and share the `runs`, one after the other; 0 without one."""
        return affordable_blocks(runs, self.kernel, self.loop.workspace, self.dtype) if self.loop.workspace else 0

    def launch(
        self, ticks: int, s: Any, p: Any, inputs: Any, steps: Sequence[int], rows: Any, capacity: int, counts: Any
    ) -> None:
        """Launch the kernel once: advance all runs by a number of ticks.

        Parameters
        ----------
        ticks
            Number of ticks.
        s
            States, one column for each run.
        p
            Free parameters, one column for each run.
        inputs
            Table of inputs.
        steps
            Distances in memory between the inputs of neighbouring runs and between neighbouring inputs of one run.
        rows
            Buffer of rows, (capacity, row, runs).
        capacity
            Number of rows of each run.
        counts
            Number of rows that each run has written.
        """
        n, count = s.shape[1], self.blocks(s.shape[1])
        workspace = [allocate_workspace(count, self.loop.workspace, self.dtype), np.int64(count)] if count else []
        threads, strides = count * self.loop.threads or n, map(np.int64, steps)
        table = rows, np.int64(capacity), counts
        self.kernel(threads, np.int64(n), np.int64(ticks), s, p, inputs, *strides, *table, *workspace)

    def run_to_end(
        self, s: Any, table: Array, p: Array, capacity: int, tell: Callable[[Any], bool]
    ) -> list[tuple[Array, Array]]:
        """Run all columns of a state to their ends, and return pieces of their record.

        A piece has rows (some, row, runs) and the number of them that each run wrote.

        Parameters
        ----------
        s
            States on the GPU, one column for each run.
        table
            Inputs, (runs, lines, nu).
        p
            Free parameters, (runs, np).
        capacity
            Number of rows of each run in the buffer.
        tell
            Function that receives the state from time to time, or None after Ctrl-C, and returns whether to go on.
        """
        cp, n, program = cupy(), s.shape[1], self.program
        one_p, one_table = is_shared(p), is_shared(table)  # shared by all runs, or with one column for each run
        free = cp.ascontiguousarray(cp.broadcast_to(cp.asarray(p[:1] if one_p else p, self.dtype).T, (p.shape[1], n)))
        lines = cp.asarray(table[0] if one_table else np.ascontiguousarray(np.moveaxis(table, 0, -1)), self.dtype)
        steps = (0, 1) if one_table else (1, n)
        rows = empty_buffer((capacity, program.row, n), self.dtype, cp)
        counts = cp.zeros(n, cp.int64)
        pieces: list[tuple[Array, Array]] = []

        def launch(ticks: int) -> None:
            self.launch(ticks, s, free, lines, steps, rows, capacity, counts)

        def emptied() -> None:
            pieces.append((cp.asnumpy(rows[: int(counts.max())]), cp.asnumpy(counts)))
            counts.fill(0)

        if self.loop.needs_start:
            launch(START_TICKS)
        ticks, going = FIRST_TICKS, True
        while going:
            began = time.perf_counter()
            try:
                launch(ticks)
                live, due = s[[program.live, program.due]] > 0
                going = bool((live | due).any())  # waits for the GPU, so that Ctrl-C arrives here
            except KeyboardInterrupt:
                tell(None)
                break
            if capacity and bool((due & (counts >= capacity)).any()):
                emptied()
            launch_seconds = time.perf_counter() - began
            ticks = max(1, min(8 * ticks, int(ticks * PAUSE_SECONDS / max(launch_seconds, 1e-9))))
            going = going and tell(s)
        if capacity:
            emptied()
        return pieces


@dataclass(eq=False)
class GpuBackend:
    """GPU backend of batch_execution.py.

    States stay on the GPU. At the end only the fields of the record are copied back, and all fields of runs that must
    continue.
    """

    code: Callable[[Dynamics], GpuProgram]
    layout: Layout
    batch: Batch
    memory: RowMemory
    watch: ProgressReporter
    single_run = None  # single runs are computed on the CPU

    def __post_init__(self) -> None:
        self.state = self.memory.rows((self.layout.size, self.batch.runs))
        self.state[self.layout.place("status")] = NOT_BEGUN
        self.begun, self.finished, self.finished_runs = False, True, 0

    def advance(self, groups: Sequence[RunGroup], rows: RunRows) -> bool:
        """Run all `groups` to their ends or to a change of partition, add to `rows`, and return False after Ctrl-C."""
        self.finished_runs = self.batch.runs - sum(len(group.members) for group in groups)
        for group in groups:
            self._run_group(group, rows)
        self.begun = True
        self._fill_unstarted(groups[0].dynamics, rows)
        return self.finished

    def _run_group(self, group: RunGroup, rows: RunRows) -> None:
        program, runs, k = self.code(group.dynamics), group.members, 0
        chunk_size = _fitting_runs(program, self.batch, len(runs))
        while k < len(runs) and self.finished:
            chunk_runs, part = runs[k : k + chunk_size], slice(k, k + chunk_size)
            selection: Any = chunk_runs if len(chunk_runs) < self.batch.runs else slice(None)  # a slice makes no copy
            bound = None if group.bound is None else group.bound[part]
            table, p = self.batch.input_table, self.batch.parameters
            table, p = (x if is_shared(x) else x[selection] for x in (table, p))
            try:
                state = self._device_states(program, selection, bound, len(chunk_runs))
                pieces = program.run_to_end(state, table, p, self.batch.capacity, self._report_progress)
            except out_of_memory_error() as error:
                chunk_size = _halved_runs(len(chunk_runs), error)
                continue  # from the same states, since none was copied back
            k += len(chunk_runs)
            _fetch(self.layout, state, self.state, selection)
            self.finished_runs += len(chunk_runs)
            for written, counts in pieces:
                rows.add(chunk_runs, np.array(written.transpose(2, 0, 1), float, order="C"), counts)

    def _device_states(self, program: GpuProgram, selection: Any, bound: Array | None, runs: int) -> Any:
        """Return states on the GPU of the runs as they are now."""
        cp, first = cupy(), self.batch.initial_fields
        if self.begun:
            # Indexing by a list of columns gives column-major memory, and the kernel ignores strides.
            state = cp.asarray(np.ascontiguousarray(self.state[:, selection]), program.dtype)
        else:
            starts = first["y"][:1] if is_shared(first["y"]) else first["y"][selection]
            state = self.layout.array(runs, {**first, "y": starts}, cp, program.dtype)
        if bound is not None:
            state[self.layout.place("bound")] = cp.asarray(bound)
        return state

    def _report_progress(self, s: Any) -> bool:
        """Report the progress and return whether to go on; s: states on the GPU, or None after Ctrl-C."""
        try:
            if s is None:
                raise KeyboardInterrupt
            if self.watch.report is not None:
                self.watch.report((self.finished_runs + self.watch.share(s, cupy()) * s.shape[1]) / self.batch.runs)
        except KeyboardInterrupt:
            self.finished = False
        return self.finished

    def _fill_unstarted(self, dynamics: Dynamics, rows: RunRows) -> None:
        """Set runs that Ctrl-C kept from starting to their initial states, without rows."""
        unstarted = np.flatnonzero(self.state[self.layout.place("status")] == NOT_BEGUN)
        if len(unstarted):
            first = self.batch.initial_fields
            self.state[:, unstarted] = self.layout.array(len(unstarted), {**first, "y": first["y"][unstarted]})
            if self.batch.capacity:
                no_rows = np.zeros((len(unstarted), 0, self.code(dynamics).program.row))
                rows.add(unstarted, no_rows, np.zeros(len(unstarted), int))


def _has_recursions(program: Program) -> bool:
    """Return True if bodies of a link class share code."""
    return any(map(recursions, program.graphs.values()))


def is_shared(x: Array) -> bool:
    """Return True if all runs share one line of `x`; only the memory layout is examined."""
    return x.strides[0] == 0 or x.size == 0 or len(x) == 1


def _fetch(places: Layout, s: Any, final: Array, selection: Any) -> None:
    """Copy the record fields of some runs from the GPU, and all fields of runs that may continue."""
    cp = cupy()
    for name in FETCHED_FIELDS:
        place = places.places.get(name)
        if place is None or (isinstance(place, slice) and place.start == place.stop):
            continue
        if isinstance(selection, slice) and s.dtype == final.dtype:
            cp.asnumpy(s[place], out=final[place])
        else:
            final[place, selection] = cp.asnumpy(s[place])
    continuing = np.flatnonzero(np.isin(final[places.place("status"), selection], (REPARTITION, NOT_CLOSED)))
    if len(continuing):
        runs = np.arange(final.shape[1])[selection][continuing]
        final[:, runs] = cp.asnumpy(s[:, cp.asarray(continuing)])


def _fitting_runs(program: GpuProgram, batch: Batch, runs: int) -> int:
    """Return how many runs fit into the free memory."""
    differ = [x for x in (batch.input_table, batch.parameters) if not is_shared(x)]  # differ between runs
    numbers_per_run: int = sum(x[0].size for x in differ)
    size = 8 if program.dtype == "float64" else 4
    each = (batch.capacity * program.program.row + 3 * program.program.size + 2 * numbers_per_run) * size
    workspace_bytes = program.blocks(runs) * program.loop.threads * program.loop.workspace * size
    fit = max(1, (int(MEMORY_SHARE * free_bytes()) - workspace_bytes) // each)
    if fit < runs:
        _warn_split(runs, fit)
    return min(fit, runs)


def _halved_runs(runs: int, error: Exception) -> int:
    """Return half the number of runs: the memory that was free is now taken or fragmented."""
    if runs == 1:
        raise DeviceError(
            f'the GPU\'s memory does not hold a single run ({error}). Keep fewer rows (every=, keep="final"), or free '
            "memory that other programs hold there."
        ) from None
    release_pool()
    _warn_split(runs, runs // 2)
    return runs // 2


def _warn_split(runs: int, fit: int) -> None:
    warn(f"the rows of {runs} runs do not fit the GPU's memory; they are done {fit} at a time.")
