"""Command loads: tool forces and lift capacities of a machine, with the limit that binds."""

from __future__ import annotations

import math
from typing import Any

from bellcrank.cli import app, options, screen
from bellcrank.cli.screen import TableColumn, numbers
from bellcrank.errors import check_known

CYLINDER_MACHINES = ("excavator_linkage",)
LIMIT_LETTERS = {"boom cylinder": "b", "stick cylinder": "s", "bucket cylinder": "k", "tipping": "t"}


@app.command()
def loads(name: options.MechanismArg, json: options.JsonOpt = False) -> None:
    """Print tool forces and lift capacities of an excavator.

    Both are computed over the working range, with their limits.

    The tool forces follow ISO 6015 (forces at the teeth, with the bucket or stick cylinder at working pressure), the
    lift capacities ISO 10567 (loads at the bucket pin: 87 % of the cylinders' capacity, or 75 % of the tipping load).
    """
    from bellcrank.excavators.linkage.tool_forces import ToolForces

    check_known("machine with cylinders", name, CYLINDER_MACHINES, "loads")
    tool_forces = ToolForces()
    forces, lifts = [tool_forces.best(what) for what in ("bucket", "stick")], tool_forces.lifts()
    if json:
        rows = [vars(f) | {"angles": list(f.angles)} for f in forces]
        screen.data({"machine": name, "forces": rows, "lifts": [vars(x) for x in lifts]})
        return
    screen.line(f"{name}: forces at the teeth, kN, by limit")
    words = {w.replace(f.what, "own") if w == f"{f.what} cylinder" else w: None for f in forces for w in f.limits}
    table = [
        [word, *(_force_text(f.limits.get(word.replace("own", f.what), math.inf), f.newtons) for f in forces)]
        for word in words
    ]
    screen.table([TableColumn("limit"), *numbers(*(f"by the {f.what}" for f in forces))], table)
    for side in ("front", "side"):
        _print_lifts([x for x in lifts if x.side == side], side)
    screen.line(", ".join(f"{letter}: {word}" for word, letter in LIMIT_LETTERS.items()), style="dim")


def _print_lifts(lifts: Any, side: str) -> None:
    """Print the lift capacities over one side, by radius and height."""
    radii = sorted({x.radius for x in lifts})
    screen.line()
    screen.line(f"lift capacity over the {side}, kg, at the bucket's pin; by radius and height in m")
    cells = {(x.radius, x.height): f"{x.kilograms:.0f} {LIMIT_LETTERS.get(x.binds, '?')}" for x in lifts}
    heights = sorted({x.height for x in lifts}, reverse=True)
    table = [[f"{z:g}", *(cells.get((r, z), "") for r in radii)] for z in heights]
    screen.table(numbers("height", *(f"{r:g} m" for r in radii)), table)


def _force_text(x: float, least: float) -> str:
    """Format a force in kN, with a star if it is the binding limit."""
    return f"{x / 1e3:.1f}{'*' if x == least else ' '}" if math.isfinite(x) else "- "
