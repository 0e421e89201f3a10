"""The data-flow graph of one computation: named inputs, named outputs, and the nodes between, in order of creation.

Everything else is an interpreter of this object: `evaluate` (the definition), `count`, `span`, the derivatives, the
drawings, and in `emit/` the targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bellcrank.errors import InputError, TraceError, brief, unknown
from bellcrank.graph import listing, numbers, span
from bellcrank.misfits import explained_class
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import COMPARISONS, KINDS, OPS, PLUMBING
from bellcrank.nodes.tape import PARAMETERS, Tape, foreign
from bellcrank.parameters import Free
from bellcrank.quoting import line
from bellcrank.scalar import step
from bellcrank.stairs import above, view

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """How many operations of each kind, as the papers count them."""

    by_kind: Mapping[str, int]

    def __getitem__(self, kind: str) -> int:
        return self.by_kind[kind]

    @property
    def arithmetic(self) -> int:
        """mul + add + sub + div: the number the literature compares."""
        return sum(self.by_kind[kind] for kind in ("mul", "add", "sub", "div"))

    def _repr_html_(self) -> str:
        return str(view("notebook").count(self))

    def __str__(self) -> str:
        cells = [(kind, n) for kind, n in self.by_kind.items() if n or kind in ("mul", "add", "sub", "div")]
        widths = [max(len(kind), len(str(n))) for kind, n in cells]
        head = "  ".join(kind.rjust(w) for (kind, _), w in zip(cells, widths, strict=True))
        row = "  ".join(str(n).rjust(w) for (_, n), w in zip(cells, widths, strict=True))
        return f"{head}\n{row}"


@explained_class(
    "along", "call", "evaluate", "flat", "jacobian", "jvp", "varied", "vjp", "dot", "svg", "json", "sparsity"
)
@dataclass(frozen=True, eq=False)
class Graph:
    """A function as data: named inputs and outputs, and the operations between. Prints as assignments; `evaluate` runs
    it on numbers, `count` and `span` say what it costs, `derivative`, `jvp` and `vjp` are graphs again.
    """

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Array]  # object arrays of nodes and floats
    tape: Tape = field(repr=False)
    only: str = ""  # an input: who calls this needs its outputs only where that is positive; a target may leave it out

    opaque: ClassVar[bool] = False  # whether it does not say which of its outputs are constants or inputs

    @cached_property
    def nodes(self) -> list[Node]:
        """The live nodes, arguments before users."""
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
        """How many nodes it has."""
        return len(self.nodes)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the outputs, by name."""
        return {name: array.shape for name, array in self.outputs.items()}

    def count(self) -> Count:
        """How many operations of each kind some output needs."""
        kinds = dict.fromkeys(KINDS, 0)
        for node in self.nodes:
            if node.op == "call":
                for kind, n in node.args[0].count().by_kind.items():
                    kinds[kind] += n
            elif node.op not in PLUMBING:
                kinds[OPS[node.op].kind] += 1
        return Count(kinds)

    def work(self, cost: Mapping[str, float] | None = None) -> float:
        """The time on one processor; `work / span` is the most that many of them can gain."""
        weight = span.weights(cost)
        return sum(node.args[0].work(cost) if node.op == "call" else weight[node.op] for node in self.nodes)

    def span(self, cost: Mapping[str, float] | None = None) -> float:
        """Length of the longest dependent path: the time on infinitely many processors. `cost` is by operation name."""
        return max(span.finished(self.nodes, cost).values(), default=0.0)

    def critical_path(self, cost: Mapping[str, float] | None = None) -> list[Node]:
        """One longest path, from an input to an output."""
        return span.longest(self.nodes, cost)

    def evaluate(self, **values: Any) -> dict[str, Array]:
        """The definition of every target: plain numpy, one node after the other, any leading batch shape."""
        return numbers.results(self.nodes, self.outputs, numbers.checked(self.name, self.inputs, values))

    @property
    def elements(self) -> list[tuple[str, int]]:
        """Every element of every input, in the order of the arguments of a call."""
        return [(name, k) for name, shape in self.inputs.items() for k in range(math.prod(shape))]

    def flat(self, values: Sequence[Any]) -> list[Any]:
        """Evaluates with the elements of all inputs in one list, and gives those of all outputs in one."""
        if not hasattr(values, "__len__") or len(values) != len(self.elements):
            raise InputError(f"{self.name}: {brief(values)}; expected {len(self.elements)} elements in one list.")
        results = self.evaluate(**numbers.by_name(values, self.inputs))
        return [
            array.reshape((*array.shape[: array.ndim - len(self.shapes[name])], -1))[..., k]
            for name, array in results.items()
            for k in range(math.prod(self.shapes[name]))
        ]

    def call(self, **values: Any) -> dict[str, Array]:
        """Uses this graph inside another trace: arrays of that trace's nodes (or numbers) in, arrays of nodes out."""
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
            return self.evaluate(**numbers.by_name(flat, self.inputs))
        results = iter(tape.call(self, *flat))
        found = {}
        for name, shape in self.shapes.items():
            found[name] = np.empty(shape, dtype=object)
            for index in np.ndindex(*shape):
                found[name][index] = next(results)
        return found

    @cached_property
    def widest(self) -> int:
        """Elements of its largest array: of those that it reads, gets from calls, and writes."""
        called = [node.args[0] for node in self.nodes if node.op == "call"]
        shapes = [*self.inputs.values(), *self.shapes.values(), *(s for g in called for s in g.shapes.values())]
        return max(map(math.prod, shapes), default=0)

    @cached_property
    def calls(self) -> list[Graph]:
        """The graphs that this one calls, and what they call, each once and after its own."""
        found: dict[int, Graph] = {}
        for node in self.nodes:
            if node.op == "call":
                for g in (*node.args[0].calls, node.args[0]):
                    found.setdefault(id(g), g)
        return list(found.values())

    @property
    def within(self) -> list[Graph]:
        """Graphs that its loops call, where a target makes loops of what its nodes write out (elimination.py)."""
        return []

    @cached_property
    def functions(self) -> list[Graph]:
        """What it calls, and what the loops call that it calls, each once and after its own."""
        found = [(*(f for inner in g.within for f in (*inner.functions, inner)), g) for g in self.calls]
        return list({id(g): g for some in found for g in some}.values())

    def jacobian(self, of: str, wrt: str, mode: str = "auto") -> Graph:
        """d(of)/d(wrt) as a new graph with the same inputs and one output, `d{of}_d{wrt}`, of shape (*of, *wrt).

        mode: "forward" (cheap for few inputs), "reverse" (cheap for few outputs), or "auto" by the sizes.
        """
        return above("graph.variations").jacobian(self, of, wrt, mode)  # type: ignore[no-any-return]

    def jvp(self, wrt: Sequence[str] = ()) -> Graph:
        """The outputs y, and as d_y how fast they change when the inputs x of `wrt` (all, unless told) move by d_x."""
        return above("graph.variations").jvp(self, wrt)  # type: ignore[no-any-return]

    def vjp(self, wrt: Sequence[str] = ()) -> Graph:
        """For weights w_y of the outputs y, the gradient g_x of their weighted sum with respect to each input x."""
        return above("graph.variations").vjp(self, wrt)  # type: ignore[no-any-return]

    @cached_property
    def pullback(self) -> Graph:
        """Its vjp with respect to all inputs, made once: what the vjp of a graph that calls this one calls."""
        return self.vjp()

    def sparsity(self, of: str, wrt: str) -> Array:
        """Where d(of)/d(wrt) may be other than zero: an array of truths, (*of, *wrt)."""
        return above("graph.variations").sparsity(self, of, wrt)  # type: ignore[no-any-return]

    def varied(self, wrt: str, directions: int, **others: Sequence[int]) -> Graph:
        """The same graph with its variations: how all outputs change as its inputs move in so many directions.

        The input `wrt` of size n grows to n (1 + directions): behind its values stand the n numbers of each direction.
        others: for each direction, which element of that input moves at unit speed (-1: none). Outputs grow likewise.
        """
        return above("graph.variations").varied(self, wrt, directions, others)  # type: ignore[no-any-return]

    def along(self, moves: Mapping[str, Array], of: Sequence[str]) -> dict[str, Array]:
        """How fast some outputs change, (size, directions) each, when the inputs move in so many directions.

        moves: for an input, numbers or nodes of this graph, (its size, directions).
        """
        return above("graph.variations").along(self, moves, of)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        def listed(shapes: Mapping[str, Shape]) -> str:
            return ", ".join(f"{line(name)}{list(shape) if shape else ''}" for name, shape in shapes.items())

        outputs = {name: array.shape for name, array in self.outputs.items()}
        return f"<Graph {line(self.name)}({listed(self.inputs)}) -> {listed(outputs)}: {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        return str(view("notebook").graph(self))

    def __str__(self) -> str:
        return listing.assignments(self.name, self.inputs, self.outputs, self.nodes)

    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        return listing.dot(self.name, self.outputs, self.nodes)

    def svg(self) -> str:
        """A picture, for small graphs; the critical path is red."""
        return str(view("graph_picture").svg(self.name, self.inputs, self.outputs, self.nodes, self.critical_path()))

    def json(self) -> str:
        """Inputs, outputs and nodes as JSON."""
        return listing.json_text(self.name, self.inputs, self.outputs, self.nodes)


