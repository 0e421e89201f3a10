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
from functools import partial
from typing import Any

from bellcrank.dynamics import springs
from bellcrank.dynamics.rnea import child_acceleration
from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    Exchange,
    FromChildren,
    FromParent,
    Send,
    Vector,
    accumulate_subtree,
    apply_joint_function,
    external_force,
    ground_of,
    joint_elements,
    poses,
)
from bellcrank.dynamics.tree_sweeps import passive_torque as passive_torque  # re-exported as quantities of this method
from bellcrank.dynamics.tree_sweeps import rate as rate
from bellcrank.errors import ModelError
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, step
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
    body_velocities: list[Motion] = []
    for link in tree.links:
        step("V", link.name)
        V = link.transform(q).motion(body_velocities[link.parent]) if link.parent >= 0 else NO_MOTION
        for s, i in zip(link.subspace(q), link.v_index, strict=True):
            V = V + s * v[i]
        body_velocities.append(V)
    return body_velocities


def _frame_pose(tree: Tree, q: Vector, frame: str) -> tuple[int, Mat, Vec, Mat]:
    """Return the body of the frame, its R_WB and p_WB, and R_WF of that body."""
    body, R, p = tree.frames[frame]
    R_WF, p_WF = poses(tree, q)[body] if body >= 0 else tree.ground.pose(IDENTITY, ZERO)
    step("pose", frame)
    return body, R_WF.times(R), p_WF + R_WF @ p, R_WF


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
    _, R, p, _ = _frame_pose(tree, q, frame)
    return homogeneous_matrix(R, p)


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
    body, R, p = tree.frames[frame]
    if body < 0:
        return [0.0] * 6
    V, body_pose = velocities(tree, q, v)[body], poses(tree, q)[body]
    step("velocity", frame)
    seen = motion_at_reference(V, body_pose, (R, p), reference)
    return [*seen.lin, *seen.ang]


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
    at_reference = reference_view(tree, q, frame, reference)
    J: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(6)]
    for i in tree.path(tree.frames[frame][0]):
        link = tree.links[i]
        step("J", link.name)
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            column = at_reference(i, s)
            for row, x in enumerate((*column.lin, *column.ang)):
                J[row][k] = J[row][k] + x
    return J


