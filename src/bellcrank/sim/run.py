"""Takes runs to their ends, wherever they run, in as many passes as it takes: a run may ask to go on by other graphs.

Runs that go by the same graphs run together. One whose loops need other dependent coordinates stops by itself
(REPARTITION), and goes on in the next pass among those that need the same; its record is continued. How a pass is made
is the backend's business: Lanes on the CPU, in blocks of lanes, some blocks made together, on one or more threads; or
gpu.py. Rows of large records lie in memory that is used again.
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
TOGETHER = 256  # blocks of lanes: a million runs are many, and few are there at once
SHARE = 4  # of a thread: as many parts, for not all take equally long
LARGE = 4_000_000  # numbers: up to about here the C library itself keeps what was given back
ALONE = 3  # references to an array that only its Memory knows: the attribute, the local name, the argument


@dataclass(frozen=True, eq=False)
class Batch:
    """Runs that are made together."""

    first: Mapping[str, Any]  # what the state of each begins with, by field
    table: Array  # of inputs, (runs, lines, nu)
    parameters: Array  # (runs, np)
    capacity: int  # rows of each to begin with, or 0 where its state at the end is all

    @property
    def runs(self) -> int:
        return len(self.parameters)


class Rows:
    """The rows of all runs, as they come: piece by piece, each of some of the runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self._added: list[tuple[Array, Array, Array]] = []

    def add(self, runs: Array, rows: Array, counts: Array) -> None:
        """More rows of these runs: (runs, rows, columns), of which each run has the first ones, as counted."""
        self._added.append((runs, rows, counts))

    @property
    def whole(self) -> Array | None:
        """All rows (runs, rows, columns), where they came in one piece and each run has as many."""
        if len(self._added) != 1:
            return None
        runs, rows, counts = self._added[0]
        return rows[:, : counts[0]] if len(runs) == self.runs and (counts == counts[0]).all() else None

    @property
    def pieces(self) -> list[list[Array]]:
        """The same for each run, pass by pass."""
        found: list[list[Array]] = [[] for _ in range(self.runs)]
        for runs, rows, counts in self._added:
            for k, run in enumerate(runs):
                found[run].append(rows[k, : counts[k]])
        return found


class Memory:
    """Arrays for rows. Large ones come fresh from the system, page by page, and that can take longer than to compute
    what goes in. So a simulator keeps the one of its last large record, and uses it again as soon as nobody looks at
    it.
    """

    def __init__(self) -> None:
        self._last: Array | None = None

    def rows(self, shape: tuple[int, ...]) -> Array:
        """An array of this shape with anything in it."""
        size = math.prod(shape)
        if size < LARGE:
            small: Array = empty_buffer(shape)
            return small
        last = self._last
        # Every view of it, in a record or taken from one, holds a reference to it.
        if last is None or not size <= last.size < 2 * size or sys.getrefcount(last) > ALONE:
            self._last = last = None  # before there is another of its size
            self._last = last = np.empty(size)
        return poisoned(last[:size].reshape(shape))


@dataclass(frozen=True, eq=False)
class Done:
    """What is left of runs: their states (size, runs), their rows, how often each changed its partition, and whether
    all of them came to their ends.
    """

    state: Array
    rows: Rows | None  # None where only the state is asked for
    switched: Array
    finished: bool


class Backend(Protocol):
    """Where runs are made. state: of all runs, (size, runs), as far as they are."""

    state: Array

    def advance(self, groups: Sequence[Group], rows: Rows) -> bool:
        """Takes the members of all groups on, until they end or ask for other graphs; False where Ctrl-C came first."""

    @property
    def alone(self) -> Callable[[int, Dynamics, Array], Array] | None:
        """(run, by, state) -> the end of one run from another state than its own, by these graphs; None where single
        runs are not made.
        """


