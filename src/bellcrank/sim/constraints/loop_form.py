"""Choice of the form of closed loops for form="auto", from sizes alone.

The minimal form has as many equations as degrees of freedom. Its matrix is full along every path to the ground, so that
a ring of n bodies takes n^3 operations. Multipliers take one pass through the bodies for each loop equation, which is
linear in a ring, but quadratic in a scissor lift, where the minimal form is linear. Small mechanisms always use the
minimal form, because it never drifts.
"""

from __future__ import annotations

from bellcrank.build.rolled_tree_terms import moved_fractions
from bellcrank.dynamics.loops import analysis
from bellcrank.model import Loop, Mechanism, Tree

MINIMAL_FORM_OPERATIONS = 20_000.0  # operations of a rate up to which the minimal form is always used
# Approximate operation counts from rings, scissor lifts, rows of four-bars and tied trees: for an element of a mass
# matrix, for a product of its elimination, and for one coordinate of a pass.
ELEMENT_OPERATIONS, PRODUCT_OPERATIONS, PASS_OPERATIONS = 16.0, 1.5, 60.0
# Elements of a mass matrix from which inverse dynamics may be cheaper; elements that cost as much as one coordinate
# of inverse dynamics.
MIN_PAIRS, PAIRS_PER_COORDINATE = 200, 3


def form_for(mechanism: Mechanism) -> str:
    """Return "minimal" for `mechanism`, or "projected" if the minimal form is large and more work."""
    tree, rank = mechanism.tree, analysis(mechanism).rank
    share = moved_fractions(tree)
    passes = 1.0 + sum(share[k] for k in rank.loop)
    nearest = PASS_OPERATIONS * tree.nv * passes + len(rank.rows) ** 3 / 6
    return "projected" if minimal_work(tree, tree.nv - rank.rank) > max(MINIMAL_FORM_OPERATIONS, nearest) else "minimal"


def minimal_work(tree: Tree, freedoms: int) -> float:
    """Return the operations of a rate in the minimal form of `tree` with `freedoms` degrees of freedom."""
    if prefers_mass_products(tree, freedoms):
        return PASS_OPERATIONS * tree.nv * (1 + freedoms)
    _, pairs, triples, _ = tree.work_sizes
    # All independent coordinates of a loop are coupled to each other.
    full = sum(len(_loop_bodies(tree, loop)) ** 3 for loop in tree.loops)
    return ELEMENT_OPERATIONS * pairs + PRODUCT_OPERATIONS * triples + full / 2


def _loop_bodies(tree: Tree, loop: Loop) -> set[int]:
    """Return the bodies that a loop passes through."""
    if loop.joints:
        return set()
    a, b = (set(tree.path(tree.frames[end][0])) for end in (loop.a, loop.b))
    return a ^ b


def prefers_mass_products(tree: Tree, freedoms: int) -> bool:
    """Return whether `freedoms` are so few that products with the mass matrix of `tree` cost less than the matrix."""
    pairs = tree.work_sizes[1]
    return pairs > MIN_PAIRS and PAIRS_PER_COORDINATE * tree.nv * (1 + freedoms) < pairs
