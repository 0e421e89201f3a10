"""Data-flow graph of one computation: named inputs, named outputs and the nodes between, in topological order.

Everything else interprets this object: `evaluate` (the reference semantics), `count`, `span`, the derivatives, the
pictures, and the code generators in `emit/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import CompileError, InputError, TraceError, brief, unknown
from bellcrank.graph import graph_text, interpreter
from bellcrank.lazy_import import lazy_import
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import COMPARISONS, KINDS, OPS, PLUMBING
from bellcrank.nodes.tape import PARAMETERS, Tape, raise_foreign_node
from bellcrank.parameters import Free
from bellcrank.quoting import single_line
from bellcrank.scalar import step

if TYPE_CHECKING:
    from bellcrank.graph.loops.statements import LoopProgram

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
MAX_LISTED_ELEMENTS = 5  # elements listed in a message
REPORT_BUG = "; this is a bug of bellcrank, and no code was generated. Please report it, with the call that caused it."


@dataclass(frozen=True)
class Count:
    """Number of operations of each kind, counted as in the literature."""

    by_kind: Mapping[str, int]

    def __getitem__(self, kind: str) -> int:
        return self.by_kind[kind]

    @property
    def arithmetic(self) -> int:
        """Sum of mul, add, sub and div: the figure that the literature compares."""
        return sum(self.by_kind[kind] for kind in ("mul", "add", "sub", "div"))

    def _repr_html_(self) -> str:
        return str(lazy_import("view.notebook:count")(self))

    def __str__(self) -> str:
        cells = [(kind, n) for kind, n in self.by_kind.items() if n or kind in ("mul", "add", "sub", "div")]
        widths = [max(len(kind), len(str(n))) for kind, n in cells]
        head = "  ".join(kind.rjust(w) for (kind, _), w in zip(cells, widths, strict=True))
        row = "  ".join(str(n).rjust(w) for (_, n), w in zip(cells, widths, strict=True))
        return f"{head}\n{row}"


@explain_methods(
    "along", "call", "evaluate", "flat", "jacobian", "jvp", "varied", "vjp", "dot", "svg", "json", "sparsity"
)
@dataclass(frozen=True, eq=False)
class Graph:
    """A traced function: named inputs, named outputs and the operations between.

    Prints as a list of assignments. `evaluate` runs it on numbers, `count` and `span` give its cost, and `jacobian`,
    `jvp` and `vjp` return new graphs.

    Parameters
    ----------
    name : str
        Name of the function.
    inputs : mapping of str to tuple of int
        Shapes of the inputs.
    outputs : mapping of str to ndarray
        Object arrays of nodes and floats.
    tape : Tape
        The nodes in the order in which they were traced.
    only : str
        An input: callers need the outputs only where it is positive, so a target may skip the call.
    """

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Array]
    tape: Tape = field(repr=False)
    only: str = ""

    opaque: ClassVar[bool] = False  # true if it is unknown which outputs are constants or inputs

    @cached_property
    def nodes(self) -> list[Node]:
        """Nodes on which an output depends, in topological order."""
        live: set[int] = set()
        stack = [x for array in self.outputs.values() for x in array.flat if isinstance(x, Node)]
        while stack:
            node = stack.pop()
            if node.serial not in live:
                live.add(node.serial)
                stack.extend(node.operands)
        return [self.tape.nodes[serial] for serial in sorted(live)]

    @property
    def size(self) -> int:
        """Number of live nodes."""
        return len(self.nodes)

    @property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of the outputs, by name."""
        return {name: array.shape for name, array in self.outputs.items()}

    def count(self) -> Count:
        """Count the operations of each kind on which an output depends.

        Returns
        -------
        Count
            Includes the operations of called graphs.
        """
        kinds = dict.fromkeys(KINDS, 0)
        for node in self.nodes:
            if node.op == "call":
                for kind, n in node.args[0].count().by_kind.items():
                    kinds[kind] += n
            elif node.op not in PLUMBING:
                kinds[OPS[node.op].kind] += 1
        return Count(kinds)

    def work(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the time on one processor.

        The ratio of `work` to `span` bounds the speed-up on any number of processors.

        Parameters
        ----------
        cost : mapping, optional
            Cost by operation name; the costs of the operation table (an addition is 1) unless given.

        Returns
        -------
        float
            Sum of the costs of all operations.
        """
        weight = interpreter.operation_costs(cost)
        return sum(node.args[0].work(cost) if node.op == "call" else weight[node.op] for node in self.nodes)

    def span(self, cost: Mapping[str, float] | None = None) -> float:
        """Return the length of the longest dependent path: the time on infinitely many processors.

        Parameters
        ----------
        cost : mapping, optional
            Cost by operation name; the costs of the operation table (an addition is 1) unless given.

        Returns
        -------
        float
            Sum of the costs along the path.
        """
        return max(interpreter.finish_times(self.nodes, cost).values(), default=0.0)

    def critical_path(self, cost: Mapping[str, float] | None = None) -> list[Node]:
        """Return one longest path from an input to an output.

        Parameters
        ----------
        cost : mapping, optional
            Cost by operation name; the costs of the operation table (an addition is 1) unless given.

        Returns
        -------
        list of Node
            In order of execution.
        """
        return interpreter.longest_path(self.nodes, cost)

    def evaluate(self, **values: Any) -> dict[str, Array]:
        """Evaluate the graph with numpy, one node after the other: the reference for every target.

        Parameters
        ----------
        **values : array_like
            Every input by name, shape (..., *shape of the input); leading axes broadcast.

        Returns
        -------
        dict of str to ndarray
            The outputs by name, with the leading axes in front.

        Raises
        ------
        InputError
            If an input is missing, unknown, not real, or of another shape.
        """
        return interpreter.evaluate_outputs(
            self.nodes, self.outputs, interpreter.checked_inputs(self.name, self.inputs, values)
        )

    @property
    def elements(self) -> list[tuple[str, int]]:
        """Every element of every input as (name, flat index), in the order of the arguments of a call."""
        return [(name, k) for name, shape in self.inputs.items() for k in range(math.prod(shape))]

    def flat(self, values: Sequence[Any]) -> list[Any]:
        """Evaluate with the elements of all inputs in one list; return the elements of all outputs in one list.

        Parameters
        ----------
        values : sequence
            One number or array for each of `elements`.

        Returns
        -------
        list
            One array for each element of the outputs, in the order of `shapes`.

        Raises
        ------
        InputError
            If the number of values is not that of `elements`.
        """
        if not hasattr(values, "__len__") or len(values) != len(self.elements):
            raise InputError(f"{self.name}: {brief(values)}; expected {len(self.elements)} elements in one list.")
        results = self.evaluate(**interpreter.arrays_by_name(values, self.inputs))
        return [
            array.reshape((*array.shape[: array.ndim - len(self.shapes[name])], -1))[..., k]
            for name, array in results.items()
            for k in range(math.prod(self.shapes[name]))
        ]

    def call(self, **values: Any) -> dict[str, Array]:
        """Use this graph inside another trace.

        Parameters
        ----------
        **values : array_like
            Every input by name: nodes of that trace, or numbers, in the shape of the input.

        Returns
        -------
        dict of str to ndarray
            The outputs by name: arrays of nodes, or of numbers if no value is a node.

        Raises
        ------
        InputError
            If an input is missing, unknown, or of another shape.
        """
        flat: list[Any] = []
        for name, shape in self.inputs.items():
            if name not in values:
                raise InputError(f'{self.name}: input "{name}" is missing; expected {", ".join(self.inputs)}.')
            array = np.array(values.pop(name), dtype=object)
            if array.shape != shape:
                raise InputError(f'{self.name}: input "{name}" has shape {array.shape}; expected {shape}.')
            flat += list(array.flat)
        if values:
            raise InputError(f"{self.name}: {unknown('input', next(iter(values)), self.inputs)}")
        tape = next((x.tape for x in flat if isinstance(x, Node)), None)
        if tape is None:
            return self.evaluate(**interpreter.arrays_by_name(flat, self.inputs))
        results = iter(tape.call(self, *flat))
        return {
            name: value_array([next(results) for _ in range(math.prod(shape))], shape)
            for name, shape in self.shapes.items()
        }

    @cached_property
    def widest(self) -> int:
        """Number of elements of the largest array among the inputs, the outputs and the results of calls."""
        called = [node.args[0] for node in self.nodes if node.op == "call"]
        shapes = [*self.inputs.values(), *self.shapes.values(), *(s for g in called for s in g.shapes.values())]
        return max(map(math.prod, shapes), default=0)

    @cached_property
    def calls(self) -> list[Graph]:
        """Graphs that this one calls, directly or indirectly, each once and callees first."""
        callees: dict[int, Graph] = {}
        for node in self.nodes:
            if node.op == "call":
                for g in (*node.args[0].calls, node.args[0]):
                    callees.setdefault(id(g), g)
        return list(callees.values())

    def divided(self, most: int | None, shortest: int) -> Graph:
        """Return the same function with its long branches divided into parallel segments; itself if it has none.

        Parameters
        ----------
        most : int or None
            Most segments of a branch; None for any number.
        shortest : int
            Least bodies of a segment.

        Returns
        -------
        Graph
            The divided graph, or this one.
        """
        return self

    def check_whole(self) -> None:
        """Raise CompileError if the code of the graph would leave an element of an output unset."""

    def loops(self) -> LoopProgram | None:
        """Return the graph as loops (graph/loops/statements.py).

        Returns
        -------
        LoopProgram or None
            None if straight-line code is better.
        """
        from bellcrank.graph.loop_levels import roll_if_worthwhile

        rolled = roll_if_worthwhile(self)
        return rolled.program if rolled is not None else None

    @property
    def within(self) -> list[Graph]:
        """Graphs called by the loops that a target emits in place of the nodes of this one (linear_solve.py)."""
        return []

    @cached_property
    def functions(self) -> list[Graph]:
        """Graphs that this one and its loops call, directly or indirectly, each once and callees first."""
        groups = [(*g.functions, g) for g in (*self.within, *self.calls)]
        return list({id(g): g for group in groups for g in group}.values())

    def jacobian(self, of: str, wrt: str, mode: str = "auto") -> Graph:
        """Return the derivative of one output with respect to one input as a new graph.

        Parameters
        ----------
        of : str
            Name of the output.
        wrt : str
            Name of the input.
        mode : {"auto", "forward", "reverse"}
            Mode of differentiation: "forward" is cheap for few inputs, "reverse" for few outputs, "auto" decides by the
            sizes.

        Returns
        -------
        Graph
            The same inputs and one output, `d{of}_d{wrt}`, of shape (*of, *wrt).
        """
        from bellcrank.graph import autodiff

        return autodiff.jacobian(self, of, wrt, mode)

    def jvp(self, wrt: Sequence[str] = ()) -> Graph:
        """Return a graph of the outputs and their directional derivative (Jacobian-vector product).

        Parameters
        ----------
        wrt : sequence of str
            Inputs that move; all inputs unless given.

        Returns
        -------
        Graph
            Inputs x and, for those in `wrt`, their rates d_x; outputs y and their rates d_y.
        """
        from bellcrank.graph import autodiff

        return autodiff.jvp(self, wrt)

    def vjp(self, wrt: Sequence[str] = ()) -> Graph:
        """Return a graph of the gradient of the weighted sum of the outputs (vector-Jacobian product).

        Parameters
        ----------
        wrt : sequence of str
            Inputs of the gradient; all inputs unless given.

        Returns
        -------
        Graph
            Inputs x and a weight w_y for every output y; outputs g_x, the gradients for the inputs in `wrt`.
        """
        from bellcrank.graph import autodiff

        return autodiff.vjp(self, wrt)

    @cached_property
    def pullback(self) -> Graph:
        """The vjp with respect to all inputs, computed once; the vjp of a calling graph calls it."""
        return self.vjp()

    def sparsity(self, of: str, wrt: str) -> Array:
        """Return the sparsity pattern of the derivative of one output with respect to one input.

        Parameters
        ----------
        of : str
            Name of the output.
        wrt : str
            Name of the input.

        Returns
        -------
        ndarray of bool, shape (*of, *wrt)
            True where the derivative may be other than zero.
        """
        from bellcrank.graph import autodiff

        return autodiff.sparsity(self, of, wrt)

    def varied(self, wrt: str, directions: int, **others: Sequence[int]) -> Graph:
        """Return this graph extended by variations: directional derivatives along several directions at once.

        The input `wrt` of size n grows to n (1 + directions): its values, then the n rates of each direction. Outputs
        grow likewise.

        Parameters
        ----------
        wrt : str
            Name of the input that carries its rates with it.
        directions : int
            Number of directions.
        **others : sequence of int
            For another input, the element that moves at unit speed in each direction (-1: none).

        Returns
        -------
        Graph
            The extended graph.
        """
        from bellcrank.graph import autodiff

        return autodiff.varied(self, wrt, directions, others)

    def along(self, moves: Mapping[str, Array], of: Sequence[str]) -> dict[str, Array]:
        """Return the rates of some outputs when the inputs move along several directions.

        Parameters
        ----------
        moves : mapping
            For each input that moves, numbers or nodes of this graph, shape (size of the input, directions).
        of : sequence of str
            Names of the outputs.

        Returns
        -------
        dict of str to ndarray
            Rates, shape (size of the output, directions).
        """
        from bellcrank.graph import autodiff

        return autodiff.along(self, moves, of)

    def code_key(self, known: dict[int, Any]) -> tuple[Any, ...]:
        """Return what decides the code of the graph, for `structure`, which keeps the result.

        Parameters
        ----------
        known : dict
            Structures computed so far, by id of their graph.

        Returns
        -------
        tuple
            A hashable description.
        """
        nodes = tuple((n.serial, n.op, *(_argument_key(a, known) for a in n.args)) for n in self.nodes)
        outputs = tuple((key, x.shape, *(_argument_key(a, known) for a in x.flat)) for key, x in self.outputs.items())
        return self.only, tuple(self.inputs.items()), outputs, nodes

    def __repr__(self) -> str:
        def listed(shapes: Mapping[str, Shape]) -> str:
            return ", ".join(f"{single_line(name)}{list(shape) if shape else ''}" for name, shape in shapes.items())

        outputs = {name: array.shape for name, array in self.outputs.items()}
        return f"<Graph {single_line(self.name)}({listed(self.inputs)}) -> {listed(outputs)}: {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        return str(lazy_import("view.notebook:graph")(self))

    def __str__(self) -> str:
        return graph_text.assignments_text(self.name, self.inputs, self.outputs, self.nodes)

    def dot(self) -> str:
        """Return the graph in the DOT language of Graphviz.

        Returns
        -------
        str
            Text of a .dot file.
        """
        return graph_text.dot_text(self.name, self.outputs, self.nodes)

    def svg(self) -> str:
        """Return a picture of a small graph, with the critical path in red.

        Returns
        -------
        str
            Text of an SVG file.
        """
        draw = lazy_import("view.graph_picture:svg")
        return str(draw(self.name, self.inputs, self.outputs, self.nodes, self.critical_path()))

    def json(self) -> str:
        """Return inputs, outputs and nodes as JSON.

        Returns
        -------
        str
            JSON text.
        """
        return graph_text.json_text(self.name, self.inputs, self.outputs, self.nodes)


@dataclass(frozen=True, eq=False)
class CustomPullbackGraph(Graph):
    """A graph with a pullback that is cheaper than the chain rule through its nodes.

    `make_pullback` creates the pullback: (inputs x, results r_y, weights w_y) -> g_x of every input. The results r_y
    are known wherever the pullback is called.
    """

    make_pullback: Callable[[], Graph] = field(kw_only=True, repr=False)

    @cached_property
    def pullback(self) -> Graph:
        """The vjp with respect to all inputs, created by `make_pullback`."""
        return self.make_pullback()


def trace(
    name: str,
    function: Callable[..., Mapping[str, Any]],
    inputs: Mapping[str, Shape],
    parameters: Collection[str] = (),
) -> Graph:
    """Trace a function: call it once on symbols and record its operations.

    Parameters
    ----------
    name : str
        Name of the graph.
    function : callable
        Called as `function(**symbols)`; returns a mapping of names to (nested) arrays of scalars.
    inputs : mapping
        Shapes of the inputs by name; the symbol of shape () is a scalar.
    parameters : collection of str
        Names of free parameters of a model. Those that the function meets become elements of one more input, "p", in
        this order.

    Returns
    -------
    Graph
        The graph of the outputs.

    Raises
    ------
    TraceError
        If the function branches on a symbol, returns a comparison, or uses symbols of another trace.
    """
    step("")  # forget the label that the last trace left
    tape = Tape(list(parameters))
    symbols = {name: tape.inputs(name, shape)[()] for name, shape in inputs.items()}  # without axes: one node
    outputs = {}
    for key, value in function(**symbols).items():
        array = np.array(value, dtype=object)
        for index in np.ndindex(*array.shape):
            x = tape.value(array[index]) if isinstance(array[index], Free) else array[index]
            if isinstance(x, Node) and x.tape is not tape:
                raise_foreign_node(x, f'{name}: output "{key}": ')
            if isinstance(x, Node) and x.op in COMPARISONS:
                raise TraceError(
                    f'{name}: output "{key}" is a comparison; write where(condition, 1.0, 0.0) for a number.'
                )
            array[index] = tape.value(x) if isinstance(x, Node) else float(x)
        outputs[key] = array
    free = {PARAMETERS: (len(parameters),)} if parameters else {}
    return Graph(name, dict(inputs) | free, outputs, tape)


class Coverage:
    """Store coverage check for generated code: every element of every output is stored.

    An emitter notes each store when it writes it, and calls `check` at the end. An element that is not stored would
    return whatever was in the memory of the caller, which may look like a result.
    """

    def __init__(self, function: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Start with no element stored.

        Parameters
        ----------
        function
            Name of the function, for the message.
        shapes
            Shapes of all outputs, by name.
        """
        self.function = function
        self.stored = {name: np.zeros(math.prod(shape), bool) for name, shape in shapes.items()}

    def note(self, output: str, elements: Iterable[int]) -> None:
        """Record that `elements` (flat indices) of `output` are stored."""
        known = self.stored.get(output, np.zeros(0, bool))
        places = elements if isinstance(elements, np.ndarray) else np.fromiter(elements, int)
        if places.size and (places.min() < 0 or places.max() >= len(known)):
            raise CompileError(f'{self.function}: the generated code stores outside of "{output}"{REPORT_BUG}')
        known[places] = True

    def check(self) -> None:
        """Raise CompileError if an element of an output is not stored."""
        for name, stored in self.stored.items():
            missing = np.flatnonzero(~stored)
            if len(missing):
                some = ", ".join(map(str, missing[:MAX_LISTED_ELEMENTS])) + (
                    ", ..." if len(missing) > MAX_LISTED_ELEMENTS else ""
                )
                raise CompileError(
                    f"{self.function}: the generated code does not store {len(missing)} of {len(stored)} elements "
                    f'of "{name}" ({some}){REPORT_BUG}'
                )


def value_array(values: Sequence[Any], shape: Shape = (-1,)) -> Array:
    """Return the nodes and numbers `values` as an array of a `shape`; one axis unless given."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def mapped_outputs(graph: Graph, value: Callable[[Node], Any]) -> dict[str, Array]:
    """Return the outputs of `graph` with the `value` of every node in its place."""
    return {
        name: value_array([value(x) if isinstance(x, Node) else x for x in array.flat], array.shape)
        for name, array in graph.outputs.items()
    }


def structure(graph: Graph, known: dict[int, Any] | None = None) -> tuple[Any, ...]:
    """Return a comparable, hashable description of the code of a graph: inputs, outputs and operations.

    Graphs of equal structure compile to the same code. Labels of steps are left out; numbers differ to the last bit.

    Parameters
    ----------
    graph
        The graph.
    known
        Structures computed so far, by id; this call adds its own.
    """
    known = {} if known is None else known
    if id(graph) not in known:
        known[id(graph)] = graph.code_key(known)
    structure_key: tuple[Any, ...] = known[id(graph)]
    return structure_key


def _argument_key(x: Any, known: dict[int, Any]) -> Any:
    if isinstance(x, Node):
        return x.serial
    if isinstance(x, float):
        return x.hex()  # because 0.0 equals -0.0
    return structure(x, known) if isinstance(x, Graph) else (type(x).__name__, x)
