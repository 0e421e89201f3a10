"""Scenarios of `bellcrank simulate`: start, control and duration of a run, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

from bellcrank.control import Cycloid, InverseDynamics
from bellcrank.errors import InputError, check_known
from bellcrank.excavators import spool_control as wong_experiments
from bellcrank.excavators.spool_control import SpoolControl
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.papers.wong import excavator as wong_excavator
from bellcrank.sim.system.systems import System, system
from bellcrank.zoo import TABLE, data, excavator

KP, KV = 100.0, 20.0  # 1/s^2, 1/s: errors decay in about half a second
TURN_RAD, SLIDE_M = pi, 0.1  # rad, m: how far inverse dynamics moves a joint (Wong's eq 3.43; Saha's b_3)


@dataclass(frozen=True, eq=False)
class RunSetup:
    """System, start and duration of a run."""

    system: System
    q0: Sequence[float]
    seconds: float = 10.0
    step: float = 0.001  # s, default for integrators with fixed steps


def published_run(m: Mechanism) -> Mapping[str, Any]:
    """Return start, end and seconds of the run that the paper of `m` prints; empty for a mechanism of no paper."""
    if m.name in TABLE and m.nq == m.nv:
        try:
            run_data = data(m.name)
        except InputError:  # the mechanism is from no paper
            return {}
        if m.fingerprint == TABLE[m.name]().fingerprint:
            return run_data
    return {}


def start_configuration(m: Mechanism) -> list[float]:
    """Return the start configuration that the paper of `m` prints; else the neutral configuration."""
    return [float(x) for x in published_run(m).get("start", m.neutral())]


def _along_path(m: Mechanism, kp: float, kv: float) -> RunSetup:
    if m.nq != m.nv:
        raise InputError(
            f'scenario inverse-dynamics: "{m.name}" has nq {m.nq} and nv {m.nv}; expected one coordinate for each '
            "joint. free-fall takes any mechanism."
        )
    begin = start_configuration(m)
    displacements = [SLIDE_M if KINDS[j.kind].name == "prismatic" else TURN_RAD for j in m.own_joints]
    run_data = published_run(m)
    end = run_data.get("end", [a + w for a, w in zip(begin, displacements, strict=True)])
    seconds = float(run_data.get("seconds", 10.0))
    path = Cycloid(tuple(begin), tuple(end), seconds)
    return RunSetup(system(m, control=InverseDynamics(m, path, kp, kv)), begin, seconds)


def _excavator(m: Mechanism, mode: str, control: Callable[[], SpoolControl]) -> RunSetup:
    if m.fingerprint != excavator().fingerprint:
        raise InputError(f'scenario {mode} is for the built-in excavator; got "{m.name}". Write: simulate excavator')
    controller = control()
    start, seconds = wong_experiments.poses()[0], wong_experiments.SECONDS
    return RunSetup(wong_excavator.excavator_system(controller), start, seconds, wong_excavator.RESOLVED_STEP)


# Each sets up a run of a mechanism; in the order a newcomer should meet them.
SCENARIOS: dict[str, Callable[[Mechanism], RunSetup]] = {
    # no force but gravity, from rest
    "free-fall": lambda m: RunSetup(system(m), start_configuration(m)),
    # the forces of a smooth path, open loop (Wong 3.5, Saha's forced runs)
    "inverse-dynamics": lambda m: _along_path(m, 0.0, 0.0),
    # the same path with feedback
    "computed-torque": lambda m: _along_path(m, KP, KV),
    # the excavator's sticks are joint rates (Wong 5.5.2)
    "joint-mode": lambda m: _excavator(m, "joint-mode", wong_experiments.joint_mode),
    # the excavator's sticks move the tip (Wong 5.5.2)
    "resolved-mode": lambda m: _excavator(m, "resolved-mode", wong_experiments.resolved_mode),
}


def scenario(name: str) -> Callable[[Mechanism], RunSetup]:
    """Return the scenario called `name`."""
    check_known("scenario", name, SCENARIOS)
    return SCENARIOS[name]
