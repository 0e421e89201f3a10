"""Body recursions for sums over all bodies: energies, centre of mass, momentum.

Each body adds its contribution; the bodies on the ground return the sum, and the functions that take a tree turn it
into the quantity. World axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.dynamics.centroidal import about_point, total_mass
from bellcrank.dynamics.kinematics import Pose, spring_energy
from bellcrank.dynamics.recursion.recursive_kinematics import propagate_motion
from bellcrank.dynamics.rnea import body_force
from bellcrank.dynamics.tree_sweeps import (
    BodyRecursion,
    Ground,
    Vector,
    accumulate_subtree,
    body_modes,
    current_inertia,
    ground_of,
    joint_elements,
)
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import NO_FORCE, Force, Motion, Vec, vec


def _sum_over_bodies(link: Link, *contribution: Any) -> BodyRecursion:
    """Return the sum over all bodies in those on the ground, and nothing in the others."""
    total: Any = yield from accumulate_subtree(link, **{f"sum {i}": x for i, x in enumerate(contribution)})
    return [x for part in total for x in (part if isinstance(part, Vec) else [part])] if link.parent < 0 else []


def kinetic_energy(link: Link, ground: Ground, q: Vector, v: Vector) -> BodyRecursion:
    """Return the sum of the kinetic energies.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    """
    (V,) = yield from propagate_motion(link, ground, "V", q, v)
    step("T", link.name)
    energy = current_inertia(link, q).kinetic_energy(V)
    for u in joint_elements(link, v) if link.armature else ():
        energy = energy + (0.5 * link.armature) * u * u
    if body := body_modes(link):
        energy = energy + body.kinetic_energy(q, v, V)
    return (yield from _sum_over_bodies(link, energy))


def potential_energy(link: Link, ground: Ground, q: Vector) -> BodyRecursion:
    """Return the sums of the first moments h and of the spring energies; `gravity_energy` forms -g.h from the former.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    """
    (X,) = yield from propagate_motion(link, ground, "X", q)
    body = body_modes(link)
    energy = spring_energy(link, q, body.elastic_energy(q) if body else 0.0)
    return (yield from _sum_over_bodies(link, _first_moment(link, q, X), energy))


def gravity_energy(tree: Tree, total: Sequence[Scalar]) -> Scalar:
    """Return the potential energy of `tree` from the `total` of first moments and spring energies."""
    ground = ground_of(tree)
    return total[3] - (ground.R @ ground.gravity).dot(vec(total[:3]))


def _first_moment(link: Link, q: Vector, X: Pose) -> Vec:
    step("h", link.name)
    (R, p), inertia = X, current_inertia(link, q)
    h: Vec = p * inertia.m + R @ inertia.h
    return h


def com(link: Link, ground: Ground, q: Vector) -> BodyRecursion:
    """Return the sum of the first moments.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    """
    (X,) = yield from propagate_motion(link, ground, "X", q)
    return (yield from _sum_over_bodies(link, _first_moment(link, q, X)))


def divide_by_mass(tree: Tree, total: Sequence[Scalar]) -> list[Scalar]:
    """Divide the `total` over all bodies by the mass of `tree`."""
    k = 1.0 / total_mass(tree)
    step("com")
    return [x * k for x in total]


def momentum(link: Link, ground: Ground, q: Vector, v: Vector) -> BodyRecursion:
    """Return the sums of the momenta about the world's origin and of the first moments, which give the centre of mass.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    """
    X, V = yield from propagate_motion(link, ground, "XV", q, v)
    f = _in_world(link, X, _momentum(link, q, v, V))
    return (yield from _sum_over_bodies(link, f.lin, f.ang, _first_moment(link, q, X)))


def _momentum(link: Link, q: Vector, v: Vector, V: Motion) -> Force:
    rigid = current_inertia(link, q) @ V
    body = body_modes(link)
    return rigid if body is None else rigid + body.momentum(q, v)


def momentum_rate(link: Link, ground: Ground, q: Vector, v: Vector, a: Vector) -> BodyRecursion:
    """Return the sums of the momentum rates about the world's origin and of the first moments.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    """
    X, A = yield from propagate_motion(link, ground, "XA", q, v, a)
    f = _in_world(link, X, body_force(link, q, v, a, A, NO_FORCE)[0])
    return (yield from _sum_over_bodies(link, f.lin, f.ang, _first_moment(link, q, X)))


def _in_world(link: Link, X: Pose, f: Force) -> Force:
    step("momentum", link.name)
    return about_point(-X[1], f.rotated(X[0]))


def momentum_about_centre(tree: Tree, total: Sequence[Scalar]) -> list[Scalar]:
    """Move a `total` [linear, angular, first moment] to the centre of mass of `tree`."""
    lin, ang, h = (vec(total[i : i + 3]) for i in (0, 3, 6))
    c = vec(divide_by_mass(tree, [*h]))
    step("momentum")
    shifted = about_point(c, Force(ang, lin))
    return [*shifted.lin, *shifted.ang]


def com_velocity(link: Link, ground: Ground, q: Vector, v: Vector) -> BodyRecursion:
    """Return the sum of the linear momenta.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    """
    (R, _), V = yield from propagate_motion(link, ground, "XV", q, v)
    step("momentum", link.name)
    return (yield from _sum_over_bodies(link, R @ _momentum(link, q, v, V).lin))


def com_acceleration(link: Link, ground: Ground, q: Vector, v: Vector, a: Vector) -> BodyRecursion:
    """Return the sum of the rates of linear momentum.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    """
    (R, _), A = yield from propagate_motion(link, ground, "XA", q, v, a)
    step("momentum", link.name)
    return (yield from _sum_over_bodies(link, R @ body_force(link, q, v, a, A, NO_FORCE)[0].lin))
