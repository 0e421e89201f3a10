"""A Kernel: numpy in, numpy out, any leading batch shape, threads, no GIL held while a batch runs.

One state of plain float arrays never enters this file: the compiled module has its own Python entry
(emit/cpu/entry.py), which hands anything unusual to `Kernel.convert` below.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from bellcrank.emit.cpu import pycall
from bellcrank.emit.cpu.host import Library
from bellcrank.emit.cpu.pool import Task, pool, settle
from bellcrank.emit.target import About, Shape
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph
from bellcrank.misfits import explained_class
from bellcrank.nodes.node import Node
from bellcrank.stairs import above

Array = np.ndarray[Any, Any]
Rest = Callable[[], bytes] | None


@explained_class("__init__", "derivative", "jvp", "vjp")
class Kernel:
    """Call it with arrays; `out=` takes the result. See `.graph`, `.source`, `.method`, `.signature`."""

    schedule: Any = None
    target = "cpu"

    def __init__(self, about: About, library: Library, threads: int = 1, code_size: int = 0, rest: Rest = None) -> None:
        """rest: makes the code of a batch, where the library has it not yet (emit/cpu/halves.py)."""
        self._know(about)
        self.library, self._rest, self.threads, self.code_size = library, rest, threads, code_size
        signature, method = about.signature, about.method
        arrays = len(signature.inputs) + len(signature.outputs)
        self._one = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arrays)(library.address("one"))
        self.function: Callable[..., Any] = self.convert
        if signature.inputs and len(signature.outputs) == 1:  # then it has an entry (target.py)
            by = f"by {method}, {signature.dtype}" if method else signature.dtype
            teaches = f"{signature.doc}\n\n{by}" if signature.doc else by
            call = signature.call or f"({', '.join(signature.inputs)}, *, out=None)"
            head = f"{signature.name}{call}\n--\n\n{teaches}"
            own: dict[str, Any] = {"__doc__": f"{signature.name}{call}\n\n{teaches}\n\n{self.__doc__}"}
            if pycall.supported():
                self.function = pycall.native(library.address, signature.name, head, self.convert)
                own["__call__"] = self.function  # the builtin: calling the kernel enters no Python code
            else:
                self.function = partial(self.convert)  # which may have words of its own
                self.function.__doc__ = head
            self.__class__ = type("Kernel", (type(self),), own)

    def whole(self) -> Library:
        """The code, with that of a batch: compiled when the first comes, where it is large."""
        if self._rest is not None:
            self.code_size += self.library.joined(self._rest())
            self._rest = None
        return self.library

    @cached_property
    def _many(self) -> Callable[..., int]:
        arrays = len(self.signature.inputs) + len(self.signature.outputs)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p, ctypes.c_int64] * arrays)
        return kind(self.whole().address("many"))

    def _know(self, about: About) -> None:
        self.signature, self.method, self.from_cache = about.signature, about.method, about.cached
        self._graph, self._source, self._extend, self._recipe = about.graph, about.source, about.extend, about.recipe
        self.parameters = about.parameters  # what the input `p` is, which may be left out or be given by name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.convert(*args, **kwargs)

    @cached_property
    def graph(self) -> Graph:
        """What it was compiled from: traced again where the code came from disk."""
        return self._graph()

    @cached_property
    def source(self) -> str:
        """The text that was compiled."""
        return self._source()

    def derivative(self, wrt: str, of: str = "") -> Kernel:
        """A kernel of d(of)/d(wrt), of shape (*of, *wrt); of: which output, where there are several."""
        of = of or next(iter(self.graph.outputs))
        return self._compiled(self.graph.jacobian(of, wrt))

    def jvp(self, *wrt: str) -> Kernel:
        """A kernel of how fast the outputs change along d_x, for each input x of wrt (all, unless told)."""
        return self._compiled(self.graph.jvp(wrt))

    def vjp(self, *wrt: str) -> Kernel:
        """A kernel of the gradients g_x of the outputs' sum weighted with w_y."""
        return self._compiled(self.graph.vjp(wrt))

    def _compiled(self, graph: Graph) -> Kernel:
        """Another graph where this one runs."""
        build, where = above("build.compiling"), above("build.stages").Where
        found: Kernel = build.of_graph(
            graph, where(self.target, self.signature.dtype, self.threads), "", self.parameters
        )
        return found

    @property
    def predicted(self) -> float:
        """Seconds of one state in a batch on one core, by the cost model of this computer (emit/cpu/costs.py)."""
        from bellcrank.emit.cpu.costs import costs

        return costs(self.signature.dtype).predicted(self.graph)

    def __reduce__(self) -> tuple[Any, ...]:
        """Machine code does not travel; what made it does, and finds it in the cache."""
        if self._recipe is None:
            raise TypeError(f"{self!r} was made by hand and has no recipe to be made again from.")
        return self._recipe

    def __repr__(self) -> str:
        s = self.signature
        by = f" by {self.method}" if self.method else ""
        return f"<Kernel {s.name}{by}, {s.dtype}, {self.threads} thread{'s' if self.threads > 1 else ''}>"

    # -- the careful path

    def convert(self, *args: Any, out: Array | None = None, **named: Any) -> Any:
        """Any array-likes that broadcast: checks, converts, runs, and explains what does not fit."""
        other = self._extend(named) if named and self._extend is not None else None
        if other is not None:  # keywords that ask for another kernel
            return other[0].convert(*args, out=out, **other[1])
        values = self._bind(args, named)
        if any(map(symbolic, values.values())):
            return self._traced(values, out)
        arrays = {name: self._array(name, values[name]) for name in self.signature.inputs}
        batch = self._batch(arrays)
        rows = math.prod(batch)
        results = self._results(batch, out, list(arrays.values()))
        pointers = []
        keep = []
        for name, array in arrays.items():
            flat, stride = self._rows(array, self.signature.inputs[name], batch, rows)
            keep.append(flat)
            pointers.append((flat.ctypes.data, stride))
        for result, shape in zip(results, self.signature.outputs.values(), strict=True):
            pointers.append((result.ctypes.data, math.prod(shape) * result.itemsize))
        if rows and self._run(rows, pointers, not batch, (keep, results)):
            self._explain(arrays)
        if out is not None and results[0] is not out:
            np.copyto(out, results[0])
            return out
        if len(results) > 1:
            return dict(zip(self.signature.outputs, results, strict=True))
        return results[0] if results[0].ndim else results[0][()]

    def _traced(self, values: Mapping[str, Any], out: Array | None) -> Any:
        """Inside a function that is being traced: the symbols of its results. The other function calls this graph."""
        if out is not None:
            raise InputError(f"{self.signature.name}: out takes numbers; of symbols the result is returned.")
        results = self.graph.call(**values)
        (only, *others) = results.values()
        return results if others else only if only.ndim else only[()]

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        s = self.signature
        usage = f"{s.name}({', '.join(s.inputs)})"
        named = {key: x for key, x in named.items() if x is not None}  # as if they were left out
        if len(args) > len(s.inputs):
            raise InputError(f"{usage} takes {len(s.inputs)} arrays; got {len(args)}.")
        values = dict(zip(s.inputs, args, strict=False))
        for name, value in self._free(usage, values, named).items():
            if name not in s.inputs:
                raise InputError(f"{usage}: {unknown('input', name, [*s.inputs, 'out'])}")
            if name in values:
                raise InputError(f'{usage}: "{name}" is given twice.')
            values[name] = value
        missing = [name for name in s.inputs if name not in values]
        if missing:
            raise InputError(f"{usage}: missing {', '.join(missing)}.")
        return values

    def _free(self, usage: str, values: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is given by name, with the free numbers as the input p: nominal ones, if nobody says which."""
        if "parameters" not in named:
            nominal = bool(self.parameters) and "p" not in values and "p" not in named
            return {**named, "p": self.parameters.nominal} if nominal else named
        if not self.parameters:
            raise InputError(
                f"{usage}: parameters is given, but no number is free: bellcrank.parameter(name, value) or "
                "mechanism.free(name) makes one."
            )
        rest = {key: x for key, x in named.items() if key != "parameters"}
        if "p" in values or "p" in rest:
            raise InputError(f'{usage}: "p" and "parameters" are two ways to say one thing; give one of them.')
        return rest | {"p": self.parameters.vector(named["parameters"], self.signature.name)}

    def _array(self, name: str, value: Any) -> Array:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise InputError(f'{self.signature.name}: input "{name}" is not an array: {error}.') from error
        self._fits(name, array)
        return array.astype(self.signature.dtype, copy=False)

    def _fits(self, name: str, array: Any) -> None:
        """An array of numpy or of the GPU, by its kind and its shape."""
        shape = self.signature.inputs[name]
        if array.dtype.kind not in "fiub":
            raise InputError(f'{self.signature.name}: input "{name}" has dtype {array.dtype}; expected real numbers.')
        expected = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
        if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
            raise InputError(f'{self.signature.name}: input "{name}" has shape {array.shape}; expected {expected}.')

    def _batch(self, arrays: Mapping[str, Array]) -> Shape:
        heads = {name: a.shape[: a.ndim - len(self.signature.inputs[name])] for name, a in arrays.items()}
        try:
            return np.broadcast_shapes(*heads.values())
        except ValueError:
            shown = ", ".join(f"{name} {head}" for name, head in heads.items())
            raise InputError(f"{self.signature.name}: leading axes do not broadcast: {shown}.") from None

    def _rows(self, array: Array, shape: Shape, batch: Shape, rows: int) -> tuple[Array, int]:
        """An array whose rows are contiguous, and the bytes from row to row (0 repeats one row for all)."""
        size = math.prod(shape)
        if array.ndim == len(shape):
            return np.ascontiguousarray(array), 0 if batch else size * array.itemsize
        if array.shape[: len(batch)] != batch or array.ndim != len(batch) + len(shape):
            array = np.broadcast_to(array, (*batch, *shape))
        if len(batch) == len(shape) == 1 and array.strides[1] == array.itemsize and array.strides[0] > 0:
            return array, array.strides[0]  # columns of a wider table: no copy needed
        flat = np.ascontiguousarray(array).reshape(rows, size)
        return flat, size * array.itemsize

    def _results(self, batch: Shape, out: Array | None, inputs: Sequence[Array]) -> list[Array]:
        shapes = [(*batch, *shape) for shape in self.signature.outputs.values()]
        dtype = np.dtype(self.signature.dtype)
        if out is not None:
            if len(shapes) > 1:
                raise InputError(f"{self.signature.name} gives {len(shapes)} arrays; out= takes one.")
            if (
                not isinstance(out, np.ndarray)
                or out.shape != shapes[0]
                or out.dtype != dtype
                or not out.flags.writeable
            ):
                got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
                raise InputError(
                    f"{self.signature.name}: out must be a writable {dtype} array of shape {shapes[0]}; got {got}."
                )
            if out.flags.c_contiguous and not any(np.may_share_memory(out, a) for a in inputs):
                return [out]
        return [np.empty(shape, dtype) for shape in shapes]

    def _run(self, rows: int, pointers: Sequence[tuple[int, int]], single: bool, keep: object = None) -> int:
        """keep: the arrays behind the pointers, which live until every thread is done with them, come what may."""
        if single:
            return int(self._one(*(p for p, _ in pointers)))
        parts, many = min(self.threads, max(1, rows // self.signature.rows_per_thread)), self._many
        if parts == 1:
            return int(many(rows, *(x for pair in pointers for x in pair)))
        edges = [rows * k // parts // 16 * 16 for k in range(parts)] + [rows]

        def piece(k: int, keep: object = keep) -> int:
            start, count = edges[k], edges[k + 1] - edges[k]
            return int(many(count, *(x for p, stride in pointers for x in (p + start * stride, stride))))

        others: list[Task] = []
        try:
            others.extend(pool(self.threads).submit(piece, k) for k in range(1, parts))
            mine = piece(0)  # this thread does its share
        finally:
            settle(others)
        return int(max(mine, *(other.result() for other in others)))

    def _explain(self, arrays: Mapping[str, Array]) -> None:
        """Names the first value that is not finite. (Sums of huge numbers raise the same flag: then all is well.)"""
        for name, array in arrays.items():
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                at = tuple(int(i) for i in bad[0])
                named = self.signature.columns.get(name) if self.signature.columns else None
                called = f' ("{named[at[-1]]}")' if named else ""
                raise InputError(
                    f"{self.signature.name}: {name}[{', '.join(map(str, at))}]{called} is {array[at]}; expected finite "
                    f"numbers ({len(bad)} of {array.size} are not)."
                )


def symbolic(value: Any) -> bool:
    """Whether symbols are among it, as functions that are traced have them."""
    if isinstance(value, Node):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(map(symbolic, value.flat))
    try:
        return isinstance(value, Sequence) and not isinstance(value, str | bytes) and any(map(symbolic, value))
    except RecursionError:  # a list that is in itself: no symbols, and no numbers either
        return False
