"""S. K. Saha, Simulation of industrial manipulators based on the UDU^T decomposition of inertia matrix, 2001.

The paper's counts (section 3): M is multiplications and divisions, A additions and subtractions, of one evaluation of
the joint accelerations of n revolute joints with a given force vector phi; sines and cosines are free; everything that
depends on constants alone is computed off-line. Ours is counted in the same way on a general chain
(bellcrank.papers.operation_counts).

The print contradicts itself: its counts by step add up to 192 n - 284 multiplications, not 191 n - 284; they omit M^_1,
which m^_1 requires, and count mu_n, which is not used. Scan or print are wrong in A.1 (d_i is in frame i), in (12)
(phi_i instead of tau_i), in A.7 (H is F) and in C.3 (mu_(i-1)(b) is added, not (t)).
"""

from __future__ import annotations

from math import cos, pi, sin, tau

import numpy as np
import pytest

from bellcrank import kernel, zoo
from bellcrank.build import graphs
from bellcrank.dynamics import crba, denoc, kinematics, rnea
from bellcrank.dynamics.tree_sweeps import poses
from bellcrank.model import Mechanism
from bellcrank.papers.operation_counts import (
    PUBLISHED_COUNTS,
    PublishedCount,
    chain,
    compare_counts,
    parse_polynomial,
    published,
)
from trees import Array, close, random_tree, state

PRINTED = published()["counts"]["forward_dynamics"]
TABLE_I = ("saha", "featherstone", "valasek", "brandl", "walker_orin_featherstone")
LINEAR = TABLE_I[:4]
OURS = {row.key: row for row in PUBLISHED_COUNTS if row.table == "forward_dynamics" and row.key in TABLE_I}


def count(key: str, what: str, n: int) -> int:
    """M, A, or M + A of a row of table I."""
    value = sum((parse_polynomial(PRINTED[key][x])(n) for x in what), start=parse_polynomial("0 n")(n))
    assert value.denominator == 1
    return int(value)


def first(key: str, other: str, what: str) -> int:
    """The least n from which on (to 60) a row of table I needs fewer operations than another."""
    dearer = [n for n in range(2, 60) if count(key, what, n) >= count(other, what, n)]
    return max(dearer, default=1) + 1


# -- contradictions of the print

# Section 3, the counts in braces: (M by n, M, A by n, A).
BRACES = {
    "A1 d": (4, 0, 2, 0),
    "A2 c": (0, 0, 3, -3),
    "A3a M^_n": (0, 16, 0, 17),
    "A3b M^_i": (86, -179, 101, -215),
    "A4a psi^_n": (0, 2, 0, 0),
    "A4b psi^_i": (12, -36, 12, -36),
    "A5 m^": (2, 0, 2, 0),
    "A6 psi": (6, -7, 0, 0),
    "A7a M^_nn": (0, 15, 0, 8),
    "A7b M^_ii": (21, -42, 21, -42),
    "A8a eta_n": (0, 5, 0, 0),
    "A8b eta_i": (6, -12, 6, -12),
    "A9 eta_i-1,i": (22, -26, 14, -18),
    "A10 tau^": (2, -2, 3, -3),
    "B tau~": (1, 0, 0, 0),
    "C1 ddtheta": (6, -6, 6, -6),
    "C2a mu_1": (0, 12, 0, 2),
    "C2b mu_i": (18, -18, 11, -11),
    "C3 mu_i,i-1": (6, -6, 6, -6),
}


def test_the_steps_add_up_to_the_total_but_for_n_multiplications() -> None:
    Mn, M, An, A = (sum(column) for column in zip(*BRACES.values(), strict=True))
    assert parse_polynomial(f"{An} n - {-A}") == parse_polynomial(PRINTED["saha"]["A"])
    assert parse_polynomial(f"{Mn} n - {-M}") == parse_polynomial("192 n - 284")
    assert parse_polynomial(PRINTED["saha"]["M"]) == parse_polynomial("191 n - 284")


@pytest.mark.parametrize("key", TABLE_I)
def test_table_I_has_the_values_of_its_polynomials(key: str) -> None:
    at_6 = [count(key, what, 6) for what in "MA"]
    if key == "walker_orin_featherstone":
        assert at_6 == [633, 475]
        assert PRINTED[key]["n6"] == [633, 480]  # the print disagrees with itself
    else:
        assert at_6 == PRINTED[key]["n6"]
    assert [count(key, what, 10) for what in "MA"] == PRINTED[key]["n10"]


