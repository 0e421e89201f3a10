"""From a mechanism to the kernel of a quantity.

    Mechanism, Request --chosen--> Graph --built--> Kernel

The first step is in graphs.py, the second, which is the same for all graphs, in stages.py.

A kernel, and the method that "auto" takes, are found again on disk by what was asked for, without any tracing, as long
as the tables hold what the package's files put there, whose digest is part of the key. A method, joint type, quantity
or closure of the user's own can change without the package changing, and what such a function does is known only by
running it. Then the request is traced, and the code found by the text that came out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from inspect import Signature
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build import attributes
from bellcrank.build.stages import Job, Where, built, shared_out, sources, steady, tables_as_shipped
from bellcrank.build.stages import target as target_of
from bellcrank.build.wrench_arguments import extended
from bellcrank.dynamics import METHODS, Method, Quantity, candidates, quantity
from bellcrank.dynamics.quantities import INPUTS, POSITIONS
from bellcrank.dynamics.requests import Request, check, straight
from bellcrank.emit import cache as store
from bellcrank.emit.constants import code_fingerprint
from bellcrank.emit.cpu.host import host
from bellcrank.errors import InputError, brief
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.quoting import line

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel
    from bellcrank.graph import Graph


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
    if not isinstance(packed, bool | np.bool_):
        raise InputError(f"kernel: packed is {brief(packed)}; expected True or False.")
    driven = attributes.joint_names(name, actuated)
    return made(mechanism, Request(name, method, frame, tuple(wrenches), driven, bool(packed), reference), where)


def made(mechanism: Mechanism, request: Request, where: Where) -> Kernel:
    """The kernel that answers a request."""
    check(mechanism, request)
    on, q = target_of(where, request.quantity), quantity(request.quantity)

    def graph(known: str) -> tuple[str, Graph]:
        from bellcrank.build import graphs  # what comes from the cache is not traced

        calls = not where.machine  # several cores for one state know none
        asked = replace(request, method=known) if known and calls else request
        if where.machine and (wide := graphs.side_by_side(mechanism, request, lambda g: shared_out(g, on))):
            return wide[0].name, wide[1]
        if not graphs.small(mechanism, asked):
            graphs.expected(mechanism, asked, calls).announced(f"{request.quantity} of {mechanism.name}")
        by, found = graphs.chosen(mechanism, asked, on.choose, calls)
        return by.name, found

    @cache
    def with_wrenches(frames: tuple[str, ...]) -> Kernel:
        return made(mechanism, replace(request, wrenches=frames), where)

    signature, doc = _help(mechanism, q)
    job = Job(
        q.name,
        graph,
        (mechanism.fingerprint, json.dumps(asdict(request)), *sources()) if _decided(mechanism) else (),
        columns(mechanism),
        str(signature),
        doc,
        mechanism.parameters,
        (made, (mechanism, request, where)),
        partial(extended, q.name, with_wrenches) if q.option == "frames" and not request.wrenches else None,
    )
    return built(job, on)


def _decided(mechanism: Mechanism) -> bool:
    """Whether what is asked for decides the graph: tables are as shipped, and nobody had to say where loops close."""
    return tables_as_shipped() and not getattr(vars(mechanism).get("_closure"), "told", False)


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
        return _taught(attributes.of_frame(q, partial(kernel, mechanism, name)), mechanism, q)
    if q.driven and mechanism.loops:
        return _taught(attributes.of_actuated(q, partial(kernel, mechanism, name)), mechanism, q)
    if not mechanism.loops and _long(mechanism, q.differentiates or name):
        from bellcrank.build import by_tangents

        if by_columns := by_tangents.function(mechanism, q):
            return _taught(by_columns, mechanism, q)
    if q.result:
        return _taught(attributes.in_parts(made(mechanism, Request(name), Where()).function, q), mechanism, q)
    return made(mechanism, Request(name), Where()).function


def _long(mechanism: Mechanism, name: str) -> bool:
    """Whether a quantity is too much to be written out, by some method that may answer."""
    return not all(straight(m.name, name, mechanism.tree) for m in candidates(name, mechanism.tree))


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
    return ", ".join([*map(line, names[:LISTED]), *(["..."] if len(names) > LISTED else [])])


# -- what is found again without tracing

_methods: dict[str, str] = {}  # methods by their keys, so that a second look is not at the disk


def method_for(mechanism: Mechanism, request: Request) -> Method:
    """The method that graphs.chosen takes on this computer."""
    from bellcrank.build import graphs
    from bellcrank.dynamics import immobility

    check(mechanism, request)
    if quantity(request.quantity).inverts and not mechanism.tree.massive:
        immobility.check(mechanism)
    able = graphs.considered(mechanism, request)
    if len(able) == 1 and graphs.rolls(mechanism, request, able[0]):
        return able[0]
    if len(able) == 1:
        graphs.fits(mechanism, request.quantity, able[0], graphs.concerned(mechanism, request))
        return able[0]
    if not tables_as_shipped():
        return graphs.chosen(mechanism, request)[0]
    h, asked = host(), json.dumps(asdict(request))
    here = (h.cpu, h.features, h.llvm, code_fingerprint(), *sources())
    name = store.key("method", mechanism.fingerprint, asked, *here)
    if name not in _methods:
        if (found := store.load(f"{name}.json")) is not None:
            _methods[name] = str(json.loads(found))
        else:
            _methods[name] = graphs.chosen(mechanism, request)[0].name
            if steady():
                store.save(f"{name}.json", json.dumps(_methods[name]).encode())
    return METHODS[_methods[name]]
