"""Open-loop inverse dynamics: the forces that would keep a mechanism on its path, and no feedback.

Nothing brings the mechanism back, so every error of the integrator goes on by the mechanics alone. With A = df/dy along
the path, a small error e obeys de/dt = A e, and Phi with dPhi/dt = A Phi, Phi(0) = 1, says how large it can become: an
error of size 1 at the start may have the size |Phi(t)| at the time t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.control import InverseDynamics
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.sim.simulator import Simulator

Array = np.ndarray[Any, Any]
Path = Callable[[Any], tuple[list[Any], list[Any], list[Any]]]


def simulator(mechanism: Mechanism, path: Path, integrator: str = "rk4", kp: float = 0.0, kv: float = 0.0) -> Simulator:
    return Simulator(mechanism, integrator, control=InverseDynamics(mechanism, path, kp, kv))


def desired(path: Path, t: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations of the path, (rows, n) each."""
    q, v, a = (np.stack([x + 0.0 * t for x in part], axis=-1) for part in path(t))
    return q, v, a


def errors(run: Record, path: Path) -> tuple[Array, Array, Array]:
    """Desired less actual positions, velocities and accelerations."""
    q, v, a = desired(path, run.t)
    assert run.mechanism is not None
    actual = np.stack([run[f"{name}.a"] for name in run.mechanism.columns[1]], axis=-1)
    return q - run.q, v - run.v, a - actual


def largest(x: Array) -> float:
    """The element that is largest without its sign, with it."""
    return float(x.flat[np.abs(x).argmax()])


def leaves(run: Record, path: Path, by: float) -> float:
    """When some coordinate is first off by more than that (rad or m); infinite if none ever is."""
    off = np.abs(desired(path, run.t)[0] - run.q).max(axis=1) > by
    return float(run.t[off.argmax()]) if off.any() else np.inf


def jacobians(made: Simulator, path: Path, t: Array) -> Array:
    """A = df/dy on the path at these times, (times, 2n, 2n)."""
    q, v, _ = desired(path, t)
    found = made.dynamics.by_state.evaluate(t=t, y=np.concatenate([q, v], axis=-1))["ddy_dy"]
    return np.asarray(found, float)


def growth(made: Simulator, path: Path, seconds: float, step: float = 0.01) -> tuple[Array, Array]:
    """Times, and |Phi| at them: what a small error at the start can have become."""
    n = round(seconds / step)
    A = jacobians(made, path, np.linspace(0.0, seconds, 2 * n + 1))
    phi = np.eye(A.shape[-1])
    sizes = [1.0]
    for k in range(n):  # Runge and Kutta's method
        first, middle, last = A[2 * k : 2 * k + 3]
        k1 = first @ phi
        k2 = middle @ (phi + step / 2 * k1)
        k3 = middle @ (phi + step / 2 * k2)
        k4 = last @ (phi + step * k3)
        phi = phi + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        sizes.append(float(np.linalg.norm(phi, 2)))
    return np.linspace(0.0, seconds, n + 1), np.array(sizes)
