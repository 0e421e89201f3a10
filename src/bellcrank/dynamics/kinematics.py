"""Kinematics: poses, velocities, Jacobians, centre of mass, energies, momentum.

Solves: pose, velocity, jacobian, com, kinetic_energy, potential_energy, momentum, rate, integrate, difference;
passive_torque and rate are in tree_sweeps.py.
Any tree. Work O(n), span O(depth). Output conventions: world axes; six-vectors are [linear, angular] at the frame's
origin.

    R_WF, p_WF   pose of body i's internal frame       z_i        column of its joint's motion subspace
    V_i          velocity of F, in F                    h_W        first moment of the whole mechanism
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bellcrank.dynamics.frame_pairs import spring_energy
from bellcrank.dynamics.rnea import child_acceleration
from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    Exchange,
    FromChildren,
    FromParent,
    Send,
    SendInwards,
    Vector,
    accumulate_subtree,
    apply_joint_function,
    body_generalised_forces,
    ground_of,
    joint_elements,
    poses,
    sweep,
    sweep_path,
)
from bellcrank.dynamics.tree_sweeps import passive_torque as passive_torque  # re-exported as quantities of this method
from bellcrank.dynamics.tree_sweeps import rate as rate
from bellcrank.errors import ModelError
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, ordered_sum, step
from bellcrank.spatial.moves import Rotation, Shift
from bellcrank.spatial.vector import AT_REST, IDENTITY, NO_MOTION, ZERO, Force, Mat, Motion, Vec, vec

Pose = tuple[Mat, Vec]
NO_MASS_MESSAGE = "the moving bodies have no mass, so there is no centre of mass. Give one of them a mass."


def velocities(tree: Tree, q: Vector, v: Vector) -> list[Motion]:
    """Return V_i = X_i V_parent + S_i v_i of every body, in its own frame.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    swept = sweep(tree, partial(propagate_motion, wanted="V"), {"q": q, "v": v})
    return [V for (V,) in swept.by_link]


def pose(tree: Tree, q: Vector, frame: str) -> list[list[Scalar]]:
    """Return X_WB as a 4x4 matrix.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    frame
        Name of the frame.
    """
    body, R, p = tree.frames[frame]
    R_WF, p_WF = poses(tree, q)[body] if body >= 0 else tree.ground.pose(IDENTITY, ZERO)
    step("pose", frame)
    return homogeneous_matrix(R_WF.times(R), p_WF + R_WF @ p)


def homogeneous_matrix(R: Mat, p: Vec) -> list[list[Scalar]]:
    """Return the homogeneous matrix of rotation `R` and translation `p`."""
    return [*([*row, t] for row, t in zip(R.rows, p, strict=True)), [0.0, 0.0, 0.0, 1.0]]


def velocity(tree: Tree, q: Vector, v: Vector, frame: str, reference: str = "aligned") -> list[Scalar]:
    """Return the [linear, angular] velocity of a frame.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    frame
        Name of the frame.
    reference
        "aligned", "local" or "world".
    """
    swept = sweep_path(tree, body_velocity, {"q": q, "v": v}, frame, reference)
    return swept[-1][1] if swept else [0.0] * 6


def motion_at_reference(V: Motion, body: Pose, frame: Pose, reference: str) -> Motion:
    """Express the velocity of a body at the point and in the axes that the reference selects.

    Parameters
    ----------
    V
        Velocity of the body, in its frame.
    body
        Pose of the body in the world.
    frame
        Pose of the frame in the body.
    reference
        "aligned", "local" or "world".
    """
    (R_WF, p_WF), (R, p) = body, frame
    seen: dict[str, Callable[[], Motion]] = {
        "aligned": lambda: Shift(p).motion(V).rotated(R_WF),
        "local": lambda: Shift(p).motion(V).rotated(R.T),
        "world": lambda: Shift(-p_WF).motion(V.rotated(R_WF)),
    }
    return seen[reference]()


def jacobian(tree: Tree, q: Vector, frame: str, reference: str = "aligned") -> list[list[Scalar]]:
    """Return the 6 x nv Jacobian d(velocity)/dv of a frame.

    Each column is one joint axis, expressed with respect to the reference.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    frame
        Name of the frame.
    reference
        "aligned", "local" or "world".
    """
    return matrix_from_columns(tree, sweep_path(tree, body_jacobian, {"q": q}, frame, reference))