class Passes:
    """What runs went by, and which of them go on."""

    def __init__(self, layout: Layout, runs: int) -> None:
        self.switched = np.zeros(runs, int)
        self._status = layout.place("status")
        self._layout, self._last, self._known = layout, np.full(runs, -1), list[Dynamics]()
        self._tried, self._carried = np.full(runs, -1.0), np.full(runs, -1.0)

    def begin(self, group: Group) -> None:
        self._known += [group.by] if group.by not in self._known else []
        mine, before = self._known.index(group.by), self._last[group.members]
        self.switched[group.members] += (before >= 0) & (before != mine)
        self._last[group.members] = mine

    def stuck(self, state: Array) -> list[int]:
        """Runs that failed again, each once for every step that they failed at."""
        n = self._layout.count(state, "n")
        found = np.flatnonzero((state[self._status] == NOT_CLOSED) & (n <= self._tried) & (n > self._carried))
        self._carried[found] = n[found]
        return [int(k) for k in found]

    def waiting(self, state: Array) -> Array:
        """Runs that ask for another pass, with their state made ready for it: all their rows are written."""
        status, n = state[self._status], self._layout.count(state, "n")
        # A step that failed is tried again, once, if other coordinates would be better there.
        failed = (status == NOT_CLOSED) & (n > self._tried)
        self._tried = np.where(failed, n, self._tried)
        found = np.flatnonzero((status == REPARTITION) | failed)
        for name, value in (("status", RUNNING), ("live", 1.0), ("due", 0.0)):
            state[self._layout.place(name), found] = value
        return found


def driven(dynamics: Dynamics, layout: Layout, batch: Batch, on: Backend) -> Done:
    """All runs of a batch to their ends."""
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
    """The runs of one group: their rows lie in one array, and their blocks are made some at a time."""

    code: Compiled
    runs: Array
    room: Array  # for rows; lanes that nobody asked for have some that nobody touches
    left: dict[int, tuple[Array, Array]] = field(default_factory=dict)  # rows and counts, by the first of the runs

    def put(self, rows: Rows) -> None:
        """Hands the rows over, in one piece where none needed more room than there was."""
        n, parts = len(self.runs), sorted(self.left.items())
        if all(written.shape[1] == self.room.shape[1] for _, (written, _) in parts):
            rows.add(self.runs, self.room[:n], np.concatenate([counts for _, (_, counts) in parts])[:n])
            return
        for k, (written, counts) in parts:
            mine = self.runs[k : k + len(written)]
            rows.add(mine, written[: len(mine)], counts[: len(mine)])


@dataclass(eq=False)
class Lanes:
    """The backend for the CPU."""

    code: Callable[[Dynamics], Compiled]
    layout: Layout
    batch: Batch
    threads: int
    memory: Memory
    watch: ProgressTeller

    def __post_init__(self) -> None:
        self.state = self.layout.array(self.batch.runs, self.batch.first)

    def advance(self, groups: Sequence[Group], rows: Rows) -> bool:
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
        """Which runs are made together: whole blocks, not too many at once, and some for each thread."""
        lanes, n = share.code.lanes, len(share.runs)
        blocks = -(-n // lanes)
        each = blocks if self.threads == 1 else -(-blocks // (SHARE * self.threads))
        some = max(1, min(TOGETHER, each)) * lanes
        return [(k, some) for k in range(0, n, some)]

    def _part(self, share: Share, k: int, some: int) -> Blocks:
        return self._blocks(share.code, share.runs[k : k + some], share.room[k : k + some])

    def _blocks(self, code: Compiled, runs: Array, rows: Array, state: Array | None = None) -> Blocks:
        """Blocks of these runs, from where they are, or all from one state. Lanes that nobody asked for do what the
        last one does, and stop at once.
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
        code = self.code(by)
        one = self._blocks(code, np.array([run]), empty_buffer((code.lanes, 4, code.program.row)), state)
        while not one.done:
            one.advance()
        return one.state[:, 0].copy()
