"""Kernels selected by the arguments of a call, and results split into named parts.

Some quantities have one kernel for each frame and reference, for each set of actuated joints, or for each set of frames
on which external forces act, `wrenches={"tool": [force, moment]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from bellcrank.build.policy import checked_joint_names
from bellcrank.dynamics import Quantity
from bellcrank.emit.cpu.arguments import contains_symbols
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.errors import InputError, brief


def select_by_frame(q: Quantity, kernel: Callable[..., Kernel]) -> Callable[..., Any]:
    """Return a function that selects the kernel of `q` by frame and reference.

    Parameters
    ----------
    q
        The quantity, which takes a frame.
    kernel
        Makes the kernel for `frame=` and `reference=`; kernels are cached.
    """

    @cache
    def function_of(frame: str, reference: str) -> Callable[..., Any]:
        return kernel(frame=frame, reference=reference).function

    def call(*args: Any, frame: str = "", reference: str = "aligned", **keywords: Any) -> Any:
        if isinstance(frame, str) and not frame and args and isinstance(args[-1], str):
            args, frame = args[:-1], args[-1]
        if not isinstance(frame, str) or not isinstance(reference, str):
            raise InputError(
                f"{q.name}: frame is {brief(frame)} and reference {brief(reference)}; expected names, each a str."
            )
        return function_of(frame, reference)(*args, **keywords)

    return call


def select_by_actuation(q: Quantity, kernel: Callable[..., Kernel]) -> Callable[..., Any]:
    """Return a function that selects the kernel of `q` by its set of actuated joints.

    Parameters
    ----------
    q
        The quantity, which depends on the actuated joints.
    kernel
        Makes the kernel for `actuated=`; kernels are cached.
    """

    @cache
    def function_of(joints: tuple[str, ...]) -> Callable[..., Any]:
        function = kernel(actuated=joints).function
        return with_named_parts(function, q) if q.result else function

    def call(*args: Any, actuated: Sequence[str] = (), **named: Any) -> Any:
        return function_of(checked_joint_names(q.name, actuated))(*args, **named)

    return call


def with_named_parts(function: Callable[..., Any], q: Quantity) -> Callable[..., Any]:
    """Wrap `function` so that its result is returned as the named tuple `q.result`.

    The parts are views of one array; nothing is copied.
    """
    assert q.result is not None
    result_type, axis = q.result, range(len(q.result._fields))

    def call(*args: Any, **named: Any) -> Any:
        values = function(*args, **named)
        return result_type(*(values[..., i, :, :] for i in axis))

    return call


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
