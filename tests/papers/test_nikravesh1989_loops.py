"""Closed loops of Nikravesh et al. 1989, sections 2.3 and 3, by our own equations; Andrews' squeezing mechanism.

The authors are P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein. Of Andrews' mechanism the accelerations at the start
are checked. (test_nikravesh1989.py has D* and B themselves.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.dynamics import METHODS, applicable_methods, crba, rnea
from bellcrank.dynamics.loops import constrained_dynamics
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.dynamics.loops.rank import LoopRank
from trees import close

FOURBAR = zoo.slider_fourbar()
PRINTED = zoo.data("slider_fourbar")
HERE = [0.0] * 4  # the configuration found for the printed numbers


def partition(C: Any, dependent: list[int]) -> constrained_dynamics.CoordinatePartition:
    order = choose_pivots(C[:, dependent])
    return constrained_dynamics.CoordinatePartition(
        LoopRank(FOURBAR.loop_analysis.kept, (), (1.0, 1.0), (0, 0)), tuple((r, dependent[c]) for r, c in order)
    )


def test_the_printed_matrix_of_the_cut_joint() -> None:
    """D*B (15). The paper's vector between the ends has the opposite direction."""
    C = FOURBAR.closure_jacobian(HERE)
    np.testing.assert_allclose(-C[:3], PRINTED["DstarB"], atol=5e-5)
    close(C[3:], np.zeros((2, 4)), 1e-15)  # both axes stay parallel without a constraint
    close(FOURBAR.closure(HERE), np.zeros(5), 1e-15)


def test_the_redundant_row_is_found_and_is_the_printed_one() -> None:
    found = FOURBAR.loop_analysis
    assert found.redundant == ("R5: y",)
    assert [found.names[k] for k in found.kept] == ["R5: x", "R5: z"]
    assert [found.names[k] for k in found.identically_satisfied] == ["R5: tilt about y", "R5: tilt about x"]
    assert found.mobility == len(PRINTED["independent"])
    C = -FOURBAR.closure_jacobian(HERE)[list(found.kept)]
    np.testing.assert_allclose(C, PRINTED["C"], atol=5e-5)


def test_the_printed_E() -> None:
    """E (23) by elimination, with the printed independent coordinates; C E = 0 (17)."""
    C = FOURBAR.closure_jacobian(HERE)[list(FOURBAR.loop_analysis.kept)]
    form = constrained_dynamics.reduce_to_null_space(FOURBAR.tree, crba.mass_matrix, partition(C, [2, 3]), HERE)
    E = np.zeros((4, 2))
    for j, column in enumerate(form.null_space.values()):
        for k, x in column.items():
            E[k, j] = x
    close(E, PRINTED["E"], 1e-12)
    close(C @ E, np.zeros((2, 2)), 1e-12)
    M = np.array(crba.mass_matrix(FOURBAR.tree, HERE), dtype=float)
    small = E.T @ M @ E  # 20
    close([[form.reduced_mass[max(i, j)].get(min(i, j), 0.0) for j in range(2)] for i in range(2)], small)


@pytest.mark.parametrize("dependent", [[2, 3], [1, 2], [1, 3]])
def test_both_forms_are_one_motion(dependent: list[int]) -> None:
    """Multipliers (13, 14) and minimal coordinates (19 to 25) agree for all independent coordinates."""
    m, found = FOURBAR, FOURBAR.loop_analysis
    q = m.assemble({"R2": 0.3})[0]
    v = m.assemble(q, {"T1": 0.4, "R2": -0.7, "R3": 0.2})[1]
    tau = [1.0, -2.0, 0.5, 0.3]
    C = m.closure_jacobian(q)[list(found.kept)]
    part = partition(C, dependent)
    given = (q.tolist(), v.tolist(), tau)
    a = constrained_dynamics.minimal(m.tree, rnea.inverse_dynamics, crba.mass_matrix, part, *given)
    close(a, m.forward_dynamics(*given), 1e-10)
    close(C @ a, -m.closure_bias(q, v)[list(found.kept)], 1e-10)


def test_coordinates_that_cannot_depend() -> None:
    """The slide moves independently, so no choice of dependent coordinates contains it."""
    C = FOURBAR.closure_jacobian(HERE)[list(FOURBAR.loop_analysis.kept)]
    assert len(choose_pivots(C[:, [0, 3]])) == 1


@pytest.mark.parametrize("by", applicable_methods("forward_dynamics", zoo.andrews().tree), ids=lambda by: by.name)
def test_andrews_squeezer_starts_as_published(by: Any) -> None:
    """Accelerations at the start, from the mechanism and not from its printed equations."""
    m, given = zoo.andrews(), zoo.data("andrews")
    q, v = zoo.start(m)
    close(m.closure(q), np.zeros(15), 1e-15)
    tau = dict.fromkeys(m.columns[1], 0.0) | {"beta": given["mom"]}
    a = LoopLayer(METHODS[by.name], m.loop_analysis.rank).forward_dynamics(
        m.tree, q.tolist(), v.tolist(), [*tau.values()]
    )
    expected = dict.fromkeys(m.columns[1], 0.0) | {"beta": 14222.4439199541, "theta": -10666.8329399656}
    np.testing.assert_allclose(a, [*expected.values()], rtol=1e-9, atol=1e-5)