@dataclass(frozen=True, eq=False)
class Pulled(Graph):
    """A graph that knows a shorter way back than the chain rule through its nodes.

    way: makes the pullback, (inputs x, r_y, w_y) -> g_x of every input; r_y are the results, which whoever goes back
    knows.
    """

    way: Callable[[], Graph] = field(kw_only=True, repr=False)

    @cached_property
    def pullback(self) -> Graph:
        return self.way()


def trace(
    name: str,
    function: Callable[..., Mapping[str, Any]],
    inputs: Mapping[str, Shape],
    parameters: Collection[str] = (),
) -> Graph:
    """Runs `function(**symbols)` once on symbols and keeps what it did. It returns named (nested) arrays of scalars.

    Free numbers of a model (bellcrank.parameters) that it meets are elements of one more input, "p", in this order.
    """
    step("")  # what the last trace was doing is over
    tape = Tape(list(parameters))
    symbols = {
        name: tape.inputs(name, shape) if shape else tape.inputs(name, shape)[()] for name, shape in inputs.items()
    }
    outputs = {}
    for key, value in function(**symbols).items():
        array = np.array(value, dtype=object)
        for index in np.ndindex(*array.shape):
            x = tape.value(array[index]) if isinstance(array[index], Free) else array[index]
            if isinstance(x, Node) and x.tape is not tape:
                foreign(x, f'{name}: output "{key}": ')
            if isinstance(x, Node) and x.op in COMPARISONS:
                raise TraceError(
                    f'{name}: output "{key}" is a comparison; write where(condition, 1.0, 0.0) for a number.'
                )
            array[index] = tape.value(x) if isinstance(x, Node) else float(x)
        outputs[key] = array
    free = {PARAMETERS: (len(parameters),)} if parameters else {}
    return Graph(name, dict(inputs) | free, outputs, tape)
