"""A stepper as gymnasium knows environments: one (Env), or a batch of them in one call (VectorEnv).

A run that its `ends` ends, or that diverges, is terminated; one that comes to its limit is truncated. In a batch, runs
begin anew in the same step, as gymnasium's AutoresetMode.SAME_STEP: what is observed is their new start, and
info["final_obs"] has what was last seen of those of info["_final_obs"].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Env as OneEnv
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as ManyEnvs
from gymnasium.vector.utils import batch_space

from bellcrank.errors import InputError, brief, unknown
from bellcrank.graph.program import FINISHED, HUGE
from bellcrank.model import Mechanism
from bellcrank.sim.stepping import stepper
from bellcrank.sim.systems import System

OPTIONS = ("start", "parameters")  # of a reset
Array = np.ndarray[Any, Any]
Plant = Mechanism | System


def _actions(n: int, low: Any, high: Any) -> Box:
    """The space of the inputs."""
    if not n:
        raise InputError("gym: the plant has no inputs, so that there is nothing to decide; see bellcrank.system.")
    try:
        a, b = (np.broadcast_to(np.asarray(x, float), (n,)).copy() for x in (low, high))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"gym: low is {low!r} and high {high!r}; expected numbers, or one for each of {n}.") from None
    if not (a <= b).all():  # nor where one is NaN
        raise InputError(f"gym: low is {low!r} and high {high!r}; expected low up to high, for each of {n} inputs.")
    return Box(a, b, dtype=np.float64)


def _observations(n: int) -> Box:
    return Box(-HUGE, HUGE, (n,), np.float64)  # a run that goes beyond is ended


def _reset_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """Return a copy of the options of a reset, whose names are checked."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"reset: options is {brief(options)}; expected a dictionary with some of {', '.join(known)}.")
    for name in options or {}:
        if name not in known:
            raise InputError(f"reset: {unknown('option', name, known)}")
    return dict(options or {})


class Env(OneEnv[Array, Array]):
    """One run of a plant. settings: arguments of bellcrank.stepper. low, high: of the inputs."""

    metadata = {"render_modes": []}

    def __init__(self, plant: Plant, *, low: Any = -1.0, high: Any = 1.0, **settings: Any) -> None:
        self.stepper = stepper(plant, None, **{**settings, "restart": False})
        self.action_space = _actions(len(self.stepper.inputs), low, high)
        self.observation_space = _observations(len(self.stepper.outputs))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin anew. options: "start" and "parameters", as in Stepper.reset."""
        given = _reset_options(options, OPTIONS)
        super().reset(seed=seed)
        return self.stepper.reset(seed=seed, **given), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        y, end = self.stepper.step(action), float(self.stepper.ended)
        info = {"reason": self.stepper.reasons[0]} if end else {}
        return y, float(self.stepper.reward), end not in (0.0, FINISHED), end == FINISHED, info


class VectorEnv(ManyEnvs[Array, Array, Array]):
    """Many runs of a plant. settings: arguments of bellcrank.stepper. low, high: of the inputs."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, plant: Plant, batch: int, *, low: Any = -1.0, high: Any = 1.0, **settings: Any) -> None:
        self.stepper = stepper(plant, batch, **{"restart": True, **settings})
        self.num_envs = self.stepper.runs
        self.single_action_space = _actions(len(self.stepper.inputs), low, high)
        self.single_observation_space = _observations(len(self.stepper.outputs))
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        if not self.stepper.task.restarts:
            self.metadata = {**self.metadata, "autoreset_mode": AutoresetMode.DISABLED}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin anew. options: "start" and "parameters", as in Stepper.reset, and "reset_mask", the runs to begin."""
        given = _reset_options(options, (*OPTIONS, "reset_mask"))
        if "reset_mask" in given:
            given["mask"] = given.pop("reset_mask")
        return self.stepper.reset(seed=seed, **given), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        env = self.stepper
        y, end = env.step(actions), env.ended
        truncated = end == FINISHED
        over = end > 0.0
        info = {"final_obs": env.final.copy(), "_final_obs": over} if env.final is not None and over.any() else {}
        return y, env.reward.copy(), over & ~truncated, truncated, info
