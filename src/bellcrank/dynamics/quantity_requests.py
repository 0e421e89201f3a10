"""Requests for quantities: validation, and selection of the methods that may compute them.

All of this is decided before tracing, and therefore without importing the file of any method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.dynamics.method_table import METHODS, Method
from bellcrank.dynamics.operation_counts import WORK
from bellcrank.dynamics.quantities import QUANTITIES, REFERENCES, Quantity, quantity
from bellcrank.errors import InputError, brief, unknown
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.tree import Tree

# "auto" does not trace a method whose estimate exceeds the least estimate by more than this factor.
ESTIMATE_MARGIN = 1.2
COUPLED_MARGIN = 3.0  # the same factor for joints that share coordinates, which the estimate does not consider
# Operations: below this, tracing every method that may be the fastest takes hardly any time.
QUICK_TRACE_OPERATIONS = 5_000.0
# Often the fastest: tried unless they exceed HOPELESS_LIMITS.
STRONG_METHODS = ("rnea", "crba", "aba", "denoc", "vcrb", "reactions")
# A strong method is dropped if it exceeds both this factor and this number of operations.
HOPELESS_LIMITS = (1.5, 12_000.0)
# Cost of a tangent as a fraction of its graph: many operations do not depend on the differentiated input.
TANGENT_COST_RATIO = 0.4


@dataclass(frozen=True)
class Request:
    """A requested quantity: every option that decides the graph, and no others."""

    quantity: str
    method: str = "auto"
    frame: str = ""
    wrenches: tuple[str, ...] = ()
    actuated: tuple[str, ...] = ()  # actuated joints; the other joints of a mechanism with loops are passive
    packed: bool = False  # a symmetric matrix as its diagonal and the elements right of it, row by row
    reference: str = "aligned"  # point and axes in which the motion of the frame is expressed


def checked_joint_names(name: str, actuated: Any) -> tuple[str, ...]:
    """Return `actuated` as a tuple of joint names; raise an InputError if it is not a collection of names.

    `name` is the quantity, for the message.
    """
    is_collection = isinstance(actuated, tuple | list | set | frozenset | dict)
    if not is_collection or not all(isinstance(joint, str) for joint in actuated):
        raise InputError(f'{name}: actuated is {brief(actuated)}; expected a list of joints, as in actuated=["crank"].')
    return tuple(actuated)


def check_moving_body(mechanism: Mechanism) -> None:
    """Raise an InputError if `mechanism` has no moving body."""
    if not mechanism.bodies:
        raise InputError(f'mechanism "{mechanism.name}" has no moving body; there is nothing to compute.')


def check_request(mechanism: Mechanism, request: Request) -> None:
    """Check that `request` can be computed for `mechanism`.

    Parameters
    ----------
    mechanism
        Mechanism of the request.
    request
        Quantity and options.

    Raises
    ------
    InputError
        If the mechanism, the quantity, an option or the method does not fit.
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"expected a Mechanism, got {mechanism!r}; bellcrank.read(file) makes one.")
    q = quantity(request.quantity)
    _check_frames(mechanism, request, q)
    if request.actuated and not (q.driven and mechanism.loops):
        what = f'"{mechanism.name}" has no loops' if q.driven else "only inverse_dynamics takes it"
        raise InputError(f"{q.name}: actuated is {list(request.actuated)}, but {what}. Leave it out.")
    if request.packed and not q.symmetric:
        those = ", ".join(name for name, row in QUANTITIES.items() if row.symmetric)
        raise InputError(f"{q.name} is not a symmetric matrix and cannot be packed; {those} can.")
    check_moving_body(mechanism)
    if not _methods_solving(q.through or q.name):
        raise InputError(f'no method computes {q.name}. bellcrank.register("method", ...) adds one that does.')
    if not applicable_methods(q.name, mechanism.tree):
        if not mechanism.loops and all(candidate.topology == "loops" for candidate in _methods_solving(q.name)):
            raise InputError(f'{q.name} needs loops, but mechanism "{mechanism.name}" has none.')
        ways = "; ".join(f"{candidate.name} covers {candidate.topology}" for candidate in _methods_solving(q.name))
        raise InputError(f'no method computes {q.name} of mechanism "{mechanism.name}": {ways}.')
    if request.method != "auto":
        method(request.method, q.name, mechanism.tree)


