"""Where a graph is to run, and the stages from there to a kernel: the same for every graph and every target, with what
earlier processes made found again on disk.

    Where --target--> Target
    graph --compile--> facts, code --load--> Kernel
      key --recalled-> facts, code --load--> Kernel        nothing is traced

A key is known where the tables that decide a graph have no rows of the user's own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank import patience, plugins
from bellcrank.emit import cache as store
from bellcrank.emit.constants import code_fingerprint
from bellcrank.emit.target import DTYPES, About, Extend, Signature, Target
from bellcrank.errors import InputError, brief, unknown, warn
from bellcrank.model import parts
from bellcrank.parameters import Parameters
from bellcrank.scalar import is_whole

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
    index = store.key(*job.key, *on.key, code_fingerprint()) if job.key else ""
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
        whole = is_whole(self.threads)
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


# -- whether the tables are as they were shipped

NAME = __name__.partition(".")[0]
# The tables that people add to, and where they are, beside what they were when they were made.
TABLES = {
    "method": ("dynamics.table", "METHODS"),
    "quantity": ("dynamics.quantities", "QUANTITIES"),
    "closure": ("dynamics.loops.rows", "CLOSURES"),
    "joint": ("model.joints", "KINDS"),
}


def tables_as_shipped() -> bool:
    """Return whether the tables that decide a graph have no rows but those of the package and of installed packages.

    The sources of both are part of the key. A function of the package that is exchanged while it runs is not noticed.
    """
    rows = dict(plugins.rows)  # a copy: another thread may be adding to it
    counts = {name: len(row[0]) for (kind, name), row in rows.items() if kind == "closure"}
    if {**parts.SHIPPED, **counts} != dict(parts.EQUATIONS):
        return False
    return all(_as_shipped(kind, *place, rows) for kind, place in TABLES.items())


def _as_shipped(kind: str, module: str, attribute: str, rows: Mapping[tuple[str, str], Any]) -> bool:
    """Return whether one table is; a table that nobody has loaded yet is."""
    if f"{NAME}.{module}" not in sys.modules:
        return True
    found = import_module(f"{NAME}.{module}")  # which waits where another thread is loading it
    now = dict(getattr(found, attribute))
    expected = {**found.SHIPPED, **{name: row for (of, name), row in rows.items() if of == kind}}
    return now.keys() == expected.keys() and all(now[key] is expected[key] for key in expected)


def steady() -> bool:
    """Return whether what this process has loaded is what the files of the package and of installed packages are."""
    return store.steady() and (not plugins.packages or plugins.steady())


def sources() -> tuple[str, ...]:
    """What of a request's key is not the request: the sources of installed packages that add to the tables."""
    return (plugins.fingerprint(),) if plugins.packages else ()
