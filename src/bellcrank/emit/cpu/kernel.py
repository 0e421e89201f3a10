"""A Kernel: numpy in, numpy out, any leading batch shape, threads, no GIL held while a batch runs.

One state of plain float arrays never enters a Kernel's methods: the compiled module has its own Python entry
(emit/cpu/entry.py), here made a builtin function, with addresses filled in and lifetimes tied together. It hands
anything unusual to `Kernel.convert`.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import POISONED
from bellcrank.emit.cpu.arguments import Arguments, symbolic
from bellcrank.emit.cpu.host import Library, numpy_function, poisoning, unseen
from bellcrank.emit.cpu.object_layout import ABI, FIELDS, FLOATS, HEADER, PLAIN, TABLE
from bellcrank.emit.cpu.pool import Task, pool, settle
from bellcrank.emit.target import About
from bellcrank.errors import InputError, brief
from bellcrank.misfits import explained_class
from bellcrank.stairs import above

if TYPE_CHECKING:
    from bellcrank.graph import Graph

Array = np.ndarray[Any, Any]
Rest = Callable[[], bytes] | None


_FASTCALL_KEYWORDS = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS


class _Array(ctypes.Structure):
    _fields_ = [(name, kind) for name, _, kind in FIELDS]


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Definition:
    """What a builtin is made of, lent to it. A builtin reads it until its very end, when the collector may have emptied
    everything around it: so its memory is never freed, only lent again, and the flags, which are what is read then, are
    the same in all.
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
    """The `__module__` of a builtin, which also holds what the builtin points at."""

    __slots__ = ("kept",)
    kept: object


def _numpy(name: str) -> int:
    """The address of an entry of NumPy's C-API, as generated code is to call it."""
    return poisoning().address(name) if POISONED and name == "PyArray_NewFromDescr" else numpy_function(name)


@cache
def supported() -> bool:
    """Whether this interpreter and this NumPy have the layouts that `@call` relies on."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or HEADER != 16:
        return False
    if ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy("PyArray_GetNDArrayCVersion"))() not in ABI:
        return False
    probe = np.zeros((2, 3))
    seen = _Array.from_address(id(probe))
    return (
        (seen.type, seen.data, seen.nd, seen.descr)
        == (_numpy("PyArray_Type"), probe.ctypes.data, probe.ndim, id(np.dtype("float64")))
        and seen.flags & PLAIN == PLAIN
        and (ctypes.c_int64 * 2).from_address(seen.dims)[:] == [2, 3]
    )


def native(address_of: Callable[[str], int], name: str, doc: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled `@call` as a builtin, with `fallback` behind it; `fallback` itself where that is not supported.

    `address_of` gives the address of a symbol of the compiled module. The builtin keeps it, so what it refers to (say,
    the engine, as a bound method does) lives as long as the builtin; it must not refer to `fallback`, which may be in a
    cycle with the builtin. A `doc` that begins with `name(a, b)\\n--\\n\\n`
    gives the builtin a signature.
    """
    if not supported():
        return fallback
    table = (ctypes.c_void_p * len(TABLE)).from_address(address_of("py"))
    own = {name: id(np.dtype(name)) for name in FLOATS} | {"out": id(sys.intern("out"))}
    table[:] = [own[entry] if entry in own else _numpy(entry) for entry in TABLE]
    definition = _Definition(name, address_of("call"), doc)
    owner = _Owner(__name__)
    owner.kept = unseen(definition, address_of)
    builtin: Callable[..., Any] = _new_builtin()(ctypes.addressof(definition.method), fallback, owner)
    return builtin


@cache
def _new_builtin() -> Callable[..., Any]:
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


@explained_class("derivative", "jvp", "vjp")
class Kernel(Arguments):
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
            if supported():
                self.function = native(library.address, signature.name, head, self.convert)
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
        if not isinstance(about, About):
            raise InputError(f"Kernel: about is {brief(about)}; expected an About; bc.kernel makes one.")
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
        of = of or next(iter(self.graph.shapes))
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

    def _run(self, rows: int, pointers: Sequence[tuple[int, int]], single: bool, keep: object = None) -> int:
        """keep: the arrays behind the pointers, which live until every thread is done with them, come what may."""
        if POISONED:
            poisoning().stain()
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
