"""Derivatives of a graph, made of graph: the partials come from the table of operations, the rest is the chain rule.

Forward mode carries one tangent per input through the nodes in order; reverse mode carries one adjoint per output back
through them. Zeros are plain floats and fold away, so a sparse Jacobian costs what its nonzeros cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bellcrank.errors import TraceError
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import OPS, PLUMBING
from bellcrank.scalar import step

Matrix = list[list[Value]]


def _partials(node: Node) -> list[tuple[Node, Value]]:
    """(argument, d node/d argument) for every argument that is a node."""
    if node.op in PLUMBING:
        raise TraceError(f"no derivative goes through {node.op!r}: differentiate the graph that is called instead.")
    op = OPS[node.op]
    args: list[Any] = list(node.args)
    # A partial may call a method of its argument (a.cos()); those rules only run on arguments that are nodes.
    slopes = op.partials(node, *args) if all(isinstance(a, Node) for a in args) or op.arity > 1 else ()
    return [(a, slope) for a, slope in zip(args, slopes, strict=False) if isinstance(a, Node)]


def forward(nodes: Sequence[Node], rows: Sequence[Value], columns: Sequence[Node]) -> Matrix:
    return along(nodes, rows, {x.serial: {j: 1.0} for j, x in enumerate(columns)}, len(columns))


def along(
    nodes: Sequence[Node], rows: Sequence[Value], seeds: Mapping[int, Mapping[int, Value]], directions: int
) -> Matrix:
    """How fast the rows change when the inputs move: seeds says how fast an input moves in each direction."""
    tangents: dict[int, dict[int, Value]] = {}
    for node in nodes:
        step(f"d {node.label}")
        if node.op == "input":
            tangents[node.serial] = dict(seeds.get(node.serial, {}))
            continue
        total: dict[int, Value] = {}
        for a, slope in _partials(node):
            for j, t in tangents[a.serial].items():
                total[j] = total[j] + slope * t if j in total else slope * t
        tangents[node.serial] = total
    return [[tangents[y.serial].get(j, 0.0) if isinstance(y, Node) else 0.0 for j in range(directions)] for y in rows]


def forwards(nodes: Sequence[Node], seeds: Mapping[int, Value], tangent: Callable[[Any], Any]) -> dict[int, Value]:
    """By serial, how fast each node changes when the inputs move as seeds says; nothing of those that stay. Behind a
    call it goes by a call, too: of the tangent of what was called, whose code then exists once.
    """
    rates = dict[int, Value]()
    called: dict[int, list[Value]] = {}  # by the serial of a call, the rates of its results
    for node in nodes:
        step(f"d {node.label}")
        if node.op == "input":
            terms = [seeds[node.serial]] if node.serial in seeds else []
        elif node.op == "call":
            function, *arguments = node.args
            moves = [rates.get(a.serial, 0.0) if isinstance(a, Node) else 0.0 for a in arguments]
            if any(isinstance(x, Node) or x != 0.0 for x in moves):
                called[node.serial] = node.tape.call(tangent(function), *arguments, *moves)
            continue
        elif node.op == "result":
            call, k = node.args
            terms = [called[call.serial][k]] if call.serial in called else []
        else:
            terms = [slope * rates[a.serial] for a, slope in _partials(node) if a.serial in rates]
        if terms:
            total = terms[0]
            for term in terms[1:]:
                total = total + term
            rates[node.serial] = total
    return rates


def reverse(nodes: Sequence[Node], rows: Sequence[Value], columns: Sequence[Node]) -> Matrix:
    matrix: Matrix = []
    for y in rows:
        adjoint = backwards(nodes, {y.serial: 1.0} if isinstance(y, Node) else {})
        matrix.append([adjoint.get(x.serial, 0.0) for x in columns])
    return matrix


def backwards(nodes: Sequence[Node], weights: Mapping[int, Value]) -> dict[int, Value]:
    """By serial, how fast the weighted sum of some nodes changes with each. Behind a call it goes by a call, too: of
    the pullback of what was called, whose code then exists once.
    """
    adjoint = dict(weights)
    called: dict[int, dict[int, Value]] = {}  # by the serial of a call, the weights of its results
    for node in reversed(nodes):
        bar = adjoint.get(node.serial)
        if node.op == "call":
            terms = _pulled(node, called.get(node.serial, {}))
        elif bar is None or node.op == "input":
            continue
        elif node.op == "result":
            call, k = node.args
            called.setdefault(call.serial, {})[k] = bar
            continue
        else:
            step(f"d {node.label}")
            terms = [(a, bar * slope) for a, slope in _partials(node)]
        for a, term in terms:
            adjoint[a.serial] = adjoint[a.serial] + term if a.serial in adjoint else term
    return adjoint


def _pulled(call: Node, weights: Mapping[int, Value]) -> list[tuple[Node, Value]]:
    """(argument, how fast the weighted results change with it) for every argument of a call that is a node."""
    function, *arguments = call.args
    if not weights:
        return []
    step(f"d {call.label}")
    results, back = call.tape.results(call), function.pullback
    known = results if any(f"r_{name}" in back.inputs for name in function.outputs) else []
    found = call.tape.call(back, *arguments, *known, *(weights.get(k, 0.0) for k in range(len(results))))
    return [(a, g) for a, g in zip(arguments, found, strict=True) if isinstance(a, Node)]


MODES: dict[str, Callable[[Sequence[Node], Sequence[Value], Sequence[Node]], Matrix]] = {
    "forward": forward,
    "reverse": reverse,
}