def matrix_from_columns(tree: Tree, swept: Sequence[tuple[Link, Sequence[Scalar]]]) -> list[list[Scalar]]:
    """Return the matrix with six rows whose columns are added up from those of each body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    swept
        Bodies, and six numbers for each coordinate of their joints.
    """
    J: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(6)]
    for link, columns in swept:
        for i, k in enumerate(link.v_index):
            for row, x in zip(J, columns[6 * i : 6 * i + 6], strict=True):
                row[k] = row[k] + x
    return J


def _total(tree: Tree, terms: Callable[[Body], BodyRecursion], width: int, **inputs: Vector) -> list[Scalar]:
    """Return the sums of the `terms` of all bodies, `width` numbers."""
    rows = [[0.0] * width, *sweep(tree, terms, inputs).of_body]
    return [ordered_sum(column) for column in zip(*rows, strict=True)]


def _moving(tree: Tree) -> Tree:
    """Return the tree without flexible bodies that are fixed to the ground, which takes their forces."""
    return replace(tree, flexible=tuple(body for body in tree.flexible if body.link >= 0))


def com(tree: Tree, q: Vector) -> list[Scalar]:
    """Return the centre of mass of the moving bodies of `tree` at positions `q`, in the world."""
    return divide_by_mass(tree, _total(_moving(tree), body_com, 3, q=q))


def potential_energy(tree: Tree, q: Vector) -> Scalar:
    """Return the potential energy of `tree` at positions `q`: -g.h_W and springs.

    It is zero at the world's origin; springs in joints and between points are included.
    """
    energy = gravity_energy(tree, _total(tree, body_potential_energy, 4, q=q))
    return energy + spring_energy(tree, q) if tree.springs else energy


def joint_spring_energy(link: Link, q: Vector, energy: Scalar = 0.0) -> Scalar:
    """Return `energy` plus the energy of the spring in one joint.

    Parameters
    ----------
    link
        Joint and its body.
    q
        Positions, nq elements.
    energy
        Energy to which the spring's is added.
    """
    j = link.joint
    if j.stiffness and link.kind.nq == link.kind.nv:
        step("spring", link.name)
        for x in link.coordinates(q):
            energy = energy + (x - j.rest) * (x - j.rest) * (0.5 * j.stiffness)
    return energy


