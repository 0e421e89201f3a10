"""Derivatives of a quantity of a large mechanism, column by column: a batch of directions through one recursion.

Written out they are some hundred operations for every pair of bodies, which nobody can compile from a hundred bodies
on. A recursion's tangent is a recursion; all directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.graphs import Request, rolls, shared, traced
from bellcrank.dynamics import Quantity, candidates
from bellcrank.errors import InputError
from bellcrank.graph import Recursion
from bellcrank.graph.recursion_tangent import tangent
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel


def columnwise(mechanism: Mechanism, q: Quantity) -> bool:
    """Whether the derivatives are had so: alike bodies share the code of what is differentiated, and q moves as v does
    (quaternions do not).
    """
    if not q.differentiates or mechanism.nq != mechanism.nv:
        return False
    request = Request(q.differentiates)
    able = shared(mechanism, request, candidates(q.differentiates, mechanism.tree))
    return all(rolls(mechanism, request, m) for m in able)


def derivatives(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """A function of the quantity's inputs that gives its derivatives, (..., nv, nv) each."""
    assert q.result is not None
    made, names, unit = q.result, q.inputs, np.eye(mechanism.nv)

    @cache
    def of(x: str) -> Kernel:
        request = Request(q.differentiates)
        (by,) = shared(mechanism, request, candidates(q.differentiates, mechanism.tree))[:1]
        graph = traced(mechanism, request, by)
        assert isinstance(graph, Recursion)
        return of_graph(tangent(graph, [x]), name=f"{q.name}.{x}")

    def differentiated(*given: Any, **named: Any) -> Any:
        found = dict(zip(names, given, strict=False)) | named
        if len(given) > len(names) or set(found) != set(names):
            raise InputError(f"{q.name}: expected {', '.join(names)}; got {len(given)} arrays and {sorted(named)}.")
        states = [np.asarray(found[x], float)[..., None, :] for x in names]
        return made(*(np.swapaxes(of(x)(*states, unit), -1, -2) for x in names))

    return differentiated
