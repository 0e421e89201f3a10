"""The approximate rates of dynamics/operation_counts.py are the costs of the methods on a general chain.

BELLCRANK_UPDATE=1 rewrites them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, QUANTITIES, estimate, operation_counts
from bellcrank.papers import operation_counts as papers

SIZES = tuple(range(6, 14))  # one more than a cubic needs: the first may contain coincidental sharing
CHOICES = {name: [m.name for m in METHODS.values() if name in m.solves and m.name != "closure"] for name in QUANTITIES}
CHOICES = {name: found for name, found in CHOICES.items() if found}


def counted(n: int, quantity: str, method: str) -> int:
    """Operations for a chain of n bodies; a quantity of a frame is that of the last one."""
    m = papers.chain(n)
    frame = m.bodies[-1].name if QUANTITIES[quantity].option == "frame" else ""
    return graphs.graph(m, quantity, method, frame).count().arithmetic


def measured(method: str, quantity: str) -> tuple[float, ...]:
    """A constant, and operations by body, pair and triple: sums over a chain of 1, d and d^2 are polynomials of n."""
    counts = {n: counted(n, quantity, method) for n in SIZES}
    try:
        c = [float(x) for x in papers.fit_polynomial(counts)[0].coefficients]
    except ValueError:  # recursive doubling: not a polynomial
        c = [*reversed(np.polyfit(SIZES, list(counts.values()), 2))]
        if c[2] < 0.0:  # for example divide and conquer, whose work is asymptotically linear
            c = [*reversed(np.polyfit(SIZES, list(counts.values()), 1))]
    ends, c1, c2, c3 = c + [0.0] * (4 - len(c))
    three = 3 * c3
    two = 2 * (c2 - three / 2)
    return tuple(round(float(x), 2) for x in (ends, c1 - two / 2 - three / 6, two, three))


def test_the_table_is_complete() -> None:
    assert {name: sorted(found) for name, found in operation_counts.WORK.items()} == {
        n: sorted(f) for n, f in CHOICES.items()
    }


@pytest.mark.skipif("BELLCRANK_UPDATE" not in os.environ, reason="only writes")
def test_write() -> None:
    path = Path(operation_counts.__file__)
    lines = ["WORK: dict[str, dict[str, Rates]] = {"]
    for name, found in CHOICES.items():
        rates = [f'"{m}": {measured(m, name)}' for m in found]
        row = f'    "{name}": {{{", ".join(rates)}}},'
        lines += [row] if len(row) <= 120 else [f'    "{name}": {{', *(f"        {x}," for x in rates), "    },"]
    head, _, _ = path.read_text("utf-8").partition("WORK: dict")
    path.write_text(head + "\n".join([*lines, "}"]) + "\n", "utf-8")


@pytest.mark.parametrize("name", CHOICES)
def test_rates_are_current(name: str) -> None:
    """Rates are accurate to a tenth at twelve joints, which suffices for an estimate."""
    for method in CHOICES[name]:
        tree = papers.chain(12).tree
        count = max(1, counted(12, name, method))
        assert estimate(method, name, tree) == pytest.approx(count, rel=0.1)
