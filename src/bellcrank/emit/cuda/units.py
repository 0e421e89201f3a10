"""Partition of a graph into units, the steps that a GPU thread executes.

A unit is one instruction or a few: a sum with the product that is fused into it, a sine with its cosine. A node that is
emitted inside another (a fused product, a comparison) has no value of its own and never occupies a register.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.llvm.llvm_printer import single_use_products, use_counts
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import COMPARISONS

MAX_FUSED_SUMS = 4  # sums at most into which one product is fused


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes that are computed together, and the values that they read."""

    defines: tuple[Node, ...]
    uses: tuple[Node, ...]  # values it reads, inputs among them

    @cached_property
    def serial(self) -> int:
        """Serial number of the first node."""
        return self.defines[0].serial

    @cached_property
    def used_serials(self) -> tuple[int, ...]:
        """Serial numbers of the operands, cached because schedulers read them very often."""
        return tuple([n.serial for n in self.uses])

    @cached_property
    def defined_serials(self) -> tuple[int, ...]:
        """Serial numbers of the defined nodes."""
        return tuple([n.serial for n in self.defines])


BARRIER = Unit((), ())  # all members of a team wait for each other


@dataclass(frozen=True, eq=False)
class Units:
    """All units of a graph, in the order of creation."""

    graph: Graph

    @cached_property
    def use_counts(self) -> Mapping[int, int]:
        """Number of uses of each node; an output counts two more, because it must exist."""
        return use_counts(self.graph)

    @cached_property
    def outputs(self) -> set[int]:
        """Serial numbers of the nodes that are outputs."""
        return {x.serial for array in self.graph.outputs.values() for x in array.flat if isinstance(x, Node)}

    def fused_product(self, node: Node) -> Node | None:
        """Return the argument of the sum `node` that is fused with it to a multiply-add."""
        return self._fused_products.get(node.serial)

    @cached_property
    def _fused_products(self) -> dict[int, Node]:
        """Fused product of each sum.

        First come products with a single use, as on the CPU; then products used only by
        sums that have none yet: repeating the multiplication in each of them costs nothing, and the product itself is
        saved.
        """
        users: dict[int, list[Node]] = {}
        for n in self.graph.nodes:
            for a in {id(a): a for a in n.operands}.values():
                users.setdefault(a.serial, []).append(n)
        product_of = single_use_products(self.graph, self.use_counts)
        for a in reversed(self.graph.nodes):
            product_users = users.get(a.serial, ())
            if (
                a.op != "mul"
                or self.use_counts[a.serial] != len(product_users)
                or not 2 <= len(product_users) <= MAX_FUSED_SUMS
            ):
                continue
            if all(n.op in ("add", "sub") and n.serial not in product_of for n in product_users):
                product_of |= {n.serial: a for n in product_users}
        return product_of

    @cached_property
    def inlined(self) -> set[int]:
        """Nodes that are emitted where they are used."""
        fused = {product.serial for product in self._fused_products.values()}
        return fused | {n.serial for n in self.graph.nodes if n.op in COMPARISONS}

    def read_values(self, node: Node) -> list[Node]:
        """Return the values that `node` reads, looking through nodes that are emitted inside it."""
        values: dict[int, Node] = {}
        stack = list(node.operands)
        while stack:
            a = stack.pop()
            if a.serial in self.inlined:
                stack.extend(a.operands)
            else:
                values[a.serial] = a
        return [values[serial] for serial in sorted(values)]

    @cached_property
    def all(self) -> list[Unit]:
        """All units."""
        angles: dict[int, list[Node]] = {}
        results: dict[int, list[Node]] = {}
        for n in self.graph.nodes:
            if n.op in ("sin", "cos"):
                angles.setdefault(n.operands[0].serial, []).append(n)
            if n.op == "result":
                results.setdefault(n.operands[0].serial, []).append(n)
        units = []
        for n in self.graph.nodes:
            if n.serial in self.inlined or n.op in ("input", "result"):
                continue
            defines = [n]
            if n.op in ("sin", "cos"):
                defines = angles[n.operands[0].serial]
                if defines[0] is not n:
                    continue
            elif n.op == "call":
                defines = [n, *results.get(n.serial, [])]
            units.append(Unit(tuple(defines), tuple(self.read_values(n))))
        return units
