"""The Mechanism as a Python object: immutable, copyable, and with an informative text."""

from __future__ import annotations

import copy
import math
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


def test_limits_are_vectors_in_the_order_of_q_and_v() -> None:
    b = bc.Builder("crane")
    b.body("hull", mass=1.0, inertia=(1, 1, 1))
    b.joint("free", "floating", "ground", "hull")
    b.body("arm", mass=1.0, inertia=(1, 1, 1))
    b.joint("hinge", "revolute", "hull", "arm", lower=-1.0, upper=2.0, velocity=3.0, effort=4.0)
    b.body("wheel", mass=1.0, inertia=(1, 1, 1))
    b.joint("spin", "revolute", "arm", "wheel", mimic=("hinge", 2.0))
    b.body("ball", mass=1.0, inertia=(1, 1, 1))
    b.joint("socket", "universal", "arm", "ball", second_axis=(1, 0, 0), lower=-0.5, upper=0.5)
    m, inf = b.build(), math.inf
    assert m.limits.lower.tolist() == [*[-inf] * 7, -1.0, -0.5, -0.5]
    assert m.limits.upper.tolist() == [*[inf] * 7, 2.0, 0.5, 0.5]
    assert m.limits.velocity.tolist() == [*[inf] * 6, 3.0, inf, inf]
    assert m.limits.effort.tolist() == [*[inf] * 6, 4.0, inf, inf]
    assert m.free("hinge.limits.upper").limits.upper[7] == 2.0
    with pytest.raises(ValueError, match="read-only"):
        m.limits.lower[0] = 0.0
