"""GPU kernel for a batch of large mechanisms: one thread per state, with rolled loops over link classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import DeviceMemoryError, Function, address, in_stream, out_of_memory, total_bytes
from bellcrank.emit.cuda.gpu_kernel import GpuKernel, strides
from bellcrank.emit.cuda.lane_text import LANES
from bellcrank.emit.cuda.state_loops import LoopText
from bellcrank.emit.cuda.workspace import blocks, resident, shared_out, workspace
from bellcrank.emit.target import About

LENT = 1 / 8  # share of a GPU's memory that a caller may provide as workspace


class StateKernel(GpuKernel):
    """Kernel on the GPU, called with arrays; see `.graph`, `.source` (PTX), `.registers`."""

    share = 0.5  # the rest is for the workspace

    def __init__(self, about: About, made: LoopText) -> None:
        self._know(about)
        self.threads, self.code_size, self.room = 1, 0, made.room
        self._source = lambda: made.ptx
        self.function = self.convert
        self.states = Function(made.ptx, "many", LANES, 0, whole=True)

    @property
    def registers(self) -> dict[str, int]:
        """Registers of a thread ("given" by the driver), and the bytes that it spilled ("local")."""
        return {"given": self.states.registers, "local": self.states.local}

    @property
    def tiles(self) -> Sequence[int]:
        """Indices of all arrays, inputs first: every thread copies its own row, so any layout will do."""
        return range(len(self.signature.inputs) + len(self.signature.outputs))

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        """Compute `rows` states in a new workspace; `given` has inputs and results as (rows, size)."""
        dtype = self.signature.dtype
        count = blocks(rows, self.states, self.room, dtype)
        try:
            own = workspace(count, self.room, dtype)
        except out_of_memory() as error:
            raise DeviceMemoryError(
                f"{self.signature.name}: the workspace of {LANES * count} states does not fit into the GPU's memory "
                f"({error}). Free some memory, or pass fewer states at a time."
            ) from None
        arrays = (x for a in given for x in (a, *map(np.uint32, strides(a))))
        self.states(count * LANES, np.int64(rows), *arrays, own, np.int64(count))

    # -- for callers that launch kernels by address

    def filled(self, stream: int, rows: int, places: Sequence[int]) -> None:
        """Launch the kernel in a stream of the caller, on dense row-major arrays.

        Parameters
        ----------
        stream
            Address of the CUDA stream.
        rows
            Number of states.
        places
            Addresses of the arrays, inputs first, then results.
        """
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        count = blocks(rows, self.states, self.room, self.signature.dtype)
        with in_stream(stream):  # only the next allocation in this stream may reuse the memory
            own = workspace(count, self.room, self.signature.dtype)
            arrays = [x for place, s in zip(places, shapes, strict=True) for x in (place, math.prod(s), 1)]
            self.states.start(stream, count * LANES, [rows, *arrays, address(own), count])

    @property
    def in_rows(self) -> list[Function]:
        """Functions for arrays that are all row-major."""
        return [self.states]

    @cached_property
    def most(self) -> int:
        """Maximum number of blocks, where the caller provides the workspace."""
        each = LANES * self.room * np.dtype(self.signature.dtype).itemsize
        return max(1, min(resident(self.states.registers), int(LENT * total_bytes()) // each))

    def scratch(self, rows: int) -> int:
        """Return the number of workspace elements for `rows` states."""
        return shared_out(rows, self.most) * LANES * self.room
