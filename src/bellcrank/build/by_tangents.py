"""Matrices of a large mechanism, column by column: a batch of directions through one recursion.

Derivatives, and the mass matrix and its inverse, which are derivatives, too. Written out they are dozens of operations
for every pair of bodies, which nobody can compile from a hundred bodies on. A recursion's tangent is a recursion; all
directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.graphs import MOST_STRAIGHT, Request, rolls, shared, traced
from bellcrank.dynamics import Quantity, candidates
from bellcrank.dynamics.work import estimate
from bellcrank.errors import InputError
from bellcrank.graph import Recursion
from bellcrank.graph.recursion_tangent import tangent
from bellcrank.model import Mechanism
from bellcrank.room import check_room

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

SLOPES = {"mass_matrix": ("inverse_dynamics", "a"), "inverse_mass_matrix": ("forward_dynamics", "tau")}  # of what
MOST_WRITTEN = 10 * MOST_STRAIGHT  # operations of a matrix that is straight-line code, which runs faster


def columnwise(mechanism: Mechanism, q: Quantity) -> bool:
    """Whether the derivatives are had so: alike bodies share the code of what is differentiated, and q moves as v does
    (quaternions do not).
    """
    return bool(q.differentiates) and mechanism.nq == mechanism.nv and _shares(mechanism, q.differentiates)


def sloped(mechanism: Mechanism, q: Quantity) -> bool:
    """Whether a matrix is had so: it is too much to write out, and alike bodies share the code of what it is of."""
    if mechanism.loops:
        return False
    work = [estimate(m.name, q.name, mechanism.tree) for m in candidates(q.name, mechanism.tree)]
    return min(work, default=0.0) > MOST_WRITTEN and _shares(mechanism, SLOPES[q.name][0])


def _shares(mechanism: Mechanism, of: str) -> bool:
    request = Request(of)
    return all(rolls(mechanism, request, m) for m in shared(mechanism, request, candidates(of, mechanism.tree)))


def _tangent(mechanism: Mechanism, of: str, x: str, name: str) -> Kernel:
    """How a quantity changes with its input x, along any direction."""
    request = Request(of)
    (by,) = shared(mechanism, request, candidates(of, mechanism.tree))[:1]
    graph = traced(mechanism, request, by)
    assert isinstance(graph, Recursion)
    return of_graph(tangent(graph, [x]), name=name)


def matrix(mechanism: Mechanism, row: Quantity) -> Callable[..., Any]:
    """A function of q that gives M or M^-1: what forces (accelerations) are with one acceleration (force) after the
    other and without gravity, which the slope has none of.
    """
    n, (of, x) = mechanism.nv, SLOPES[row.name]
    kernel = cache(lambda: _tangent(mechanism, of, x, f"{row.name}.{x}"))

    def columns(q: Any, *, out: Any = None) -> Any:
        q = np.asarray(q, float)
        less = "apply it instead, by inverse_dynamics to accelerations, or by forward_dynamics to forces"
        check_room(f"{row.name} of {mechanism.name}", 40.0 * n * max(n, q.size), less)
        rest = np.zeros(n)
        found = kernel()(q[..., None, :], rest, rest, np.eye(n))
        found = 0.5 * (found + np.swapaxes(found, -1, -2))  # as it is but for rounding
        if out is None:
            return found
        out[...] = found
        return out

    return columns


def derivatives(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """A function of the quantity's inputs that gives its derivatives, (..., nv, nv) each."""
    assert q.result is not None
    made, names, unit = q.result, q.inputs, np.eye(mechanism.nv)

    @cache
    def of(x: str) -> Kernel:
        return _tangent(mechanism, q.differentiates, x, f"{q.name}.{x}")

    def differentiated(*given: Any, **named: Any) -> Any:
        found = dict(zip(names, given, strict=False)) | named
        if len(given) > len(names) or set(found) != set(names):
            raise InputError(f"{q.name}: expected {', '.join(names)}; got {len(given)} arrays and {sorted(named)}.")
        states = [np.asarray(found[x], float)[..., None, :] for x in names]
        return made(*(np.swapaxes(of(x)(*states, unit), -1, -2) for x in names))

    return differentiated
