"""A mechanism, or a machine, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bellcrank as bc
from bellcrank.cli import BaseOpt, CheckOpt, DtypeOpt, JsonOpt, MechanismArg, MethodOpt, app, mechanism, screen
from bellcrank.quoting import stem


@app.command()
def export(
    name: MechanismArg,
    to: Annotated[str, typer.Option("--to", "-t", metavar="NAME", help="c (C99), fmu2, fmu3, casadi, wasm, page.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="PATH", help="What to write.")] = None,
    functions: Annotated[
        list[str] | None,
        typer.Option(
            "--function", "-f", metavar="NAME", help='"mass_matrix", "pose(tip)", "d(bias)/d(q)"; again for more.'
        ),
    ] = None,
    dtype: DtypeOpt = "float64",
    integrator: Annotated[str | None, typer.Option("--integrator", "-i", metavar="NAME", help="How to step.")] = None,
    step: Annotated[float | None, typer.Option("--step", metavar="H", help="Seconds.")] = None,
    method: MethodOpt = "auto",
    platforms: Annotated[
        str, typer.Option("--platforms", metavar="A,B", help="Of an FMU's binaries; all, or this computer's.")
    ] = "",
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
) -> None:
    """A machine, or functions, for other programs.

    excavator and excavator_linkage are exported with hydraulics and control, as `bellcrank drive` has them; any other
    mechanism has a force on every joint as its input. With --function there are only those functions.
    """
    from bellcrank.excavators.machines import MACHINES

    m = mechanism(name, base, check)
    machine = MACHINES[name]() if name in MACHINES and not functions else None
    thing = m if machine is None else machine if to == "page" else machine.system
    path = out or Path(stem(m.name) + {"fmu2": ".fmu", "fmu3": ".fmu", "casadi": ".so"}.get(to, ""))
    wanted = platforms if platforms == "all" else [x for x in platforms.split(",") if x]
    how = bc.Solver(integrator or "rk4", step, method=method, form="projected" if m.loops else "minimal")
    with screen.working(f"exporting {m.name}"):
        bc.export(thing, path, to, functions or (), name=m.name, dtype=dtype, solver=how, platforms=wanted)
    if json:
        screen.data({"to": to, "written": str(path)})
    else:
        screen.note(f"wrote {path}")
