"""Operation counts printed in the papers, beside the counts of this package: `bellcrank count chain --papers`.

Every method is traced on a general serial chain of n revolute joints: joint 1 lies along z of the base, gravity lies
along z, and no twist, offset, centre of mass or inertia has a special value. The counts for n = 2..12 are fitted by a
polynomial with rational coefficients that must interpolate every count from `least_n` on. As in the papers, M is the
number of multiplications and divisions, A that of additions and subtractions; negations and the sines and cosines of
the joint angles are free. Constant folding of the graph does off-line what depends on constants alone.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from typing import Any

from bellcrank.dynamics import METHODS
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, Tree, regrouped
from bellcrank.zoo.families import general_chain

FIT_SIZES = tuple(range(2, 13))


@dataclass(frozen=True)
class Polynomial:
    """Polynomial in n, given by the coefficients of 1, n, n^2, ..."""

    coefficients: tuple[Fraction, ...]

    def __call__(self, n: int) -> Fraction:
        """Evaluate the polynomial at `n`."""
        return sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))

    def __str__(self) -> str:
        terms = []
        for k, c in reversed(list(enumerate(self.coefficients))):
            if c:
                power = {0: "", 1: "n"}.get(k, f"n^{k}")
                numerator = "" if abs(c.numerator) == 1 and k else str(abs(c.numerator))
                denominator = "" if c.denominator == 1 else f"/{c.denominator}"
                space = " " if numerator and power else ""
                terms.append(("- " if c < 0 else "+ ") + numerator + space + power + denominator)
        text = " ".join(terms).removeprefix("+ ") or "0"
        return "-" + text[2:] if text.startswith("- ") else text


def parse_polynomial(text: str) -> Polynomial:
    """Parse a polynomial from `text` as the papers print it, such as "n^3/6 + 27 n^2/2 - 49"."""
    coefficients: dict[int, Fraction] = {}
    for sign, numerator, n, power, denominator in re.findall(
        r"([+-]?)\s*(\d*)\s*(n?)(?:\^(\d))?(?:/(\d+))?(?=\s|$)", text
    ):
        if numerator or n:
            value = Fraction(int(numerator or 1), int(denominator or 1))
            k = int(power or 1) if n else 0
            coefficients[k] = coefficients.get(k, Fraction(0)) + (-value if sign == "-" else value)
    return Polynomial(tuple(coefficients.get(k, Fraction(0)) for k in range(max(coefficients) + 1)))


def evaluate_formula(formula: str, n: int) -> int:
    """Evaluate a printed polynomial in n, L = ceil(log2 n) and ceil((n + 1)/2).

    Parameters
    ----------
    formula
        Polynomial as text.
    n
        Number of joints.
    """
    values = {"n": n, "L": math.ceil(math.log2(n)), "ceil((n+1)/2)": math.ceil((n + 1) / 2), "": 1}
    terms = re.findall(r"([+-]?)\s*(\d*)\s*(ceil\(\(n\+1\)/2\)|n|L|)(?=\s|$)", formula)
    return sum((-1 if sign == "-" else 1) * int(k or 1) * values[symbol] for sign, k, symbol in terms if k or symbol)


def fit_polynomial(counts: Mapping[int, int], degree: int = 3) -> tuple[Polynomial, int]:
    """Fit a polynomial of least degree to the counts from some n on; return it and that n.

    At least three more points than coefficients must agree, so that a fit is no coincidence.

    Parameters
    ----------
    counts
        Count by number of joints.
    degree
        Largest degree to try.
    """
    sizes = sorted(counts)
    for k in range(degree + 1):
        for skip in range(len(sizes) - (k + 4) + 1):
            used = sizes[skip:]
            p = _interpolate(used[: k + 1], [counts[n] for n in used[: k + 1]])
            if all(p(n) == counts[n] for n in used):
                return p, used[0]
    raise ValueError(f"no polynomial of degree {degree} goes through {dict(counts)}")


def _interpolate(xs: Sequence[int], ys: Sequence[int]) -> Polynomial:
    """Interpolate by Newton's divided differences in exact arithmetic."""
    table = [Fraction(y) for y in ys]
    for level in range(1, len(xs)):
        for i in reversed(range(level, len(xs))):
            table[i] = (table[i] - table[i - 1]) / (xs[i] - xs[i - level])
    total, basis = [Fraction(0)] * len(xs), [Fraction(1)]
    for level, c in enumerate(table):
        for k, b in enumerate(basis):
            total[k] += c * b
        basis = [a - xs[level] * b for a, b in zip([Fraction(0), *basis], [*basis, Fraction(0)], strict=True)]
    return Polynomial(tuple(total))


