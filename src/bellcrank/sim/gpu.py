"""Simulation on the GPU: one thread per run with its state in registers, or in memory for large mechanisms.

See emit/cuda/loop.py for the former, and emit/cuda/large_loop.py for large mechanisms, where the bodies of a link class
share code. Rows are copied to the host in pieces: if the GPU's memory does not hold the rows of all runs, as many runs
are computed at once as fit. A run can have more rows than its capacity, because the number of adaptive steps or events
is not known in advance; then the present rows are copied, and the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import DeviceError, Function, cupy, forget, free_bytes, out_of_memory
from bellcrank.emit.cuda.large_loop import LargeLoop
from bellcrank.emit.cuda.loop import Loop
from bellcrank.emit.cuda.looptext import START
from bellcrank.emit.cuda.workspace import blocks, workspace
from bellcrank.errors import warn
from bellcrank.graph import Layout, Program, Recursion
from bellcrank.graph.program import NOT_CLOSED, REPARTITION
from bellcrank.sim.closure import Group
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.progress import ProgressTeller
from bellcrank.sim.run import Batch, Memory, Rows
from bellcrank.sim.step_check import RESULTS

Array = np.ndarray[Any, Any]
PAUSE = 0.2  # seconds between checks of Ctrl-C and of the progress
FIRST = 64  # ticks of the first launch, before the time of a tick is known
KEPT = 0.8  # part of the free memory that one group of runs may take
NOT_BEGUN = -1.0
# Fields that sim/outcome.py reads.
FETCHED = ("t", "y", "input", "status", "n", "tried", "which", "h", "open", "summary", "resolve", *RESULTS)


@dataclass(frozen=True, eq=False)
class GpuProgram:
    """A program compiled for the GPU."""

    program: Program
    dtype: str

    def __post_init__(self) -> None:
        self.program.check_counters(self.dtype)

    @cached_property
    def loop(self) -> Loop | LargeLoop:
        """The generated code: a loop with state in registers, or with state in memory if bodies share code."""
        return (LargeLoop if _shares(self.program) else Loop)(self.program, self.dtype)

    @cached_property
    def run(self) -> Function:
        """The loaded kernel."""
        loop = self.loop
        return Function(loop.ptx, "run", loop.threads, loop.shared, whole=bool(loop.workspace))

    def blocks(self, runs: int) -> int:
        """Return how many thread blocks have a workspace and share the `runs`, one after the other; 0 without one."""
        return blocks(runs, self.run, self.loop.workspace, self.dtype) if self.loop.workspace else 0

    def go(
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
        n, count, own = s.shape[1], self.blocks(s.shape[1]), []
        if count:
            own = [workspace(count, self.loop.workspace, self.dtype), np.int64(count)]
        numbers, threads = map(np.int64, steps), count * self.loop.threads or n
        self.run(threads, np.int64(n), np.int64(ticks), s, p, inputs, *numbers, rows, np.int64(capacity), counts, *own)

    def finish(
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
        one_p, one_table = same(p), same(table)  # shared by all runs, or with one column for each run
        free = cp.ascontiguousarray(cp.broadcast_to(cp.asarray(p[:1] if one_p else p, self.dtype).T, (p.shape[1], n)))
        lines = cp.asarray(table[0] if one_table else np.ascontiguousarray(np.moveaxis(table, 0, -1)), self.dtype)
        steps = (0, 1) if one_table else (1, n)
        rows = empty_buffer((capacity, program.row, n), self.dtype, cp)
        counts = cp.zeros(n, cp.int64)
        pieces: list[tuple[Array, Array]] = []

        def launch(ticks: int) -> None:
            self.go(ticks, s, free, lines, steps, rows, capacity, counts)

        def emptied() -> None:
            pieces.append((cp.asnumpy(rows[: int(counts.max())]), cp.asnumpy(counts)))
            counts.fill(0)

        if self.loop.begins:
            launch(START)
        ticks, going = FIRST, True
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
            took = time.perf_counter() - began
            ticks = max(1, min(8 * ticks, int(ticks * PAUSE / max(took, 1e-9))))
            going = going and tell(s)
        if capacity:
            emptied()
        return pieces


@dataclass(eq=False)
class Gpu:
    """GPU backend of run.py.

    States stay on the GPU. At the end only the fields of the record are copied back, and all fields of runs that must
    continue.
    """

    code: Callable[[Dynamics], GpuProgram]
    layout: Layout
    batch: Batch
    memory: Memory
    watch: ProgressTeller
    alone = None  # single runs are computed on the CPU

    def __post_init__(self) -> None:
        self.state = self.memory.rows((self.layout.size, self.batch.runs))
        self.state[self.layout.place("status")] = NOT_BEGUN
        self.begun, self.finished, self.behind = False, True, 0  # behind: finished runs

    def advance(self, groups: Sequence[Group], rows: Rows) -> bool:
        """Run all `groups` to their ends or to a change of partition, add to `rows`, and return False after Ctrl-C."""
        self.behind = self.batch.runs - sum(len(group.members) for group in groups)
        for group in groups:
            self._group(group, rows)
        self.begun = True
        self._unbegun(groups[0].by, rows)
        return self.finished

    def _group(self, group: Group, rows: Rows) -> None:
        made, runs, k = self.code(group.by), group.members, 0
        some = _part(made, self.batch, len(runs))
        while k < len(runs) and self.finished:
            here, part = runs[k : k + some], slice(k, k + some)
            few: Any = here if len(here) < self.batch.runs else slice(None)  # a slice makes no copy
            try:
                state = self._started(made, few, None if group.bound is None else group.bound[part], len(here))
                lines, free = (x if same(x) else x[few] for x in (self.batch.table, self.batch.parameters))
                found = made.finish(state, lines, free, self.batch.capacity, self._look)
            except out_of_memory() as error:
                some = _less(len(here), error)
                continue  # from the same states, since none was copied back
            k += len(here)
            _fetch(self.layout, state, self.state, few)
            self.behind += len(here)
            for written, counts in found:
                rows.add(here, np.array(written.transpose(2, 0, 1), float, order="C"), counts)

    def _started(self, made: GpuProgram, few: Any, bound: Array | None, runs: int) -> Any:
        """Return states on the GPU of the runs as they are now."""
        cp, first = cupy(), self.batch.first
        if self.begun:
            # Indexing by a list of columns gives column-major memory, and the kernel ignores strides.
            state = cp.asarray(np.ascontiguousarray(self.state[:, few]), made.dtype)
        else:
            starts = first["y"][:1] if same(first["y"]) else first["y"][few]
            state = self.layout.array(runs, {**first, "y": starts}, cp, made.dtype)
        if bound is not None:
            state[self.layout.place("bound")] = cp.asarray(bound)
        return state

    def _look(self, s: Any) -> bool:
        """Report the progress and return whether to go on; s: states on the GPU, or None after Ctrl-C."""
        try:
            if s is None:
                raise KeyboardInterrupt
            if self.watch.tell is not None:
                self.watch.tell((self.behind + self.watch.share(s, cupy()) * s.shape[1]) / self.batch.runs)
        except KeyboardInterrupt:
            self.finished = False
        return self.finished

    def _unbegun(self, by: Dynamics, rows: Rows) -> None:
        """Set runs that Ctrl-C kept from starting to their initial states, without rows."""
        rest = np.flatnonzero(self.state[self.layout.place("status")] == NOT_BEGUN)
        if len(rest):
            first = self.batch.first
            self.state[:, rest] = self.layout.array(len(rest), {**first, "y": first["y"][rest]})
            if self.batch.capacity:
                rows.add(rest, np.zeros((len(rest), 0, self.code(by).program.row)), np.zeros(len(rest), int))


def _shares(program: Program) -> bool:
    """Return True if bodies of a link class share code."""
    return any(isinstance(g, Recursion) for graph in program.graphs.values() for g in graph.calls)


def same(x: Array) -> bool:
    """Return True if all runs share one line of `x`; only the memory layout is examined."""
    return x.strides[0] == 0 or x.size == 0 or len(x) == 1


def _fetch(places: Layout, s: Any, final: Array, few: Any) -> None:
    """Copy the record fields of some runs from the GPU, and all fields of runs that may continue."""
    cp = cupy()
    for name in FETCHED:
        place = places.places.get(name)
        if place is None or (isinstance(place, slice) and place.start == place.stop):
            continue
        if isinstance(few, slice) and s.dtype == final.dtype:
            cp.asnumpy(s[place], out=final[place])
        else:
            final[place, few] = cp.asnumpy(s[place])
    again = np.flatnonzero(np.isin(final[places.place("status"), few], (REPARTITION, NOT_CLOSED)))
    if len(again):
        runs = np.arange(final.shape[1])[few][again]
        final[:, runs] = cp.asnumpy(s[:, cp.asarray(again)])


def _part(made: GpuProgram, batch: Batch, runs: int) -> int:
    """Return how many runs fit into the free memory."""
    differ = [x for x in (batch.table, batch.parameters) if not same(x)]  # differ between runs
    own: int = sum(x[0].size for x in differ)
    size = 8 if made.dtype == "float64" else 4
    each = (batch.capacity * made.program.row + 3 * made.program.size + 2 * own) * size
    taken = made.blocks(runs) * made.loop.threads * made.loop.workspace * size
    fit = max(1, (int(KEPT * free_bytes()) - taken) // each)
    if fit < runs:
        _say(runs, fit)
    return min(fit, runs)


def _less(runs: int, error: Exception) -> int:
    """Return half the number of runs: the memory that was free is now taken or fragmented."""
    if runs == 1:
        raise DeviceError(
            f'the GPU\'s memory does not hold a single run ({error}). Keep fewer rows (every=, keep="final"), or free '
            "memory that other programs hold there."
        ) from None
    forget()
    _say(runs, runs // 2)
    return runs // 2


def _say(runs: int, fit: int) -> None:
    text = f"the rows of {runs} runs do not fit the GPU's memory; they are done {fit} at a time."
    warn(text)
