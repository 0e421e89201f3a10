"""Command emit: generated code or equations of a quantity, printed or written to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import bellcrank as bc
from bellcrank import quoting
from bellcrank.atomic_file import write_text
from bellcrank.cli import (
    BaseOpt,
    CheckOpt,
    DtypeOpt,
    FrameOpt,
    JsonOpt,
    MechanismArg,
    MethodOpt,
    app,
    load_mechanism,
    option,
    screen,
)
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.errors import InputError, check_known
from bellcrank.model import Mechanism

TARGETS = ("llvm", "c", "cuda", "graph", "svg", "dot", "json", "asm", "latex", "python", "sympy")
EQUATION_SUFFIXES = {"latex": ".tex", "python": ".py", "sympy": ".py"}  # of equations to read


@app.command()
def emit(
    name: MechanismArg,
    target: Annotated[str, option("NAME", f"{', '.join(TARGETS)}.", "--target", "-t")],
    quantity_name: Annotated[str, option("NAME", "Quantity; equations is M, h, g and f.", "--quantity", "-q")] = "",
    method_name: MethodOpt = "auto",
    frame: FrameOpt = "",
    reference: Annotated[str, option("aligned|local|world", "Axes of a frame's quantity.")] = "aligned",
    dtype: DtypeOpt = "float64",
    digits: Annotated[int, option("N", "Digits of printed numbers.", show_default=False)] = 0,
    terms: Annotated[int, option("N", "Longest entry to write out.")] = 60,
    out: Annotated[Path | None, option("PATH", "File or folder to write.", "--out", "-o")] = None,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
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
    existing = {str(path) for path in _output_paths(files, out) if path.exists()} if out is not None else set()
    written = _write_files(files, out) if out is not None else []
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
    if target == "c":
        from bellcrank.dynamics.quantities import INPUTS, POSITIONS
        from bellcrank.emit.c import c99

        q, v = m.columns
        return dict(c99.source(graph, dtype, stem, {x: q if x in POSITIONS else v for x in INPUTS}))
    suffix, text = GENERATORS[target]
    return {f"{stem}.{suffix}": text(graph, dtype)}


def _llvm(graph: bc.Graph, dtype: str) -> str:
    from bellcrank.emit.cpu.target import Cpu

    return Cpu(dtype).source(graph)


def _ptx(graph: bc.Graph, dtype: str) -> str:
    from bellcrank.emit.cuda.target import Cuda

    return Cuda(dtype).source(graph)


def _assembly(graph: bc.Graph, dtype: str) -> str:
    from bellcrank.emit.llvm.host import assembly

    return assembly(_llvm(graph, dtype))


# Target -> suffix of the file, and its text.
GENERATORS: dict[str, tuple[str, Callable[[bc.Graph, str], str]]] = {
    "llvm": ("ll", _llvm),
    "cuda": ("ptx", _ptx),
    "asm": ("s", _assembly),
    "dot": ("dot", lambda graph, dtype: graph.dot()),
    "svg": ("svg", lambda graph, dtype: graph.svg()),
    "json": ("json", lambda graph, dtype: graph.json()),
    "graph": ("txt", lambda graph, dtype: str(graph)),
}


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


def _output_paths(files: dict[str, str], out: Path) -> list[Path]:
    folder = out.parent if out.suffix and not out.is_dir() else out
    return [out if len(files) == 1 and folder != out else folder / name for name in files]


def _write_files(files: dict[str, str], out: Path) -> list[str]:
    written = []
    try:
        for path, text in zip(_output_paths(files, out), files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            written.append(str(write_text(path, text if text.endswith("\n") else text + "\n", "Try again")))
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}. Choose another --out.") from None
    return written
