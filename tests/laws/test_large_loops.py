"""Many identical parts and closed loops: the work of a step grows linearly with the bodies in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.sim.constraints import looped_dynamics
from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics
from bellcrank.sim.run.simulator import Simulator

SIZES: dict[str, tuple[Any, ...]] = {
    "scissor": ("minimal", 16, 18, 20, 22),
    "track": ("projected", 34, 36, 38),
    "four_bars": ("minimal", 4, 6, 8, 10),
    "n_four_bar": ("minimal", 4, 6, 8, 10),
}


def dynamics(mechanism: Any, form: str = "auto") -> LoopedDynamics:
    found = Simulator(mechanism, "rk4", form=form).dynamics
    assert isinstance(found, LoopedDynamics)
    return found


@pytest.mark.parametrize("name", SIZES)
def test_a_step_takes_work_that_grows_with_the_bodies(name: str) -> None:
    """Each added body adds the same number of operations with the chosen form; no other form is linear."""
    form, *sizes = SIZES[name]
    work = []
    for n in sizes:
        by = dynamics(bc.zoo.load(f"{name}:{n}"))
        assert by.form == form
        work.append(by.f.count().arithmetic + by.correction.count().arithmetic)
    steps = np.diff(work)
    assert np.ptp(steps) <= 0.08 * steps.mean()  # quadratic work would add a third more each time


@pytest.mark.parametrize("name", ["scissor:3", "track:9", "four_bars:2", "tied_tree:15:2"])
def test_forms_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix, products with it, and multipliers give the same velocity on the loops, and the same rate."""
    m = bc.zoo.load(name)
    y = np.concatenate([bc.zoo.start(m)[0], np.random.default_rng(3).normal(size=m.nv)])
    allowed, rates = [], []
    for form, pairs in (("minimal", 10**9), ("projected", 10**9), ("minimal", -1)):
        monkeypatch.setattr(looped_dynamics, "MIN_PAIRS", pairs)
        monkeypatch.setattr(looped_dynamics, "PAIRS_PER_COORDINATE", 0)
        by = dynamics(m, form)
        allowed.append(by.correction.evaluate(y=y)["y"])
        rates.append(by.f.evaluate(t=0.0, y=allowed[0])["dy"])
    assert np.abs(allowed[0][m.nq :]).max() > 0.1
    for other, rate in zip(allowed[1:], rates[1:], strict=True):
        assert np.abs(other - allowed[0]).max() < 1e-9
        assert np.abs(rate - rates[0]).max() < 1e-8 * np.abs(rates[0]).max()


def test_small_mechanisms_keep_the_minimal_form() -> None:
    for name in ("four_bar", "stewart", "ring:12", "excavator_linkage", "andrews"):
        assert looped_dynamics.form_for(bc.zoo.load(name)) == "minimal", name
    assert looped_dynamics.form_for(bc.zoo.ring(60)) == "projected"


def test_a_track_is_closed_and_a_scissor_has_one_freedom() -> None:
    track = bc.zoo.track(90)
    assert track.nv - track.loop_analysis.rank.rank == 88
    lift = bc.zoo.scissor(6)
    assert lift.nv - lift.loop_analysis.rank.rank == 1
    q, _ = lift.assemble({"foot": -0.4}, fixed=["foot"])
    top = lift.pose(q, frame="top")[:3, 3]
    wide, length = 2.0 * np.cos(0.5) - 0.4, 2.0
    assert top[1] == pytest.approx(6 * np.sqrt(length**2 - wide**2), rel=1e-9)  # by Pythagoras
