"""Modes of flexible bodies as data: the shape integrals of a body and the mode shapes at its nodes.

A body carries m modal coordinates n_1 .. n_m besides its frame. A point of it at r is then at

    r + sum phi_k n_k + 1/2 sum g_kl n_k n_l

where phi are its modes and g the second-order displacements (a beam that bends gets shorter), which stiffen a spinning
blade. The body's inertia needs integrals of these over its mass only, kept to second order in n:

    A_k   phi_k                B_k   r phi_k^T            D_kl   phi_k phi_l^T
    E_kl  g_kl                 F_kl  r g_kl^T

structures/ makes these data, or any other source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.model.parts import Array, Matrix, Triple, matrix, triple

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
