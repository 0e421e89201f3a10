"""Command export: a mechanism or a machine as C, FMU, CasADi function, WebAssembly or page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import TableColumn
from bellcrank.errors import InputError
from bellcrank.quoting import stem


@app.command()
def export(
    name: options.MechanismArg,
    to: Annotated[str, option("NAME", "c (C99), fmu2, fmu3, casadi, wasm, page.", "--to", "-t")],
    out: Annotated[Path | None, option("PATH", "File or folder to write.", "--out", "-o")] = None,
    functions: Annotated[
        list[str] | None,
        option("NAME", '"mass_matrix", "pose(tip)", "d(bias)/d(q)"; repeat for more.', "--function", "-f"),
    ] = None,
    dtype: options.DtypeOpt = "float64",
    integrator: Annotated[str | None, option("NAME", "Integrator of the steps.", "--integrator", "-i")] = None,
    step: Annotated[float | None, option("H", "Step size, seconds.")] = None,
    method: options.MethodOpt = "auto",
    form: Annotated[str, option("FORM", "Form of closed loops: projected, minimal, lagrange.")] = "projected",
    platforms: Annotated[
        str,
        option("A,B", "Platforms of an FMU's binaries, or all; by default this computer's."),
    ] = "",
    report: Annotated[
        bool, typer.Option("--report", help="With --to c: size, stack and instructions on small processors (QEMU).")
    ] = False,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Export a machine, or functions, for other programs.

    excavator and excavator_linkage are exported with hydraulics and control, as in `bellcrank drive`; the inputs of any
    other mechanism are the forces of all joints. With --function, only those functions are exported.
    """
    from bellcrank.excavators.machines import MACHINES

    if report and to != "c":
        raise InputError(f"--report needs --to c; got --to {to}.")
    if report and functions:
        raise InputError("--report needs an export that takes steps; leave out --function.")
    m = load_mechanism(name, base, check)
    machine = MACHINES[name]() if name in MACHINES and not functions else None
    thing = m if machine is None else machine if to == "page" else machine.system
    path = out or Path(stem(m.name) + {"fmu2": ".fmu", "fmu3": ".fmu", "casadi": ".so"}.get(to, ""))
    platform_names = platforms if platforms == "all" else [x for x in platforms.split(",") if x]
    solver = bc.Solver(integrator or "rk4", step, method=method, form=form if m.loops else "minimal")
    with screen.progress(f"exporting {m.name}") as say:
        bc.export(
            thing, path, to, functions or (), name=m.name, dtype=dtype, solver=solver, platforms=platform_names,
            progress=lambda text: say(f"exporting {m.name}: {text}"),
        )  # fmt: skip
    measurements = processor_report(thing, functions or (), m.name, solver, dtype) if report else []
    if json:
        screen.data({"to": to, "written": str(path), **({"report": measurements} if measurements else {})})
    else:
        _print_report(path, measurements)


def _print_report(path: Path, measurements: Sequence[dict[str, Any]]) -> None:
    screen.note(f"wrote {path}")
    if measurements:
        head = [TableColumn(x, right=x != "processor") for x in measurements[0]]
        screen.table(head, [_cells(row) for row in measurements])


def processor_report(
    thing: Any, functions: Sequence[str], name: str, solver: bc.Solver, dtype: str
) -> list[dict[str, Any]]:
    """Return size, stack and instructions of a step on each processor, beside the bound that the header promises.

    Parameters
    ----------
    thing
        Mechanism, system or machine to export.
    functions
        Functions to export; empty for a stepper.
    name
        Name of the package.
    solver
        Solver of the steps.
    dtype
        "float64" or "float32".
    """
    from bellcrank.emit.c.package import Package
    from bellcrank.exporting import embedded_targets
    from bellcrank.exporting.export_content import export_content

    exported = export_content(thing, functions, name, solver, dtype=dtype)
    package = Package(exported.name, exported.graphs, exported.stepper, dtype)
    assert exported.stepper is not None  # functions are rejected before anything is written
    tick = next(t for t in package.routines if t.name == package.program_functions["tick"])
    operations = sum(tick.graph.count().by_kind.values())
    if missing_tools := embedded_targets.missing_tools():
        screen.note(
            f"not found: {', '.join(missing_tools)} (Debian: {embedded_targets.DEBIAN_INSTALL}); "
            "there is no emulated run"
        )
    with screen.progress("measuring") as say:
        sizes = [embedded_targets.host_size(package)]
        for processor in embedded_targets.PROCESSORS if not missing_tools else ():
            say(f"on an emulated {processor}")
            sizes.append(embedded_targets.emulate(package, processor))
    return [
        {
            "processor": x.processor, "code [B]": x.code, "stack [B]": x.stack, "bound [B]": tick.stack,
            "instructions": x.instructions, "operations": operations,
        }
        for x in sizes
    ]  # fmt: skip


def _cells(row: dict[str, Any]) -> list[str]:
    return ["-" if x is None else f"{x:,}" if isinstance(x, int) else str(x) for x in row.values()]