def kinetic_energy(tree: Tree, q: Vector, v: Vector) -> Scalar:
    """Return the kinetic energy of all bodies and rotors.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    (energy,) = _total(tree, body_kinetic_energy, 1, q=q, v=v)
    return energy


def momentum(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the momentum [linear, angular about the centre of mass], in world axes.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return momentum_about_centre(tree, _total(_moving(tree), body_momentum, 9, q=q, v=v))


def integrate(tree: Tree, q: Vector, dv: Vector) -> list[Scalar]:
    """Return the positions moved by a displacement on their manifold; quaternions stay unit.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    dv
        Displacement along the velocities, nv elements.
    """
    return apply_joint_function(tree, "integrate", q, dv)


def difference(tree: Tree, q0: Vector, q1: Vector) -> list[Scalar]:
    """Return the displacement from q0 to q1, the inverse of `integrate`; quaternions take the shorter way.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q0
        Initial positions.
    q1
        Final positions.
    """
    return apply_joint_function(tree, "difference", q0, q1, "q_index")


# -- the work of one body


def propagate_motion(body: Body, wanted: str) -> Generator[Exchange, Any, list[Any]]:
    """Compute some of X (R and p of the body in the world), V (its velocity) and A (its acceleration without gravity).

    Parameters
    ----------
    body
        The body.
    wanted
        Letters among "XVA".
    """
    start: dict[str, Any] = {"X": (body.ground.R, body.ground.p), "V": NO_MOTION, "A": AT_REST}
    up = yield FromParent([start[x] for x in wanted])
    labels = ["pose" if x == "X" else x for x in wanted]
    step(labels[0], body.link.name)
    X, motion = body.X, list[Any]()
    for x, label, above in zip(wanted, labels, up, strict=True):
        step(label, body.link.name)
        if x == "X":
            motion.append(X.pose(*above))
        elif x == "V":
            motion.append(X.motion(above) + body.joint_velocity)
        else:
            motion.append(child_acceleration(body.link, body.q, body.v, body.a, above))
    yield Send(motion)
    return motion


def body_passive_torque(body: Body) -> BodyRecursion:
    """Return the passive forces of the joint of the `body`, including springs between bodies if there are any."""
    pulled: Sequence[Scalar] = [0.0] * len(body.v)
    if body.pushed is None:
        yield FromParent(())
        yield Send(())
    else:
        pulled = yield from body_generalised_forces(body)
    step("passive", body.link.name)
    return [f + x for f, x in zip(body.link.passive(body.q, body.v), pulled, strict=True)]


def joint_function(function: str, first: str, second: str) -> Callable[[Body], BodyRecursion]:
    """Return the work of one body that applies a function of the joint type to the joint's own coordinates.

    Parameters
    ----------
    function
        Name of a method of the joint types.
    first
        Name of its first input.
    second
        Name of its second input.
    """

    def work(body: Body) -> BodyRecursion:
        yield FromParent(())
        yield Send(())
        step(function, body.link.name)
        values: list[Scalar] = getattr(body.link.kind, function)(getattr(body, first), getattr(body, second))
        return values

    return work


def body_poses(body: Body) -> BodyRecursion:
    """Return the pose matrices of some frames of the `body`."""
    ((R, p),) = yield from propagate_motion(body, "X")
    matrices = [homogeneous_matrix(R.times(axes), p + R @ r) for axes, r in body.seen_poses]
    return [x for matrix in matrices for row in matrix for x in row]


def body_velocity(body: Body) -> BodyRecursion:
    """Return the velocities of some frames of the `body`."""
    X, V = yield from propagate_motion(body, "XV")
    step("velocity", body.link.name)
    motions = [motion_at_reference(V, X, frame, body.reference) for frame in body.seen_poses]
    return [x for m in motions for x in (*m.lin, *m.ang)]


def body_frame_motions(body: Body) -> BodyRecursion:
    """Return position and velocity of some frames of the `body`, in world axes.

    Frames with axes also get their angular velocity and orientation.
    """
    (R, p), V = yield from propagate_motion(body, "XV")
    out: list[Scalar] = []
    for i, r in enumerate(body.seen.points):
        out += [*(p + R @ r), *(R @ (V.lin + V.ang.cross(r)))]
        if body.seen.axes:
            out += [*(R @ V.ang), *(x for row in R.times(body.seen.axes[i]).rows for x in row)]
    return out


def body_jacobian(body: Body) -> BodyRecursion:
    """Return the columns of a frame's Jacobian for a `body` on its path."""
    _, view, _ = yield from view_from_frame(body, moving=False)
    step("J", body.link.name)
    motions = [view(Z) for Z in body.S]
    return [x for m in motions for x in (*m.lin, *m.ang)]


def view_from_frame(
    body: Body, moving: bool
) -> Generator[Exchange, Any, tuple[Motion, Callable[[Motion], Motion], Motion]]:
    """Return the velocity of a body, how its motions are seen from the reference, and the reference's velocity.

    The body that has the frame hands its place to its ancestors: for "local" its pose in the receiver's frame, which
    depends on the joints between them only, otherwise the point in world axes.

    Parameters
    ----------
    body
        The body.
    moving
        The velocities are needed.
    """
    local = body.reference == "local"
    wanted = ("" if local else "X") + ("V" if moving else "")
    found = dict(zip(wanted, (yield from propagate_motion(body, wanted)) if wanted else (), strict=True))
    (R, p), V = found.get("X", (IDENTITY, ZERO)), found.get("V", NO_MOTION)
    parts = yield FromChildren()
    if not body.seen.points:
        ((axes, point, velocity),) = parts
    else:
        ((axes, r),) = body.seen_poses
        seen = motion_at_reference(V, (R, p), (axes, r), body.reference)
        axes, point, velocity = {
            "aligned": (IDENTITY, p + R @ r, Motion(ZERO, seen.lin)),
            "local": (axes, r, seen),
            "world": (IDENTITY, ZERO, NO_MOTION),
        }[body.reference]
    yield SendInwards(lambda: (*(frame_in_parent(body, axes, point) if local else (axes, point)), velocity))

    def view(m: Motion) -> Motion:
        return Shift(point).motion(m).rotated(axes.T) if local else Shift(point - p).motion(m.rotated(R))

    return V, view, velocity


def frame_in_parent(body: Body, R: Mat, p: Vec) -> tuple[Mat, Vec]:
    """Return the pose of a frame in the parent's F.

    Parameters
    ----------
    body
        The body.
    R
        Axes of the frame in the body's F.
    p
        Its origin there.
    """
    step("pose", body.link.name)
    for move in reversed(body.X.moves):
        if isinstance(move, Shift):
            p = p + move.r
        else:
            assert isinstance(move, Rotation)
            R, p = Mat(*(move.up(column) for column in R.T.rows)).T, move.up(p)
    return R, p


