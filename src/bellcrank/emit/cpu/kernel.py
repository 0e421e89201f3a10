"""Kernel of the CPU target: NumPy in, NumPy out, any leading batch axes, threads, GIL released while a batch runs.

A call with one state of plain float arrays never enters a Kernel's methods: the compiled module has its own Python
entry (emit/cpu/python_entry.py). This module makes it a builtin function, with addresses filled in and lifetimes tied
together. The entry passes every unusual call on to `Kernel.convert`.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.argument_errors import explain_methods
from bellcrank.buffers import POISONED
from bellcrank.emit.cpu.arguments import Arguments, contains_symbols
from bellcrank.emit.cpu.machine_code import (
    ADDRESS_TABLE,
    ARRAY_FIELDS,
    FLOAT_DTYPES,
    NUMPY_ABI_VERSIONS,
    OBJECT_HEADER_BYTES,
    PLAIN_ARRAY_FLAGS,
    Library,
    hide_from_collector,
    numpy_function,
    poisoning,
)
from bellcrank.emit.cpu.thread_pool import PoolTask, shared_pool, wait_for_tasks
from bellcrank.emit.target import About
from bellcrank.errors import InputError, brief
from bellcrank.lazy_import import lazy_import

if TYPE_CHECKING:
    from bellcrank.graph import Graph

Array = np.ndarray[Any, Any]
BatchCompiler = Callable[[], bytes] | None


_FASTCALL_KEYWORDS = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS


class _Array(ctypes.Structure):
    _fields_ = [(name, kind) for name, _, kind in ARRAY_FIELDS]


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Definition:
    """Memory of a builtin's definition, reused and never freed.

    A builtin reads its definition until its very end, when the collector may have cleared everything around it. So the
    memory is only passed on to another builtin, and the flags, which are what is read at that time, are the same in
    all.
    """

    _free: list[_MethodDef] = []

    def __init__(self, name: str, function: int, doc: str) -> None:
        try:
            self.method = self._free.pop()
        except IndexError:
            self.method = _MethodDef()
        self.method.name, self.method.function, self.method.doc = name.encode(), function, doc.encode()
        self.method.flags = _FASTCALL_KEYWORDS

    def __del__(self) -> None:
        self._free.append(self.method)


class _Owner(str):
    """The `__module__` of a builtin, which also holds the objects that the builtin points to."""

    __slots__ = ("references",)
    references: object


def _numpy_entry(name: str) -> int:
    """Return the address of an entry of NumPy's C-API for generated code."""
    return poisoning().address(name) if POISONED and name == "PyArray_NewFromDescr" else numpy_function(name)


