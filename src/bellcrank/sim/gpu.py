"""Runs all lanes on the GPU, each a thread with its state in registers (emit/cuda/loop.py).

As on the CPU (sim/lanes.py), a run whose loops ask for another partition goes on in the next pass. Rows come back to
ordinary memory part by part: where the GPU's memory does not hold those of all runs, it takes as many as fit.
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
from bellcrank.emit.cuda.procedure import results
from bellcrank.emit.cuda.straight import Straight
from bellcrank.emit.inline import inlined
from bellcrank.emit.loop import Program
from bellcrank.graph import Node
from bellcrank.sim.lanes import Done, resume
from bellcrank.sim.layout import REPARTITION, Layout
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

    @cached_property
    def start(self) -> Function | None:
        """What completes a state before the first tick; None where there is nothing to complete."""
        graph = inlined(self.program.start)
        flat = results(graph)
        if all(isinstance(x, Node) and x.op == "input" and x.args == ("s", k) for k, x in enumerate(flat)):
            return None
        made = Straight(graph, self.dtype)
        return Function(made.ptx, "many", made.plan.threads, made.shared, made.plan.states)

    def finish(
        self, state: Array, table: Array, p: Array, capacity: int, tell: Callable[[Array], bool]
    ) -> tuple[Array, Array, Array]:
        """Takes runs (columns of the state) to their ends: state, rows (capacity, row, runs) and how many there are.

        `tell` sees the state now and then, and says whether to go on.
        """
        cp, n, program = cupy(), state.shape[1], self.program
        s, free = (cp.asarray(np.ascontiguousarray(x), self.dtype) for x in (state, p.T))
        alike = bool((table == table[:1]).all())  # one table for all, or one for each with the runs side by side
        lines = cp.asarray(table[0] if alike else np.ascontiguousarray(np.moveaxis(table, 0, -1)), self.dtype)
        steps = (0, 1) if alike else (1, n)
        rows = cp.empty((capacity, program.row, n), self.dtype)
        counts = cp.zeros(n, cp.int64)
        if self.start is not None:
            given = {"s": (s, 1, n), "p": (free, 1, n), "u": (lines[0], *steps)}
            out = cp.empty_like(s)
            flat = [x for name in program.start.inputs for x in (given[name][0], *map(np.uint32, given[name][1:]))]
            self.start(n, np.int64(n), *flat, out, np.uint32(1), np.uint32(n))
            s = out
        ticks, going = FIRST, True
        while going:
            began = time.perf_counter()
            self.run(
                n, np.int64(n), np.int64(ticks), s, free, lines, *map(np.int64, steps), rows, np.int64(capacity), counts
            )
            now = s[[program.live, program.due]]
            going = bool((now > 0).any())
            took = time.perf_counter() - began
            ticks = max(1, min(8 * ticks, int(ticks * PAUSE / max(took, 1e-9))))
            going = going and tell(s)
        return cp.asnumpy(s).astype(float), cp.asnumpy(rows), cp.asnumpy(counts)


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
    switched, final = np.zeros(runs, int), state.copy()
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
            if "bound" in places.places:
                final[places.place("bound"), mine] = by.bounds(final[y, mine].T, p[mine])
            part = _part(made, capacity, len(mine))
            for k in range(0, len(mine), part):
                few = mine[k : k + part]
                final[:, few], rows, counts = made.finish(final[:, few], table[few], p[few], capacity, look)
                done_so_far += len(few)
                if len(few) == runs and (counts == counts[0]).all():
                    whole = np.ascontiguousarray(rows[: counts[0]].transpose(2, 0, 1)).astype(float)
                    pieces = [[x] for x in whole]
                else:
                    for lane, run in enumerate(few):
                        pieces[run].append(rows[: counts[lane], :, lane].astype(float))
        asks = final[places.place("status")] == REPARTITION
        waiting = np.flatnonzero(asks)
        switched[waiting] += 1
        if len(waiting):
            whole, done_so_far = None, runs - len(waiting)
            resume(places, final, waiting)
    return Done(final, pieces, whole, switched, finished)


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
