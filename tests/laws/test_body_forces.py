"""A force law for every body equals wrenches on frames, agrees with its potential, and is the same in rolled loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import policy
from bellcrank.errors import InputError
from bellcrank.scalar import sqrt
from bellcrank.sim.run.simulator import Simulator


def drag(place: Any, velocity: Any, mass: Any) -> list[Any]:
    """A force that reads all of its arguments."""
    x, y, z = place
    u, v, w = velocity
    return [mass * (0.3 * y - u), mass * (0.2 - v * z), mass * (x + 1.0 / sqrt(1.0 + x * x) - 0.5 * w)]


def rates(plant: bc.System, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(Simulator(plant, "rk4").dynamics.f.evaluate(t=0.0, y=y)["dy"])


def test_body_force_equals_a_wrench_on_every_body() -> None:
    m = bc.zoo.random_tree(4, 5, kinds=("revolute", "prismatic", "spherical"))

    def on(body: Any) -> Any:
        com = np.asarray(body.com)

        def wrench(t: Any, pose: Any, velocity: Any) -> Any:
            arm = pose[:3, :3] @ com
            f = np.array(drag(pose[:3, 3] + arm, velocity[:3] + np.cross(velocity[3:], arm), body.mass))
            return f, np.cross(arm, f)

        return wrench

    q, v, _ = m.random(1)
    y = np.concatenate([q, v])
    want = rates(bc.system(m, forces={b.name: on(b) for b in m.bodies}), y)
    found = rates(bc.system(m, everywhere=drag), y)
    assert np.abs(found - want).max() < 1e-9 * np.abs(want).max()
    assert np.abs(found - rates(bc.system(m), y)).max() > 1e-3 * np.abs(want).max()


@pytest.mark.parametrize("name", ["chain:7", "tree:15", "random_tree:2:9"])
def test_loops_over_identical_bodies_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.zoo.load(name)
    q, v, _ = m.random(5)
    y = np.concatenate([q, v])
    want = rates(bc.system(m, everywhere=drag), y)
    monkeypatch.setattr(policy, "MIN_PASS_BODIES", 1)
    monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    plant = bc.system(m, everywhere=drag)
    assert any(g.name.endswith("everywhere") for g in Simulator(plant, "rk4").dynamics.f.calls) or m.tree.coupled
    assert np.abs(rates(plant, y) - want).max() < 1e-9 * np.abs(want).max()


def test_a_potential_keeps_the_energy() -> None:
    """Springs from every body to the origin conserve energy, and a uniform field equals gravity."""
    m = bc.zoo.chain(4)
    q0 = m.random(2)[0]
    springs = bc.system(m, everywhere=lambda p, v, m: [-3.0 * x for x in p])
    run = bc.simulate(springs, seconds=0.2, q0=q0, step=1e-3)
    where = [np.stack([m.pose(q, frame=b.name) for q in run.q]) for b in m.bodies]
    places = [T[:, :3, 3] + T[:, :3, :3] @ np.asarray(b.com) for T, b in zip(where, m.bodies, strict=True)]
    whole = run["energy"] + 1.5 * sum((p**2).sum(axis=1) for p in places)
    assert np.ptp(whole) < 1e-6 * np.ptp(run["kinetic_energy"])
    assert run.residuals()["energy"] < 1e-6  # the record has its force as "external"
    with pytest.raises(InputError, match="a force acted on every body"):
        run.loads()
    pulled = bc.system(m, everywhere=lambda p, v, m: [0.0, 0.0, -9.81 * m])
    heavier = bc.simulate(pulled, seconds=0.2, q0=q0, step=1e-3)
    want = bc.simulate(replace(m, gravity=(0.0, 0.0, -19.62)), seconds=0.2, q0=q0, step=1e-3)
    assert np.abs(heavier.q[-1] - want.q[-1]).max() < 1e-9


def test_invalid_force_law_raises() -> None:
    with pytest.raises(InputError, match="everywhere is 3; expected a function of"):
        bc.system(bc.zoo.chain(2), everywhere=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the force on every body"):
        bc.simulate(bc.system(bc.zoo.chain(2), everywhere=lambda p, v, m: [0.0, 1.0]), seconds=0.1)
