"""GPU kernels for large mechanisms, whose code has rolled loops over link classes.

StateKernel   a batch with one thread per state; the threads' workspaces (lane_code.py) are for as many blocks as can be
              resident at once
WaveKernel    state after state, whose runs are divided among all threads (waves.py)
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer, poisoned
from bellcrank.emit.cuda.device import (
    DeviceFunction,
    DeviceMemoryError,
    array_address,
    cupy,
    free_bytes,
    out_of_memory_error,
    stream_context,
    total_bytes,
)
from bellcrank.emit.cuda.gpu_kernel import GpuKernel, strides
from bellcrank.emit.cuda.lane_code import LANES, StateLoopCode
from bellcrank.emit.cuda.occupancy import REGISTER_FILE_SIZE
from bellcrank.emit.cuda.waves import THREADS_PER_BLOCK, WaveText
from bellcrank.emit.target import About

Array = np.ndarray[Any, Any]
MEMORY_SHARE = 0.5  # share of the free memory
MAX_RESIDENT_BLOCKS = 32  # resident blocks of a multiprocessor at most
LENT_MEMORY_SHARE = 1 / 8  # share of a GPU's memory that a caller may provide as workspace


def resident_blocks(registers: int) -> int:
    """Return the number of one-warp blocks that are resident at once, with `registers` registers per thread."""
    each = REGISTER_FILE_SIZE // (LANES * -(-max(1, registers) // 8) * 8)
    return int(min(MAX_RESIDENT_BLOCKS, each) * cupy().cuda.Device().attributes["MultiProcessorCount"])


def balanced_blocks(states: int, most: int) -> int:
    """Return a number of blocks, at most `most`, with equal numbers of groups of 32 among `states` states.

    Only the last block may have fewer groups.
    """
    groups = -(-states // LANES)
    return -(-groups // -(-groups // max(1, most)))


def affordable_blocks(states: int, function: DeviceFunction, numbers: int, dtype: str) -> int:
    """Return the number of blocks that fit into free memory.

    Parameters
    ----------
    states
        Number of states.
    function
        Kernel to launch.
    numbers
        Workspace elements of one state.
    dtype
        Type of the numbers.
    """
    fit = int(MEMORY_SHARE * free_bytes()) // (LANES * numbers * int(dtype[-2:]) // 8)
    return balanced_blocks(states, min(resident_blocks(function.registers), fit))


def allocate_workspace(count: int, numbers: int, dtype: str) -> Any:
    """Return an uninitialised workspace.

    Parameters
    ----------
    count
        Number of blocks.
    numbers
        Workspace elements of one state.
    dtype
        Type of the numbers.
    """
    return empty_buffer(count * LANES * numbers, dtype, cupy())


class StateKernel(GpuKernel):
    """Kernel on the GPU, called with arrays; see `.graph`, `.source` (PTX), `.registers`."""

    share = 0.5  # the rest is for the workspace

    def __init__(self, about: About, code: StateLoopCode) -> None:
        super().__init__(about, lambda: code.ptx)
        self.room = code.room
        self.states = DeviceFunction(code.ptx, "many", LANES, 0, single_piece=True)

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
        count = affordable_blocks(rows, self.states, self.room, dtype)
        try:
            scratch_memory = allocate_workspace(count, self.room, dtype)
        except out_of_memory_error() as error:
            raise DeviceMemoryError(
                f"{self.signature.name}: the workspace of {LANES * count} states does not fit into the GPU's memory "
                f"({error}). Free some memory, or pass fewer states at a time."
            ) from None
        arrays = (x for a in given for x in (a, *map(np.uint32, strides(a))))
        self.states(count * LANES, np.int64(rows), *arrays, scratch_memory, np.int64(count))

    def _launch_dense(self, stream: int, rows: int, arrays: Sequence[int]) -> None:
        count = affordable_blocks(rows, self.states, self.room, self.signature.dtype)
        with stream_context(stream):  # only the next allocation in this stream may reuse the memory
            scratch_memory = allocate_workspace(count, self.room, self.signature.dtype)
            self.states.launch(stream, count * LANES, [rows, *arrays, array_address(scratch_memory), count])

    @property
    def in_rows(self) -> list[DeviceFunction]:
        """Functions for arrays that are all row-major."""
        return [self.states]

    @cached_property
    def most(self) -> int:
        """Maximum number of blocks, where the caller provides the workspace."""
        each = LANES * self.room * np.dtype(self.signature.dtype).itemsize
        return max(1, min(resident_blocks(self.states.registers), int(LENT_MEMORY_SHARE * total_bytes()) // each))

    def scratch(self, rows: int) -> int:
        """Return the number of workspace elements for `rows` states."""
        return balanced_blocks(rows, self.most) * LANES * self.room


# -- all threads for each state


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
