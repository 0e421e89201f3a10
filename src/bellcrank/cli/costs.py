"""What an operation costs on this computer, as `auto` and the predictions see it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bellcrank.cli import DtypeOpt, JsonOpt, app, screen
from bellcrank.cli.screen import Column
from bellcrank.emit.target import DTYPES
from bellcrank.errors import InputError, unknown

WHAT = {
    "arithmetic": "mul, add, sub, and what compares and selects",
    "roots": "div, sqrt",
    "angles": "sine and cosine of one angle",
    "calls": "of the C library: exp, tan, ...",
    "recalls": "use of a value that has left the registers",
    "reads": "number read",
    "writes": "number written",
    "starts": "state",
    "extremes": "minimum, maximum",
}


@app.command()
def costs(
    again: Annotated[bool, typer.Option("--again", help="Measure now, and remember.")] = False,
    dtype: DtypeOpt = "float64",
    json: JsonOpt = False,
) -> None:
    """What things cost on this computer.

    The weights by which times are predicted and methods chosen: nanoseconds of one state in a batch on one core. They
    are measured when they are first needed and kept in the cache folder.
    """
    from bellcrank.emit.cpu import costs as model
    from bellcrank.emit.cpu.host import host

    if dtype not in DTYPES:
        raise InputError(unknown("dtype", dtype, DTYPES))
    with screen.working("measuring what operations cost"):
        found = model.measured(dtype) if again else model.costs(dtype)
    if json:
        screen.data({"cpu": host().cpu, "dtype": dtype, "nanoseconds": asdict(found)})
        return
    screen.line(f"{host().cpu}, {host().lanes(dtype)} lanes of {dtype}", style="bold")
    screen.line()
    rows = [(name, f"{x:.3f}", WHAT[name]) for name, x in asdict(found).items()]
    screen.table([Column("part"), Column("ns", right=True), Column("for each", wrap=True)], rows)
