"""Quantities of a mechanism that are more than a kernel: one for each frame, or each set of driven joints; a result in
parts; and matrices of a large mechanism, column by column: derivatives, and the mass matrix and its inverse, which are
derivatives, too.

Written out the last are dozens of operations for every pair of bodies, which nobody can compile from a hundred bodies
on. A recursion's tangent is a recursion; all directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.graphs import MOST_STRAIGHT, Request, rolls, shared, traced
from bellcrank.dynamics import Quantity, candidates
from bellcrank.dynamics.work import estimate
from bellcrank.errors import InputError, brief
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
    if q.name not in SLOPES or mechanism.loops:
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


def by_columns(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
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


def of_frame(q: Quantity, kernel: Callable[..., Kernel]) -> Callable[..., Any]:
    """Each frame, and each reference that it is seen from, is a kernel of its own."""

    @cache
    def made(frame: str, reference: str) -> Callable[..., Any]:
        return kernel(frame=frame, reference=reference).function

    def of_frame(*args: Any, frame: str = "", reference: str = "aligned", **named: Any) -> Any:
        if isinstance(frame, str) and not frame and args and isinstance(args[-1], str):
            args, frame = args[:-1], args[-1]
        if not isinstance(frame, str) or not isinstance(reference, str):
            raise InputError(
                f"{q.name}: frame is {brief(frame)} and reference {brief(reference)}; expected names, each a str."
            )
        return made(frame, reference)(*args, **named)

    return of_frame


def of_actuated(q: Quantity, kernel: Callable[..., Kernel]) -> Callable[..., Any]:
    """Each set of driven joints is a kernel of its own."""

    @cache
    def made(joints: tuple[str, ...]) -> Callable[..., Any]:
        found = kernel(actuated=joints).function
        return in_parts(found, q) if q.result else found

    def of_actuated(*args: Any, actuated: Sequence[str] = (), **named: Any) -> Any:
        return made(joint_names(q.name, actuated))(*args, **named)

    return of_actuated


def in_parts(function: Callable[..., Any], q: Quantity) -> Callable[..., Any]:
    """The result taken apart, by name: views, and nothing is copied."""
    assert q.result is not None
    made, axis = q.result, range(len(q.result._fields))

    def in_parts(*args: Any, **named: Any) -> Any:
        found = function(*args, **named)
        return made(*(found[..., i, :, :] for i in axis))

    return in_parts


def joint_names(name: str, actuated: Any) -> tuple[str, ...]:
    listed = isinstance(actuated, tuple | list | set | frozenset | dict)
    if not listed or not all(isinstance(joint, str) for joint in actuated):
        raise InputError(f'{name}: actuated is {brief(actuated)}; expected a list of joints, as in actuated=["crank"].')
    return tuple(actuated)
