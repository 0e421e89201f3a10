"""Runs all lanes to their ends, in as many passes as it takes: a run may ask to go on by another partition.

Lanes that go by the same graphs run together. A lane whose loops need other dependent coordinates stops by itself
(REPARTITION), and goes on in the next pass among those that need the same; its record is continued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.sim.layout import NEVER, NOT_CLOSED, REPARTITION, RUNNING, Layout
from bellcrank.sim.memory import Memory
from bellcrank.sim.runner import Block, Compiled, run_all
from bellcrank.sim.traced import Traced

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Done:
    state: Array  # (size, runs)
    pieces: list[list[Array]]  # rows of each run, pass by pass
    whole: Array | None  # all rows (runs, rows, columns) where there was one pass and all have as many
    switched: Array  # how often each run changed its partition
    finished: bool


def run_lanes(
    traced: Traced,
    code: Callable[[Traced], Compiled],
    places: Layout,
    state: Array,
    table: Array,
    p: Array,
    capacity: int,
    memory: Memory,
    threads: int,
    tell: Callable[[float], None] | None,
    share: Callable[[Block], float],
) -> Done:
    runs = state.shape[1]
    y = places.places["y"]
    assert isinstance(y, slice)
    pieces: list[list[Array]] = [[] for _ in range(runs)]
    switched = np.zeros(runs, int)
    last: list[Traced | None] = [None] * runs
    final, whole, finished = state.copy(), None, True
    waiting, tried = np.arange(runs), np.full(runs, -1.0)
    while len(waiting) and finished:
        groups = traced.grouped(final[:, waiting], y, p[waiting])
        blocks: list[tuple[Block, Array]] = []
        for by, members in groups.items():
            mine, made = waiting[members], code(by)
            for run in mine:
                switched[run] += last[run] not in (None, by)
                last[run] = by
            if "bound" in places.places:
                final[places.place("bound"), mine] = by.bounds(final[y, mine].T, p[mine])
            # One array for all, and lanes that nobody asked for have rows that nobody touches.
            kept = memory.rows((-(-len(mine) // made.lanes) * made.lanes, capacity, made.program.row))
            for k in range(0, len(mine), made.lanes):
                part = mine[k : k + made.lanes]
                blocks.append(
                    (_block(made, places, final[:, part], table[part], p[part], kept[k : k + made.lanes]), part)
                )
        finished = run_all([b for b, _ in blocks], threads, tell, share)
        for block, part in blocks:
            final[:, part] = block.state[:, : len(part)]
            for lane, run in enumerate(part):
                pieces[run].append(block.rows[lane, : block.counts[lane]])
        alone = len(groups) == 1 and all(len(x) == 1 for x in pieces)  # in the first pass
        if alone and blocks[0][0].code.program.observe is None:
            counts = np.concatenate([b.counts for b, _ in blocks])[:runs]
            if (counts == counts[0]).all() and counts[0] <= kept.shape[1]:
                whole = kept[:runs, : counts[0]]
        status, n = final[places.place("status")], final[places.place("n")]
        # A step that failed is tried again, once, if other coordinates would be better there.
        failed = (status == NOT_CLOSED) & (n > tried)
        tried = np.where(failed, n, tried)
        waiting = np.flatnonzero((status == REPARTITION) | failed)
        if len(waiting):
            whole = None
            resume(places, final, waiting)
    return Done(final, pieces, whole, switched, finished)


def resume(places: Layout, state: Array, runs: Array) -> None:
    """Lanes that go on: all their rows are written."""
    state[places.place("status"), runs] = RUNNING
    state[places.place("live"), runs] = 1.0
    state[places.place("due"), runs] = 0.0


def _block(code: Compiled, places: Layout, state: Array, table: Array, p: Array, rows: Array) -> Block:
    """Lanes that nobody asked for do what the last one does, and stop at once."""
    lanes, n = code.lanes, state.shape[1]
    if n < lanes:
        state = np.concatenate([state, np.repeat(state[:, -1:], lanes - n, axis=1)], axis=1)
        table, p = (np.concatenate([a, np.repeat(a[-1:], lanes - n, axis=0)]) for a in (table, p))
        state[places.place("live"), n:] = state[places.place("due"), n:] = 0.0
        if code.program.observe is not None:
            state[places.place("next"), n:] = NEVER
    return Block(code, state, p.T, table, rows)
