"""Example mechanisms: those of the seed papers, closed-loop classics and families of any size; `load` finds them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import BellcrankError, InputError, unknown
from bellcrank.excavators.linkage_mechanism import excavator_flexible, excavator_linkage
from bellcrank.model.mechanism import Mechanism
from bellcrank.process_state import syntax_tree
from bellcrank.progress import progress_message
from bellcrank.quoting import single_line
from bellcrank.zoo.families import chain, pendulum, random_tree, tree
from bellcrank.zoo.field_machines import feller_buncher, space_manipulator, walking_excavator
from bellcrank.zoo.large_mechanisms import four_bars, rope, scissor, tied_tree, track
from bellcrank.zoo.loops import (
    andrews,
    bricard,
    delta,
    double_wishbone,
    four_bar,
    n_four_bar,
    parallel_cranks,
    ring,
    rod_pendulum,
    start,
    stewart,
)
from bellcrank.zoo.published import data, excavator, planar3r, puma600, puma_saha, slider_fourbar, stanford, torso

# The functions of this package, then the mechanisms in the order a newcomer should meet them.
__all__ = [  # noqa: RUF022
    "data", "load", "names", "start",
    "pendulum", "planar3r", "puma600", "puma_saha", "stanford", "torso", "excavator", "slider_fourbar", "four_bar",
    "n_four_bar", "four_bars", "parallel_cranks", "ring", "track", "rope", "scissor", "rod_pendulum", "andrews",
    "bricard", "stewart", "delta", "double_wishbone", "excavator_linkage", "excavator_flexible", "feller_buncher",
    "walking_excavator", "space_manipulator", "chain", "tree", "tied_tree", "random_tree",
]  # fmt: skip
TABLE: dict[str, Callable[..., Mechanism]] = {name: globals()[name] for name in __all__[4:]}


def names() -> tuple[str, ...]:
    """Return the names that `load` accepts.

    Families such as chain and n_four_bar take arguments: "chain(8)" or "chain:8".

    Returns
    -------
    tuple[str, ...]
        Names, in an order suited to a newcomer.
    """
    return tuple(TABLE)


@explain_argument_errors
def load(spec: str) -> Mechanism:
    """Return the mechanism with a given name.

    The name may have arguments: "puma600", "chain:8", "tree(15, branching=3)", "chain(6, twist='general')".

    Parameters
    ----------
    spec : str
        Name, with arguments in parentheses or after colons; they are Python literals.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If the name is unknown, or the arguments do not fit.
    """
    shape = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\)|:(.*))?\s*", spec, re.DOTALL)
    name = shape.group(1) if shape else spec
    if shape is None or name not in TABLE:
        raise InputError(f"zoo: {unknown('mechanism', name, TABLE, suggestion(spec))}")
    maker = TABLE[name]
    if shape.group(3) is not None and not shape.group(3).strip():
        raise InputError(f'zoo: "{spec}" has nothing after its colon. {_usage(name)}')
    argument_text = shape.group(2) if shape.group(2) is not None else (shape.group(3) or "").replace(":", ",")
    args, keyword_arguments = _arguments(spec, argument_text)
    try:
        inspect.signature(maker).bind(*args, **keyword_arguments)
    except TypeError as error:
        raise InputError(f'zoo: "{spec}": {error}. {_usage(name)}') from None
    try:
        with progress_message(f"building {single_line(spec)}"):
            return maker(*args, **keyword_arguments)
    except BellcrankError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f'zoo: "{spec}": {error}. Expected {name}{_signature(maker)}.') from None


def suggestion(spec: str) -> str:
    """Return the likely intended spec for an unknown mechanism name, or "" if no name is similar.

    The arguments of `spec` are kept if the mechanism with the nearest name accepts them.
    """
    name, sign, argument_text = re.fullmatch(r"\s*([^:(]*)([:(]?)(.*?)\)?\s*", spec[:200], re.DOTALL).groups()  # type: ignore[union-attr]
    close = get_close_matches(name, TABLE, n=1)
    if not close:
        return ""
    try:
        args, keyword_arguments = _arguments(spec, argument_text if sign == "(" else argument_text.replace(":", ","))
        inspect.signature(TABLE[close[0]]).bind(*args, **keyword_arguments)
    except (InputError, TypeError):
        return example_spec(close[0])
    return f"{close[0]}{sign}{argument_text}{')' * (sign == '(')}" if argument_text else example_spec(close[0])


def example_spec(name: str) -> str:
    """Return an example spec for the mechanism `name`: its name, with a number if a size is required."""
    needs_size = any(p.default is p.empty for p in inspect.signature(TABLE[name]).parameters.values())
    return f"{name}:8" if needs_size else name


def _usage(name: str) -> str:
    """Return a sentence that tells what to write instead."""
    if not inspect.signature(TABLE[name]).parameters:
        return f'Write "{name}": it has one size.'
    return f'Write "{example_spec(name)}", or {name}{_signature(TABLE[name])}.'


def _arguments(spec: str, inside: str) -> tuple[list[Any], dict[str, Any]]:
    """Parse literal arguments; nothing in the text is executed."""
    try:
        call = syntax_tree(f"f({inside})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("more than arguments")
        args = [ast.literal_eval(a) for a in call.args]
        return args, {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(
            f'zoo: the arguments in "{spec}" cannot be read; expected numbers and strings, as in '
            '"tree(15, branching=3)".'
        ) from None


def _signature(maker: Callable[..., Mechanism]) -> str:
    return "(" + ", ".join(str(p.name) for p in inspect.signature(maker).parameters.values()) + ")"
