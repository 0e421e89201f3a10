"""Regressors: inverse dynamics is linear in ten numbers of each body, and in friction, rotor inertia and springs.

    tau = Y(q, v, a) x        x   for a body: m, h = m c and I about the origin of its own frame

The column of a number is the force that moves a body with that number alone, transformed to all joints that carry it
(Atkeson, An, Hollerbach, Estimation of inertial parameters of manipulator loads and links, 1986). It is computed for
whole arrays of samples at once. Generalised momentum M v and energy are linear in the same numbers.

The numbers have names, values in a mechanism, and can be replaced:

BODY.mass                      m, kg
BODY.mx my mz                  first moments m c, kg m, in the body's frame
BODY.ixx iyy izz ixy ixz iyz   inertia matrix about the origin of the body's frame, kg m^2
JOINT.armature damping friction stiffness       as the joint has them
JOINT.offset                   constant force: -stiffness * rest, or a sensor's offset
SPRING.stiffness, .preload (stiffness * length), .damping
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.dynamics.kinematics import velocities
from bellcrank.dynamics.rnea import forward_sweep
from bellcrank.dynamics.tree_sweeps import poses
from bellcrank.errors import InputError, brief, check_known, unknown
from bellcrank.model import Mechanism
from bellcrank.model.internal_frames import tree_of
from bellcrank.model.parts import Body, Frame, Joint, Spring, matrix, triple
from bellcrank.model.tree import Tree
from bellcrank.parameters import has_free
from bellcrank.scalar import array_argument
from bellcrank.spatial.vector import AXES, ZERO, Acceleration, Force, Mat, SymMat, Vec, euler_moment, vec

Array = np.ndarray[Any, Any]
BODY_NUMBERS = ("mass", "mx", "my", "mz", "ixx", "iyy", "izz", "ixy", "ixz", "iyz")
JOINT_NUMBERS = ("armature", "damping", "friction", "stiffness", "offset")
SPRING_NUMBERS = ("spring stiffness", "spring preload", "spring damping")
PART_TYPES: dict[str, type] = {
    **dict.fromkeys(BODY_NUMBERS, Body), **dict.fromkeys(JOINT_NUMBERS, Joint), **dict.fromkeys(SPRING_NUMBERS, Spring)
}  # fmt: skip
UNITS = {
    "mass": "kg", **dict.fromkeys(BODY_NUMBERS[1:4], "kg m"), **dict.fromkeys(BODY_NUMBERS[4:], "kg m^2"),
    "spring stiffness": "N/m", "spring preload": "N", "spring damping": "N s/m",
}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """Number of a body, a joint or a spring, in which inverse dynamics is linear.

    Parameters
    ----------
    part : str
        Name of the body, joint or spring.
    kind : str
        Kind of number, such as "mass", "damping" or "spring stiffness".
    """

    part: str
    kind: str

    @property
    def name(self) -> str:
        """Name, such as "link2.mass"."""
        return f"{self.part}.{self.kind.removeprefix('spring ')}"

    @property
    def unit(self) -> str:
        """Unit; "" for numbers of joints, whose unit depends on the joint."""
        return UNITS.get(self.kind, "")


@explain_argument_errors
def numbers_of(m: Mechanism, joints: Sequence[str] | None = None) -> tuple[Number, ...]:
    """Return all numbers of a mechanism: bodies from the root, then joints, then springs.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    joints : sequence of str, optional
        Numbers that every joint has (armature, damping, friction, stiffness, offset); by default those that the
        mechanism's joints have.

    Returns
    -------
    tuple[Number, ...]
        Numbers.

    Raises
    ------
    InputError
        If a number of `joints` is unknown, or the mechanism has flexible bodies or free parameters.
    """
    _check_supported(m)
    for kind in () if joints is None else joints:
        check_known("number of a joint", kind, JOINT_NUMBERS, "joints")
    numbers = [Number(b.name, kind) for b in m.bodies for kind in BODY_NUMBERS]
    for j in m.joints:
        kinds = [kind for kind, x in _part_values(j).items() if x]
        numbers += [Number(j.name, kind) for kind in (kinds if joints is None else joints)]
    for s in m.springs:
        numbers += [Number(s.name, kind) for kind, x in (_part_values(s) | {"spring preload": s.length}).items() if x]
    return tuple(numbers)


def _part_values(part: Body | Joint | Spring) -> dict[str, float]:
    """Return the values of all numbers of a part, by kind."""
    if isinstance(part, Body):
        return dict(zip(BODY_NUMBERS, inertial_numbers(part), strict=True))
    if isinstance(part, Spring):
        return dict(zip(SPRING_NUMBERS, (part.stiffness, part.stiffness * part.length, part.damping), strict=True))
    return {kind: getattr(part, kind) for kind in JOINT_NUMBERS[:4]} | {"offset": -part.stiffness * part.rest}


def check_numbers(m: Mechanism, numbers: Sequence[Number]) -> tuple[Number, ...]:
    """Return `numbers`, or raise an InputError if mechanism `m` does not have one of them."""
    names = {Body: {b.name for b in m.bodies}, Joint: {j.name for j in m.joints}, Spring: {s.name for s in m.springs}}
    for n in numbers:
        if not isinstance(n, Number) or n.kind not in PART_TYPES:
            raise InputError(f"numbers has {brief(n)}; expected those of identify.numbers_of(m).")
        known = names[PART_TYPES[n.kind]]
        if n.part not in known:
            raise InputError(f'"{n.name}" is not a number of "{m.name}": {unknown("part", n.part, sorted(known))}')
    return tuple(numbers)


@explain_argument_errors
def values_of(m: Mechanism, numbers: Sequence[Number]) -> Array:
    """Return the values of numbers in a mechanism.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    numbers : sequence of Number
        Numbers of the mechanism.

    Returns
    -------
    ndarray, shape (len(numbers),)
        Values in SI units.

    Raises
    ------
    InputError
        If the mechanism does not have one of them.
    """
    check_numbers(m, numbers)
    parts: tuple[Body | Joint | Spring, ...] = (*m.bodies, *m.joints, *m.springs)
    values = {(part.name, type(part)): _part_values(part) for part in parts}
    return np.array([values[n.part, PART_TYPES[n.kind]][n.kind] for n in numbers], float)


def inertial_numbers(b: Body) -> Array:
    """Return m, m c, and the inertia about the origin of the frame of body `b`."""
    c = np.asarray(b.com, float)
    I = np.asarray(b.inertia, float) + b.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([b.mass, *(b.mass * c), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def replace_inertia(b: Body, x: Array) -> Body:
    """Return body `b` with the ten numbers `x`."""
    m = float(x[0])
    if not m > 0:
        raise InputError(f'body "{b.name}" would have the mass {m:.4g}; expected a mass above zero.')
    c = x[1:4] / m
    xx, yy, zz, xy, xz, yz = x[4:]
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    return replace(b, mass=m, com=triple(c), inertia=matrix(I))


@explain_argument_errors
def mechanism_with(m: Mechanism, numbers: Sequence[Number], values: Array) -> Mechanism:
    """Return a copy of a mechanism with other values of numbers.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    numbers : sequence of Number
        Numbers of the mechanism.
    values : array_like, shape (len(numbers),)
        New values.

    Returns
    -------
    Mechanism
        The copy.

    Raises
    ------
    InputError
        If the arguments do not fit, or a mass is not above zero.
    """
    if np.shape(values) != (len(numbers),):
        raise InputError(f"values have the shape {np.shape(values)}; expected one for each of {len(numbers)} numbers.")
    check_numbers(m, numbers)
    new_values: Mapping[tuple[str, str], float] = {
        (n.part, n.kind): float(x) for n, x in zip(numbers, values, strict=True)
    }
    bodies = []
    for b in m.bodies:
        x = inertial_numbers(b)
        x = np.array([new_values.get((b.name, kind), old) for kind, old in zip(BODY_NUMBERS, x, strict=True)])
        bodies.append(b if np.array_equal(x, inertial_numbers(b)) else replace_inertia(b, x))
    joints = []
    for j in m.joints:
        new: dict[str, Any] = {k: new_values[j.name, k] for k in JOINT_NUMBERS[:4] if (j.name, k) in new_values}
        j = replace(j, **new)
        if (j.name, "offset") in new_values and j.stiffness:
            j = replace(j, rest=-new_values[j.name, "offset"] / j.stiffness)
        joints.append(j)
    return replace(
        m, bodies=tuple(bodies), joints=tuple(joints), springs=tuple(_spring(s, new_values) for s in m.springs)
    )


def _spring(s: Spring, new_values: Mapping[tuple[str, str], float]) -> Spring:
    k = new_values.get((s.name, "spring stiffness"), s.stiffness)
    load = new_values.get((s.name, "spring preload"), s.stiffness * s.length)
    length = load / k if k else s.length
    return replace(s, stiffness=k, length=length, damping=new_values.get((s.name, "spring damping"), s.damping))


def _check_supported(m: Mechanism) -> None:
    if m.flexible:
        raise InputError(f'"{m.name}" has flexible bodies; expected rigid ones: modes have no ten inertial numbers.')
    if has_free(m.bodies, m.joints, m.springs, m.gravity):
        raise InputError(f'"{m.name}" has free parameters; pass it with fixed ones: mechanism.at().')


MAX_MEASURED = 1e50  # limit of measured values: their squares are summed and squared again
UNIT_INERTIAS = [SymMat(*(float(k == j) for j in range(6))) for k in range(6)]  # xx yy zz xy xz yz, as in SymMat


@explain_argument_errors
def regressor(m: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, numbers: Sequence[Number] | None = None) -> Array:
    """Return Y with inverse_dynamics = Y x, for the mechanism as a tree.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    q : array_like, shape (samples, nq)
        Joint positions, rad or m.
    v : array_like, shape (samples, nv)
        Joint velocities, rad/s or m/s.
    a : array_like, shape (samples, nv)
        Joint accelerations, rad/s^2 or m/s^2.
    numbers : sequence of Number, optional
        Columns of the result; those of `numbers_of(m)` by default.

    Returns
    -------
    ndarray, shape (samples, nv, len(numbers))
        Force on each joint for a unit of each number.

    Raises
    ------
    InputError
        If the arguments do not fit.
    """
    columns = check_numbers(m, numbers) if numbers is not None else numbers_of(m)
    q, v, a = (_checked_samples(m, name, x, n) for name, x, n in (("q", q, m.nq), ("v", v, m.nv), ("a", a, m.nv)))
    if not len(q) == len(v) == len(a):
        raise InputError(f"q, v and a have {len(q)}, {len(v)} and {len(a)} samples; expected equal numbers.")
    tree = tree_with_body_frames(m)
    Y = np.zeros((len(q), m.nv, len(columns)))
    places = {number: k for k, number in enumerate(columns)}
    bodies = {n.part for n in columns if n.kind in BODY_NUMBERS}
    Q, V, A = list(q.T), list(v.T), list(a.T)
    accelerations = forward_sweep(tree, Q, V, A) if bodies else []
    for i, body in enumerate(m.bodies):
        if body.name not in bodies:
            continue
        joint_shares = _joint_forces(tree, Q, i, _unit_forces(*tree.frames[str(i)], accelerations[i]), len(q))
        for k, kind in enumerate(BODY_NUMBERS):
            if (column := places.get(Number(body.name, kind))) is not None:
                for joint, share in joint_shares.items():
                    Y[:, joint, column] += share[k]
    for number, column in places.items():
        if number.kind not in BODY_NUMBERS:
            for joint, share in _passive_columns(m, tree, number, Q, V, A):
                Y[:, joint, column] += share
    return Y


@explain_argument_errors
def momentum_regressor(m: Mechanism, q: ArrayLike, v: ArrayLike, numbers: Sequence[Number] | None = None) -> Array:
    """Return Y with M(q) v = Y x, the regressor of the generalised momentum.

    It is the inverse dynamics without gravity for an acceleration v from rest. Its rate needs no measured acceleration.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    q : array_like, shape (samples, nq)
        Joint positions, rad or m.
    v : array_like, shape (samples, nv)
        Joint velocities, rad/s or m/s.
    numbers : sequence of Number, optional
        Columns of the result; those of `numbers_of(m)` by default.

    Returns
    -------
    ndarray, shape (samples, nv, len(numbers))
        Momentum of each joint for a unit of each number.

    Raises
    ------
    InputError
        If the arguments do not fit.
    """
    columns = check_numbers(m, numbers) if numbers is not None else numbers_of(m)
    floating = replace(m, gravity=(0.0, 0.0, 0.0))
    Y = regressor(floating, q, np.zeros_like(np.asarray(v, float)), v, columns)
    contributes = np.array([n.kind in (*BODY_NUMBERS, "armature") for n in columns])
    return np.asarray(Y * contributes)


@explain_argument_errors
def energy_regressor(
    m: Mechanism, q: ArrayLike, v: ArrayLike, numbers: Sequence[Number] | None = None
) -> tuple[Array, Array]:
    """Return rows T and U with kinetic energy T x and potential energy U x.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    q : array_like, shape (samples, nq)
        Joint positions, rad or m.
    v : array_like, shape (samples, nv)
        Joint velocities, rad/s or m/s.
    numbers : sequence of Number, optional
        Columns of the result; those of `numbers_of(m)` by default.

    Returns
    -------
    tuple[ndarray, ndarray]
        T and U, shape (samples, len(numbers)) each.

    Raises
    ------
    InputError
        If the arguments do not fit.
    """
    columns = check_numbers(m, numbers) if numbers is not None else numbers_of(m)
    q, v = _checked_samples(m, "q", q, m.nq), _checked_samples(m, "v", v, m.nv)
    p = momentum_regressor(m, q, v, columns)
    T = 0.5 * np.einsum("sj,sjk->sk", v, p)
    U = np.zeros_like(T)
    tree, Q = tree_with_body_frames(m), list(q.T)
    body_poses = poses(tree, Q)
    for k, number in enumerate(columns):
        if number.kind in BODY_NUMBERS[:4]:
            i = [b.name for b in m.bodies].index(number.part)
            _, R, p_FB = tree.frames[str(i)]
            R_WF, p_WF = body_poses[i]
            point = p_WF + R_WF @ p_FB if number.kind == "mass" else R_WF @ (R @ _axis(number.kind))
            U[:, k] = -sum(g * x for g, x in zip(m.gravity, point, strict=True))
        elif number.kind in ("stiffness", "offset"):
            link = next(x for x in tree.links if x.joint.name == number.part)
            x = link.coordinates(Q)[0]
            U[:, k] = 0.5 * x * x if number.kind == "stiffness" else x
    return T, U


def tree_with_body_frames(m: Mechanism) -> Tree:
    """Return the tree of mechanism `m`, with the user's frame of each body under its index."""
    marks = {str(i): Frame(str(i), b.name) for i, b in enumerate(m.bodies)}
    return tree_of(m.bodies, m.joints, marks, m.gravity, m.ground)


