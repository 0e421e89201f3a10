"""Matrices of large mechanisms, computed column by column: a batch of directions through one recursion.

This covers derivatives; the mass matrix and its inverse, which are derivatives too; and matrices whose product with a
vector is defined body by body (dynamics/body_columns.py). Written out, they take dozens of operations for every pair of
bodies, which is too much to compile from about a hundred bodies on. The tangent of a recursion is a recursion, and all
directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.graphs import rolls, shared, traced
from bellcrank.build.rolling import rollable, rolled
from bellcrank.build.sharing import pays
from bellcrank.build.wrench_arguments import stacked
from bellcrank.dynamics import Quantity, candidates, estimate, shape_of
from bellcrank.dynamics.requests import MOST_STRAIGHT, Request
from bellcrank.errors import InputError
from bellcrank.graph.numbers import checked
from bellcrank.graph.variations import tangent
from bellcrank.model import Mechanism
from bellcrank.room import check_room

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

# matrix: (quantity, input) of which it is the derivative
SLOPES = {"mass_matrix": ("inverse_dynamics", "a"), "inverse_mass_matrix": ("forward_dynamics", "tau")}
PRODUCTS = {"coriolis_matrix": "coriolis", "mass_matrix_factors": "aba"}  # matrix: method
LESS = "apply it instead, by inverse_dynamics to accelerations, or by forward_dynamics to forces"
MOST_WRITTEN = 10 * MOST_STRAIGHT  # operations up to which straight-line code is used, because it runs faster


def function(mechanism: Mechanism, q: Quantity) -> Callable[..., Any] | None:
    """Return a column-by-column function for quantity `q` of `mechanism`, or None where it does not apply."""
    if q.result and columnwise(mechanism, q):
        return derivatives(mechanism, q)
    return matrix(mechanism, q) if q.name in (*SLOPES, *PRODUCTS) and sloped(mechanism, q) else None


def columnwise(mechanism: Mechanism, q: Quantity) -> bool:
    """Return whether the derivatives `q` of `mechanism` are computed column by column.

    The differentiated quantity must have a rolled recursion, and nq must equal nv (no quaternions).
    """
    return bool(q.differentiates) and mechanism.nq == mechanism.nv and _shares(mechanism, q.differentiates)


def sloped(mechanism: Mechanism, q: Quantity) -> bool:
    """Return whether the matrix `q` of `mechanism` is computed column by column.

    It must be too large to write out, and the quantity it derives from must have a rolled recursion.
    """
    tree = mechanism.tree
    work = min((estimate(m.name, q.name, tree) for m in candidates(q.name, tree)), default=0.0) / MOST_WRITTEN
    if mechanism.loops or work <= 1.0:
        return False
    if q.name in SLOPES:
        return _shares(mechanism, SLOPES[q.name][0])
    return rollable(tree, PRODUCTS[q.name], "product") and pays(tree, work)  # even where a single product is small


def _shares(mechanism: Mechanism, of: str) -> bool:
    request = Request(of)
    return all(rolls(mechanism, request, m) for m in shared(mechanism, request, candidates(of, mechanism.tree)))


def _tangent(mechanism: Mechanism, of: str, x: str, name: str, frames: tuple[str, ...] = ()) -> Kernel:
    """Return the kernel of the derivative of quantity `of` with respect to input `x` along any direction."""
    request = Request(of, wrenches=frames)
    (by,) = shared(mechanism, request, candidates(of, mechanism.tree))[:1]
    return of_graph(tangent(traced(mechanism, request, by), [x]), name=name, parameters=mechanism.parameters)


def _free(mechanism: Mechanism, name: str, p: Any, parameters: Any) -> dict[str, Any]:
    """Return the free parameters of a call, with an axis for the directions, which share them."""
    if p is not None and parameters is not None:
        raise InputError(f'{name}: give "p" or "parameters", not both.')
    if not mechanism.parameters:
        if p is not None or parameters is not None:
            raise InputError(f'{name}: "{mechanism.name}" has no free parameters; leave p and parameters out.')
        return {}
    if p is None:
        p = mechanism.parameters.vector({} if parameters is None else parameters, name)
    return {"p": checked(name, {"p": (len(mechanism.parameters),)}, {"p": p})["p"][..., None, :]}


def _bound(
    mechanism: Mechanism, q: Quantity, given: Sequence[Any], named: dict[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Return the arrays of a call by name, and `p` or None."""
    names = *q.inputs, "p"
    found = dict(zip(names, given, strict=False)) | named
    if len(given) > len(names) or set(found) - {"p"} != set(q.inputs):
        raise InputError(f"{q.name}: expected {', '.join(q.inputs)}; got {len(given)} arrays and {sorted(named)}.")
    p = found.pop("p", None)
    return checked(q.name, {x: shape_of(x, mechanism.tree) for x in q.inputs}, found), p


