"""Open-loop inverse dynamics: drive a mechanism along a path by computed forces, without feedback.

Without feedback, every error of the integrator evolves by the mechanics alone. With A = df/dy along the path, a small
error e obeys de/dt = A e. The transition matrix Phi, with dPhi/dt = A Phi and Phi(0) = 1, bounds its size: an error of
size 1 at the start may grow to |Phi(t)| at the time t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.control import InverseDynamics
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.view.curves import Line, Panel

Array = np.ndarray[Any, Any]
Path = Callable[[Any], tuple[list[Any], list[Any], list[Any]]]


def simulator(mechanism: Mechanism, path: Path, integrator: str = "rk4", kp: float = 0.0, kv: float = 0.0) -> Simulator:
    """Return a simulator of `mechanism` driven by inverse dynamics along a path.

    Parameters
    ----------
    mechanism
        Mechanism to drive.
    path
        Function of time that returns positions, velocities and accelerations.
    integrator
        Name of the integrator.
    kp
        Position gain of the feedback, 1/s^2; 0 for open loop.
    kv
        Velocity gain of the feedback, 1/s; 0 for open loop.
    """
    return Simulator(mechanism, integrator, control=InverseDynamics(mechanism, path, kp, kv))


def desired_motion(path: Path, t: Array) -> tuple[Array, Array, Array]:
    """Return positions, velocities and accelerations of `path` at the times `t`, (rows, n) each."""
    q, v, a = (np.stack([x + 0.0 * t for x in part], axis=-1) for part in path(t))
    return q, v, a


def tracking_errors(run: Record, path: Path) -> tuple[Array, Array, Array]:
    """Return desired minus actual positions, velocities and accelerations of `run` along `path`."""
    q, v, a = desired_motion(path, run.t)
    assert run.mechanism is not None
    actual = np.stack([run[f"{name}.a"] for name in run.mechanism.columns[1]], axis=-1)
    return q - run.q, v - run.v, a - actual


def largest_magnitude(x: Array) -> float:
    """Return the element of `x` with the largest magnitude, with its sign."""
    return float(x.flat[np.abs(x).argmax()])


def departure_time(run: Record, path: Path, threshold: float) -> float:
    """Return when the run first leaves the path; infinity if it never does.

    Parameters
    ----------
    run
        Recorded motion.
    path
        Desired motion.
    threshold
        Deviation of any coordinate that counts as leaving, rad or m.
    """
    off = np.abs(desired_motion(path, run.t)[0] - run.q).max(axis=1) > threshold
    return float(run.t[off.argmax()]) if off.any() else np.inf


def path_jacobians(simulator: Simulator, path: Path, t: Array) -> Array:
    """Return A = df/dy of `simulator` on `path` at the times `t`, (times, 2n, 2n)."""
    q, v, _ = desired_motion(path, t)
    matrices = simulator.dynamics.state_jacobian.evaluate(t=t, y=np.concatenate([q, v], axis=-1))["ddy_dy"]
    return np.asarray(matrices, float)


def error_growth(simulator: Simulator, path: Path, seconds: float, step: float = 0.01) -> tuple[Array, Array]:
    """Return times and |Phi| at those times: the largest growth factor of a small initial error.

    Parameters
    ----------
    simulator
        Simulator of the driven mechanism.
    path
        Desired motion.
    seconds
        Duration.
    step
        Step of the Runge-Kutta integration of Phi, s.
    """
    n = round(seconds / step)
    A = path_jacobians(simulator, path, np.linspace(0.0, seconds, 2 * n + 1))
    phi = np.eye(A.shape[-1])
    sizes = [1.0]
    for k in range(n):  # classical Runge-Kutta method of order 4
        first, middle, last = A[2 * k : 2 * k + 3]
        k1 = first @ phi
        k2 = middle @ (phi + step / 2 * k1)
        k3 = middle @ (phi + step / 2 * k2)
        k4 = last @ (phi + step * k3)
        phi = phi + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        sizes.append(float(np.linalg.norm(phi, 2)))
    return np.linspace(0.0, seconds, n + 1), np.array(sizes)


def growth_panel(t: Array, sizes: Array) -> Panel:
    """Plot the result of `error_growth`: the growth factors `sizes` at the times `t`."""
    return Panel("log10 of the growth factor of a small error", [Line("growth |Phi|", t, np.log10(sizes))])
