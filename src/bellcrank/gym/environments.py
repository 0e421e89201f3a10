"""Steppers as environments of gymnasium: one run (Env), or a batch in one call (VectorEnv).

A run that meets its condition `ends`, or diverges, is terminated; a run that reaches its time limit is truncated. In a
batch, ended runs restart in the same step, as in gymnasium's AutoresetMode.SAME_STEP: their observation is the new
start, and info["final_obs"] has the last observations of the runs in info["_final_obs"].
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

from bellcrank.errors import InputError, brief, check_known
from bellcrank.graph.program import FINISHED, STATE_LIMIT
from bellcrank.model import Mechanism
from bellcrank.sim.stepper.stepper_factory import stepper
from bellcrank.sim.system.systems import System

RESET_OPTIONS = ("start", "parameters")  # options of a reset
Array = np.ndarray[Any, Any]
Plant = Mechanism | System


def _action_space(n: int, low: Any, high: Any) -> Box:
    """Return the space of the inputs."""
    if not n:
        raise InputError("gym: the plant has no inputs, so there is no action; see bellcrank.system.")
    try:
        a, b = (np.broadcast_to(np.asarray(x, float), (n,)).copy() for x in (low, high))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"gym: low is {low!r} and high {high!r}; expected numbers, or one for each of {n}.") from None
    if not (a <= b).all():  # also false if one is NaN
        raise InputError(f"gym: low is {low!r} and high {high!r}; expected low up to high, for each of {n} inputs.")
    return Box(a, b, dtype=np.float64)


def _observation_space(n: int) -> Box:
    return Box(-STATE_LIMIT, STATE_LIMIT, (n,), np.float64)  # a run beyond these bounds is ended


def _reset_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """Return a copy of the options of a reset, whose names are checked."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"reset: options is {brief(options)}; expected a dictionary with some of {', '.join(known)}.")
    for name in options or {}:
        check_known("option", name, known, "reset")
    return dict(options or {})


class Env(OneEnv[Array, Array]):
    """Environment of one run of a plant.

    Parameters
    ----------
    plant : Mechanism or System
        Plant to control.
    low, high : float or array_like
        Bounds of the inputs.
    **settings
        Arguments of `bellcrank.stepper`.
    """

    metadata = {"render_modes": []}

    def __init__(self, plant: Plant, *, low: Any = -1.0, high: Any = 1.0, **settings: Any) -> None:
        self.stepper = stepper(plant, None, **{**settings, "restart": False})
        self.action_space = _action_space(len(self.stepper.inputs), low, high)
        self.observation_space = _observation_space(len(self.stepper.outputs))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Restart the run.

        Parameters
        ----------
        seed : int, optional
            Seed of random numbers.
        options : dict, optional
            "start" and "parameters", as in `Stepper.reset`.

        Returns
        -------
        observation : ndarray
            First observation.
        info : dict
            Empty.
        """
        checked_options = _reset_options(options, RESET_OPTIONS)
        super().reset(seed=seed)
        return self.stepper.reset(seed=seed, **checked_options), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action for one period.

        Parameters
        ----------
        action : array_like
            Inputs of the plant.

        Returns
        -------
        observation : ndarray
            Outputs at the end of the period.
        reward : float
            Reward of the period.
        terminated : bool
            True if the run has ended before its time limit.
        truncated : bool
            True if the run has reached its time limit.
        info : dict
            "reason", if the run has ended.
        """
        y, end = self.stepper.step(action), float(self.stepper.ended)
        info = {"reason": self.stepper.reasons[0]} if end else {}
        return y, float(self.stepper.reward), end not in (0.0, FINISHED), end == FINISHED, info


class VectorEnv(ManyEnvs[Array, Array, Array]):
    """Environment of a batch of runs of a plant.

    Parameters
    ----------
    plant : Mechanism or System
        Plant to control.
    batch : int
        Number of runs.
    low, high : float or array_like
        Bounds of the inputs.
    **settings
        Arguments of `bellcrank.stepper`.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, plant: Plant, batch: int, *, low: Any = -1.0, high: Any = 1.0, **settings: Any) -> None:
        self.stepper = stepper(plant, batch, **{"restart": True, **settings})
        self.num_envs = self.stepper.runs
        self.single_action_space = _action_space(len(self.stepper.inputs), low, high)
        self.single_observation_space = _observation_space(len(self.stepper.outputs))
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        if not self.stepper.task.restarts:
            self.metadata = {**self.metadata, "autoreset_mode": AutoresetMode.DISABLED}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Restart all runs, or some.

        Parameters
        ----------
        seed : int, optional
            Seed of random numbers.
        options : dict, optional
            "start" and "parameters", as in `Stepper.reset`, and "reset_mask", the runs to restart.

        Returns
        -------
        observation : ndarray, shape (batch, outputs)
            First observations.
        info : dict
            Empty.
        """
        checked_options = _reset_options(options, (*RESET_OPTIONS, "reset_mask"))
        if "reset_mask" in checked_options:
            checked_options["mask"] = checked_options.pop("reset_mask")
        return self.stepper.reset(seed=seed, **checked_options), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Apply actions for one period.

        Parameters
        ----------
        actions : array_like, shape (batch, inputs)
            Inputs of the plants.

        Returns
        -------
        observation : ndarray, shape (batch, outputs)
            Outputs at the end of the period; of restarted runs, at their new start.
        reward : ndarray, shape (batch,)
            Rewards of the period.
        terminated : ndarray of bool, shape (batch,)
            Runs that have ended before their time limit.
        truncated : ndarray of bool, shape (batch,)
            Runs that have reached their time limit.
        info : dict
            "final_obs" and "_final_obs", if runs have restarted.
        """
        env = self.stepper
        y, end = env.step(actions), env.ended
        truncated = end == FINISHED
        ended = end > 0.0
        info = {"final_obs": env.final.copy(), "_final_obs": ended} if env.final is not None and ended.any() else {}
        return y, env.reward.copy(), ended & ~truncated, truncated, info