# -- comparison


@dataclass(frozen=True)
class PublishedCount:
    """One line of a paper's table, and the function of this package that does the same work."""

    table: str  # table in published.toml
    key: str
    method: str  # method of this package
    function: str  # function in the method's module
    inputs: tuple[str, ...]
    given: str = ""  # function of q that the paper counts elsewhere; operations shared with it are free

    @property
    def title(self) -> str:
        """Name of the published count and its scope."""
        part = self.table.removesuffix("_parts") + " " if self.table.endswith("_parts") else ""
        return f"{part}{self.key.replace('_', ' ')}{SCOPE_TITLES.get(self.inputs, '')}"

    @property
    def printed(self) -> Mapping[str, Any]:
        """Published formulas, as read from the paper."""
        return published()["counts"][self.table][self.key]  # type: ignore[no-any-return]

    def traced(self, n: int) -> Graph:
        """Trace the function for a chain of `n` bodies."""
        f = self._bound_function(n, self.function)
        return trace(f"{self.key}.{self.function}", lambda **x: {"out": f(*x.values())}, self._shapes(n))

    def tally(self, n: int) -> tuple[int, int]:
        """Return multiplications and additions for `n` bodies, less those of the function in `given`."""
        if not self.given:
            return tally(self.traced(n))
        f, g = self._bound_function(n, self.function), self._bound_function(n, self.given)
        both = trace(self.key, lambda **x: {"given": g(x["q"]), "out": f(*x.values())}, self._shapes(n))
        (M, A), (M0, A0) = tally(both), tally(trace(self.key, lambda q: {"given": g(q)}, {"q": (n,)}))
        return M - M0, A - A0

    def _bound_function(self, n: int, function: str) -> Callable[..., Any]:
        dynamics_method = METHODS[self.method]
        return partial(dynamics_method.function(function), tree(n, dynamics_method.regrouped))

    def _shapes(self, n: int) -> dict[str, tuple[int, ...]]:
        return {x: (n, n) if x == "M" else (n,) for x in self.inputs}


