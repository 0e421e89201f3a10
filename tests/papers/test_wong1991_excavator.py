"""Wong 1991, section 5.5.2: the text's statements on figs 5.5 to 5.10, checked with plain RK4 at its step of 0.01 s.

The curves themselves are not in the scan. Quotations are shortened; the step is the paper's unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import RotaryHydraulics
from bellcrank.excavators import spool_control as wong
from bellcrank.excavators.spool_control import SpoolControl

CAB, BOOM, STICK, BUCKET = range(4)
EXCAVATOR = bc.zoo.excavator()
ARM = wong.arm()
DEGREE = np.pi / 180


@dataclass(frozen=True)
class Run:
    t: Any
    q: Any  # rad
    v: Any
    p: Any  # psi, (time, joint, in/out)
    q_d: Any
    volts: Any
    spool: Any  # cm
    tip: Any  # radius, swing, height, bucket

    def at(self, t: float) -> int:
        return int(np.argmin(abs(self.t - t)))

    @property
    def error(self) -> Any:
        """Desired minus actual, degrees."""
        return (self.q_d - self.q) / DEGREE


def simulate(control: SpoolControl, drives: Sequence[RotaryHydraulics], h: float, every: int) -> Run:
    names = [s.name for s in control.states]
    low, high = (np.repeat([d.limits()[0][i] for d in drives], 2) for i in (0, 1))  # type: ignore[index]

    def rate(t: Any, y: Any) -> dict[str, Any]:
        q, v, p = y[:4], y[4:8], y[8:16]
        commands, rates = control(t, q, v, dict(zip(names, y[16:], strict=True)))
        driven = [d(t, q[i], v[i], p[2 * i : 2 * i + 2], commands[i]) for i, d in enumerate(drives)]
        a = EXCAVATOR.forward_dynamics(q, v, [tau for tau, _ in driven])
        return {"f": [*v, *a, *(x for _, dp in driven for x in dp), *rates], "commands": list(commands)}

    compiled = bc.compile(rate, inputs={"t": (), "y": 16 + len(names)})

    def f(t: float, y: Any) -> tuple[Any, Any]:
        found = compiled(t, y)
        return found["f"], found["commands"]

    y = np.array([*control.start, *[0.0] * 12, *control.start])
    rows = []
    for n in range(round(wong.SECONDS / h) + 1):
        t = n * h
        k1, commands = f(t, y)
        if n % every == 0:
            rows.append((t, y, commands))
        k2 = f(t + h / 2, y + h / 2 * k1)[0]
        k3 = f(t + h / 2, y + h / 2 * k2)[0]
        k4 = f(t + h, y + h * k3)[0]
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        y[8:16] = np.clip(y[8:16], low, high)  # "the previous time step's pressures are limited"
    Y, volts = np.array([y for _, y, _ in rows]), np.array([c for _, _, c in rows], dtype=float)
    spool = np.array([[float(d.spool(x)) for d, x in zip(drives, c, strict=True)] for c in volts])
    tip = np.array([[float(x) for x in ARM.forward(q)] for q in Y[:, :4]])
    t = np.array([t for t, _, _ in rows])
    return Run(t, Y[:, :4], Y[:, 4:8], Y[:, 8:16].reshape(-1, 4, 2), Y[:, 16:], volts, spool, tip)


MODES: dict[str, Callable[[], SpoolControl]] = {"JOINT": wong.joint_mode, "RESOLVED": wong.resolved_mode}


@cache
def run(mode: str, h: float = 0.01, opening: float = wong.OPENING) -> Run:
    return simulate(MODES[mode](), wong.hydraulics(opening=opening), h, round(0.01 / h))


@pytest.fixture(params=MODES)
def both(request: pytest.FixtureRequest) -> Run:
    return run(request.param)


def test_the_desired_motion_is_the_printed_one() -> None:
    """The desired swing, radius, height and bucket angle are those of the text.

    "The cabin rotated 15 degrees and the end effector moved from a radius of 5m to 6.5m at constant radial velocity
    while maintaining its original height. The bucket was required to maintain its angle."
    """
    r = run("RESOLVED")
    desired = np.array([[float(x) for x in ARM.forward(q)] for q in r.q_d])
    moving = np.clip(r.t - 5.0, 0.0, 5.0) / 5.0
    # The stick jumps at 5 s and at 10 s, between the stages of a step, which causes an error of at most h/6 of its
    # rate.
    np.testing.assert_allclose(desired[:, 0], 5.0 + 1.5 * moving, atol=0.3 * 0.01)
    np.testing.assert_allclose(desired[:, 1] / DEGREE, 15.0 * moving, atol=3.0 * 0.01)
    np.testing.assert_allclose(desired[:, 2], wong.HEIGHT, atol=1e-4)
    np.testing.assert_allclose(desired[:, 3], wong.BUCKET, atol=1e-9)
    assert np.ptp(np.diff(r.q_d[501:999, STICK])) > 1e-5  # "boom and stick show a nonlinear joint angle response"


def test_boom_and_stick_sag_at_the_start_and_the_cab_does_not(both: Run) -> None:
    """Boom and stick sag until the pressure has built up.

    "Gravity loading decreases the actual angle while the pressure is still building up from zero. Once the line
    pressure has built up, the link has a steady state error." The bucket has "a smaller drop in the angle".
    """
    error = both.error[both.at(4.9)]
    assert error[BOOM] > 0.1
    assert error[STICK] > 0.1
    assert 0.0 < error[BUCKET] < 0.5 * error[STICK]
    assert abs(error[CAB]) < 0.01
    assert (both.p[0] == 0.0).all()
    assert both.p[both.at(4.9), BOOM, 0] > 2000.0
    assert np.ptp(both.error[both.at(3.5) : both.at(5), BOOM]) < 0.05  # steady


def test_the_dead_band_keeps_the_boom_shut_while_it_sags(both: Run) -> None:
    """ "The boom v attempts to give a positive drive voltage, but only a zero value of x is produced." """
    late = slice(both.at(3), both.at(4.95))
    assert (both.volts[late, BOOM] > 0.0).all()
    assert (both.spool[late, BOOM] == 0.0).all()


def test_velocities_at_the_start(both: Run) -> None:
    """The cabin does not oscillate at the start, the other joints do.

    The cabin "demonstrates no oscillation at the start"; "boom and stick oscillate initially due to gravity"; the
    bucket "has a small initial oscillation".
    """
    swing = np.ptp(both.v[: both.at(1)], axis=0) / DEGREE
    assert swing[BOOM] > 3.0
    assert swing[STICK] > 3.0
    assert swing[BUCKET] < swing[STICK]
    assert swing[CAB] < 0.1


def test_everything_lags_and_stops_short(both: Run) -> None:
    """ "The cabin response shows a significant lag." "All plots show a steady state lag at the end." """
    assert both.error[both.at(10), CAB] > 3.0
    way = np.sign(both.q_d[-1] - both.q_d[0])
    end = both.error[-1] * way
    assert (end > 0.9).all()
    band = 0.005 / wong.OPENING / np.array(MODES["JOINT"]().kp) / DEGREE  # dead band of the spool
    np.testing.assert_allclose(end, band, atol=0.15)


@pytest.mark.parametrize("mode", MODES)
def test_at_the_end_the_cab_oscillates_and_boom_and_stick_do_not(mode: str) -> None:
    """At the end the cabin oscillates, whereas closed spools hold boom and stick.

    "At the end the velocity of the cabin oscillates due to the inertia of the machine"; "the boom and stick velocities
    are smooth because the deadband causes the spools to be closed". "A negative v is desired to close the [boom's]
    error, but the deadband causes x to be zero."

    At half the paper's step: with the full one the bucket oscillates (below), and shakes the stick.
    """
    both = run(mode, 0.005)

    def wave(joint: int) -> float:
        """Velocity of the last two seconds without its drift, deg/s."""
        late = slice(both.at(13), None)
        t, v = both.t[late], both.v[late, joint] / DEGREE
        return float(np.ptp(v - np.polyval(np.polyfit(t, v, 3), t)))

    assert wave(CAB) > 0.15
    assert wave(BOOM) < 0.5 * wave(CAB)
    assert wave(STICK) < 0.5 * wave(CAB)
    assert both.volts[-1, BOOM] < 0.0
    assert abs(both.spool[-1, BOOM]) < 0.005 * 0.05  # half a percent of its range


def test_height_sags_and_then_errs_upwards() -> None:
    """ "The Z curve shows an initial sag when the boom and stick sag, followed by a positive error." """
    height = run("RESOLVED").tip[:, 2] - wong.HEIGHT
    r = run("RESOLVED")
    assert height[r.at(4.9)] < -0.005
    assert (height[r.at(7) :] > 0.005).all()


def test_the_spools_open_wider_as_the_arm_extends() -> None:
    r = run("RESOLVED")
    for joint in (BOOM, STICK):
        opening = [abs(r.spool[r.at(t), joint]) for t in (7, 8, 9, 9.9)]
        assert 0.0 < opening[0] < opening[1] < opening[2] < opening[3]


def test_pressures_stay_between_drain_and_supply(both: Run) -> None:
    assert both.p.min() >= 0.0
    assert (both.p.max(axis=(0, 2)) <= [4000.0, 7000.0, 4000.0, 4000.0]).all()


@pytest.mark.parametrize("mode", MODES)
def test_the_papers_step_is_just_small_enough(mode: str) -> None:
    """Half of the step changes all joints by less than 0.02 degrees, except the bucket, which oscillates after 10 s."""
    coarse, fine = run(mode), run(mode, 0.005)
    off = abs(coarse.q - fine.q).max(axis=0) / DEGREE
    assert (off[:BUCKET] < 0.02).all()
    assert 0.1 < off[BUCKET] < 0.4


def test_at_one_centimetre_per_volt_the_papers_step_is_too_long() -> None:
    """For a spool of v minus the dead band, the bucket reaches a false equilibrium that a shorter step does not have.

    Then the text no longer holds, because nothing sags and the cab hardly lags.
    """
    coarse, fine = run("RESOLVED", 0.01, 1.0), run("RESOLVED", 0.005, 1.0)
    assert abs(coarse.q - fine.q)[:, BUCKET].max() / DEGREE > 1.0
    assert fine.error[fine.at(10), CAB] < 0.5
    assert (fine.spool[: fine.at(0.5), BOOM] > 0.01).any()
