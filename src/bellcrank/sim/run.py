"""Execution of a batch of runs to their ends, in passes, because a run may ask to continue with other graphs.

Runs that use the same graphs run together. A run whose loops need other dependent coordinates stops (REPARTITION) and
continues in the next pass, with the runs that need the same; its record is continued. A backend executes a pass: Lanes
on the CPU, in blocks of lanes on one or more threads, or gpu.py. The memory for rows of large records is reused.
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
from bellcrank.graph.program import NEVER, NOT_CLOSED, REPARTITION, RUNNING
from bellcrank.sim import ferry
from bellcrank.sim.closure import Group
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.progress import ProgressTeller
from bellcrank.sim.runner import Blocks, Compiled, run_all

Array = np.ndarray[Any, Any]
TOGETHER = 256  # blocks of lanes in one part, which limits the memory for large batches
SHARE = 4  # parts per thread, for load balancing
LARGE = 4_000_000  # numbers: the C library caches freed memory up to about this size
ALONE = 3  # references to an array that only its Memory holds: attribute, local name, argument


@dataclass(frozen=True, eq=False)
class Batch:
    """Input data of runs that are executed together."""

    first: Mapping[str, Any]  # initial values of the state of each run, by field
    table: Array  # of inputs, (runs, lines, nu)
    parameters: Array  # (runs, np)
    capacity: int  # initial number of rows of each run, or 0 if only its final state is kept

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self.parameters)


class Rows:
    """The rows of all runs, collected in pieces that each hold rows of some of the runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self._added: list[tuple[Array, Array, Array]] = []

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
        self._added.append((runs, rows, counts))

    @property
    def whole(self) -> Array | None:
        """Return all rows, (runs, rows, columns), if they are one piece with equal counts, else None."""
        if len(self._added) != 1:
            return None
        runs, rows, counts = self._added[0]
        return rows[:, : counts[0]] if len(runs) == self.runs and (counts == counts[0]).all() else None

    @property
    def pieces(self) -> list[list[Array]]:
        """Return the pieces of each run, pass by pass."""
        found: list[list[Array]] = [[] for _ in range(self.runs)]
        for runs, rows, counts in self._added:
            for k, run in enumerate(runs):
                found[run].append(rows[k, : counts[k]])
        return found


class Memory:
    """Memory for rows, with reuse of the last large array.

    The system maps large fresh arrays page by page, which can take longer than computing their contents. A simulator
    therefore keeps the array of its last large record and reuses it as soon as no other reference to it exists.
    """

    def __init__(self) -> None:
        self._last: Array | None = None

    def rows(self, shape: tuple[int, ...]) -> Array:
        """Return an uninitialised array of this `shape`."""
        size = math.prod(shape)
        if size < LARGE:
            small: Array = empty_buffer(shape)
            return small
        last = self._last
        # Every view, in a record or derived from one, holds a reference to the array.
        if last is None or not size <= last.size < 2 * size or sys.getrefcount(last) > ALONE:
            self._last = last = None  # free it before the next one is allocated
            self._last = last = np.empty(size)
        return poisoned(last[:size].reshape(shape))


@dataclass(frozen=True, eq=False)
class Done:
    """Results of runs: final states (size, runs), rows, number of partition changes, and True if all runs ended."""

    state: Array
    rows: Rows | None  # None if only the final states are kept
    switched: Array
    finished: bool


class Backend(Protocol):
    """Executor of runs; `state` holds the present states of all runs, (size, runs)."""

    state: Array

    def advance(self, groups: Sequence[Group], rows: Rows) -> bool:
        """Run the members of all `groups` until they end or need other graphs, adding to `rows`; False after Ctrl-C."""

    @property
    def alone(self) -> Callable[[int, Dynamics, Array], Array] | None:
        """Return a function (run, by, state) -> final state of one run from another state with these graphs.

        None if the backend does not execute single runs.
        """


class Passes:
    """Bookkeeping of the graphs that runs used, and of the runs that continue."""

    def __init__(self, layout: Layout, runs: int) -> None:
        self.switched = np.zeros(runs, int)
        self._status = layout.place("status")
        self._layout, self._last, self._known = layout, np.full(runs, -1), list[Dynamics]()
        self._tried, self._carried = np.full(runs, -1.0), np.full(runs, -1.0)

    def begin(self, group: Group) -> None:
        """Register that the members of `group` run by its graphs, and count changes of partition."""
        self._known += [group.by] if group.by not in self._known else []
        mine, before = self._known.index(group.by), self._last[group.members]
        self.switched[group.members] += (before >= 0) & (before != mine)
        self._last[group.members] = mine

    def stuck(self, state: Array) -> list[int]:
        """Return the runs that failed again at a step, given the states (`state`); each run once per failed step."""
        n = self._layout.count(state, "n")
        found = np.flatnonzero((state[self._status] == NOT_CLOSED) & (n <= self._tried) & (n > self._carried))
        self._carried[found] = n[found]
        return [int(k) for k in found]

    def waiting(self, state: Array) -> Array:
        """Return the runs that need another pass, and prepare their state for it; all their rows are written.

        Parameters
        ----------
        state
            States of all runs, (size, runs), changed in place.
        """
        status, n = state[self._status], self._layout.count(state, "n")
        # A failed step is repeated once, because other coordinates may be better there.
        failed = (status == NOT_CLOSED) & (n > self._tried)
        self._tried = np.where(failed, n, self._tried)
        found = np.flatnonzero((status == REPARTITION) | failed)
        for name, value in (("status", RUNNING), ("live", 1.0), ("due", 0.0)):
            state[self._layout.place(name), found] = value
        return found


