"""From a mechanism to the kernel of a quantity.

    Mechanism, Request --chosen--> Graph --built--> Kernel

The first step is in graphs.py, the second, which is the same for all graphs, in stages.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from inspect import Signature
from typing import TYPE_CHECKING, Any

from bellcrank.build import by_tangents, recall
from bellcrank.build.graphs import Request, check, chosen, expected, side_by_side, small
from bellcrank.build.stages import Job, Where, built, shared_out
from bellcrank.build.stages import target as target_of
from bellcrank.build.wrench_arguments import extended
from bellcrank.dynamics import Quantity, quantity
from bellcrank.dynamics.quantities import INPUTS, POSITIONS
from bellcrank.errors import InputError, brief
from bellcrank.graph import Graph
from bellcrank.misfits import explained
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel

LISTED = 16  # names in a help text


@explained
def kernel(
    mechanism: Mechanism,
    name: str,
    method: str = "auto",
    target: str = "cpu",
    dtype: str = "float64",
    threads: int = 1,
    frame: str = "",
    wrenches: tuple[str, ...] | list[str] = (),
    machine: Any = "",
    processors: int | None = None,
    actuated: Sequence[str] = (),
    packed: bool = False,
    reference: str = "aligned",
) -> Kernel:
    """A compiled quantity. From the cache where this mechanism was compiled before: then nothing is traced. (With a
    method or a joint type of your own in the tables it is traced, and the code found by what came out.)

    threads= shares out the states of a batch; machine="threads" shares out the work on each state. actuated= names the
    joints that are driven, for inverse_dynamics of a mechanism with loops. packed=True gives a symmetric matrix as a
    vector of nv (nv + 1) / 2, row by row from the diagonal on, as numpy.triu_indices(nv) counts: half the memory.
    reference= says from where a frame's motion is seen: "aligned", "local" or "world" (docs/conventions.md).
    """
    where = Where(target, dtype, threads, machine, processors)
    driven = _names(name, actuated)
    return made(mechanism, Request(name, method, frame, tuple(wrenches), driven, packed, reference), where)


def made(mechanism: Mechanism, request: Request, where: Where) -> Kernel:
    """The kernel that answers a request."""
    check(mechanism, request)
    on, q = target_of(where, request.quantity), quantity(request.quantity)

    def graph() -> tuple[str, Graph]:
        calls = where.target == "cpu" and not where.machine  # other targets of kernels know none
        if where.machine and (wide := side_by_side(mechanism, request, lambda g: shared_out(g, on))):
            return wide[0].name, wide[1]
        if not small(mechanism, request):
            expected(mechanism, request, calls).announced(f"{request.quantity} of {mechanism.name}")
        by, found = chosen(mechanism, request, on.choose, calls)
        return by.name, found

    @cache
    def with_wrenches(frames: tuple[str, ...]) -> Kernel:
        return made(mechanism, replace(request, wrenches=frames), where)

    signature, doc = _help(mechanism, q)
    job = Job(
        q.name,
        graph,
        # While all tables are as shipped, what was asked for decides the graph.
        (mechanism.fingerprint, json.dumps(asdict(request)), *recall.key()) if recall.untouched() else (),
        columns(mechanism),
        str(signature),
        doc,
        mechanism.parameters,
        (made, (mechanism, request, where)),
        partial(extended, q.name, with_wrenches) if q.option == "frames" and not request.wrenches else None,
    )
    return built(job, on)


def columns(mechanism: Mechanism) -> dict[str, Sequence[str]]:
    """What the elements of inputs are called."""
    q, v = mechanism.columns
    return {**{x: q if x in POSITIONS else v for x in INPUTS}, "p": tuple(mechanism.parameters)}


# -- quantities as attributes of a mechanism


def bound(mechanism: Mechanism, name: str) -> Callable[..., Any]:
    """What `mechanism.<name>` is: a kernel's own entry, or a function that finds the kernel of a frame, or of driven
    joints.
    """
    q = quantity(name)
    if q.option == "frame":
        return _taught(_of_frame(mechanism, q), mechanism, q)
    if q.driven and mechanism.loops:
        return _taught(_of_actuated(mechanism, q), mechanism, q)
    if q.result and not mechanism.loops and by_tangents.columnwise(mechanism, q):
        return _taught(by_tangents.derivatives(mechanism, q), mechanism, q)
    if by_tangents.sloped(mechanism, q):
        return _taught(by_tangents.matrix(mechanism, q), mechanism, q)
    if q.result:
        return _taught(_in_parts(kernel(mechanism, name).function, q), mechanism, q)
    return kernel(mechanism, name).function


def _of_frame(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    @cache
    def made(frame: str, reference: str) -> Callable[..., Any]:
        return kernel(mechanism, q.name, frame=frame, reference=reference).function

    def of_frame(*args: Any, frame: str = "", reference: str = "aligned", **named: Any) -> Any:
        if isinstance(frame, str) and not frame and args and isinstance(args[-1], str):
            args, frame = args[:-1], args[-1]
        if not isinstance(frame, str) or not isinstance(reference, str):
            raise InputError(
                f"{q.name}: frame is {brief(frame)} and reference {brief(reference)}; expected names, each a str."
            )
        return made(frame, reference)(*args, **named)

    return of_frame


def _in_parts(function: Callable[..., Any], q: Quantity) -> Callable[..., Any]:
    """The result taken apart, by name: views, and nothing is copied."""
    assert q.result is not None
    made, axis = q.result, range(len(q.result._fields))

    def in_parts(*args: Any, **named: Any) -> Any:
        found = function(*args, **named)
        return made(*(found[..., i, :, :] for i in axis))

    return in_parts


def _of_actuated(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """Each set of driven joints is a kernel of its own."""

    @cache
    def made(joints: tuple[str, ...]) -> Callable[..., Any]:
        found = kernel(mechanism, q.name, actuated=joints).function
        return _in_parts(found, q) if q.result else found

    def of_actuated(*args: Any, actuated: Sequence[str] = (), **named: Any) -> Any:
        return made(_names(q.name, actuated))(*args, **named)

    return of_actuated


def _taught(function: Callable[..., Any], mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """The function with name, signature and documentation of the quantity."""
    signature, doc = _help(mechanism, q)
    function.__name__, function.__qualname__, function.__doc__ = q.name, f"Mechanism.{q.name}", doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _help(mechanism: Mechanism, q: Quantity) -> tuple[Signature, str]:
    """How it is called, and what help() says: of this mechanism."""
    without = [] if mechanism.loops else ["actuated"]
    without += [] if mechanism.parameters else ["p", "parameters"]
    positions, velocities = map(_listed, mechanism.columns)
    more = [f"Here nq is {mechanism.nq} and nv is {mechanism.nv}. q: {positions}."]
    if velocities != positions:
        more.append(f"v: {velocities}.")
    if mechanism.loops and (q.inverts or q.driven):
        more.append("It has loops, which q and v must close: mechanism.assemble() finds such.")
    if q.option:
        more.append(f"Frames: {_listed(list(mechanism.frames))}.")
    if mechanism.parameters:
        more.append(f"Free numbers: {_listed(list(mechanism.parameters))}.")
    return q.signature(without), q.help(without, more)


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:LISTED], *(["..."] if len(names) > LISTED else [])])


def _names(name: str, actuated: Any) -> tuple[str, ...]:
    listed = isinstance(actuated, tuple | list | set | frozenset | dict)
    if not listed or not all(isinstance(joint, str) for joint in actuated):
        raise InputError(f'{name}: actuated is {brief(actuated)}; expected a list of joints, as in actuated=["crank"].')
    return tuple(actuated)