def _kept(name: str, made: Any, out: Any) -> Any:
    """Return the result, copied into `out` where that is given."""
    if out is None:
        return made
    if not isinstance(out, np.ndarray) or out.shape != made.shape or out.dtype != float or not out.flags.writeable:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"{name}: out must be a writable float64 array of shape {made.shape}; got {got}.")
    out[...] = made
    return out


def matrix(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """Return a function of q, or of q and v, that computes a matrix column by column.

    Parameters
    ----------
    mechanism
        A mechanism without loops.
    row
        The quantity: a key of SLOPES or PRODUCTS.
    """
    n = mechanism.nv
    columns = cache(lambda: _slopes(mechanism, row) if row.name in SLOPES else _products(mechanism, row))

    def matrix_of(*given: Any, parameters: Any = None, out: Any = None, **named: Any) -> Any:
        state, p = _bound(mechanism, row, given, named)
        free = _free(mechanism, row.name, p, parameters)
        size = max(array.size for array in state.values())
        check_room(f"{row.name} of {mechanism.name}", 40.0 * n * max(n, size), LESS)
        state = {x: array[..., None, :] for x, array in state.items()}
        return _kept(row.name, columns()(**state, **free), out)

    return matrix_of


def _slopes(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """Return a function for M or M^-1 as derivatives.

    Column k is the derivative of the forces along acceleration k (or of the accelerations along force k); gravity and
    velocities cancel in it.
    """
    n, (of, x) = mechanism.nv, SLOPES[row.name]
    kernel = _tangent(mechanism, of, x, f"{row.name}.{x}")
    rest = {"v": np.zeros(n), x: np.zeros(n), f"d_{x}": np.eye(n)}

    def columns(**state: Any) -> Any:
        found = kernel(**state, **rest)
        return 0.5 * (found + np.swapaxes(found, -1, -2))  # symmetric but for rounding

    return columns


def _products(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """Return a function for a matrix from its products with unit vectors.

    Where bodies give two numbers, the second one is the diagonal.
    """
    tree, method, n = mechanism.tree, PRODUCTS[row.name], mechanism.nv
    inputs = {x: shape_of(x, tree) for x in (*row.inputs, "x")}
    graph = rolled(f"{mechanism.name}.{row.name}.x", tree, method, "product", inputs, (), mechanism.parameters)
    kernel = of_graph(graph, name=f"{row.name}.x", parameters=mechanism.parameters)

    def columns(**state: Any) -> Any:
        found = kernel(**state, x=np.eye(n))
        if found.shape[-2:] == (2, n):
            found, diagonal = found[..., 0, :], found[..., 0, 1, :]
            found[..., range(n), range(n)] = diagonal
        return np.swapaxes(found, -1, -2)

    return columns


def derivatives(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """Return a function of the inputs of `q` that computes its derivatives for `mechanism`, (..., nv, nv) each."""
    assert q.result is not None
    made, unit = q.result, np.eye(mechanism.nv)

    @cache
    def of(x: str, frames: tuple[str, ...]) -> Kernel:
        return _tangent(mechanism, q.differentiates, x, f"{q.name}.{x}", frames)

    def differentiated(*given: Any, wrenches: Any = None, parameters: Any = None, **named: Any) -> Any:
        found, p = _bound(mechanism, q, given, named)
        frames, wrench = stacked(q.name, wrenches) if wrenches is not None else ((), None)
        state = _free(mechanism, q.name, p, parameters)
        state |= {x: array[..., None, :] for x, array in found.items()}
        state |= {"wrench": np.asarray(wrench)[..., None, :, :]} if frames else {}
        return made(*(np.swapaxes(of(x, frames)(**state, **{f"d_{x}": unit}), -1, -2) for x in q.inputs))

    return differentiated