def test_claims_of_the_paper_hold_in_its_table() -> None:
    for other in LINEAR[1:]:  # "the best in terms of multiplication count"
        assert first("saha", other, "M") == 2
    assert first("featherstone", "saha", "A") == 12  # and "of additions" up to eleven joints
    # "n >= 10 for the algorithm presented": this is true of multiplications alone; for all operations it is 12.
    assert first("saha", "walker_orin_featherstone", "M") == 10
    assert first("saha", "walker_orin_featherstone", "MA") == 12
    # "better than the one reported earlier", 201 n - 335 and 193 n - 361: from six joints on.
    earlier_M, earlier_A = parse_polynomial("201 n - 335"), parse_polynomial("193 n - 361")
    assert next(n for n in range(2, 20) if count("saha", "M", n) < earlier_M(n)) == 6
    assert next(n for n in range(2, 20) if count("saha", "A", n) <= earlier_A(n)) == 6


# -- our counts against the print


@pytest.mark.parametrize("row", OURS.values(), ids=OURS)
@pytest.mark.parametrize("n", [6, 10])
def test_no_more_operations_than_the_print(row: PublishedCount, n: int) -> None:
    """denoc is compared with the paper's own row, the other methods with the quoted rows.

    denoc and crba also have phi given; aba has all forces for Brandl's count, which includes them.
    """
    assert compare_counts(row).ours(n) <= compare_counts(row).theirs(n)
    assert compare_counts(row).counts[n][0] <= count(row.key, "M", n)
    assert compare_counts(row).counts[n][1] <= count(row.key, "A", n)


def test_saha_is_linear_and_overtakes_composite_bodies_at_ten_joints() -> None:
    linear, cubic = compare_counts(OURS["saha"]), compare_counts(OURS["walker_orin_featherstone"])
    assert len(linear.M.coefficients) == len(linear.A.coefficients) == 2
    assert linear.least_n <= 3
    assert next(n for n in linear.counts if linear.ours(n) < cubic.ours(n)) == 10


# -- U D U^T

ARMS = [zoo.planar3r(), zoo.stanford(), zoo.puma_saha(), random_tree(3, ["revolute", "prismatic"] * 4)]


def factors(m: Mechanism, q: list[float]) -> tuple[Array, Array]:
    F = np.array(denoc.mass_matrix_factors(m.tree, q), dtype=float)
    assert np.array_equal(F, np.triu(F))
    return np.triu(F, 1) + np.eye(m.nv), np.diag(F)


@pytest.mark.parametrize("m", ARMS, ids=lambda m: m.name)
def test_the_factors_are_articulated_bodies_seen_from_the_joints(m: Mechanism) -> None:
    q, _, _ = state(m, 1)
    M = np.array(crba.mass_matrix(m.tree, q))
    U, D = factors(m, q)
    close(U @ np.diag(D) @ U.T, M)  # 11
    assert D.min() > 0
    for k in range(m.nv):
        # The arm from joint k on is free to move, and its carrier is fixed: a unit force on joint k ...
        outer = np.linalg.inv(M[k:, k:])[:, 0]
        close(D[k], 1 / outer[0])  # ... accelerates it by 1 / m^_k: the inertia of articulated body k about its joint
        close(U[:k, k], M[:k, k:] @ outer)  # ... and acts as alpha_ik on joint i


@pytest.mark.parametrize("m", ARMS, ids=lambda m: m.name)
def test_the_inverse_is_symmetric_and_an_inverse(m: Mechanism) -> None:
    q, _, _ = state(m, 2)
    for method in (denoc, crba):
        R = np.array(method.inverse_mass_matrix(m.tree, q))
        assert np.array_equal(R, R.T)
        close(R @ np.array(crba.mass_matrix(m.tree, q)), np.eye(m.nv), 1e-10)


def test_bodies_beside_each_other_do_not_fill_the_factors_in() -> None:
    """U has an element only where one joint carries the other, the inverse only where they share a carrier."""
    m = random_tree(5, ["revolute"] * 5, parents=[0, 1, 1, 2, 0])
    above: list[set[int]] = []
    for i, link in enumerate(m.tree.links):
        above.append({i} | (above[link.parent] if link.parent >= 0 else set()))
    q, _, _ = state(m, 3)
    U, _ = factors(m, q)
    R = np.array(denoc.inverse_mass_matrix(m.tree, q))
    assert any(not (a & b) for a in above for b in above)
    for i in range(m.nv):
        for j in range(m.nv):
            assert (U[i, j] != 0) == (i in above[j])
            assert (R[i, j] != 0) == bool(above[i] & above[j])


# -- the three-joint planar arm


