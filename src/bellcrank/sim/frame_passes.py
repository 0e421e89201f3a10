"""Frames of a large mechanism, all of them at once: a pass outwards says where they are and how they move, one inwards
what forces on them do to the coordinates. Written out, each frame is a path of bodies down to the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.build.places import TURNED
from bellcrank.build.rolling import as_shipped, rolled_by
from bellcrank.dynamics import bodies
from bellcrank.dynamics.alike import classes
from bellcrank.dynamics.ends import End
from bellcrank.graph import Graph, Node
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


def seeing(mechanism: Mechanism, frames: Sequence[str]) -> Graph:
    """(q, v, p) -> place, velocity, angular velocity and axes of each frame that is not on the ground."""
    tree = mechanism.tree
    shapes: Shapes = {"q": (tree.nq,), "v": (tree.nv,)}
    name = f"{mechanism.name}.frames"
    return rolled_by(name, tree, bodies.frames_seen, "frames", shapes, list(frames), mechanism.parameters, TURNED)


def called(mechanism: Mechanism, graph: Graph, **given: Any) -> list[Scalar]:
    """What a graph of the mechanism gives, which may want its free numbers."""
    free = mechanism.parameters
    (found,) = graph.call(**given, **({"p": free.leaves} if free else {})).values()
    return list(found)


def seen(mechanism: Mechanism, frames: Sequence[str], q: Sequence[Scalar], v: Sequence[Scalar]) -> dict[str, End]:
    """Frames by name, as the world sees them."""
    tree = mechanism.tree
    numbers = called(mechanism, seeing(mechanism, frames), q=list(q), v=list(v))
    found = {}
    for k, frame in enumerate(frames):
        body, R, p = tree.frames[frame]
        found[frame] = end(numbers[TURNED * k : TURNED * (k + 1)])
        if body < 0:
            ground, origin = tree.ground.pose(IDENTITY, ZERO)
            found[frame] = End(ground.times(R), origin + ground @ p, [], ZERO, ZERO, ZERO, ZERO)
    return found


def end(numbers: Sequence[Scalar]) -> End:
    """A frame as a pass gives it."""
    place, u, w, *rows = (Vec(*numbers[i : i + 3]) for i in range(0, TURNED, 3))
    return End(Mat(*rows), place, [], w, u, ZERO, ZERO)


def felt(mechanism: Mechanism, acts: Sequence[tuple[str, Sequence[Scalar]]], q: Sequence[Scalar]) -> list[Scalar]:
    """What wrenches on frames, in world axes, do to each element of v. A frame may have several."""
    tree, frames = mechanism.tree, [frame for frame, _ in acts]
    shapes: Shapes = {"q": (tree.nq,), "wrench": (len(acts), 6)}
    graph = rolled_by(f"{mechanism.name}.felt", tree, bodies.felt, "felt", shapes, frames, mechanism.parameters)
    return called(mechanism, graph, q=list(q), wrench=[list(w) for _, w in acts])
