"""Nikravesh et al. 1989, section 7: repetition of the run of the conclusion. docs/experiments has the page."""

from __future__ import annotations

import numpy as np
from reruns import rerun

from bellcrank.build import graphs
from bellcrank.dynamics.loops.absolute import absolute, state
from bellcrank.papers import nikravesh_motion as experiment
from bellcrank.zoo import slider_fourbar


def test_joint_coordinates_are_about_five_times_as_fast_or_more() -> None:
    found = rerun("nikravesh-7")
    assert experiment.PRINTED_SECONDS["absolute"] / experiment.PRINTED_SECONDS["joint"] > 4.5
    assert found["CPU time, absolute, sparse / joint"].agrees
    assert float(found["operations of eqs 1 to 4 without refinement / joint"].ours) > 5.0


def test_sparse_absolute_coordinates_are_the_same_equations_with_fewer_operations() -> None:
    """Accelerations of the bodies equal those of the dense solution, in half of the operations or fewer."""
    m = slider_fourbar(forces=True)
    q, v = m.assemble([0.1, 0.2, 0.0, 0.0], [0.3, 0.5, 0.0, 0.0], fixed=["T1", "R2"])
    dense, sparse = absolute(m), experiment.sparse_absolute(m)
    (q1, v1), (q2, v2) = state(m, q, v), experiment.centred_state(m, q, v)
    graph, dense_graph = experiment.sparse_graph(m), graphs.graph(dense, "forward_dynamics", method="aba")
    assert graph.count().arithmetic < 0.32 * dense_graph.count().arithmetic  # 0.39 in the order of the joints
    a1 = dense_graph.evaluate(q=q1, v=v1, tau=0 * v1)["forward_dynamics"].reshape(-1, 6)
    a2 = graph.evaluate(q=q2, v=v2, tau=0 * v2)["a"].reshape(-1, 6)
    assert np.abs(a1[:, 3:] - a2[:, 3:]).max() < 1e-8 * np.abs(a1).max()
    assert np.abs(sparse.closure(q2)).max() < 1e-12
    assert len(sparse.loop_analysis.rank.rows) == 22
    assert not sparse.loop_analysis.rank.groups


def test_eq_19_takes_about_as_many_operations_as_eqs_11_to_14() -> None:
    """The conclusion: "the computation time associated with these two formulations are about the same"."""
    by = experiment.formulations()
    assert 1 / experiment.ABOUT_THE_SAME < by["minimal"].operations / by["joint"].operations < experiment.ABOUT_THE_SAME


def test_both_formulations_are_one_motion() -> None:
    """Ten seconds with springs and dampers, in which the mechanism does move."""
    by = experiment.formulations()
    for body in ("slide", "crank", "coupler", "rocker"):
        np.testing.assert_allclose(by["absolute"].positions(body), by["joint"].positions(body), atol=1e-6)
        np.testing.assert_allclose(by["absolute, sparse"].positions(body), by["joint"].positions(body), atol=1e-6)
        np.testing.assert_allclose(by["minimal"].positions(body), by["joint"].positions(body), atol=1e-6)
    slide = by["joint"].positions("slide")
    assert np.ptp(slide, axis=0).max() > 0.1
    E = by["minimal"].record["energy"]
    assert E[-1] < E[0] - 1.0  # dissipated by the dampers


def test_redundant_constraints_are_left_out() -> None:
    by = experiment.formulations()
    assert by["joint"].sizes == "4 and 2"
    assert by["absolute"].sizes == "24 and 22"
    assert by["absolute"].mechanism.loop_analysis.mobility == by["joint"].mechanism.loop_analysis.mobility == 2
