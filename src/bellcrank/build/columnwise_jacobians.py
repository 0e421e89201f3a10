"""Matrices of large mechanisms, computed column by column: a batch of directions through one recursion.

This covers derivatives; the mass matrix and its inverse, which are derivatives too; and matrices whose product with a
vector is the work of one body (`body_product` in dynamics/aba.py and dynamics/coriolis.py). Written out, they take
dozens of operations for every pair of bodies, which is too much to compile from about a hundred bodies on. The tangent
of a recursion is a recursion, and all directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import check_memory
from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.graphs import trace_plan
from bellcrank.build.kernel_selection import stack_wrenches
from bellcrank.build.policy import ROLLED, Plan
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.dynamics import Quantity, shape_of
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.cpu.arguments import Arguments
from bellcrank.emit.target import Signature
from bellcrank.errors import InputError
from bellcrank.graph.autodiff import tangent
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

# matrix: (quantity, input) of which it is the derivative
DERIVATIVE_MATRICES = {"mass_matrix": ("inverse_dynamics", "a"), "inverse_mass_matrix": ("forward_dynamics", "tau")}
PRODUCT_METHODS = {"coriolis_matrix": "coriolis", "mass_matrix_factors": "aba"}  # matrix: method
MEMORY_HINT = "apply it instead, by inverse_dynamics to accelerations, or by forward_dynamics to forces"


@dataclass(frozen=True)
class DirectionKernel:
    """A kernel of the product of a matrix with a direction; all directions together are a batch.

    direction: the input that takes the direction. fixed: inputs that are the same in every call.
    """

    kernel: Kernel
    direction: str
    fixed: dict[str, Any] = field(default_factory=dict)

    def matrix(self, n: int, state: dict[str, Any]) -> Any:
        """Return the matrix, (..., rows, `n`), for the other inputs `state`, with an axis of 1 for the directions."""
        products = self.kernel(**state, **self.fixed, **{self.direction: np.eye(n)})
        (shape,) = self.kernel.signature.outputs.values()
        if len(shape) == 2:  # each body also returned its element on the diagonal
            products, diagonal = products[..., 0, :], products[..., 0, 1, :]
            products[..., range(n), range(n)] = diagonal
        return np.swapaxes(products, -1, -2)


class StateArguments(Arguments):
    """The arguments of a quantity of a mechanism: its inputs, and the free parameters."""

    def __init__(self, mechanism: Mechanism, q: Quantity) -> None:
        inputs = {x: shape_of(x, mechanism.tree) for x in q.inputs}
        inputs |= {"p": (len(mechanism.parameters),)} if mechanism.parameters else {}
        self.signature, self.parameters = Signature(q.name, inputs, {}, "float64"), mechanism.parameters

    def arrays(self, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arrays of a call, given by position (`positional`) or by name (`named`), by name."""
        return {name: self._checked_array(name, x) for name, x in self._bind(positional, named).items()}


def columnwise_function(mechanism: Mechanism, q: Quantity, plan: Plan) -> Callable[..., Any]:
    """Return a function of the inputs of `q` that computes a matrix, or the derivatives, column by column.

    Parameters
    ----------
    mechanism
        A mechanism without loops.
    q
        Derivatives, or a key of DERIVATIVE_MATRICES or PRODUCT_METHODS.
    plan
        The method of the recursion (policy.columns).
    """
    n, arguments = mechanism.nv, StateArguments(mechanism, q)

    @cache
    def kernels(frames: tuple[str, ...]) -> list[DirectionKernel]:
        if q.name in PRODUCT_METHODS:
            return [_product_kernel(mechanism, q, plan)]
        if q.name in DERIVATIVE_MATRICES:  # gravity and velocities cancel in the derivative
            base, x = DERIVATIVE_MATRICES[q.name]
            return [_tangent_kernel(mechanism, q, plan, base, x, {"v": np.zeros(n), x: np.zeros(n)})]
        return [_tangent_kernel(mechanism, q, plan, q.differentiates, x, {}, frames) for x in q.inputs]

    def by_columns(
        *positional: Any, wrenches: Any = None, parameters: Any = None, out: Any = None, **named: Any
    ) -> Any:
        if (wrenches is not None and q.option != "frames") or (out is not None and q.result):
            raise InputError(f"{q.name} takes no {'out' if q.result else 'wrenches'}.")
        arrays = arguments.arrays(positional, {**named, "parameters": parameters})
        frames, wrench = stack_wrenches(q.name, wrenches) if wrenches is not None else ((), None)
        state = {x: array[..., None, :] for x, array in arrays.items()}
        if q.result:
            state |= {"wrench": np.asarray(wrench)[..., None, :, :]} if frames else {}
            return q.result(*(each.matrix(n, state) for each in kernels(frames)))
        size = max(arrays[x].size for x in q.inputs)
        check_memory(f"{q.name} of {mechanism.name}", 40.0 * n * max(n, size), MEMORY_HINT)
        matrix = kernels(frames)[0].matrix(n, state)
        if q.name in DERIVATIVE_MATRICES:
            matrix = 0.5 * (matrix + np.swapaxes(matrix, -1, -2))  # symmetric but for rounding
        return _store_result(q.name, matrix, out)

    return by_columns


def _tangent_kernel(
    mechanism: Mechanism,
    q: Quantity,
    plan: Plan,
    base: str,
    x: str,
    fixed: dict[str, Any],
    frames: tuple[str, ...] = (),
) -> DirectionKernel:
    """Return the kernel of the derivative of quantity `base` with respect to input `x` along any direction."""
    graph = trace_plan(mechanism, Request(base, wrenches=frames), replace(plan, form=ROLLED))
    kernel = compile_graph(tangent(graph, [x]), name=f"{q.name}.{x}", parameters=mechanism.parameters)
    return DirectionKernel(kernel, f"d_{x}", fixed)


def _product_kernel(mechanism: Mechanism, q: Quantity, plan: Plan) -> DirectionKernel:
    """Return the kernel of the product of a matrix with a vector, which is defined body by body."""
    tree = mechanism.tree
    inputs = {x: shape_of(x, tree) for x in (*q.inputs, "x")}
    name = f"{mechanism.name}.{q.name}.x"
    graph = rolled_graph(name, tree, plan.method.name, "product", inputs, (), mechanism.parameters)
    return DirectionKernel(compile_graph(graph, name=f"{q.name}.x", parameters=mechanism.parameters), "x")


def _store_result(name: str, result: Any, out: Any) -> Any:
    """Return the result, copied into `out` where that is given."""
    if out is None:
        return result
    if not isinstance(out, np.ndarray) or out.shape != result.shape or out.dtype != float or not out.flags.writeable:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"{name}: out must be a writable float64 array of shape {result.shape}; got {got}.")
    out[...] = result
    return out
