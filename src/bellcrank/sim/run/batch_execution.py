"""Execution of a batch of runs to their ends, in passes, because a run may ask to continue with other graphs.

Runs that use the same graphs run together. A run whose loops need other dependent coordinates stops (REPARTITION) and
continues in the next pass, with the runs that need the same; its record is continued. A backend executes a pass: Lanes
on the CPU, in blocks of lanes on one or more threads, or gpu_runs.py. The memory for rows of large records is reused.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from bellcrank.buffers import empty_buffer, poisoned
from bellcrank.graph import Layout
from bellcrank.graph.program import NEVER_TIME, NOT_CLOSED, REPARTITION, RUNNING
from bellcrank.sim.program.system_graphs import Dynamics, RunGroup
from bellcrank.sim.run.lane_blocks import CompiledProgram, LaneBlocks, run_all

Array = np.ndarray[Any, Any]
BLOCKS_PER_PART = 256  # blocks of lanes in one part, which limits the memory for large batches
PARTS_PER_THREAD = 4  # parts per thread, for load balancing
REUSED_SIZE_NUMBERS = 4_000_000  # numbers: the C library caches freed memory up to about this size
OWN_REFERENCES = 3  # references to an array that only its RowMemory holds: attribute, local name, argument


@dataclass(frozen=True, eq=False)
class Batch:
    """Input data of runs that are executed together."""

    initial_fields: Mapping[str, Any]  # initial values of the state of each run, by field
    input_table: Array  # of inputs, (runs, lines, nu)
    parameters: Array  # (runs, np)
    capacity: int  # initial number of rows of each run, or 0 if only its final state is kept

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self.parameters)


class RunRows:
    """The rows of all runs, collected in pieces that each hold rows of some of the runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self._pieces: list[tuple[Array, Array, Array]] = []

    def add(self, runs: Array, rows: Array, counts: Array) -> None:
        """Append a piece.

        Parameters
        ----------
        runs
            Indices of the runs.
        rows
            Rows, (runs, capacity, columns).
        counts
            Number of valid rows of each run.
        """
        self._pieces.append((runs, rows, counts))

    @property
    def single_table(self) -> Array | None:
        """Return all rows, (runs, rows, columns), if they are one piece with equal counts, else None."""
        if len(self._pieces) != 1:
            return None
        runs, rows, counts = self._pieces[0]
        return rows[:, : counts[0]] if len(runs) == self.runs and (counts == counts[0]).all() else None

    @property
    def pieces(self) -> list[list[Array]]:
        """Return the pieces of each run, pass by pass."""
        by_run: list[list[Array]] = [[] for _ in range(self.runs)]
        for runs, rows, counts in self._pieces:
            for k, run in enumerate(runs):
                by_run[run].append(rows[k, : counts[k]])
        return by_run


class RowMemory:
    """Memory for rows, with reuse of the last large array.

    The system maps large fresh arrays page by page, which can take longer than computing their contents. A simulator
    therefore keeps the array of its last large record and reuses it as soon as no other reference to it exists.
    """

    def __init__(self) -> None:
        self._last: Array | None = None

    def rows(self, shape: tuple[int, ...]) -> Array:
        """Return an uninitialised array of this `shape`."""
        size = math.prod(shape)
        if size < REUSED_SIZE_NUMBERS:
            small: Array = empty_buffer(shape)
            return small
        last = self._last
        # Every view, in a record or derived from one, holds a reference to the array.
        if last is None or not size <= last.size < 2 * size or sys.getrefcount(last) > OWN_REFERENCES:
            self._last = last = None  # free it before the next one is allocated
            self._last = last = np.empty(size)
        return poisoned(last[:size].reshape(shape))


@dataclass(frozen=True, eq=False)
class RunResults:
    """Results of runs: final states (size, runs), rows, number of partition changes, and True if all runs ended."""

    state: Array
    rows: RunRows | None  # None if only the final states are kept
    partition_changes: Array
    finished: bool


class Backend(Protocol):
    """Executor of runs; `state` holds the present states of all runs, (size, runs)."""

    state: Array

    def advance(self, groups: Sequence[RunGroup], rows: RunRows) -> bool:
        """Run the members of all `groups` until they end or need other graphs, adding to `rows`; False after Ctrl-C."""

    @property
    def single_run(self) -> Callable[[int, Dynamics, Array], Array] | None:
        """Return a function (run, by, state) -> final state of one run from another state with these graphs.

        None if the backend does not execute single runs.
        """


