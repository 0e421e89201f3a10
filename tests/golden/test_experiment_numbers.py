"""Rows and tables of the papers' experiments equal the golden file.

Times of this computer are left out. Errors of rounding, and what grows from them, are compared by their size only.
"""

from __future__ import annotations

import math

import pytest
from number_files import check

from bellcrank.papers import EXPERIMENTS

ROUNDING = 1e-7  # smaller numbers are errors of rounding
LARGE = 1e9  # larger numbers are factors by which errors grow


def same(old: float, new: float) -> bool:
    if abs(old) < ROUNDING:
        return abs(new) < 10 * ROUNDING
    return math.isclose(old, new, rel_tol=5e-3 if abs(old) < LARGE else 0.2)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_numbers(name: str) -> None:
    result = EXPERIMENTS[name].run()
    rows = [
        (row.what, row.printed, row.ours, row.unit, row.agrees) for row in result.rows if "CPU time" not in row.what
    ]
    tables = [(table.title, table.head, table.rows) for table in result.tables]
    check("experiments.json", name, {"rows": rows, "tables": tables}, same)
