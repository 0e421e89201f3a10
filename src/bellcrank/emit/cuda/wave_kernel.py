"""A kernel on the GPU for one large mechanism: its runs are shared out among threads, state after state (waves.py)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cuda.device import Function, adopted, cupy, on_gpu
from bellcrank.emit.cuda.waves import THREADS, WaveText
from bellcrank.emit.target import About, Shape
from bellcrank.errors import InputError

Array = np.ndarray[Any, Any]


def packed(made: WaveText) -> dict[str, Any]:
    """As JSON can hold it."""
    arrays = {"whole": made.whole, "numbers": made.numbers, "plan": made.plan}
    text = {name: [str(a.dtype), list(a.shape), _coded(a.tobytes())] for name, a in arrays.items()}
    sizes = {"blocks": made.blocks, "shared": made.shared, "room": made.room}
    return {"ptx": _coded(made.ptx.encode()), **sizes, **text}


def unpacked(facts: Mapping[str, Any]) -> WaveText:
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
    """One state on the GPU: arrays of its own, and one launch, whose blocks are all at work at the same time."""

    def __init__(self, made: WaveText, inputs: Mapping[str, int], output: int, dtype: str) -> None:
        cp = cupy()
        self.function = Function(made.ptx, "phases", THREADS, made.shared)
        self.blocks = min(made.blocks, cp.cuda.Device().attributes["MultiProcessorCount"])
        self.inputs = {name: cp.zeros(size, dtype) for name, size in inputs.items()}
        self.result = cp.zeros(output, dtype)
        tables = (cp.zeros(made.room, dtype), cp.asarray(made.whole), cp.asarray(made.numbers))
        rows = (np.int32(0), np.int32(len(made.plan)), np.int32(self.blocks), cp.zeros(2, np.int32))
        self.arguments = (*tables, *self.inputs.values(), self.result, cp.asarray(made.plan), *rows)
        self.stream = cp.cuda.Stream(non_blocking=True)
        cp.cuda.Device().synchronize()  # what was set to zero is so before another stream looks

    def __call__(self) -> None:
        """From self.inputs to self.result; on its own stream."""
        with self.stream:
            self.function(self.blocks * THREADS, *self.arguments)


class WaveKernel(Kernel):
    """Call it with arrays of numpy or of the GPU; each state is computed by the whole GPU."""

    target = "cuda"

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

    def convert(self, *args: Any, out: Any = None, **named: Any) -> Any:
        if out is not None:
            raise InputError(f"{self.signature.name}: out= is not for kernels that share out a state on a GPU.")
        values = self._bind(args, named)
        device = any(on_gpu(values[name]) for name in self.signature.inputs)
        arrays = {name: self._given(name, values[name], device) for name in self.signature.inputs}
        batch = self._batch(arrays)
        (shape,) = self.signature.outputs.values()
        found = self._states(arrays, batch, shape)
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

    def _states(self, arrays: Mapping[str, Any], batch: Shape, shape: Shape) -> Any:
        cp, engine = cupy(), self.engine
        found = cp.empty((*batch, *shape), self.signature.dtype)
        given = {name: cp.asarray(a) for name, a in arrays.items()}
        cp.cuda.get_current_stream().synchronize()  # whoever made the arrays is done
        with engine.stream:
            for at in np.ndindex(*batch):
                for name, a in given.items():
                    engine.inputs[name][...] = cp.broadcast_to(a, (*batch, *self.signature.inputs[name]))[at]
                engine()
                found[at] = engine.result
        engine.stream.synchronize()
        return found