def _unit_forces(link: int, R: Mat, p: Vec, A: Acceleration) -> list[Force]:
    """Return, in the link's frame F, the force that moves a body with one of the ten numbers and no other.

    R and p are the pose of the body's frame.
    """
    back = R.T
    B = Acceleration(back @ A.w, back @ A.dw, back @ (A.a + A.K @ p))
    forces = [Force(ZERO, B.a), *(Force(e.cross(B.a), B.K @ e) for e in AXES)]
    forces += [Force(euler_moment(unit, B), ZERO) for unit in UNIT_INERTIAS]
    turned = [f.rotated(R) for f in forces]
    return [Force(f.ang + p.cross(f.lin), f.lin) for f in turned]


def _joint_forces(tree: Tree, q: list[Array], i: int, forces: list[Force], samples: int) -> dict[int, Array]:
    """Return the generalised forces on each element of v from forces on link i, (forces, samples)."""

    def stacked(part: str, axis: str) -> Array:
        return np.stack([np.broadcast_to(getattr(getattr(f, part), axis), samples) for f in forces])

    f = Force(*(Vec(*(stacked(part, axis) for axis in "xyz")) for part in ("ang", "lin")))
    joint_shares: dict[int, Array] = {}
    while i >= 0:
        link = tree.links[i]
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            share = np.broadcast_to(s.dot(f), (len(forces), samples))
            joint_shares[k] = joint_shares[k] + share if k in joint_shares else share
        f = link.transform(q).force(f)
        i = link.parent
    return joint_shares


