"""The spatial algebra satisfies its axioms and agrees with dense matrices of the textbooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.spatial.inertia import NO_INERTIA, ArticulatedInertia, Inertia, about_centre, articulated_inertia
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, FullRotation, Move, Shift, Transform, Turn
from bellcrank.spatial.vector import (
    IDENTITY,
    ZERO,
    Acceleration,
    Force,
    Mat,
    Motion,
    SymMat,
    Vec,
    cross_matrix,
    diagonal,
    euler_moment,
    sym,
    vec,
)
from trees import Array, close, rotation

seeds = st.integers(0, 10**6)
Rng = np.random.Generator
QUARTERS = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]  # they have a separate code path


# -- random objects, and their dense numpy forms


def rng_of(seed: int) -> Rng:
    return np.random.default_rng(seed)


def some_vec(r: Rng) -> Vec:
    return vec(r.uniform(-1, 1, 3).tolist())


def some_motion(r: Rng) -> Motion:
    return Motion(some_vec(r), some_vec(r))


def some_force(r: Rng) -> Force:
    return Force(some_vec(r), some_vec(r))


def some_sym(r: Rng) -> SymMat:
    return SymMat(*r.uniform(-1, 1, 6).tolist())


def some_mat(r: Rng) -> Mat:
    return Mat(some_vec(r), some_vec(r), some_vec(r))


def some_inertia(r: Rng) -> Inertia:
    return Inertia(float(r.uniform(0.5, 2)), some_vec(r), some_sym(r))


def some_articulated(r: Rng) -> ArticulatedInertia:
    return ArticulatedInertia(some_sym(r), some_mat(r), some_sym(r))


def some_move(r: Rng) -> Move:
    which = int(r.integers(4))
    if which == 0:
        return Shift(some_vec(r))
    if which == 1:
        return FullRotation(Mat(*(vec(row) for row in rotation(r).tolist())))
    angle = r.uniform(-3, 3)
    c, s = QUARTERS[int(r.integers(4))] if which == 2 else (np.cos(angle), np.sin(angle))
    return Turn(int(r.integers(3)), c, s)


def dense(x: Any) -> Array:
    """Return 3-vectors, matrices, six-vectors [angular, linear] and 6x6 inertias as arrays."""
    if isinstance(x, Vec):
        return np.array([float(e) for e in x])
    if isinstance(x, SymMat | Mat):
        return np.array([dense(row) for row in x.rows])
    if isinstance(x, Motion | Force):
        return np.concatenate([dense(x.ang), dense(x.lin)])
    if isinstance(x, Inertia):
        H = hat(dense(x.h))
        return np.block([[dense(x.I), H], [H.T, x.m * np.eye(3)]])
    if isinstance(x, ArticulatedInertia):
        return np.block([[dense(x.I), dense(x.H)], [dense(x.H).T, dense(x.M)]])
    raise TypeError(x)


def hat(v: Array) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def pose(move: Move | Transform) -> tuple[Array, Array]:
    """Return rotation and translation from the definition of each move, not from its code."""
    R, p = np.eye(3), np.zeros(3)
    for m in move.moves if isinstance(move, Transform) else [move]:
        if isinstance(m, Shift):
            p = p + R @ dense(m.r)
        elif isinstance(m, FullRotation):
            R = R @ dense(m.R)
        else:
            i, j = (m.axis + 1) % 3, (m.axis + 2) % 3
            T = np.eye(3)
            T[i, i], T[i, j], T[j, i], T[j, j] = m.c, -m.s, m.s, m.c
            R = R @ T
    return R, p


def plucker(R: Array, p: Array) -> Array:
    """Return the 6x6 matrix that transforms motions from the parent's coordinates to the child's."""
    E = np.kron(np.eye(2), R.T)
    return E @ np.block([[np.eye(3), np.zeros((3, 3))], [-hat(p), np.eye(3)]])


def some_transform(r: Rng) -> Transform:
    return Transform([some_move(r) for _ in range(int(r.integers(1, 5)))])


# -- vectors and matrices


@given(seeds)
def test_vectors_and_matrices_are_those_of_numpy(seed: int) -> None:
    r = rng_of(seed)
    a, b, S, H, G = some_vec(r), some_vec(r), some_sym(r), some_mat(r), some_mat(r)
    close(dense(a.cross(b)), np.cross(dense(a), dense(b)), 2e-15)
    close(a.dot(b), dense(a) @ dense(b), 2e-15)
    close(dense(a - b), dense(a) - dense(b), 0)
    close(dense(-a), -dense(a), 0)
    close(dense(S @ a), dense(S) @ dense(a), 2e-15)
    close(dense(S), dense(S).T, 0)
    close(dense(H @ a), dense(H) @ dense(a), 2e-15)
    close(dense(H.times(G)), dense(H) @ dense(G), 2e-15)
    close(dense(H.T), dense(H).T, 0)
    close(dense(H - G), dense(H) - dense(G), 0)
    close(dense(cross_matrix(a)), hat(dense(a)), 0)
    close(dense(sym(dense(S).tolist())), dense(S), 0)
    close(dense(diagonal(1.0, 2.0, 3.0)), np.diag([1.0, 2.0, 3.0]), 0)


# -- moves


@given(seeds)
def test_moves_are_plucker_transforms(seed: int) -> None:
    """One Plücker matrix X transforms all: motions down by X, forces up by X^T, inertias up by X^T I X."""
    r = rng_of(seed)
    for t in (some_move(r), some_transform(r)):
        X = plucker(*pose(t))
        m, f, i, a = some_motion(r), some_force(r), some_inertia(r), some_articulated(r)
        close(dense(t.motion(m)), X @ dense(m), 1e-13)
        close(dense(t.force(f)), X.T @ dense(f), 1e-13)
        close(dense(t.inertia(i)), X.T @ dense(i) @ X, 1e-13)
        close(dense(t.articulated(a)), X.T @ dense(a) @ X, 1e-13)


@given(seeds)
def test_poses_compose(seed: int) -> None:
    r = rng_of(seed)
    one, two = some_transform(r), some_transform(r)
    R, p = (one + two).pose(IDENTITY, ZERO)
    (R1, p1), (R2, p2) = pose(one), pose(two)
    close(dense(R), R1 @ R2, 1e-14)
    close(dense(p), p1 + R1 @ p2, 1e-13)


@given(seeds)
def test_power_does_not_depend_on_the_frame(seed: int) -> None:
    r = rng_of(seed)
    t, m, f = some_transform(r), some_motion(r), some_force(r)
    close(t.motion(m).dot(f), m.dot(t.force(f)), 1e-13)


@given(seeds)
def test_up_undoes_down(seed: int) -> None:
    r = rng_of(seed)
    full = FullRotation(Mat(*(vec(row) for row in rotation(r).tolist())))
    for t in (Turn(int(r.integers(3)), np.cos(1.1), np.sin(1.1)), full):
        v, S = some_vec(r), some_sym(r)
        close(dense(t.up(t.down(v))), dense(v), 1e-14)
        close(dense(t.down(t.up(v))), dense(v), 1e-14)
        R, _ = pose(t)
        close(dense(t.up_sym(S)), R @ dense(S) @ R.T, 1e-14)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_quarter_turns_only_rename(axis: int, quarters: int) -> None:
    t, r = Turn(axis, *QUARTERS[quarters]), rng_of(1)
    S, H, v = some_sym(r), some_mat(r), some_vec(r)
    R, _ = pose(t)
    close(dense(t.up_sym(S)), R @ dense(S) @ R.T, 0)
    close(dense(t.up_mat(H)), R @ dense(H) @ R.T, 0)
    close(dense(t.down(v)), R.T @ dense(v), 0)


@given(seeds)
def test_acceleration_of_a_frame_on_the_same_body(seed: int) -> None:
    """Every point of a rigid body obeys a' = R^T (a + dw x r + w x (w x r))."""
    r = rng_of(seed)
    t = some_transform(r)
    R, p = pose(t)
    m = Acceleration(some_vec(r), some_vec(r), some_vec(r))
    w, dw, a = dense(m.w), dense(m.dw), dense(m.a)
    moved = t.acceleration(m)
    close(dense(moved.w), R.T @ w, 1e-14)
    close(dense(moved.dw), R.T @ dw, 1e-14)
    close(dense(moved.a), R.T @ (a + np.cross(dw, p) + np.cross(w, np.cross(w, p))), 1e-13)


