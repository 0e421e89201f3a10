"""Arguments of a kernel inside another package's differentiation: by position or by name, with leading axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bellcrank.errors import InputError


def named_arguments(kernel: Any, args: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments `args` and `named` of a call of `kernel` by name; free parameters are nominal by default."""
    signature, names = kernel.signature, list(kernel.signature.inputs)
    nominal = {"p": kernel.parameters.nominal} if kernel.parameters and "p" in names else {}
    arguments = {**nominal, **dict(zip(names, args, strict=False)), **named}
    if len(args) > len(names) or set(arguments) != set(names):
        raise InputError(f"{signature.name} takes {', '.join(names)}; got {len(args)} arrays and {list(named)}.")
    return {name: arguments[name] for name in names}


def leading_shapes(
    signature: Any, arrays: Sequence[Any], broadcast: Callable[..., Any]
) -> tuple[Any, list[tuple[int, ...]]]:
    """Check the shapes of the inputs of a kernel.

    Parameters
    ----------
    signature
        Signature of the kernel.
    arrays
        Its inputs.
    broadcast
        Function that broadcasts shapes, of numpy or PyTorch.

    Returns
    -------
    tuple
        The leading axes of all inputs together, and those of each.
    """
    for (name, shape), a in zip(signature.inputs.items(), arrays, strict=True):
        if a.ndim < len(shape) or tuple(a.shape[a.ndim - len(shape) :]) != shape:
            expected = f"(..., {', '.join(map(str, shape))})" if shape else "(...)"
            raise InputError(f'{signature.name}: input "{name}" has shape {tuple(a.shape)}; expected {expected}.')
    shapes = signature.inputs.values()
    heads = [tuple(a.shape[: a.ndim - len(shape)]) for a, shape in zip(arrays, shapes, strict=True)]
    if all(head == heads[0] for head in heads):
        return heads[0], heads
    try:
        return broadcast(*heads), heads
    except (ValueError, RuntimeError):
        shown = ", ".join(f"{name} {head}" for name, head in zip(signature.inputs, heads, strict=True))
        raise InputError(f"{signature.name}: leading axes do not broadcast: {shown}.") from None
