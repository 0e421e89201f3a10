"""Where a graph is to run, and the stages from there to a kernel: the same for every graph and every target, with what
earlier processes made found again on disk.

    Where --target--> Target
    graph --compile--> facts, code --load--> Kernel
      key --recalled-> facts, code --load--> Kernel        nothing is traced

A key is known where everything that decides a graph is as the package's files have it: tables, functions and classes.
Whatever else can be called in their place (a partial, an instance, a mock) is noticed as well as a function, for nobody
knows what it does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank import patience, plugins  # not their functions: untouched() looks at all that modules of build/ have
from bellcrank.emit import cache as store
from bellcrank.emit.target import DTYPES, About, Extend, Signature, Target
from bellcrank.errors import InputError, brief, unknown, warn
from bellcrank.model import parts
from bellcrank.parameters import Parameters

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel
    from bellcrank.graph import Graph


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be compiled. key: all that decides the graph, where that is known without tracing it."""

    name: str
    graph: Callable[[str], tuple[str, Graph]]  # by a method, if one is known; by which, and what came out
    key: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[str]] | None = None  # names of the elements of inputs
    call: str = ""  # "(q, v, *, out=None)": how it is called, where that is more than its inputs
    doc: str = ""
    parameters: Parameters | None = None
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
    extend: Extend | None = None


def built(job: Job, on: Target) -> Kernel:
    """The Kernel of a job: what an earlier process made, or compiled now."""
    index = store.key(*job.key, *on.key, store.package_fingerprint()) if job.key else ""
    facts, code, cached = _recalled(index, on) if index else (None, None, False)
    by = facts["method"] if facts else ""  # whatever else there is by now
    made = cache(lambda: fitted(*job.graph(by), on))
    if facts is None:
        with patience.uncollected(), patience.said(f"tracing {job.name}"):
            method, graph = made()
        with patience.uncollected(), patience.said(f"compiling {graph.name}"):
            facts, code, cached = on.compile(graph)
        facts |= {
            "method": method,
            "inputs": {key: list(shape) for key, shape in graph.inputs.items()},
            "outputs": {key: list(shape) for key, shape in graph.shapes.items()},
        }
        if index and steady():
            store.save(f"{index}.json", json.dumps(facts).encode())
    about = About(
        _signature(job, facts, on.dtype),
        lambda: made()[1],
        cache(lambda: on.source(made()[1])),
        facts["method"],
        cached,
        job.recipe,
        job.extend,
        Parameters() if job.parameters is None else job.parameters,
    )
    made_of_it: Kernel = on.load(code, facts, about)
    return made_of_it


def fitted(method: str, graph: Graph, on: Target) -> tuple[str, Graph]:
    """A graph that can be cut into segments (build/segments.py), in as many as the target has use for."""
    if (recut := getattr(graph, "recut", None)) and (cut := getattr(on, "segments", None)):
        return method, recut(*cut)
    return method, graph


def shared_out(graph: Graph, on: Target) -> bool:
    """Whether several cores would share the work on one state of it."""
    used = getattr(on, "used", None)
    return used is not None and used(fitted("", graph, on)[1]) > 1


def _recalled(index: str, on: Target) -> tuple[dict[str, Any] | None, Any, bool]:
    """What an earlier process made for the same request, code and computer."""
    found = store.load(f"{index}.json")
    facts = json.loads(found) if found is not None else None
    code = on.recall(facts) if facts is not None else None
    return (facts, code, True) if code is not None else (None, None, False)


def _signature(job: Job, facts: Mapping[str, Any], dtype: str) -> Signature:
    columns = {key: job.columns[key] for key in facts["inputs"] if key in job.columns} if job.columns else None
    return Signature(
        job.name,
        {key: tuple(shape) for key, shape in facts["inputs"].items()},
        {key: tuple(shape) for key, shape in facts["outputs"].items()},
        dtype,
        facts.get("rows_per_thread") or Signature.rows_per_thread,
        columns,
        job.call,
        job.doc,
    )


TARGETS = ("cpu", "cuda")
MOST_THREADS = 1024  # far more than processors: they would be started all the same


@dataclass(frozen=True)
class Where:
    """As it is written: target="cpu", threads=2. machine="threads" shares out the work on each state."""

    target: str = "cpu"
    dtype: str = "float64"
    threads: int = 1
    machine: Any = ""  # a name, or a Machine
    processors: int | None = None
    waves: bool = True  # on a GPU: whether all of it may share out one state; not for who starts kernels by addresses

    def __post_init__(self) -> None:
        dtype = str(getattr(self.dtype, "name", getattr(self.dtype, "__name__", self.dtype)))  # np.float32 is welcome
        object.__setattr__(self, "dtype", dtype)
        if not isinstance(self.target, str) or self.target not in TARGETS:  # an array is in nothing, and says so itself
            raise InputError(unknown("target", self.target, TARGETS, "cuda" if repr(self.target) == "'gpu'" else ""))
        if dtype not in DTYPES:
            raise InputError(unknown("dtype", dtype, DTYPES))
        whole = isinstance(self.threads, int | np.integer) and not isinstance(self.threads, bool)
        if not whole or not 1 <= self.threads <= MOST_THREADS:
            raise InputError(f"threads is {self.threads!r}; expected a whole number from 1 to {os.cpu_count()}.")
        object.__setattr__(self, "threads", int(self.threads))
        if isinstance(self.machine, np.ndarray):  # neither true nor false, and no machine either
            raise InputError(f'machine is {brief(self.machine)}; expected "threads" or a Machine.')
        if self.processors is not None and not self.machine:
            raise InputError('processors= goes with machine="threads".')
        if self.target == "cuda" and (self.machine or self.threads > 1):
            raise InputError('threads= and machine= are of the CPU; target="cuda" has a thread for every state.')


