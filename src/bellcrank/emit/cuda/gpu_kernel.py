"""GPU kernels: numpy arrays in and out with copies, GPU arrays in and out without copies.

An array (rows, n) may be in row-major or column-major order. Subclasses do the computation: straight-line code
(CudaKernel), or rolled loops over link classes with a thread or the whole GPU for each state (rolled_kernels.py).

Straight-line code is fastest for column-major inputs (the states of one quantity are contiguous, as in the transpose of
an (n, rows) array); the result is then column-major, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer, poisoned
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cuda.device import (
    DeviceFunction,
    DeviceMemoryError,
    cupy,
    free_bytes,
    on_gpu,
    out_of_memory_error,
    release_pool,
    to_cupy,
)
from bellcrank.emit.target import About, Shape
from bellcrank.errors import InputError, warn

MAX_STRIDE_ELEMENTS = 2**32 - 1  # elements: a stride is passed as 32 bits
MEMORY_SHARE = 0.9  # share of the free memory that one part of a batch may use


class GpuKernel(Kernel):
    """Kernel on the GPU, called with arrays; see `.graph` and `.source` (PTX)."""

    target = "cuda"
    share = MEMORY_SHARE

    def __init__(self, about: About, ptx: Callable[[], str]) -> None:
        """Describe the kernel by `about`, and by the function that returns its `ptx`."""
        self._set_description(about)
        self.threads, self.code_size, self._source = 1, 0, ptx
        self.function = self.convert

    @property
    def tiles(self) -> Sequence[int]:
        """Indices of arrays, inputs first, that are best row-major if the others are; others are column-major."""
        raise NotImplementedError

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        """Compute `rows` states.

        Parameters
        ----------
        rows
            Number of states.
        given
            Inputs and results as (rows, size); an input of one row applies to all states.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<Kernel {self.signature.name} by {self.method}, {self.signature.dtype}, on the GPU>"

    def convert(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Evaluate the kernel for a batch of inputs.

        Parameters
        ----------
        *args, **named : array_like
            Inputs, positional or by name, shape (..., *input shape); numpy arrays or arrays of a GPU library. Keywords
            that are not inputs may select another kernel.
        out : ndarray or cupy.ndarray, optional
            Array for the result of a kernel with a single output.

        Returns
        -------
        ndarray, cupy.ndarray or dict
            The result, or results by name if there are several; on the GPU if any input is.

        Raises
        ------
        InputError
            If an input or `out` does not fit.
        DeviceMemoryError
            If the result does not fit into the memory of the GPU.
        """
        other = self._extend(named) if named and self._extend is not None else None
        if other is not None:  # the keywords select another kernel
            return other[0].convert(*args, out=out, **other[1])
        values = self._bind(args, named)
        if any(on_gpu(values[name]) for name in self.signature.inputs):
            called = f'{self.signature.name}: input "{{}}"'.format
            arrays = {
                name: self._checked_array(name, to_cupy(values[name], called(name))) for name in self.signature.inputs
            }
            results = self._on_device(arrays, self._batch_shape(arrays), out)
        else:
            results = self._from_host(
                {name: self._checked_array(name, values[name]) for name in self.signature.inputs}, out
            )
        if len(results) > 1:
            return dict(zip(self.signature.outputs, results, strict=True))
        return results[0] if results[0].ndim or on_gpu(results[0]) else results[0][()]

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
        arrays = [x for place, s in zip(places, shapes, strict=True) for x in (place, math.prod(s), 1)]
        self._launch_dense(stream, rows, arrays)

    def _launch_dense(self, stream: int, rows: int, arrays: Sequence[int]) -> None:
        """Launch the kernel on `arrays`: address, row stride and column stride of each."""
        raise NotImplementedError

    # -- arrays of the GPU

    def _on_device(self, arrays: Mapping[str, Any], batch: Shape, out: Any = None) -> list[Any]:
        rows = math.prod(batch)
        out = to_cupy(out, f"{self.signature.name}: out") if out is not None and on_gpu(out) else out
        self._check_out(out, batch)
        if not rows and out is not None:
            return [out]
        if not rows:
            shapes = [(*batch, *shape) for shape in self.signature.outputs.values()]
            return [empty_buffer(shape, self.signature.dtype, cupy()) for shape in shapes]
        flat = [self._as_matrix(a, self.signature.inputs[name], batch, rows) for name, a in arrays.items()]
        columns = is_contiguous_along([a for a in flat if a.shape[0] > 1 and a.shape[1] > 1], 0)
        results, views = self._result_buffers(batch, rows, out, columns, flat)
        self.launch(rows, [*flat, *views])
        if out is not None and results[0] is not out:
            out[...] = results[0]
            return [out]
        return results

    def _as_matrix(self, a: Any, shape: Shape, batch: Shape, rows: int) -> Any:
        """Return `a` as (rows, size), or (1, size) if all states share it; a view wherever strides can express it."""
        cp, size = cupy(), math.prod(shape)
        if a.ndim == len(shape):
            return cp.ascontiguousarray(a).reshape(1, size)
        if a.shape[: len(batch)] != batch or a.ndim != len(batch) + len(shape):
            a = cp.broadcast_to(a, (*batch, *shape))
        a = a.reshape(rows, size)
        return a if all(0 <= s <= MAX_STRIDE_ELEMENTS for s in strides(a)) else cp.ascontiguousarray(a)

    def _result_buffers(
        self, batch: Shape, rows: int, out: Any, columns: bool, inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return the results, and views of them as (rows, size); `out` is used where it does not overlap the inputs.

        Results are column-major where the inputs are, and where rows cannot go through a tile.
        """
        cp, s = cupy(), self.signature
        if out is not None and not any(cp.may_share_memory(out, a) for a in inputs):
            flat = out.reshape(rows, -1)
            inside = cp.may_share_memory(flat, out)
            if inside and all(0 <= x <= MAX_STRIDE_ELEMENTS for x in strides(flat)):
                return [poisoned(out)], [flat]
        results, views = [], []
        try:
            for k, shape in enumerate(s.outputs.values(), len(s.inputs)):
                if columns or k not in self.tiles:
                    base = empty_buffer((*shape, *batch), s.dtype, cp)
                    results.append(base.transpose(*range(len(shape), base.ndim), *range(len(shape))))
                    views.append(base.reshape(-1, rows).T)
                else:
                    results.append(empty_buffer((*batch, *shape), s.dtype, cp))
                    views.append(results[-1].reshape(rows, -1))
        except out_of_memory_error() as error:
            raise DeviceMemoryError(
                f"{s.name}: the result of {rows} states does not fit into the GPU's memory ({error}). Pass fewer "
                "states at a time, or pass numpy arrays, which are processed in parts."
            ) from None
        return results, views

    def _check_out(self, out: Any, batch: Shape) -> None:
        """Raise InputError if `out` cannot hold the result."""
        s = self.signature
        if out is None:
            return
        if len(s.outputs) > 1:
            raise InputError(f"{s.name} returns {len(s.outputs)} arrays; out= accepts only one.")
        (shape,) = s.outputs.values()
        if not on_gpu(out) or out.shape != (*batch, *shape) or out.dtype != s.dtype:
            got = f"{out.dtype} {out.shape}" if hasattr(out, "shape") else type(out).__name__
            where = "" if on_gpu(out) else " in host memory"
            raise InputError(
                f"{s.name}: out must be a {s.dtype} array of shape {(*batch, *shape)} on the GPU; got {got}{where}."
            )

    # -- arrays of numpy

    def _from_host(self, arrays: Mapping[str, Any], out: Any) -> list[Any]:
        """Copy to the GPU, compute and copy back, in as many parts as its memory requires."""
        cp, s = cupy(), self.signature
        batch = self._batch_shape(arrays)
        results = self._result_arrays(batch, out, list(arrays.values()))
        rows = math.prod(batch)
        if not rows:
            return results
        flat = {name: self._host_rows(a, s.inputs[name], batch, rows) for name, a in arrays.items()}
        views = [r.reshape(rows, -1) for r in results]
        part = self._rows_per_part(rows, [*flat.values(), *views])
        start = 0
        while start < rows:
            end = min(rows, start + part)
            try:
                device_arrays = {n: cp.asarray(a[start:end] if len(a) > 1 else a) for n, a in flat.items()}
                shaped = {
                    n: a.reshape((-1, *s.inputs[n])) if len(flat[n]) > 1 else a.reshape(s.inputs[n])
                    for n, a in device_arrays.items()
                }
                part_results = self._on_device(shaped, (end - start,))
                for view, result in zip(views, part_results, strict=True):
                    view[start:end] = cp.asnumpy(result).reshape(end - start, -1)
            except (out_of_memory_error(), DeviceMemoryError):
                if part == 1:
                    raise
                device_arrays = shaped = part_results = {}  # type: ignore[assignment]
                release_pool()
                part = -(-part // 2)
                continue
            start = end
        if part < rows:
            warn(f"{s.name}: {rows} states do not fit into the GPU's memory; they were processed {part} at a time.")
        if not all(np.isfinite(r).all() for r in results):
            self._raise_nonfinite(arrays)
        if out is not None and results[0] is not out:
            np.copyto(out, results[0])
            return [out]
        return results

    def _host_rows(self, a: Any, shape: Shape, batch: Shape, rows: int) -> Any:
        size = math.prod(shape)
        if a.ndim == len(shape):
            return np.ascontiguousarray(a).reshape(1, size)
        return np.broadcast_to(a, (*batch, *shape)).reshape(rows, size)

    def _rows_per_part(self, rows: int, arrays: Sequence[Any]) -> int:
        """Return the number of rows that fit into free memory, including transposed copies of column-major results."""
        sizes = [a.shape[1] for a in arrays if len(a) > 1]
        sizes += [math.prod(x) for k, x in enumerate(self.signature.outputs.values(), len(self.signature.inputs))
                  if k not in self.tiles]  # fmt: skip
        each: int = sum(sizes) * np.dtype(self.signature.dtype).itemsize
        return max(1, min(rows, int(self.share * free_bytes()) // max(1, each)))

    def _checked_array(self, name: str, array: Any) -> Any:
        self._check_fit(name, array)
        return array.astype(self.signature.dtype, copy=False)


def is_contiguous_along(arrays: Sequence[Any], axis: int) -> bool:
    """Return whether there are any `arrays` and elements along `axis` are contiguous in all of them."""
    return bool(arrays) and all(strides(a)[axis] == 1 for a in arrays)


def strides(a: Any) -> tuple[int, int]:
    """Return the row and column strides of the matrix `a` in elements; 0 repeats one row for all."""
    row, column = a.strides[0] // a.itemsize, a.strides[1] // a.itemsize
    return (0 if a.shape[0] == 1 else row), (column if a.shape[1] > 1 else 1)


class CudaKernel(GpuKernel):
    """Kernel on the GPU, called with arrays; see `.graph`, `.source` (PTX), `.registers`, `.members`, `.predicted`."""

    def __init__(self, about: About, texts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Keep the texts of each layout ("strided", "tiled"); the parts are loaded on first use."""
        super().__init__(about, lambda: "\n".join(t["ptx"] for t in texts["strided"]))
        self.texts = texts
        cupy()

    @cached_property
    def strided(self) -> list[DeviceFunction]:
        """Functions for arrays with any strides."""
        return self._load_parts("strided")

    @cached_property
    def tiled(self) -> list[DeviceFunction]:
        """Functions for row-major arrays, which are staged through tiles."""
        return self._load_parts("tiled")

    def _load_parts(self, layout: str) -> list[DeviceFunction]:
        """Load the parts, each of which computes some of the outputs; usually there is one."""
        return [DeviceFunction(t["ptx"], "many", t["threads"], t["shared"], t["states"]) for t in self.texts[layout]]

    @property
    def registers(self) -> dict[str, int]:
        """Registers of a thread, in the part that has most.

        "predicted" from the graph, "given" by the driver; "local": bytes that the driver spilled.
        """
        return {
            "predicted": max(t["registers"] for t in self.texts["strided"]),
            "given": max(f.registers for f in self.strided),
            "local": max(f.local for f in self.strided),
        }

    @property
    def predicted(self) -> float:
        """Predicted seconds per state on an H200, in a large column-major batch."""
        return sum(1.0 / float(t["per_second"]) for t in self.texts["strided"])

    @property
    def members(self) -> int:
        """Number of threads that compute one state together."""
        return max(int(t["members"]) for t in self.texts["strided"])

    def _launch_dense(self, stream: int, rows: int, arrays: Sequence[int]) -> None:
        for function in self.in_rows:
            function.launch(stream, rows, [rows, *arrays])

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        """Compute `rows` states; `given` has inputs and results as (rows, size)."""
        tiled = is_contiguous_along([a for k, a in enumerate(given) if k in self.tiles and a.shape[1] > 1], 1)
        for function in self.tiled if tiled else self.strided:
            function(rows, np.int64(rows), *(x for a in given for x in (a, *map(np.uint32, strides(a)))))

    most = 0  # largest number of blocks of a kernel that needs a workspace; this one needs none

    def scratch(self, rows: int) -> int:
        """Return the number of workspace elements for `rows` states: none."""
        return 0

    @cached_property
    def in_rows(self) -> list[DeviceFunction]:
        """Functions for arrays that are all row-major."""
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        return self.tiled if any(math.prod(shapes[k]) > 1 for k in self.tiles) else self.strided

    @property
    def tiles(self) -> Sequence[int]:
        """Indices of arrays, inputs first, that are staged through tiles where they are row-major."""
        tiles: Sequence[int] = self.texts["tiled"][0]["tiles"] if "tiled" in self.texts else ()
        return tiles
