"""D. Wong 1991, sections 2.2.1-2.2.3: the methods that the thesis compares itself with, and their printed counts.

Counted as in tables 2.1, 3.1, 3.2 and 3.5: M is multiplications and divisions, A additions and subtractions, sines and
cosines are free, and so is everything that depends on constants alone; a serial chain of n general revolute joints on a
base along z. Featherstone's count excludes the force vector: it is for (q, phi), and so is that of Walker and Orin's
method as Featherstone implemented it. Walker's sum in table 3.1 contains Luh's force vector.

Where the print contradicts itself we compare with the smaller number, which `test_misprint...` records.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from bellcrank.dynamics import aba, crba, rnea
from bellcrank.dynamics.historical import inertial_frame, walker_orin
from bellcrank.graph import trace
from bellcrank.model import Tree
from bellcrank.papers.operation_counts import (
    PUBLISHED_COUNTS,
    PublishedCount,
    compare_counts,
    parse_polynomial,
    published,
    tally,
    tree,
)
from bellcrank.spatial.vector import ZERO
from trees import close, random_tree, state

COUNTS = published()["counts"]
KEYS = ("featherstone", "walker_orin_featherstone", "walker_orin_wong", "walker", "lilly_III")
OURS = [row for row in PUBLISHED_COUNTS if row.key in KEYS]
FIELDS = (6, 10)


def printed(table: str, key: str, n: int) -> Fraction:
    """M + A: of the polynomials, or of the table's own number if that is smaller."""
    row = COUNTS[table][key]
    least = parse_polynomial(row["M"])(n) + parse_polynomial(row["A"])(n)
    return min(least, Fraction(sum(row[f"n{n}"]))) if f"n{n}" in row else least


@pytest.mark.parametrize("row", OURS, ids=[f"{row.key}-{row.method}" for row in OURS])
@pytest.mark.parametrize("n", FIELDS)
def test_no_more_than_the_hand_count(row: PublishedCount, n: int) -> None:
    found = compare_counts(row)
    assert found.least_n <= 4
    assert found.ours(n) <= printed(row.table, row.key, n), f"M = {found.M}, A = {found.A}"


def test_walker_and_orin_grow_as_featherstone_counted_them() -> None:
    """n^3/6 + 23 n^2/2 and n^3/6 + 7 n^2 are the costs of recursion and solution in body coordinates, then and now."""
    row = next(row for row in PUBLISHED_COUNTS if row.key == "walker_orin_featherstone")
    found = compare_counts(row)
    assert found.M.coefficients[2:] == parse_polynomial(row.printed["M"]).coefficients[2:]
    assert found.A.coefficients[2:] == parse_polynomial(row.printed["A"]).coefficients[2:]


def test_bae_hwang_with_the_force_vector() -> None:
    """Table 2.1 counts M and the force vector together; ours is Luh's, and nothing is shared between the two.

    In the inertial frame an element of M is a product of six terms: 3 n^2 and 5 n^2/2, as printed.
    """
    row = PublishedCount("mass_matrix_and_force_vector", "bae", "bae_hwang", "mass_matrix", ("q",))
    found = compare_counts(row)
    assert found.M.coefficients[2] == parse_polynomial(row.printed["M"]).coefficients[2] == 3
    assert found.A.coefficients[2] == parse_polynomial(row.printed["A"]).coefficients[2] == Fraction(5, 2)
    force = replace(row, method="rnea", function="bias", inputs=("q", "v"))
    for n in FIELDS:
        assert found.ours(n) + compare_counts(force).ours(n) <= printed(row.table, row.key, n)


def test_the_inertial_frame_is_dearer() -> None:
    """Lilly and Orin's third method is Bae and Hwang's in body coordinates, as crba is.

    For six joints the inertial frame is more expensive than both, because every inertia must be rotated into it; at ten
    it is cheaper than Lilly's count, because forces need not be moved. Featherstone's method is also cheaper in body
    coordinates (aba).
    """
    bae = compare_counts(PublishedCount("mass_matrix", "lilly_III", "bae_hwang", "mass_matrix", ("q",)))
    best = compare_counts(PublishedCount("mass_matrix", "lilly_III", "crba", "mass_matrix", ("q",)))
    assert best.ours(6) < bae.theirs(6) < bae.ours(6)
    assert best.ours(10) < bae.ours(10) < bae.theirs(10)
    inertial = compare_counts(
        PublishedCount("forward_dynamics", "featherstone", "featherstone", "accelerations", ("q", "phi"))
    )
    assert all(phi_given(aba, n) < inertial.ours(n) < inertial.theirs(n) for n in FIELDS)


# -- our best method against every published count


def phi_given(by: Any, n: int) -> int:
    """M + A of M^-1 phi: the method at rest without gravity, where its velocity terms are folded away."""
    still = replace(tree(n, True), gravity=ZERO)
    shapes: dict[str, tuple[int, ...]] = {"q": (n,), "phi": (n,)}
    return sum(tally(trace("phi", lambda q, phi: {"a": by.forward_dynamics(still, q, [0.0] * n, phi)}, shapes)))


