"""Runs all lanes on the GPU, each a thread with its state in registers (emit/cuda/loop.py).

As on the CPU (sim/lanes.py), a run whose loops ask for another partition goes on in the next pass. Rows come back to
ordinary memory part by part: where the GPU's memory does not hold those of all runs, it takes as many as fit; and where
a run has more rows than there is room for (nobody knows how many steps it will choose, or how often a ball bounces),
those that are there come back, and it goes on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import Function, cupy, free_bytes
from bellcrank.emit.cuda.loop import Loop
from bellcrank.emit.cuda.looptext import START
from bellcrank.emit.loop import Program
from bellcrank.sim.lanes import Done, Passes
from bellcrank.sim.layout import Layout
from bellcrank.sim.traced import Traced

Array = np.ndarray[Any, Any]
PAUSE = 0.2  # seconds between looks at Ctrl-C and at the progress
FIRST = 64  # ticks of the first launch, before anyone knows how long one takes
KEPT = 0.8  # of the free memory that one part of the runs may take


@dataclass(frozen=True, eq=False)
class GpuProgram:
    """A program on the GPU."""

    program: Program
    dtype: str

    @cached_property
    def loop(self) -> Loop:
        return Loop(self.program, self.dtype)

    @cached_property
    def run(self) -> Function:
        return Function(self.loop.ptx, "run", self.loop.threads, self.loop.shared)

    def finish(
        self, state: Array, table: Array, p: Array, capacity: int, tell: Callable[[Array], bool]
    ) -> tuple[Array, list[tuple[Array, Array]]]:
        """Takes runs (columns of the state) to their ends: state, and pieces of their record.

        A piece has rows (some, row, runs) and how many of them each run wrote. `tell` sees the state now and then, and
        says whether to go on.
        """
        cp, n, program = cupy(), state.shape[1], self.program
        s, free = (cp.asarray(np.ascontiguousarray(x), self.dtype) for x in (state, p.T))
        alike = bool((table == table[:1]).all())  # one table for all, or one for each with the runs side by side
        lines = cp.asarray(table[0] if alike else np.ascontiguousarray(np.moveaxis(table, 0, -1)), self.dtype)
        steps = (0, 1) if alike else (1, n)
        rows = cp.empty((capacity, program.row, n), self.dtype)
        counts = cp.zeros(n, cp.int64)
        pieces: list[tuple[Array, Array]] = []

        def launch(ticks: int) -> None:
            numbers = map(np.int64, steps)
            self.run(n, np.int64(n), np.int64(ticks), s, free, lines, *numbers, rows, np.int64(capacity), counts)

        def emptied() -> None:
            pieces.append((cp.asnumpy(rows[: int(counts.max())]), cp.asnumpy(counts)))
            counts.fill(0)

        if self.loop.begins:
            launch(START)
        ticks, going = FIRST, True
        while going:
            began = time.perf_counter()
            launch(ticks)
            live, due = s[[program.live, program.due]] > 0
            going = bool((live | due).any())
            if bool((due & (counts >= capacity)).any()):
                emptied()
            took = time.perf_counter() - began
            ticks = max(1, min(8 * ticks, int(ticks * PAUSE / max(took, 1e-9))))
            going = going and tell(s)
        emptied()
        return cp.asnumpy(s).astype(float), pieces


def run_gpu(
    traced: Traced,
    code: Callable[[Traced], GpuProgram],
    places: Layout,
    state: Array,
    table: Array,
    p: Array,
    capacity: int,
    tell: Callable[[float], None] | None,
    seconds: float,
) -> Done:
    runs, y = state.shape[1], places.places["y"]
    assert isinstance(y, slice)
    pieces: list[list[Array]] = [[] for _ in range(runs)]
    passes, final = Passes(runs), state.copy()
    whole, finished, waiting, done_so_far = None, True, np.arange(runs), 0

    def look(s: Any) -> bool:
        nonlocal finished
        try:
            if tell is not None:
                live, t = s[places.place("live")] > 0, s[places.place("t")]
                here = float(cupy().where(live, t, seconds).min()) / seconds
                tell((done_so_far + here * s.shape[1]) / runs)
        except KeyboardInterrupt:
            finished = False
        return finished

    while len(waiting) and finished:
        groups = traced.grouped(final[:, waiting], y, p[waiting])
        for by, members in groups.items():
            mine, made = waiting[members], code(by)
            passes.begin(mine, by)
            if "bound" in places.places:
                final[places.place("bound"), mine] = by.bounds(final[y, mine].T, p[mine])
            part = _part(made, capacity, len(mine))
            for k in range(0, len(mine), part):
                few = mine[k : k + part]
                final[:, few], found = made.finish(final[:, few], table[few], p[few], capacity, look)
                done_so_far += len(few)
                rows, counts = found[0]
                alone = len(few) == runs and len(found) == 1 and not any(pieces)  # nothing before it, nothing beside it
                if alone and not made.program.observe and (counts == counts[0]).all():
                    whole = np.ascontiguousarray(rows.transpose(2, 0, 1)).astype(float)
                    pieces = [[x] for x in whole]
                    continue
                for rows, counts in found:
                    for lane, run in enumerate(few):
                        pieces[run].append(rows[: counts[lane], :, lane].astype(float))
        waiting = passes.waiting(places, final)
        if len(waiting):
            whole, done_so_far = None, runs - len(waiting)
    return Done(final, pieces, whole, passes.switched, finished)


def _part(made: GpuProgram, capacity: int, runs: int) -> int:
    """Runs that fit the memory that is free."""
    each = (capacity * made.program.row + 3 * made.program.size) * (8 if made.dtype == "float64" else 4)
    fit = max(1, int(KEPT * free_bytes()) // each)
    if fit < runs:
        warnings.warn(
            f"the rows of {runs} runs do not fit the GPU's memory; they are done {fit} at a time.",
            RuntimeWarning,
            stacklevel=5,
        )
    return min(fit, runs)
