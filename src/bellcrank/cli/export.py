"""A mechanism, or a machine, for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import BaseOpt, CheckOpt, DtypeOpt, JsonOpt, MechanismArg, MethodOpt, app, mechanism, screen
from bellcrank.cli.screen import Column
from bellcrank.errors import InputError
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
    form: Annotated[
        str, typer.Option("--form", metavar="FORM", help="Of closed loops: projected, minimal, lagrange.")
    ] = "projected",
    platforms: Annotated[
        str, typer.Option("--platforms", metavar="A,B", help="Of an FMU's binaries; all, or this computer's.")
    ] = "",
    report: Annotated[
        bool, typer.Option("--report", help="Of C: its size, stack and instructions on small processors (QEMU).")
    ] = False,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
) -> None:
    """A machine, or functions, for other programs.

    excavator and excavator_linkage are exported with hydraulics and control, as `bellcrank drive` has them; any other
    mechanism has a force on every joint as its input. With --function there are only those functions.
    """
    from bellcrank.excavators.machines import MACHINES

    if report and to != "c":
        raise InputError(f"--report is of a C package, and this is --to {to}.")
    if report and functions:
        raise InputError("--report is of a machine that takes steps; leave out --function.")
    m = mechanism(name, base, check)
    machine = MACHINES[name]() if name in MACHINES and not functions else None
    thing = m if machine is None else machine if to == "page" else machine.system
    path = out or Path(stem(m.name) + {"fmu2": ".fmu", "fmu3": ".fmu", "casadi": ".so"}.get(to, ""))
    wanted = platforms if platforms == "all" else [x for x in platforms.split(",") if x]
    how = bc.Solver(integrator or "rk4", step, method=method, form=form if m.loops else "minimal")
    with screen.working(f"exporting {m.name}") as tell:
        bc.export(
            thing, path, to, functions or (), name=m.name, dtype=dtype, solver=how, platforms=wanted,
            progress=lambda text: tell(f"exporting {m.name}: {text}"),
        )  # fmt: skip
    found = measures(thing, functions or (), m.name, how, dtype) if report else []
    if json:
        screen.data({"to": to, "written": str(path), **({"report": found} if found else {})})
    else:
        _told(path, found)


def _told(path: Path, found: Sequence[dict[str, Any]]) -> None:
    screen.note(f"wrote {path}")
    if found:
        screen.table([Column(x, right=x != "processor") for x in found[0]], [_words(row) for row in found])


def measures(thing: Any, functions: Sequence[str], name: str, how: bc.Solver, dtype: str) -> list[dict[str, Any]]:
    """What a step takes, processor by processor, beside what the header promises."""
    from bellcrank.emit.c.package import Package
    from bellcrank.exporting import embedded_targets
    from bellcrank.exporting.things import export_of

    made = export_of(thing, functions, name, how, dtype=dtype)
    package = Package(made.name, made.graphs, made.stepper, dtype)
    assert made.stepper is not None  # as was asked before anything was written
    tick = next(t for t in package.texts if t.name == package.machine["tick"])
    operations = sum(tick.graph.count().by_kind.values())
    if gone := embedded_targets.missing():
        screen.note(f"not found: {', '.join(gone)} (Debian: {embedded_targets.DEBIAN}); there is no emulated run")
    with screen.working("measuring") as tell:
        found = [embedded_targets.host_size(package)]
        for processor in embedded_targets.PROCESSORS if not gone else ():
            tell(f"on an emulated {processor}")
            found.append(embedded_targets.emulated(package, processor))
    return [
        {
            "processor": x.processor, "code [B]": x.code, "stack [B]": x.stack, "bound [B]": tick.stack,
            "instructions": x.instructions, "operations": operations,
        }
        for x in found
    ]  # fmt: skip


def _words(row: dict[str, Any]) -> list[str]:
    return ["-" if x is None else f"{x:,}" if isinstance(x, int) else str(x) for x in row.values()]