def _passive_columns(
    m: Mechanism, tree: Tree, number: Number, q: list[Array], v: list[Array], a: list[Array]
) -> list[tuple[int, Array]]:
    """Return (element of v, column) for a number of a joint or of a spring between bodies."""
    if number.kind.startswith("spring "):
        return _spring_columns(m, tree, number, q, v)
    link = next(x for x in tree.links if x.joint.name == number.part)
    j = link.joint
    k = 1.0 if j.mimic is None else j.mimic.multiplier
    positions, joint_velocities = link.coordinates(q), link.velocities(v)
    shares = []
    for n, element in enumerate(link.v_index):
        if number.kind == "armature":
            share = a[element] * k * k + link.kind.turning_axes(joint_velocities)[n]
        elif number.kind == "damping":
            share = joint_velocities[n] * k
        elif number.kind == "friction":
            share = np.clip(joint_velocities[n] / j.friction_speed, -1.0, 1.0) * k
        else:
            share = positions[n] * k if number.kind == "stiffness" else np.full(len(q[0]), float(k))
        shares.append((element, np.asarray(share)))
    return shares


def _spring_columns(
    m: Mechanism, tree: Tree, number: Number, q: list[Array], v: list[Array]
) -> list[tuple[int, Array]]:
    """Return the columns of the tension k L - k l0 + c dL/dt along dL/dv."""
    s = next(x for x in m.springs if x.name == number.part)
    J = [_frame_point(m, tree, frame, q) for frame in (s.a, s.b)]
    (pa, Ja), (pb, Jb) = J
    d = pb - pa  # (samples, 3)
    L = np.linalg.norm(d, axis=1)
    slope = np.einsum("sc,sck->sk", d / L[:, None], Jb - Ja)
    tension = {"spring stiffness": L, "spring preload": -np.ones_like(L)}.get(number.kind)
    if tension is None:
        tension = np.einsum("sk,ks->s", slope, np.array(v))
    return [(k, slope[:, k] * tension) for k in range(m.nv) if slope[:, k].any()]


