"""Command costs: measured cost of each operation on this computer, the weights of predictions and of method auto."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bellcrank.cli import DtypeOpt, JsonOpt, app, screen
from bellcrank.cli.screen import Column
from bellcrank.emit.target import DTYPES
from bellcrank.errors import InputError, unknown

WHAT = {
    "arithmetic": "mul, add, sub, comparison and selection",
    "roots": "div, sqrt",
    "angles": "sine and cosine of one angle",
    "calls": "function of the C library: exp, tan, ...",
    "recalls": "use of a spilled value",
    "reads": "number read",
    "writes": "number written",
    "starts": "state",
    "extremes": "minimum, maximum",
}


@app.command()
def costs(
    again: Annotated[bool, typer.Option("--again", help="Measure now, and store the result.")] = False,
    dtype: DtypeOpt = "float64",
    json: JsonOpt = False,
) -> None:
    """Print the cost of operations on this computer.

    These weights predict times and choose methods: nanoseconds for one state of a batch on one core. They are measured
    when they are first needed and stored in the cache folder.
    \f

    The options `again`, `dtype` and `json` are described by their help texts.
    """  # noqa: D301
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