class PassHistory:
    """Bookkeeping of the graphs that runs used, and of the runs that continue."""

    def __init__(self, layout: Layout, runs: int) -> None:
        self.partition_changes = np.zeros(runs, int)
        self._status = layout.place("status")
        self._layout, self._last_dynamics, self._dynamics = layout, np.full(runs, -1), list[Dynamics]()
        self._failed_step, self._crossed_step = np.full(runs, -1.0), np.full(runs, -1.0)

    def begin(self, group: RunGroup) -> None:
        """Register that the members of `group` run by its graphs, and count changes of partition."""
        self._dynamics += [group.dynamics] if group.dynamics not in self._dynamics else []
        index, before = self._dynamics.index(group.dynamics), self._last_dynamics[group.members]
        self.partition_changes[group.members] += (before >= 0) & (before != index)
        self._last_dynamics[group.members] = index

    def stuck(self, state: Array) -> list[int]:
        """Return the runs that failed again at a step, given the states (`state`); each run once per failed step."""
        n = self._layout.count(state, "n")
        failed_again = (state[self._status] == NOT_CLOSED) & (n <= self._failed_step) & (n > self._crossed_step)
        stuck_runs = np.flatnonzero(failed_again)
        self._crossed_step[stuck_runs] = n[stuck_runs]
        return [int(k) for k in stuck_runs]

    def waiting(self, state: Array) -> Array:
        """Return the runs that need another pass, and prepare their state for it; all their rows are written.

        Parameters
        ----------
        state
            States of all runs, (size, runs), changed in place.
        """
        status, n = state[self._status], self._layout.count(state, "n")
        # A failed step is repeated once, because other coordinates may be better there.
        failed = (status == NOT_CLOSED) & (n > self._failed_step)
        self._failed_step = np.where(failed, n, self._failed_step)
        waiting_runs = np.flatnonzero((status == REPARTITION) | failed)
        for name, value in (("status", RUNNING), ("live", 1.0), ("due", 0.0)):
            state[self._layout.place(name), waiting_runs] = value
        return waiting_runs


def run_to_end(dynamics: Dynamics, layout: Layout, batch: Batch, backend: Backend) -> RunResults:
    """Run a batch to its end.

    Parameters
    ----------
    dynamics
        Dynamics of the system, which selects graphs by state.
    layout
        Layout of the state.
    batch
        The runs.
    backend
        Backend that executes them.
    """
    y, p = layout.span("y"), batch.parameters
    rows, passes = RunRows(batch.runs), PassHistory(layout, batch.runs)
    waiting, finished = np.arange(batch.runs), True
    states, parameters = batch.initial_fields["y"], p
    while len(waiting) and finished:
        groups = [replace(g, members=waiting[g.members]) for g in dynamics.closure.grouped(states, parameters)]
        for group in groups:
            passes.begin(group)
        finished = backend.advance(groups, rows)
        single_run = backend.single_run
        stuck = passes.stuck(backend.state) if single_run is not None else []
        waiting = passes.waiting(backend.state)
        for run in stuck:
            assert single_run is not None
            crossing = dynamics.closure.crossed(layout, backend.state[:, run], p[run], partial(single_run, run))
            if crossing is None:
                continue
            backend.state[:, run], due_rows = crossing
            if batch.capacity and due_rows:
                rows.add(np.array([run]), np.array([due_rows]), np.array([len(due_rows)]))
            if backend.state[layout.place("live"), run] > 0.0:
                waiting = np.append(waiting, run)
        states, parameters = backend.state[y, waiting].T, p[waiting]
    return RunResults(backend.state, rows if batch.capacity else None, passes.partition_changes, finished)


@dataclass(eq=False)
class GroupShare:
    """The runs of one group: their rows lie in one array, and their blocks are executed in parts."""

    code: CompiledProgram
    runs: Array
    row_memory: Array  # memory for rows, padded to whole blocks of lanes
    # Rows and counts, by the index of the first run.
    results: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def hand_over(self, rows: RunRows) -> None:
        """Append the results to `rows`, in one piece unless a part needed more memory."""
        n, parts = len(self.runs), sorted(self.results.items())
        if all(written.shape[1] == self.row_memory.shape[1] for _, (written, _) in parts):
            rows.add(self.runs, self.row_memory[:n], np.concatenate([counts for _, (_, counts) in parts])[:n])
            return
        for k, (written, counts) in parts:
            part_runs = self.runs[k : k + len(written)]
            rows.add(part_runs, written[: len(part_runs)], counts[: len(part_runs)])


