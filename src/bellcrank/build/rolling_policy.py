"""Rolling policy: graphs of mechanisms with many bodies, whose identical bodies share their code (docs/size.md)."""

from __future__ import annotations

from bellcrank.build import rolled_springs
from bellcrank.build.rolled_recursion import count_classes, count_numbers, has_shipped_joints, is_rollable, rolled_graph
from bellcrank.build.segmented_recursion import finest_segmented_graph
from bellcrank.dynamics import Method, estimate, quantity, quantity_requests, shape_of
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.graph import Graph
from bellcrank.model import Mechanism, Tree

MIN_BODIES_PER_CLASS = 4  # mean number of bodies per link class from which rolling pays


def should_roll(mechanism: Mechanism, tree: Tree, request: Request, base_method: Method) -> bool:
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
    base_method
        The method.
    """
    if not is_rollable(mechanism.tree, base_method.name, request.quantity):
        return False
    numbers = (
        count_numbers(tree, base_method.name, request.quantity, request.frame) / quantity_requests.MAX_STRAIGHT_NUMBERS
    )
    return rolling_pays(
        tree,
        max(estimate(base_method.name, request.quantity, tree) / quantity_requests.MAX_STRAIGHT_OPERATIONS, numbers),
    )


def rolling_pays(tree: Tree, size: float) -> bool:
    """Return whether rolling pays for `tree`, with straight-line code of `size` times the limit."""
    much = size > 10.0 or (size > 1.0 and MIN_BODIES_PER_CLASS * count_classes(tree) <= len(tree.links))
    return much and has_shipped_joints(tree)


def request_recursion(mechanism: Mechanism, request: Request, base_method: Method) -> Graph:
    """Return the rolled graph of a request.

    Bodies are not regrouped: identical ones stay identical, and no inertia of thousands of bodies accumulates.

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
    names = [*q.inputs, *(["wrench"] if request.wrenches else [])]
    inputs = {name: shape_of(name, mechanism.tree, request.wrenches) for name in names}
    make_graph = (
        rolled_springs.graph_with_springs
        if mechanism.springs and q.name in rolled_springs.SPRING_QUANTITIES
        else rolled_graph
    )
    called = f"{mechanism.name}.{q.name}"
    frame = {"frame": request.frame} if request.frame else {}
    frame |= {"reference": request.reference} if q.referred else {}
    return make_graph(
        called, mechanism.tree, base_method.name, q.name, inputs, request.wrenches, mechanism.parameters, **frame
    )


def request_dca(mechanism: Mechanism, request: Request) -> Graph | None:
    """Return divide and conquer with rolled segments for a `request` on `mechanism`, or None without a long branch."""
    inputs = {name: shape_of(name, mechanism.tree) for name in quantity(request.quantity).inputs}
    return finest_segmented_graph(f"{mechanism.name}.{request.quantity}", mechanism.tree, inputs)
