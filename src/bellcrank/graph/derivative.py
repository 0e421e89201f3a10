"""Automatic differentiation of graphs: partial derivatives from the operation table, combined by the chain rule.

Forward mode carries one tangent per input through the nodes in order; reverse mode carries one adjoint per output
backwards through them. Zeros are plain floats and fold away, so a sparse Jacobian costs only its nonzeros.

The derivative of a selection is that of the selected branch. The other branch may be infinite or NaN there, and 0 times
that would be NaN. So tangents are selected as values are, and an adjoint that a selection or a weight made zero stays
zero wherever a slope may be infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bellcrank.errors import TraceError
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import OPS, PLUMBING
from bellcrank.scalar import step

Matrix = list[list[Value]]
Rates = dict[int, dict[int, Value]]  # by serial number and direction


def _partials(node: Node) -> list[tuple[Node, Value]]:
    """Return (argument, d node/d argument) for every argument that is a node."""
    if node.op in PLUMBING:
        raise TraceError(f"{node.op!r} has no derivative: differentiate the called graph instead.")
    op = OPS[node.op]
    args: list[Any] = list(node.args)
    # A partial may call a method of its argument (a.cos()); those rules only run on arguments that are nodes.
    slopes = op.partials(node, *args) if all(isinstance(a, Node) for a in args) or op.arity > 1 else ()
    return [(a, slope) for a, slope in zip(args, slopes, strict=False) if isinstance(a, Node)]


SELECTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "where": lambda args, yes, no: args[0].where(yes, no),
    "minimum": lambda args, yes, no: (args[0] <= args[1]).where(yes, no),
    "maximum": lambda args, yes, no: (args[0] >= args[1]).where(yes, no),
}
UNBOUNDED_SLOPE_OPS = ("sqrt", "div", "log", "asin", "acos", "atan2")  # operations with a slope that may be infinite
# Operations with a value that may be infinite or NaN.
UNBOUNDED_VALUE_OPS = ("sqrt", "div", "log", "asin", "acos", "tan", "exp")


def _selected_rate(node: Node, yes: Value, no: Value) -> Value:
    """Return the rate of a selection with the rates of its two branches."""
    return yes if yes is no else SELECTIONS[node.op](node.args, yes, no)


def forward(nodes: Sequence[Node], rows: Sequence[Value], columns: Sequence[Node]) -> Matrix:
    """Return the Jacobian of `rows` with respect to `columns` in forward mode, through `nodes` in topological order."""
    return forward_along(nodes, rows, {x.serial: {j: 1.0} for j, x in enumerate(columns)}, len(columns))


def forward_along(
    nodes: Sequence[Node],
    rows: Sequence[Value],
    seeds: Mapping[int, Mapping[int, Value]],
    directions: int,
    tangent: Callable[[Any], Any] | None = None,
) -> Matrix:
    """Return the rates of the rows when the inputs move in several directions.

    A call is differentiated by a call of the tangent of the called graph, whose code then exists once.

    Parameters
    ----------
    nodes
        All nodes, in topological order.
    rows
        The values to differentiate.
    seeds
        For each input that moves, by serial number: its rate in each direction.
    directions
        Number of directions.
    tangent
        Function that gives the tangent graph of a called graph; without it calls are an error.
    """
    rates: Rates = {}
    result_rates: dict[int, dict[int, list[Value]]] = {}  # those of the results of a call, by its serial number
    for node in nodes:
        step(f"d {node.label}")
        if node.op == "input":
            rates[node.serial] = dict(seeds.get(node.serial, {}))
        elif node.op == "call" and tangent is not None:
            function, *arguments = node.args
            results = result_rates[node.serial] = dict[int, list[Value]]()
            for j in range(directions):
                moves = [_rate(rates, a, j) for a in arguments]
                if any(isinstance(x, Node) or x != 0.0 for x in moves):
                    results[j] = node.tape.call(tangent(function), *arguments, *moves)
        elif node.op == "result" and tangent is not None:
            call, k = node.args
            rates[node.serial] = {j: results[k] for j, results in result_rates[call.serial].items()}
        else:
            rates[node.serial] = _operation_rates(node, rates)
    return [[_rate(rates, y, j) for j in range(directions)] for y in rows]


def _rate(rates: Rates, x: Value, j: int) -> Value:
    """Return the rate of a value in direction j."""
    return rates[x.serial].get(j, 0.0) if isinstance(x, Node) else 0.0


def _operation_rates(node: Node, rates: Rates) -> dict[int, Value]:
    """Return the rates of an operation in the directions in which its arguments move."""
    if node.op in SELECTIONS:
        yes, no = node.args[-2:]
        moving = {j: None for a in (yes, no) if isinstance(a, Node) for j in rates[a.serial]}
        return {j: _selected_rate(node, _rate(rates, yes, j), _rate(rates, no, j)) for j in moving}
    total: dict[int, Value] = {}
    for a, slope in _partials(node):
        for j, t in rates[a.serial].items():
            total[j] = total[j] + slope * t if j in total else slope * t
    return total


def reverse(nodes: Sequence[Node], rows: Sequence[Value], columns: Sequence[Node]) -> Matrix:
    """Return the Jacobian of `rows` with respect to `columns` in reverse mode, through `nodes` in topological order."""
    matrix: Matrix = []
    for y in rows:
        adjoint = reverse_sweep(nodes, {y.serial: 1.0} if isinstance(y, Node) else {})
        matrix.append([adjoint.get(x.serial, 0.0) for x in columns])
    return matrix


def reverse_sweep(nodes: Sequence[Node], weights: Mapping[int, Value]) -> dict[int, Value]:
    """Return the derivative of a weighted sum of nodes with respect to each node, by serial number.

    A call is differentiated by a call of the pullback of the called graph, whose code then exists once.

    Parameters
    ----------
    nodes
        All nodes, in topological order.
    weights
        Weights of the sum, by serial number.
    """
    adjoint = dict(weights)
    below_selection: set[int] = set()  # nodes whose adjoint a selection may have made zero
    wild = _unbounded_nodes(nodes)
    weights_are_nodes = any(isinstance(w, Node) for w in weights.values())  # weights that are nodes may be zero, too
    result_weights: dict[int, dict[int, Value]] = {}  # weights of the results of a call, by its serial
    for node in reversed(nodes):
        bar = adjoint.get(node.serial)
        if node.op == "call":
            terms = _call_adjoints(node, result_weights.get(node.serial, {}))
        elif bar is None or node.op == "input":
            continue
        elif node.op == "result":
            call, k = node.args
            result_weights.setdefault(call.serial, {})[k] = bar
            continue
        else:
            step(f"d {node.label}")
            if node.op in SELECTIONS or node.serial in below_selection:
                below_selection.update(a.serial for a in node.operands)
            terms = _operand_adjoints(node, bar, weights_are_nodes, node.serial in below_selection, wild)
        for a, term in terms:
            adjoint[a.serial] = adjoint[a.serial] + term if a.serial in adjoint else term
    return adjoint


def _unbounded_nodes(nodes: Sequence[Node]) -> set[int]:
    """Return the nodes that may be infinite or NaN where a selection does not take them; selections count as finite."""
    unbounded: set[int] = set()
    for n in nodes if any(n.op in SELECTIONS for n in nodes) else ():
        if n.op in UNBOUNDED_VALUE_OPS or (n.op not in SELECTIONS and any(a.serial in unbounded for a in n.operands)):
            unbounded.add(n.serial)
    return unbounded


def _operand_adjoints(
    node: Node, bar: Value, free: bool, chosen: bool, wild: Collection[int]
) -> list[tuple[Node, Value]]:
    """Return (argument, contribution to its adjoint) for every argument that is a node."""
    if node.op in SELECTIONS:
        yes, no = node.args[-2:]
        parts = [(yes, SELECTIONS[node.op](node.args, bar, 0.0)), (no, SELECTIONS[node.op](node.args, 0.0, bar))]
        return [(a, part) for a, part in parts if isinstance(a, Node)]
    steep = node.op in UNBOUNDED_SLOPE_OPS and (free or chosen)
    unbounded_operand = chosen and node.op not in ("add", "sub", "neg") and any(a.serial in wild for a in node.operands)
    if not isinstance(bar, Node) or not (steep or unbounded_operand):
        return [(a, bar * slope) for a, slope in _partials(node)]
    is_zero: Any = abs(bar) <= 0.0
    return [(a, is_zero.where(0.0, bar * slope)) for a, slope in _partials(node)]


def _call_adjoints(call: Node, weights: Mapping[int, Value]) -> list[tuple[Node, Value]]:
    """Return (argument, contribution to its adjoint) for every argument of a call that is a node."""
    function, *arguments = call.args
    if not weights:
        return []
    step(f"d {call.label}")
    results, back = call.tape.results(call), function.pullback
    known = results if any(f"r_{name}" in back.inputs for name in function.shapes) else []
    gradients = call.tape.call(back, *arguments, *known, *(weights.get(k, 0.0) for k in range(len(results))))
    return [(a, g) for a, g in zip(arguments, gradients, strict=True) if isinstance(a, Node)]


MODES: dict[str, Callable[[Sequence[Node], Sequence[Value], Sequence[Node]], Matrix]] = {
    "forward": forward,
    "reverse": reverse,
}
