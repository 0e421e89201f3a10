"""Rolling policy: graphs of mechanisms with many bodies, whose identical bodies share their code (docs/size.md)."""

from __future__ import annotations

from bellcrank.build import springs_apart
from bellcrank.build.rolling import as_shipped, kinds, rollable, rolled, told
from bellcrank.build.segments import divided
from bellcrank.dynamics import Method, estimate, quantity, requests, shape_of
from bellcrank.dynamics.requests import Request
from bellcrank.graph import Graph
from bellcrank.model import Mechanism, Tree

ALIKE = 4  # mean number of bodies per link class from which rolling pays


def shares(mechanism: Mechanism, tree: Tree, request: Request, by: Method) -> bool:
    """Return whether identical bodies share the code of a quantity.

    The method must support it, and the straight-line code must be long: with many identical bodies, or far too long.

    Parameters
    ----------
    mechanism
        The mechanism.
    tree
        The part of its tree that the request depends on.
    request
        The quantity and its options.
    by
        The method.
    """
    if not rollable(mechanism.tree, by.name, request.quantity):
        return False
    numbers = told(tree, by.name, request.quantity, request.frame) / requests.MOST_NUMBERS
    return pays(tree, max(estimate(by.name, request.quantity, tree) / requests.MOST_STRAIGHT, numbers))


def pays(tree: Tree, size: float) -> bool:
    """Return whether rolling pays for `tree`, with straight-line code of `size` times the limit."""
    much = size > 10.0 or (size > 1.0 and ALIKE * kinds(tree) <= len(tree.links))
    return much and as_shipped(tree)


def recursion(mechanism: Mechanism, request: Request, by: Method) -> Graph:
    """Return the rolled graph of a request.

    Bodies are not regrouped: identical ones stay identical, and no inertia of thousands of bodies accumulates.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    by
        The method.
    """
    q = quantity(request.quantity)
    names = [*q.inputs, *(["wrench"] if request.wrenches else [])]
    inputs = {name: shape_of(name, mechanism.tree, request.wrenches) for name in names}
    made = springs_apart.sprung if mechanism.springs and q.name in springs_apart.FELT else rolled
    called = f"{mechanism.name}.{q.name}"
    frame = {"frame": request.frame} if request.frame else {}
    frame |= {"reference": request.reference} if q.referred else {}
    return made(called, mechanism.tree, by.name, q.name, inputs, request.wrenches, mechanism.parameters, **frame)


def assembled(mechanism: Mechanism, request: Request) -> Graph | None:
    """Return divide and conquer with rolled segments for a `request` on `mechanism`, or None without a long branch."""
    inputs = {name: shape_of(name, mechanism.tree) for name in quantity(request.quantity).inputs}
    return divided(f"{mechanism.name}.{request.quantity}", mechanism.tree, inputs)
