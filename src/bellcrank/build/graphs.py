"""Graphs of the quantities of a mechanism, by a requested method or by the fastest one.

Modules for features that a mechanism does not have (loops, springs, hundreds of bodies) are not imported: importing
them takes as long as tracing a small mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.dynamics import (
    METHODS,
    Method,
    Quantity,
    candidates,
    estimate,
    kinematics,
    method,
    quantity,
    shape_of,
)
from bellcrank.dynamics.quantity_requests import Request, check_request, fits_straight_code, has_few_numbers
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.graph.inline import inline
from bellcrank.graph.recursion import MAX_WRITTEN_OPERATIONS
from bellcrank.model import Mechanism, Tree, regrouped

if TYPE_CHECKING:
    from bellcrank.build.compile_time_forecast import Forecast
    from bellcrank.dynamics.loops.loop_layer import LoopLayer

MAX_OPERATIONS = 10_000_000  # operations of a graph, roughly
OPERATIONS_PER_SECOND, OPERATION_BYTES = 30_000, 1_600  # operations traced per second, and bytes for each
GraphChoice = Callable[[Sequence[tuple[Method, Graph]]], tuple[Method, Graph]]


def quantity_tree(mechanism: Mechanism, name: str, base_method: Method) -> Tree:
    """Return the tree of `mechanism`, regrouped where quantity `name` and method `base_method` allow it."""
    return regrouped(mechanism.tree) if quantity(name).regrouped and base_method.regrouped else mechanism.tree


def with_layer(mechanism: Mechanism, request: Request, base_method: Method) -> Method | LoopLayer:
    """Return the method that answers a request, with a layer on top for loops and springs.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    base_method
        The method for the open tree.
    """
    if not (mechanism.loops or mechanism.springs):
        return base_method
    from bellcrank.build.rolled_tree_terms import make_layer

    return make_layer(mechanism, request, base_method)


def check_size(mechanism: Mechanism, name: str, base_method: Method, tree: Tree | None = None) -> None:
    """Raise an InputError where tracing would take minutes and gigabytes.

    Parameters
    ----------
    mechanism
        The mechanism.
    name
        The quantity.
    base_method
        The method.
    tree
        The part of the mechanism that the quantity depends on; by default all of it.
    """
    work = estimate(base_method.name, name, tree or mechanism.tree)
    if work > MAX_OPERATIONS:
        raise InputError(
            f"{name} of {mechanism.name} by {base_method.name} is about {work:,.0f} operations, and at most "
            f"{MAX_OPERATIONS:,} are traced: it would take some {work / OPERATIONS_PER_SECOND / 60:.0f} minutes and "
            f"{work * OPERATION_BYTES / 1e9:.0f} GB. Lock joints, or use a quantity or a method whose work does not "
            "grow with the square of the number of bodies."
        )


def is_rolled(mechanism: Mechanism, request: Request, base_method: Method) -> bool:
    """Return whether identical bodies share their code.

    The method must support it, and the straight-line code must be too long to compile.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    base_method
        The method.
    """
    small = fits_straight_code(base_method.name, request.quantity, mechanism.tree) and has_few_numbers(
        request.quantity, mechanism.tree
    )
    if small or request.packed:
        return False
    from bellcrank.build.rolling_policy import should_roll

    return should_roll(mechanism, relevant_tree(mechanism, request), request, base_method)


def relevant_tree(mechanism: Mechanism, request: Request) -> Tree:
    """Return the part of the tree of `mechanism` that the `request` depends on."""
    if not request.frame:
        return mechanism.tree
    from bellcrank.build.recursion_layout import path_tree

    return path_tree(mechanism.tree, request.frame)


def parallel_dca(mechanism: Mechanism, request: Request, worth: Callable[[Graph], bool]) -> tuple[Method, Graph] | None:
    """Return divide and conquer for several cores, or None where it does not pay.

    It is chosen by "auto" where aba would be loops along one branch, which only one core can run.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    worth
        Returns whether several cores share the work on a graph.
    """
    dca = METHODS["dca"]
    is_applicable = request.method == "auto" and dca.applies(mechanism.tree, request.quantity)
    if not is_applicable or not is_rolled_dca(mechanism, request, dca):
        return None
    from bellcrank.build.rolling_policy import request_dca

    chosen_graph = request_dca(mechanism, request)
    return (dca, chosen_graph) if chosen_graph is not None and worth(chosen_graph) else None


def is_rolled_dca(mechanism: Mechanism, request: Request, base_method: Method) -> bool:
    """Return whether `base_method` is divide and conquer, and identical bodies share their code by aba as well.

    The `request` for `mechanism` must be plain forward dynamics.
    """
    is_dca = base_method.name == "dca" and request.quantity == "forward_dynamics"
    plain = not (request.wrenches or mechanism.parameters or mechanism.springs)
    return is_dca and plain and is_rolled(mechanism, request, METHODS["aba"])


def prefer_rolled(mechanism: Mechanism, request: Request, able: list[Method]) -> list[Method]:
    """Return the methods of `able` with rolled loops, or all of them if there are none.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    able
        Methods that can compute the quantity.
    """
    if mechanism.tree.has_mimics and METHODS["crba"] in able:  # rolled aba also supports mimic joints
        able = [METHODS["aba"], *able] if is_rolled(mechanism, request, METHODS["aba"]) else able
    if sharing := [m for m in able if is_rolled(mechanism, request, m)]:
        return sharing
    if not mechanism.loops or request.quantity != "forward_dynamics":
        return able
    from bellcrank.build.rolled_tree_terms import has_rolled_tree_terms

    return [m for m in able if has_rolled_tree_terms(mechanism, m)] or able


def possible_methods(mechanism: Mechanism, request: Request) -> list[Method]:
    """Return the methods that may answer: the requested one, or for "auto" all promising ones.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    """
    named = request.method != "auto"
    requested_methods = [method(request.method, request.quantity, mechanism.tree)] if named else []
    return prefer_rolled(mechanism, request, requested_methods or candidates(request.quantity, mechanism.tree))


def is_small(mechanism: Mechanism, request: Request) -> bool:
    """Return whether the `request` for `mechanism` is so little work by any method that no forecast is needed."""
    work_args, methods = (request.quantity, relevant_tree(mechanism, request)), possible_methods(mechanism, request)
    return not mechanism.loops and all(
        estimate(m.name, *work_args) > 0.0 and fits_straight_code(m.name, *work_args) for m in methods
    )


def build_forecast(mechanism: Mechanism, request: Request, calls: bool) -> Forecast:
    """Return the forecast of the time and memory to build a kernel.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    calls
        Whether the target supports rolled loops.
    """
    from bellcrank.build import compile_time_forecast
    from bellcrank.build.rolled_recursion import count_classes
    from bellcrank.build.rolled_tree_terms import count_passes, has_rolled_tree_terms

    tree, methods = relevant_tree(mechanism, request), possible_methods(mechanism, request)
    work = [count_passes(tree) * estimate(m.name, request.quantity, tree) for m in methods]
    has_rolled_tree = [bool(tree.loops) and has_rolled_tree_terms(mechanism, m) for m in methods]
    rolled_up = calls and all(
        is_rolled(mechanism, request, m) or below for m, below in zip(methods, has_rolled_tree, strict=True)
    )
    if rolled_up or all(
        is_rolled_dca(mechanism, request, m) for m in methods
    ):  # divide and conquer is rolled on every target
        return compile_time_forecast.rolled_forecast(min(work), len(tree.links), count_classes(tree))
    return compile_time_forecast.straight_forecast(work)


def trace_quantity(mechanism: Mechanism, request: Request, base_method: Method) -> Graph:
    """Trace a request by one method.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    base_method
        The method.
    """
    q = quantity(request.quantity)
    if is_rolled(mechanism, request, base_method):
        from bellcrank.build.rolling_policy import request_recursion

        return request_recursion(mechanism, request, base_method)
    if is_rolled_dca(mechanism, request, base_method):
        from bellcrank.build.rolling_policy import request_dca

        if (segmented := request_dca(mechanism, request)) is not None:
            return segmented
    check_size(mechanism, q.name, base_method, relevant_tree(mechanism, request))
    form_tree = quantity_tree(mechanism, q.name, base_method)
    if q.differentiates and q.name not in base_method.solves:
        base = trace_quantity(mechanism, replace(request, quantity=q.differentiates), base_method)
        return derivative_graph(_flat_graph(base), form_tree, mechanism.name, q)
    function = with_layer(mechanism, request, base_method).function(q.name)
    inputs = {name: shape_of(name, form_tree) for name in q.inputs}
    if request.wrenches:
        inputs["wrench"] = shape_of("wrench", form_tree, request.wrenches)

    def body(**symbols: Any) -> dict[str, Any]:
        wrench = symbols.pop("wrench", None)
        options: dict[str, Any] = {"frame": request.frame} if request.frame else {}
        options |= {"reference": request.reference} if request.reference != "aligned" else {}
        if wrench is not None:
            options |= {"frames": request.wrenches, "wrench": wrench}
        result = function(form_tree, *symbols.values(), **options)
        return {q.name: [x for k, row in enumerate(result) for x in row[k:]] if request.packed else result}

    return trace(f"{mechanism.name}.{q.name}", body, inputs, mechanism.parameters)


def derivative_graph(base: Graph, form: Tree, mechanism: str, row: Quantity) -> Graph:
    """Return the derivatives of the one output of a graph, (inputs, nv, nv), as tangents of a single sweep.

    Derivatives are taken with respect to q (along the velocities) and to the other inputs.

    Parameters
    ----------
    base
        The graph to differentiate.
    form
        The tree of the mechanism.
    mechanism
        Its name.
    row
        The derivative quantity.
    """
    name, names = row.name, row.inputs
    (output_name, output), n = next(iter(base.outputs.items())), form.nv
    q = list(base.tape.inputs("q", (form.nq,)))
    moves = {}
    for i, x in enumerate(names):
        moves[x] = np.full((form.nq if x == "q" else n, n * len(names)), 0.0, dtype=object)
        for k in range(n):
            unit = [float(j == k) for j in range(n)]
            moves[x][:, i * n + k] = kinematics.rate(form, q, unit) if x == "q" else unit
    derivatives = base.along(moves, [output_name])[output_name].reshape(output.size, len(names), n)
    return Graph(f"{mechanism}.{name}", base.inputs, {name: np.moveaxis(derivatives, 1, 0)}, base.tape)


def graph(
    mechanism: Mechanism,
    name: str,
    method: str = "auto",
    frame: str = "",
    wrenches: tuple[str, ...] = (),
    actuated: Sequence[str] = (),
    reference: str = "aligned",
) -> Graph:
    """Return the data-flow graph of a quantity.

    Parameters
    ----------
    mechanism
        The mechanism.
    name
        The quantity.
    method
        A method, or "auto" for the fastest.
    frame
        Frame of a quantity that takes one.
    wrenches
        Frames on which external wrenches act.
    actuated
        Actuated joints of a mechanism with loops.
    reference
        "aligned", "local" or "world".
    """
    return choose_graph(mechanism, Request(name, method, frame, tuple(wrenches), tuple(actuated), reference=reference))[
        1
    ]


def choose_graph(
    mechanism: Mechanism, request: Request, choose: GraphChoice | None = None, calls: bool = False
) -> tuple[Method, Graph]:
    """Return the requested method and its graph, or for "auto" the fastest.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    choose
        Selects among several methods and graphs; by default by their predicted costs.
    calls
        Whether the caller supports a graph that calls other graphs.
    """
    check_request(mechanism, request)
    if quantity(request.quantity).inverts and not mechanism.tree.has_massive_bodies:
        from bellcrank.dynamics import singular_mass

        singular_mass.check_mass_matrix(mechanism)
    graphs = [(m, trace_quantity(mechanism, request, m)) for m in possible_methods(mechanism, request)]
    chosen_method, chosen_graph = graphs[0]
    if len(graphs) > 1:
        from bellcrank.emit.cpu.costs import cheapest  # imported here because cached kernels need no choice

        chosen_method, chosen_graph = (choose or cheapest)(graphs)
    return chosen_method, chosen_graph if calls else _flat_graph(chosen_graph)


def _flat_graph(graph: Graph) -> Graph:
    """Return the graph with its calls inlined."""
    if not graph.calls:
        return graph
    operations = graph.count().arithmetic
    if operations > MAX_WRITTEN_OPERATIONS:
        raise InputError(
            f"{graph.name} is {operations:,} operations, and this use needs straight-line code; at most "
            f'{MAX_WRITTEN_OPERATIONS:,} are written out. Kernels for target="cpu" and target="cuda", and runs on '
            "both, use rolled loops over identical bodies."
        )
    return inline(graph)