def included(by: Any, n: int) -> int:
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("q", "v", "tau"), (n,))
    return sum(tally(trace("all", lambda **x: {"a": by.forward_dynamics(tree(n, True), *x.values())}, shapes)))


# The tables do not state what Valasek's count contains; ours with the velocity terms is below it.
PHI_GIVEN = ("saha", "featherstone", "walker_orin_featherstone")


@pytest.mark.parametrize("key", COUNTS["forward_dynamics"])
@pytest.mark.parametrize("n", FIELDS)
def test_our_best_forward_dynamics_is_the_best(key: str, n: int) -> None:
    scope = phi_given if key in PHI_GIVEN else included
    best = min(scope(crba, n), scope(aba, n))
    assert best < printed("forward_dynamics", key, n)


@pytest.mark.parametrize("key", COUNTS["mass_matrix"])
@pytest.mark.parametrize("n", FIELDS)
def test_our_best_mass_matrix_is_the_best(key: str, n: int) -> None:
    row = PublishedCount("mass_matrix", key, "crba", "mass_matrix", ("q",))
    assert compare_counts(row).ours(n) < printed("mass_matrix", key, n)


# -- contradictions of the tables


def at(table: str, key: str, what: str, sizes: range) -> list[Fraction]:
    return [parse_polynomial(COUNTS[table][key][what])(n) for n in sizes]


def test_misprint_in_table_3_5_for_walker() -> None:
    """Table 3.5 has 11 n^2 multiplications where tables 2.1 and 3.1 have 27 n^2/2, which is the sum of the parts."""
    M = [631, 907, 1208, 1537, 1893, 2279, 2694, 3141, 3619, 4131]
    A = [513, 742, 991, 1261, 1553, 1868, 2207, 2571, 2961, 3378]
    sizes = range(3, 13)
    exact = at("forward_dynamics", "walker_orin_wong", "M", sizes)
    less = [Fraction(5, 2) * n**2 for n in sizes]
    assert all(abs(x - y - m) <= Fraction(1, 2) for x, y, m in zip(exact, less, M, strict=True))
    assert at("forward_dynamics", "walker_orin_wong", "A", sizes) == A
    parts = [137 * n - 22 + parse_polynomial(COUNTS["mass_matrix"]["walker"]["M"])(n) for n in sizes]
    solver = at("wong_parts", "cholesky", "M", sizes)
    assert exact == [p + s for p, s in zip(parts, solver, strict=True)]


def test_misprints_in_table_3_2() -> None:
    """Two numbers are misprints: 555 for 553 (Walker, five joints), 664 for 674 (Fijany, six). Lilly's are right."""
    sizes = range(4, 8)
    assert at("mass_matrix", "walker", "M", sizes) == [389, 553, 741, 953]
    assert at("mass_matrix", "walker", "A", sizes) == [327, 457, 601, 759]
    assert at("mass_matrix", "VCRB", "M", sizes) == [353, 509, 674, 848]
    assert at("mass_matrix", "lilly_I", "M", sizes) == [288, 512, 810, 1188]
    assert at("mass_matrix", "lilly_III", "M", sizes) == [261, 398, 560, 747]
    assert at("mass_matrix", "lilly_III", "A", sizes) == [240, 352, 480, 624]


def test_misprint_for_featherstones_walker() -> None:
    """The polynomial gives 475 additions for six joints, the table 480; at ten they agree."""
    row = COUNTS["forward_dynamics"]["walker_orin_featherstone"]
    assert [parse_polynomial(row["A"])(n) for n in FIELDS] == [475, 1209]
    assert [row["n6"][1], row["n10"][1]] == [480, 1209]


# -- the force vector may be given


@pytest.mark.parametrize("by", [inertial_frame, walker_orin])
def test_a_given_force_vector(by: Any) -> None:
    m = random_tree(3, ["revolute", "universal", "spherical", "prismatic", "cylindrical"], armature=True)
    q, v, tau = state(m)
    phi = [t - c for t, c in zip(tau, rnea.bias(m.tree, q, v), strict=True)]
    close(by.accelerations(m.tree, q, phi), aba.forward_dynamics(m.tree, q, v, tau), 1e-10)


def massless(form: Tree, *bodies: int) -> Tree:
    nothing = replace(form.links[0].inertia, m=0.0, h=ZERO)
    links = [replace(link, inertia=nothing) if i in bodies else link for i, link in enumerate(form.links)]
    return replace(form, links=tuple(links))


@pytest.mark.parametrize("bodies", [(0,), (3,), (2, 3), (0, 1, 2, 3)])
def test_composites_without_mass(bodies: tuple[int, ...]) -> None:
    m = random_tree(5, ["revolute", "revolute", "prismatic", "revolute"], [1, 2, 3, 3])
    form, (q, _, _) = massless(m.tree, *bodies), state(m)
    close(walker_orin.mass_matrix(form, q), crba.mass_matrix(form, q))
    close(inertial_frame.mass_matrix(form, q), crba.mass_matrix(form, q))
