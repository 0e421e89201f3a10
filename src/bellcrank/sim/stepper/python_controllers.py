"""Python controllers called at every sample of one run, for functions that cannot be traced; their cost is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import check_memory
from bellcrank.errors import InputError
from bellcrank.sim.quantity_checks import duration, whole_multiple
from bellcrank.sim.run_arguments import real_array, real_number
from bellcrank.sim.system.user_code import check_argument_count

if TYPE_CHECKING:
    from bellcrank.sim.stepper.stepper import Stepper

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ControlledRun:
    """Observations at every sample and at the end, the inputs given after each sample, and the time spent."""

    t: Array  # (samples + 1,)
    y: Array  # (samples + 1, outputs)
    u: Array  # (samples, inputs)
    reason: str  # why the run ended early, or an empty string
    plant: float  # mean time of the plant for one sample, s
    python: float  # mean time of the function for one sample, s, including the calls

    def __repr__(self) -> str:
        share = self.python / max(self.plant + self.python, 1e-300)
        ended = f", then {self.reason}" if self.reason else ""
        return (
            f"<ControlledRun {len(self.u)} samples, {self.t[-1]:g} s{ended}: of each, {1e6 * self.plant:.3g} us in the "
            f"plant and {1e6 * self.python:.3g} us in Python ({100 * share:.0f} %)>"
        )


def run_controller(env: Stepper, function: Callable[..., Any], seconds: float) -> ControlledRun:
    """Run the stepper `env` for `seconds` with inputs from `function`; see Stepper.follow."""
    if env.batch is not None or env.xp is not np:
        raise InputError("follow: a function in Python is for one run on the CPU; expected a stepper without batch=.")
    if not callable(function):
        raise InputError(f"follow: {function!r} is not a function of (t, y).")
    check_argument_count("follow: the function", function, 2, "(t, y)")
    if not env.inputs:
        raise InputError("follow: this system has no inputs that a controller could set.")
    samples = whole_multiple("seconds", duration("seconds", seconds), env.every, "every")
    size = 8 * (samples + 1) * (1 + env._action.row + len(env.inputs))
    check_memory(f"a record of {samples} samples", size, "follow for fewer seconds")
    begin, observation = float(env.t), env.seen()
    t, y, u = np.empty(samples + 1), np.empty((samples + 1, len(observation))), np.empty((samples, len(env.inputs)))
    t[0], y[0], plant, done_samples, reason = begin, observation, 0.0, 0, ""
    start_seconds = time.perf_counter()
    for k in range(samples):
        u[k] = _checked_inputs(env, function(t[k], y[k].copy()))
        before = time.perf_counter()
        env.step(u[k], out=y[k + 1])
        plant += time.perf_counter() - before
        t[k + 1], done_samples, (reason,) = begin + (k + 1) * env.every, k + 1, env.reasons
        if reason:
            break
    spent = time.perf_counter() - start_seconds
    return ControlledRun(
        t[: done_samples + 1],
        y[: done_samples + 1],
        u[:done_samples],
        reason,
        plant / done_samples,
        (spent - plant) / done_samples,
    )


def _checked_inputs(env: Stepper, result: Any) -> Any:
    """Return the inputs that the function gave, all of them or by name."""
    if not isinstance(result, dict):
        values = real_array("follow: what the function gave", result)
        if values.shape not in ((), (1,), (len(env.inputs),)):
            expected = f"one number for each of {', '.join(env.inputs)}"
            raise InputError(f"follow: the function gave the shape {values.shape}; expected {expected}.")
        return values
    if set(result) != set(env.inputs):
        raise InputError(f"follow: the function gave {', '.join(map(str, result))}; expected {', '.join(env.inputs)}.")
    return [real_number(f"follow: what the function gave for {name}", result[name]) for name in env.inputs]
