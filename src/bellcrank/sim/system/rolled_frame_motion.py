"""Frames of a large mechanism in rolled passes: an outward pass for poses and velocities, an inward pass for forces.

The inward pass maps wrenches on frames to generalised forces. Without these passes, the code of each frame contains the
path of bodies down to the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.build import policy
from bellcrank.build.recursion_layout import MOTION_AND_AXES_RESULTS, LayoutRequest
from bellcrank.build.rolled_recursion import frame_graph, recursion
from bellcrank.dynamics.frame_pairs import FrameEnd
from bellcrank.dynamics.tree_sweeps import body_generalised_forces
from bellcrank.graph import Graph, Node
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec


def uses_recursions(mechanism: Mechanism, q: Sequence[Scalar]) -> bool:
    """Return True if `q` is symbolic and the passes of `mechanism` are called recursions."""
    return any(isinstance(x, Node) for x in q) and policy.passes(mechanism.tree)[0]


def outward_graph(mechanism: Mechanism, frames: Sequence[str]) -> Graph:
    """Return the graph (q, v, p) -> position, velocity, angular velocity and axes of the `frames` of `mechanism`.

    The numbers of frames on the ground are meaningless.
    """
    name, free = f"{mechanism.name}.frames", mechanism.parameters
    return frame_graph(name, mechanism.tree, list(frames), free, MOTION_AND_AXES_RESULTS)


def call_graph(mechanism: Mechanism, graph: Graph, **given: Any) -> list[Scalar]:
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
    (result,) = graph.call(**given, **({"p": free.leaves} if free else {})).values()
    return list(result)


def frame_motions(
    mechanism: Mechanism, frames: Sequence[str], q: Sequence[Scalar], v: Sequence[Scalar]
) -> dict[str, FrameEnd]:
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
    numbers = call_graph(mechanism, outward_graph(mechanism, frames), q=list(q), v=list(v))
    ends = {}
    for k, frame in enumerate(frames):
        body, R, p = tree.frames[frame]
        ends[frame] = frame_end(numbers[MOTION_AND_AXES_RESULTS * k : MOTION_AND_AXES_RESULTS * (k + 1)])
        if body < 0:
            ground, origin = tree.ground.pose(IDENTITY, ZERO)
            ends[frame] = FrameEnd(ground.times(R), origin + ground @ p, [], ZERO, ZERO, ZERO, ZERO)
    return ends


def frame_end(numbers: Sequence[Scalar]) -> FrameEnd:
    """Return the frame of which a pass gives the `numbers`."""
    place, u, w, *rows = (Vec(*numbers[i : i + 3]) for i in range(0, MOTION_AND_AXES_RESULTS, 3))
    return FrameEnd(Mat(*rows), place, [], w, u, ZERO, ZERO)


def generalised_forces(
    mechanism: Mechanism, acts: Sequence[tuple[str, Sequence[Scalar]]], q: Sequence[Scalar]
) -> list[Scalar]:
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
    shapes: dict[str, tuple[int, ...]] = {"q": (tree.nq,), "wrench": (len(acts), 6)}
    request = LayoutRequest(frames)
    name = f"{mechanism.name}.felt"
    graph = recursion(name, tree, body_generalised_forces, "felt", shapes, request, mechanism.parameters)
    return call_graph(mechanism, graph, q=list(q), wrench=[list(w) for _, w in acts])
