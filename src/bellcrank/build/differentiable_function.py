"""Kernels with forward-mode and reverse-mode derivatives, for differentiation by JAX and PyTorch.

A Function maps arrays, in order, to arrays, in order. `tangent` and `cotangent` return Functions again, so that
derivatives of any order are compiled kernels. Their arguments are given by position or by name, with leading axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import compile_graph
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel


@dataclass(frozen=True, eq=False)
class DifferentiableFunction:
    """A graph with its target, and its derivatives as further Functions."""

    graph: Graph
    where: Where
    derived: dict[Any, DifferentiableFunction] = field(default_factory=dict)

    @cached_property
    def kernel(self) -> Kernel:
        """The compiled kernel."""
        return compile_graph(self.graph, self.where)

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the inputs, in order."""
        return list(self.graph.inputs.values())

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the outputs, in order."""
        return list(self.graph.shapes.values())  # not graph.outputs, which would write out a recursion

    def for_target(self, target: str) -> DifferentiableFunction:
        """Return the same function for another `target`, compiled at its first call, with arrays of that target."""
        if target == self.where.target:
            return self
        if target not in self.derived:
            self.derived[target] = DifferentiableFunction(self.graph, Where(target, self.where.dtype, waves=False))
        return self.derived[target]

    def tangent(self, wrt: tuple[int, ...]) -> DifferentiableFunction:
        """Return the Jacobian-vector product: (inputs, directions of the inputs `wrt`) -> rates of the outputs."""
        names = [list(self.graph.inputs)[k] for k in wrt]
        return self._cached(("d", wrt), lambda: self.graph.jvp(names), [f"d_{y}" for y in self.graph.shapes])

    def cotangent(self, wrt: tuple[int, ...]) -> DifferentiableFunction:
        """Return the vector-Jacobian product: (inputs, weights of all outputs) -> gradients by the inputs `wrt`."""
        names = [list(self.graph.inputs)[k] for k in wrt]
        return self._cached(("g", wrt), lambda: self.graph.vjp(names), [f"g_{x}" for x in names])

    def _cached(self, key: Any, make: Any, outputs: Sequence[str]) -> DifferentiableFunction:
        if key not in self.derived:
            self.derived[key] = DifferentiableFunction(_with_positional_names(make(), outputs), self.where)
        return self.derived[key]


def _with_positional_names(graph: Graph, outputs: Sequence[str]) -> Graph:
    """Return some outputs of a graph, with inputs and outputs renamed by position.

    Second derivatives need names that do not collide with those of the first.
    """
    shapes = {f"in{k}": shape for k, shape in enumerate(graph.inputs.values())}

    def again(**given: Any) -> dict[str, Any]:
        results = graph.call(**dict(zip(graph.inputs, given.values(), strict=True)))
        return {f"out{k}": results[name] for k, name in enumerate(outputs)}

    return trace(graph.name, again, shapes)


def differentiable_function(kernel: Any) -> DifferentiableFunction:
    """Return the differentiable Function of a `kernel`."""
    graph, target = getattr(kernel, "graph", None), getattr(kernel, "target", "")
    if not isinstance(graph, Graph):
        raise InputError(
            f"expected a Kernel (bellcrank.kernel, bellcrank.compile, stepper.transition), got {kernel!r}."
        )
    return DifferentiableFunction(graph, Where(target, kernel.signature.dtype, kernel.threads, waves=False))


def named_arguments(kernel: Any, args: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments `args` and `named` of a call of `kernel` by name; free parameters are nominal by default."""
    signature, names = kernel.signature, list(kernel.signature.inputs)
    nominal = {"p": kernel.parameters.nominal} if kernel.parameters and "p" in names else {}
    arguments = {**nominal, **dict(zip(names, args, strict=False)), **named}
    if len(args) > len(names) or set(arguments) != set(names):
        raise InputError(f"{signature.name} takes {', '.join(names)}; got {len(args)} arrays and {list(named)}.")
    return {name: arguments[name] for name in names}


def leading_shapes(
    signature: Any, arrays: Sequence[Any], broadcast: Callable[..., Any]
) -> tuple[Any, list[tuple[int, ...]]]:
    """Check the shapes of the inputs of a kernel.

    Parameters
    ----------
    signature
        Signature of the kernel.
    arrays
        Its inputs.
    broadcast
        Function that broadcasts shapes, of numpy or PyTorch.

    Returns
    -------
    tuple
        The leading axes of all inputs together, and those of each.
    """
    for (name, shape), a in zip(signature.inputs.items(), arrays, strict=True):
        if a.ndim < len(shape) or tuple(a.shape[a.ndim - len(shape) :]) != shape:
            expected = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
            raise InputError(f'{signature.name}: input "{name}" has shape {tuple(a.shape)}; expected {expected}.')
    shapes = signature.inputs.values()
    heads = [tuple(a.shape[: a.ndim - len(shape)]) for a, shape in zip(arrays, shapes, strict=True)]
    if all(head == heads[0] for head in heads):
        return heads[0], heads
    try:
        return broadcast(*heads), heads
    except (ValueError, RuntimeError):
        shown = ", ".join(f"{name} {head}" for name, head in zip(signature.inputs, heads, strict=True))
        raise InputError(f"{signature.name}: leading axes do not broadcast: {shown}.") from None