# -- motion and inertia


@given(seeds)
def test_K_is_the_matrix_of_the_velocity_products(seed: int) -> None:
    r = rng_of(seed)
    m = Acceleration(some_vec(r), some_vec(r), some_vec(r))
    W = hat(dense(m.w))
    close(dense(m.K), hat(dense(m.dw)) + W @ W, 2e-15)


@given(seeds)
def test_euler_moment_and_newton_euler(seed: int) -> None:
    r = rng_of(seed)
    i, m = some_inertia(r), Acceleration(some_vec(r), some_vec(r), some_vec(r))
    w, dw, a, h, I = dense(m.w), dense(m.dw), dense(m.a), dense(i.h), dense(i.I)
    moment = I @ dw + np.cross(w, I @ w)
    close(dense(euler_moment(i.I, m)), moment, 1e-14)
    f = i.newton_euler(m)
    close(dense(f.ang), moment + np.cross(h, a), 1e-14)
    close(dense(f.lin), i.m * a + np.cross(dw, h) + np.cross(w, np.cross(w, h)), 1e-14)


@given(seeds)
def test_inertia_times_motion(seed: int) -> None:
    r = rng_of(seed)
    i, o, A, v = some_inertia(r), some_inertia(r), some_articulated(r), some_motion(r)
    close(dense(i @ v), dense(i) @ dense(v), 1e-14)
    close(dense(A @ v), dense(A) @ dense(v), 1e-14)
    close(dense(i + o), dense(i) + dense(o), 0)
    close(dense(i - o), dense(i) - dense(o), 0)
    close(dense(i + NO_INERTIA), dense(i), 0)
    close(dense(articulated_inertia(i)), dense(i), 0)
    close(i.kinetic_energy(v), 0.5 * dense(v) @ dense(i) @ dense(v), 1e-14)