def driven(dynamics: Dynamics, layout: Layout, batch: Batch, on: Backend) -> Done:
    """Run a batch to its end.

    Parameters
    ----------
    dynamics
        Dynamics of the system, which selects graphs by state.
    layout
        Layout of the state.
    batch
        The runs.
    on
        Backend that executes them.
    """
    y, p = layout.span("y"), batch.parameters
    rows, passes = Rows(batch.runs), Passes(layout, batch.runs)
    waiting, finished = np.arange(batch.runs), True
    at, free = batch.first["y"], p
    while len(waiting) and finished:
        groups = [replace(g, members=waiting[g.members]) for g in dynamics.closure.grouped(at, free)]
        for group in groups:
            passes.begin(group)
        finished = on.advance(groups, rows)
        alone = on.alone
        stuck = passes.stuck(on.state) if alone is not None else []
        waiting = passes.waiting(on.state)
        for run in stuck:
            assert alone is not None
            behind = ferry.crossed(dynamics, layout, on.state[:, run], p[run], partial(alone, run))
            if behind is None:
                continue
            on.state[:, run], due = behind
            if batch.capacity and due:
                rows.add(np.array([run]), np.array([due]), np.array([len(due)]))
            if on.state[layout.place("live"), run] > 0.0:
                waiting = np.append(waiting, run)
        at, free = on.state[y, waiting].T, p[waiting]
    return Done(on.state, rows if batch.capacity else None, passes.switched, finished)


@dataclass(eq=False)
class Share:
    """The runs of one group: their rows lie in one array, and their blocks are executed in parts."""

    code: Compiled
    runs: Array
    room: Array  # memory for rows, padded to whole blocks of lanes
    left: dict[int, tuple[Array, Array]] = field(default_factory=dict)  # rows and counts, by the index of the first run

    def put(self, rows: Rows) -> None:
        """Append the results to `rows`, in one piece unless a part needed more memory."""
        n, parts = len(self.runs), sorted(self.left.items())
        if all(written.shape[1] == self.room.shape[1] for _, (written, _) in parts):
            rows.add(self.runs, self.room[:n], np.concatenate([counts for _, (_, counts) in parts])[:n])
            return
        for k, (written, counts) in parts:
            mine = self.runs[k : k + len(written)]
            rows.add(mine, written[: len(mine)], counts[: len(mine)])


@dataclass(eq=False)
class Lanes:
    """Backend for the CPU: blocks of lanes on threads."""

    code: Callable[[Dynamics], Compiled]
    layout: Layout
    batch: Batch
    threads: int
    memory: Memory
    watch: ProgressTeller

    def __post_init__(self) -> None:
        self.state = self.layout.array(self.batch.runs, self.batch.first)

    def advance(self, groups: Sequence[Group], rows: Rows) -> bool:
        """Run the members of all `groups`, adding to `rows`; False after Ctrl-C."""
        shares = [self._share(group) for group in groups]
        parts = [(share, k, some) for share in shares for k, some in self._parts(share)]
        made = [partial(self._part, *part) for part in parts]

        def ended(j: int, blocks: Blocks) -> None:
            share, k, some = parts[j]
            mine = share.runs[k : k + some]
            self.state[:, mine] = blocks.state[:, : len(mine)]
            share.left[k] = blocks.rows, blocks.counts

        finished = run_all(made, self.threads, self.watch.tell, lambda b: self.watch.share(b.state), ended)
        for share in shares if self.batch.capacity else ():
            share.put(rows)
        return finished

    def _share(self, group: Group) -> Share:
        code, n = self.code(group.by), len(group.members)
        if group.bound is not None:
            self.state[self.layout.place("bound"), group.members] = group.bound
        room = self.memory.rows((-(-n // code.lanes) * code.lanes, self.batch.capacity, code.program.row))
        return Share(code, group.members, room)

    def _parts(self, share: Share) -> list[tuple[int, int]]:
        """Return (first run, number of runs) of each part: whole blocks, limited in size, several per thread."""
        lanes, n = share.code.lanes, len(share.runs)
        blocks = -(-n // lanes)
        each = blocks if self.threads == 1 else -(-blocks // (SHARE * self.threads))
        some = max(1, min(TOGETHER, each)) * lanes
        return [(k, some) for k in range(0, n, some)]

    def _part(self, share: Share, k: int, some: int) -> Blocks:
        return self._blocks(share.code, share.runs[k : k + some], share.room[k : k + some])

    def _blocks(self, code: Compiled, runs: Array, rows: Array, state: Array | None = None) -> Blocks:
        """Return blocks of these runs, from their present states or all from one state.

        Padding lanes repeat the last run and stop at once.
        """
        n = len(runs)
        if more := -n % code.lanes:
            runs = np.concatenate([runs, np.repeat(runs[-1:], more)])
        now = self.state[:, runs] if state is None else np.repeat(state[:, None], len(runs), axis=1)
        if more:
            now[self.layout.place("live"), n:] = now[self.layout.place("due"), n:] = 0.0
            if code.program.observe is not None:
                now[self.layout.place("next"), n:] = NEVER
        return Blocks(code, now, self.batch.parameters[runs].T, self.batch.table[runs], rows)

    def alone(self, run: int, by: Dynamics, state: Array) -> Array:
        """Return the final state of the run with index `run` from another `state`, by the graphs of `by`."""
        code = self.code(by)
        one = self._blocks(code, np.array([run]), empty_buffer((code.lanes, 4, code.program.row)), state)
        while not one.done:
            one.advance()
        return one.state[:, 0].copy()
