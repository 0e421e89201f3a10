"""Fusion of products into sums: a multiply-add is one instruction and rounds once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bellcrank.graph import Graph, Node


def use_counts(graph: Graph) -> dict[int, int]:
    """Return the uses of each node of `graph`; an output counts two more, as it must exist and cannot be fused away."""
    uses: dict[int, int] = {n.serial: 0 for n in graph.nodes}
    for node in graph.nodes:
        for a in node.operands:
            uses[a.serial] += 1
    for serial in {x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node)}:
        uses[serial] += 2
    return uses


def single_use_products(graph: Graph, uses: Mapping[int, int]) -> dict[int, Node]:
    """Return the product without other users that joins each sum of `graph`, by the serial number of the sum.

    It is the later product, so that the other one need not wait. `uses` are the numbers of uses of each node.
    """
    products = {}
    for node in graph.nodes:
        if node.op in ("add", "sub"):
            single = [a for a in node.operands if a.op == "mul" and uses[a.serial] == 1]
            if single:
                products[node.serial] = max(single, key=lambda a: a.serial)
    return products


def fused(
    node: Node,
    product: Node,
    value: Callable[[Node | float], str],
    negative: Callable[[str], str],
    multiply_add: Callable[[str, str, str], str],
    minus: bool = False,
) -> str:
    """Emit a sum with its product, x y + z, x y - z or z - x y, rounded once; return the name of its value.

    Parameters
    ----------
    node
        The sum or difference.
    product
        The operand x y.
    value
        Returns the name of an operand.
    negative
        Emits a negation.
    multiply_add
        Emits x y + z.
    minus
        True for the negative of it.
    """
    a, b = node.args
    x, y = map(value, product.args)
    z = value(b if a is product else a)
    if (node.op == "sub" and a is product) is not minus:
        z = negative(z)
    if (node.op == "sub" and a is not product) is not minus:
        y = negative(y)
    return multiply_add(x, y, z)
