"""A kernel on the GPU for a batch of large mechanisms: a thread for each state, in loops over alike bodies.

States go there and back in blocks of 32, with the same number of all of them side by side. As many are done at once as
there is memory for what the loops keep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cuda.device import DeviceMemoryError, Function, adopted, cupy, free_bytes, on_gpu, out_of_memory
from bellcrank.emit.cuda.state_loops import LANES, LoopText
from bellcrank.emit.target import About, Shape
from bellcrank.errors import InputError

MEMORY_SHARE = 0.7  # of the free memory, for the workspace and the arrays
MOST_BLOCKS = 132 * 32 * 4  # at once: four times as many as can be at work, so that few wait for the last ones


class StateKernel(Kernel):
    """Call it with arrays of numpy or of the GPU."""

    target = "cuda"

    def __init__(self, about: About, made: LoopText) -> None:
        self._know(about)
        self.threads, self.code_size, self.room = 1, 0, made.room
        self._source = lambda: made.ptx
        self.function = self.convert
        self.states = Function(made.ptx, "states", LANES, 0)

    def __repr__(self) -> str:
        return f"<Kernel {self.signature.name} by {self.method}, {self.signature.dtype}, on the GPU>"

    def convert(self, *args: Any, out: Any = None, **named: Any) -> Any:
        if out is not None:
            raise InputError(f"{self.signature.name}: out= is not for kernels of loops over alike bodies on a GPU.")
        other = self._extend(named) if named and self._extend is not None else None
        if other is not None:  # keywords that ask for another kernel
            return other[0].convert(*args, **other[1])
        values = self._bind(args, named)
        device = any(on_gpu(values[name]) for name in self.signature.inputs)
        arrays = {name: self._given(name, values[name], device) for name in self.signature.inputs}
        batch = self._batch(arrays)
        (shape,) = self.signature.outputs.values()
        found = self._done(arrays, batch, math.prod(shape)).reshape(*batch, *shape)
        if device:
            return found
        result = cupy().asnumpy(found)
        if not np.isfinite(result).all():
            self._explain(arrays)
        return result

    def _given(self, name: str, value: Any, device: bool) -> Any:
        if not device:
            return self._array(name, value)
        found = adopted(value, f'{self.signature.name}: input "{name}"')
        self._fits(name, found)
        return found.astype(self.signature.dtype, copy=False)

    def _done(self, arrays: Mapping[str, Any], batch: Shape, size: int) -> Any:
        """(rows, size), in parts that fit the memory."""
        cp, s, rows = cupy(), self.signature, math.prod(batch)
        sizes = {name: math.prod(shape) for name, shape in s.inputs.items()}
        flat = {name: self._flat(cp.asarray(a), s.inputs[name], batch, rows) for name, a in arrays.items()}
        try:
            found = cp.empty((rows, size), s.dtype)
            blocks = self._blocks(rows, sum(sizes.values()) + size)
            ws = cp.empty(blocks * LANES * self.room, s.dtype)
            for start in range(0, rows, blocks * LANES):
                end = min(rows, start + blocks * LANES)
                given = [self._sideways(a, start, end, sizes[name]) for name, a in flat.items()]
                result = cp.empty((-(-(end - start) // LANES), size, LANES), s.dtype)
                self.states(end - start, np.int64(end - start), ws, *given, result)
                found[start:end] = result.transpose(0, 2, 1).reshape(-1, size)[: end - start]
        except out_of_memory() as error:
            raise DeviceMemoryError(
                f"{s.name}: {rows} states do not fit the GPU's memory ({error}). Give fewer at a time."
            ) from None
        return found

    def _blocks(self, rows: int, numbers: int) -> int:
        """Blocks of states that are done at once."""
        each = LANES * (self.room + 2 * numbers) * np.dtype(self.signature.dtype).itemsize
        return max(1, min(-(-rows // LANES), MOST_BLOCKS, int(MEMORY_SHARE * free_bytes()) // each))

    def _flat(self, a: Any, shape: Shape, batch: Shape, rows: int) -> Any:
        """(rows, size), or (1, size) for all rows alike."""
        if a.ndim == len(shape):
            return a.reshape(1, -1)
        return cupy().broadcast_to(a, (*batch, *shape)).reshape(rows, -1)

    def _sideways(self, a: Any, start: int, end: int, size: int) -> Any:
        """(blocks, size, 32): some rows, and as many of no meaning as fill up the last block."""
        cp, blocks = cupy(), -(-(end - start) // LANES)
        found = cp.zeros((blocks * LANES, size), self.signature.dtype)
        found[: end - start] = a if len(a) == 1 else a[start:end]
        return cp.ascontiguousarray(found.reshape(blocks, LANES, size).transpose(0, 2, 1))
