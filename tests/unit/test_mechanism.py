"""The Mechanism as a Python object: it cannot be changed, can be copied, and tells what it has."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

import bellcrank as bc
from bellcrank.dynamics import QUANTITIES
from bellcrank.model.parts import Frame
from bellcrank.model.quantities import Quantities


def test_frames_are_read_only_and_travel() -> None:
    m = bc.zoo.pendulum()
    with pytest.raises(TypeError):
        m.frames["more"] = Frame("more", "bob")  # type: ignore[index]
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), replace(m)):
        assert other.frames == m.frames
        assert other.fingerprint == m.fingerprint


def test_completion_offers_every_quantity() -> None:
    assert set(QUANTITIES) == {name for name in vars(Quantities) if not name.startswith("_")}
    assert set(dir(bc.zoo.pendulum())) > {*QUANTITIES, "frames", "random", "nq"}


def test_a_batch_may_be_a_number() -> None:
    m = bc.zoo.excavator()
    for one, other in zip(m.random(0, 5), m.random(0, (5,)), strict=True):
        assert (one == other).all()
