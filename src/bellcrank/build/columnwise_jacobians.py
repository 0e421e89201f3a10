"""Matrices of large mechanisms, computed column by column: a batch of directions through one recursion.

This covers derivatives; the mass matrix and its inverse, which are derivatives too; and matrices whose product with a
vector is defined body by body (dynamics/recursion/matrix_columns.py). Written out, they take dozens of operations for
every pair of bodies, which is too much to compile from about a hundred bodies on. The tangent of a recursion is a
recursion, and all directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.graphs import is_rolled, prefer_rolled, trace_quantity
from bellcrank.build.rolled_recursion import is_rollable, rolled_graph
from bellcrank.build.rolling_policy import rolling_pays
from bellcrank.build.wrench_arguments import stack_wrenches
from bellcrank.dynamics import Quantity, candidates, estimate, shape_of
from bellcrank.dynamics.quantity_requests import MAX_STRAIGHT_OPERATIONS, Request
from bellcrank.errors import InputError
from bellcrank.graph.autodiff import tangent
from bellcrank.graph.interpreter import checked_inputs
from bellcrank.memory_limits import check_memory
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

# matrix: (quantity, input) of which it is the derivative
DERIVATIVE_MATRICES = {"mass_matrix": ("inverse_dynamics", "a"), "inverse_mass_matrix": ("forward_dynamics", "tau")}
PRODUCT_METHODS = {"coriolis_matrix": "coriolis", "mass_matrix_factors": "aba"}  # matrix: method
MEMORY_HINT = "apply it instead, by inverse_dynamics to accelerations, or by forward_dynamics to forces"
# Operations up to which straight-line code is used, because it runs faster.
MAX_WRITTEN_OPERATIONS = 10 * MAX_STRAIGHT_OPERATIONS


def columnwise_function(mechanism: Mechanism, q: Quantity) -> Callable[..., Any] | None:
    """Return a column-by-column function for quantity `q` of `mechanism`, or None where it does not apply."""
    if q.result and has_columnwise_derivatives(mechanism, q):
        return derivatives_function(mechanism, q)
    return (
        matrix_function(mechanism, q)
        if q.name in (*DERIVATIVE_MATRICES, *PRODUCT_METHODS) and has_columnwise_matrix(mechanism, q)
        else None
    )


def has_columnwise_derivatives(mechanism: Mechanism, q: Quantity) -> bool:
    """Return whether the derivatives `q` of `mechanism` are computed column by column.

    The differentiated quantity must have a rolled recursion, and nq must equal nv (no quaternions).
    """
    return bool(q.differentiates) and mechanism.nq == mechanism.nv and _is_rolled(mechanism, q.differentiates)


def has_columnwise_matrix(mechanism: Mechanism, q: Quantity) -> bool:
    """Return whether the matrix `q` of `mechanism` is computed column by column.

    It must be too large to write out, and the quantity it derives from must have a rolled recursion.
    """
    tree = mechanism.tree
    work = min((estimate(m.name, q.name, tree) for m in candidates(q.name, tree)), default=0.0) / MAX_WRITTEN_OPERATIONS
    if mechanism.loops or work <= 1.0:
        return False
    if q.name in DERIVATIVE_MATRICES:
        return _is_rolled(mechanism, DERIVATIVE_MATRICES[q.name][0])
    return is_rollable(tree, PRODUCT_METHODS[q.name], "product") and rolling_pays(
        tree, work
    )  # even where a single product is small


def _is_rolled(mechanism: Mechanism, name: str) -> bool:
    request = Request(name)
    return all(
        is_rolled(mechanism, request, m) for m in prefer_rolled(mechanism, request, candidates(name, mechanism.tree))
    )


def _tangent_kernel(
    mechanism: Mechanism, quantity_name: str, x: str, name: str, frames: tuple[str, ...] = ()
) -> Kernel:
    """Return the kernel of the derivative of quantity `quantity_name` with respect to input `x` along any direction."""
    request = Request(quantity_name, wrenches=frames)
    (method,) = prefer_rolled(mechanism, request, candidates(quantity_name, mechanism.tree))[:1]
    return compile_graph(
        tangent(trace_quantity(mechanism, request, method), [x]), name=name, parameters=mechanism.parameters
    )


def _parameter_input(mechanism: Mechanism, name: str, p: Any, parameters: Any) -> dict[str, Any]:
    """Return the free parameters of a call, with an axis for the directions, which share them."""
    if p is not None and parameters is not None:
        raise InputError(f'{name}: give "p" or "parameters", not both.')
    if not mechanism.parameters:
        if p is not None or parameters is not None:
            raise InputError(f'{name}: "{mechanism.name}" has no free parameters; leave p and parameters out.')
        return {}
    if p is None:
        p = mechanism.parameters.vector({} if parameters is None else parameters, name)
    return {"p": checked_inputs(name, {"p": (len(mechanism.parameters),)}, {"p": p})["p"][..., None, :]}


def _bind_arguments(
    mechanism: Mechanism, q: Quantity, positional: Sequence[Any], keywords: dict[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Return the arrays of a call by name, and `p` or None."""
    names = *q.inputs, "p"
    arrays = dict(zip(names, positional, strict=False)) | keywords
    if len(positional) > len(names) or set(arrays) - {"p"} != set(q.inputs):
        raise InputError(
            f"{q.name}: expected {', '.join(q.inputs)}; got {len(positional)} arrays and {sorted(keywords)}."
        )
    p = arrays.pop("p", None)
    return checked_inputs(q.name, {x: shape_of(x, mechanism.tree) for x in q.inputs}, arrays), p