# The inputs define the scope of a count: v adds the velocity terms, "phi" means that the force vector is given.
PUBLISHED_COUNTS: tuple[PublishedCount, ...] = (
    # wong1991, tables 2.1, 3.1 and 3.5
    PublishedCount("forward_dynamics", "wong", "ness", "forward_dynamics", ("q", "v", "tau")),
    PublishedCount("wong_parts", "inertia_matrix", "ness", "mass_matrix", ("q",)),
    PublishedCount("wong_parts", "force_vector", "ness", "bias", ("q", "v"), given="mass_matrix"),
    PublishedCount("wong_parts", "cholesky", "ness", "accelerations", ("M", "b")),
    PublishedCount("forward_dynamics", "angeles", "angeles", "forward_dynamics", ("q", "v", "tau")),
    PublishedCount("angeles_parts", "inertia_matrix", "angeles", "mass_matrix", ("q",)),
    PublishedCount("angeles_parts", "force_vector", "angeles", "bias", ("q", "v")),
    PublishedCount("forward_dynamics", "walker_orin_wong", "walker_orin", "forward_dynamics", ("q", "v", "tau")),
    PublishedCount("mass_matrix", "walker", "walker_orin", "mass_matrix", ("q",)),
    PublishedCount("mass_matrix", "lilly_I", "ness", "mass_matrix", ("q",)),
    PublishedCount("mass_matrix", "lilly_III", "crba", "mass_matrix", ("q",)),
    # saha2001, table I
    PublishedCount("forward_dynamics", "saha", "denoc", "accelerations", ("q", "phi")),
    PublishedCount("forward_dynamics", "featherstone", "featherstone", "accelerations", ("q", "phi")),
    PublishedCount("forward_dynamics", "featherstone", "denoc", "accelerations", ("q", "phi")),
    PublishedCount("forward_dynamics", "valasek", "denoc", "accelerations", ("q", "phi")),
    PublishedCount("forward_dynamics", "brandl", "aba", "forward_dynamics", ("q", "v", "tau")),
    PublishedCount("forward_dynamics", "walker_orin_featherstone", "walker_orin", "accelerations", ("q", "phi")),
    PublishedCount("forward_dynamics", "walker_orin_featherstone", "crba", "accelerations", ("q", "phi")),
    # fijany1989
    PublishedCount("mass_matrix", "VNEB", "vneb", "mass_matrix", ("q",)),
    PublishedCount("mass_matrix", "VCRB", "vcrb", "mass_matrix", ("q",)),
)

SCOPE_TITLES = {("q",): ", mass matrix", ("q", "phi"): ", forces given", ("q", "v", "tau"): ", all included"}


@cache
def published() -> Mapping[str, Any]:
    """Return the printed numbers, read from the scans, with an explanation of their contradictions."""
    return tomllib.loads(files("bellcrank.zoo").joinpath("published.toml").read_text(encoding="utf-8"))


@cache
def chain(n: int) -> Mechanism:
    """Return the general chain of `n` joints."""
    return general_chain(n)


@cache
def tree(n: int, emptied: bool) -> Tree:
    """Return the tree of the general chain of `n` joints; if `emptied`, with its inertias regrouped."""
    return regrouped(chain(n).tree) if emptied else chain(n).tree


def tally(g: Graph) -> tuple[int, int]:
    """Count multiplications and additions of `g`; a division or a square root counts as a multiplication."""
    c = g.count()
    return c["mul"] + c["div"] + c["sqrt"], c["add"] + c["sub"]


@dataclass(frozen=True)
class CountComparison:
    """Published and traced counts of one `PublishedCount`, with the fitted polynomials M and A."""

    row: PublishedCount
    M: Polynomial
    A: Polynomial
    least_n: int  # least n for which the polynomials hold
    counts: Mapping[int, tuple[int, int]]

    def ours(self, n: int) -> int:
        """Return the traced number of operations for `n` joints."""
        return sum(self.counts[n])

    def theirs(self, n: int) -> Fraction:
        """Return the published number of operations for `n` joints."""
        return parse_polynomial(self.row.printed["M"])(n) + parse_polynomial(self.row.printed["A"])(n)

    def facts(self) -> dict[str, Any]:
        """Return the comparison as the dictionary that `--json` prints."""
        totals = {n: {"published": float(self.theirs(n)), "traced": self.ours(n)} for n in (6, 10)}
        labels = {"published": self.row.title, "method": self.row.method, "function": self.row.function}
        traced = {"M": str(self.M), "A": str(self.A), "from_n": self.least_n}
        return labels | {"print": dict(self.row.printed), "traced": traced, "at": totals}


@cache
def compare_counts(row: PublishedCount, sizes: tuple[int, ...] = FIT_SIZES) -> CountComparison:
    """Compare the published counts of `row` with traced ones for the given `sizes` (numbers of joints)."""
    counts = {n: row.tally(n) for n in sizes}
    M, m = fit_polynomial({n: c[0] for n, c in counts.items()})
    A, a = fit_polynomial({n: c[1] for n, c in counts.items()})
    return CountComparison(row, M, A, max(m, a), counts)
