"""What callers give to a stepper: inputs, output arrays, masks and starts, and controllers in Python.

Arguments are checked before any state changes. A controller in Python is called at every sample of one run, for
functions that cannot be traced; its cost is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import check_memory
from bellcrank.errors import InputError
from bellcrank.sim.run_arguments import check_argument_count, duration, real_array, real_number, whole_multiple

if TYPE_CHECKING:
    from bellcrank.sim.stepper.stepper import Stepper

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def action_inputs(u: Any, shape: Shape, names: Sequence[str], nu: int) -> Array:
    """Return the inputs of an action as a contiguous float64 array.

    Parameters
    ----------
    u
        Inputs, (*shape, nu), or None for a system without inputs.
    shape
        Shape of the batch.
    names
        Names of the inputs.
    nu
        Number of inputs.
    """
    if not takes_inputs(u, (*shape, nu), names):
        return np.zeros((*shape, 1))
    try:
        array = np.asanyarray(u)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"step: u is not an array in this computer's memory: {error}") from None
    check_numbers(array, (*shape, nu), names)
    if np.ma.is_masked(array):
        raise InputError("step: u has masked entries; expected a number for each entry.")
    return np.ascontiguousarray(array, float)


def takes_inputs(u: Any, expected: Shape, names: Sequence[str]) -> bool:
    """Return whether a system takes inputs, or raise an InputError if `u` is missing or superfluous.

    Parameters
    ----------
    u
        Inputs of a step, or None.
    expected
        Their shape.
    names
        Names of the inputs.
    """
    if not names and u is not None:
        raise InputError("step: this system has no inputs; call step() alone.")
    if names and u is None:
        raise InputError(f"step: u is missing; expected an array {expected}: {', '.join(names)}.")
    return bool(names)


def check_numbers(array: Any, expected: Shape, names: Sequence[str]) -> None:
    """Raise an InputError if the inputs `array`, on the host or a GPU, are not real numbers of the shape `expected`.

    `names` are those of the inputs.
    """
    if array.dtype.kind not in "fiub":
        raise InputError(f"step: u has dtype {array.dtype}; expected real numbers.")
    if array.shape != expected:
        raise InputError(f"step: u has the shape {array.shape}; expected {expected}: {', '.join(names)}.")


def action_output(out: Any, expected: Shape) -> Array:
    """Return `out` after checking that it is a writable float64 array of the shape `expected`."""
    fits = isinstance(out, np.ndarray) and out.shape == expected and out.dtype == float and out.flags.writeable
    if not fits:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"out must be a writable float64 array of shape {expected}; got {got}.")
    array: Array = out
    return array


def reset_mask(given: Any, shape: Shape) -> Array:
    """Return the mask `given` as a boolean array of the shape `shape`."""
    try:
        mask = np.asarray(given)
    except ValueError:  # rows of different lengths
        mask = np.asarray(given, dtype=object)
    if mask.dtype != bool or mask.shape != shape:
        raise InputError(
            f"reset: mask has the shape {mask.shape} of {mask.dtype}; expected {shape} of bool: True for runs to reset."
        )
    return mask


def rows_per_run(what: str, x: Array, shape: tuple[int, ...], runs: int) -> Array:
    """Return `x` as one row for every run.

    Parameters
    ----------
    what
        Name of the argument, for messages.
    x
        Array, (n,) or (*shape, n).
    shape
        Shape of the batch.
    runs
        Number of runs.
    """
    try:
        return np.broadcast_to(x, (*shape, x.shape[-1])).reshape(runs, x.shape[-1])
    except ValueError:
        raise InputError(f"{what} has the shape {x.shape}; expected {(*shape, x.shape[-1])}, or one for all.") from None


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
    rows = t[: done_samples + 1], y[: done_samples + 1], u[:done_samples]
    return ControlledRun(*rows, reason, plant / done_samples, (spent - plant) / done_samples)


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
