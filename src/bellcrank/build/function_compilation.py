"""`bc.compile`: compile a user's function, or any graph, into a kernel for any target."""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.build import compile_time_forecast
from bellcrank.build.compilation import Job, Where, build_kernel
from bellcrank.build.compilation import target_of as target_of
from bellcrank.errors import InputError, brief
from bellcrank.graph import Graph, trace
from bellcrank.graph.inline import inline
from bellcrank.graph.user_code import call_checked_pure
from bellcrank.nodes import Node
from bellcrank.parameters import Parameters
from bellcrank.quoting import name_problem

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

Shape = int | tuple[int, ...]
DEFAULT_TARGET = Where()
RESERVED_NAMES = ("out", "parameters")  # keywords that every kernel has
MAX_SYMBOLS = 1_000_000  # symbols: each is a node with code of its own
SCALARS = (int, float, np.integer, np.floating, Node)


@explain_argument_errors
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
    """Compile a function, or a Graph, to machine code for one state or a batch.

        f = bc.compile(lambda x, k: k * bc.sin(x), inputs={"x": 3, "k": ()})
        f(x, k)                                     # arrays with any leading batch axes, which broadcast
        f.graph.count(), f.predicted                # what it costs, before it is run
        df = bc.compile(f.graph.jacobian("function", "x"))        # its derivative is a graph, and so a kernel

    The function is called once, with symbols instead of numbers: an array of them for each argument, or a single symbol
    where the shape is (). Use bc.sin, bc.sqrt, bc.where, bc.minimum and so on, which accept numbers and arrays as well,
    and no `if` on a symbol: the kernel runs exactly the operations that were traced.

    Parameters
    ----------
    function_or_graph : callable or Graph
        A function that returns a scalar, a sequence, an array, or a mapping of those by name (the kernel then returns a
        mapping, too).
    inputs : mapping of str to int or tuple of int
        Shape of every argument by its name: 3, (3, 3), or () for a single number. Left out for a Graph.
    target : str
        "cpu" or "cuda".
    dtype : str
        "float64" or "float32".
    threads : int
        DEFAULT_TARGET threads that share the states of a batch.
    name : str
        Name of the kernel and of an output that has none; by default the function's own name.
    machine, processors
        Cores that share the work on each state, as in `bc.kernel`.

    Returns
    -------
    Kernel
        Called with arrays of shape (..., *shape), it returns arrays with the broadcast leading axes.

    Raises
    ------
    InputError
        If the function cannot be traced, or an argument is not valid.

    Examples
    --------
    >>> f = bc.compile(lambda x, k: k * x * x, inputs={"x": 3, "k": ()})
    >>> f([1.0, 2.0, 3.0], 2.0).tolist()
    [2.0, 8.0, 18.0]
    """
    where = Where(target, dtype, threads, machine, processors)
    if isinstance(function_or_graph, Graph):
        if inputs is not None:
            raise InputError(f"a Graph defines its inputs ({', '.join(function_or_graph.inputs)}); leave out inputs=.")
        return compile_graph(function_or_graph, where, name)
    graph = trace_function(function_or_graph, inputs, name)
    again = partial(compile, name=name, machine=machine, processors=processors)
    recipe = again, (function_or_graph, inputs, target, dtype, threads)
    return compile_graph(graph, where, doc=inspect.getdoc(function_or_graph) or "", recipe=recipe)


def compile_alike(kernel: Kernel, graph: Graph) -> Kernel:
    """Return the kernel of a `graph` for the target, number type, threads and free parameters of another `kernel`."""
    return compile_graph(graph, Where(kernel.target, kernel.signature.dtype, kernel.threads), "", kernel.parameters)


def compile_graph(
    graph: Graph,
    where: Where = DEFAULT_TARGET,
    name: str = "",
    parameters: Parameters | None = None,
    doc: str = "",
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
) -> Kernel:
    """Return the kernel of a graph.

    Parameters
    ----------
    graph
        The graph to compile.
    where
        Target, number type and threads.
    name
        Name of the kernel; by default that of the graph.
    parameters
        Free parameters, which its input `p` holds.
    doc
        Docstring of the kernel.
    recipe
        Function and arguments that make the kernel again, for pickling.
    """
    called = name or graph.name.rpartition(".")[2]
    shared = not where.machine and any(g.opaque for g in graph.calls)
    if not graph.opaque and not shared:
        compile_time_forecast.graph_forecast(graph).warn_if_long(graph.name)
    # Code for several cores per state supports no calls; other targets support calls of recursions.
    flat_graph = inline(graph, recursions=not shared) if any(not (shared and g.opaque) for g in graph.calls) else graph
    job = Job(called, lambda _: ("", flat_graph), doc=doc, parameters=parameters, recipe=recipe)
    return build_kernel(job, target_of(where, called))


