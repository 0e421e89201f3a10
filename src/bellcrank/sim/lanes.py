"""Runs all lanes to their ends, in as many passes as it takes: a run may ask to go on by another partition.

Lanes that go by the same graphs run together. A lane whose loops need other dependent coordinates stops by itself
(REPARTITION), and goes on in the next pass among those that need the same; its record is continued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bellcrank.sim import ferry
from bellcrank.sim.dynamics import Traced
from bellcrank.sim.layout import NEVER, NOT_CLOSED, REPARTITION, RUNNING, Layout
from bellcrank.sim.memory import Memory
from bellcrank.sim.runner import Blocks, Compiled, run_all

Array = np.ndarray[Any, Any]
Code = Callable[[Traced], Compiled]
TOGETHER = 256  # blocks of lanes: a million runs are many, and few are there at once
SHARE = 4  # of a thread: as many parts, for not all take equally long


@dataclass(frozen=True, eq=False)
class Done:
    state: Array  # (size, runs)
    pieces: list[list[Array]] | None  # rows of each run, pass by pass; None where only the state is asked for
    whole: Array | None  # all rows (runs, rows, columns) where there was one pass and all have as many
    switched: Array  # how often each run changed its partition
    finished: bool


class Passes:
    """What runs went by, and which of them go on."""

    def __init__(self, runs: int) -> None:
        self.switched = np.zeros(runs, int)
        self._last, self._known = np.full(runs, -1), list[Traced]()
        self._tried, self._carried = np.full(runs, -1.0), np.full(runs, -1.0)

    def begin(self, runs: Array, by: Traced) -> None:
        self._known += [by] if by not in self._known else []
        mine, before = self._known.index(by), self._last[runs]
        self.switched[runs] += (before >= 0) & (before != mine)
        self._last[runs] = mine

    def stuck(self, places: Layout, state: Array) -> list[int]:
        """Runs that failed again, each once for every step that they failed at."""
        n = state[places.place("n")]
        found = np.flatnonzero((state[places.place("status")] == NOT_CLOSED) & (n <= self._tried) & (n > self._carried))
        self._carried[found] = n[found]
        return [int(k) for k in found]

    def waiting(self, places: Layout, state: Array) -> Array:
        """Runs that ask for another pass, with their state made ready for it: all their rows are written."""
        status, n = state[places.place("status")], state[places.place("n")]
        # A step that failed is tried again, once, if other coordinates would be better there.
        failed = (status == NOT_CLOSED) & (n > self._tried)
        self._tried = np.where(failed, n, self._tried)
        found = np.flatnonzero((status == REPARTITION) | failed)
        state[places.place("status"), found] = RUNNING
        state[places.place("live"), found] = 1.0
        state[places.place("due"), found] = 0.0
        return found


def run_lanes(
    traced: Traced,
    code: Code,
    places: Layout,
    state: Array,
    table: Array,
    p: Array,
    capacity: int,
    memory: Memory,
    threads: int,
    tell: Callable[[float], None] | None,
    share: Callable[[Blocks], float],
) -> Done:
    """capacity: rows of each run to begin with, or 0 where its state at the end is all; `state` becomes that."""
    runs = state.shape[1]
    y = places.places["y"]
    assert isinstance(y, slice)
    pieces: list[list[Array]] = [[] for _ in range(runs if capacity else 0)]
    final, whole, finished = state, None, True
    passes, waiting = Passes(runs), np.arange(runs)
    while len(waiting) and finished:
        groups = traced.grouped(final[y, waiting].T, p[waiting])
        blocks: list[tuple[Callable[[], Blocks], Array]] = []
        rows: dict[int, tuple[Array, Array]] = {}  # of each block, and how many there are
        for by, members in groups.items():
            mine, made = waiting[members], code(by)
            passes.begin(mine, by)
            if "bound" in places.places:
                final[places.place("bound"), mine] = by.bounds(final[y, mine].T, p[mine])
            # One array for all, and lanes that nobody asked for have rows that nobody touches.
            kept = memory.rows((-(-len(mine) // made.lanes) * made.lanes, capacity, made.program.row))
            some = _some(len(mine), made.lanes, threads)
            for k in range(0, len(mine), some):
                part, room = mine[k : k + some], kept[k : min(k + some, len(kept))]
                blocks.append((partial(_blocks, made, places, final, table, p, part, room), part))

        parts = [part for _, part in blocks]
        ended = partial(_keep, final, parts, rows if capacity else None)
        finished = run_all([make for make, _ in blocks], threads, tell, share, ended)
        for k, (written, counts) in sorted(rows.items()):
            for lane, run in enumerate(parts[k]):
                pieces[run].append(written[lane, : counts[lane]])
        alone = len(groups) == 1 and all(len(x) == 1 for x in pieces)  # in the first pass
        if capacity and alone and code(next(iter(groups))).program.observe is None:
            counts = np.concatenate([rows[k][1] for k in sorted(rows)])[:runs]
            if (counts == counts[0]).all() and counts[0] <= kept.shape[1]:
                whole = kept[:runs, : counts[0]]
        stuck = passes.stuck(places, final) if ferry.can_cross(traced, places) else []
        waiting = passes.waiting(places, final)
        for run in stuck:
            step = partial(_alone, code, places, table[run : run + 1], p[run : run + 1])
            behind = ferry.crossed(traced, places, final[:, run], p[run], step)
            if behind is not None:
                final[:, run], due = behind
                whole = None
                if capacity:
                    pieces[run].append(np.array(due).reshape(len(due), made.program.row))
                if final[places.place("live"), run] > 0.0:
                    waiting = np.append(waiting, run)
        whole = None if len(waiting) else whole
    return Done(final, pieces if capacity else None, whole, passes.switched, finished)


def _alone(code: Code, places: Layout, table: Array, p: Array, by: Traced, state: Array) -> Array:
    """One run to its end."""
    made = code(by)
    rows = np.empty((made.lanes, 4, made.program.row))
    one = _blocks(made, places, state[:, None], table, p, np.arange(1), rows)
    while not one.done:
        one.advance()
    return one.state[:, 0].copy()


def _keep(final: Array, parts: list[Array], rows: dict[int, tuple[Array, Array]] | None, k: int, block: Blocks) -> None:
    """What is left of blocks: their states, and their rows."""
    final[:, parts[k]] = block.state[:, : len(parts[k])]
    if rows is not None:
        rows[k] = block.rows, block.counts


def _some(runs: int, lanes: int, threads: int) -> int:
    """How many runs are made together: whole blocks, not too many at once, and some for each thread."""
    blocks = -(-runs // lanes)
    each = blocks if threads == 1 else -(-blocks // (SHARE * threads))
    return max(1, min(TOGETHER, each)) * lanes


def _blocks(code: Compiled, places: Layout, state: Array, table: Array, p: Array, part: Array, rows: Array) -> Blocks:
    """Some of the runs. Lanes that nobody asked for do what the last one does, and stop at once."""
    n = len(part)
    if more := -n % code.lanes:
        part = np.concatenate([part, np.repeat(part[-1:], more)])
    state, table, p = state[:, part], table[part], p[part]
    if more:
        state[places.place("live"), n:] = state[places.place("due"), n:] = 0.0
        if code.program.observe is not None:
            state[places.place("next"), n:] = NEVER
    return Blocks(code, state, p.T, table, rows)
