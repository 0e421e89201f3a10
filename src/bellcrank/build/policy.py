"""Policy: whether a request is valid, and the form of its code, decided in one place before anything is traced.

    mechanism, request --choose--> Strategy --graphs.choose_graph--> Graph

Straight-line code, written out body by body, is the fastest for few bodies. In large mechanisms it takes minutes to
compile, and identical bodies share their code in rolled loops (docs/size.md). Every function here is pure. A decision
comes with its reasons, which `bellcrank count --explain` prints; other modules receive the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bellcrank.dynamics import METHODS, Method, Quantity, applicable_methods, candidates, estimate, method, quantity
from bellcrank.dynamics.method_table import methods_solving
from bellcrank.dynamics.quantities import QUANTITIES, REFERENCES, Request, check_moving_body
from bellcrank.errors import InputError, brief, unknown
from bellcrank.model import Mechanism
from bellcrank.parameters import has_free

if TYPE_CHECKING:
    from bellcrank.model import Tree

# -- thresholds: the unit, the reason, and where the value was measured, if there is a record

# Operations above which bodies share their code. Straight-line code of this size takes a second to compile, and runs no
# faster, because it exceeds the instruction cache. Measured on chains of 1 to 100,000 bodies (docs/size.md).
MAX_STRAIGHT_OPERATIONS = 25_000
# Numbers that straight-line code may read and write: each costs many operations to compile. No record.
MAX_STRAIGHT_NUMBERS = 1_000
# Numbers that one body returns at most: its pose. It gives an upper bound without a search for link classes.
MAX_BODY_NUMBERS = 16
# Bodies per link class, on average, from which shared code is much shorter. No record.
MIN_BODIES_PER_CLASS = 4
# Ratio of straight-line code to its limits from which code is rolled even if most bodies differ. No record.
FAR_TOO_LONG_RATIO = 10.0
# Operations above which a matrix is computed column by column. The limit is higher than that of other quantities,
# because straight-line code uses the zeros of a matrix and runs faster. No record.
MAX_MATRIX_OPERATIONS = 250_000
# Estimated operations of a mechanism with loops above which the passes over its tree are rolled. The limit is higher
# than that of a tree: straight-line code omits the bodies that a loop equation does not move, and simplifies the rest.
# From 33,000 to 106,000 operations (tied_tree:31 to 95, track:60) it is 1.4 to 8 times as fast as rolled passes, and
# compiled in the same second (docs/size.md).
MAX_LOOP_OPERATIONS = 100_000
# Ratio of the work of these rolled passes to straight-line code up to which they pay. No record.
MAX_WORK_RATIO = 3.0
# Bodies from which forces on frames use passes over all bodies instead of the path of each frame to the ground. Cables
# on 100 and 300 bodies were measured (docs/size.md).
MIN_PASS_BODIES = 64
# Identical force elements from which their law is a loop; fewer are written out. No record.
MIN_KIND_ELEMENTS = 4
# Wrenches on one body that a rolled pass receives one by one; more are added up first, so that a body with many
# elements does not become a class with long code. No record.
MAX_BODY_WRENCHES = 8

# -- forms of code

STRAIGHT, ROLLED = "straight-line code", "rolled loops"
SEGMENTS = "rolled segments"  # divide and conquer along a branch, for several cores
TREE_TERMS = "rolled tree terms"  # straight-line loop equations that call rolled passes; with wrenches, written out
COLUMNS = "columns"  # a batch of directions through a rolled recursion


@dataclass(frozen=True)
class Plan:
    """Form of the code by one method, with the reasons.

    form: STRAIGHT, ROLLED, SEGMENTS, TREE_TERMS or COLUMNS. work: the estimated operations of straight-line code, or 0
    where no estimate exists.
    """

    method: Method
    form: str
    reasons: tuple[str, ...]
    work: float


@dataclass(frozen=True)
class Strategy:
    """Methods and forms of code for a request.

    plans: one for each suitable method; the cost model of the target chooses among several. wide: divide and conquer
    for several cores, which comes first where the cores share its work. dropped: methods that could answer too, but
    without rolled loops.
    """

    tree: Tree  # the part of the mechanism that the request depends on
    request: Request
    plans: tuple[Plan, ...]
    wide: Plan | None = None
    dropped: tuple[Plan, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether the work is so little by any method that no forecast is needed."""
        return not self.tree.loops and all(0.0 < p.work <= MAX_STRAIGHT_OPERATIONS for p in self.plans)

    @property
    def is_rolled(self) -> bool:
        """Whether every method uses rolled loops."""
        return all(p.form == ROLLED for p in self.plans)


