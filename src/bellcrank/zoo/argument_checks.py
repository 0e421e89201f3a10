"""Arguments of the functions that build example mechanisms."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import BellcrankError, InputError, brief

Maker = TypeVar("Maker", bound=Callable[..., Any])


def explain_impossible_mechanism(maker: Maker) -> Maker:
    """Wrap `maker` so that arguments of a wrong type, or for which no mechanism exists, raise an InputError."""
    explained = explain_argument_errors(maker)

    @functools.wraps(maker)
    def call(*args: Any, **named: Any) -> Any:
        for name, value in _arguments(maker, args, named).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"zoo: {maker.__name__}: {name} is {value:g}; expected a finite number.")
        try:
            return explained(*args, **named)
        except BellcrankError:
            raise
        except (ValueError, ArithmeticError) as error:
            given = ", ".join(f"{name} {brief(value)}" for name, value in _arguments(maker, args, named).items())
            raise InputError(
                f"zoo: {maker.__name__} does not exist with {given} ({error}); expected lengths that fit together."
            ) from error

    return call  # type: ignore[return-value]


def _arguments(maker: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, defaults included; empty if they do not fit the signature."""
    try:
        bound = inspect.signature(maker).bind(*args, **named)
    except TypeError:
        return {}  # the call raises Python's own error
    bound.apply_defaults()
    return bound.arguments