def planar(q: Array, v: Array, a: Array) -> Array:
    """Torques of three equal rods in a vertical plane by Lagrange's equations in the absolute angles th.

    T = sum J_i w_i^2 / 2 + K12 w1 w2 cos(th2 - th1) + K13 w1 w3 cos(th3 - th1) + K23 w2 w3 cos(th3 - th2), as in
    textbooks.
    """
    given, g = zoo.data("planar3r"), 9.81
    m, l = given["mass"], given["length"]
    th, w, al = np.cumsum(q), np.cumsum(v), np.cumsum(a)
    rod = m * l * l / 3  # about its end
    J1, J2, J3 = rod + 2 * m * l * l, rod + m * l * l, rod
    K12, K13, K23 = 1.5 * m * l * l, 0.5 * m * l * l, 0.5 * m * l * l
    c2, s2, c3, s3, c23, s23 = cos(q[1]), sin(q[1]), cos(q[2]), sin(q[2]), cos(q[1] + q[2]), sin(q[1] + q[2])
    E1 = J1 * al[0] + K12 * (c2 * al[1] - s2 * w[1] ** 2) + K13 * (c23 * al[2] - s23 * w[2] ** 2)
    E2 = J2 * al[1] + K12 * (c2 * al[0] + s2 * w[0] ** 2) + K23 * (c3 * al[2] - s3 * w[2] ** 2)
    E3 = J3 * al[2] + K13 * (c23 * al[0] + s23 * w[0] ** 2) + K23 * (c3 * al[1] + s3 * w[1] ** 2)
    E1, E2, E3 = (E + k * m * g * l * cos(x) for E, k, x in zip((E1, E2, E3), (2.5, 1.5, 0.5), th, strict=True))
    return np.array([E1 + E2 + E3, E2 + E3, E3])


def explicit(q: Array, v: Array, torque: Array) -> Array:
    """Solve these equations for the accelerations."""
    still = planar(q, v, np.zeros(3))
    M = np.transpose([planar(q, v, e) - still for e in np.eye(3)])
    return np.asarray(np.linalg.solve(M, torque - still))


@pytest.mark.parametrize("seed", range(5))
def test_the_planar_arm_follows_its_explicit_equations(seed: int) -> None:
    m = zoo.planar3r()
    q, v, a = (np.array(x) for x in state(m, seed))
    close(denoc.forward_dynamics(m.tree, q.tolist(), v.tolist(), planar(q, v, a).tolist()), a)
    still = planar(q, 0 * v, 0 * a)
    M = np.transpose([planar(q, 0 * v, e) - still for e in np.eye(3)])
    close(denoc.mass_matrix(m.tree, q.tolist()), M)


def trajectory(t: float, T: float, end: float = pi, start: float = 0.0) -> tuple[float, float, float]:
    """Eq 18, its rate and acceleration; as printed it ends at pi, and section 4 scales it to other ends."""
    w, reach = tau / T, (end - start) / tau
    return start + reach * (w * t - sin(w * t)), reach * w * (1 - cos(w * t)), reach * w * w * sin(w * t)


def test_the_trajectory_starts_and_ends_at_rest() -> None:
    T = 10.0
    for t in np.linspace(0, T, 7):
        assert trajectory(t, T)[0] == pytest.approx((tau / T * t - sin(tau / T * t)) / 2)  # 18
    assert trajectory(0, T, 60.0, 90.0) == pytest.approx((90.0, 0, 0), abs=1e-12)
    assert trajectory(T, T, 60.0, 90.0) == pytest.approx((60.0, 0, 0), abs=1e-12)
    t, h = 3.0, 1e-4
    (x0, v0, _), (_, v1, a1), (x2, v2, _) = (trajectory(t + k * h, T) for k in (-1, 0, 1))
    assert (x2 - x0) / (2 * h) == pytest.approx(v1, rel=1e-7)
    assert (v2 - v0) / (2 * h) == pytest.approx(a1, rel=1e-7)


