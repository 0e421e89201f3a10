"""Kane's equations for generalised speeds U = A(q) Qdot + B(q) chosen by the user.

A. Fijany 1989, slides "Kane's Method: Notation" and "Kane's Equation for Computation of Mass Matrix"; after T. R. Kane
and D. A. Levinson, The use of Kane's dynamical equations in robotics, Int. J. Robotics Research 2, 1983. The slides
continue with U = Qdot only.

    W_k(r), V_k(r)   r-th partial angular velocity of body k, and partial velocity of its centre: derivatives by U_r
    N_k(r), F_k(r)   partial angular and linear momentum
    a_rs             mass matrix: sum over the bodies of V_k(r) . F_k(s) + W_k(r) . N_k(s)
    C                A^-1: Qdot = C (U - B)

The rates of the speeds follow from sum_s a_rs (dU_s - G_s) = sum_j C_jr (tau_j - bias_j), with G = dA/dt Qdot + dB/dt,
which is differentiated automatically.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.dynamics import rnea
from bellcrank.dynamics.historical.mass_matrix.fixed_frame import fixed_frame
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, eliminate_unknowns
from bellcrank.dynamics.ltl_factorisation import axis_columns, coordinate_names, nonzero_triangle, solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import InputError
from bellcrank.jets import Jet, jet
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, fabs, is_zero, ordered_sum, step, where
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import Motion

Choice = Callable[[Vector], tuple[Sequence[Vector], Vector]]  # of positions, giving A by rows and B
MIN_PIVOT = 1e-9  # smallest pivot of A, relative to its largest element, with which Qdot follows from U


@dataclass(frozen=True)
class GeneralisedSpeeds:
    """A tree with its generalised speeds.

    Parameters
    ----------
    tree : Tree
        Kinematic tree of the mechanism.
    choice : callable
        Function of the positions that returns A, by rows, and B; it must not branch on their values.
    nominal : sequence of float
        Positions at which the order of elimination of A is chosen.
    """

    tree: Tree
    choice: Choice
    nominal: Sequence[float]

    def __post_init__(self) -> None:
        n = self.tree.nv
        if self.tree.nq != n:
            raise InputError("generalised speeds need joints without quaternions: nq must equal nv.")
        A, B = self.choice(list(self.nominal))
        if len(A) != n or any(len(row) != n for row in A) or len(B) != n:
            sizes = f"A has {len(A)} rows of {sorted({len(row) for row in A})} elements, B has {len(B)} elements"
            raise InputError(f"generalised speeds: {sizes}; expected {n} rows of {n}, and {n}.")
        if len(choose_pivots(np.array(A, float))) < n:
            raise InputError(
                "generalised speeds: A is singular at the nominal positions, so U does not determine Qdot."
            )

    def speeds(self, q: Vector, v: Vector) -> list[Scalar]:
        """Return U at positions `q` and velocities `v`."""
        A, B = self.choice(q)
        return [ordered_sum(a * x for a, x in zip(row, v, strict=True)) + b for row, b in zip(A, B, strict=True)]

    def velocities(self, q: Vector, U: Vector) -> list[Scalar]:
        """Return Qdot at positions `q` and speeds `U`."""
        B, C = self.choice(q)[1], self._inverse(q)
        rest = [u - b for u, b in zip(U, B, strict=True)]
        return [ordered_sum(c * rest[r] for r, c in C[j].items()) for j in range(self.tree.nv)]

    def mass_matrix(self, q: Vector) -> list[list[Scalar]]:
        """Return the mass matrix of the speeds at positions `q`, by Kane's equation."""
        return self._mass_matrix(q, self._inverse(q))

    def rates(self, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
        """Return dU at positions `q`, velocities `v` and joint forces `tau`."""
        C = self._inverse(q)
        a = self._mass_matrix(q, C)
        step("f")
        rest = [t - b for t, b in zip(tau, rnea.bias(self.tree, q, v), strict=True)]
        right = [ordered_sum(C[j][r] * rest[j] for j in C if r in C[j]) for r in range(self.tree.nv)]
        relative = solve(nonzero_triangle(a), right, coordinate_names(self.tree))
        step("G")
        moving = [Jet(x, dx) for x, dx in zip(q, v, strict=True)]
        A, B = self.choice(moving)
        G = [
            ordered_sum(jet(a).d * x for a, x in zip(row, v, strict=True)) + jet(b).d
            for row, b in zip(A, B, strict=True)
        ]
        return [x + g for x, g in zip(relative, G, strict=True)]

    def _inverse(self, q: Vector) -> Mapping[int, Mapping[int, Scalar]]:
        """Return C by rows; NaN where A is singular."""
        A, _ = self.choice(q)
        n = self.tree.nv
        order = choose_pivots(np.array(self.choice(list(self.nominal))[0], float))
        rows = [{k: x for k, x in enumerate(row) if not is_zero(x)} for row in A]
        step("C")
        solved = eliminate_unknowns(rows, order, [{r: -1.0} for r in map(_name, range(n))])
        scale = max(abs(float(x)) for row in self.choice(list(self.nominal))[0] for x in row)
        good: Scalar = 1.0
        for pivot in solved.pivots:
            if not isinstance(pivot, float) or abs(pivot) < MIN_PIVOT * scale:
                good = where(fabs(pivot) < MIN_PIVOT * scale, float("nan"), good)
        return {
            k: {r: -good * x for r in range(n) if not is_zero(x := line.get(_name(r), 0.0))}
            for k, line in solved.lines.items()
        }

    def _mass_matrix(self, q: Vector, C: Mapping[int, Mapping[int, Scalar]]) -> list[list[Scalar]]:
        tree, n = self.tree, self.tree.nv
        R, P = fixed_frame(tree, q)
        Z = axis_columns(tree, q, R)
        terms: list[list[list[Scalar]]] = [[[] for _ in range(n)] for _ in range(n)]
        for k, link in enumerate(tree.links):
            step("P", link.name)
            body, P_ki = FullRotation(R[k]).inertia(link.inertia.central), R[k] @ link.inertia.centre
            partial: dict[int, Motion] = {}
            for i in tree.path(k):
                for z in Z[i]:
                    step("V", link.name)
                    V = Motion(z.Z.ang, z.Z.lin + z.Z.ang.cross(P_ki))
                    for r, c in C[z.k].items():  # by U_r: the sum over the joints j of V_k(j) C_jr
                        partial[r] = partial[r] + V * c if r in partial else V * c
                step("P", link.name)
                P_ki = P[i] + P_ki
            for s, V_s in partial.items():
                step("F", link.name)
                F = body @ V_s  # N_k(s) = I_k W_k(s), F_k(s) = m_k V_k(s)
                step("a", link.name)
                for r, V_r in partial.items():
                    if r <= s:
                        terms[s][r].append(V_r.dot(F))
            for j in link.v_index:
                for s, c in C[j].items():
                    for r, d in C[j].items():
                        if r <= s and not is_zero(link.armature):
                            terms[s][r].append(c * d * link.armature)
        return [[ordered_sum(terms[max(r, s)][min(r, s)]) for r in range(n)] for s in range(n)]


def _name(r: int) -> str:
    return f"U{r}"


def joint_rates(q: Vector) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return A and B of U = Qdot at positions `q`."""
    n = len(q)
    return [[float(i == j) for j in range(n)] for i in range(n)], [0.0] * n


def absolute_rates(q: Vector) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return A and B of the sums of all joint rates down to the ground, for a serial chain at positions `q`."""
    n = len(q)
    return [[float(j <= i) for j in range(n)] for i in range(n)], [0.0] * n