# -- terms of sums over all bodies; world axes


def sum_over_bodies(terms: Callable[[Body], BodyRecursion]) -> Callable[[Body], BodyRecursion]:
    """Return the work of one body that sums the `terms` of all bodies; those on the ground return the sums."""

    def work(body: Body) -> BodyRecursion:
        own = yield from terms(body)
        (total,) = yield from accumulate_subtree(body, total=own)
        return list(total) if body.link.parent < 0 else []

    return work


def body_kinetic_energy(body: Body) -> BodyRecursion:
    """Return the kinetic energy of the `body`."""
    (V,) = yield from propagate_motion(body, "V")
    step("T", body.link.name)
    energy, armature = body.inertia.kinetic_energy(V), body.link.armature
    for u in joint_elements(body.link, body.v) if armature else ():
        energy = energy + (0.5 * armature) * u * u
    if body.modes:
        energy = energy + body.modes.kinetic_energy(body.q, body.v, V)
    return [energy]


def body_potential_energy(body: Body) -> BodyRecursion:
    """Return first moment and spring energy of the `body`."""
    (X,) = yield from propagate_motion(body, "X")
    energy = joint_spring_energy(body.link, body.q, body.modes.elastic_energy(body.q) if body.modes else 0.0)
    return [*first_moment(body, X), energy]


def gravity_energy(tree: Tree, total: Sequence[Scalar]) -> Scalar:
    """Return the potential energy of `tree` from the `total` of first moments and spring energies."""
    ground = ground_of(tree)
    return total[3] - (ground.R @ ground.gravity).dot(vec(total[:3]))


def first_moment(body: Body, X: Pose) -> Vec:
    """Return the first moment of a `body` with the pose `X`."""
    step("h", body.link.name)
    (R, p), inertia = X, body.inertia
    h: Vec = p * inertia.m + R @ inertia.h
    return h


def body_com(body: Body) -> BodyRecursion:
    """Return the first moment of the `body`."""
    (X,) = yield from propagate_motion(body, "X")
    return [*first_moment(body, X)]


def divide_by_mass(tree: Tree, total: Sequence[Scalar]) -> list[Scalar]:
    """Divide the `total` over all bodies by the mass of `tree`."""
    k = 1.0 / total_mass(tree)
    step("com")
    return [x * k for x in total]


def total_mass(tree: Tree) -> Scalar:
    """Return the total mass of the moving bodies of `tree`."""
    step("m")
    m = ordered_sum(link.inertia.m for link in tree.links)
    if is_zero(m):
        raise ModelError(NO_MASS_MESSAGE)
    return m


def body_momentum(body: Body) -> BodyRecursion:
    """Return momentum about the world's origin, and first moment of the `body`."""
    X, V = yield from propagate_motion(body, "XV")
    return moments_in_world(body, X, momentum_in_body(body, V))


def momentum_in_body(body: Body, V: Motion) -> Force:
    """Return the momentum of a `body` with velocity `V`, in its frame."""
    rigid = body.inertia @ V
    return rigid if body.modes is None else rigid + body.modes.momentum(body.q, body.v)


def moments_in_world(body: Body, X: Pose, f: Force) -> list[Scalar]:
    """Return momentum (or its rate) about the world's origin, and first moment of a body.

    Parameters
    ----------
    body
        The body.
    X
        Its pose.
    f
        Its momentum, in its frame.
    """
    step("momentum", body.link.name)
    f = about_point(-X[1], f.rotated(X[0]))
    return [*f.lin, *f.ang, *first_moment(body, X)]


def momentum_about_centre(tree: Tree, total: Sequence[Scalar]) -> list[Scalar]:
    """Move a `total` [linear, angular, first moment] to the centre of mass of `tree`."""
    lin, ang, h = (vec(total[i : i + 3]) for i in (0, 3, 6))
    c = vec(divide_by_mass(tree, [*h]))
    step("momentum")
    shifted = about_point(c, Force(ang, lin))
    return [*shifted.lin, *shifted.ang]


def about_point(r: Vec, f: Force) -> Force:
    """Return the force `f` about a point at distance `r`."""
    return Force(f.ang - r.cross(f.lin), f.lin)
