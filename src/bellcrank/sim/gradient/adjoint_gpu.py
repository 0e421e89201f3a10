"""Adjoint sweeps on the GPU: one thread per run; the notes of all steps stay in GPU memory.

A sweep leaves its rows as (room, row, runs), the layout in which the next sweep reads a table of inputs for each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import cupy, free_bytes, to_numpy
from bellcrank.graph import Program
from bellcrank.sim.gradient.adjoint_sweeps import AdjointTask, SweepResult
from bellcrank.sim.run.gpu_runs import MEMORY_SHARE, GpuProgram

Array = np.ndarray[Any, Any]
BUSY_RUNS = 2**14  # runs at once that keep a GPU busy; recomputing steps is better than launching fewer
UNLIMITED_TICKS = 2**40  # ticks: more than any run has, so that a launch ends when every run has stopped


@dataclass(eq=False)
class GpuSweeps:
    """GPU backend of the adjoint sweeps (`SweepBackend` in adjoint_sweeps.py).

    A table of inputs is a pair: its numbers, and the distances in memory between neighbouring runs and between
    neighbouring lines of one run.
    """

    code: Callable[[Program], GpuProgram]
    dtype: str
    runs: int

    @property
    def _free_numbers(self) -> int:
        """Floating-point numbers for which there is free GPU memory."""
        return int(MEMORY_SHARE * free_bytes()) // (8 if self.dtype == "float64" else 4)

    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""
        return self._free_numbers // (note * min(self.runs, BUSY_RUNS))

    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` fit into memory at once; `note` is the number of elements of one note."""
        numbers_per_run: int = task.table[0].size + task.parameters.shape[1]
        return max(1, min(task.runs, self._free_numbers // (note * (task.note_count + 4) + numbers_per_run)))

    def initial_state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        """Return an initial state of `runs` runs of `program` on the GPU, with `values` by field."""
        return program.layout.array(runs, values, cupy(), self.dtype)

    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the inputs and the parameters of `task` on the GPU.

        They are transposed there, which is faster than on the CPU; a table that all runs share is copied once.
        """
        parameters = self._transposed(task.parameters)
        if task.table.strides[0] == 0:
            return (cupy().asarray(np.ascontiguousarray(task.table[0]), self.dtype), (0, 1)), parameters
        return (self._transposed(task.table), (1, task.runs)), parameters

    def _transposed(self, x: Array) -> Any:
        cp = cupy()
        return cp.ascontiguousarray(cp.moveaxis(cp.asarray(np.ascontiguousarray(x), self.dtype), 0, -1))

    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs, as `transferred_inputs` or an earlier sweep leaves them.
        parameters
            Free parameters, (np, runs).
        room
            Capacity, in rows of each run.
        """
        cp, runs, (lines, steps) = cupy(), state.shape[1], table
        rows, counts = empty_buffer((room, program.row, runs), self.dtype, cp), cp.zeros(runs, cp.int64)
        self.code(program).launch(UNLIMITED_TICKS, state, parameters, lines, steps, rows, room, counts)
        return SweepResult(state, (rows, (1, runs)), int(cp.asnumpy(counts)[0]))

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs), on the GPU."""
        return rows[0][k]

    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result` on the host, the last first, (runs, count, row)."""
        cp = cupy()
        device_rows = cp.ascontiguousarray(cp.moveaxis(result.rows[0][: result.count][::-1], -1, 0))
        array: Array = to_numpy(device_rows).astype(float, copy=False)
        return array

    def to_host(self, x: Any) -> Array:
        """Return `x` as a float64 array on the host."""
        array: Array = np.asarray(to_numpy(x), float)
        return array
