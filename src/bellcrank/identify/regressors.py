"""Regressors: inverse dynamics is linear in ten numbers of each body, and in friction, rotor inertia and springs.

    tau = Y(q, v, a) x        x   for a body: m, h = m c and I about the origin of its own frame

The column of a number is the force that moves a body with that number alone, transformed to all joints that carry it
(Atkeson, An, Hollerbach, Estimation of inertial parameters of manipulator loads and links, 1986). It is computed for
whole arrays of samples at once. Generalised momentum M v and energy are linear in the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.dynamics.kinematics import velocities
from bellcrank.dynamics.rnea import sweep_out
from bellcrank.dynamics.sweep import poses
from bellcrank.errors import InputError, brief
from bellcrank.identify.numbers import TEN, Number, numbers_of, own
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.model.frames import tree_of
from bellcrank.model.parts import Frame
from bellcrank.model.tree import Tree
from bellcrank.scalar import float_array
from bellcrank.spatial.vector import ZERO, Acceleration, Force, Mat, Sym, Vec, euler_moment, vec

Array = np.ndarray[Any, Any]
LARGEST = 1e50  # limit of measured values: their squares are summed and squared again
UNITS = [Sym(*(float(k == j) for j in range(6))) for k in range(6)]  # xx yy zz xy xz yz, as Sym has them


@explained
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
    asked = own(m, numbers) if numbers is not None else numbers_of(m)
    q, v, a = (_samples(m, name, x, n) for name, x, n in (("q", q, m.nq), ("v", v, m.nv), ("a", a, m.nv)))
    if not len(q) == len(v) == len(a):
        raise InputError(f"q, v and a have {len(q)}, {len(v)} and {len(a)} samples; expected equal numbers.")
    tree = marked(m)
    Y = np.zeros((len(q), m.nv, len(asked)))
    places = {number: k for k, number in enumerate(asked)}
    bodies = {n.part for n in asked if n.kind in TEN}
    Q, V, A = list(q.T), list(v.T), list(a.T)
    moved = sweep_out(tree, Q, V, A) if bodies else []
    for i, body in enumerate(m.bodies):
        if body.name not in bodies:
            continue
        felt = _brought_down(tree, Q, i, _unit_forces(*tree.frames[str(i)], moved[i]), len(q))
        for k, kind in enumerate(TEN):
            if (at := places.get(Number(body.name, kind))) is not None:
                for joint, share in felt.items():
                    Y[:, joint, at] += share[k]
    for number, at in places.items():
        if number.kind not in TEN:
            for joint, share in _passive(m, tree, number, Q, V, A):
                Y[:, joint, at] += share
    return Y


@explained
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
    asked = own(m, numbers) if numbers is not None else numbers_of(m)
    floating = replace(m, gravity=(0.0, 0.0, 0.0))
    Y = regressor(floating, q, np.zeros_like(np.asarray(v, float)), v, asked)
    kept = np.array([n.kind in (*TEN, "armature") for n in asked])
    return np.asarray(Y * kept)


@explained
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
    asked = own(m, numbers) if numbers is not None else numbers_of(m)
    q, v = _samples(m, "q", q, m.nq), _samples(m, "v", v, m.nv)
    p = momentum_regressor(m, q, v, asked)
    T = 0.5 * np.einsum("sj,sjk->sk", v, p)
    U = np.zeros_like(T)
    tree, Q = marked(m), list(q.T)
    placed = poses(tree, Q)
    for k, number in enumerate(asked):
        if number.kind in TEN[:4]:
            i = [b.name for b in m.bodies].index(number.part)
            _, R, p_FB = tree.frames[str(i)]
            R_WF, p_WF = placed[i]
            point = p_WF + R_WF @ p_FB if number.kind == "mass" else R_WF @ (R @ _axis(number.kind))
            U[:, k] = -sum(g * x for g, x in zip(m.gravity, point, strict=True))
        elif number.kind in ("stiffness", "offset"):
            link = next(x for x in tree.links if x.joint.name == number.part)
            x = link.coordinates(Q)[0]
            U[:, k] = 0.5 * x * x if number.kind == "stiffness" else x
    return T, U


def marked(m: Mechanism) -> Tree:
    """Return the tree of mechanism `m`, with the user's frame of each body under its index."""
    marks = {str(i): Frame(str(i), b.name) for i, b in enumerate(m.bodies)}
    return tree_of(m.bodies, m.joints, marks, m.gravity, m.ground)


def _unit_forces(link: int, R: Mat, p: Vec, A: Acceleration) -> list[Force]:
    """Return, in the link's frame F, the force that moves a body with one of the ten numbers and no other.

    R and p are the pose of the body's frame.
    """
    back = R.T
    B = Acceleration(back @ A.w, back @ A.dw, back @ (A.a + A.K @ p))
    forces = [Force(ZERO, B.a)]
    for e in (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0)):
        forces.append(Force(e.cross(B.a), B.K @ e))
    forces += [Force(euler_moment(unit, B), ZERO) for unit in UNITS]
    turned = [f.turned(R) for f in forces]
    return [Force(f.ang + p.cross(f.lin), f.lin) for f in turned]


