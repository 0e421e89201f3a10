"""External forces on frames, `wrenches={"tool": [force, moment]}`: each set of frames has its own kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bellcrank.emit.cpu.arguments import contains_symbols
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.errors import InputError


def kernel_with_wrenches(
    name: str, kernel_of_frames: Callable[[tuple[str, ...]], Kernel], keywords: Mapping[str, Any]
) -> tuple[Kernel, dict[str, Any]] | None:
    """Return the kernel for the frames with wrenches, and its keywords; None where no wrenches are given.

    Parameters
    ----------
    name
        The quantity, for messages.
    kernel_of_frames
        Returns the kernel for a set of frames.
    keywords
        The keywords of a call.
    """
    wrenches = keywords.get("wrenches")
    if wrenches is None:
        return None
    frames, wrench = stack_wrenches(name, wrenches)
    other_arguments = {key: x for key, x in keywords.items() if key != "wrenches"}
    return kernel_of_frames(frames), other_arguments | ({"wrench": wrench} if frames else {})


def stack_wrenches(name: str, wrenches: Any) -> tuple[tuple[str, ...], Any]:
    """Return the sorted frames and their wrenches, (..., frames, 6).

    Parameters
    ----------
    name
        The quantity, for messages.
    wrenches
        [force, moment] by frame, in world axes at the origin of the frame, N and N m.
    """
    if not isinstance(wrenches, Mapping):
        raise InputError(f'{name}: wrenches is {wrenches!r}; expected {{"frame": [force, moment]}}, six numbers.')
    arrays = {frame: _wrench(name, frame, w) for frame, w in sorted(wrenches.items())}
    try:
        return tuple(arrays), np.stack(np.broadcast_arrays(*arrays.values()), axis=-2) if arrays else None
    except ValueError:
        shown = ", ".join(f"{frame} {w.shape[:-1]}" for frame, w in arrays.items())
        raise InputError(f"{name}: leading axes of the wrenches do not broadcast: {shown}.") from None


def _wrench(name: str, frame: str, value: Any) -> Any:
    try:
        array = np.asarray(value, object if contains_symbols(value) else float)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.shape[-1:] != (6,):
        raise InputError(
            f'{name}: the wrench on "{frame}" is {value!r}; expected [force, moment], six numbers, in any batch shape.'
        )
    return array
