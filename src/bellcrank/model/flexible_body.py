"""Flexible bodies: their modes as data, and the polynomials of the modal coordinates that the methods use.

A body carries m modal coordinates n_1 .. n_m besides its frame. A point of it at r is then at

    r + sum phi_k n_k + 1/2 sum g_kl n_k n_l

where phi are its modes and g the second-order displacements (a beam that bends gets shorter), which stiffen a spinning
blade. The body's inertia needs integrals of these over its mass only, kept to second order in n:

    A_k   phi_k                B_k   r phi_k^T            D_kl   phi_k phi_l^T
    E_kl  g_kl                 F_kl  r g_kl^T

structures/ makes these data, or any other source. In the internal frame F of the body they become

    h(n) = h + sum n_k (A_k + 1/2 sum E_kl n_l)            I(n) = I + sum n_k (I_k + sum I_kl n_l)
    Ct_k = A_k + sum E_kl n_l                              Cr_k = C_k + sum C_kl n_l
    T    = rigid body with h(n), I(n)  +  sum dn_k (Ct_k.u + Cr_k.w)  +  1/2 sum M_kl dn_k dn_l

u and w are the velocities of F. All forces follow from this T, so energy is conserved although T is truncated at the
second order of n and dn. Regrouping (model/tree.py) changes h and I of the link, and none of the terms here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.model.parts import Array, Matrix, Triple, matrix, triple
from bellcrank.scalar import Scalar, dot, ordered_sum
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.vector import (
    NO_FORCE,
    SYM_ZERO,
    ZERO,
    Acceleration,
    Force,
    Motion,
    SymMat,
    Vec,
    sym,
    vec,
    weighted_sum,
)

# Relative to the largest entry of an array, smaller entries are rounding errors of the finite elements.
RELATIVE_ROUNDING = 1e-11

Vector = Sequence[Scalar]
Triples = tuple[Triple, ...]
Matrices = tuple[Matrix, ...]


@dataclass(frozen=True)
class ModalNode:
    """Mode shapes at a point of the body, in the axes of its joint: displacements phi, rotations, and g."""

    joint: str  # from the body to the massless body that represents the node
    shift: Triples
    turn: Triples
    second: tuple[Triples, ...]


@dataclass(frozen=True)
class Modal:
    """The modes of a body, in its frame; its rigid inertia is in the Body of that name.

    stiffness and damping belong to the single coordinates: K and D are diagonal.
    """

    body: str
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    A: Triples
    B: Matrices
    D: tuple[Matrices, ...]
    E: tuple[Triples, ...]
    F: tuple[Matrices, ...]
    nodes: tuple[ModalNode, ...]

    @property
    def modes(self) -> int:
        """Number of modal coordinates."""
        return len(self.stiffness)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """The integrals A, B, D, E and F as arrays."""
        A, B, D, E, F = (np.asarray(x, dtype=float) for x in (self.A, self.B, self.D, self.E, self.F))
        return A, B, D, E, F

    def seen_from(self, body: str, R: Any, p: Any) -> Modal:
        """Return the same modes about another frame; nodes keep their own axes.

        Parameters
        ----------
        body : str
            The body of that frame.
        R : array_like, shape (3, 3)
            Axes of this frame in the other one.
        p : array_like, shape (3,)
            Origin of this frame in the other one, m.

        Returns
        -------
        Modal
            The modes in the other frame.
        """
        A, B, D, E, F = self.arrays
        R, p = np.asarray(R, dtype=float), np.asarray(p, dtype=float)
        A, E = A @ R.T, E @ R.T
        B, D, F = (R @ x @ R.T for x in (B, D, F))
        B = B + np.einsum("i,kj->kij", p, A)
        F = F + np.einsum("i,klj->klij", p, E)
        return replace(self, body=body, **modal_fields(A, B, D, E, F))


def modal_fields(A: Array, B: Array, D: Array, E: Array, F: Array) -> dict[str, Any]:
    """Return the fields of a Modal from the arrays `A`, `B`, `D`, `E` and `F`."""
    return {
        "A": tuple(triple(a) for a in A.tolist()),
        "B": tuple(matrix(b) for b in B.tolist()),
        "D": tuple(tuple(matrix(d) for d in row) for row in D.tolist()),
        "E": tuple(tuple(triple(e) for e in row) for row in E.tolist()),
        "F": tuple(tuple(matrix(f) for f in row) for row in F.tolist()),
    }


@dataclass(frozen=True, eq=False)
class FlexibleBody:
    """Inertia, stiffness and damping of a flexible body in its internal frame F."""

    link: int  # -1: fixed to the ground
    q_index: tuple[int, ...]
    v_index: tuple[int, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    A: tuple[Vec, ...]
    E: tuple[tuple[Vec, ...], ...]
    I1: tuple[SymMat, ...]
    I2: tuple[tuple[SymMat, ...], ...]
    C0: tuple[Vec, ...]
    C1: tuple[tuple[Vec, ...], ...]
    M: tuple[tuple[float, ...], ...]

    def own_elements(self, x: Vector) -> list[Scalar]:
        """Return the body's own elements of `x`, a vector of velocities or accelerations of the mechanism."""
        return [x[i] for i in self.v_index]

    def coordinates(self, q: Vector) -> list[Scalar]:
        """Return the modal coordinates of the body from the positions `q` of the mechanism."""
        return [q[i] for i in self.q_index]

    def inertia(self, q: Vector) -> Inertia:
        """Return the inertia at positions `q` less that of the undeformed body."""
        n = self.coordinates(q)
        h, I = ZERO, SYM_ZERO
        for k, x in enumerate(n):
            h = h + (self.A[k] + weighted_sum(self.E[k], n) * 0.5) * x
            I = I + (self.I1[k] + weighted_sum(self.I2[k], n, SYM_ZERO)) * x
        return Inertia(0.0, h, I)

    def modal_momentum(self, q: Vector) -> list[Force]:
        """Return for each mode at positions `q` the momentum (Cr_k, Ct_k) of a unit modal velocity, about F."""
        n = self.coordinates(q)
        return [
            Force(self.C0[k] + weighted_sum(self.C1[k], n), self.A[k] + weighted_sum(self.E[k], n))
            for k in range(len(n))
        ]

    def modal_momentum_rate(self, k: int, v: Vector) -> Force:
        """Return the rate of felt(q)[k] with the modal velocities of `v`."""
        dn = self.own_elements(v)
        return Force(weighted_sum(self.C1[k], dn), weighted_sum(self.E[k], dn))

    def momentum_derivative(self, k: int, v: Vector) -> Force:
        """Return the derivative by coordinate `k` of the momentum of the modal velocities of `v`."""
        dn = self.own_elements(v)
        return Force(weighted_sum([row[k] for row in self.C1], dn), weighted_sum([row[k] for row in self.E], dn))

    def inertia_derivatives(self, q: Vector) -> list[Inertia]:
        """Return the derivatives of `inertia` by each modal coordinate at positions `q`."""
        n, felt = self.coordinates(q), self.modal_momentum(q)
        return [Inertia(0.0, f.lin, self._moments_derivative(k, n)) for k, f in enumerate(felt)]

    def _moments_derivative(self, k: int, n: Vector) -> SymMat:
        half = weighted_sum(self.I2[k], n, SYM_ZERO)
        return self.I1[k] + (half + half)

    def inertia_rate(self, q: Vector, v: Vector) -> Inertia:
        """Return the time derivative of `inertia` at positions `q` and velocities `v`."""
        h, I = ZERO, SYM_ZERO
        for slope, rate in zip(self.inertia_derivatives(q), self.own_elements(v), strict=True):
            h, I = h + slope.h * rate, I + slope.I * rate
        return Inertia(0.0, h, I)

    def momentum(self, q: Vector, v: Vector) -> Force:
        """Return the momentum of the modal velocities, about F, at positions `q` and velocities `v`."""
        return weighted_sum(self.modal_momentum(q), self.own_elements(v), NO_FORCE)

    def kinetic_energy(self, q: Vector, v: Vector, V: Motion) -> Scalar:
        """Return the kinetic energy less that of the rigid body.

        Parameters
        ----------
        q, v
            Positions and velocities of the mechanism.
        V
            Velocity of the frame F.
        """
        dn = self.own_elements(v)
        energy = V.dot(self.momentum(q, v))
        for k, x in enumerate(dn):
            energy = energy + 0.5 * x * dot(dn, self.M[k])
        return energy

    def newton_euler(self, q: Vector, v: Vector, a: Vector, m: Acceleration) -> tuple[Force, list[Scalar]]:
        """Return the force about F, and the force on each mode, that accelerate the deformed body.

        They are additional to those of the undeformed body and of the inertia that `inertia` adds to it.

        Parameters
        ----------
        q, v, a
            Positions, velocities and accelerations of the mechanism.
        m
            Acceleration of the frame F.
        """
        n, dn, ddn = self.coordinates(q), self.own_elements(v), self.own_elements(a)
        felt = self.modal_momentum(q)
        dh, ddh, L, dL, dI, tau = ZERO, ZERO, ZERO, ZERO, SYM_ZERO, []
        for k, f in enumerate(felt):
            dI_k = self._moments_derivative(k, n)
            dh, L, dI = dh + f.lin * dn[k], L + f.ang * dn[k], dI + dI_k * dn[k]
            ddh = ddh + f.lin * ddn[k] + weighted_sum(self.E[k], dn) * dn[k]
            dL = dL + f.ang * ddn[k] + weighted_sum(self.C1[k], dn) * dn[k]
            gyroscopic = weighted_sum([self.C1[k][l] - self.C1[l][k] for l in range(len(n))], dn)
            inertial = f.lin.dot(m.a) + f.ang.dot(m.dw) + gyroscopic.dot(m.w) - 0.5 * m.w.dot(dI_k @ m.w)
            tau.append(dot(ddn, self.M[k]) + inertial)
        force = Force(dI @ m.w + m.w.cross(L) + dL, (m.w + m.w).cross(dh) + ddh)
        return force, tau

    def passive(self, q: Vector, v: Vector) -> list[Scalar]:
        """Return the elastic and damping forces on the modes at positions `q` and velocities `v`."""
        rows = zip(self.stiffness, self.damping, self.coordinates(q), self.own_elements(v), strict=True)
        return [(-(x * k) if k else 0.0) - (rate * d if d else 0.0) for k, d, x, rate in rows]

    def without_elasticity(self) -> FlexibleBody:
        """Return the same body without stiffness and damping."""
        none = (0.0,) * len(self.stiffness)
        return replace(self, stiffness=none, damping=none)

    def elastic_energy(self, q: Vector) -> Scalar:
        """Return the elastic energy at positions `q`."""
        return ordered_sum(x * x * (0.5 * k) for k, x in zip(self.stiffness, self.coordinates(q), strict=True))


