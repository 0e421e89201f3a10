"""Targets, and the stages from a graph to a kernel: the same for every graph and target, with results cached on disk.

    Where --target--> Target
    graph --compile--> facts, code --load--> Kernel
      key --recalled-> facts, code --load--> Kernel        nothing is traced

A key is known where the tables that determine a graph contain no rows of the user's own.
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

from bellcrank import plugins, progress
from bellcrank.emit import cache as store
from bellcrank.emit.constant_changes import code_fingerprint
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
    """A kernel to compile.

    key: everything that determines the graph, where that is known without tracing it.
    doubts: returns the texts of warnings about results of a method; called after tracing, and stored with the code.
    issue: issues them, also those of a kernel from the cache.
    """

    name: str
    graph: Callable[[str], tuple[str, Graph]]  # method, or "" -> (method, graph)
    key: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[str]] | None = None  # names of the elements of inputs
    call: str = ""  # signature, as "(q, v, *, out=None)", where it has more than the inputs
    doc: str = ""
    parameters: Parameters | None = None
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
    extend: Extend | None = None
    doubts: Callable[[str], Sequence[str]] | None = None
    issue: Callable[[Sequence[str]], None] | None = None


def build_kernel(job: Job, backend: Target) -> Kernel:
    """Return the kernel of a job, from the cache or compiled now.

    Parameters
    ----------
    job
        The kernel to compile.
    backend
        The target.
    """
    index = store.key(*job.key, *backend.key, code_fingerprint()) if job.key else ""
    facts, code, cached = _load_cached(index, backend) if index else (None, None, False)
    cached_method = facts["method"] if facts else ""  # the cached method, even if others were added

    @cache
    def traced() -> tuple[str, Graph]:
        method, graph = job.graph(cached_method)
        return method, graph.divided(*backend.segments)

    if facts is None:
        with progress.garbage_collection_paused(), progress.progress_message(f"tracing {job.name}"):
            method, graph = traced()
        with progress.garbage_collection_paused(), progress.progress_message(f"compiling {graph.name}"):
            facts, code, cached = backend.compile(graph)
        facts |= {
            "method": method,
            "inputs": {key: list(shape) for key, shape in graph.inputs.items()},
            "outputs": {key: list(shape) for key, shape in graph.shapes.items()},
            "doubts": list(job.doubts(method)) if job.doubts else [],
        }
        if index and sources_unchanged():
            store.save(f"{index}.json", json.dumps(facts).encode())
    if job.issue:
        job.issue(facts["doubts"])
    about = About(
        _kernel_signature(job, facts, backend.dtype),
        lambda: traced()[1],
        cache(lambda: backend.source(traced()[1])),
        facts["method"],
        cached,
        job.recipe,
        job.extend,
        Parameters() if job.parameters is None else job.parameters,
    )
    kernel: Kernel = backend.load(code, facts, about)
    return kernel


def uses_several_cores(graph: Graph, backend: Target) -> bool:
    """Return whether several cores of target `backend` would share the work of `graph` on one state."""
    return backend.used(graph.divided(*backend.segments)) > 1


def _load_cached(index: str, backend: Target) -> tuple[dict[str, Any] | None, Any, bool]:
    """Return facts and code that an earlier process compiled for the same request, package and computer."""
    stored_facts = store.load(f"{index}.json")
    facts = json.loads(stored_facts) if stored_facts is not None else None
    code = backend.recall(facts) if facts is not None else None
    return (facts, code, True) if code is not None else (None, None, False)


def _kernel_signature(job: Job, facts: Mapping[str, Any], dtype: str) -> Signature:
    columns = {key: job.columns[key] for key in facts["inputs"] if key in job.columns} if job.columns else None
    inputs, outputs = ({key: tuple(shape) for key, shape in facts[part].items()} for part in ("inputs", "outputs"))
    rows_per_thread = facts.get("rows_per_thread") or Signature.rows_per_thread
    return Signature(job.name, inputs, outputs, dtype, rows_per_thread, columns, job.call, job.doc)


TARGETS = ("cpu", "cuda")
MAX_THREADS = 1024  # threads: far more than processors, because every requested thread is started


@dataclass(frozen=True)
class Where:
    """Target options as the user writes them: target="cpu", threads=2.

    Parameters
    ----------
    target : {"cpu", "cuda"}
        Processor for which code is compiled.
    dtype : {"float64", "float32"}
        Floating-point type.
    threads : int
        CPU threads that share the states of a batch.
    machine : str or Machine
        "threads" shares the work on each state among threads; a Machine also gives their costs.
    processors : int, optional
        Number of these threads.
    waves : bool
        Whether a whole GPU may share one state; False for callers that launch kernels by address.
    """

    target: str = "cpu"
    dtype: str = "float64"
    threads: int = 1
    machine: Any = ""
    processors: int | None = None
    waves: bool = True

    def __post_init__(self) -> None:
        dtype = str(getattr(self.dtype, "name", getattr(self.dtype, "__name__", self.dtype)))  # np.float32 is accepted
        object.__setattr__(self, "dtype", dtype)
        if not isinstance(self.target, str) or self.target not in TARGETS:  # an array would raise its own error
            raise InputError(unknown("target", self.target, TARGETS, "cuda" if repr(self.target) == "'gpu'" else ""))
        if dtype not in DTYPES:
            raise InputError(unknown("dtype", dtype, DTYPES))
        whole = is_whole(self.threads)
        if not whole or not 1 <= self.threads <= MAX_THREADS:
            raise InputError(f"threads is {self.threads!r}; expected a whole number from 1 to {os.cpu_count()}.")
        object.__setattr__(self, "threads", int(self.threads))
        if isinstance(self.machine, np.ndarray | memoryview):  # has no truth value, and is not a machine
            raise InputError(f'machine is {brief(self.machine)}; expected "threads" or a Machine.')
        if self.processors is not None and not self.machine:
            raise InputError('processors= needs machine="threads".')
        if self.target == "cuda" and (self.machine or self.threads > 1):
            raise InputError('threads= and machine= apply to the CPU only; target="cuda" has a thread for every state.')


def target_of(where: Where, what: str) -> Target:
    """Return the target of `where`, with a warning about `what` where the CPU replaces a missing GPU.

    The runtime for several cores or for a GPU is imported only when used.
    """
    if where.target == "cuda":
        from bellcrank.emit.cuda import device

        if not (why := device.unavailable_reason()):
            from bellcrank.emit.cuda.target import Cuda

            return Cuda(where.dtype, where.waves)
        warn(f"{why} The CPU computes {what} instead.")
    if not isinstance(where.machine, str) or where.machine:
        from bellcrank.emit.cores.target import Cores, machine

        core_machine = machine(where.machine, where.processors, where.dtype)
        if where.threads > 1:
            raise InputError(
                "threads= and machine= exclude each other: one shares states of a batch, the other the work on each "
                "state."
            )
        return Cores(core_machine, where.dtype)
    from bellcrank.emit.cpu.target import Cpu

    return Cpu(where.dtype, where.threads)


# -- check that the tables are as shipped

PACKAGE_NAME = __name__.partition(".")[0]
# Tables that users can extend, with their modules; each module keeps the shipped rows in SHIPPED.
EXTENSIBLE_TABLES = {
    "method": ("dynamics.method_table", "METHODS"),
    "quantity": ("dynamics.quantities", "QUANTITIES"),
    "closure": ("dynamics.loops.constraint_equations", "CLOSURES"),
    "joint": ("model.joints", "KINDS"),
}


def tables_as_shipped() -> bool:
    """Return whether the tables that determine a graph contain only rows of the package and of installed packages.

    The sources of both are part of the key. A function of the package that is replaced at run time is not detected.
    """
    rows = dict(plugins.entries)  # a copy: another thread may be adding to it
    counts = {name: len(row[0]) for (kind, name), row in rows.items() if kind == "closure"}
    if {**parts.SHIPPED, **counts} != dict(parts.EQUATIONS):
        return False
    return all(_is_as_shipped(kind, *place, rows) for kind, place in EXTENSIBLE_TABLES.items())


def _is_as_shipped(kind: str, module: str, attribute: str, rows: Mapping[tuple[str, str], Any]) -> bool:
    """Return whether one table has only shipped rows, as one that is not loaded yet."""
    if f"{PACKAGE_NAME}.{module}" not in sys.modules:
        return True
    loaded_module = import_module(f"{PACKAGE_NAME}.{module}")  # waits while another thread is loading it
    table = dict(getattr(loaded_module, attribute))
    expected = {
        **loaded_module.SHIPPED,
        **{name: row for (entry_kind, name), row in rows.items() if entry_kind == kind},
    }
    return table.keys() == expected.keys() and all(table[key] is expected[key] for key in expected)


def sources_unchanged() -> bool:
    """Return whether the loaded code equals the files of the package and of installed packages."""
    return store.sources_unchanged() and (not plugins.packages or plugins.sources_unchanged())


def plugin_key() -> tuple[str, ...]:
    """Return the part of a cache key for the sources of installed packages that extend the tables."""
    return (plugins.fingerprint(),) if plugins.packages else ()
