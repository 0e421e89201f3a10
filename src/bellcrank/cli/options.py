"""Options and arguments that several commands have, and short forms to declare others."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bellcrank.cli import examples
from bellcrank.emit.target import DTYPES
from bellcrank.errors import check_known


def option(metavar: str, help_text: str, *names: str, **more: Any) -> Any:
    """Return an option with a value.

    Parameters
    ----------
    metavar
        Name of the value in the help.
    help_text
        The help.
    names
        Names of the option; by default that of its parameter.
    more
        Further arguments of typer.Option.
    """
    return typer.Option(*names, metavar=metavar, help=help_text, **more)


def argument(metavar: str, help_text: str, **more: Any) -> Any:
    """Return an argument, shown as `metavar` with `help_text`; `more` are further arguments of typer.Argument."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=False, **more)


def _checked_dtype(dtype: str) -> str:
    check_known("dtype", dtype, DTYPES)
    return dtype


MechanismArg = Annotated[
    str, argument("MECHANISM", "A file, or a built-in name.", autocompletion=examples.complete_mechanism)
]
BaseOpt = Annotated[str, option("fixed|floating", "How the root link of a file is attached.", "--base")]
CheckOpt = Annotated[str, option("warn|error", "Reaction to impossible inertias in a file.", "--check")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuantityOpt = Annotated[
    str,
    option("NAME", "Quantity to compute.", "--quantity", "-q", autocompletion=examples.complete_quantity),
]
MethodOpt = Annotated[
    str,
    option("NAME", "Method; auto takes the cheapest.", "--method", "-m", autocompletion=examples.complete_method),
]
FrameOpt = Annotated[str, option("NAME", "Frame, for pose, jacobian and similar.", "--frame", "-f")]
DtypeOpt = Annotated[
    str, option("float64|float32", "Number type of the generated code.", "--dtype", callback=_checked_dtype)
]