def _frame_point(m: Mechanism, tree: Tree, frame: str, q: list[Array]) -> tuple[Array, Array]:
    """Return a frame's position (samples, 3) and its Jacobian (samples, 3, nv), in world axes."""
    f, n = m.frames[frame], len(q[0])
    J = np.zeros((n, 3, m.nv))
    if f.body == m.ground:
        return np.broadcast_to(np.asarray(f.point, float), (n, 3)), J
    i = [b.name for b in m.bodies].index(f.body)
    _, R, p = tree.frames[str(i)]
    body_poses = poses(tree, q)
    R_WF, p_WF = body_poses[i]
    inside = p + R @ vec([float(x) for x in f.point])
    position = np.stack([np.broadcast_to(x, n) for x in p_WF + R_WF @ inside], axis=1)
    for k in range(m.nv):
        unit = [np.full(n, float(j == k)) for j in range(m.nv)]
        V = velocities(tree, q, unit)[i]
        u = R_WF @ (V.lin + V.ang.cross(inside))
        J[:, :, k] = np.stack([np.broadcast_to(x, n) for x in u], axis=1)
    return position, J


def _axis(kind: str) -> Vec:
    return Vec(*(float(kind == name) for name in BODY_NUMBERS[1:4]))


def _checked_samples(m: Mechanism, name: str, x: Any, n: int) -> Array:
    array = array_argument(name, x)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != n:
        raise InputError(f'{name} has the shape {array.shape}; expected (samples, {n}) for "{m.name}".')
    return limited_array(name, array)


def limited_array(name: str, x: Array) -> Array:
    """Return the measured values `x`, or raise an InputError that mentions `name` if one is not below MAX_MEASURED."""
    bad = np.argwhere(~(np.abs(x) < MAX_MEASURED))
    if len(bad):
        raise InputError(
            f"{name}{bad[0].tolist()} is {x[tuple(bad[0])]}; expected finite numbers, below {MAX_MEASURED:g}."
        )
    return x
