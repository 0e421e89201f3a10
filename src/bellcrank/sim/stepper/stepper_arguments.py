"""Validation of arguments of a stepper before any state changes: inputs, output arrays, masks, starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError

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
