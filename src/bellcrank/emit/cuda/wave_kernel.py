"""GPU kernel for one large mechanism: its runs are divided among threads, state after state (waves.py)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.buffers import poisoned
from bellcrank.emit.cuda.device import DeviceFunction, cupy
from bellcrank.emit.cuda.gpu_kernel import GpuKernel
from bellcrank.emit.cuda.waves import THREADS_PER_BLOCK, WaveText
from bellcrank.emit.target import About

Array = np.ndarray[Any, Any]


def pack_wave_text(code: WaveText) -> dict[str, Any]:
    """Return the code `code` as a dictionary for JSON."""
    return {name: _packed(x) for name, x in vars(code).items()}


def unpack_wave_text(facts: Mapping[str, Any]) -> WaveText:
    """Return the code from its dictionary `facts`."""
    return WaveText(**{name: _unpacked(x) for name, x in facts.items()})


def _packed(x: Array | str | int) -> Any:
    """Return a number as it is, a text compressed, and an array as its type, its shape and its compressed bytes."""
    if isinstance(x, int):
        return x
    raw = x.encode() if isinstance(x, str) else x.tobytes()
    text = base64.b64encode(zlib.compress(raw)).decode()
    return text if isinstance(x, str) else [str(x.dtype), list(x.shape), text]


def _unpacked(x: Any) -> Any:
    if isinstance(x, int):
        return x
    raw = zlib.decompress(base64.b64decode(x if isinstance(x, str) else x[2]))
    return raw.decode() if isinstance(x, str) else np.frombuffer(raw, x[0]).reshape(x[1])


class WaveEngine:
    """Buffers for one state on the GPU, and one launch whose blocks are all resident at the same time."""

    def __init__(self, code: WaveText, inputs: Mapping[str, int], output: int, dtype: str) -> None:
        cp = cupy()
        self.function = DeviceFunction(code.ptx, "phases", THREADS_PER_BLOCK, code.shared)
        self.blocks = min(code.blocks, cp.cuda.Device().attributes["MultiProcessorCount"])
        self.inputs = {name: cp.zeros(size, dtype) for name, size in inputs.items()}
        self.result = poisoned(cp.zeros(output, dtype))
        tables = (poisoned(cp.zeros(code.room, dtype)), cp.asarray(code.whole), cp.asarray(code.numbers))
        rows = (np.int32(0), np.int32(len(code.plan)), np.int32(self.blocks), cp.zeros(2, np.int32))
        self.arguments = (*tables, *self.inputs.values(), self.result, cp.asarray(code.plan), *rows)
        self.stream = cp.cuda.Stream(non_blocking=True)
        cp.cuda.Device().synchronize()  # the zero fills must be complete before another stream reads

    def __call__(self) -> None:
        """Compute self.result from self.inputs, on the engine's own stream."""
        with self.stream:
            self.function(self.blocks * THREADS_PER_BLOCK, *self.arguments)


class WaveKernel(GpuKernel):
    """Kernel called with arrays, in which the whole GPU computes each state."""

    def __init__(self, about: About, code: WaveText) -> None:
        super().__init__(about, lambda: code.ptx)
        (output,) = self.signature.outputs.values()
        sizes = {name: shape[0] for name, shape in self.signature.inputs.items()}
        self.engine = WaveEngine(code, sizes, output[0], self.signature.dtype)

    def __repr__(self) -> str:
        return f"<Kernel {self.signature.name} by {self.method}, {self.signature.dtype}, all of the GPU for a state>"

    @property
    def tiles(self) -> Sequence[int]:
        """Indices of all arrays: any layout is copied."""
        return range(len(self.signature.inputs) + 1)

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        """Compute `rows` states one after the other; `given` has inputs and the result as (rows, size)."""
        engine, (*inputs, result) = self.engine, given
        cupy().cuda.get_current_stream().synchronize()  # the arrays must be complete
        with engine.stream:
            for k in range(rows):
                for place, a in zip(engine.inputs.values(), inputs, strict=True):
                    place[...] = a[k if len(a) > 1 else 0]
                engine()
                result[k] = engine.result
        engine.stream.synchronize()
