"""Frames of a large mechanism in rolled passes: an outward pass for poses and velocities, an inward pass for forces.

The inward pass maps wrenches on frames to generalised forces. Without these passes, the code of each frame contains the
path of bodies down to the ground.
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

MANY, ALIKE = 64, 4  # bodies, and mean size of a link class, from which on the passes are rolled
Shapes = dict[str, tuple[int, ...]]


def large(mechanism: Mechanism, q: Sequence[Scalar]) -> bool:
    """Return True if the passes of `mechanism` are called recursions: `q` is symbolic and link classes are large."""
    tree = mechanism.tree
    if len(tree.links) < MANY or not any(isinstance(x, Node) for x in q):
        return False
    plain = not (tree.coupled or depends(tree.ground.moves)) and as_shipped(tree)
    return plain and ALIKE * len(classes(tree)) <= len(tree.links)


def seeing(mechanism: Mechanism, frames: Sequence[str]) -> Graph:
    """Return the graph (q, v, p) -> position, velocity, angular velocity and axes of the `frames` of `mechanism`.

    The numbers of frames on the ground are meaningless.
    """
    tree = mechanism.tree
    shapes: Shapes = {"q": (tree.nq,), "v": (tree.nv,)}
    name = f"{mechanism.name}.frames"
    return rolled_by(name, tree, bodies.frames_seen, "frames", shapes, list(frames), mechanism.parameters, TURNED)


def called(mechanism: Mechanism, graph: Graph, **given: Any) -> list[Scalar]:
    """Return the result of a graph of the mechanism, with its free parameters added if it needs them.

    Parameters
    ----------
    mechanism
        The mechanism.
    graph
        The graph.
    **given
        Other inputs of the graph, by name.
    """
    free = mechanism.parameters
    (found,) = graph.call(**given, **({"p": free.leaves} if free else {})).values()
    return list(found)


def seen(mechanism: Mechanism, frames: Sequence[str], q: Sequence[Scalar], v: Sequence[Scalar]) -> dict[str, End]:
    """Return pose and velocity of frames in the world, by name.

    Parameters
    ----------
    mechanism
        The mechanism.
    frames
        Names of the frames.
    q, v
        Positions and velocities.
    """
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
    """Return the frame of which a pass gives the `numbers`."""
    place, u, w, *rows = (Vec(*numbers[i : i + 3]) for i in range(0, TURNED, 3))
    return End(Mat(*rows), place, [], w, u, ZERO, ZERO)


def felt(mechanism: Mechanism, acts: Sequence[tuple[str, Sequence[Scalar]]], q: Sequence[Scalar]) -> list[Scalar]:
    """Return the generalised forces, (nv,), of wrenches on frames.

    Parameters
    ----------
    mechanism
        The mechanism.
    acts
        Pairs of a frame and a wrench in world axes; a frame may have several.
    q
        Positions.
    """
    tree, frames = mechanism.tree, [frame for frame, _ in acts]
    shapes: Shapes = {"q": (tree.nq,), "wrench": (len(acts), 6)}
    graph = rolled_by(f"{mechanism.name}.felt", tree, bodies.felt, "felt", shapes, frames, mechanism.parameters)
    return called(mechanism, graph, q=list(q), wrench=[list(w) for _, w in acts])