def _store_result(name: str, result: Any, out: Any) -> Any:
    """Return the result, copied into `out` where that is given."""
    if out is None:
        return result
    if not isinstance(out, np.ndarray) or out.shape != result.shape or out.dtype != float or not out.flags.writeable:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"{name}: out must be a writable float64 array of shape {result.shape}; got {got}.")
    out[...] = result
    return out


def matrix_function(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """Return a function of q, or of q and v, that computes a matrix column by column.

    Parameters
    ----------
    mechanism
        A mechanism without loops.
    row
        The quantity: a key of DERIVATIVE_MATRICES or PRODUCT_METHODS.
    """
    n = mechanism.nv
    columns = cache(
        lambda: (
            _derivative_columns(mechanism, row) if row.name in DERIVATIVE_MATRICES else _product_columns(mechanism, row)
        )
    )

    def matrix_of(*positional: Any, parameters: Any = None, out: Any = None, **named: Any) -> Any:
        state, p = _bind_arguments(mechanism, row, positional, named)
        free = _parameter_input(mechanism, row.name, p, parameters)
        size = max(array.size for array in state.values())
        check_memory(f"{row.name} of {mechanism.name}", 40.0 * n * max(n, size), MEMORY_HINT)
        state = {x: array[..., None, :] for x, array in state.items()}
        return _store_result(row.name, columns()(**state, **free), out)

    return matrix_of


def _derivative_columns(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """Return a function for M or M^-1 as derivatives.

    Column k is the derivative of the forces along acceleration k (or of the accelerations along force k); gravity and
    velocities cancel in it.
    """
    n, (base_quantity, x) = mechanism.nv, DERIVATIVE_MATRICES[row.name]
    kernel = _tangent_kernel(mechanism, base_quantity, x, f"{row.name}.{x}")
    other_inputs = {"v": np.zeros(n), x: np.zeros(n), f"d_{x}": np.eye(n)}

    def columns(**state: Any) -> Any:
        matrix = kernel(**state, **other_inputs)
        return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))  # symmetric but for rounding

    return columns


def _product_columns(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """Return a function for a matrix from its products with unit vectors.

    Where bodies give two numbers, the second one is the diagonal.
    """
    tree, method, n = mechanism.tree, PRODUCT_METHODS[row.name], mechanism.nv
    inputs = {x: shape_of(x, tree) for x in (*row.inputs, "x")}
    graph = rolled_graph(f"{mechanism.name}.{row.name}.x", tree, method, "product", inputs, (), mechanism.parameters)
    kernel = compile_graph(graph, name=f"{row.name}.x", parameters=mechanism.parameters)

    def columns(**state: Any) -> Any:
        matrix = kernel(**state, x=np.eye(n))
        if matrix.shape[-2:] == (2, n):
            matrix, diagonal = matrix[..., 0, :], matrix[..., 0, 1, :]
            matrix[..., range(n), range(n)] = diagonal
        return np.swapaxes(matrix, -1, -2)

    return columns


def derivatives_function(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """Return a function of the inputs of `q` that computes its derivatives for `mechanism`, (..., nv, nv) each."""
    assert q.result is not None
    result_type, unit = q.result, np.eye(mechanism.nv)

    @cache
    def tangent_kernel(x: str, frames: tuple[str, ...]) -> Kernel:
        return _tangent_kernel(mechanism, q.differentiates, x, f"{q.name}.{x}", frames)

    def differentiated(*given: Any, wrenches: Any = None, parameters: Any = None, **named: Any) -> Any:
        arrays, p = _bind_arguments(mechanism, q, given, named)
        frames, wrench = stack_wrenches(q.name, wrenches) if wrenches is not None else ((), None)
        state = _parameter_input(mechanism, q.name, p, parameters)
        state |= {x: array[..., None, :] for x, array in arrays.items()}
        state |= {"wrench": np.asarray(wrench)[..., None, :, :]} if frames else {}
        return result_type(
            *(np.swapaxes(tangent_kernel(x, frames)(**state, **{f"d_{x}": unit}), -1, -2) for x in q.inputs)
        )

    return differentiated
