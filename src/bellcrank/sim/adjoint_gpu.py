"""Runs and the weights back through them on the GPU: every run a thread, and notes stay in the GPU's memory.

A sweep leaves its rows as (room, row, runs), and that is how the next one reads a table of its own for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import cupy, fetched, free_bytes
from bellcrank.graph import Program
from bellcrank.sim.adjoint_sweeps import Swept, Task
from bellcrank.sim.gpu import KEPT, GpuProgram

Array = np.ndarray[Any, Any]
FULL = 2**14  # runs at once that keep a GPU busy: rather than fewer, steps are done again
ALL = 2**40  # ticks: until every run has stopped


@dataclass(eq=False)
class GpuThreads:
    """The place of adjoint_sweeps.py on the GPU. A table is its numbers, and how far those of the next run, and the
    next of one run, lie behind them.
    """

    code: Callable[[Program], GpuProgram]
    dtype: str
    runs: int

    @property
    def _free(self) -> int:
        """Numbers that the memory has room for."""
        return int(KEPT * free_bytes()) // (8 if self.dtype == "float64" else 4)

    def room(self, note: int) -> int:
        return self._free // (note * min(self.runs, FULL))

    def together(self, task: Task, note: int) -> int:
        own: int = task.table[0].size + task.parameters.shape[1]
        return max(1, min(task.runs, self._free // (note * (task.notes + 4) + own)))

    def state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        return program.layout.array(runs, values, cupy(), self.dtype)

    def given(self, task: Task) -> tuple[Any, Any]:
        """Turned round on the GPU, which is quicker at it; a table that is one for all runs goes there once."""
        parameters = self._turned(task.parameters)
        if task.table.strides[0] == 0:
            return (cupy().asarray(np.ascontiguousarray(task.table[0]), self.dtype), (0, 1)), parameters
        return (self._turned(task.table), (1, task.runs)), parameters

    def _turned(self, x: Array) -> Any:
        cp = cupy()
        return cp.ascontiguousarray(cp.moveaxis(cp.asarray(np.ascontiguousarray(x), self.dtype), 0, -1))

    def swept(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> Swept:
        cp, runs, (lines, steps) = cupy(), state.shape[1], table
        rows, counts = empty_buffer((room, program.row, runs), self.dtype, cp), cp.zeros(runs, cp.int64)
        self.code(program).go(ALL, state, parameters, lines, steps, rows, room, counts)
        return Swept(state, (rows, (1, runs)), int(cp.asnumpy(counts)[0]))

    def row(self, rows: Any, k: int) -> Any:
        return rows[0][k]

    def rows(self, found: Swept) -> Array:
        cp = cupy()
        there = cp.ascontiguousarray(cp.moveaxis(found.rows[0][: found.count][::-1], -1, 0))
        array: Array = fetched(there).astype(float, copy=False)
        return array

    def numbers(self, x: Any) -> Array:
        array: Array = np.asarray(fetched(x), float)
        return array