def trace_function(function: Callable[..., Any], inputs: Mapping[str, Shape] | None, name: str = "") -> Graph:
    """Trace a user's function into a graph.

    Parameters
    ----------
    function
        Called once with symbols.
    inputs
        Shape of every argument by its name.
    name
        Name of the graph; by default that of the function.
    """
    if not callable(function):
        raise InputError(f"expected a function or a Graph, got {brief(function)}.")
    if not isinstance(inputs, Mapping) or not inputs:
        raise InputError(
            f'inputs is {inputs!r}; expected the shape of every argument by name, as in inputs={{"x": 3, "k": ()}}.'
        )
    called = name or _function_name(function)
    shapes = {key: _checked_shape(key, shape) for key, shape in inputs.items()}
    if (size := sum(map(math.prod, shapes.values()))) > MAX_SYMBOLS:
        raise InputError(
            f"inputs: {size} symbols in all are more than can be compiled; expected at most {MAX_SYMBOLS}."
        )
    call = _symbol_caller(function, called, shapes)

    def body(**symbols: Any) -> dict[str, Any]:
        shown = {key: x.view(SymbolArray) if isinstance(x, np.ndarray) else x for key, x in symbols.items()}
        return _checked_outputs(called, call_checked_pure(f"{called}()", function, call, shown))

    return trace(called, body, shapes)


class SymbolArray(np.ndarray[Any, Any]):
    """An array of symbols whose comparisons give arrays of symbols; plain numpy would convert each result to bool."""

    def __lt__(self, other: Any) -> Any:
        return np.less(self, other, dtype=object)

    def __le__(self, other: Any) -> Any:
        return np.less_equal(self, other, dtype=object)

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other, dtype=object)

    def __ge__(self, other: Any) -> Any:
        return np.greater_equal(self, other, dtype=object)


def _symbol_caller(
    function: Callable[..., Any], name: str, inputs: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a wrapper that calls the function with arguments by name, or by position where it has no names."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, OverflowError):  # a builtin without a signature
        return lambda symbols: function(*symbols.values())
    kinds = {p.kind for p in signature.parameters.values()}
    try:
        if kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:
            signature.bind(*inputs)
            return lambda symbols: function(*symbols.values())
        signature.bind(**inputs)
    except TypeError as error:
        given = ", ".join(inputs)
        raise InputError(
            f"{name}{signature} cannot be called with inputs {given}: {error}. Name its arguments."
        ) from None
    return lambda symbols: function(**symbols)


def _checked_outputs(name: str, returned: Any) -> dict[str, Any]:
    """Return the function's results by name; raise an InputError if a kernel cannot return them."""
    named = dict(returned) if isinstance(returned, Mapping) else {name: returned}
    if not named:
        raise InputError(f"{name} returned an empty mapping; expected at least one result.")
    for key, value in named.items():
        if not isinstance(key, str) or not key or name_problem(key):
            raise InputError(f"{name} returned a result named {brief(key)}; expected a valid Python name.")
        array = np.array(value, dtype=object)
        invalid = next((x for x in array.flat if not isinstance(x, SCALARS)), None)
        if invalid is not None or not array.size or value is None:
            what = f'"{key}" of {name}' if isinstance(returned, Mapping) else name
            raise InputError(
                f"{what} returned {brief(value)}; expected a scalar, an array or a sequence of scalars (rows of one "
                "length), or a mapping of those by name."
            )
    return named


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "function")
    return name if name.isidentifier() else "function"


def _checked_shape(name: Any, shape: Any) -> tuple[int, ...]:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name in RESERVED_NAMES:
        raise InputError(
            f'an input is named {brief(name)}; expected a valid Python name such as "x". '
            f"{' and '.join(RESERVED_NAMES)} are reserved."
        )
    sizes = (shape,) if isinstance(shape, int | np.integer) else shape
    whole = isinstance(sizes, Sequence) and all(isinstance(n, int | np.integer) and n > 0 for n in sizes)
    if not whole or isinstance(sizes, str) or isinstance(shape, bool):
        raise InputError(f'inputs: the shape of "{name}" is {shape!r}; expected 3, (3, 3), or () for a single number.')
    return tuple(int(n) for n in sizes)
