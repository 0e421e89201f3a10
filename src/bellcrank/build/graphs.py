"""Graphs of the quantities of a mechanism, by a requested method or by the fastest one.

Modules for features that a mechanism does not have (loops, springs, hundreds of bodies) are not imported: importing
them takes as long as tracing a small mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build import policy
from bellcrank.build.policy import Plan, Strategy, check_request
from bellcrank.dynamics import Method, Quantity, kinematics, quantity, shape_of
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.graph.inline import inline
from bellcrank.graph.loop_graph import MAX_WRITTEN_OPERATIONS
from bellcrank.model import Mechanism, Tree, regrouped

if TYPE_CHECKING:
    from bellcrank.dynamics.loops.loop_layer import LoopLayer

MAX_OPERATIONS = 10_000_000  # operations of a graph, roughly
OPERATIONS_PER_SECOND, OPERATION_BYTES = 30_000, 1_600  # operations traced per second, and bytes for each
GraphChoice = Callable[[Sequence[tuple[Method, Graph]]], tuple[Method, Graph]]


def quantity_tree(mechanism: Mechanism, name: str, base_method: Method) -> Tree:
    """Return the tree of `mechanism`, regrouped where quantity `name` and method `base_method` allow it."""
    return regrouped(mechanism.tree) if quantity(name).regrouped and base_method.regrouped else mechanism.tree


def with_layer(mechanism: Mechanism, request: Request, plan: Plan) -> Method | LoopLayer:
    """Return the method of a plan, with a layer on top for loops and springs.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    plan
        The method for the open tree, and the form of its code.
    """
    if not (mechanism.loops or mechanism.springs):
        return plan.method
    from bellcrank.build.rolled_tree_terms import make_layer

    return make_layer(mechanism, request, plan)


def check_size(mechanism: Mechanism, request: Request, plan: Plan) -> None:
    """Raise an InputError where tracing straight-line code would take minutes and gigabytes.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    plan
        The method and its work.
    """
    work, by = plan.work, plan.method.name
    if work > MAX_OPERATIONS:
        raise InputError(
            f"{request.quantity} of {mechanism.name} by {by} is about {work:,.0f} operations, and at most "
            f"{MAX_OPERATIONS:,} are traced: it would take some {work / OPERATIONS_PER_SECOND / 60:.0f} minutes and "
            f"{work * OPERATION_BYTES / 1e9:.0f} GB. Lock joints, or use a quantity or a method whose work does not "
            "grow with the square of the number of bodies."
        )


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
    return trace_plan(mechanism, request, policy.plan(mechanism, request, base_method))


def trace_plan(mechanism: Mechanism, request: Request, plan: Plan) -> Graph:
    """Trace a request by one method, in the form that the `plan` gives.

    Bodies in rolled loops are not regrouped: identical ones stay identical, and no inertia of thousands of bodies
    accumulates.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    plan
        The method and the form of its code.
    """
    q, by, graph_name = quantity(request.quantity), plan.method, f"{mechanism.name}.{request.quantity}"
    is_straight = plan.form in (policy.STRAIGHT, policy.TREE_TERMS)
    tree = quantity_tree(mechanism, q.name, by) if is_straight else mechanism.tree
    names = [*q.inputs, *(["wrench"] if request.wrenches else [])]
    inputs = {name: shape_of(name, tree, request.wrenches) for name in names}
    if plan.form == policy.ROLLED:
        from bellcrank.build.rolled_recursion import rolled_graph

        p, reference = mechanism.parameters, {"reference": request.reference} if q.referred else {}
        return rolled_graph(graph_name, tree, by.name, q.name, inputs, request.wrenches, p, request.frame, **reference)
    if plan.form == policy.SEGMENTS:
        from bellcrank.build.segmented_recursion import finest_segmented_graph

        return finest_segmented_graph(graph_name, tree, inputs)
    check_size(mechanism, request, plan)
    if q.differentiates and q.name not in by.solves:
        base = trace_quantity(mechanism, replace(request, quantity=q.differentiates), by)
        return derivative_graph(flat_graph(base), tree, mechanism.name, q)
    function = with_layer(mechanism, request, plan).function(q.name)

    def body(**symbols: Any) -> dict[str, Any]:
        wrench = symbols.pop("wrench", None)
        options: dict[str, Any] = {"frame": request.frame} if request.frame else {}
        options |= {"reference": request.reference} if request.reference != "aligned" else {}
        if wrench is not None:
            options |= {"frames": request.wrenches, "wrench": wrench}
        result = function(tree, *symbols.values(), **options)
        return {q.name: [x for k, row in enumerate(result) for x in row[k:]] if request.packed else result}

    return trace(graph_name, body, inputs, mechanism.parameters)


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


def checked_strategy(mechanism: Mechanism, request: Request, cores: bool = False) -> Strategy:
    """Return the strategy for a request, after a check that it can be computed.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    cores
        Whether several cores share the work on each state.
    """
    check_request(mechanism, request)
    if quantity(request.quantity).inverts and not mechanism.tree.has_massive_bodies:
        from bellcrank.dynamics import singular_mass

        singular_mass.check_mass_matrix(mechanism)
    return policy.choose(mechanism, request, cores)


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
    return strategy_graph(mechanism, checked_strategy(mechanism, request), choose, calls)


def strategy_graph(
    mechanism: Mechanism, strategy: Strategy, choose: GraphChoice | None = None, calls: bool = False
) -> tuple[Method, Graph]:
    """Return method and graph of a `strategy` for `mechanism`; `choose` and `calls` are as in `choose_graph`."""
    graphs = [(p.method, trace_plan(mechanism, strategy.request, p)) for p in strategy.plans]
    chosen_method, chosen_graph = graphs[0]
    if len(graphs) > 1:
        from bellcrank.emit.cpu.costs import cheapest  # imported here because cached kernels need no choice

        chosen_method, chosen_graph = (choose or cheapest)(graphs)
    return chosen_method, chosen_graph if calls else flat_graph(chosen_graph)


def wide_graph(
    mechanism: Mechanism, strategy: Strategy, is_shared: Callable[[Graph], bool]
) -> tuple[Method, Graph] | None:
    """Return divide and conquer for several cores, or None where they would not share its work.

    The loops of aba along a branch run on one core.

    Parameters
    ----------
    mechanism
        The mechanism.
    strategy
        The strategy for a request.
    is_shared
        Returns whether several cores share the work of a graph.
    """
    if strategy.wide is None:
        return None
    segmented = trace_plan(mechanism, strategy.request, strategy.wide)
    return (strategy.wide.method, segmented) if is_shared(segmented) else None


def flat_graph(graph: Graph) -> Graph:
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
