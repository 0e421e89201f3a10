"""Kinematics: poses, velocities, Jacobians, centre of mass, energies, momentum.

Solves: pose, velocity, jacobian, com, kinetic_energy, potential_energy, momentum, rate, integrate, difference;
passive_torque and rate are in tree_sweeps.py.
Any tree. Work O(n), span O(depth). Output conventions: world axes; six-vectors are [linear, angular] at the frame's
origin.

    R_WF, p_WF   pose of body i's internal frame       z_i        column of its joint's motion subspace
    V_i          velocity of F, in F                    h_W        first moment of the whole mechanism
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bellcrank.dynamics import springs
from bellcrank.dynamics.tree_sweeps import Vector, apply_joint_function, poses
from bellcrank.dynamics.tree_sweeps import passive_torque as passive_torque  # re-exported as quantities of this method
from bellcrank.dynamics.tree_sweeps import rate as rate
from bellcrank.errors import ModelError
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.moves import Rotation, Shift
from bellcrank.spatial.vector import IDENTITY, NO_MOTION, ZERO, Mat, Motion, Vec

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