@dataclass(eq=False)
class Lanes:
    """Backend for the CPU: blocks of lanes on threads."""

    code: Callable[[Dynamics], CompiledProgram]
    layout: Layout
    batch: Batch
    threads: int
    memory: RowMemory
    progress: ProgressReporter

    def __post_init__(self) -> None:
        self.state = self.layout.array(self.batch.runs, self.batch.initial_fields)

    def advance(self, groups: Sequence[RunGroup], rows: RunRows) -> bool:
        """Run the members of all `groups`, adding to `rows`; False after Ctrl-C."""
        shares = [self._share(group) for group in groups]
        parts = [(share, k, some) for share in shares for k, some in self._parts(share)]
        makers = [partial(self._part, *part) for part in parts]

        def ended(j: int, blocks: LaneBlocks) -> None:
            share, k, some = parts[j]
            runs = share.runs[k : k + some]
            self.state[:, runs] = blocks.state[:, : len(runs)]
            share.results[k] = blocks.rows, blocks.counts

        finished = run_all(makers, self.threads, self.progress.report, lambda b: self.progress.share(b.state), ended)
        for share in shares if self.batch.capacity else ():
            share.hand_over(rows)
        return finished

    def _share(self, group: RunGroup) -> GroupShare:
        code, n = self.code(group.dynamics), len(group.members)
        if group.bound is not None:
            self.state[self.layout.place("bound"), group.members] = group.bound
        row_memory = self.memory.rows((-(-n // code.lanes) * code.lanes, self.batch.capacity, code.program.row))
        return GroupShare(code, group.members, row_memory)

    def _parts(self, share: GroupShare) -> list[tuple[int, int]]:
        """Return (first run, number of runs) of each part: whole blocks, limited in size, several per thread."""
        lanes, n = share.code.lanes, len(share.runs)
        blocks = -(-n // lanes)
        blocks_per_part = blocks if self.threads == 1 else -(-blocks // (PARTS_PER_THREAD * self.threads))
        runs_per_part = max(1, min(BLOCKS_PER_PART, blocks_per_part)) * lanes
        return [(k, runs_per_part) for k in range(0, n, runs_per_part)]

    def _part(self, share: GroupShare, k: int, some: int) -> LaneBlocks:
        return self._blocks(share.code, share.runs[k : k + some], share.row_memory[k : k + some])

    def _blocks(self, code: CompiledProgram, runs: Array, rows: Array, state: Array | None = None) -> LaneBlocks:
        """Return blocks of these runs, from their present states or all from one state.

        Padding lanes repeat the last run and stop at once.
        """
        n = len(runs)
        if padding := -n % code.lanes:
            runs = np.concatenate([runs, np.repeat(runs[-1:], padding)])
        states = self.state[:, runs] if state is None else np.repeat(state[:, None], len(runs), axis=1)
        if padding:
            states[self.layout.place("live"), n:] = states[self.layout.place("due"), n:] = 0.0
            if code.program.observe is not None:
                states[self.layout.place("next"), n:] = NEVER_TIME
        return LaneBlocks(code, states, self.batch.parameters[runs].T, self.batch.input_table[runs], rows)

    def single_run(self, run: int, dynamics: Dynamics, state: Array) -> Array:
        """Return the final state of the run with index `run` from another `state`, by the graphs of `dynamics`."""
        code = self.code(dynamics)
        one = self._blocks(code, np.array([run]), empty_buffer((code.lanes, 4, code.program.row)), state)
        while not one.done:
            one.advance()
        return one.state[:, 0].copy()


@dataclass
class RunStanding:
    """Time and step size of the slowest run; `h` is None for fixed steps.

    A step size that keeps falling indicates stiffness.
    """

    t: float = 0.0
    h: float | None = None

    def __str__(self) -> str:
        return f"at {self.t:.4g} s" + (f", step {self.h:.1e} s" if self.h is not None else "")


@dataclass(frozen=True)
class ProgressReporter:
    """Reports the progress of runs from samples of their states."""

    layout: Layout
    seconds: float
    adaptive: bool  # True for adaptive step sizes
    report: Callable[[float], None] | None
    standing: RunStanding

    def share(self, state: Any, xp: Any = np) -> float:
        """Return the mean completed share of runs, and store the standing of the slowest of them.

        Parameters
        ----------
        state
            States of the runs, (size, runs).
        xp
            Array module of `state`.
        """
        live, t, h = (state[self.layout.place(name)] for name in ("live", "t", "h"))
        clock = xp.where(live > 0.0, t, self.seconds)
        slowest = int(clock.argmin())
        self.standing.t, self.standing.h = float(t[slowest]), float(h[slowest]) if self.adaptive else None
        return float(clock.mean()) / self.seconds
