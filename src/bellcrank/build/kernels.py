"""Kernels of the quantities of a mechanism.

    Mechanism, Request --chosen--> Graph --built--> Kernel

The first step is in graphs.py, the second, which is the same for all graphs, in stages.py.

Kernels, and the methods chosen by "auto", are cached on disk under the request and found again without tracing. This
holds as long as the tables contain only the rows shipped with the package, whose source digest is part of the key. A
user's own method, joint type, quantity or closure can change without the package changing, and only running it shows
its effect. In that case the request is traced, and the code is looked up by the resulting text.
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
    """Compile a quantity of a mechanism to a kernel, or load it from the cache.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    name : str
        The quantity, such as "forward_dynamics".
    method : str
        A method, or "auto" for the fastest.
    target : str
        "cpu" or "cuda".
    dtype : str
        "float64" or "float32".
    threads : int
        CPU threads that share the states of a batch.
    frame : str
        Frame of a quantity that takes one.
    wrenches : sequence of str
        Frames on which external wrenches act; the kernel then has an input `wrench`.
    machine : str or Machine
        "threads" or a Machine: cores that share the work on each state.
    processors : int, optional
        Number of those cores.
    actuated : sequence of str
        Actuated joints, for inverse dynamics of a mechanism with loops.
    packed : bool
        Return a symmetric matrix as a vector of nv (nv + 1) / 2 numbers, row by row from the diagonal on, in the order
        of numpy.triu_indices(nv): half the memory.
    reference : str
        Reference of a frame's motion: "aligned", "local" or "world" (docs/conventions.md).

    Returns
    -------
    Kernel
        Takes one state or a batch. A mechanism compiled before comes from the cache without tracing, unless the tables
        hold methods or joint types of your own: then it is traced, and only the machine code is cached.

    Raises
    ------
    InputError
        If an argument is not valid, or the kernel would not fit into memory.
    """
    where = Where(target, dtype, threads, machine, processors)
    if not isinstance(packed, bool | np.bool_):
        raise InputError(f"kernel: packed is {brief(packed)}; expected True or False.")
    driven = attributes.joint_names(name, actuated)
    return made(mechanism, Request(name, method, frame, tuple(wrenches), driven, bool(packed), reference), where)


def made(mechanism: Mechanism, request: Request, where: Where) -> Kernel:
    """Return the kernel that answers a request.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    where
        Target, number type and threads.
    """
    check(mechanism, request)
    on, q = target_of(where, request.quantity), quantity(request.quantity)

    def graph(known: str) -> tuple[str, Graph]:
        from bellcrank.build import graphs  # imported here because cached kernels are not traced

        calls = not where.machine  # code for several cores per state supports no calls
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
    """Return whether the request determines the graph: tables are as shipped, and the user set no loop closures."""
    return tables_as_shipped() and not getattr(vars(mechanism).get("_closure"), "told", False)


def columns(mechanism: Mechanism) -> dict[str, Sequence[str]]:
    """Return the names of the elements of each input of kernels of `mechanism`."""
    q, v = mechanism.columns
    return {**{x: q if x in POSITIONS else v for x in INPUTS}, "p": tuple(mechanism.parameters)}


# -- quantities as attributes of a mechanism


def bound(mechanism: Mechanism, name: str) -> Callable[..., Any]:
    """Return the function behind `mechanism.<name>`.

    This is the entry of a kernel, or a function that selects the kernel by frame or by actuated joints.

    Parameters
    ----------
    mechanism
        The mechanism.
    name
        The quantity.
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
    """Return whether a quantity is too large for straight-line code by some method that may answer."""
    return not all(straight(m.name, name, mechanism.tree) for m in candidates(name, mechanism.tree))


def _taught(function: Callable[..., Any], mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """Return the function with the name, signature and documentation of the quantity."""
    signature, doc = _help(mechanism, q)
    function.__name__, function.__qualname__, function.__doc__ = q.name, f"Mechanism.{q.name}", doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _help(mechanism: Mechanism, q: Quantity) -> tuple[Signature, str]:
    """Return the signature and the help text of a quantity of this mechanism."""
    without = [] if mechanism.loops else ["actuated"]
    without += [] if mechanism.parameters else ["p", "parameters"]
    positions, velocities = map(_listed, mechanism.columns)
    more = [f"Here nq is {mechanism.nq} and nv is {mechanism.nv}. q: {positions}."]
    if velocities != positions:
        more.append(f"v: {velocities}.")
    if mechanism.loops and (q.inverts or q.driven):
        more.append("It has loops, which q and v must close: use mechanism.assemble().")
    if q.option:
        more.append(f"Frames: {_listed(list(mechanism.frames))}.")
    if mechanism.parameters:
        more.append(f"Free parameters: {_listed(list(mechanism.parameters))}.")
    return q.signature(without), q.help(without, more)


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*map(line, names[:LISTED]), *(["..."] if len(names) > LISTED else [])])


# -- cached methods

_methods: dict[str, str] = {}  # methods by their keys, to avoid reading the disk again


def method_for(mechanism: Mechanism, request: Request) -> Method:
    """Return the method that graphs.chosen selects on this computer.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    """
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
