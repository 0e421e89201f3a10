"""Text forms of a graph: assignments, Graphviz DOT and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS
from bellcrank.quoting import single_line, string

Array = np.ndarray[Any, Any]


def element(name: str, shape: tuple[int, ...], flat: int) -> str:
    """Return the printed name of an array element: q[3], M[1,2], or plain t for a scalar.

    Parameters
    ----------
    name
        Name of the array.
    shape
        Its shape.
    flat
        Flat index of the element.
    """
    called = single_line(name)
    return f"{called}[{','.join(str(i) for i in np.unravel_index(flat, shape))}]" if shape else called


def expression_text(node: Node, argument: list[str]) -> str:
    """Return the expression of one `node` as text, with `argument` as the texts of its arguments."""
    if node.op == "call":
        return f"{single_line(node.args[0].name)}({', '.join(argument[1:])})"
    if node.op == "result":
        return f"{argument[0]}.{argument[1]}"
    op = OPS[node.op]
    return op.spelling.format(*argument) if op.spelling else f"{op.name}({', '.join(argument)})"


def assignments_text(
    name: str, inputs: Mapping[str, tuple[int, ...]], outputs: Mapping[str, Array], nodes: Sequence[Node]
) -> str:
    """Return one line per node, with the step that created it as a comment.

    Parameters
    ----------
    name
        Name of the graph.
    inputs
        Shapes of its inputs.
    outputs
        Its outputs: arrays of nodes and numbers.
    nodes
        Its nodes in topological order.
    """
    names: dict[int, str] = {}
    given = ", ".join(f"{key}{list(shape) if shape else ''}" for key, shape in inputs.items())
    lines = [single_line(f"{name}({given})")]
    for node in nodes:
        if node.op == "input":
            names[node.serial] = element(node.args[0], inputs[node.args[0]], node.args[1])
            continue
        names[node.serial] = f"v{len(names)}"
        text = expression_text(node, [names[a.serial] if isinstance(a, Node) else repr(a) for a in node.args])
        lines.append(
            f"  {names[node.serial]} = {text}".ljust(44) + (f"  # {single_line(node.label)}" if node.label else "")
        )
    for key, array in outputs.items():
        for flat, x in enumerate(array.flat):
            lines.append(f"  {element(key, array.shape, flat)} = {names[x.serial] if isinstance(x, Node) else repr(x)}")
    return "\n".join(lines)


def dot_text(name: str, outputs: Mapping[str, Array], nodes: Sequence[Node]) -> str:
    """Return Graphviz text: boxes with operation and step, arrows from argument to user.

    Parameters
    ----------
    name
        Name of the graph.
    outputs
        Its outputs: arrays of nodes and numbers.
    nodes
        Its nodes in topological order.
    """

    def quote(text: str) -> str:
        return f'"{string(text)}"'

    lines = [f"digraph {quote(name)} {{", "  rankdir=LR; node [shape=box, fontname=monospace];"]
    for node in nodes:
        if node.op == "input":
            lines.append(f"  n{node.serial} [label={quote(f'{node.args[0]}[{node.args[1]}]')}, shape=ellipse];")
            continue
        constant_args = [
            a.name if node.op == "call" and a is node.args[0] else a for a in node.args if not isinstance(a, Node)
        ]
        constants = " ".join(a if isinstance(a, str) else f"{a:.6g}" for a in constant_args)
        lines.append(
            f"  n{node.serial} [label={quote(f'{node.op} {constants}'.strip())}, tooltip={quote(node.label)}];"
        )
        lines.extend(f"  n{a.serial} -> n{node.serial};" for a in node.operands)
    for key, array in outputs.items():
        for flat, x in enumerate(array.flat):
            if isinstance(x, Node):
                label = quote(element(key, array.shape, flat))
                lines.append(f"  {quote(f'out {key} {flat}')} [label={label}, shape=ellipse, style=bold];")
                lines.append(f"  n{x.serial} -> {quote(f'out {key} {flat}')};")
    return "\n".join([*lines, "}"])


def json_text(
    name: str, inputs: Mapping[str, tuple[int, ...]], outputs: Mapping[str, Array], nodes: Sequence[Node]
) -> str:
    """Return a graph as JSON text that is enough to rebuild it elsewhere.

    An argument {"id"} is a node, {"graph"} a called graph, a bare number a constant.

    Parameters
    ----------
    name
        Name of the graph.
    inputs
        Shapes of its inputs.
    outputs
        Its outputs: arrays of nodes and numbers.
    nodes
        Its nodes in topological order.
    """

    def argument(a: Any) -> Any:
        if isinstance(a, Node):
            return {"id": a.serial}
        return a if isinstance(a, (int, float, str)) else {"graph": json.loads(a.json())}

    return json.dumps(
        {
            "name": name,
            "inputs": {key: list(shape) for key, shape in inputs.items()},
            "nodes": [
                {"id": n.serial, "op": n.op, "args": [argument(a) for a in n.args], "label": n.label} for n in nodes
            ],
            "outputs": {
                key: {"shape": list(array.shape), "values": [argument(x) for x in array.flat]}
                for key, array in outputs.items()
            },
        }
    )
