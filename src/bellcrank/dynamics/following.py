"""Articulated-body forward dynamics of trees with mimic joints.

The body recursions (neighbours.py) are run link by link, without rolled loops. "auto" does not select this by itself:
crba is less work for few bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.dynamics.body_shares import freely
from bellcrank.dynamics.neighbours import Body, FromParent, Hands, ground_of
from bellcrank.dynamics.shares import constants, localised, shared, sharing
from bellcrank.dynamics.sweep import Vector, Wrenches, external
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the accelerations.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    common = shared(tree)
    assert common is not None, "a coordinate is open down to the ground, or too many are open at one body"
    outer, ground, bodies = external(tree, q, frames, wrench), ground_of(tree), list[Any]()
    for i, link in enumerate(tree.links):
        own = sharing(localised(link), common.share[i], common.bending[i], constants(common.bending[i]))
        mine, rates = [q[k] for k in common.q[i]], [v[k] for k in common.v[i]]
        driven = [tau[k] for k in common.answers[i]]
        bodies.append(freely(own, ground, mine, rates, driven, outer[i]))
    a: list[Scalar] = [0.0] * tree.nv
    for answers, (found, _) in zip(common.answers, gone_through(tree, bodies), strict=True):
        for k, x in zip(answers, found, strict=True):
            a[k] = x
    return a


def gone_through(tree: Tree, bodies: Sequence[Body]) -> list[Any]:
    """Run one body recursion for each link of the tree, and return their results.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Recursion of each link.
    """
    parents = [link.parent for link in tree.links]
    asked = [next(body) for body in bodies]
    while True:
        order = list(range(len(bodies)))
        outwards = isinstance(asked[0], FromParent)
        handed: dict[int, Any] = {}
        children: list[list[Any]] = [[] for _ in bodies]
        for i in order if outwards else reversed(order):
            question = asked[i]
            if isinstance(question, FromParent):
                got = handed[parents[i]] if parents[i] >= 0 else question.ground
            else:
                got = children[i]
            said = bodies[i].send(got)
            assert isinstance(said, Hands)
            handed[i] = said.value
            if parents[i] >= 0:
                children[parents[i]].append(said.value)
        ends: list[Any] = []
        for i, body in enumerate(bodies):
            try:
                asked[i] = next(body)
            except StopIteration as end:
                ends.append(end.value)
        if ends:
            return ends
