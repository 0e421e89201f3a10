"""Command costs: measured cost of each operation on this computer, the weights of predictions and of method auto."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bellcrank.cli import app, options, screen
from bellcrank.cli.screen import TableColumn, numbers, texts

COST_DESCRIPTIONS = {
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
    dtype: options.DtypeOpt = "float64",
    json: options.JsonOpt = False,
) -> None:
    """Print the cost of operations on this computer.

    These weights predict times and choose methods: nanoseconds for one state of a batch on one core. They are measured
    when they are first needed and stored in the cache folder.
    """
    from bellcrank.emit.cpu import costs as model
    from bellcrank.emit.llvm.host import host

    with screen.progress("measuring what operations cost"):
        measured_costs = model.measure_costs(dtype) if again else model.costs(dtype)
    if json:
        screen.data({"cpu": host().cpu, "dtype": dtype, "nanoseconds": asdict(measured_costs)})
        return
    screen.heading(f"{host().cpu}, {host().lanes(dtype)} lanes of {dtype}")
    rows = [(name, f"{x:.3f}", COST_DESCRIPTIONS[name]) for name, x in asdict(measured_costs).items()]
    screen.table([TableColumn("part"), *numbers("ns"), *texts("for each")], rows)
