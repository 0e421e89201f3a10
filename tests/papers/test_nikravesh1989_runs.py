"""Nikravesh et al. 1989, section 7: repetition of the run of the conclusion. docs/experiments has the page."""

from __future__ import annotations

import numpy as np
from reruns import rerun

from bellcrank.papers import nikravesh as experiment


def test_joint_coordinates_are_about_five_times_as_fast_or_more() -> None:
    found = rerun("nikravesh-7")
    assert experiment.PRINTED_SECONDS["absolute"] / experiment.PRINTED_SECONDS["joint"] > 4.5
    assert found["CPU time, absolute / joint"].agrees
    assert float(found["operations, absolute / joint"].ours) > 5.0


def test_both_formulations_are_one_motion() -> None:
    """Ten seconds with springs and dampers, in which the mechanism does move."""
    by = experiment.formulations()
    for body in ("slide", "crank", "coupler", "rocker"):
        np.testing.assert_allclose(by["absolute"].positions(body), by["joint"].positions(body), atol=1e-6)
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