@pytest.mark.parametrize("forced", [False, True])
def test_simulations_of_the_planar_arm_match(forced: bool) -> None:
    """Free fall, and the torques of eq 18 fed in: "the results in both the cases exactly match"."""
    m, T, h = zoo.planar3r(), 10.0, 0.01
    fast = kernel(m, "forward_dynamics", method="denoc").function

    def torque(t: float) -> Array:
        x, v, a = trajectory(t, T)
        return planar(np.full(3, x), np.full(3, v), np.full(3, a)) if forced else np.zeros(3)

    runs = [(np.zeros(3), np.zeros(3))] * 2
    for k in range(200):
        u = [torque(k * h + c * h) for c in (0.0, 0.5, 1.0)]
        for i, f in enumerate((fast, explicit)):
            q, v = runs[i]
            k1 = f(q, v, u[0])
            k2 = f(q + h / 2 * v, v + h / 2 * k1, u[1])
            k3 = f(q + h / 2 * v + h * h / 4 * k1, v + h / 2 * k2, u[1])
            k4 = f(q + h * v + h * h / 2 * k2, v + h * k3, u[2])
            runs[i] = q + h * v + h * h / 6 * (k1 + k2 + k3), v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    close(runs[0], runs[1], 1e-9)
    if forced:
        close(runs[0][0], np.full(3, trajectory(2.0, T)[0]), 1e-7)


def test_the_force_vector_is_inverse_dynamics_at_rest() -> None:
    """Eq 1: phi = tau - C dtheta, where section 2 computes C dtheta by inverse dynamics with ddtheta = 0."""
    m = zoo.stanford()
    q, v, f = state(m, 4)
    phi = (np.array(f) - np.array(rnea.inverse_dynamics(m.tree, q, v, [0.0] * 6))).tolist()
    close(denoc.accelerations(m.tree, q, phi), denoc.forward_dynamics(m.tree, q, v, f), 1e-10)


# -- inverse dynamics and the convective matrix


def orthogonal_complement(m: Mechanism, q: Array) -> tuple[Array, list[Array]]:
    """Return N_l N_d of (2) at the mass centres, and the axes of each body, in world axes."""
    rows, axes = [], []
    for link, (R, _) in zip(m.tree.links, poses(m.tree, q.tolist()), strict=True):
        J = np.array(kinematics.jacobian(m.tree, q.tolist(), link.name), float)  # linear, then angular
        A = np.array([list(row) for row in R.rows], float)
        arm = A @ (np.array([*link.inertia.centre], float) - np.array([*m.tree.frames[link.name][2]], float))
        rows += [J[3:], J[:3] + np.cross(J[3:], arm, axis=0)]
        axes.append(A)
    return np.vstack(rows), axes


@pytest.mark.parametrize("name", ["stanford", "puma600"])
def test_inverse_dynamics_and_C_are_projections_by_the_complement(name: str) -> None:
    """C = N^T (M N' + W M N), with N' as a difference; the moments of W are Omega I or Omega (I - tr(I)/2 1)."""
    m = zoo.load(name)
    q, v, a = (np.array(x, float) for x in state(m, 3))
    e = 1e-5
    N, axes = orthogonal_complement(m, q)
    dN = (orthogonal_complement(m, q + e * v)[0] - orthogonal_complement(m, q - e * v)[0]) / (2 * e)
    (M, *W), weight = (np.zeros((len(N), len(N))) for _ in range(3)), np.zeros(len(N))
    for i, (link, R) in enumerate(zip(m.tree.links, axes, strict=True)):
        I, w = R @ np.array([[*row] for row in link.inertia.I_centre.rows], float) @ R.T, N[6 * i : 6 * i + 3] @ v
        Omega = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        k, three = 6 * i, slice(6 * i, 6 * i + 3)
        M[three, three], M[k + 3 : k + 6, k + 3 : k + 6] = I, link.inertia.m * np.eye(3)
        W[0][three, three] = Omega @ I
        W[1][three, three] = Omega @ (I - np.trace(I) / 2 * np.eye(3))
        weight[k + 3 : k + 6] = link.inertia.m * np.array(m.gravity)
    rate, product, particles = (N.T @ x for x in (M @ dN, W[0] @ N, W[1] @ N))
    C = np.array(denoc.coriolis_matrix(m.tree, q.tolist(), v.tolist()), float)
    size = np.abs(C).max()
    close(C, rate + particles, 1e-8 * size)
    close(C @ v, (rate + product) @ v, 1e-8 * size)
    assert np.abs(C - (rate + product)).max() > 1e-3 * size  # the matrices differ, their forces do not
    tau = N.T @ (M @ (N @ a + dN @ v) + W[0] @ N @ v - weight)
    close(denoc.inverse_dynamics(m.tree, *(x.tolist() for x in (q, v, a))), tau, 1e-8 * np.abs(tau).max())


def test_inverse_dynamics_is_linear_in_the_number_of_joints() -> None:
    """The paper prints no count for it; each further joint costs as much as the one before."""
    counts = [graphs.graph(chain(n), "inverse_dynamics", "denoc").count().arithmetic for n in (6, 7, 8, 9)]
    assert set(np.diff(counts)) == {183}
