"""Quantities of a mechanism that are more than a kernel: one for each frame, or each set of driven joints; a result in
parts; and derivatives of a large mechanism, column by column.

Written out the last are some hundred operations for every pair of bodies, which nobody can compile from a hundred
bodies on. A recursion's tangent is a recursion; all directions together are a batch of it, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.graphs import Request, rolls, shared, traced
from bellcrank.dynamics import Quantity, candidates
from bellcrank.errors import InputError, brief
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


def by_columns(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
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