@cache
def supported() -> bool:
    """Return True if this interpreter and this NumPy have the memory layouts that `@call` relies on."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or OBJECT_HEADER_BYTES != 16:
        return False
    if ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy_entry("PyArray_GetNDArrayCVersion"))() not in NUMPY_ABI_VERSIONS:
        return False
    probe = np.zeros((2, 3))
    header = _Array.from_address(id(probe))
    return (
        (header.type, header.data, header.nd, header.descr)
        == (_numpy_entry("PyArray_Type"), probe.ctypes.data, probe.ndim, id(np.dtype("float64")))
        and header.flags & PLAIN_ARRAY_FLAGS == PLAIN_ARRAY_FLAGS
        and (ctypes.c_int64 * 2).from_address(header.dims)[:] == [2, 3]
    )


def make_builtin(
    address_of: Callable[[str], int], name: str, doc: str, fallback: Callable[..., Any]
) -> Callable[..., Any]:
    r"""Return the compiled `@call` as a builtin with `fallback` behind it; `fallback` itself if not supported.

    Parameters
    ----------
    address_of
        Function that returns the address of a symbol of the compiled module. The builtin keeps it, so that objects it
        refers to (such as the engine of a bound method) live as long as the builtin. It must not refer to `fallback`,
        which may be in a reference cycle with the builtin.
    name
        Name of the builtin.
    doc
        Docstring. If it begins with `name(a, b)\n--\n\n`, the builtin has a signature.
    fallback
        Function for unusual arguments.
    """
    if not supported():
        return fallback
    table = (ctypes.c_void_p * len(ADDRESS_TABLE)).from_address(address_of("py"))
    object_addresses = {name: id(np.dtype(name)) for name in FLOAT_DTYPES} | {"out": id(sys.intern("out"))}
    table[:] = [
        object_addresses[entry] if entry in object_addresses else _numpy_entry(entry) for entry in ADDRESS_TABLE
    ]
    definition = _Definition(name, address_of("call"), doc)
    owner = _Owner(__name__)
    owner.references = hide_from_collector(definition, address_of)
    builtin: Callable[..., Any] = _builtin_constructor()(ctypes.addressof(definition.method), fallback, owner)
    return builtin


@cache
def _builtin_constructor() -> Callable[..., Any]:
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


@explain_methods("derivative", "jvp", "vjp")
class Kernel(Arguments):
    """Compiled function of arrays; `out=` takes the result. See `.graph`, `.source`, `.method`, `.signature`.

    Parameters
    ----------
    about : About
        Description of the kernel.
    library : Library
        The loaded code.
    threads : int
        Threads that share the rows of a batch.
    code_size : int
        Bytes of machine code.
    rest : callable, optional
        Function that returns the batch module (emit/cpu/kernel_module.py) if the library lacks it.
    """

    schedule: Any = None
    target = "cpu"

    def __init__(
        self, about: About, library: Library, threads: int = 1, code_size: int = 0, rest: BatchCompiler = None
    ) -> None:
        """Make a kernel of `about`, `library`, `threads`, `code_size` and `rest`."""
        self._set_description(about)
        self.library, self._compile_batch, self.threads, self.code_size = library, rest, threads, code_size
        signature, method = about.signature, about.method
        arrays = len(signature.inputs) + len(signature.outputs)
        self._one = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arrays)(library.address("one"))
        self.function: Callable[..., Any] = self.convert
        if signature.inputs and len(signature.outputs) == 1:  # then the module has an entry (target.py)
            method_text = f"by {method}, {signature.dtype}" if method else signature.dtype
            doc_text = f"{signature.doc}\n\n{method_text}" if signature.doc else method_text
            call = signature.call or f"({', '.join(signature.inputs)}, *, out=None)"
            head = f"{signature.name}{call}\n--\n\n{doc_text}"
            general = (self.__doc__ or "").partition("\n\n")[0]  # without the parameters of __init__
            attributes: dict[str, Any] = {"__doc__": f"{signature.name}{call}\n\n{doc_text}\n\n{general}"}
            if supported():
                self.function = make_builtin(library.address, signature.name, head, self.convert)
                attributes["__call__"] = self.function  # the builtin: calling the kernel enters no Python code
            else:
                self.function = partial(self.convert)  # a partial, because its docstring can be set
                self.function.__doc__ = head
            self.__class__ = type("Kernel", (type(self),), attributes)

    def whole(self) -> Library:
        """Return the code with the batch module, which is compiled for the first batch if the kernel is large.

        Returns
        -------
        Library
            The loaded code.
        """
        if self._compile_batch is not None:
            self.code_size += self.library.load_batch_module(self._compile_batch())
            self._compile_batch = None
        return self.library

    @cached_property
    def _many(self) -> Callable[..., int]:
        arrays = len(self.signature.inputs) + len(self.signature.outputs)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p, ctypes.c_int64] * arrays)
        return kind(self.whole().address("many"))

    def _set_description(self, about: About) -> None:
        if not isinstance(about, About):
            raise InputError(f"Kernel: about is {brief(about)}; expected an About; bc.kernel makes one.")
        self.signature, self.method, self.from_cache = about.signature, about.method, about.cached
        self._graph, self._source, self._extend, self._recipe = about.graph, about.source, about.extend, about.recipe
        self.parameters = about.parameters  # meaning of the input `p`, which may be omitted or given by name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the kernel; see `convert`."""
        return self.convert(*args, **kwargs)

    @cached_property
    def graph(self) -> Graph:
        """The graph that was compiled; it is traced again if the code came from disk."""
        return self._graph()

    @cached_property
    def source(self) -> str:
        """The text that was compiled."""
        return self._source()

    def derivative(self, wrt: str, of: str = "") -> Kernel:
        """Return the kernel of a derivative of an output with respect to an input.

        Parameters
        ----------
        wrt : str
            Name of the input.
        of : str, optional
            Name of the output; the first one by default.

        Returns
        -------
        Kernel
            Takes the same inputs; its result has the shape (*of, *wrt).
        """
        of = of or next(iter(self.graph.shapes))
        return self._compile_graph(self.graph.jacobian(of, wrt))

    def jvp(self, *wrt: str) -> Kernel:
        """Return the kernel of a Jacobian-vector product, the directional derivative of the outputs.

        Parameters
        ----------
        *wrt : str
            Names of the inputs that vary; all by default.

        Returns
        -------
        Kernel
            Has a further input d_x, the direction, for each input x in `wrt`. Returns the outputs y and their
            directional derivatives d_y.
        """
        return self._compile_graph(self.graph.jvp(wrt))

    def vjp(self, *wrt: str) -> Kernel:
        """Return the kernel of a vector-Jacobian product, the gradient of a weighted sum of the outputs.

        Parameters
        ----------
        *wrt : str
            Names of the inputs; all by default.

        Returns
        -------
        Kernel
            Has a further input w_y, the weights, for each output y. Returns the gradient g_x for each input x in
            `wrt`.
        """
        return self._compile_graph(self.graph.vjp(wrt))

    def _compile_graph(self, graph: Graph) -> Kernel:
        """Compile another graph for the same target."""
        kernel: Kernel = lazy_import("build.function_compilation:compile_alike")(self, graph)
        return kernel

    @property
    def predicted(self) -> float:
        """Predicted seconds of one state in a batch on one core, by the cost model of this computer (costs.py)."""
        from bellcrank.emit.cpu.costs import costs

        return costs(self.signature.dtype).predicted(self.graph)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the recipe of the kernel instead of its machine code, which the recipe finds in the cache."""
        if self._recipe is None:
            raise TypeError(f"{self!r} cannot be pickled: it was not made by bc.kernel or bc.compile.")
        return self._recipe

    def __repr__(self) -> str:
        s = self.signature
        method_text = f" by {self.method}" if self.method else ""
        return f"<Kernel {s.name}{method_text}, {s.dtype}, {self.threads} thread{'s' if self.threads > 1 else ''}>"

    # -- the conversion path

    def convert(self, *args: Any, out: Array | None = None, **named: Any) -> Any:
        """Evaluate the kernel for any array-likes that broadcast; the full path with checks and conversions.

        Parameters
        ----------
        *args : array_like
            Inputs, in the order of the signature, with leading batch axes.
        out : ndarray, optional
            Array for the result, for a kernel with one output.
        **named
            Inputs by name, `parameters`, or keywords that select another kernel.

        Returns
        -------
        ndarray, float or dict
            The output with the batch axes in front; a dict by name if there are several. Symbols inside a traced
            function.

        Raises
        ------
        InputError
            If an argument has a wrong shape or type, or is not finite.
        """
        extended = self._extend(named) if named and self._extend is not None else None
        if extended is not None:  # keywords that select another kernel
            return extended[0].convert(*args, out=out, **extended[1])
        values = self._bind(args, named)
        if any(map(contains_symbols, values.values())):
            return self._traced(values, out)
        arrays = {name: self._checked_array(name, values[name]) for name in self.signature.inputs}
        batch = self._batch_shape(arrays)
        rows = math.prod(batch)
        results = self._result_arrays(batch, out, list(arrays.values()))
        pointers = []
        keep = []
        for name, array in arrays.items():
            flat, stride = self._contiguous_rows(array, self.signature.inputs[name], batch, rows)
            keep.append(flat)
            pointers.append((flat.ctypes.data, stride))
        for result, shape in zip(results, self.signature.outputs.values(), strict=True):
            pointers.append((result.ctypes.data, math.prod(shape) * result.itemsize))
        if rows and self._run(rows, pointers, not batch, (keep, results)):
            self._raise_nonfinite(arrays)
        if out is not None and results[0] is not out:
            np.copyto(out, results[0])
            return out
        if len(results) > 1:
            return dict(zip(self.signature.outputs, results, strict=True))
        return results[0] if results[0].ndim else results[0][()]

    def _traced(self, values: Mapping[str, Any], out: Array | None) -> Any:
        """Return symbolic results inside a function that is being traced; its graph calls this graph."""
        if out is not None:
            raise InputError(f"{self.signature.name}: out takes numbers; symbolic results are returned.")
        results = self.graph.call(**values)
        (only, *others) = results.values()
        return results if others else only if only.ndim else only[()]

    def _run(self, rows: int, pointers: Sequence[tuple[int, int]], single: bool, keep: object = None) -> int:
        """Run all rows; `keep` holds the arrays behind the pointers until every thread is done, whatever is raised."""
        if POISONED:
            poisoning().stain()
        if single:
            return int(self._one(*(p for p, _ in pointers)))
        part_count, many = min(self.threads, max(1, rows // self.signature.rows_per_thread)), self._many
        if part_count == 1:
            return int(many(rows, *(x for pair in pointers for x in pair)))
        edges = [rows * k // part_count // 16 * 16 for k in range(part_count)] + [rows]

        def piece(k: int, keep: object = keep) -> int:
            start, count = edges[k], edges[k + 1] - edges[k]
            return int(many(count, *(x for p, stride in pointers for x in (p + start * stride, stride))))

        tasks: list[PoolTask] = []
        try:
            tasks.extend(shared_pool(self.threads).submit(piece, k) for k in range(1, part_count))
            own_status = piece(0)  # the calling thread does its share
        finally:
            wait_for_tasks(tasks)
        return int(max(own_status, *(other.result() for other in tasks)))
