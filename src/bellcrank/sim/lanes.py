"""Runs on the CPU: in blocks of lanes, some blocks made together, on one or more threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bellcrank.graph import Layout
from bellcrank.graph.layout import NEVER
from bellcrank.sim.closure import Group
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.memory import Memory
from bellcrank.sim.progress import ProgressTeller
from bellcrank.sim.run import Batch, Rows
from bellcrank.sim.runner import Blocks, Compiled, run_all

Array = np.ndarray[Any, Any]
TOGETHER = 256  # blocks of lanes: a million runs are many, and few are there at once
SHARE = 4  # of a thread: as many parts, for not all take equally long


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
    """The backend of run.py for the CPU."""

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
        one = self._blocks(code, np.array([run]), np.empty((code.lanes, 4, code.program.row)), state)
        while not one.done:
            one.advance()
        return one.state[:, 0].copy()
