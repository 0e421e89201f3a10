"""Excavator of Wong's chapter 5 with the control as he built it: sampled, with differences and one-step sums.

    dtheta ~ (theta_k - theta_k-1) / T                        differences of the angles that arrive, T = 1/20 s
    theta_d,k+1 = theta_d,k + T dtheta_d,k                    one step of summation
    v = kv (dtheta_d - dtheta) + kp (theta_d - theta)         5.5

The step is the paper's, RK4 with h = 0.01 s. The machine for the cockpit has one slider for each desired rate. It
has no stops, no ground and no leash, as the paper has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bellcrank.cockpit.machines import Lever, Machine, Plot, state_plots
from bellcrank.excavators import spool_control
from bellcrank.excavators.spool_control import JOINTS
from bellcrank.scalar import Scalar
from bellcrank.sim.system.sampling import Sampled
from bellcrank.sim.system.systems import System, system
from bellcrank.zoo import data, excavator

STEP_SECONDS, FRAME_STEPS = 0.01, 5
FRAME_SECONDS = STEP_SECONDS * FRAME_STEPS
FULL_RATES = (0.24, 0.17, 0.32, 0.32)  # rad/s, ends of the sliders


def spool_voltages(
    theta: Sequence[Scalar], before: Sequence[Scalar], theta_d: Sequence[Scalar], rates_d: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """Return the voltages of the sampled control (5.5), and the desired angles of the next sample.

    Parameters
    ----------
    theta
        Joint angles, rad.
    before
        Those of the sample before.
    theta_d
        Desired angles.
    rates_d
        Desired rates, rad/s.
    """
    gains = data("excavator")["control"]
    volts = []
    for i, (kp, kv) in enumerate(zip(gains["kp"], gains["kv"], strict=True)):
        rate = (theta[i] - before[i]) / FRAME_SECONDS
        volts.append(kv * (rates_d[i] - rate) + kp * (theta_d[i] - theta[i]))
    return volts, [a + FRAME_SECONDS * w for a, w in zip(theta_d, rates_d, strict=True)]


def sampled_system(
    start: Sequence[float], rates_d: Callable[[Scalar, Any], Sequence[Scalar]], inputs: Sequence[str] = ()
) -> System:
    """Return the excavator with its hydraulics and the sampled control.

    Parameters
    ----------
    start
        Joint angles at the start, rad.
    rates_d
        Desired joint rates by time and inputs, rad/s.
    inputs
        Names of the inputs.
    """
    initial = {f"{j}.{name}": float(q) for name in ("before", "d") for j, q in zip(JOINTS, start, strict=True)}

    def control(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        before, theta_d = ([x[f"{j}.{name}"] for j in JOINTS] for name in ("before", "d"))
        theta = [q[i] for i in range(len(JOINTS))]
        volts, following = spool_voltages(theta, before, theta_d, rates_d(t, u))
        return volts, dict(zip(initial, [*theta, *following], strict=True))

    sampled = Sampled(control, every=FRAME_SECONDS, states=initial)
    return system(excavator(), spool_control.hydraulics(), sampled, inputs=dict.fromkeys(inputs, 0.0))


def machine() -> Machine:
    """Return the machine for the cockpit, with a slider for the desired rate of each joint."""
    start = spool_control.poses()[0]
    plant = sampled_system(start, lambda t, u: [u[j] for j in JOINTS], JOINTS)
    levers = tuple(Lever(j, "rad/s", -most, most) for j, most in zip(JOINTS, FULL_RATES, strict=True))
    pressures = Plot("Pressures", "psi", tuple(f"{j}.{p}" for j in JOINTS for p in ("p_in", "p_out")))
    plots = (*state_plots(plant.mechanism), pressures)
    return Machine(plant, levers, plots, tuple(start), look="excavator", integrator="rk4", rate=1.0 / STEP_SECONDS)