def reference_view(tree: Tree, q: Vector, frame: str, reference: str) -> Callable[[int, Motion], Motion]:
    """Return a function that expresses a motion of body i about its F with respect to the reference.

    The reference is "aligned" (frame's origin, world axes), "local" (frame's origin and axes) or "world" (world's
    origin and axes). The function takes the index of a body that carries the frame, and the motion.

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
    if reference == "local":
        return partial(_into_frame, _frame_in_carriers(tree, q, frame))
    X = poses(tree, q)
    point = {"aligned": _frame_pose(tree, q, frame)[2], "world": ZERO}[reference]

    def seen(i: int, m: Motion) -> Motion:
        R, p = X[i]
        return Shift(point - p).motion(m.rotated(R))

    return seen


def _into_frame(places: dict[int, tuple[Mat, Vec]], i: int, m: Motion) -> Motion:
    R, p = places[i]
    return Shift(p).motion(m).rotated(R.T)


def _frame_in_carriers(tree: Tree, q: Vector, frame: str) -> dict[int, tuple[Mat, Vec]]:
    """Return the pose of the frame in F of every body that carries it.

    The poses are computed up the tree from the frame, so that each depends only on the joints between frame and body.
    """
    body, R, p = tree.frames[frame]
    carrier_poses = {}
    for i in tree.path(body):
        carrier_poses[i] = R, p
        step("pose", frame)
        for move in reversed(tree.links[i].transform(q).moves):
            if isinstance(move, Shift):
                p = p + move.r
            else:
                assert isinstance(move, Rotation)
                R, p = Mat(*(move.up(column) for column in R.T.rows)).T, move.up(p)
    return carrier_poses


def _first_moment(tree: Tree, q: Vector) -> tuple[Scalar, Vec]:
    m: Scalar = 0.0
    h = ZERO
    for link, inertia, (R, p) in zip(tree.links, tree.link_inertias(q), poses(tree, q), strict=True):
        step("h", link.name)
        m, h = m + inertia.m, h + (p * inertia.m + R @ inertia.h)
    return m, h


def _centre_of_mass(m: Scalar, h: Vec) -> Vec:
    if is_zero(m):
        raise ModelError(NO_MASS_MESSAGE)
    centre: Vec = h * (1.0 / m)
    return centre


def com(tree: Tree, q: Vector) -> list[Scalar]:
    """Return the centre of mass of the moving bodies of `tree` at positions `q`, in the world."""
    m, h = _first_moment(tree, q)
    return list(_centre_of_mass(m, h))


def potential_energy(tree: Tree, q: Vector) -> Scalar:
    """Return the potential energy of `tree` at positions `q`: -g.h_W and springs.

    It is zero at the world's origin; springs in joints and between points are included.
    """
    R, _ = tree.ground.pose(IDENTITY, ZERO)
    _, h = _first_moment(tree, q)
    energy = -(R @ tree.gravity).dot(h)
    for body in tree.flexible:
        energy = energy + body.elastic_energy(q)
        if body.link < 0:  # the body is fixed to the ground, but its modes move
            energy = energy - tree.gravity.dot(body.inertia(q).h)
    for link in tree.links:
        energy = spring_energy(link, q, energy)
    return energy + springs.energy(tree, q) if tree.springs else energy


def spring_energy(link: Link, q: Vector, energy: Scalar = 0.0) -> Scalar:
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
    energy: Scalar = 0.0
    V_F = velocities(tree, q, v)
    for body in tree.flexible:
        energy = energy + body.kinetic_energy(q, v, V_F[body.link] if body.link >= 0 else NO_MOTION)
    for link, inertia, V in zip(tree.links, tree.link_inertias(q), V_F, strict=True):
        step("T", link.name)
        energy = energy + inertia.kinetic_energy(V)
        if link.armature:
            for i in link.v_index:
                energy = energy + (0.5 * link.armature) * v[i] * v[i]
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
    P, L = ZERO, ZERO
    momenta = [inertia @ V for inertia, V in zip(tree.link_inertias(q), velocities(tree, q, v), strict=True)]
    for body in tree.flexible:
        if body.link >= 0:
            momenta[body.link] = momenta[body.link] + body.momentum(q, v)
    for link, link_momentum, (R, p) in zip(tree.links, momenta, poses(tree, q), strict=True):
        step("momentum", link.name)
        f = link_momentum.rotated(R)
        P, L = P + f.lin, L + f.ang + p.cross(f.lin)
    m, h = _first_moment(tree, q)
    step("momentum")
    return [*P, *(L - _centre_of_mass(m, h).cross(P))]


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
    out: list[Scalar] = []
    for link in tree.links:
        if link.joint.mimic is None:
            step("difference", link.name)
            out += link.kind.difference([q0[i] for i in link.q_index], [q1[i] for i in link.q_index])
    return out


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
    X, motion = body.X, list[Any]()
    for x, above in zip(wanted, up, strict=True):
        step("pose" if x == "X" else x, body.link.name)
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


def body_generalised_forces(body: Body) -> BodyRecursion:
    """Return J^T wrench for the joint of the `body`: the generalised forces due to forces on frames."""
    pushes = yield from external_force(body)
    (total,) = yield from accumulate_subtree(body, body.X.force, felt=pushes)
    step("felt", body.link.name)
    return [s.dot(total) for s in body.S]


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
    X, ground = body.X, body.ground
    R, p, V = yield FromParent((ground.R, ground.p, NO_MOTION))
    step("pose", body.link.name)
    R, p = X.pose(R, p)
    step("V", body.link.name)
    V = X.motion(V) + body.joint_velocity
    yield Send((R, p, V))
    out: list[Scalar] = []
    for i, r in enumerate(body.seen.points):
        out += [*(p + R @ r), *(R @ (V.lin + V.ang.cross(r)))]
        if body.seen.axes:
            out += [*(R @ V.ang), *(x for row in R.times(body.seen.axes[i]).rows for x in row)]
    return out


def body_jacobian(body: Body) -> BodyRecursion:
    """Return the columns of a frame's Jacobian for a `body` on its path."""
    (X,) = yield from propagate_motion(body, "X")
    place, _ = yield from reference_place(body, X, NO_MOTION)
    step("J", body.link.name)
    motions = [motion_at_place(place, X, Z) for Z in body.S]
    return [x for m in motions for x in (*m.lin, *m.ang)]


