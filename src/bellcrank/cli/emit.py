"""Commands emit and export: generated code or equations of a quantity, and models for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank import quoting
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import TableColumn, write_files
from bellcrank.dynamics.quantities import INPUTS, POSITIONS, Request
from bellcrank.errors import InputError, check_known
from bellcrank.model import Mechanism

TARGETS = ("llvm", "c", "cuda", "graph", "svg", "dot", "json", "asm", "latex", "python", "sympy")
EQUATION_SUFFIXES = {"latex": ".tex", "python": ".py", "sympy": ".py"}  # of equations to read


@app.command()
def emit(
    name: options.MechanismArg,
    target: Annotated[str, option("NAME", f"{', '.join(TARGETS)}.", "--target", "-t")],
    quantity_name: Annotated[str, option("NAME", "Quantity; equations is M, h, g and f.", "--quantity", "-q")] = "",
    independent: Annotated[str, option("A,B", "Independent coordinates of closed loops, for equations.")] = "",
    method_name: options.MethodOpt = "auto",
    frame: options.FrameOpt = "",
    reference: Annotated[str, option("aligned|local|world", "Axes of a frame's quantity.")] = "aligned",
    dtype: options.DtypeOpt = "float64",
    digits: Annotated[int, option("N", "Digits of printed numbers.", show_default=False)] = 0,
    terms: Annotated[int, option("N", "Longest entry to write out.")] = 60,
    out: Annotated[Path | None, option("PATH", "File or folder to write.", "--out", "-o")] = None,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Generate LLVM IR, C99, assembly or equations.

    The text is printed, or written with --out. C is a header and a source; printed, they are one text that a C compiler
    accepts. graph is the data flow as assignments, svg the same as a picture if it is small; dot and json are for
    Graphviz and other programs.
    latex, python and sympy are equations to read. c is both: the equations of motion without --quantity, else the code
    of that quantity. --quantity also takes the terms of Nikravesh's equations: Psi, C, Cv, E, Ev, Mr and fr of closed
    loops, and B, G and H of any tree.
    """
    from bellcrank.build import equations as printed
    from bellcrank.build import graphs, paper_notation
    from bellcrank.emit.cpu.target import Cpu
    from bellcrank.emit.cuda.target import Cuda

    check_known("target", target, TARGETS)
    m = load_mechanism(name, base, check)
    quantity_name = quantity_name or ("equations" if target in (*EQUATION_SUFFIXES, "c") else "forward_dynamics")
    stem = _stem([m.name, quantity_name], [frame, reference, method_name, dtype], out)
    with screen.progress(f"tracing {quantity_name} of {m.name}") as say:
        names = [x.strip() for x in independent.split(",") if x.strip()]
        if quantity_name == "equations" or quantity_name in paper_notation.TERMS:
            _check_equations(method_name, frame, reference)
            method_used, graph = "crba, rnea", _notation_graph(m, quantity_name, target, names)
        elif names:
            raise InputError(
                f"--independent is for equations of closed loops and their terms, not for {quantity_name}."
            )
        else:
            backend = Cuda(dtype) if target == "cuda" else Cpu(dtype)
            request = Request(quantity_name, method_name, frame, reference=reference)
            chosen, graph = graphs.choose_graph(m, request, backend.choose)
            method_used = chosen.name
        say(f"writing {target}")
        if target in EQUATION_SUFFIXES or (target, quantity_name) == ("c", "equations"):
            frame_text = ", ".join([frame, reference]).removesuffix(", aligned")
            text = printed.equation_text(m, graph, target, digits, terms, frame_text, out is not None, names)
            files = {stem + EQUATION_SUFFIXES.get(target, ".c"): text}
        else:
            files = _generated_files(m, graph, target, dtype, stem)
    paths = _output_paths(files, out) if out is not None else {}
    existing = {str(path) for path in paths if path.exists()}
    written = write_files(paths, "Choose another --out")
    if json:
        about: dict[str, Any] = {"mechanism": m.name, "quantity": quantity_name, "method": method_used}
        about |= {"target": target, "dtype": dtype}
        screen.data(about | ({"files": files} if out is None else {"written": written}))
    elif out is not None:
        for path in written:
            screen.note(f"{'replaced' if path in existing else 'wrote'} {path}")
    else:
        print(_joined_text(files))


def _notation_graph(m: Mechanism, name: str, target: str, independent: Sequence[str]) -> bc.Graph:
    """Return the graph of all equations of motion or of one term: to read, with the terms that it is computed from."""
    from bellcrank.build import paper_notation

    if name == "equations":
        return paper_notation.motion_graph(m, independent)
    if target in EQUATION_SUFFIXES:
        return paper_notation.readable_graph(m, [name], independent)
    return paper_notation.term_graph(m, [name], independent)


def _check_equations(method_name: str, frame: str, reference: str) -> None:
    if method_name != "auto" or frame or reference != "aligned":
        raise InputError("the equations of motion take no --method, no --frame and no --reference; a --quantity does.")


def _stem(subjects: list[str], options: list[str], out: Path | None) -> str:
    """Return the stem of file and function names, unique for each request within a folder or a linked program."""
    if out is not None and out.suffix and not out.is_dir():  # a folder's name may also contain a dot
        return quoting.stem(out.stem)
    special_options = [x for x in options if x not in ("", "auto", "float64", "aligned")]
    return quoting.stem("_".join([*subjects, *special_options]))


def _generated_files(m: Mechanism, graph: bc.Graph, target: str, dtype: str, stem: str) -> dict[str, str]:
    """Return the texts of the files by name."""
    from bellcrank.emit.c import c99
    from bellcrank.emit.cpu.target import Cpu
    from bellcrank.emit.cuda.target import Cuda
    from bellcrank.emit.llvm.host import assembly

    if target == "c":
        q, v = m.columns
        return dict(c99.source(graph, dtype, stem, {x: q if x in POSITIONS else v for x in INPUTS}))
    llvm = Cpu(dtype).source
    texts: dict[str, tuple[str, Callable[[], str]]] = {
        "llvm": ("ll", lambda: llvm(graph)),
        "cuda": ("ptx", lambda: Cuda(dtype).source(graph)),
        "asm": ("s", lambda: assembly(llvm(graph))),
        "dot": ("dot", graph.dot),
        "svg": ("svg", graph.svg),
        "json": ("json", graph.json),
        "graph": ("txt", graph.__str__),
    }
    suffix, text = texts[target]
    return {f"{stem}.{suffix}": text()}


def _joined_text(files: dict[str, str]) -> str:
    """Return the files as one text, with a header in place of the line that includes it."""
    headers = {name: text for name, text in files.items() if name.endswith(".h")}
    parts = []
    for text in (text for name, text in files.items() if name not in headers):
        for header, inside in headers.items():
            text = text.replace(f'#include "{header}"', inside.rstrip("\n"))
        if headers:  # the header's first lines repeat the first line of the source
            text = text.partition("\n")[2]
        parts.append(text.rstrip("\n"))
    return "\n".join(parts)


def _output_paths(files: dict[str, str], out: Path) -> dict[Path, str]:
    """Return the texts by the paths that they are written to."""
    folder = out.parent if out.suffix and not out.is_dir() else out
    single = len(files) == 1 and folder != out
    texts = {name: text if text.endswith("\n") else text + "\n" for name, text in files.items()}
    return {out if single else folder / name: text for name, text in texts.items()}


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
    path = out or Path(quoting.stem(m.name) + {"fmu2": ".fmu", "fmu3": ".fmu", "casadi": ".so"}.get(to, ""))
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
