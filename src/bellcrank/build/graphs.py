"""From a mechanism to the graph of a quantity: the method asked for, or the one that will be fastest.

What a mechanism does not have (loops, springs, bodies by the hundred) is not loaded: to load it takes as long as to
trace a small one.
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
from bellcrank.dynamics.requests import Request, brief, check, straight
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.graph.inline import inlined
from bellcrank.graph.recursion import MOST_WRITTEN
from bellcrank.model import Mechanism, Tree, regrouped

if TYPE_CHECKING:
    from bellcrank.build.forecast import Forecast
    from bellcrank.dynamics.loops.layer import Layer

MOST_OPERATIONS = 10_000_000  # of a graph, roughly
RATE, BYTES = 30_000, 1_600  # operations that are traced in a second, and memory that each takes
Choose = Callable[[Sequence[tuple[Method, Graph]]], tuple[Method, Graph]]


def tree(mechanism: Mechanism, name: str, by: Method) -> Tree:
    """Mechanism -> Tree, with emptied bodies where quantity and method allow."""
    return regrouped(mechanism.tree) if quantity(name).regrouped and by.regrouped else mechanism.tree


def layer(mechanism: Mechanism, request: Request, by: Method) -> Method | Layer:
    """What answers: the method itself, or, where there are loops or springs, the layer on top of it."""
    if not (mechanism.loops or mechanism.springs):
        return by
    from bellcrank.build.beneath import layered

    return layered(mechanism, request, by)


def fits(mechanism: Mechanism, name: str, by: Method, tree: Tree | None = None) -> None:
    """An error where the equations would take minutes and gigabytes to write down."""
    work = estimate(by.name, name, tree or mechanism.tree)
    if work > MOST_OPERATIONS:
        raise InputError(
            f"{name} of {mechanism.name} by {by.name} is about {work:,.0f} operations, and at most {MOST_OPERATIONS:,} "
            f"are traced: it would take some {work / RATE / 60:.0f} minutes and {work * BYTES / 1e9:.0f} GB. Lock "
            "joints, or take a quantity or a method whose work does not grow with the square of the bodies."
        )


def rolls(mechanism: Mechanism, request: Request, by: Method) -> bool:
    """Whether alike bodies share their code: the method can, and written out it would be too much to compile."""
    small = straight(by.name, request.quantity, mechanism.tree) and brief(request.quantity, mechanism.tree)
    if small or request.packed:
        return False
    from bellcrank.build.sharing import shares

    return shares(mechanism, concerned(mechanism, request), request, by)


def concerned(mechanism: Mechanism, request: Request) -> Tree:
    """As much of the mechanism as the request is about."""
    if not request.frame:
        return mechanism.tree
    from bellcrank.build.places import path

    return path(mechanism.tree, request.frame)


def side_by_side(mechanism: Mechanism, request: Request, worth: Callable[[Graph], bool]) -> tuple[Method, Graph] | None:
    """By "auto" on several cores: divide and conquer, where aba would be loops along a branch that only one can walk,
    and segments are long enough to be worth the others.
    """
    by = METHODS["dca"]
    asked = request.method == "auto" and by.applies(mechanism.tree, request.quantity)
    if not asked or not divides(mechanism, request, by):
        return None
    from bellcrank.build.sharing import assembled

    found = assembled(mechanism, request)
    return (by, found) if found is not None and worth(found) else None


def divides(mechanism: Mechanism, request: Request, by: Method) -> bool:
    """Whether it is divide and conquer of a mechanism whose alike bodies share their code by aba as well."""
    asked = by.name == "dca" and request.quantity == "forward_dynamics"
    plain = not (request.wrenches or mechanism.parameters or mechanism.springs)
    return asked and plain and rolls(mechanism, request, METHODS["aba"])


def shared(mechanism: Mechanism, request: Request, able: list[Method]) -> list[Method]:
    """Of methods those whose code alike bodies share, if there are any."""
    if mechanism.tree.following and METHODS["crba"] in able:  # of alike ones aba knows also joints that follow others
        able = [METHODS["aba"], *able] if rolls(mechanism, request, METHODS["aba"]) else able
    if sharing := [m for m in able if rolls(mechanism, request, m)]:
        return sharing
    if not mechanism.loops or request.quantity != "forward_dynamics":
        return able
    from bellcrank.build.beneath import rolls_beneath

    return [m for m in able if rolls_beneath(mechanism, m)] or able


def considered(mechanism: Mechanism, request: Request) -> list[Method]:
    """The methods that may answer: the one asked for, or by "auto" all that are not hopeless."""
    named = request.method != "auto"
    by = [method(request.method, request.quantity, mechanism.tree)] if named else []
    return shared(mechanism, request, by or candidates(request.quantity, mechanism.tree))


def small(mechanism: Mechanism, request: Request) -> bool:
    """Whether it is so little work by any of them that nobody need be told what it will take."""
    of, by = (request.quantity, concerned(mechanism, request)), considered(mechanism, request)
    return not mechanism.loops and all(estimate(m.name, *of) > 0.0 and straight(m.name, *of) for m in by)


def expected(mechanism: Mechanism, request: Request, calls: bool) -> Forecast:
    """What a kernel will take to make. calls: whether it is for a target that shares the code of alike bodies."""
    from bellcrank.build import forecast
    from bellcrank.build.beneath import passes, rolls_beneath
    from bellcrank.build.rolling import kinds

    tree, by = concerned(mechanism, request), considered(mechanism, request)
    work = [passes(tree) * estimate(m.name, request.quantity, tree) for m in by]
    beneath = [bool(tree.loops) and rolls_beneath(mechanism, m) for m in by]
    rolled_up = calls and all(rolls(mechanism, request, m) or below for m, below in zip(by, beneath, strict=True))
    if rolled_up or all(divides(mechanism, request, m) for m in by):  # the latter on every target
        return forecast.shared(min(work), len(tree.links), kinds(tree))
    return forecast.written_out(work)


def traced(mechanism: Mechanism, request: Request, by: Method) -> Graph:
    """Tree -> Graph, by one method."""
    q = quantity(request.quantity)
    if rolls(mechanism, request, by):
        from bellcrank.build.sharing import recursion

        return recursion(mechanism, request, by)
    if divides(mechanism, request, by):
        from bellcrank.build.sharing import assembled

        if (cut := assembled(mechanism, request)) is not None:
            return cut
    fits(mechanism, q.name, by, concerned(mechanism, request))
    form = tree(mechanism, q.name, by)
    if q.differentiates and q.name not in by.solves:
        base = traced(mechanism, replace(request, quantity=q.differentiates), by)
        return tangents(_flat(base), form, mechanism.name, q)
    function = layer(mechanism, request, by).function(q.name)
    inputs = {name: shape_of(name, form) for name in q.inputs}
    if request.wrenches:
        inputs["wrench"] = shape_of("wrench", form, request.wrenches)

    def body(**symbols: Any) -> dict[str, Any]:
        wrench = symbols.pop("wrench", None)
        options: dict[str, Any] = {"frame": request.frame} if request.frame else {}
        options |= {"reference": request.reference} if request.reference != "aligned" else {}
        if wrench is not None:
            options |= {"frames": request.wrenches, "wrench": wrench}
        found = function(form, *symbols.values(), **options)
        return {q.name: [x for k, row in enumerate(found) for x in row[k:]] if request.packed else found}

    return trace(f"{mechanism.name}.{q.name}", body, inputs, mechanism.parameters)


def tangents(base: Graph, form: Tree, mechanism: str, row: Quantity) -> Graph:
    """The derivatives of a graph's one output with respect to q (along the velocities) and its other inputs, (inputs,
    nv, nv): a tangent for each, in one sweep.
    """
    name, names = row.name, row.inputs
    (of, output), n = next(iter(base.outputs.items())), form.nv
    q = list(base.tape.inputs("q", (form.nq,)))
    moves = {}
    for i, x in enumerate(names):
        moves[x] = np.full((form.nq if x == "q" else n, n * len(names)), 0.0, dtype=object)
        for k in range(n):
            unit = [float(j == k) for j in range(n)]
            moves[x][:, i * n + k] = kinematics.rate(form, q, unit) if x == "q" else unit
    found = base.along(moves, [of])[of].reshape(output.size, len(names), n)
    return Graph(f"{mechanism}.{name}", base.inputs, {name: np.moveaxis(found, 1, 0)}, base.tape)


def graph(
    mechanism: Mechanism,
    name: str,
    method: str = "auto",
    frame: str = "",
    wrenches: tuple[str, ...] = (),
    actuated: Sequence[str] = (),
    reference: str = "aligned",
) -> Graph:
    """The data-flow graph of a quantity."""
    return chosen(mechanism, Request(name, method, frame, tuple(wrenches), tuple(actuated), reference=reference))[1]


def chosen(
    mechanism: Mechanism, request: Request, choose: Choose | None = None, calls: bool = False
) -> tuple[Method, Graph]:
    """The method asked for, or by "auto" the one whose graph will take the least time where it is to run. calls:
    whether whoever asks takes a graph that calls others.
    """
    check(mechanism, request)
    if quantity(request.quantity).inverts and not mechanism.tree.massive:
        from bellcrank.dynamics import immobility

        immobility.check(mechanism)
    graphs = [(m, traced(mechanism, request, m)) for m in considered(mechanism, request)]
    by, found = graphs[0]
    if len(graphs) > 1:
        from bellcrank.emit.cpu.costs import cheapest  # what comes from the cache needs no choice

        by, found = (choose or cheapest)(graphs)
    return by, found if calls else _flat(found)


def _flat(graph: Graph) -> Graph:
    """The graph with the bodies of its calls written out."""
    if not graph.calls:
        return graph
    operations = graph.count().arithmetic
    if operations > MOST_WRITTEN:
        raise InputError(
            f"{graph.name} is {operations:,} operations, and what is asked for needs them one by one; at most "
            f'{MOST_WRITTEN:,} are written out. Kernels for target="cpu" and target="cuda", and runs on both, share '
            "the code of alike bodies."
        )
    return inlined(graph)