def reference_place(body: Body, X: Pose, V: Motion) -> Generator[Exchange, Any, tuple[Pose, Motion]]:
    """Return the axes and the point from which a frame's motion is seen, and their velocity in those axes.

    The body that has the frame computes them and hands them to its ancestors.

    Parameters
    ----------
    body
        The body.
    X
        Its pose.
    V
        Its velocity.
    """
    parts = yield FromChildren()
    if body.seen.points:
        ((axes, r),) = body.seen_poses
        (R, p), m = X, motion_at_reference(V, X, (axes, r), body.reference)
        place = {
            "aligned": ((IDENTITY, p + R @ r), Motion(ZERO, m.lin)),
            "local": ((R.times(axes), p + R @ r), m),
            "world": ((IDENTITY, ZERO), NO_MOTION),
        }[body.reference]
    else:
        (place,) = parts
    yield Send(place)
    return place


def motion_at_place(place: Pose, X: Pose, m: Motion) -> Motion:
    """Express a motion of a body at a point and in axes.

    Parameters
    ----------
    place
        The axes and the point.
    X
        Pose of the body.
    m
        Motion about its F.
    """
    (axes, point), (R, p) = place, X
    return Shift(point - p).motion(m.rotated(R)).rotated(axes.T)


# -- sums over all bodies, which those on the ground return; world axes


def sum_over_bodies(body: Body, *contribution: Any) -> BodyRecursion:
    """Return the sum over all bodies in those on the ground, and nothing in the others.

    Parameters
    ----------
    body
        The body.
    contribution
        What it adds: numbers and vectors.
    """
    total = yield from accumulate_subtree(body, **{f"sum {i}": x for i, x in enumerate(contribution)})
    return [x for part in total for x in (part if isinstance(part, Vec) else [part])] if body.link.parent < 0 else []


def body_kinetic_energy(body: Body) -> BodyRecursion:
    """Return the sum of the kinetic energies; `body` adds its own."""
    (V,) = yield from propagate_motion(body, "V")
    step("T", body.link.name)
    energy, armature = body.inertia.kinetic_energy(V), body.link.armature
    for u in joint_elements(body.link, body.v) if armature else ():
        energy = energy + (0.5 * armature) * u * u
    if body.modes:
        energy = energy + body.modes.kinetic_energy(body.q, body.v, V)
    return (yield from sum_over_bodies(body, energy))


def body_potential_energy(body: Body) -> BodyRecursion:
    """Return the sums of the first moments and of the spring energies; `body` adds its own."""
    (X,) = yield from propagate_motion(body, "X")
    energy = spring_energy(body.link, body.q, body.modes.elastic_energy(body.q) if body.modes else 0.0)
    return (yield from sum_over_bodies(body, first_moment(body, X), energy))


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
    """Return the sum of the first moments; `body` adds its own."""
    (X,) = yield from propagate_motion(body, "X")
    return (yield from sum_over_bodies(body, first_moment(body, X)))


def divide_by_mass(tree: Tree, total: Sequence[Scalar]) -> list[Scalar]:
    """Divide the `total` over all bodies by the mass of `tree`."""
    k = 1.0 / total_mass(tree)
    step("com")
    return [x * k for x in total]


def total_mass(tree: Tree) -> Scalar:
    """Return the total mass of the moving bodies of `tree`."""
    m: Scalar = 0.0
    step("m")
    for link in tree.links:
        m = m + link.inertia.m
    if is_zero(m):
        raise ModelError(NO_MASS_MESSAGE)
    return m


def body_momentum(body: Body) -> BodyRecursion:
    """Return the sums of the momenta about the world's origin and of the first moments; `body` adds its own."""
    X, V = yield from propagate_motion(body, "XV")
    return (yield from sum_in_world(body, X, momentum_in_body(body, V)))


def momentum_in_body(body: Body, V: Motion) -> Force:
    """Return the momentum of a `body` with velocity `V`, in its frame."""
    rigid = body.inertia @ V
    return rigid if body.modes is None else rigid + body.modes.momentum(body.q, body.v)


def sum_in_world(body: Body, X: Pose, f: Force) -> BodyRecursion:
    """Return the sums of momenta (or their rates) about the world's origin, and of the first moments.

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
    return (yield from sum_over_bodies(body, f.lin, f.ang, first_moment(body, X)))


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
