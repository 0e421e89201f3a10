"""Kernels of the quantities of a mechanism.

    Mechanism, Request --chosen--> Graph --built--> Kernel

The first step is in graphs.py, the second, which is the same for all graphs, in compilation.py.

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

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.build import kernel_selection, policy
from bellcrank.build.compilation import (
    Job,
    Where,
    build_kernel,
    plugin_key,
    sources_unchanged,
    tables_as_shipped,
    uses_several_cores,
)
from bellcrank.build.compilation import target_of as target_of
from bellcrank.build.kernel_selection import kernel_with_wrenches
from bellcrank.build.policy import check_request, checked_joint_names
from bellcrank.dynamics import METHODS, Method, Quantity, quantity
from bellcrank.dynamics.quantities import INPUTS, POSITIONS, Request
from bellcrank.emit import cache as store
from bellcrank.emit.constant_changes import code_fingerprint
from bellcrank.emit.llvm.host import host
from bellcrank.errors import InputError, brief
from bellcrank.model import Mechanism
from bellcrank.model.mechanism import warn_once
from bellcrank.parameters import Parameters
from bellcrank.quoting import single_line

if TYPE_CHECKING:
    from bellcrank.emit.cpu.kernel import Kernel
    from bellcrank.graph import Graph
    from bellcrank.scheduling import Schedule


MAX_LISTED_NAMES = 16  # names in a help text


@explain_argument_errors
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
    schedule: Schedule | None = None,
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
    schedule : Schedule, optional
        A schedule of this quantity, whose programs the cores of this computer follow (docs/parallel.md).

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
    driven = checked_joint_names(name, actuated)
    request = Request(name, method, frame, tuple(wrenches), driven, bool(packed), reference)
    if schedule is None:
        return make_kernel(mechanism, request, where)
    if (where.target, where.threads, where.machine) != ("cpu", 1, "") or method != "auto":
        raise InputError(
            "kernel: schedule= determines the method, the processors and their tasks; leave out method=, target=, "
            "threads=, machine= and processors=."
        )
    return make_scheduled_kernel(mechanism, request, schedule, where.dtype)


def make_scheduled_kernel(mechanism: Mechanism, request: Request, schedule: Schedule, dtype: str) -> Kernel:
    """Return the kernel that answers a request by following a schedule.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    schedule
        A schedule of that quantity.
    dtype
        Floating-point type.
    """
    from bellcrank.build import graphs, scheduled_kernels  # imported here because they load a compiler
    from bellcrank.scheduling import Schedule

    if not isinstance(schedule, Schedule):
        raise InputError(f"kernel: schedule is {brief(schedule)}; expected a Schedule, which bc.schedule makes.")
    check_request(mechanism, request)
    q, reference = quantity(request.quantity), graphs.choose_graph(mechanism, request)[1]
    positions, velocities, forces = mechanism.random(0)
    if mechanism.loops:  # methods agree only where the loops are closed
        positions, velocities = mechanism.assemble(None, velocities)
    state = {"q": positions, "v": velocities, "p": mechanism.parameters.nominal}
    inputs = {name: np.resize(state.get(name, forces), shape) for name, shape in reference.inputs.items()}
    what = f"{request.quantity} of {single_line(mechanism.name)}"
    graph = scheduled_kernels.check_is_of(schedule, reference, inputs, what)
    signature, doc = _signature_and_help(mechanism, q)
    job = Job(
        q.name,
        lambda _: (f"a schedule on {schedule.machine.name}", graph),
        (),
        column_names(mechanism),
        str(signature),
        doc,
        _checked_parameters(mechanism, q),
        (make_scheduled_kernel, (mechanism, request, schedule, dtype)),
    )
    return scheduled_kernels.scheduled_kernel(schedule, job, dtype)


def make_kernel(mechanism: Mechanism, request: Request, where: Where) -> Kernel:
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
    check_request(mechanism, request)
    target, q = target_of(where, request.quantity), quantity(request.quantity)

    def graph(cached_method: str) -> tuple[str, Graph]:
        from bellcrank.build import graphs  # imported here because cached kernels are not traced

        calls = not where.machine  # code for several cores per state supports no calls
        strategy = graphs.checked_strategy(mechanism, request, cores=not calls)
        if cached_method and calls:
            cached_plans = [p for p in strategy.plans if p.method.name == cached_method]
            strategy = replace(strategy, plans=tuple(cached_plans) or strategy.plans)
        if wide := graphs.wide_graph(mechanism, strategy, lambda g: uses_several_cores(g, target)):
            return wide[0].name, wide[1]
        if not strategy.is_small:
            from bellcrank.build import compile_time_forecast

            compile_time_forecast.strategy_forecast(strategy, calls).warn_if_long(
                f"{request.quantity} of {mechanism.name}"
            )
        chosen_method, chosen_graph = graphs.strategy_graph(mechanism, strategy, target.choose, calls)
        return chosen_method.name, chosen_graph

    @cache
    def with_wrenches(frames: tuple[str, ...]) -> Kernel:
        return make_kernel(mechanism, replace(request, wrenches=frames), where)

    signature, doc = _signature_and_help(mechanism, q)
    may_be_doubtful = bool(mechanism.loops) or (q.inverts and not mechanism.tree.has_massive_bodies)
    job = Job(
        q.name,
        graph,
        (mechanism.fingerprint, json.dumps(asdict(request)), *plugin_key())
        if _request_decides_graph(mechanism)
        else (),
        column_names(mechanism),
        str(signature),
        doc,
        _checked_parameters(mechanism, q),
        (make_kernel, (mechanism, request, where)),
        partial(kernel_with_wrenches, q.name, with_wrenches) if q.option == "frames" and not request.wrenches else None,
        partial(_doubts, mechanism) if may_be_doubtful else None,
        partial(warn_once, mechanism) if may_be_doubtful else None,
    )
    return build_kernel(job, target)


def _doubts(mechanism: Mechanism, method_name: str) -> Sequence[str]:
    """Return the doubts of the loop analysis, if tracing needed it, or about the accelerations of an open tree."""
    if mechanism.loops:
        return getattr(vars(mechanism).get("_closure"), "doubts", ())
    from bellcrank.build.rounding_doubts import rounding_doubts

    return rounding_doubts(mechanism, METHODS[method_name])


def _request_decides_graph(mechanism: Mechanism) -> bool:
    """Return whether the request determines the graph: tables are as shipped, and the user set no loop closures."""
    return tables_as_shipped() and not getattr(vars(mechanism).get("_closure"), "from_given_configuration", False)


def _checked_parameters(mechanism: Mechanism, q: Quantity) -> Parameters:
    """Return the parameters; values that make the mass matrix singular are refused for quantities that invert it."""
    if not (q.inverts and mechanism.parameters):
        return mechanism.parameters

    def check(names: Sequence[str], p: Any, where: str) -> None:
        from bellcrank.dynamics import singular_mass  # imported here because most cached kernels do not need it

        singular_mass.check_parameter_values(mechanism, names, p, where)

    return mechanism.parameters.with_check(check)


def column_names(mechanism: Mechanism) -> dict[str, Sequence[str]]:
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
        return _documented(kernel_selection.select_by_frame(q, partial(kernel, mechanism, name)), mechanism, q)
    if q.driven and mechanism.loops:
        return _documented(kernel_selection.select_by_actuation(q, partial(kernel, mechanism, name)), mechanism, q)
    if by_columns := policy.columns(mechanism, q):
        from bellcrank.build import columnwise_jacobians

        return _documented(columnwise_jacobians.columnwise_function(mechanism, q, by_columns), mechanism, q)
    if q.result:
        return _documented(
            kernel_selection.with_named_parts(make_kernel(mechanism, Request(name), Where()).function, q), mechanism, q
        )
    return make_kernel(mechanism, Request(name), Where()).function


def _documented(function: Callable[..., Any], mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """Return the function with the name, signature and documentation of the quantity."""
    signature, doc = _signature_and_help(mechanism, q)
    function.__name__, function.__qualname__, function.__doc__ = q.name, f"Mechanism.{q.name}", doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _signature_and_help(mechanism: Mechanism, q: Quantity) -> tuple[Signature, str]:
    """Return the signature and the help text of a quantity of this mechanism."""
    omitted = [] if mechanism.loops else ["actuated"]
    omitted += [] if mechanism.parameters else ["p", "parameters"]
    positions, velocities = map(_name_list, mechanism.columns)
    extra_lines = [f"Here nq is {mechanism.nq} and nv is {mechanism.nv}. q: {positions}."]
    if velocities != positions:
        extra_lines.append(f"v: {velocities}.")
    if mechanism.loops and (q.inverts or q.driven):
        extra_lines.append("It has loops, which q and v must close: use mechanism.assemble().")
    if q.option:
        extra_lines.append(f"Frames: {_name_list(list(mechanism.frames))}.")
    if mechanism.parameters:
        extra_lines.append(f"Free parameters: {_name_list(list(mechanism.parameters))}.")
    return q.signature(omitted), q.help(omitted, extra_lines)


def _name_list(names: Sequence[str]) -> str:
    return ", ".join([*map(single_line, names[:MAX_LISTED_NAMES]), *(["..."] if len(names) > MAX_LISTED_NAMES else [])])


# -- cached methods

_cached_methods: dict[str, str] = {}  # methods by their keys, to avoid reading the disk again


def auto_method(mechanism: Mechanism, request: Request) -> Method:
    """Return the method that `graphs.choose_graph` selects on this computer.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    """
    from bellcrank.build import graphs

    strategy = graphs.checked_strategy(mechanism, request)
    first, *others = strategy.plans
    if not others:
        if first.form != policy.ROLLED:
            graphs.check_size(mechanism, request, first)
        return first.method
    if not tables_as_shipped():
        return graphs.strategy_graph(mechanism, strategy)[0]
    h, request_text = host(), json.dumps(asdict(request))
    computer_key = (h.cpu, h.features, h.llvm, code_fingerprint(), *plugin_key())
    name = store.key("method", mechanism.fingerprint, request_text, *computer_key)
    if name not in _cached_methods:
        if (stored_name := store.load(f"{name}.json")) is not None:
            _cached_methods[name] = str(json.loads(stored_name))
        else:
            _cached_methods[name] = graphs.strategy_graph(mechanism, strategy)[0].name
            if sources_unchanged():
                store.save(f"{name}.json", json.dumps(_cached_methods[name]).encode())
    return METHODS[_cached_methods[name]]
