"""Fijany 1989: the mass matrix by eight algorithms, their operation counts on one processor and their parallel depth.

The slides count multiplications and additions for a general chain of n revolute joints; sines and cosines are free. In
parallel they count on n(n+1)/2 processors, one for each element: each computes a vector equation of its row and column
one operation after the other, and all wait for the slowest before the next equation. L is ceil(log2 n). Our `span` is
stricter: every single operation has its own processor.

Where the print contradicts itself, `test_the_print_disagrees_with_itself` records it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from bellcrank.dynamics import METHODS
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.papers import operation_counts as papers
from bellcrank.zoo import families

SERIAL = ("oke", "vke", "oneb", "vneb", "ocrb", "vcrb")
PARALLEL = {"vneb_parallel": "VNEB_n2", "vcrb_parallel": "VCRB_n2"}
ROWS = {row.key: row for row in papers.PUBLISHED_COUNTS if row.table == "mass_matrix" and row.method in SERIAL}
ONE_EACH = {"mul": 1.0, "add": 1.0, "sub": 1.0, "div": 1.0, "neg": 0.0, "sin": 0.0, "cos": 0.0}
POWERS = (2, 4, 8, 16, 32, 64)
OTHERS = (3, 5, 6, 7, 9, 12, 17, 24)


def of_mechanism(method: str, m: Mechanism, emptied: bool = True) -> Graph:
    by, form = METHODS[method], papers.regrouped(m.tree) if emptied and METHODS[method].regrouped else m.tree
    return trace(method, lambda q: {"M": by.function("mass_matrix")(form, q)}, {"q": (form.nq,)})


@cache
def graph(method: str, n: int) -> Graph:
    return of_mechanism(method, papers.chain(n))


@cache
def span(method: str, n: int) -> float:
    return graph(method, n).span(ONE_EACH)


def counts(method: str, emptied: bool = True) -> tuple[papers.Polynomial, papers.Polynomial]:
    tally = {n: papers.tally(of_mechanism(method, papers.chain(n), emptied)) for n in papers.FIT_SIZES}
    M, _ = papers.fit_polynomial({n: c[0] for n, c in tally.items()})
    A, _ = papers.fit_polynomial({n: c[1] for n, c in tally.items()})
    return M, A


def of_n(printed: Any, n: int) -> tuple[int, int]:
    """M and A as the slides print them, in n or in L."""
    L = math.ceil(math.log2(n))
    M, A = (papers.parse_polynomial(printed[x].replace("L", "n"))(L if "L" in printed[x] else n) for x in ("M", "A"))
    return int(M), int(A)


@cache
def on_the_array(method: str, n: int) -> tuple[int, int]:
    """Parallel M and A as the slides count them: the sum over equations of those of the busiest processor.

    A label "N1(link2)[link5]" is the second doubling of N on the processor of column 2, row 5.
    """
    busy: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for node in graph(method, n).nodes:
        if ONE_EACH.get(node.op):
            equation = node.label.partition("[")[0].partition("(")[0]
            busy[equation, "M" if node.op in ("mul", "div") else "A"][node.label] += 1
    M, A = (sum(max(done.values()) for (_, x), done in busy.items() if x == kind) for kind in "MA")
    return M, A


# -- one processor


@pytest.mark.parametrize("key", ROWS)
def test_no_more_operations_than_the_print(key: str) -> None:
    found = papers.compare_counts(ROWS[key])
    for n in papers.FIT_SIZES:
        assert found.ours(n) <= found.theirs(n)
    assert found.M(6) + found.A(6) < found.theirs(6)
    assert found.M(10) + found.A(10) < found.theirs(10)


@pytest.mark.parametrize(("method", "key"), [("vneb", "VNEB"), ("vcrb", "VCRB")])
def test_work_per_pair_of_joints_equals_the_paper(method: str, key: str) -> None:
    """For general bodies the n^2 terms equal the printed ones exactly: same equations, same operations.

    Savings are in the terms with n, where frames and elementary rotations help.
    """
    printed = papers.published()["counts"]["mass_matrix"][key]
    for ours, theirs in zip(counts(method, emptied=False), (printed["M"], printed["A"]), strict=True):
        theirs = papers.parse_polynomial(theirs)
        assert ours.coefficients[2] == theirs.coefficients[2]
        assert ours.coefficients[1] < theirs.coefficients[1]


@pytest.mark.parametrize("method", SERIAL)
def test_order_of_growth(method: str) -> None:
    """Slides "An O(n^3) Algorithm" and "An O(n^2) Algorithm"; all but the first are quadratic."""
    M, A = counts(method)
    degree = 3 if method == "oke" else 2
    assert len(M.coefficients) == len(A.coefficients) == degree + 1
    if method == "oke":  # a triple costs two scalar products and their sum, and there are n^3/6 of them
        assert M.coefficients[3] == Fraction(6, 6)
        assert A.coefficients[3] == Fraction(6, 6)


def test_variants_are_cheaper_than_originals() -> None:
    """Slide "Comparison of Serial Efficiency": composite bodies are far cheaper than Newton-Euler, too."""
    total = {method: sum(papers.tally(graph(method, 12))) for method in SERIAL}
    assert total["vke"] < total["oke"]
    assert total["vneb"] < total["oneb"]
    assert total["vcrb"] < total["ocrb"]
    assert 2 * total["vcrb"] < total["vneb"]
    assert abs(total["vke"] - total["vneb"]) < 0.1 * total["vneb"]  # "clearly equivalent"


def test_the_print_disagrees_with_itself() -> None:
    """VCRB at n = 6: the slides print 644 multiplications, their polynomial gives 674, and Wong's table 3.2 prints 664.

    That table follows the polynomial for 4, 5 and 7 joints, so 664 is a misprint of 674. The speed-ups of the last
    slide use both wrong numbers: 664 for VCRB, 644 for VNEB. All other numbers agree.
    """
    serial, parallel = papers.published()["counts"]["mass_matrix"], papers.published()["counts"]["parallel_mass_matrix"]
    M, A = papers.parse_polynomial(serial["VCRB"]["M"]), papers.parse_polynomial(serial["VCRB"]["A"])
    assert (serial["VCRB"]["n6"], M(6), A(6)) == ([644, 535], 674, 535)
    wong = {4: (353, 279), 5: (509, 403), 6: (664, 535), 7: (848, 675)}
    assert [n for n, c in wong.items() if (M(n), A(n)) != c] == [6]
    assert of_n(serial["VNEB"], 6) == tuple(serial["VNEB"]["n6"])
    used = {"VCRB_n2": 664, "VCRB_n": 664, "VNEB_n2": 644, "VNEB_n": 644}
    for key, multiplications in used.items():
        time = sum(parallel[key]["n6"])
        assert (multiplications + 535) / time == pytest.approx(parallel[key]["SP"], abs=0.01)
        assert (644 + 664 - multiplications + 535) / time != pytest.approx(parallel[key]["SP"], abs=0.01)
    for key in PARALLEL.values():
        assert of_n(parallel[key], 6) == tuple(parallel[key]["n6"])


# -- many processors


@pytest.mark.parametrize("method", PARALLEL)
def test_a_doubling_costs_the_same_every_time(method: str) -> None:
    """The path grows like log2 n: by 3 for the product of two rotations and 1 for each doubled sum."""
    spans = [span(method, n) for n in POWERS]
    steps = {b - a for a, b in pairwise(spans[2:])}  # from 8 joints on
    assert len(steps) == 1
    assert max(steps) <= 6
    assert all(span(method, n) <= span(method, 2 ** math.ceil(math.log2(n))) for n in OTHERS)


@pytest.mark.parametrize("method", SERIAL)
def test_serial_paths_grow_by_the_joint(method: str) -> None:
    """The growth per joint is constant, apart from the ends of the chain."""
    spans = [span(method, n) for n in (6, 11, 16)]
    assert spans[2] - spans[1] == pytest.approx(spans[1] - spans[0], abs=1)
    assert spans[2] > 2 * max(span(name, 16) for name in PARALLEL)


@pytest.mark.parametrize(("method", "key"), PARALLEL.items())
def test_no_longer_than_the_print(method: str, key: str) -> None:
    """Ours is shorter on the slides' array, equation by equation, and still shorter with free processors."""
    printed = papers.published()["counts"]["parallel_mass_matrix"][key]
    for n in (*POWERS, *OTHERS):
        ours, theirs = on_the_array(method, n), of_n(printed, n)
        assert ours[0] <= theirs[0]
        assert ours[1] <= theirs[1]
        assert span(method, n) <= sum(ours)
    a, b, c = (on_the_array(method, n) for n in (16, 32, 64))
    assert (b[0] - a[0], b[1] - a[1]) == (c[0] - b[0], c[1] - b[1])  # linear in L, as printed


def test_newton_euler_wins_in_parallel() -> None:
    """Slide "Conclusion": composite bodies on one processor, Newton-Euler on n(n+1)/2."""
    for n in (6, 16, 64):
        assert sum(on_the_array("vneb_parallel", n)) < sum(on_the_array("vcrb_parallel", n))


@pytest.mark.parametrize("method", PARALLEL)
def test_every_joint_and_every_branch(method: str) -> None:
    """The slides have revolute chains; recursive doubling works for all joints and on trees."""
    mixed = [kind for kind in KINDS if kind != "fixed"]
    spans = [of_mechanism(method, families.chain(n, mixed, "general")).span(ONE_EACH) for n in (4, 8, 16)]
    assert spans[2] - spans[1] <= spans[1] - spans[0]
    bushy, thin = families.tree(31, 2, twist="general"), families.chain(5, twist="general")
    more = of_mechanism(method, bushy).span(ONE_EACH) - of_mechanism(method, thin).span(ONE_EACH)
    assert more <= 2 * math.ceil(math.log2(31))  # sums over the branches
