"""Feller buncher, walking excavator and space manipulator: published sizes, freedoms and momentum.

tests/laws/test_sliders.py drives them.
"""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.zoo.field_machines import DEXTRE_ARM, LEG_PLACES


def test_space_manipulator_has_the_published_size() -> None:
    m = bc.zoo.space_manipulator()
    assert sum(b.mass for b in m.bodies) == pytest.approx(1662.0)
    assert sum(length for _, _, length, *_ in DEXTRE_ARM) == pytest.approx(3.35)
    assert m.nv == 6 + 1 + 2 * 7
    for side in ("left", "right"):
        q = m.neutral()
        tool, shoulder = (np.asarray(m.pose(q, f"{side}_{name}"))[:3, 3] for name in ("tool", "shoulder_roll_link"))
        assert np.linalg.norm(tool - shoulder) <= 3.35


def test_space_manipulator_conserves_momentum() -> None:
    """Torques in the joints move the base, and neither linear nor angular momentum changes."""
    m = bc.zoo.space_manipulator()
    q, v, tau = m.random(3)
    v[:] = 0.0
    tau[:6] = 0.0
    a = m.forward_dynamics(q, v, tau)
    rate = np.asarray(m.momentum(q, a))  # at rest, dh/dt is the momentum of the accelerations
    scale = np.abs(np.asarray(m.momentum(q, np.abs(a)))).max()
    assert np.abs(rate).max() < 1e-11 * scale
    assert np.abs(a[:6]).max() > 1e-6 * np.abs(tau).max()


def test_walking_excavator_stands_on_four_claws() -> None:
    m = bc.zoo.walking_excavator()
    assert m.loop_analysis.mobility == 6 + 5  # chassis and arm
    assert len(m.loops) == len(LEG_PLACES)
    assert 7000.0 <= sum(b.mass for b in m.bodies) <= 12000.0
    q, _ = m.assemble()
    heights = [np.asarray(m.pose(q, f"{leg}_foot"))[2, 3] for leg in LEG_PLACES]
    assert np.ptp(heights) < 1e-9


def test_feller_buncher_reaches_and_grabs() -> None:
    m = bc.zoo.feller_buncher()
    reach = np.hypot(*np.asarray(m.pose(m.neutral(), "tool"))[:2, 3])
    assert 6.0 < reach < 9.0
    q = m.neutral()
    q[m.columns[0].index("grab")] = -0.5
    left, right = (np.asarray(m.pose(q, f"{side}_arm"))[:3, :3] for side in ("left", "right"))
    np.testing.assert_allclose(left, right.T, atol=1e-12)  # about one axis, in opposite directions
