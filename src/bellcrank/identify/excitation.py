"""Exciting trajectories: motions within limits with a well-conditioned regressor of the base parameters.

Each joint follows a Fourier series (J. Swevers et al., Optimal robot excitation and identification, 1997) about the
middle of its range, blended in and out so that it starts and ends at rest. For any coefficients the series is scaled to
the limits, so the search for the least condition number has no constraints. With closed loops the driven joints follow
such series, in a box around a configuration within which the loops close, and the other joints move along.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, generator
from bellcrank.errors import InputError
from bellcrank.files import write_text
from bellcrank.identify.closed_loops import MAX_HALF_WIDTH, Branch
from bellcrank.identify.least_squares import Base
from bellcrank.identify.regressors import regressor
from bellcrank.lazy_import import optional_import
from bellcrank.model import Mechanism
from bellcrank.quoting import cell
from bellcrank.sim import run_arguments

Array = np.ndarray[Any, Any]
# rad/s and rad/s^2 without limits; robot files never limit accelerations.
DEFAULT_SPEED, DEFAULT_ACCELERATION = 2.0, 8.0
LIMIT_SHARE = 0.95  # share of the limits that is used
SEARCH_SAMPLES = 60  # of a trajectory, during the search
MAX_HARMONICS, MAX_TRIES = 1000, 10_000
BLEND_SECONDS = 1.0  # s at either end, at most a fifth of the duration


@dataclass(frozen=True, eq=False)
class Excitation:
    """Exciting trajectory.

    Parameters
    ----------
    base : Base
        Base parameters that it excites.
    t : ndarray, shape (samples,)
        Times, s.
    q : ndarray, shape (samples, nq)
        Joint positions.
    v : ndarray, shape (samples, nv)
        Joint velocities.
    a : ndarray, shape (samples, nv)
        Joint accelerations.
    cost : float
        Condition number of the regressor with scaled columns.
    begun : float
        Condition number before the search.
    """

    base: Base
    t: Array
    q: Array
    v: Array
    a: Array
    cost: float
    begun: float = field(default=np.nan)  # condition number before the search

    def save(self, path: str | Path) -> Path:
        """Write a CSV file that a controller can play.

        The columns are t, then JOINT.q, JOINT.v and JOINT.a of every joint.

        Parameters
        ----------
        path : str or Path
            File to write.

        Returns
        -------
        Path
            The file.
        """
        q, v = self.base.mechanism.columns
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["t", *(cell(f"{n}.{k}") for k, names in (("q", q), ("v", v), ("a", v)) for n in names)])
        for row in np.column_stack([self.t, self.q, self.v, self.a]):
            writer.writerow([repr(float(x)) for x in row])
        return write_text(Path(path), out.getvalue(), "The motion is still in memory: call save(...) again")


@explain_argument_errors
def excite(
    base: Base, seconds: float = 20.0, rate: float = 100.0, harmonics: int = 5, tries: int = 4, seed: int = 0
) -> Excitation:
    """Return an exciting trajectory within the limits of the joints.

    Parameters
    ----------
    base : Base
        Base parameters to identify. With closed loops the driven joints are moved, on the branch of `base`.
    seconds : float, default 20.0
        Duration, s.
    rate : float, default 100.0
        Sampling rate, Hz.
    harmonics : int, default 5
        Number of harmonics of each joint.
    tries : int, default 4
        Number of random starts; the search continues from the best.
    seed : int, default 0
        Seed of the random starts.

    Returns
    -------
    Excitation
        Trajectory and condition number.

    Raises
    ------
    InputError
        If an argument does not fit, or the mechanism is a tree with quaternions.
    """
    m = base.mechanism
    if not m.loops and m.nq != m.nv:
        raise InputError(
            f'"{m.name}" has quaternions; exciting trajectories are for trees of one-coordinate joints, or for loops.'
        )
    seconds, rate = run_arguments.duration("seconds", seconds), run_arguments.rate("rate", rate)
    run_arguments.check_work("seconds", seconds, 1.0 / rate, run_arguments.MAX_SAMPLES)
    harmonics = run_arguments.count("harmonics", harmonics, MAX_HARMONICS)
    tries = run_arguments.count("tries", tries, MAX_TRIES)
    optimize = optional_import("scipy.optimize", "study", "exciting trajectories")
    series = _LoopSeries(base, seconds, harmonics, Branch(m, base.actuated, base.at)) if m.loops else _FourierSeries(
        base, seconds, harmonics, *_ranges(m, range(m.nv), range(m.nv)))  # fmt: skip
    starts = generator(seed).normal(size=(tries, series.size)) / series.harmonic_weights
    costs = series.costs(starts)
    best = starts[int(np.argmin(costs))]
    optimum = optimize.minimize(
        series.cost_and_slope, best, jac=True, method="L-BFGS-B", options={"maxiter": 12, "maxfun": 16}
    )
    x = optimum.x if optimum.fun < costs.min() else best
    t = np.arange(round(seconds * rate) + 1) / rate
    q, v, a = series.all_joints(*(y[0] for y in series.motion(x[None], t)))
    return Excitation(base, t, q, v, a, float(np.exp(min(optimum.fun, costs.min()))), float(np.exp(costs[0])))


def _ranges(m: Mechanism, coordinates: Sequence[int], joints: Sequence[int]) -> tuple[Array, Array, Array]:
    """Return centres, half-widths and speeds from the limits of these joints."""
    lower, upper, velocity = (x[list(k)] for x, k in zip(m.limits[:3], (coordinates, coordinates, joints)))
    is_bounded = np.isfinite(lower) & np.isfinite(upper)
    low = np.where(is_bounded, lower, np.maximum(lower, -MAX_HALF_WIDTH))
    high = np.where(is_bounded, upper, np.minimum(upper, MAX_HALF_WIDTH))
    return (low + high) / 2, (high - low) / 2, np.where(np.isfinite(velocity), velocity, DEFAULT_SPEED)


class _FourierSeries:
    """Fourier series of joints with given centres, ranges and speeds; for a tree, of all joints."""

    def __init__(self, base: Base, seconds: float, harmonics: int, middle: Array, room: Array, fastest: Array) -> None:
        self.base, self.seconds, self.harmonics = base, seconds, harmonics
        self.middle, self.room, self.max_speed = middle, LIMIT_SHARE * room, LIMIT_SHARE * fastest
        self.max_acceleration = np.full(len(middle), DEFAULT_ACCELERATION)
        self.size = 2 * harmonics * len(middle)
        self.grid = np.linspace(0.0, seconds, SEARCH_SAMPLES + 1)[1:-1]
        self.dense = np.linspace(0.0, seconds, 40 * harmonics + 1)
        self.harmonic_weights = np.tile(np.repeat(np.arange(1, harmonics + 1), 2), len(middle))

    def all_joints(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return the motion of all joints, (samples, n), from `q`, `v` and `a` of the moved ones."""
        return q, v, a

    def regressor(self, q: Array, v: Array, a: Array) -> Array:
        """Return the regressor of the base parameters along `q`, `v`, `a` of the moved joints."""
        return self.base.regressor(q, v, a)

    def motion(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """Return q, v and a (trials, times, nv) for coefficients `x` (trials, size) at times `t`, within limits."""
        q, v, a = self._shape(x, t)
        Q, V, A = (np.abs(y).max(axis=1) for y in self._shape(x, self.dense))
        scale = np.min([self.room / np.maximum(Q, 1e-9), self.max_speed / np.maximum(V, 1e-9),
                        self.max_acceleration / np.maximum(A, 1e-9)], axis=0)[:, None]  # fmt: skip
        return self.middle + scale * q, scale * v, scale * a

    def _shape(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """Return the unscaled series times a window, and its derivatives."""
        c = x.reshape(len(x), len(self.middle), self.harmonics, 2)
        w = 2.0 * np.pi * np.arange(1, self.harmonics + 1) / self.seconds * max(1.0, round(self.seconds / 10.0))
        S, C = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        f = np.einsum("xjk,tk->xtj", c[..., 0], S) + np.einsum("xjk,tk->xtj", c[..., 1], C)
        d = np.einsum("xjk,tk->xtj", c[..., 0] * w, C) - np.einsum("xjk,tk->xtj", c[..., 1] * w, S)
        e = np.einsum("xjk,tk->xtj", -c[..., 0] * w * w, S) - np.einsum("xjk,tk->xtj", c[..., 1] * w * w, C)
        g, dg, eg = (y[:, None] for y in self._window(t))
        return g * f, dg * f + g * d, eg * f + 2.0 * dg * d + g * e

    def _window(self, t: Array) -> tuple[Array, Array, Array]:
        """Return a window 10 s^3 - 15 s^4 + 6 s^5 from 0 to 1 and back, and two derivatives that are 0 at the ends."""
        T = min(BLEND_SECONDS, self.seconds / 5.0)
        s = np.clip(np.minimum(t, self.seconds - t) / T, 0.0, 1.0)
        sign = np.where(t < self.seconds / 2, 1.0, -1.0)
        g = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        dg = 30.0 * s * s * (1.0 - s) ** 2 / T * sign
        eg = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / T**2
        return g, dg, eg

    def costs(self, x: Array) -> Array:
        """Return the log of the condition number of the regressor, columns scaled, for each trial in `x`."""
        q, v, a = self.motion(x, self.grid)
        trials, samples, n = q.shape
        Y = self.regressor(q.reshape(-1, n), v.reshape(-1, n), a.reshape(-1, n))
        A = Y.reshape(trials, samples * Y.shape[1], -1)
        size = np.linalg.norm(A, axis=1, keepdims=True)
        N = np.swapaxes(A, 1, 2) @ A / (np.swapaxes(size, 1, 2) * np.maximum(size, 1e-300))
        s = np.linalg.eigvalsh(N)
        return np.asarray(0.5 * np.log(s[:, -1] / np.maximum(s[:, 0], 1e-14)))

    def cost_and_slope(self, x: Array) -> tuple[float, Array]:
        """Return cost and gradient at `x` by differences, evaluated in one batch of samples."""
        h = 1e-5
        costs = self.costs(np.vstack([x[None], x + h * np.eye(len(x))]))
        return float(costs[0]), (costs[1:] - costs[0]) / h


class _LoopSeries(_FourierSeries):
    """Fourier series of the driven joints of closed loops; the other joints move along."""

    def __init__(self, base: Base, seconds: float, harmonics: int, branch: Branch) -> None:
        m, coordinates = base.mechanism, branch.coordinates
        centres, _, fastest = _ranges(m, coordinates, branch.driven)
        is_bounded = (np.isfinite(m.limits.lower) & np.isfinite(m.limits.upper))[coordinates]
        branch.move_towards(np.where(is_bounded, centres, branch.middle))
        middle = branch.middle
        max_half_widths = np.minimum(
            np.minimum(m.limits.upper[coordinates] - middle, middle - m.limits.lower[coordinates]), MAX_HALF_WIDTH
        )
        if (max_half_widths <= 0.0).any():
            raise InputError(
                f'"{m.name}" starts outside the limits of {", ".join(base.actuated)}; give a guess inside them: at=...'
            )
        room = branch.regular_box(max_half_widths)
        super().__init__(base, seconds, harmonics, middle, room, branch.limited_speeds(fastest))
        self.branch = branch

    def all_joints(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return the motion of all joints, (samples, n), from `q`, `v` and `a` of the driven ones."""
        return self.branch.motion(q, v, a)[:3]

    def regressor(self, q: Array, v: Array, a: Array) -> Array:
        """Return G^T Y along `q`, `v`, `a` of the driven joints.

        Constraint forces have no power along G, which is the identity on the driven joints.
        """
        q, v, a, G = self.branch.motion(q, v, a)
        Y = regressor(self.base.mechanism, q, v, a, self.base.numbers)[:, :, list(self.base.independent)]
        return np.asarray(np.swapaxes(G, 1, 2) @ Y)
