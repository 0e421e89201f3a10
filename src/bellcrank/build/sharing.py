"""Graphs of mechanisms of many bodies, whose alike ones share their code (docs/size.md)."""

from __future__ import annotations

from bellcrank.build import springs_apart
from bellcrank.build.rolling import as_shipped, rollable, rolled
from bellcrank.build.segments import divided
from bellcrank.dynamics import Method, quantity, shape_of
from bellcrank.dynamics.alike import classes
from bellcrank.dynamics.requests import Request, straight
from bellcrank.graph import Graph
from bellcrank.model import Mechanism, Tree

ALIKE = 4  # bodies that a class has on average, where it pays


def shares(tree: Tree, method: str, quantity: str) -> bool:
    """Whether alike bodies share the code of a quantity that would be much, written out: the method can, and either
    there are many alike or it would be far too much.
    """
    if not rollable(tree, method, quantity) or not as_shipped(tree):
        return False
    return not straight(method, quantity, tree, times=10) or ALIKE * len(classes(tree)) <= len(tree.links)


def recursion(mechanism: Mechanism, request: Request, by: Method) -> Graph:
    """Bodies as they are, not emptied: alike ones stay alike, and no inertia of thousands is carried along."""
    q = quantity(request.quantity)
    names = [*q.inputs, *(["wrench"] if request.wrenches else [])]
    inputs = {name: shape_of(name, mechanism.tree, request.wrenches) for name in names}
    made = springs_apart.sprung if mechanism.springs and q.name in springs_apart.FELT else rolled
    called = f"{mechanism.name}.{q.name}"
    return made(called, mechanism.tree, by.name, q.name, inputs, request.wrenches, mechanism.parameters)


def assembled(mechanism: Mechanism, request: Request) -> Graph | None:
    """Divide and conquer with segments whose code is shared; None where no branch is long enough for any."""
    inputs = {name: shape_of(name, mechanism.tree) for name in quantity(request.quantity).inputs}
    return divided(f"{mechanism.name}.{request.quantity}", mechanism.tree, inputs)
