"""Command emit: generated code or equations of a quantity, printed or written to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import bellcrank as bc
from bellcrank import quoting
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.page_files import write_files
from bellcrank.dynamics.quantities import INPUTS, POSITIONS
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.errors import InputError, check_known
from bellcrank.model import Mechanism

TARGETS = ("llvm", "c", "cuda", "graph", "svg", "dot", "json", "asm", "latex", "python", "sympy")
EQUATION_SUFFIXES = {"latex": ".tex", "python": ".py", "sympy": ".py"}  # of equations to read


@app.command()
def emit(
    name: options.MechanismArg,
    target: Annotated[str, option("NAME", f"{', '.join(TARGETS)}.", "--target", "-t")],
    quantity_name: Annotated[str, option("NAME", "Quantity; equations is M, h, g and f.", "--quantity", "-q")] = "",
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
    of that quantity.
    """
    from bellcrank.build import equations as printed
    from bellcrank.build import graphs
    from bellcrank.emit.cpu.target import Cpu
    from bellcrank.emit.cuda.target import Cuda

    check_known("target", target, TARGETS)
    m = load_mechanism(name, base, check)
    quantity_name = quantity_name or ("equations" if target in (*EQUATION_SUFFIXES, "c") else "forward_dynamics")
    stem = _stem([m.name, quantity_name], [frame, reference, method_name, dtype], out)
    with screen.progress(f"tracing {quantity_name} of {m.name}") as say:
        if quantity_name == "equations":
            _check_equations(method_name, frame, reference)
            method_used, graph = "crba, rnea", printed.motion_graph(m)
        else:
            backend = Cuda(dtype) if target == "cuda" else Cpu(dtype)
            request = Request(quantity_name, method_name, frame, reference=reference)
            chosen, graph = graphs.choose_graph(m, request, backend.choose)
            method_used = chosen.name
        say(f"writing {target}")
        if target in EQUATION_SUFFIXES or (target, quantity_name) == ("c", "equations"):
            frame_text = ", ".join([frame, reference]).removesuffix(", aligned")
            text = printed.equation_text(m, graph, target, digits, terms, frame_text, standalone=out is not None)
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
