"""Frames of a large mechanism, all of them at once: a pass outwards says where they are and how they move, one inwards
what forces on them do to the coordinates. Written out, each frame is a path of bodies down to the ground.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.build.places import TURNED
from bellcrank.build.rolling import as_shipped, rolled_by
from bellcrank.dynamics import bodies
from bellcrank.dynamics.alike import classes
from bellcrank.dynamics.ends import End
from bellcrank.graph import Node
from bellcrank.model import Mechanism
from bellcrank.parameters import depends
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec

MANY, ALIKE = 64, 4  # bodies from which on alike ones share their code, and how many a class has on average
Shapes = dict[str, tuple[int, ...]]


def large(mechanism: Mechanism, q: Sequence[Scalar]) -> bool:
    """Whether its passes are recursions that are called: of symbols, and of many bodies that are alike."""
    tree = mechanism.tree
    if len(tree.links) < MANY or not any(isinstance(x, Node) for x in q):
        return False
    plain = not (tree.coupled or depends(tree.ground.moves)) and as_shipped(tree)
    return plain and ALIKE * len(classes(tree)) <= len(tree.links)


def seen(mechanism: Mechanism, frames: Sequence[str], q: Sequence[Scalar], v: Sequence[Scalar]) -> dict[str, End]:
    """Frames by name, as the world sees them."""
    tree, free = mechanism.tree, mechanism.parameters
    shapes: Shapes = {"q": (tree.nq,), "v": (tree.nv,)}
    name = f"{mechanism.name}.frames"
    graph = rolled_by(name, tree, bodies.frames_seen, "frames", shapes, list(frames), free, TURNED)
    given = {"q": list(q), "v": list(v)} | ({"p": free.leaves} if free else {})
    numbers = list(graph.call(**given)["frames"])
    found = {}
    for k, frame in enumerate(frames):
        body, R, p = tree.frames[frame]
        vectors = [Vec(*numbers[i : i + 3]) for i in range(TURNED * k, TURNED * (k + 1), 3)]
        if body < 0:
            ground, origin = tree.ground.pose(IDENTITY, ZERO)
            vectors = [origin + ground @ p, ZERO, ZERO, *ground.times(R).rows]
        place, u, w, *rows = vectors
        found[frame] = End(Mat(*rows), place, [], w, u, ZERO, ZERO)
    return found


def felt(mechanism: Mechanism, acts: Mapping[str, Sequence[Scalar]], q: Sequence[Scalar]) -> list[Scalar]:
    """What wrenches on frames, in world axes, do to each element of v."""
    tree, free = mechanism.tree, mechanism.parameters
    shapes: Shapes = {"q": (tree.nq,), "wrench": (len(acts), 6)}
    graph = rolled_by(f"{mechanism.name}.felt", tree, bodies.felt, "felt", shapes, list(acts), free)
    given = {"q": list(q), "wrench": [list(w) for w in acts.values()]} | ({"p": free.leaves} if free else {})
    return list(graph.call(**given)["felt"])
