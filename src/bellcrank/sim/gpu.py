"""Runs all lanes on the GPU, each a thread with its state in registers (emit/cuda/loop.py).

As on the CPU (sim/lanes.py), a run whose loops ask for another partition goes on in the next pass. Rows come back to
ordinary memory part by part: where the GPU's memory does not hold those of all runs, it takes as many as fit; and where
a run has more rows than there is room for (nobody knows how many steps it will choose, or how often a ball bounces),
those that are there come back, and it goes on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit.cpu.loop import Program
from bellcrank.emit.cuda.device import DeviceError, Function, cupy, forget, free_bytes, out_of_memory
from bellcrank.emit.cuda.loop import Loop
from bellcrank.emit.cuda.looptext import START
from bellcrank.sim.dynamics import Traced
from bellcrank.sim.lanes import Done, Passes
from bellcrank.sim.layout import NOT_CLOSED, REPARTITION, Layout
from bellcrank.sim.memory import Memory
from bellcrank.sim.progress import Standing

Array = np.ndarray[Any, Any]
PAUSE = 0.2  # seconds between looks at Ctrl-C and at the progress
FIRST = 64  # ticks of the first launch, before anyone knows how long one takes
KEPT = 0.8  # of the free memory that one part of the runs may take
NOT_BEGUN = -1.0
FETCHED = ("t", "y", "input", "status", "n", "tried", "which", "h", "open", "summary")  # what sim/outcome.py reads


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
        self, s: Any, table: Array, p: Array, capacity: int, tell: Callable[[Any], bool]
    ) -> list[tuple[Array, Array]]:
        """Takes runs (columns of the state s, on the GPU) to their ends; gives pieces of their record.

        A piece has rows (some, row, runs) and how many of them each run wrote. `tell` sees the state now and then, or
        None after Ctrl-C, and says whether to go on.
        """
        cp, n, program = cupy(), s.shape[1], self.program
        one_p, one_table = same(p), same(table)  # of all runs, or for each its own, with the runs side by side
        free = cp.ascontiguousarray(cp.broadcast_to(cp.asarray(p[:1] if one_p else p, self.dtype).T, (p.shape[1], n)))
        lines = cp.asarray(table[0] if one_table else np.ascontiguousarray(np.moveaxis(table, 0, -1)), self.dtype)
        steps = (0, 1) if one_table else (1, n)
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
            try:
                launch(ticks)
                live, due = s[[program.live, program.due]] > 0
                going = bool((live | due).any())  # this waits for the GPU, and so it is here that Ctrl-C comes
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


def run_gpu(
    traced: Traced,
    code: Callable[[Traced], GpuProgram],
    places: Layout,
    first: Mapping[str, Any],
    table: Array,
    p: Array,
    capacity: int,
    memory: Memory,
    tell: Callable[[float], None] | None,
    seconds: float,
    standing: Standing | None = None,
) -> Done:
    """first: what the state of each run begins with, by field; the state itself is made on the GPU.

    Of the states at the end come back the fields that a record is made of, and all of a run that must go on.
    """
    runs, y = len(p), places.places["y"]
    assert isinstance(y, slice)
    pieces: list[list[Array]] = [[] for _ in range(runs if capacity else 0)]
    passes, final = Passes(runs), memory.rows((places.size, runs))
    whole, finished, waiting, done_so_far, begun = None, True, np.arange(runs), 0, False
    final[places.place("status")] = NOT_BEGUN

    def look(s: Any) -> bool:
        nonlocal finished
        try:
            if s is None:
                raise KeyboardInterrupt
            if tell is not None:
                live, t = s[places.place("live")] > 0, s[places.place("t")]
                clock = cupy().where(live, t, seconds)
                here, k = float(clock.min()) / seconds, int(clock.argmin())
                if standing is not None:
                    standing.see(here * seconds, float(s[places.place("h"), k]))
                tell((done_so_far + here * s.shape[1]) / runs)
        except KeyboardInterrupt:
            finished = False
        return finished

    def taken(by: Traced, made: GpuProgram, here: Array, few: Any) -> tuple[Any, list[tuple[Array, Array]]]:
        """Some runs to their ends: their states on the GPU, and pieces of their record."""
        if begun:
            # What numpy takes by a list of columns lies column by column, and the kernel sees memory, not strides.
            state = cupy().asarray(np.ascontiguousarray(final[:, few]), made.dtype)
        else:
            starts = first["y"][:1] if same(first["y"]) else first["y"][few]
            state = places.array(len(here), {**first, "y": starts}, cupy(), made.dtype)
        if "bound" in places.places:
            state[places.place("bound")] = cupy().asarray(by.bounds(at[here], p[waiting[here]]))
        lines, free = (x if same(x) else x[few] for x in (table, p))
        return state, made.finish(state, lines, free, capacity, look)

    while len(waiting) and finished:
        at = final[y, waiting].T if begun else first["y"]
        groups = traced.grouped(at, p[waiting] if begun else p)
        for by, members in groups.items():
            mine, made = waiting[members], code(by)
            passes.begin(mine, by)
            part, k = _part(made, capacity, table, p, len(mine)), 0
            while k < len(mine) and finished:
                here = members[k : k + part]
                few: Any = waiting[here] if len(here) < runs else slice(None)  # which copies nothing
                try:
                    state, found = taken(by, made, here, few)
                except out_of_memory() as error:
                    part = _less(len(here), error)
                    continue  # from where they were: nothing of it has come back
                k += len(here)
                _fetch(places, state, final, few)
                done_so_far += len(here)
                # nothing before it, nothing beside it
                alone = len(here) == runs and len(found) == 1 and not any(pieces)
                if alone and not made.program.observe and (found[0][1] == found[0][1][0]).all():
                    whole = np.ascontiguousarray(found[0][0].transpose(2, 0, 1)).astype(float)
                    pieces = [[x] for x in whole]
                    continue
                for rows, counts in found:
                    for lane, run in enumerate(waiting[here]):
                        pieces[run].append(rows[: counts[lane], :, lane].astype(float))
        waiting, begun = passes.waiting(places, final), True
        if len(waiting):
            whole, done_so_far = None, runs - len(waiting)
    rest = np.flatnonzero(final[places.place("status")] == NOT_BEGUN)
    if len(rest):  # interrupted before their turn came
        final[:, rest] = places.array(len(rest), {**first, "y": first["y"][rest]})
        for run in rest if capacity else ():
            pieces[run].append(np.empty((0, code(traced).program.row)))
    return Done(final, pieces if capacity else None, whole, passes.switched, finished)


def same(x: Array) -> bool:
    """Whether one line is there for all runs: nothing is looked at but how the array lies in memory."""
    return x.strides[0] == 0 or x.size == 0 or len(x) == 1


def _fetch(places: Layout, s: Any, final: Array, few: Any) -> None:
    """The states of some runs from the GPU: the fields of a record, and everything of runs that may go on."""
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


def _part(made: GpuProgram, capacity: int, table: Array, p: Array, runs: int) -> int:
    """Runs that fit the memory that is free."""
    own: int = sum(x[0].size for x in (table, p) if not same(x))  # inputs and parameters that differ from run to run
    each = (capacity * made.program.row + 3 * made.program.size + 2 * own) * (8 if made.dtype == "float64" else 4)
    fit = max(1, int(KEPT * free_bytes()) // each)
    if fit < runs:
        _say(runs, fit)
    return min(fit, runs)


def _less(runs: int, error: Exception) -> int:
    """Half as many at a time: memory that was free when they were counted is not, or not in one piece."""
    if runs == 1:
        raise DeviceError(
            f'the GPU\'s memory does not hold a single run ({error}). Keep fewer rows (every=, keep="final"), or free '
            "what others hold there."
        ) from None
    forget()
    _say(runs, runs // 2)
    return runs // 2


def _say(runs: int, fit: int) -> None:
    text = f"the rows of {runs} runs do not fit the GPU's memory; they are done {fit} at a time."
    warnings.warn(text, RuntimeWarning, stacklevel=6)
