"""Articulated-body forward dynamics of trees with mimic joints.

The body recursions (body_recursion.py) are run link by link, without rolled loops. "auto" does not select this by
itself: crba is less work for few bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.dynamics.recursion.body_recursion import BodyRecursion, FromParent, Send, ground_of
from bellcrank.dynamics.recursion.shared_aba_rnea import shared_body_acceleration
from bellcrank.dynamics.shared_coordinates import collect_shared_coordinates, localise, modal_constants, sharing_link
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, external_forces
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
    common = collect_shared_coordinates(tree)
    assert common is not None, "a coordinate is open down to the ground, or too many are open at one body"
    external_loads, ground, bodies = external_forces(tree, q, frames, wrench), ground_of(tree), list[Any]()
    for i, link in enumerate(tree.links):
        localised = sharing_link(localise(link), common.share[i], common.bending[i], modal_constants(common.bending[i]))
        positions, rates = [q[k] for k in common.q[i]], [v[k] for k in common.v[i]]
        driven = [tau[k] for k in common.answers[i]]
        bodies.append(shared_body_acceleration(localised, ground, positions, rates, driven, external_loads[i]))
    a: list[Scalar] = [0.0] * tree.nv
    for answers, (values, _) in zip(common.answers, run_recursions(tree, bodies), strict=True):
        for k, x in zip(answers, values, strict=True):
            a[k] = x
    return a


def run_recursions(tree: Tree, bodies: Sequence[BodyRecursion]) -> list[Any]:
    """Run one body recursion for each link of the tree, and return their results.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Recursion of each link.
    """
    parents = [link.parent for link in tree.links]
    requests = [next(body) for body in bodies]
    while True:
        order = list(range(len(bodies)))
        outwards = isinstance(requests[0], FromParent)
        handed_values: dict[int, Any] = {}
        children: list[list[Any]] = [[] for _ in bodies]
        for i in order if outwards else reversed(order):
            question = requests[i]
            if isinstance(question, FromParent):
                received = handed_values[parents[i]] if parents[i] >= 0 else question.ground
            else:
                received = children[i]
            sent = bodies[i].send(received)
            assert isinstance(sent, Send)
            handed_values[i] = sent.value
            if parents[i] >= 0:
                children[parents[i]].append(sent.value)
        ends: list[Any] = []
        for i, body in enumerate(bodies):
            try:
                requests[i] = next(body)
            except StopIteration as end:
                ends.append(end.value)
        if ends:
            return ends
