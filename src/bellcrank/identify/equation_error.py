"""Equation-error residuals: measured rates less those of the plant in the measured state.

They need no runs and no estimate of the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.identify.experiments import Experiment, time_derivative
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]


def equation_error(
    s: System, names: Sequence[str], measured: Sequence[Experiment], parameters: Mapping[str, float] | None
) -> RateResiduals:
    """Return the equation-error residuals, after a check that the data have all states.

    Parameters
    ----------
    s
        System.
    names
        Free numbers.
    measured
        Experiments.
    parameters
        Values of further parameters.
    """
    m = s.mechanism
    if m.loops or m.nq != m.nv or s.sampled:
        raise InputError(
            'error="equation" is for trees of one-coordinate joints without sampled controllers; use error="output".'
        )
    for n in names:
        if n not in s.parameters:
            raise InputError(f'free: "{n}" belongs to the start, on which rates do not depend; use error="output".')
    for e in measured:
        for n in (*(f"{j}.q" for j in m.columns[0]), *(z.name for z in s.states)):
            if n not in e.seen:
                raise InputError(f'{e.where}: error="equation" needs all states, and there is no column "{n}".')
    return RateResiduals(s, tuple(names), list(measured), dict(parameters or {}))


@dataclass(eq=False)
class RateResiduals:
    """Residuals of accelerations and of the rates of further states, by column."""

    system: System
    names: tuple[str, ...]
    measured: list[Experiment]
    parameters: dict[str, float]
    runs: int = 0
    was_evaluated: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the residuals."""
        s = self.system
        return (*(f"{n}.a" for n in s.mechanism.columns[1]), *(f"d({z.name})/dt" for z in s.states))

    @cached_property
    def _graphs(self) -> tuple[Any, Any]:
        rate = Simulator(self.system).program().ports.rate
        return rate, rate.jacobian(next(iter(rate.outputs)), "p")

    @cached_property
    def _states(self) -> tuple[Array, Array, Array, Array]:
        """Times, states, inputs and state rates of all samples."""
        s, m = self.system, self.system.mechanism
        parts = []
        for e in self.measured:
            q = np.stack([e.seen[f"{n}.q"] for n in m.columns[0]], axis=1)
            has = all(f"{n}.v" in e.seen for n in m.columns[1])
            v = np.stack([e.seen[f"{n}.v"] for n in m.columns[1]], axis=1) if has else time_derivative(q, e.t)
            x = np.stack([e.seen[z.name] for z in s.states], axis=1) if s.states else np.zeros((len(q), 0))
            u = np.zeros((len(q), len(s.inputs)))
            for k, n in enumerate(s.inputs):
                u[:, k] = e.inputs.get(n, s.defaults.get(n, 0.0))
            u[1:] = 0.5 * (u[1:] + u[:-1])  # an input holds from its sample on; central differences cover both sides
            dy = np.concatenate([time_derivative(v, e.t), time_derivative(x, e.t)], axis=1)
            inner = slice(2, -2)  # differences are less accurate at the ends
            parts.append([a[inner] for a in (e.t, np.concatenate([q, v, x], axis=1), u, dy)])
        t, y, u, dy = (np.concatenate(p) for p in zip(*parts, strict=True))
        return t, y, u, dy

    def off(self, x: Array) -> tuple[Array, Array]:
        """Return residuals (columns, samples) at values `x`, and their slopes (columns, samples, free)."""
        rate, slope = self._graphs
        t, y, u, dy = self._states
        try:
            p = self.system.parameters.vector({**self.parameters, **dict(zip(self.names, x.tolist(), strict=True))})
        except InputError:
            if not self.was_evaluated:  # the starting point must be valid
                raise
            return np.full(dy.T.shape, np.nan), np.zeros((*dy.T.shape, len(self.names)))
        self.was_evaluated = True
        arguments = {"t": t, "y": y, "u": u, "p": np.broadcast_to(p, (len(t), p.size))}
        rate_arguments = {k: arguments[k] for k in rate.inputs}
        nv = self.system.mechanism.nv
        model_rates = next(iter(rate.evaluate(**rate_arguments).values()))[:, nv:]
        places = [list(self.system.parameters).index(n) for n in self.names]
        J = next(iter(slope.evaluate(**{k: arguments[k] for k in slope.inputs}).values()))[:, nv:, places]
        return (model_rates - dy).T, np.moveaxis(np.asarray(J), 0, 1)

    def sizes(self) -> Array:
        """Return the standard deviation of each measured rate, as a scale."""
        return np.asarray(self._states[3].std(axis=0))

    def costs(self, x: Array, noise: Array) -> Array:
        """Return the sum of squares in units of `noise` at each of the points `x` (points, free)."""
        return np.array([float(((self.off(one)[0] / noise[:, None]) ** 2).sum()) for one in x])
