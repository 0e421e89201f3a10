"""form="auto": how closed loops are kept closed where nobody says, from sizes alone.

The minimal form has as many equations as there are freedoms. Its matrix is full along every path to the ground, so that
a ring of n bodies takes n^3; multipliers take one pass through the bodies for each equation of a loop, so that they are
linear there, and quadratic in a scissor lift, where the minimal form is linear. Small mechanisms keep the minimal form:
nothing of it drifts, whatever happens.
"""

from __future__ import annotations

from bellcrank.build.beneath import moved
from bellcrank.dynamics.loops import analysis
from bellcrank.model import Loop, Mechanism, Tree

LARGE = 20_000.0  # operations of a rate in the minimal form, up to which it is always taken
# Operations, roughly, as counted in rings, scissor lifts, rows of four-bars and tied trees.
ELEMENT, PRODUCT, PASS = 16.0, 1.5, 60.0  # of a mass matrix, of its elimination, of a pass for each coordinate
MANY_PAIRS, CHEAPER = 200, 3  # elements of a mass matrix; so many cost what a coordinate of inverse dynamics does


def form_for(mechanism: Mechanism) -> str:
    """minimal, or where that is large and more work projected."""
    tree, rank = mechanism.tree, analysis(mechanism).rank
    share = moved(tree)
    passes = 1.0 + sum(share[k] for k in rank.loop)
    nearest = PASS * tree.nv * passes + len(rank.rows) ** 3 / 6
    return "projected" if minimal_work(tree, tree.nv - rank.rank) > max(LARGE, nearest) else "minimal"


def minimal_work(tree: Tree, freedoms: int) -> float:
    """Operations of a rate."""
    if few(tree, freedoms):
        return PASS * tree.nv * (1 + freedoms)
    _, pairs, triples, _ = tree.depths
    full = sum(len(_round(tree, loop)) ** 3 for loop in tree.loops)  # all in a loop that does not depend, on each other
    return ELEMENT * pairs + PRODUCT * triples + full / 2


def _round(tree: Tree, loop: Loop) -> set[int]:
    """The bodies that a loop goes through."""
    if loop.joints:
        return set()
    a, b = (set(tree.path(tree.frames[end][0])) for end in (loop.a, loop.b))
    return a ^ b


def few(tree: Tree, freedoms: int) -> bool:
    """Whether freedoms are so few that what the mass matrix does to each is less work than the matrix."""
    pairs = tree.depths[1]
    return pairs > MANY_PAIRS and CHEAPER * tree.nv * (1 + freedoms) < pairs
