"""Numbers of the machines that can be driven equal the golden file: geometry, hydraulics, control, forces, gauges.

A wrong gear ratio or a wrong sign in a machine changes no law of mechanics, so no other test may notice it.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from number_files import check

from bellcrank.cockpit.machines import Machine
from bellcrank.excavators.geometry import DiggingCycle
from bellcrank.excavators.machines import MACHINES
from bellcrank.excavators.spool_control import joint_mode, poses, resolved_mode
from bellcrank.excavators.tool_forces import ToolForces

STATES = 3
SIZES = {"Pa": 1e7, "m3": 1e-3}  # of further states by their unit; 0.1 for others


def same(old: float, new: float) -> bool:
    return math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-7)


def states(machine: Machine) -> list[tuple[list[float], list[float]]]:
    """Return states and lever values near the start, the same in every run."""
    m, s, rng = machine.mechanism, machine.system, np.random.default_rng(5)
    start = np.asarray(machine.start or m.neutral())
    low, high = np.array([(lever.low, lever.high) for lever in machine.levers]).T
    drawn = []
    for k in range(STATES):
        q = start + (0.02 * k * rng.uniform(-1.0, 1.0, m.nq) if m.nq == m.nv else 0.0)
        v = 0.3 * rng.uniform(-1.0, 1.0, m.nv)
        x = [z.initial + 0.2 * SIZES.get(z.unit, 0.1) * float(rng.uniform(0.0, 1.0)) for z in s.states]
        drawn.append(([*q.tolist(), *v.tolist(), *x], (low + (high - low) * rng.uniform(0.0, 1.0, len(low))).tolist()))
    return drawn


def numbers_of_state(machine: Machine, y: list[float], u: list[float]) -> dict[str, Any]:
    """Return commands, forces, rates of states and outputs in a state."""
    s, t = machine.system, 1.7
    commands, control_rates = s.commanded(t, y, u)
    tau, rates = s.forces(t, y, commands)
    outside, _ = s.outside(t, y)
    return {
        "commands": commands, "rates": [*rates, *control_rates], "forces": s.pushed(t, y, tau), "outside": outside,
        "outputs": s.observed(t, y, u),
    }  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_machine_numbers(name: str) -> None:
    machine = MACHINES[name]()
    shown = {
        "levers": [asdict(lever) for lever in machine.levers],
        "plots": [asdict(plot) for plot in machine.plots],
        "gauges": [asdict(gauge) for gauge in machine.gauges],
        "tunes": [asdict(tune) for tune in machine.tunes],
        "spans": machine.spans, "patterns": machine.patterns, "ground": machine.ground, "trace": machine.trace,
        "start": machine.start, "rate": machine.rate,
    }  # fmt: skip
    check("machines.json", f"{name}, description", shown, same)
    for k, (y, u) in enumerate(states(machine)):
        check("machines.json", f"{name}, state {k}", numbers_of_state(machine, y, u), same)


def test_digging_cycle_numbers() -> None:
    cycle = DiggingCycle()
    check("machines.json", "digging cycle", [cycle(t) for t in np.linspace(0.3, 62.0, 23)], same)


def test_tool_force_numbers() -> None:
    forces = ToolForces()
    theta = forces.best("stick").angles
    poses = [theta, (0.0, 0.3, -1.9, -0.4), (0.5, -0.2, -1.2, -1.5)]
    values = {
        "bucket": forces.best("bucket").limits, "stick": forces.best("stick").limits,
        "at": [forces.at(what, pose).limits for what in ("bucket", "stick") for pose in poses],
        "weight": [forces.weight(pose) for pose in poses],
        "lifts": [asdict(lift) for lift in forces.lifts((4.5, 7.5), (3.0, -1.5))],
    }  # fmt: skip
    check("machines.json", "tool forces", values, same)


def test_rotary_experiment_numbers() -> None:
    """The desired motions of Wong's two experiments, and the geometry of the arm in some poses."""
    resolved, joint = resolved_mode(), joint_mode()
    arm, rng = resolved.arm, np.random.default_rng(6)
    values: dict[str, Any] = {"poses": poses(), "reach": arm.reach}
    for k in range(4):
        theta, rates = (np.asarray(poses()[0]) + 0.1 * rng.standard_normal(4)).tolist(), rng.standard_normal(4).tolist()
        target = arm.forward(theta)
        values[f"arm {k}"] = {
            "forward": target, "inverse": arm.inverse(target), "joint rates": arm.joint_rates(theta, rates),
            "stick rates": arm.stick_rates(theta, rates), "limited": arm.limited_rates(theta, rates),
        }  # fmt: skip
    values["kinds"] = [type(resolved).__name__, type(joint).__name__]
    check("machines.json", "rotary experiments", values, same)
