"""Exciting trajectories: a motion within limits along which forces tell most of the base parameters.

Each joint follows a Fourier series (J. Swevers et al., Optimal robot excitation and identification, 1997) about the
middle of its range, blended in and out so that it begins and ends at rest. Whatever the coefficients are, the series is
made as large as the limits allow; so the search for the least condition number has no constraints.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.atomic_file import write_text
from bellcrank.errors import InputError
from bellcrank.extras import extra
from bellcrank.identify.base import Base
from bellcrank.misfits import explained
from bellcrank.quoting import cell
from bellcrank.sim.arguments import many, positive

Array = np.ndarray[Any, Any]
WIDEST = 2.0  # rad or m either way, of a joint without limits
FASTEST, STRONGEST = 2.0, 8.0  # of a joint whose limits say nothing; accelerations are never limited in robot files
MARGIN = 0.95  # of what limits allow
SAMPLES = 60  # of a trajectory, while it is searched for
BLEND = 1.0  # seconds at either end, at most a fifth


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion: t (samples), q, v, a (samples, nv). cost: the condition number of its regressor, columns scaled."""

    base: Base
    t: Array
    q: Array
    v: Array
    a: Array
    cost: float
    begun: float = field(default=np.nan)  # what it was before the search

    def save(self, path: str | Path) -> Path:
        """A CSV file that a controller can play: t, then JOINT.q, JOINT.v and JOINT.a of every joint."""
        names = self.base.mechanism.columns[1]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["t", *(cell(f"{n}.{k}") for k in "qva" for n in names)])
        for row in np.column_stack([self.t, self.q, self.v, self.a]):
            writer.writerow([repr(float(x)) for x in row])
        return write_text(Path(path), out.getvalue(), "The motion is still in memory: call save(...) again")


@explained
def excite(
    base: Base, seconds: float = 20.0, rate: float = 100.0, harmonics: int = 5, tries: int = 4, seed: int = 0
) -> Excitation:
    """A motion of so many seconds, sampled at `rate` Hz, within the limits of the joints. harmonics: of each joint.
    tries: random starts of the search, of which the best is gone on with.
    """
    m = base.mechanism
    if m.loops or m.nq != m.nv:
        raise InputError(f'"{m.name}" has loops or quaternions; exciting motions are for trees of plain joints.')
    seconds, rate = positive("seconds", seconds), positive("rate", rate, ", in Hz")
    series = _Series(base, seconds, many("harmonics", harmonics))
    optimize = extra("scipy.optimize", "study", "exciting trajectories")
    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(many("tries", tries), series.size)) / series.fading
    costs = series.costs(starts)
    best = starts[int(np.argmin(costs))]
    found = optimize.minimize(
        series.cost_and_slope, best, jac=True, method="L-BFGS-B", options={"maxiter": 12, "maxfun": 16}
    )
    x = found.x if found.fun < costs.min() else best
    t = np.arange(round(seconds * rate) + 1) / rate
    q, v, a = (y[0] for y in series.motion(x[None], t))
    return Excitation(base, t, q, v, a, float(np.exp(min(found.fun, costs.min()))), float(np.exp(costs[0])))


class _Series:
    def __init__(self, base: Base, seconds: float, harmonics: int) -> None:
        self.base, self.seconds, self.harmonics = base, seconds, harmonics
        limits = base.mechanism.limits
        low, high = np.maximum(limits.lower, -WIDEST), np.minimum(limits.upper, WIDEST)
        wide = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        low, high = np.where(wide, limits.lower, low), np.where(wide, limits.upper, high)
        self.middle, self.room = (low + high) / 2, MARGIN * (high - low) / 2
        fast = np.where(np.isfinite(limits.velocity), limits.velocity, FASTEST)
        self.fastest, self.strongest = MARGIN * fast, np.full(len(fast), STRONGEST)
        self.size = 2 * harmonics * base.mechanism.nv
        self.grid = np.linspace(0.0, seconds, SAMPLES + 1)[1:-1]
        self.dense = np.linspace(0.0, seconds, 40 * harmonics + 1)
        self.fading = np.tile(np.repeat(np.arange(1, harmonics + 1), 2), base.mechanism.nv)

    def motion(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """q, v and a (trials, times, nv) of coefficients (trials, size), as large as the limits allow."""
        q, v, a = self._shape(x, t)
        Q, V, A = (np.abs(y).max(axis=1) for y in self._shape(x, self.dense))
        scale = np.min([self.room / np.maximum(Q, 1e-9), self.fastest / np.maximum(V, 1e-9),
                        self.strongest / np.maximum(A, 1e-9)], axis=0)[:, None]  # fmt: skip
        return self.middle + scale * q, scale * v, scale * a

    def _shape(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """Before it is made large: series times a window, and its derivatives."""
        n = self.base.mechanism.nv
        c = x.reshape(len(x), n, self.harmonics, 2)
        w = 2.0 * np.pi * np.arange(1, self.harmonics + 1) / self.seconds * max(1.0, round(self.seconds / 10.0))
        S, C = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        f = np.einsum("xjk,tk->xtj", c[..., 0], S) + np.einsum("xjk,tk->xtj", c[..., 1], C)
        d = np.einsum("xjk,tk->xtj", c[..., 0] * w, C) - np.einsum("xjk,tk->xtj", c[..., 1] * w, S)
        e = np.einsum("xjk,tk->xtj", -c[..., 0] * w * w, S) - np.einsum("xjk,tk->xtj", c[..., 1] * w * w, C)
        g, dg, eg = (y[:, None] for y in self._window(t))
        return g * f, dg * f + g * d, eg * f + 2.0 * dg * d + g * e

    def _window(self, t: Array) -> tuple[Array, Array, Array]:
        """From 0 to 1 and back, with two derivatives that are 0 at the ends: 10 s^3 - 15 s^4 + 6 s^5."""
        T = min(BLEND, self.seconds / 5.0)
        s = np.clip(np.minimum(t, self.seconds - t) / T, 0.0, 1.0)
        sign = np.where(t < self.seconds / 2, 1.0, -1.0)
        g = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        dg = 30.0 * s * s * (1.0 - s) ** 2 / T * sign
        eg = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / T**2
        return g, dg, eg

    def costs(self, x: Array) -> Array:
        """log of the condition number of the regressor, columns scaled, of each trial."""
        q, v, a = self.motion(x, self.grid)
        trials, samples, n = q.shape
        Y = self.base.regressor(q.reshape(-1, n), v.reshape(-1, n), a.reshape(-1, n))
        A = Y.reshape(trials, samples * Y.shape[1], -1)
        size = np.linalg.norm(A, axis=1, keepdims=True)
        N = np.swapaxes(A, 1, 2) @ A / (np.swapaxes(size, 1, 2) * np.maximum(size, 1e-300))
        s = np.linalg.eigvalsh(N)
        return np.asarray(0.5 * np.log(s[:, -1] / np.maximum(s[:, 0], 1e-14)))

    def cost_and_slope(self, x: Array) -> tuple[float, Array]:
        """By differences: all of them are one batch of samples."""
        h = 1e-5
        found = self.costs(np.vstack([x[None], x + h * np.eye(len(x))]))
        return float(found[0]), (found[1:] - found[0]) / h
