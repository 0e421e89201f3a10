"""Takes runs to their ends, wherever they run, in as many passes as it takes: a run may ask to go on by other graphs.

Runs that go by the same graphs run together. One whose loops need other dependent coordinates stops by itself
(REPARTITION), and goes on in the next pass among those that need the same; its record is continued. How a pass is made
is the backend's business: lanes.py, gpu.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from bellcrank.graph import Layout
from bellcrank.graph.layout import NOT_CLOSED, REPARTITION, RUNNING
from bellcrank.sim import ferry
from bellcrank.sim.closure import Group
from bellcrank.sim.dynamics import Dynamics

Array = np.ndarray[Any, Any]


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
        self._status, self._n = layout.place("status"), layout.place("n")
        self._layout, self._last, self._known = layout, np.full(runs, -1), list[Dynamics]()
        self._tried, self._carried = np.full(runs, -1.0), np.full(runs, -1.0)

    def begin(self, group: Group) -> None:
        self._known += [group.by] if group.by not in self._known else []
        mine, before = self._known.index(group.by), self._last[group.members]
        self.switched[group.members] += (before >= 0) & (before != mine)
        self._last[group.members] = mine

    def stuck(self, state: Array) -> list[int]:
        """Runs that failed again, each once for every step that they failed at."""
        n = state[self._n]
        found = np.flatnonzero((state[self._status] == NOT_CLOSED) & (n <= self._tried) & (n > self._carried))
        self._carried[found] = n[found]
        return [int(k) for k in found]

    def waiting(self, state: Array) -> Array:
        """Runs that ask for another pass, with their state made ready for it: all their rows are written."""
        status, n = state[self._status], state[self._n]
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
