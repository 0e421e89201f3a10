"""From a mechanism to the graph of a quantity: the method asked for, or the one that will be fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.build import forecast, springs_apart
from bellcrank.build.beneath import Beneath, moved, rolls_beneath
from bellcrank.build.places import path
from bellcrank.build.rolling import as_shipped, kinds, rollable, rolled, told
from bellcrank.build.segments import divided
from bellcrank.dynamics import (
    METHODS,
    QUANTITIES,
    Method,
    Quantity,
    able,
    candidates,
    estimate,
    immobility,
    kinematics,
    method,
    quantity,
    shape_of,
)
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.actuation import actuated
from bellcrank.dynamics.loops.layer import Layer
from bellcrank.dynamics.loops.rank import Rank
from bellcrank.dynamics.quantities import REFERENCES
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, trace
from bellcrank.graph.inline import inlined
from bellcrank.graph.recursion import MOST_WRITTEN
from bellcrank.model import Mechanism, Tree, regrouped
from bellcrank.model.parts import EQUATIONS

MOST_OPERATIONS = 10_000_000  # of a graph, roughly
RATE, BYTES = 30_000, 1_600  # operations that are traced in a second, and memory that each takes
# Operations of a graph from which on alike bodies share their code (docs/size.md): straight-line code of so many takes
# a second to compile, and runs no faster, because it no longer fits where a processor keeps its code.
MOST_STRAIGHT = 25_000
MOST_NUMBERS = 1_000  # that a graph reads and writes, likewise: to compile, each is many operations
MOST_TOLD = 20  # of those, for a coordinate or a body
ALIKE = 4  # bodies that a class has on average, where it pays
Choose = Callable[[Sequence[tuple[Method, Graph]]], tuple[Method, Graph]]


@dataclass(frozen=True)
class Request:
    """What is asked for: everything that decides the graph, and nothing that does not."""

    quantity: str
    method: str = "auto"
    frame: str = ""
    wrenches: tuple[str, ...] = ()
    actuated: tuple[str, ...] = ()  # joints that are driven; the others of a mechanism with loops are not
    packed: bool = False  # of a symmetric matrix row by row what is on the diagonal and right of it
    reference: str = "aligned"  # from where the motion of the frame is seen


def check(mechanism: Mechanism, request: Request) -> None:
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"expected a Mechanism, got {mechanism!r}; bellcrank.read(file) makes one.")
    q = quantity(request.quantity)
    _check_frames(mechanism, request, q)
    if request.actuated and not (q.driven and mechanism.loops):
        what = f'"{mechanism.name}" has no loops, so that all joints can be' if q.driven else "inverse_dynamics does"
        raise InputError(f"{q.name}: actuated is {list(request.actuated)}, but {what}. Leave it out.")
    if request.packed and not q.symmetric:
        those = ", ".join(name for name, row in QUANTITIES.items() if row.symmetric)
        raise InputError(f"{q.name} is no symmetric matrix that could be packed; {those} are.")
    if not mechanism.bodies:
        raise InputError(f'mechanism "{mechanism.name}" has no moving body; there is nothing to compute.')
    if not _solving(q.through or q.name):
        raise InputError(f'no method computes {q.name}. bellcrank.register("method", ...) adds one that does.')
    if not able(q.name, mechanism.tree):
        if not mechanism.loops and all(by.topology == "loops" for by in _solving(q.name)):
            raise InputError(f'{q.name} is about loops, and mechanism "{mechanism.name}" has none.')
        ways = "; ".join(f"{by.name} is for {by.topology}" for by in _solving(q.name))
        raise InputError(f'no method computes {q.name} of mechanism "{mechanism.name}": {ways}.')
    if request.method != "auto":
        method(request.method, q.name, mechanism.tree)


def _check_frames(mechanism: Mechanism, request: Request, q: Quantity) -> None:
    """Whether frames and wrenches are given where they are taken, and are there."""
    if q.option == "frame":
        if not request.frame:
            names = ", ".join(list(mechanism.frames)[:30])
            raise InputError(
                f'{q.name} needs a frame: {q.name}(..., frame="NAME") or --frame NAME. There are: {names}.'
            )
        mechanism.frame(request.frame)
    elif request.frame:
        raise InputError(f'{q.name} takes no frame; got "{request.frame}".')
    if request.reference not in REFERENCES:
        raise InputError(f"{q.name}: {unknown('reference', request.reference, REFERENCES)}")
    if request.reference != "aligned" and not q.referred:
        those = ", ".join(name for name, row in QUANTITIES.items() if row.referred)
        raise InputError(f'{q.name} takes no reference; got "{request.reference}". {those} do.')
    if request.wrenches and q.option != "frames":
        those = ", ".join(name for name, row in QUANTITIES.items() if row.option == "frames")
        raise InputError(f"{q.name} takes no wrenches; {those} do.")
    for name in request.wrenches:
        mechanism.frame(name)


def _solving(name: str) -> list[Method]:
    return [by for by in METHODS.values() if name in by.solves]


# -- stages


def tree(mechanism: Mechanism, name: str, by: Method) -> Tree:
    """Mechanism -> Tree, with emptied bodies where quantity and method allow."""
    return regrouped(mechanism.tree) if quantity(name).regrouped and by.regrouped else mechanism.tree


def layer(mechanism: Mechanism, request: Request, by: Method) -> Method | Layer:
    """What answers: the method itself, or, where there are loops or springs, the layer on top of it."""
    driven = quantity(request.quantity).driven
    if not mechanism.loops:
        every = tuple(range(mechanism.nv)) if driven else ()
        return Layer(by, Rank(), every) if mechanism.springs else by
    found = analysis(mechanism)
    terms = Beneath(mechanism, by) if rolls_beneath(mechanism, by) and not request.wrenches else by
    return Layer(terms, found.rank, actuated(mechanism, found, request.actuated) if driven else ())


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
    tree = concerned(mechanism, request)
    size = estimate(by.name, request.quantity, tree) / MOST_STRAIGHT
    if request.packed or (
        size <= 1.0 and max(tree.nv, len(tree.links)) * MOST_TOLD <= MOST_NUMBERS
    ):  # nobody need look closer
        return False
    if not rollable(mechanism.tree, by.name, request.quantity) or not as_shipped(tree):
        return False
    size = max(size, told(tree, by.name, request.quantity, request.frame) / MOST_NUMBERS)
    if size <= 1.0:
        return False
    return size > 10.0 or ALIKE * kinds(tree) <= len(tree.links)


def concerned(mechanism: Mechanism, request: Request) -> Tree:
    """As much of the mechanism as the request is about."""
    return path(mechanism.tree, request.frame) if request.frame else mechanism.tree


def side_by_side(mechanism: Mechanism, request: Request, worth: Callable[[Graph], bool]) -> tuple[Method, Graph] | None:
    """By "auto" on several cores: divide and conquer, where aba would be loops along a branch that only one can walk,
    and segments are long enough to be worth the others.
    """
    by = METHODS["dca"]
    asked = request.method == "auto" and by.applies(mechanism.tree, request.quantity)
    if not asked or not divides(mechanism, request, by) or (found := assembled(mechanism, request)) is None:
        return None
    return (by, found) if worth(found) else None


def divides(mechanism: Mechanism, request: Request, by: Method) -> bool:
    """Whether it is divide and conquer of a mechanism whose alike bodies share their code by aba as well."""
    asked = by.name == "dca" and request.quantity == "forward_dynamics"
    plain = not (request.wrenches or mechanism.parameters or mechanism.springs)
    return asked and plain and rolls(mechanism, request, METHODS["aba"])


def assembled(mechanism: Mechanism, request: Request) -> Graph | None:
    """Divide and conquer with segments whose code is shared; None where no branch is long enough for any."""
    inputs = {name: shape_of(name, mechanism.tree) for name in quantity(request.quantity).inputs}
    return divided(f"{mechanism.name}.{request.quantity}", mechanism.tree, inputs)


def shared(mechanism: Mechanism, request: Request, able: list[Method]) -> list[Method]:
    """Of methods those whose code alike bodies share, if there are any."""
    looped = mechanism.loops and request.quantity == "forward_dynamics"
    beneath = [m for m in able if looped and rolls_beneath(mechanism, m)]
    if mechanism.tree.following and METHODS["crba"] in able:  # of alike ones aba knows also joints that follow others
        able = [METHODS["aba"], *able] if rolls(mechanism, request, METHODS["aba"]) else able
    return [m for m in able if rolls(mechanism, request, m)] or beneath or able


def considered(mechanism: Mechanism, request: Request) -> list[Method]:
    """The methods that may answer: the one asked for, or by "auto" all that are not hopeless."""
    named = request.method != "auto"
    by = [method(request.method, request.quantity, mechanism.tree)] if named else []
    return shared(mechanism, request, by or candidates(request.quantity, mechanism.tree))


def small(mechanism: Mechanism, request: Request) -> bool:
    """Whether it is so little work by any of them that nobody need be told what it will take."""
    tree = concerned(mechanism, request)
    work = [estimate(by.name, request.quantity, tree) for by in considered(mechanism, request)]
    return not mechanism.loops and min(work) > 0.0 and max(work) <= MOST_STRAIGHT


def expected(mechanism: Mechanism, request: Request, calls: bool) -> forecast.Forecast:
    """What a kernel will take to make. calls: whether it is for a target that shares the code of alike bodies."""
    tree, by = concerned(mechanism, request), considered(mechanism, request)
    shares = moved(tree) if tree.loops else []
    equations = (EQUATIONS.get(loop.kind, 1) * share for loop, share in zip(tree.loops, shares, strict=True))
    passes = 1.0 + forecast.EQUATION * sum(equations)
    work = [passes * estimate(m.name, request.quantity, tree) for m in by]
    beneath = [bool(tree.loops) and rolls_beneath(mechanism, m) for m in by]
    rolled_up = calls and all(rolls(mechanism, request, m) or below for m, below in zip(by, beneath, strict=True))
    if rolled_up or all(divides(mechanism, request, m) for m in by):  # the latter on every target
        return forecast.shared(min(work), len(tree.links), kinds(tree))
    return forecast.written_out(work)


def traced(mechanism: Mechanism, request: Request, by: Method) -> Graph:
    """Tree -> Graph, by one method."""
    q = quantity(request.quantity)
    if rolls(mechanism, request, by):
        name, names = f"{mechanism.name}.{q.name}", [*q.inputs, *(["wrench"] if request.wrenches else [])]
        inputs = {name: shape_of(name, mechanism.tree, request.wrenches) for name in names}
        # Bodies as they are, not emptied: alike ones stay alike, and no inertia of thousands is carried along.
        made = springs_apart.sprung if mechanism.springs and q.name in springs_apart.FELT else rolled
        frame = {"frame": request.frame} if request.frame else {}
        frame |= {"reference": request.reference} if q.referred else {}
        return made(name, mechanism.tree, by.name, q.name, inputs, request.wrenches, mechanism.parameters, **frame)
    if divides(mechanism, request, by) and (cut := assembled(mechanism, request)) is not None:
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
            f'{MOST_WRITTEN:,} are written out. Kernels for target="cpu" and runs share the code of alike bodies.'
        )
    return inlined(graph)