class _Reasons(list[str]):
    """Texts of the comparisons made so far."""

    def exceeds(self, what: str, value: float, limit: float) -> bool:
        """Return whether `value` is above `limit`, and note it."""
        self.append(f"{_number(value)} {what} {'>' if value > limit else '<='} {_number(limit)}")
        return value > limit

    def reaches(self, what: str, value: float, limit: float) -> bool:
        """Return whether `value` is at least `limit`, and note it."""
        self.append(f"{_number(value)} {what} {'>=' if value >= limit else '<'} {_number(limit)}")
        return value >= limit

    def because(self, condition: bool, text: str) -> bool:
        """Return the condition, and note the text where it holds."""
        if condition:
            self.append(text)
        return condition


def _number(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 or x == round(x) else f"{x:.3g}"


# -- validity of a request


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
    if not methods_solving(q.through or q.name):
        raise InputError(f'no method computes {q.name}. bellcrank.register("method", ...) adds one that does.')
    if not applicable_methods(q.name, mechanism.tree):
        if not mechanism.loops and all(candidate.topology == "loops" for candidate in methods_solving(q.name)):
            raise InputError(f'{q.name} needs loops, but mechanism "{mechanism.name}" has none.')
        ways = "; ".join(f"{candidate.name} covers {candidate.topology}" for candidate in methods_solving(q.name))
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


def checked_joint_names(name: str, actuated: Any) -> tuple[str, ...]:
    """Return `actuated` as a tuple of joint names; raise an InputError if it is not a collection of names.

    `name` is the quantity, for the message.
    """
    is_collection = isinstance(actuated, tuple | list | set | frozenset | dict)
    if not is_collection or not all(isinstance(joint, str) for joint in actuated):
        raise InputError(f'{name}: actuated is {brief(actuated)}; expected a list of joints, as in actuated=["crank"].')
    return tuple(actuated)


# -- choice of methods and forms


def choose(mechanism: Mechanism, request: Request, cores: bool = False) -> Strategy:
    """Return the strategy for a request.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    cores
        Whether several cores share the work on each state.
    """
    name, tree = request.quantity, mechanism.tree
    able = _able_methods(mechanism, request)
    plans = [plan(mechanism, request, by) for by in able]
    if tree.has_mimics and METHODS["crba"] in able:  # rolled aba also supports mimic joints
        plans.insert(0, plan(mechanism, request, METHODS["aba"]))
        plans = plans if plans[0].form == ROLLED else plans[1:]
    preferred = [p for p in plans if p.form == ROLLED]
    if name == "forward_dynamics":
        preferred = preferred or [p for p in plans if p.form == TREE_TERMS]
    wide = None
    if cores and request.method == "auto" and METHODS["dca"].applies(tree, name):
        dca = plan(mechanism, request, METHODS["dca"])
        wide = dca if dca.form == SEGMENTS else None
    dropped = tuple(p for p in plans if preferred and p not in preferred)
    return Strategy(relevant_tree(mechanism, request), request, tuple(preferred or plans), wide, dropped)


def _able_methods(mechanism: Mechanism, request: Request) -> list[Method]:
    """Return the requested method, or for "auto" those that are cheap, and accurate where sizes of bodies differ."""
    name, tree = request.quantity, mechanism.tree
    if request.method != "auto":
        return [method(request.method, name, tree)]
    able = candidates(name, tree)
    if name != "forward_dynamics" or len(able) <= 1 or tree.has_massive_bodies:
        return able
    from bellcrank.build.rounding_doubts import accurate_methods

    return accurate_methods(mechanism, able)


def plan(mechanism: Mechanism, request: Request, by: Method) -> Plan:
    """Return the form of the code of a request.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options.
    by
        The method.
    """
    reasons = _Reasons()
    work = estimate(by.name, request.quantity, relevant_tree(mechanism, request))
    form = STRAIGHT
    if _is_rolled(mechanism, request, by, reasons):
        form = ROLLED
    elif by.name == "dca" and _has_segments(mechanism, request, reasons):
        form = SEGMENTS
    elif mechanism.loops and by.name == "aba" and _has_tree_terms(mechanism, reasons):
        form = TREE_TERMS
    return Plan(by, form, tuple(reasons), work)


def relevant_tree(mechanism: Mechanism, request: Request) -> Tree:
    """Return the part of the tree of `mechanism` that the `request` depends on."""
    if not request.frame:
        return mechanism.tree
    from bellcrank.build.recursion_layout import path_tree

    return path_tree(mechanism.tree, request.frame)


def _is_rolled(mechanism: Mechanism, request: Request, by: Method, reasons: _Reasons) -> bool:
    """Return whether identical bodies share the code of a quantity.

    Small mechanisms are recognised without an import of the modules for large ones.
    """
    name, tree = request.quantity, mechanism.tree
    work, most = estimate(by.name, name, tree), _most_numbers(name, tree)
    if work <= MAX_STRAIGHT_OPERATIONS and most <= MAX_STRAIGHT_NUMBERS:
        reasons.exceeds("operations", work, MAX_STRAIGHT_OPERATIONS)
        reasons.exceeds("numbers at most", most, MAX_STRAIGHT_NUMBERS)
        return False
    if reasons.because(request.packed, "a packed matrix has no rolled loops"):
        return False
    from bellcrank.build.rolled_recursion import count_numbers, is_rollable

    if reasons.because(not is_rollable(tree, by.name, name), f"{name} by {by.name} has no rolled loops here"):
        return False
    tree = relevant_tree(mechanism, request)
    work, numbers = estimate(by.name, name, tree), count_numbers(tree, by.name, name, request.frame)
    reasons.exceeds("operations", work, MAX_STRAIGHT_OPERATIONS)
    reasons.exceeds("numbers", numbers, MAX_STRAIGHT_NUMBERS)
    return _pays(tree, max(work / MAX_STRAIGHT_OPERATIONS, numbers / MAX_STRAIGHT_NUMBERS), reasons)


def _most_numbers(name: str, tree: Tree) -> int:
    """Return an upper bound of the numbers that a quantity reads and writes."""
    return (len(QUANTITIES[name].inputs) + MAX_BODY_NUMBERS) * max(tree.nv, len(tree.links))


def _pays(tree: Tree, size: float, reasons: _Reasons) -> bool:
    """Return whether rolling pays for straight-line code of `size` times the limit."""
    if size <= 1.0:
        return False
    is_far_too_long = size > FAR_TOO_LONG_RATIO and reasons.exceeds("times the limit", size, FAR_TOO_LONG_RATIO)
    return (is_far_too_long or _has_large_classes(tree, reasons)) and _has_shipped_joints(tree, reasons)


def _has_large_classes(tree: Tree, reasons: _Reasons) -> bool:
    from bellcrank.build.rolled_recursion import count_classes

    return reasons.reaches("bodies per link class", len(tree.links) / count_classes(tree), MIN_BODIES_PER_CLASS)


def _has_shipped_joints(tree: Tree, reasons: _Reasons) -> bool:
    from bellcrank.build.rolled_recursion import has_shipped_joints

    return not reasons.because(not has_shipped_joints(tree), "a joint type of your own may branch")


def _has_segments(mechanism: Mechanism, request: Request, reasons: _Reasons) -> bool:
    """Return whether divide and conquer uses rolled segments: aba must be rolled too, along a branch to divide."""
    if request.quantity != "forward_dynamics" or request.wrenches or mechanism.parameters or mechanism.springs:
        return False
    reasons.clear()
    if not _is_rolled(mechanism, request, METHODS["aba"], reasons):
        return False
    from bellcrank.build.segmented_recursion import has_long_branch

    return not reasons.because(not has_long_branch(mechanism.tree), "no branch repeats its link classes")


def _has_tree_terms(mechanism: Mechanism, reasons: _Reasons) -> bool:
    """Return whether the equations of loops call rolled passes over the tree."""
    tree = mechanism.tree
    special = bool(tree.coupled or tree.springs or tree.flexible or mechanism.parameters)
    if reasons.because(special, "couplings, springs and free parameters need straight-line loop equations"):
        return False
    if not _has_shipped_joints(tree, reasons):
        return False
    from bellcrank.build.rolled_tree_terms import moved_fractions
    from bellcrank.dynamics.loops import analysis

    rank, share = analysis(mechanism).rank, moved_fractions(tree)
    work = estimate("aba", "forward_dynamics", tree)
    straight, rolled = work * (1.0 + sum(share[k] for k in rank.loop)), work * (1 + len(rank.rows))
    reasons.clear()
    return (
        reasons.exceeds("operations with loop equations", straight, MAX_LOOP_OPERATIONS)
        and not reasons.exceeds("rolled operations for each written one", rolled / straight, MAX_WORK_RATIO)
        and _has_large_classes(tree, reasons)
    )


def passes(tree: Tree) -> tuple[bool, tuple[str, ...]]:
    """Return whether forces on frames or bodies use rolled passes over all bodies of `tree`, and the reasons."""
    reasons = _Reasons()
    is_rolled = (
        reasons.reaches("bodies", len(tree.links), MIN_PASS_BODIES)
        and not reasons.because(tree.coupled or has_free(tree.ground.moves), "couplings or a free ground")
        and _has_shipped_joints(tree, reasons)
        and _has_large_classes(tree, reasons)
    )
    return is_rolled, tuple(reasons)


def columns(mechanism: Mechanism, q: Quantity) -> Plan | None:
    """Return the plan to compute `q`, as a function of a `mechanism`, column by column, or None.

    The columns are derivatives of a quantity with a rolled recursion, or products that are defined body by body.
    Derivatives need nq equal to nv (no quaternions). A matrix must be too large to write out.
    """
    tree, base = mechanism.tree, q.differentiates or q.name
    if mechanism.loops or all(estimate(m.name, base, tree) <= MAX_STRAIGHT_OPERATIONS for m in candidates(base, tree)):
        return None
    from bellcrank.build.columnwise_jacobians import DERIVATIVE_MATRICES, PRODUCT_METHODS

    reasons = _Reasons()
    work = min((estimate(m.name, q.name, tree) for m in candidates(q.name, tree)), default=0.0)
    if q.name in PRODUCT_METHODS and reasons.exceeds("operations of the matrix", work, MAX_MATRIX_OPERATIONS):
        by = METHODS[PRODUCT_METHODS[q.name]]
        from bellcrank.build.rolled_recursion import is_rollable

        pays = is_rollable(tree, by.name, "product") and _pays(tree, work / MAX_MATRIX_OPERATIONS, reasons)
        return Plan(by, COLUMNS, tuple(reasons), work) if pays else None
    is_large = q.name in DERIVATIVE_MATRICES and reasons.exceeds("operations", work, MAX_MATRIX_OPERATIONS)
    if not is_large and not (q.result and q.differentiates and mechanism.nq == mechanism.nv):
        return None
    strategy = choose(mechanism, Request(DERIVATIVE_MATRICES[q.name][0] if is_large else q.differentiates))
    first = strategy.plans[0]
    return Plan(first.method, COLUMNS, (*reasons, *first.reasons), work) if strategy.is_rolled else None
