"""Graphs of mechanisms of many bodies, whose alike ones share their code (docs/size.md)."""

from __future__ import annotations

from bellcrank.build import springs_apart
from bellcrank.build.rolling import as_shipped, kinds, rollable, rolled, told
from bellcrank.build.segments import divided
from bellcrank.dynamics import Method, estimate, quantity, requests, shape_of
from bellcrank.dynamics.requests import Request
from bellcrank.graph import Graph
from bellcrank.model import Mechanism, Tree

ALIKE = 4  # bodies that a class has on average, where it pays


def shares(mechanism: Mechanism, tree: Tree, request: Request, by: Method) -> bool:
    """Whether alike bodies share the code of a quantity of (part of) a mechanism: the method can, and written out it
    would be much, either of many alike bodies or far too much. tree: what the request is about.
    """
    if not rollable(mechanism.tree, by.name, request.quantity):
        return False
    numbers = told(tree, by.name, request.quantity, request.frame) / requests.MOST_NUMBERS
    return pays(tree, max(estimate(by.name, request.quantity, tree) / requests.MOST_STRAIGHT, numbers))


def pays(tree: Tree, size: float) -> bool:
    """size: of what would be written out, in terms of the most that is."""
    much = size > 10.0 or (size > 1.0 and ALIKE * kinds(tree) <= len(tree.links))
    return much and as_shipped(tree)


def recursion(mechanism: Mechanism, request: Request, by: Method) -> Graph:
    """Bodies as they are, not emptied: alike ones stay alike, and no inertia of thousands is carried along."""
    q = quantity(request.quantity)
    names = [*q.inputs, *(["wrench"] if request.wrenches else [])]
    inputs = {name: shape_of(name, mechanism.tree, request.wrenches) for name in names}
    made = springs_apart.sprung if mechanism.springs and q.name in springs_apart.FELT else rolled
    called = f"{mechanism.name}.{q.name}"
    frame = {"frame": request.frame} if request.frame else {}
    frame |= {"reference": request.reference} if q.referred else {}
    return made(called, mechanism.tree, by.name, q.name, inputs, request.wrenches, mechanism.parameters, **frame)


def assembled(mechanism: Mechanism, request: Request) -> Graph | None:
    """Divide and conquer with segments whose code is shared; None where no branch is long enough for any."""
    inputs = {name: shape_of(name, mechanism.tree) for name in quantity(request.quantity).inputs}
    return divided(f"{mechanism.name}.{request.quantity}", mechanism.tree, inputs)
