"""Flexible bodies as the methods use them: polynomials of the modal coordinates n, in the internal frame F of the body.

    h(n) = h + sum n_k (A_k + 1/2 sum E_kl n_l)            I(n) = I + sum n_k (I_k + sum I_kl n_l)
    Ct_k = A_k + sum E_kl n_l                              Cr_k = C_k + sum C_kl n_l
    T    = rigid body with h(n), I(n)  +  sum dn_k (Ct_k.u + Cr_k.w)  +  1/2 sum M_kl dn_k dn_l

u and w are the velocities of F. All forces follow from this T, so energy is conserved although T is truncated at the
second order of n and dn. Regrouping (model/tree.py) changes h and I of the link, and none of the terms here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from bellcrank.model.mode_shapes import Modal
from bellcrank.model.parts import Array
from bellcrank.scalar import Scalar, dot
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.vector import NO_FORCE, SYM_ZERO, ZERO, Acceleration, Force, Motion, SymMat, Vec, sym, vec

# Relative to the largest entry of an array, smaller entries are rounding errors of the finite elements.
RELATIVE_ROUNDING = 1e-11

Vector = Sequence[Scalar]
Term = TypeVar("Term", Vec, SymMat, Force)


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
            h = h + (self.A[k] + _sum(self.E[k], n) * 0.5) * x
            I = I + (self.I1[k] + _sum(self.I2[k], n, SYM_ZERO)) * x
        return Inertia(0.0, h, I)

    def modal_momentum(self, q: Vector) -> list[Force]:
        """Return for each mode at positions `q` the momentum (Cr_k, Ct_k) of a unit modal velocity, about F."""
        n = self.coordinates(q)
        return [Force(self.C0[k] + _sum(self.C1[k], n), self.A[k] + _sum(self.E[k], n)) for k in range(len(n))]

    def modal_momentum_rate(self, k: int, v: Vector) -> Force:
        """Return the rate of felt(q)[k] with the modal velocities of `v`."""
        dn = self.own_elements(v)
        return Force(_sum(self.C1[k], dn), _sum(self.E[k], dn))

    def momentum_derivative(self, k: int, v: Vector) -> Force:
        """Return the derivative by coordinate `k` of the momentum of the modal velocities of `v`."""
        dn = self.own_elements(v)
        return Force(_sum([row[k] for row in self.C1], dn), _sum([row[k] for row in self.E], dn))

    def inertia_derivatives(self, q: Vector) -> list[Inertia]:
        """Return the derivatives of `inertia` by each modal coordinate at positions `q`."""
        n, felt = self.coordinates(q), self.modal_momentum(q)
        return [Inertia(0.0, f.lin, self._moments_derivative(k, n)) for k, f in enumerate(felt)]

    def _moments_derivative(self, k: int, n: Vector) -> SymMat:
        half = _sum(self.I2[k], n, SYM_ZERO)
        return self.I1[k] + (half + half)

    def inertia_rate(self, q: Vector, v: Vector) -> Inertia:
        """Return the time derivative of `inertia` at positions `q` and velocities `v`."""
        h, I = ZERO, SYM_ZERO
        for slope, rate in zip(self.inertia_derivatives(q), self.own_elements(v), strict=True):
            h, I = h + slope.h * rate, I + slope.I * rate
        return Inertia(0.0, h, I)

    def momentum(self, q: Vector, v: Vector) -> Force:
        """Return the momentum of the modal velocities, about F, at positions `q` and velocities `v`."""
        return _sum(self.modal_momentum(q), self.own_elements(v), NO_FORCE)

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
            ddh = ddh + f.lin * ddn[k] + _sum(self.E[k], dn) * dn[k]
            dL = dL + f.ang * ddn[k] + _sum(self.C1[k], dn) * dn[k]
            gyroscopic = _sum([self.C1[k][l] - self.C1[l][k] for l in range(len(n))], dn)
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
        energy: Scalar = 0.0
        for k, x in zip(self.stiffness, self.coordinates(q), strict=True):
            energy = energy + x * x * (0.5 * k)
        return energy


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


def _sum(terms: Sequence[Term], n: Vector, zero: Any = ZERO) -> Term:
    """Return the sum of `terms` times the numbers `n`."""
    total: Term = zero
    for term, x in zip(terms, n, strict=True):
        total = total + term * x
    return total
