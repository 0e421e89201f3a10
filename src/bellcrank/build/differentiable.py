"""Kernels with their derivatives along and against directions, for other people's differentiation: JAX, PyTorch.

A Function takes arrays in order and gives arrays in order. `tangent` and `cotangent` are Functions again, so that
derivatives of any order are kernels of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bellcrank.build.compiling import of_graph
from bellcrank.build.stages import Where
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Function:
    graph: Graph
    where: Where
    made: dict[Any, Function] = field(default_factory=dict)

    @cached_property
    def kernel(self) -> Kernel:
        return of_graph(self.graph, self.where)

    @property
    def inputs(self) -> list[tuple[int, ...]]:
        return list(self.graph.inputs.values())

    @property
    def outputs(self) -> list[tuple[int, ...]]:
        return list(self.graph.shapes.values())  # not its outputs: those of a recursion would be written out

    def on(self, target: str) -> Function:
        """The same for another target, compiled when it is first asked for: who calls it there has arrays there."""
        if target == self.where.target:
            return self
        if target not in self.made:
            self.made[target] = Function(self.graph, Where(target, self.where.dtype, waves=False))
        return self.made[target]

    def tangent(self, wrt: tuple[int, ...]) -> Function:
        """(inputs, directions of those of wrt) -> how fast the outputs change."""
        names = [list(self.graph.inputs)[k] for k in wrt]
        return self._once(("d", wrt), lambda: self.graph.jvp(names), [f"d_{y}" for y in self.graph.shapes])

    def cotangent(self, wrt: tuple[int, ...]) -> Function:
        """(inputs, weights of all outputs) -> the gradients of their sum with respect to those of wrt."""
        names = [list(self.graph.inputs)[k] for k in wrt]
        return self._once(("g", wrt), lambda: self.graph.vjp(names), [f"g_{x}" for x in names])

    def _once(self, key: Any, make: Any, outputs: Sequence[str]) -> Function:
        if key not in self.made:
            self.made[key] = Function(_numbered(make(), outputs), self.where)
        return self.made[key]


def _numbered(graph: Graph, outputs: Sequence[str]) -> Graph:
    """Some outputs of a graph, with inputs called by their places: second derivatives need names of their own."""
    shapes = {f"in{k}": shape for k, shape in enumerate(graph.inputs.values())}

    def again(**given: Any) -> dict[str, Any]:
        found = graph.call(**dict(zip(graph.inputs, given.values(), strict=True)))
        return {f"out{k}": found[name] for k, name in enumerate(outputs)}

    return trace(graph.name, again, shapes)


def function_of(kernel: Any) -> Function:
    """The Function of a kernel."""
    graph, target = getattr(kernel, "graph", None), getattr(kernel, "target", "")
    if not isinstance(graph, Graph):
        raise InputError(
            f"expected a Kernel (bellcrank.kernel, bellcrank.compile, stepper.transition), got {kernel!r}."
        )
    return Function(graph, Where(target, kernel.signature.dtype, kernel.threads, waves=False))