def target(where: Where, what: str) -> Target:
    """Loads no more than it needs: the runtime of several cores, or of a GPU, only for those who ask."""
    if where.target == "cuda":
        from bellcrank.emit.cuda import device

        if not (why := device.missing()):
            from bellcrank.emit.cuda.target import Cuda

            return Cuda(where.dtype, where.waves)
        warn(f"{why} The CPU computes {what} instead.")
    if not isinstance(where.machine, str) or where.machine:
        from bellcrank.emit.cores.kernel import machine
        from bellcrank.emit.cores.target import Cores

        made = machine(where.machine, where.processors, where.dtype)
        if where.threads > 1:
            raise InputError("threads= and machine= exclude each other: one shares out states, the other each state.")
        return Cores(made, where.dtype)
    from bellcrank.emit.cpu.target import Cpu

    return Cpu(where.dtype, where.threads)


# -- whether all is as it was shipped

ROOT = str(Path(__file__).resolve().parents[1]) + os.sep  # the package
NAME = __name__.partition(".")[0]
# What a traced function can reach: both towers up to here.
PARTS = ("build", "dynamics", "graph", "integrate", "jets", "model", "nodes", "parameters", "scalar", "spatial")
# The tables that people add to, and where they are, beside what they were when they were made.
TABLES = {
    "method": ("dynamics.table", "METHODS"),
    "quantity": ("dynamics.quantities", "QUANTITIES"),
    "closure": ("dynamics.loops.rows", "CLOSURES"),
    "joint": ("model.joints", "KINDS"),
}
ALIASES = ("collections.abc", "types", "typing")  # of types, which can be called, too
CACHED = type(cache(len))
_fine: set[Any] = set()  # that were looked at already
_looked: dict[str, list[tuple[Any, list[Any], list[int]]]] = {}  # by module: itself, its classes, and what they had


def untouched() -> bool:
    """Whether the tables have the rows they were made with, and those of installed packages (whose sources are part of
    the key), and the package's modules their own functions.
    """
    counts = {name: len(row[0]) for (kind, name), row in plugins.rows.items() if kind == "closure"}
    tables = all(_as_made(kind, *place) for kind, place in TABLES.items())
    same = tables and {**parts.SHIPPED, **counts} == parts.EQUATIONS
    return same and all(_unchanged(module) or _fine_now(module) for module in _modules())


def _unchanged(module: ModuleType) -> bool:
    """Whether it has the very objects that it had when it was looked at: a tenth of the time that a look takes."""
    before = _looked.get(module.__name__, [])
    return bool(before) and all(list(map(id, vars(x).values())) == ids for x, _, ids in before)


def _fine_now(module: ModuleType) -> bool:
    if not all(map(_known, _functions(module))):
        return False
    parts = [module, *(x for x in vars(module).values() if isinstance(x, type) and x.__module__ == module.__name__)]
    held = [(x, list(vars(x).values())) for x in parts]  # held, so that nothing else gets their places in memory
    _looked[module.__name__] = [(x, values, list(map(id, values))) for x, values in held]
    return True


def _as_made(kind: str, module: str, attribute: str) -> bool:
    """A table that nobody has loaded yet is."""
    if f"{NAME}.{module}" not in sys.modules:
        return True
    found = import_module(f"{NAME}.{module}")  # which waits where another thread is loading it
    now, then = getattr(found, attribute), found.SHIPPED
    expected = {**then, **{name: row for (of, name), row in plugins.rows.items() if of == kind}}
    return now.keys() == expected.keys() and all(now[key] is expected[key] for key in expected)


def steady() -> bool:
    """Return whether what this process has loaded is what the files of the package and of installed packages are."""
    return store.steady() and plugins.steady()


def sources() -> tuple[str, ...]:
    """What of a request's key is not the request: the sources of installed packages that add to the tables."""
    return (plugins.fingerprint(),) if plugins.packages else ()


def _known(f: Any) -> bool:
    """Python's, numpy's, or of our files; dataclasses write some of ours at run time. A wrapper takes over the name of
    the module, but not the file.
    """
    if isinstance(f, CACHED):
        return _known(f.__wrapped__)
    if not isinstance(f, FunctionType | type):
        return isinstance(f, BuiltinFunctionType | np.ufunc) or type(f).__module__ in ALIASES
    if f in _fine:
        return True
    top = str(f.__module__).partition(".")[0]
    if top != NAME:
        known = top == "numpy" or top in sys.stdlib_module_names
    else:
        known = isinstance(f, type) or f.__code__.co_filename.startswith(ROOT) or f.__code__.co_filename == "<string>"
    if known:
        _fine.add(f)
    return known


def _modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        package, _, rest = name.partition(".")
        if package == NAME and rest.partition(".")[0] in PARTS and module is not None:
            yield module


def _functions(module: ModuleType) -> Iterator[Any]:
    """What can be called of a module, and the functions of the classes it defines."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            for name, inner in list(vars(value).items()):
                if name not in ("__repr__", "__new__"):  # the latter of tuples, by Python
                    yield from _within(inner)
        elif callable(value):
            yield value


def _within(inner: Any) -> Iterator[Any]:
    """What of a class computes."""
    if isinstance(inner, property):
        inner = inner.fget
    elif isinstance(inner, staticmethod | classmethod):
        inner = inner.__func__
    elif isinstance(inner, cached_property):
        inner = inner.func
    if callable(inner) and not isinstance(inner, type):
        yield inner