@given(seeds)
def test_parallel_axes(seed: int) -> None:
    """An inertia about a point equals the central one shifted there."""
    r = rng_of(seed)
    com, I = some_vec(r), some_sym(r)
    central = Inertia(1.7, ZERO, I)
    c = dense(com)
    close(dense(about_centre(1.7, com, I)), dense(Shift(com).inertia(central)), 1e-14)
    close(dense(about_centre(1.7, com, I).I), dense(I) + 1.7 * (c @ c * np.eye(3) - np.outer(c, c)), 1e-14)
    close(dense(about_centre(1.7, com, I).centre), dense(com), 1e-14)
    close(dense(about_centre(1.7, com, I).I_centre), dense(I), 1e-14)


@given(seeds)
def test_inverse_of_a_symmetric_matrix(seed: int) -> None:
    S = some_sym(rng_of(seed)) + diagonal(3.0, 4.0, 5.0)
    close(dense(S.inverse) @ dense(S), np.eye(3), 1e-14)


def test_the_centre_of_nothing_is_the_origin() -> None:
    assert NO_INERTIA.centre is ZERO


@given(seeds, st.booleans())
def test_freed_inertia_is_blind_to_the_free_motion(seed: int, along_axis: bool) -> None:
    """The articulated inertia IA - U U^T / D with D = s.U has no inertia along s."""
    r = rng_of(seed)
    A = some_articulated(r)
    A = ArticulatedInertia(A.I + diagonal(4.0, 4.0, 4.0), A.H, A.M + diagonal(4.0, 4.0, 4.0))  # positive definite
    s = some_motion(r)
    if along_axis:
        e = np.eye(6)[int(r.integers(6))].tolist()
        s = Motion(vec(e[:3]), vec(e[3:]))
    u, D = dense(A @ s), s.dot(A @ s)
    free = A.across_joint(s)
    close([free.D, free.inverse], [D, 1.0 / D], 1e-15)
    close(dense(free.psi), u / D, 1e-14)
    close(s.dot(free.psi), 1.0, 1e-14)
    close(dense(free.rest), dense(A) - np.outer(u, u) / D, 1e-14)
    close(dense(free.rest @ s), np.zeros(6), 1e-14)
    stiff = A.across_joint(s, 0.3)  # a rotor adds inertia, so none of it vanishes
    close([stiff.D, s.dot(stiff.psi)], [D + 0.3, D / (D + 0.3)], 1e-14)
    close(dense(stiff.rest), dense(A) - np.outer(u, u) / (D + 0.3), 1e-14)


@given(seeds)
def test_acceleration_through_a_joint(seed: int) -> None:
    """The bias acceleration has w x u in the angular part, Coriolis 2 w x v and the child's u x v in the linear one."""
    r = rng_of(seed)
    m, vJ, aJ = Acceleration(some_vec(r), some_vec(r), some_vec(r)), some_motion(r), some_motion(r)
    w, u, v = dense(m.w), dense(vJ.ang), dense(vJ.lin)
    got = m.through_joint(vJ, aJ)
    close(dense(got.w), w + u, 2e-15)
    close(dense(got.dw), dense(m.dw) + np.cross(w, u) + dense(aJ.ang), 1e-14)
    close(dense(got.a), dense(m.a) + 2 * np.cross(w, v) + np.cross(u, v) + dense(aJ.lin), 1e-14)


def test_still_is_no_move() -> None:
    v = Motion(Vec(1.0, 2.0, 3.0), Vec(4.0, 5.0, 6.0))
    assert IDENTITY_TRANSFORM.motion(v) is v
