"""External forces on frames, such as soil, wind or a hand, and a force law on every body, as generalised forces.

    tau = J^T [f, n]        J: frame Jacobian

A force is a function of (t, pose, velocity) that returns (force, moment), all at the frame's origin and in world axes:
pose is 4x4, velocity [linear, angular], force and moment have three components each.

Few frames and bodies are unrolled. Of a large mechanism, in which the code of each frame would contain the path of
bodies down to the ground, they are rolled passes that are called: an outward pass for poses and velocities, and an
inward pass that maps wrenches on frames to generalised forces (docs/size.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.build import policy
from bellcrank.build.recursion_layout import MOTION_AND_AXES_RESULTS, LayoutRequest
from bellcrank.build.rolled_recursion import frame_graph, recursion
from bellcrank.dynamics import force_field, kinematics
from bellcrank.dynamics.force_field import ForceLaw
from bellcrank.dynamics.frame_pairs import FrameEnd
from bellcrank.dynamics.tree_sweeps import body_generalised_forces
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node
from bellcrank.model import Mechanism
from bellcrank.parameters import has_free
from bellcrank.parameters.validation import check_numbers
from bellcrank.scalar import Scalar
from bellcrank.sim.run_arguments import call_user_function, check_known, named_scalars
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


Wrench = Callable[..., Any]
AXES = ("x", "y", "z")


def checked_forces(mechanism: Mechanism, forces: Any) -> dict[str, Wrench]:
    """Return `forces` as a dict after checking that frames of the `mechanism` and functions are given."""
    if not isinstance(forces, Mapping):
        raise InputError(f"forces is {forces!r}; expected functions of (t, pose, velocity) by the name of a frame.")
    check_known(f'forces on "{mechanism.name}"', "frame", forces, mechanism.frames)
    for frame, f in forces.items():
        if not callable(f):
            raise InputError(f'force on "{frame}" is {f!r}; expected a function of (t, pose, velocity).')
        check_numbers(f, f'force on "{frame}"')
    return dict(forces)


def frame_wrenches(
    mechanism: Mechanism, wrenches: Mapping[str, Wrench], t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]
) -> dict[str, list[Scalar]]:
    """Return [force, moment] on each frame, in world axes.

    Parameters
    ----------
    mechanism
        Mechanism.
    wrenches
        Functions by frame.
    t, q, v
        Time, positions and velocities.
    """
    tree, wrench_of = mechanism.tree, {}
    frame_states = frame_motions(mechanism, list(wrenches), q, v) if wrenches and uses_recursions(mechanism, q) else {}
    for frame, f in wrenches.items():
        what = f'force on "{frame}"'
        if s := frame_states.get(frame):
            pose, velocity = kinematics.homogeneous_matrix(s.R, s.p), [*s.u, *s.w]
        else:
            pose, velocity = kinematics.pose(tree, q, frame), kinematics.velocity(tree, q, v, frame)
        # Arrays, so that pose[2, 3] and pose[:3, 3] work as with numbers.
        arguments = np.array(pose, object), np.array(velocity, object)
        returned = call_user_function(what, f, t, *arguments, expected="(t, pose, velocity)")
        if not isinstance(returned, Sequence | np.ndarray) or len(returned) != 2:
            raise InputError(f"{what} returned {returned!r}; expected the pair (force, moment).")
        force, moment = returned
        wrench_of[frame] = named_scalars(what, force, AXES) + named_scalars(f'moment on "{frame}"', moment, AXES)
    return wrench_of


def wrench_forces(mechanism: Mechanism, acts: Mapping[str, Sequence[Scalar]], q: Sequence[Scalar]) -> list[Scalar]:
    """Return the generalised forces of wrenches on frames.

    Parameters
    ----------
    mechanism
        Mechanism.
    acts
        [force, moment] by frame, in world axes.
    q
        Positions.
    """
    if acts and uses_recursions(mechanism, q):
        return generalised_forces(mechanism, list(acts.items()), q)
    tau: list[Scalar] = [0.0] * mechanism.nv
    for frame, wrench in acts.items():
        for row, w in zip(kinematics.jacobian(mechanism.tree, q, frame), wrench, strict=True):
            tau = [x + j * w for x, j in zip(tau, row, strict=True)]
    return tau


LAW_DESCRIPTION = "the force on every body"


def checked_law(mechanism: Mechanism, law: Any) -> ForceLaw:
    """Return the force law `law` for all bodies of `mechanism`, or raise an InputError where it cannot be used."""
    if not callable(law):
        raise InputError(f"everywhere is {law!r}; expected a function of (place, velocity, mass) that gives a force.")
    if mechanism.tree.flexible:
        raise InputError(f'everywhere: "{mechanism.name}" has flexible bodies, whose mass is not at one place.')
    if has_free(law):
        raise InputError("everywhere: a law for all bodies has no free parameters; use forces= for single frames.")

    def force(place: Sequence[Scalar], velocity: Sequence[Scalar], mass: Scalar) -> Sequence[Scalar]:
        components = call_user_function(LAW_DESCRIPTION, law, place, velocity, mass, expected="(place, velocity, mass)")
        return named_scalars(LAW_DESCRIPTION, components, AXES)

    return force


def law_forces(mechanism: Mechanism, law: ForceLaw, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return the generalised forces, (nv,), of a force law on all bodies.

    Parameters
    ----------
    mechanism
        The mechanism.
    law
        The force law.
    q, v
        Positions and velocities.
    """
    tree = mechanism.tree
    if mechanism.parameters or not uses_recursions(mechanism, q):
        return force_field.field_forces(tree, law, list(q), list(v))
    shapes: dict[str, tuple[int, ...]] = {"q": (tree.nq,), "v": (tree.nv,)}
    name, body = f"{mechanism.name}.everywhere", force_field.field_recursion(law)
    graph = recursion(name, tree, body, "everywhere", shapes, LayoutRequest())
    return list(graph.call(q=list(q), v=list(v))["everywhere"])