def _brought_down(tree: Tree, q: list[Array], i: int, forces: list[Force], samples: int) -> dict[int, Array]:
    """Return the generalised forces on each element of v from forces on link i, (forces, samples)."""

    def stacked(part: str, axis: str) -> Array:
        return np.stack([np.broadcast_to(getattr(getattr(f, part), axis), samples) for f in forces])

    f = Force(*(Vec(*(stacked(part, axis) for axis in "xyz")) for part in ("ang", "lin")))
    felt: dict[int, Array] = {}
    while i >= 0:
        link = tree.links[i]
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            share = np.broadcast_to(s.dot(f), (len(forces), samples))
            felt[k] = felt[k] + share if k in felt else share
        f = link.transform(q).force(f)
        i = link.parent
    return felt


def _passive(
    m: Mechanism, tree: Tree, number: Number, q: list[Array], v: list[Array], a: list[Array]
) -> list[tuple[int, Array]]:
    """Return (element of v, column) for a number of a joint or of a spring between bodies."""
    if number.kind.startswith("spring "):
        return _spring(m, tree, number, q, v)
    link = next(x for x in tree.links if x.joint.name == number.part)
    j = link.joint
    k = 1.0 if j.mimic is None else j.mimic.multiplier
    turned, moved = link.coordinates(q), link.velocities(v)
    shares = []
    for n, at in enumerate(link.v_index):
        if number.kind == "armature":
            share = a[at] * k * k + link.kind.turning_axes(moved)[n]
        elif number.kind == "damping":
            share = moved[n] * k
        elif number.kind == "friction":
            share = np.clip(moved[n] / j.friction_speed, -1.0, 1.0) * k
        else:
            share = turned[n] * k if number.kind == "stiffness" else np.full(len(q[0]), float(k))
        shares.append((at, np.asarray(share)))
    return shares


def _spring(m: Mechanism, tree: Tree, number: Number, q: list[Array], v: list[Array]) -> list[tuple[int, Array]]:
    """Return the columns of the tension k L - k l0 + c dL/dt along dL/dv."""
    s = next(x for x in m.springs if x.name == number.part)
    J = [_point(m, tree, frame, q) for frame in (s.a, s.b)]
    (pa, Ja), (pb, Jb) = J
    d = pb - pa  # (samples, 3)
    L = np.linalg.norm(d, axis=1)
    slope = np.einsum("sc,sck->sk", d / L[:, None], Jb - Ja)
    tension = {"spring stiffness": L, "spring preload": -np.ones_like(L)}.get(number.kind)
    if tension is None:
        tension = np.einsum("sk,ks->s", slope, np.array(v))
    return [(k, slope[:, k] * tension) for k in range(m.nv) if slope[:, k].any()]


def _point(m: Mechanism, tree: Tree, frame: str, q: list[Array]) -> tuple[Array, Array]:
    """Return a frame's position (samples, 3) and its Jacobian (samples, 3, nv), in world axes."""
    f, n = m.frames[frame], len(q[0])
    J = np.zeros((n, 3, m.nv))
    if f.body == m.ground:
        return np.broadcast_to(np.asarray(f.point, float), (n, 3)), J
    i = [b.name for b in m.bodies].index(f.body)
    _, R, p = tree.frames[str(i)]
    placed = poses(tree, q)
    R_WF, p_WF = placed[i]
    inside = p + R @ vec([float(x) for x in f.point])
    spot = np.stack([np.broadcast_to(x, n) for x in p_WF + R_WF @ inside], axis=1)
    for k in range(m.nv):
        unit = [np.full(n, float(j == k)) for j in range(m.nv)]
        V = velocities(tree, q, unit)[i]
        u = R_WF @ (V.lin + V.ang.cross(inside))
        J[:, :, k] = np.stack([np.broadcast_to(x, n) for x in u], axis=1)
    return spot, J


def _axis(kind: str) -> Vec:
    return Vec(*(float(kind == name) for name in TEN[1:4]))


def _samples(m: Mechanism, name: str, x: Any, n: int) -> Array:
    try:
        given: Array = float_array(x)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {brief(x)}; expected an array of real numbers.") from None
    x = given[None] if given.ndim == 1 else given
    if x.ndim != 2 or x.shape[1] != n:
        raise InputError(f'{name} has the shape {x.shape}; expected (samples, {n}) for "{m.name}".')
    bad = np.argwhere(~(np.abs(x) < LARGEST))
    if len(bad):
        raise InputError(f"{name}{bad[0].tolist()} is {x[tuple(bad[0])]}; expected finite numbers, below {LARGEST:g}.")
    return np.asarray(x)
