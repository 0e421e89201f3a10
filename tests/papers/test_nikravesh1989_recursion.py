"""Nikravesh et al. 1989, section 4 and figure 6: recursion breaks even near six joints, and near twelve in a loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bellcrank.build import graphs
from bellcrank.papers import nikravesh_recursion as experiment
from bellcrank.papers.operation_counts import published
from bellcrank.zoo import ring

BY_TITLE = {system.title: system for system in experiment.systems()}
PRINTED = published()["dataflow"]["breakeven_joints"]


def test_closed_loop_breaks_even_near_twelve_bodies() -> None:
    """The ratio of the ring of twelve is 1.04; of eleven it is below one."""
    system = BY_TITLE["ring of equal rods"]
    assert experiment.crossing(system) == 12
    assert PRINTED["closed_loop"] == "about double"
    assert experiment.crossing(system) == 2 * PRINTED["revolute"]
    direct, recursive = (experiment.counts(system.title)[k] for k in (0, 1))
    ratios = {n: direct[n] / recursive[n] for n in system.sizes}
    assert ratios[12] == pytest.approx(1.04, abs=0.005)
    assert ratios[11] < 1
    assert all(a < b for a, b in pairwise([ratios[n] for n in range(4, 15, 2)]))


def test_both_counted_methods_solve_the_ring() -> None:
    """Operations of a wrong result would be no comparison."""
    m = ring(12)
    q, v = m.assemble(m.neutral() + 0.1 * np.sin(np.arange(m.nq)), np.cos(np.arange(m.nv)))
    found = [
        graphs.graph(m, "forward_dynamics", method=method).evaluate(q=q, v=v, tau=v)["forward_dynamics"]
        for method in (experiment.DIRECT, experiment.RECURSIVE)
    ]
    assert np.abs(found[0] - found[1]).max() < 1e-9 * np.abs(found[0]).max()
    assert np.abs(found[0] - m.forward_dynamics(q, v, v)).max() < 1e-9 * np.abs(found[0]).max()


def test_table_has_the_four_panels_and_the_published_breakpoints() -> None:
    rows = experiment.tables()[0].rows
    assert [row[0] for row in rows[:4]] == ["a", "b", "c", "d"]
    assert [row[2] for row in rows[:4]] == ["none", *(str(PRINTED[k]) for k in ("revolute", "prismatic", "spherical"))]
    assert [row[3] for row in rows[:4]] == ["none up to 10", "6", "7", "4"]
    assert [name[-5:-4] for name in experiment.FIGURES] == ["a", "b", "c", "d"]
