"""GPU kernel for one large mechanism: its runs are divided among threads, state after state (waves.py)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.buffers import poisoned
from bellcrank.emit.cuda.device import Function, cupy
from bellcrank.emit.cuda.gpu_kernel import GpuKernel
from bellcrank.emit.cuda.waves import THREADS, WaveText
from bellcrank.emit.target import About

Array = np.ndarray[Any, Any]


def packed(made: WaveText) -> dict[str, Any]:
    """Return the code `made` as a dictionary for JSON."""
    arrays = {"whole": made.whole, "numbers": made.numbers, "plan": made.plan}
    text = {name: [str(a.dtype), list(a.shape), _coded(a.tobytes())] for name, a in arrays.items()}
    sizes = {"blocks": made.blocks, "shared": made.shared, "room": made.room}
    return {"ptx": _coded(made.ptx.encode()), **sizes, **text}


def unpacked(facts: Mapping[str, Any]) -> WaveText:
    """Return the code from its dictionary `facts`."""
    whole, numbers, plan = (_array(*facts[name]) for name in ("whole", "numbers", "plan"))
    blocks, shared, room = (int(facts[name]) for name in ("blocks", "shared", "room"))
    return WaveText(_decoded(facts["ptx"]).decode(), whole, numbers, plan, blocks, shared, room)


def _array(dtype: str, shape: list[int], raw: str) -> Array:
    return np.frombuffer(_decoded(raw), dtype).reshape(shape)


def _coded(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


def _decoded(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


class Engine:
    """Buffers for one state on the GPU, and one launch whose blocks are all resident at the same time."""

    def __init__(self, made: WaveText, inputs: Mapping[str, int], output: int, dtype: str) -> None:
        cp = cupy()
        self.function = Function(made.ptx, "phases", THREADS, made.shared)
        self.blocks = min(made.blocks, cp.cuda.Device().attributes["MultiProcessorCount"])
        self.inputs = {name: cp.zeros(size, dtype) for name, size in inputs.items()}
        self.result = poisoned(cp.zeros(output, dtype))
        tables = (poisoned(cp.zeros(made.room, dtype)), cp.asarray(made.whole), cp.asarray(made.numbers))
        rows = (np.int32(0), np.int32(len(made.plan)), np.int32(self.blocks), cp.zeros(2, np.int32))
        self.arguments = (*tables, *self.inputs.values(), self.result, cp.asarray(made.plan), *rows)
        self.stream = cp.cuda.Stream(non_blocking=True)
        cp.cuda.Device().synchronize()  # the zero fills must be complete before another stream reads

    def __call__(self) -> None:
        """Compute self.result from self.inputs, on the engine's own stream."""
        with self.stream:
            self.function(self.blocks * THREADS, *self.arguments)


class WaveKernel(GpuKernel):
    """Kernel called with arrays, in which the whole GPU computes each state."""

    def __init__(self, about: About, made: WaveText) -> None:
        self._know(about)
        self.threads, self.code_size = 1, 0
        self._source = lambda: made.ptx
        self.function = self.convert
        (output,) = self.signature.outputs.values()
        sizes = {name: shape[0] for name, shape in self.signature.inputs.items()}
        self.engine = Engine(made, sizes, output[0], self.signature.dtype)

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