def flexible_body(modes: Modal, link: int, q_index: tuple[int, ...], v_index: tuple[int, ...]) -> FlexibleBody:
    """Return the flexible body of modal data.

    Parameters
    ----------
    modes
        Modal data in the frame F of the link.
    link
        Index of the link; -1 for the ground.
    q_index, v_index
        Indices of the modal coordinates in q and v.
    """
    A, B, D, E, F = modes.arrays
    S1, S2 = B + np.swapaxes(B, -1, -2), D + (F + np.swapaxes(F, -1, -2)) / 2
    C1 = vee(np.swapaxes(D, 0, 1)) + vee(F)
    return FlexibleBody(
        link, q_index, v_index, modes.stiffness, modes.damping,
        _vectors(_zero_rounding(A)), tuple(map(_vectors, _zero_rounding(E))),
        _symmetric_matrices(_zero_rounding(inertia_of(S1))),
        tuple(map(_symmetric_matrices, _zero_rounding(inertia_of((S2 + np.swapaxes(S2, -1, -2)) / 2)))),
        _vectors(_zero_rounding(vee(B))), tuple(map(_vectors, _zero_rounding(C1))),
        tuple(map(tuple, _zero_rounding(np.trace(D, axis1=-2, axis2=-1)).tolist())),
    )  # fmt: skip


def _zero_rounding(x: Array) -> Array:
    return np.where(np.abs(x) < RELATIVE_ROUNDING * np.abs(x).max(initial=0.0), 0.0, x)


def _vectors(x: Array) -> tuple[Vec, ...]:
    return tuple(map(vec, x.tolist()))


def _symmetric_matrices(x: Array) -> tuple[SymMat, ...]:
    return tuple(map(sym, x.tolist()))


def vee(X: Array) -> Array:
    """Return the integrals of a x b from those of a b^T, `X` with shape (..., 3, 3)."""
    rows = [X[..., 1, 2] - X[..., 2, 1], X[..., 2, 0] - X[..., 0, 2], X[..., 0, 1] - X[..., 1, 0]]
    return np.stack(rows, axis=-1)


def inertia_of(S: Array) -> Array:
    """Return moments of inertia from second moments of mass `S`: tr(S) 1 - S."""
    return np.asarray(np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S)
