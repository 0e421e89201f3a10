"""Typical magnitudes of states, estimated from the model alone."""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc
from bellcrank.actuators import DCMotor, HydraulicMotor, ProportionalValve, StateVariable
from bellcrank.excavators.machines import MACHINES
from bellcrank.sim.system.observed_columns import nominals


def by_name(s: bc.System) -> dict[str, float]:
    q, v = s.mechanism.columns
    names = [*(f"{n}.q" for n in q), *(f"{n}.v" for n in v), *(z.name for z in s.states)]
    return dict(zip(names, nominals(s).tolist(), strict=True))


def crane() -> bc.Mechanism:
    b = bc.Builder("crane")
    b.body("mast", mass=10.0, com=(0, 0, 1), inertia=(1, 1, 1))
    b.joint("turn", "revolute", "ground", "mast", axis=(0, 0, 1), velocity=0.3)
    b.body("boom", mass=5.0, com=(2.5, 0, 0), inertia=(1, 1, 1))
    b.joint("reach", "prismatic", "mast", "boom", point=(0, 0, 2), axis=(1, 0, 0), lower=-0.5, upper=1.5)
    b.body("load", mass=1.0, com=(4, 0, 2), inertia=(1, 1, 1))
    b.joint("rope", "prismatic", "boom", "load", point=(4, 0, 2), axis=(0, 0, -1))
    b.body("bird", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("air", "floating", "ground", "bird")
    return b.build()


def test_joints_by_their_limits_and_by_the_size_of_the_mechanism() -> None:
    found = by_name(bc.system(crane()))
    assert (found["turn.q"], found["turn.v"]) == (1.0, 0.3)
    assert (found["reach.q"], found["reach.v"]) == (1.5, 1.5)
    assert (found["rope.q"], found["rope.v"]) == (4.0, 4.0)
    assert [found[f"air.{k}.v"] for k in range(6)] == [4.0] * 3 + [1.0] * 3
    assert all(math.isfinite(x) and x > 0 for x in found.values())


def test_nominal_values_come_from_parts_or_units() -> None:
    valve = ProportionalValve(flow=1e-3, p_pump=bc.parameter("pump", 2.5e7, "Pa"), relief=3e7)
    motor, electric = (
        HydraulicMotor("turn", valve, displacement=1e-4),
        DCMotor("reach", k=0.1, R=2.0, L=1e-3, voltage=48.0),
    )
    mine = [StateVariable("mean", "Pa"), StateVariable("count"), StateVariable("speed", "rad/s", -230.0)]
    s = bc.system(
        crane(), [motor, electric], lambda t, q, v, x, u: ([0.0, 0.0], [0.0, 0.0, 0.0]), states=mine,
    )  # fmt: skip
    found = by_name(s)
    assert found["turn.p_A"] == found["turn.p_B"] == found["mean"] == 2.5e7
    assert found["reach.current"] == 24.0
    assert (found["count"], found["speed"]) == (1.0, 230.0)


def test_a_mode_bends_as_far_as_weight_can_bend_it() -> None:
    """The nominal value of a mode is at least its static deflection under gravity in the worst direction."""
    s = MACHINES["excavator_flexible"]().system
    found = by_name(s)
    for body in s.mechanism.flexible:
        for k, stiffness in enumerate(body.stiffness):
            resting = 9.81 * np.linalg.norm(body.A[k]) / stiffness
            assert resting <= found[f"{body.nodes[0].joint}.mode{k + 1}.q"] < 0.05