def _check_frames(mechanism: Mechanism, request: Request, q: Quantity) -> None:
    """Check that frames and wrenches are given only where they are accepted, and that they exist."""
    if q.option == "frame":
        if not request.frame:
            names = ", ".join(list(mechanism.frames)[:30])
            raise InputError(
                f'{q.name} needs a frame: {q.name}(..., frame="NAME") or --frame NAME. Available: {names}.'
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


def _methods_solving(name: str) -> list[Method]:
    return [method for method in list(METHODS.values()) if name in method.solves]


# -- which methods may answer


def applicable_methods(quantity_name: str, tree: Tree) -> list[Method]:
    """Return all methods that compute the quantity `quantity_name` for `tree`."""
    q = quantity(quantity_name)
    if q.through and not tree.loops:
        return []
    applicable = [m for m in list(METHODS.values()) if m.applies(tree, q.through or quantity_name)]
    if q.differentiates:  # the graph of any method can be differentiated
        applicable += [m for m in list(METHODS.values()) if m.applies(tree, q.differentiates) and m not in applicable]
    return applicable


def method(name: str, quantity_name: str, tree: Tree) -> Method:
    """Return the named method if it computes the quantity for this tree.

    Parameters
    ----------
    name
        Name of the method.
    quantity_name
        Name of the quantity.
    tree
        Kinematic tree of the mechanism.

    Raises
    ------
    InputError
        If no such method exists or it does not compute the quantity; the message lists those that do.
    """
    method_names = [m.name for m in applicable_methods(quantity_name, tree)]
    if not method_names:
        raise InputError(f"{quantity_name} needs loops, but this mechanism has none.")
    if name not in METHODS:
        raise InputError(unknown("method", name, ["auto", *method_names]))
    if name not in method_names:
        m, q = METHODS[name], quantity(quantity_name)
        needed = q.through or quantity_name
        if q.differentiates in m.solves:  # its graph could be differentiated, but it does not cover the mechanism
            needed = q.differentiates
        why = f"it solves {', '.join(m.solves)}" if needed not in m.solves else m.covered(needed).but
        raise InputError(
            f'method "{name}" cannot compute {quantity_name} of this mechanism: {why}. '
            f"Use: {', '.join(['auto', *method_names])}."
        )
    return METHODS[name]


def candidates(quantity_name: str, tree: Tree) -> list[Method]:
    """Return the methods that "auto" chooses from.

    These are all methods that compute `quantity_name` for `tree`, except those that a rough estimate puts far behind.
    """
    applicable = applicable_methods(quantity_name, tree)
    if base := quantity(quantity_name).differentiates:
        return [m for m in applicable if quantity_name in m.solves] or candidates(base, tree)
    if len(applicable) < 2:
        return applicable
    work = {m.name: estimate(m.name, quantity_name, tree) for m in applicable}
    least, (times, large) = min((x for x in work.values() if x), default=0.0), HOPELESS_LIMITS
    limit = max(times * least, large)
    strong_methods = {m.name for m in applicable if m.name in STRONG_METHODS and work[m.name] <= limit}
    return [m for m in applicable if m.name in strong_methods or work[m.name] <= _margin(m, tree, least) * least]


def _margin(m: Method, tree: Tree, least: float) -> float:
    """Return how many times the least estimate a method may need and still be tried.

    With flexible bodies, methods for rigid bodies have the same additional layer (flexible_layer.py), so if a strong
    method does not win there, no other does.
    """
    doubtful = tree.coupled and (not tree.flexible or least < QUICK_TRACE_OPERATIONS or m.name in STRONG_METHODS)
    slides = sum(link.kind.name == "prismatic" for link in tree.links)
    # The estimate assumes revolute joints with one axis.
    other = (tree.nv > len(tree.links) or 2 * slides > len(tree.links)) and least < QUICK_TRACE_OPERATIONS
    return COUPLED_MARGIN if doubtful or other else ESTIMATE_MARGIN


def estimate(method: str, quantity: str, tree: Tree) -> float:
    """Estimate the number of operations.

    The estimate is 0 for a method without known operation counts.

    Parameters
    ----------
    method
        Name of the method.
    quantity
        Name of the quantity.
    tree
        Kinematic tree of the mechanism.
    """
    q = QUANTITIES[quantity]
    known = WORK.get(q.through or quantity, {})
    if method not in known:
        tangents = TANGENT_COST_RATIO * len(q.inputs) * tree.nv
        return tangents * estimate(method, q.differentiates, tree) if q.differentiates else 0.0
    ends, one, two, three = known[method]
    n, pairs, triples, tips = tree.work_sizes
    total = one * n + two * pairs + three * triples
    return max(total + ends * tips / 2, total / 10, 1.0)
