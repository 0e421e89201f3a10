"""A kernel on the GPU for a batch of large mechanisms: a thread for each state, in loops over alike bodies."""

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

LENT = 1 / 8  # of a GPU's memory, that somebody else may give for the workspace


class StateKernel(GpuKernel):
    """Call it with arrays; see `.graph`, `.source` (PTX), `.registers`."""

    share = 0.5  # the rest is for the workspace

    def __init__(self, about: About, made: LoopText) -> None:
        self._know(about)
        self.threads, self.code_size, self.room = 1, 0, made.room
        self._source = lambda: made.ptx
        self.function = self.convert
        self.states = Function(made.ptx, "many", LANES, 0, whole=True)

    @property
    def registers(self) -> dict[str, int]:
        """Of a thread, as the driver gave them; local: bytes that it spilled."""
        return {"given": self.states.registers, "local": self.states.local}

    @property
    def tiles(self) -> Sequence[int]:
        return range(len(self.signature.inputs) + len(self.signature.outputs))

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        dtype = self.signature.dtype
        count = blocks(rows, self.states, self.room, dtype)
        try:
            own = workspace(count, self.room, dtype)
        except out_of_memory() as error:
            raise DeviceMemoryError(
                f"{self.signature.name}: the GPU's memory does not hold what {LANES * count} states keep "
                f"for themselves ({error}). Free some of it, or give fewer states at a time."
            ) from None
        arrays = (x for a in given for x in (a, *map(np.uint32, strides(a))))
        self.states(count * LANES, np.int64(rows), *arrays, own, np.int64(count))

    # -- for who starts kernels by their addresses

    def filled(self, stream: int, rows: int, places: Sequence[int]) -> None:
        """In somebody's stream. places: the addresses of dense arrays of so many rows, inputs first, then results."""
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        count = blocks(rows, self.states, self.room, self.signature.dtype)
        with in_stream(stream):  # whose next allocation may have the same memory, and no other's
            own = workspace(count, self.room, self.signature.dtype)
            arrays = [x for place, s in zip(places, shapes, strict=True) for x in (place, math.prod(s), 1)]
            self.states.start(stream, count * LANES, [rows, *arrays, address(own), count])

    @property
    def in_rows(self) -> list[Function]:
        return [self.states]

    @cached_property
    def most(self) -> int:
        """Blocks at once, where somebody else gives the workspace."""
        each = LANES * self.room * np.dtype(self.signature.dtype).itemsize
        return max(1, min(resident(self.states.registers), int(LENT * total_bytes()) // each))

    def scratch(self, rows: int) -> int:
        """Numbers of the workspace for so many states."""
        return shared_out(rows, self.most) * LANES * self.room
