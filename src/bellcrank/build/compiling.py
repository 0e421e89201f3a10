"""bc.compile: a function of your own, or any graph, as a kernel on any target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.stages import Job, built
from bellcrank.build.targets import Where
from bellcrank.build.targets import target as target_of
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.parameters import Parameters
from bellcrank.quoting import refused

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

Shape = int | tuple[int, ...]
CPU = Where()


def compile(  # as in `re.compile`
    function_or_graph: Callable[..., Any] | Graph,
    inputs: Mapping[str, Shape] | None = None,
    target: str = "cpu",
    dtype: str = "float64",
    threads: int = 1,
    *,
    name: str = "",
    machine: Any = "",
    processors: int | None = None,
) -> Kernel:
    """A Kernel of a function of your own, or of a Graph.

        f = bc.compile(lambda x, k: k * bc.sin(x), inputs={"x": 3, "k": ()})
        f(x, k)                 # arrays with any leading batch axes
        f.graph.count()         # what it costs, before it is run

    A function is called once, with an array of symbols for each of the inputs, in their order; a shape () is a single
    scalar. It returns a scalar, a sequence, an array, or a mapping of those by name: then the kernel returns a mapping,
    too. Use the functions of bellcrank (sin, sqrt, where, minimum) or numpy's on those arrays, and no `if` on a symbol.
    target, dtype, threads, machine and processors are those of `bc.kernel`.
    """
    where = Where(target, dtype, threads, machine, processors)
    if isinstance(function_or_graph, Graph):
        if inputs is not None:
            raise InputError(f"a Graph knows its inputs ({', '.join(function_or_graph.inputs)}); leave out inputs=.")
        graph = function_or_graph
    else:
        graph = traced(function_or_graph, inputs, name)
    return of_graph(graph, where, name)


def of_graph(graph: Graph, where: Where = CPU, name: str = "", parameters: Parameters | None = None) -> Kernel:
    """A Kernel of a graph. parameters: what its input `p` is."""
    job = Job(name or graph.name.rpartition(".")[2], lambda: ("", graph), parameters=parameters)
    return built(job, target_of(where, job.name))


def traced(function: Callable[..., Any], inputs: Mapping[str, Shape] | None, name: str = "") -> Graph:
    """The graph of a function of one's own."""
    if not callable(function):
        raise InputError(f"expected a function or a Graph, got {function!r}.")
    if not isinstance(inputs, Mapping) or not inputs:
        raise InputError(
            f'inputs is {inputs!r}; expected the shape of every argument by name, as in inputs={{"x": 3, "k": ()}}.'
        )
    shapes = {key: _shape(key, shape) for key, shape in inputs.items()}
    called = name or _name(function)

    def body(**symbols: Any) -> dict[str, Any]:
        found = function(*symbols.values())
        return dict(found) if isinstance(found, Mapping) else {called: found}

    return trace(called, body, shapes)


def _name(function: Callable[..., Any]) -> str:
    found = getattr(function, "__name__", "function")
    return found if found.isidentifier() else "function"


def _shape(name: Any, shape: Any) -> tuple[int, ...]:
    if not isinstance(name, str) or not name.isidentifier() or refused(name):
        raise InputError(f'an input is called {name!r}; expected a name as Python has them, such as "x".')
    sizes = (shape,) if isinstance(shape, int | np.integer) else shape
    whole = isinstance(sizes, Sequence) and all(isinstance(n, int | np.integer) and n >= 0 for n in sizes)
    if not whole or isinstance(sizes, str) or isinstance(shape, bool):
        raise InputError(f'inputs: the shape of "{name}" is {shape!r}; expected 3, (3, 3), or () for a single number.')
    return tuple(int(n) for n in sizes)
