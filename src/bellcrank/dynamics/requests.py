"""What is asked of a mechanism, whether it can be had, and which methods may answer: all that is known before anything
is traced, and so without the file of any method.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.dynamics.quantities import QUANTITIES, REFERENCES, Quantity, quantity
from bellcrank.dynamics.table import METHODS, Method
from bellcrank.dynamics.work import WORK
from bellcrank.errors import InputError, unknown
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.tree import Tree

MARGIN = 1.2  # what a rough estimate puts further behind than this is not traced by "auto" ...
COUPLED = 3.0  # (where joints share coordinates, which the estimate does not see)
QUICK = 5_000.0  # operations: with so few, all that may be the fastest are traced in no time
STRONG = ("rnea", "crba", "aba", "denoc", "vcrb", "reactions")  # ... unless it is one that wins elsewhere, and is not
HOPELESS = 1.5, 12_000.0  # both that many times behind and that many operations
TANGENT = 0.4  # of a graph, what a tangent through it takes: many of its operations do not depend on that input
# Operations of a graph from which on alike bodies share their code (docs/size.md): straight-line code of so many takes
# a second to compile, and runs no faster, because it no longer fits where a processor keeps its code.
MOST_STRAIGHT = 25_000
MOST_NUMBERS = 1_000  # that a graph reads and writes, likewise: to compile, each is many operations
WIDEST = 16  # numbers that a body says, at most: its pose


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
    return [by for by in list(METHODS.values()) if name in by.solves]


# -- which methods may answer


def able(quantity_name: str, tree: Tree) -> list[Method]:
    """All methods that give the quantity for this tree."""
    q = quantity(quantity_name)
    if q.through and not tree.loops:
        return []
    found = [m for m in list(METHODS.values()) if m.applies(tree, q.through or quantity_name)]
    if q.differentiates:  # what a method gives can be differentiated
        found += [m for m in list(METHODS.values()) if m.applies(tree, q.differentiates) and m not in found]
    return found


def method(name: str, quantity_name: str, tree: Tree) -> Method:
    """The named method, if it solves the quantity for this tree."""
    found = [m.name for m in able(quantity_name, tree)]
    if not found:
        raise InputError(f"{quantity_name} is about loops, and this mechanism has none.")
    if name not in METHODS:
        raise InputError(unknown("method", name, ["auto", *found]))
    if name not in found:
        m, q = METHODS[name], quantity(quantity_name)
        needed = q.through or quantity_name
        if q.differentiates in m.solves:  # it could be differentiated, but for the mechanism
            needed = q.differentiates
        why = f"it solves {', '.join(m.solves)}" if needed not in m.solves else m.covered(needed).but
        raise InputError(
            f'method "{name}" does not give {quantity_name} of this mechanism: {why}. '
            f"Use: {', '.join(['auto', *found])}."
        )
    return METHODS[name]


def candidates(quantity_name: str, tree: Tree) -> list[Method]:
    """What "auto" chooses from: all that apply, less those that a rough estimate puts far behind."""
    found = able(quantity_name, tree)
    if base := quantity(quantity_name).differentiates:
        return [m for m in found if quantity_name in m.solves] or candidates(base, tree)
    if len(found) < 2:
        return found
    work = {m.name: estimate(m.name, quantity_name, tree) for m in found}
    least, (times, large) = min((x for x in work.values() if x), default=0.0), HOPELESS
    kept = {m.name for m in found if m.name in STRONG and work[m.name] <= max(times * least, large)}
    return [m for m in found if m.name in kept or work[m.name] <= _margin(m, tree, least) * least]


def _margin(m: Method, tree: Tree, least: float) -> float:
    """Where bodies bend, methods for rigid bodies have the same layer on top of them (bent.py): what a strong one has
    not won there, no other does.
    """
    doubtful = tree.coupled and (not tree.flexible or least < QUICK or m.name in STRONG)
    slides = sum(link.kind.name == "prismatic" for link in tree.links)
    # The estimate is of joints with one axis, and of joints that turn.
    other = (tree.nv > len(tree.links) or 2 * slides > len(tree.links)) and least < QUICK
    return COUPLED if doubtful or other else MARGIN


def estimate(method: str, quantity: str, tree: Tree) -> float:
    """0 of a method that is not in the table: nobody knows."""
    q = QUANTITIES[quantity]
    known = WORK.get(q.through or quantity, {})
    if method not in known:
        tangents = TANGENT * len(q.inputs) * tree.nv
        return tangents * estimate(method, q.differentiates, tree) if q.differentiates else 0.0
    ends, one, two, three = known[method]
    n, pairs, triples, tips = tree.depths
    total = one * n + two * pairs + three * triples
    return max(total + ends * tips / 2, total / 10, 1.0)


def straight(method: str, quantity: str, tree: Tree) -> bool:
    """Whether it is little enough to be written out, body by body."""
    return estimate(method, quantity, tree) <= MOST_STRAIGHT


def brief(quantity: str, tree: Tree) -> bool:
    """Whether it surely reads and writes so few numbers that each may have code of its own."""
    return (len(QUANTITIES[quantity].inputs) + WIDEST) * max(tree.nv, len(tree.links)) <= MOST_NUMBERS
