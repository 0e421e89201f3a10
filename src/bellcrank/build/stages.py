"""The stages from a graph to a kernel, on any target, with what earlier processes made found again on disk.

graph --compile--> facts, code --load--> Kernel
  key --recalled-> facts, code --load--> Kernel        nothing is traced
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from bellcrank import patience  # not its function: factory_state.py looks at all that modules of build/ have
from bellcrank.emit import cache as store
from bellcrank.emit import lifetime
from bellcrank.emit.target import About, Extend, Signature, Target
from bellcrank.graph import Graph, Recursion
from bellcrank.parameters import Parameters

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be compiled. key: all that decides the graph, where that is known without tracing it."""

    name: str
    graph: Callable[[], tuple[str, Graph]]  # by which method, and what came out
    key: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[str]] | None = None  # names of the elements of inputs
    call: str = ""  # "(q, v, *, out=None)": how it is called, where that is more than its inputs
    doc: str = ""
    parameters: Parameters | None = None
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
    extend: Extend | None = None


def built(job: Job, on: Target) -> Kernel:
    """The Kernel of a job: what an earlier process made, or compiled now."""
    made = cache(lambda: fitted(*job.graph(), on))
    index = store.key(*job.key, *on.key, store.package_fingerprint()) if job.key else ""
    facts, code, cached = _recalled(index, on) if index else (None, None, False)
    if facts is None:
        with lifetime.uncollected(), patience.said(f"tracing {job.name}"):
            method, graph = made()
        with lifetime.uncollected(), patience.said(f"compiling {graph.name}"):
            facts, code, cached = on.compile(graph)
        facts |= {
            "method": method,
            "inputs": {key: list(shape) for key, shape in graph.inputs.items()},
            "outputs": {key: list(shape) for key, shape in graph.shapes.items()},
        }
        if index:
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
    if isinstance(graph, Recursion) and graph.recut is not None and (cut := getattr(on, "segments", None)):
        return method, graph.recut(*cut)
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
