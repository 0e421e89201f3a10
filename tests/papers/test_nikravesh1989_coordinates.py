"""Nikravesh 1989, section 5: sets of independent coordinates by critical path, and the limit of the speed-up."""

from __future__ import annotations

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.build.coordinate_search import coordinate_sets
from bellcrank.errors import InputError
from bellcrank.papers.coordinates import growth_ratio, speedup_limits, work_and_span
from bellcrank.scheduling import machine


@pytest.mark.parametrize("name", ["slider_fourbar", "four_bar", "andrews", "double_wishbone"])
def test_all_sets_have_the_accelerations_of_the_multipliers(name: str) -> None:
    """Minimal coordinates (19) against multipliers (13, 14), in a moving state."""
    m = zoo.load(name)
    rng = np.random.default_rng(3)
    q = m.assemble()[0]
    C = m.closure_jacobian(q)[list(m.loop_analysis.rank.rows)]
    v = (np.eye(m.nv) - np.linalg.pinv(C) @ C) @ rng.uniform(-1.0, 1.0, m.nv)
    tau = rng.uniform(-1.0, 1.0, m.nv)
    wanted = m.forward_dynamics(q, v, tau)
    found = coordinate_sets(m, progress=False)
    assert len({(s.independent, s.mass_matrix) for s in found.sets}) == len(found.sets)
    for s in found.sets:
        assert len(s.independent) == m.loop_analysis.mobility
        a = s.graph.evaluate(q=np.array(q), v=v, tau=tau)["forward_dynamics"]
        np.testing.assert_allclose(a, wanted, rtol=0.0, atol=1e-11 * s.largest**2 * np.abs(wanted).max())
    assert [s.span for s in found.sets] == sorted(s.span for s in found.sets)


def test_coordinates_of_the_paper_have_the_shortest_path() -> None:
    """The four-bar on a slide: theta_1 and theta_2, and never a set without the slide."""
    found = coordinate_sets(zoo.slider_fourbar(), progress=False)
    assert found.sets[0].independent == ("T1", "R2")
    assert all(s.independent[0] == "T1" for s in found.sets)
    assert found.sets[0].span < found.sets[-1].span


def test_sets_that_do_not_determine_the_motion_are_left_out() -> None:
    """Andrews' mechanism has seven coordinates and one freedom; three of them turn back somewhere."""
    found = coordinate_sets(zoo.andrews(), ("crba",), progress=False)
    assert found.singular > 0
    assert len(found.sets) + found.singular == 7
    result = found.schedule(machine("complete:2"))
    result.schedule.check()
    assert result.schedule.makespan >= min(s.span for s in found.sets)
    with pytest.raises(InputError, match="no loops"):
        coordinate_sets(zoo.puma600())
    with pytest.raises(InputError, match="sets of dependent coordinates"):
        coordinate_sets(zoo.load("stewart"))


def test_speed_up_of_recursive_methods_approaches_a_constant() -> None:
    for method in ("joint_coordinates_recursive", "aba"):
        limits = speedup_limits(method, (8, 16, 32))
        constant = growth_ratio(method, 32)
        assert constant - limits[32] == pytest.approx((constant - limits[16]) / 2, rel=0.1)
        spans = [work_and_span(method, n)[1] for n in (8, 16, 32)]
        assert spans[2] - spans[1] == pytest.approx(2 * (spans[1] - spans[0]), rel=0.01)


def test_speed_up_of_other_methods_grows() -> None:
    """The paper's own formulation, by its cubic work; divide and conquer, by its logarithmic path."""
    joint, dca = speedup_limits("joint_coordinates", (4, 8, 16)), speedup_limits("dca", (8, 16, 32))
    assert joint[16] > 1.9 * joint[8] > 3.5 * joint[4]
    assert dca[32] > 1.8 * dca[16] > 3.2 * dca[8]
    spans = [work_and_span("dca", n)[1] for n in (8, 16, 32)]
    assert spans[2] - spans[1] < 1.2 * (spans[1] - spans[0])
