"""From a mechanism to the kernel of a quantity.

    Mechanism, Request --chosen--> Graph --built--> Kernel

The first step is in graphs.py, the second, which is the same for all graphs, in stages.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from bellcrank.build.graphs import Request, check, chosen
from bellcrank.build.shipped import untouched
from bellcrank.build.stages import Job, built
from bellcrank.build.targets import Where
from bellcrank.build.targets import target as target_of
from bellcrank.build.wrench_arguments import extension
from bellcrank.dynamics import QUANTITIES, Quantity, quantity
from bellcrank.errors import InputError
from bellcrank.graph import Graph
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel


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
) -> Kernel:
    """A compiled quantity. From the cache where this mechanism was compiled before: then nothing is traced. (With a
    method or a joint type of your own in the tables it is traced, and the code found by what came out.)

    threads= shares out the states of a batch; machine="threads" shares out the work on each state. actuated= names the
    joints that are driven, for inverse_dynamics of a mechanism with loops.
    """
    where = Where(target, dtype, threads, machine, processors)
    return made(mechanism, Request(name, method, frame, tuple(wrenches), _names(name, actuated)), where)


def made(mechanism: Mechanism, request: Request, where: Where) -> Kernel:
    """The kernel that answers a request."""
    check(mechanism, request)
    on, q = target_of(where, request.quantity), quantity(request.quantity)

    def graph() -> tuple[str, Graph]:
        by, found = chosen(mechanism, request, on.choose)
        return by.name, found

    def with_wrenches(frames: tuple[str, ...]) -> Kernel:
        return made(mechanism, replace(request, wrenches=frames), where)

    job = Job(
        q.name,
        graph,
        # While all tables are as shipped, what was asked for decides the graph.
        (mechanism.fingerprint, json.dumps(asdict(request))) if untouched() else (),
        _columns(mechanism),
        q.help,
        mechanism.parameters,
        (made, (mechanism, request, where)),
        extension(q.name, with_wrenches) if q.option == "frames" and not request.wrenches else None,
    )
    return built(job, on)


def _columns(mechanism: Mechanism) -> dict[str, Sequence[str]]:
    """What the elements of inputs are called."""
    q, v = mechanism.columns
    return {"q": q, "v": v, "tau": v, "a": v, "dv": v, "p": tuple(mechanism.parameters)}


# -- quantities as attributes of a mechanism


def bound(mechanism: Mechanism, name: str) -> Callable[..., Any] | None:
    """What `mechanism.<name>` is: a kernel's own entry, or, where a frame is needed, a function that picks one."""
    if name not in QUANTITIES:
        return None
    q = QUANTITIES[name]
    if q.driven and mechanism.loops:
        return _of_actuated(mechanism, q)
    if q.option != "frame":
        return kernel(mechanism, name).function

    @cache
    def made(frame: str) -> Callable[..., Any]:
        return kernel(mechanism, name, frame=frame).function

    def of_frame(*args: Any, frame: str = "", **named: Any) -> Any:
        if not frame and args and isinstance(args[-1], str):
            args, frame = args[:-1], args[-1]
        return made(frame)(*args, **named)

    of_frame.__name__ = name
    of_frame.__doc__ = f"{name}({', '.join(q.inputs)}, frame): {q.what}"
    return of_frame


def _of_actuated(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """A function that takes the names of the driven joints: each set of them is a kernel of its own."""

    @cache
    def made(joints: tuple[str, ...]) -> Callable[..., Any]:
        return kernel(mechanism, q.name, actuated=joints).function

    def of_actuated(*args: Any, actuated: Sequence[str] = (), **named: Any) -> Any:
        return made(_names(q.name, actuated))(*args, **named)

    of_actuated.__name__ = q.name
    of_actuated.__doc__ = f"{q.name}({', '.join(q.inputs)}, actuated=[joints]): {q.what}"
    return of_actuated


def _names(name: str, actuated: Any) -> tuple[str, ...]:
    if isinstance(actuated, str) or not all(isinstance(joint, str) for joint in actuated):
        raise InputError(f'{name}: actuated is {actuated!r}; expected a list of joints, as in actuated=["crank"].')
    return tuple(actuated)
