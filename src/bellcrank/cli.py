"""The command line. Thin: each command makes one noun of the design and stops there.

    Mechanism: show, zoo     Graph: count     Source: emit     Kernel: bench

And the credits: methods, cite.
"""

from __future__ import annotations

import io
import math
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import bellcrank as bc
from bellcrank import screen
from bellcrank.errors import BellcrankError, InputError, unknown
from bellcrank.methods import METHODS, QUANTITIES, candidates, method, quantity
from bellcrank.model import Mechanism
from bellcrank.read import SUFFIXES
from bellcrank.screen import Column

TIMED = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "gravity_torque", "kinetic_energy")
MARKS = {"ok": "", "note": "-", "warning": "!"}
TARGETS = ("llvm", "c", "graph", "dot", "json", "asm")


class Group(TyperGroup):
    """Turns what may go wrong into an exit code and at most one short message."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BellcrankError as error:
            screen.fail(str(error))
            raise typer.Exit(2) from None
        except BrokenPipeError:  # the reader has seen enough; Python must not complain when it closes stdout
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Group,
    name="bellcrank",
    help="Compile a mechanism into verified real-time code, and know what it costs before you run it.",
    epilog="MECHANISM is a file (.urdf, .xml, .toml) or built in (see `bellcrank zoo`): excavator, chain:8.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MechanismArg = Annotated[str, typer.Argument(metavar="MECHANISM", help="A file, or built in.", show_default=False)]
BaseOpt = Annotated[str, typer.Option("--base", metavar="fixed|floating", help="What the root link of a file is.")]
CheckOpt = Annotated[str, typer.Option("--check", metavar="error|warn", help="On impossible inertias in a file.")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuantityOpt = Annotated[str, typer.Option("--quantity", "-q", metavar="NAME", help="What to compute.")]
MethodOpt = Annotated[str, typer.Option("--method", "-m", metavar="NAME", help="How; auto takes the cheapest.")]
FrameOpt = Annotated[str, typer.Option("--frame", "-f", metavar="NAME", help="For pose, velocity, jacobian.")]
DtypeOpt = Annotated[str, typer.Option("--dtype", metavar="float64|float32", help="Numbers of the generated code.")]


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name in another script is no reason to fail
    try:
        app(prog_name="bellcrank")
    except KeyboardInterrupt:
        sys.exit(130)


def _version(asked: bool) -> None:
    if asked:
        print(f"bellcrank {bc.__version__}")
        raise typer.Exit


VersionOpt = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def _options(version: VersionOpt = False) -> None:
    pass


def mechanism(name: str, base: str = "fixed", check: str = "error") -> Mechanism:
    """A built-in mechanism by its name ("excavator", "chain:8", "chain(8)"), or the one in a file."""
    built_in = re.fullmatch(r"(\w+)\s*(\(.*\)|:.*)?", name)
    if built_in and built_in[1] in bc.zoo.names() and not name.lower().endswith(SUFFIXES):
        if base != "fixed":
            raise InputError(f'"{name}" is built in and stands on the ground; --base {base} is for files.')
        return bc.zoo.load(name)
    if os.sep in name or Path(name).suffix or Path(name).exists():
        return bc.read(name, base=base, check=check)
    raise InputError(f"{unknown('mechanism', name, bc.zoo.names())} A file ends in {', '.join(SUFFIXES)}.")


def _number(x: float) -> str:
    return f"{x:.5g}"


def _vector(xyz: Any) -> str:
    return f"({', '.join(f'{x:g}' for x in xyz)})"


# -- Mechanism


@app.command()
def show(
    name: MechanismArg,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
    report: Annotated[bool, typer.Option("--report", help="What became of every element of the source.")] = False,
    json: JsonOpt = False,
) -> None:
    """A mechanism's joints, bodies and frames.

    Then the warnings of its report: what its file left doubtful.
    """
    m = mechanism(name, base, check)
    if json:
        screen.data(_described(m))
        return
    about = f"nq {m.nq}, nv {m.nv}, {_number(sum(b.mass for b in m.bodies))} kg, gravity {_vector(m.gravity)}"
    screen.line(f"{m.name}: {len(m.bodies)} moving bodies, {about}", style="bold")
    screen.line()
    rows = []
    for i, (b, j) in enumerate(zip(m.bodies, m.joints, strict=True)):
        kind = j.kind if j.mimic is None else f"{j.kind} = {j.mimic.multiplier:g} * {j.mimic.joint}"
        low, high = j.limits.lower, j.limits.upper
        limits = f"{_number(low)} .. {_number(high)}" if math.isfinite(low) or math.isfinite(high) else ""
        rows.append((str(i), j.name, kind, j.parent, b.name, _number(b.mass), limits))
    head = [
        Column("#", right=True, optional=True),
        Column("joint", wrap=True),
        Column("type", wrap=True),
        Column("parent", wrap=True),
        Column("body", wrap=True),
        Column("mass kg", right=True),
        Column("limits", optional=True),
    ]
    limited = any(row[-1] for row in rows)
    screen.table(head if limited else head[:-1], [row if limited else row[:-1] for row in rows])
    screen.line()
    on: dict[str, list[str]] = {}
    for f in m.frames.values():
        on.setdefault(f.body, []).append(f.name)
    carried = [(body, ", ".join(names)) for body, names in on.items()]
    screen.table([Column("body", wrap=True), Column("frames on it", wrap=True)], carried)
    screen.line()
    if report:
        screen.table(
            [Column(""), Column("element", wrap=True), Column("what became of it", wrap=True)],
            [(MARKS[line.level], line.element, line.outcome) for line in m.report.lines],
        )
        return
    for line in m.report.warnings:
        screen.line(f"warning: {line.element}: {line.outcome}", style="yellow")
    notes = sum(line.level == "note" for line in m.report.lines)
    more = " (--report shows them)" if notes else ""
    screen.line(f"{len(m.report.warnings)} warnings, {notes} notes{more}", style="dim")


def _described(m: Mechanism) -> dict[str, Any]:
    q, v = m.columns
    return {
        "name": m.name,
        "ground": m.ground,
        "gravity": m.gravity,
        "nq": m.nq,
        "nv": m.nv,
        "q": q,
        "v": v,
        "bodies": [asdict(b) for b in m.bodies],
        "joints": [asdict(j) for j in m.joints],
        "frames": [asdict(f) for f in m.frames.values()],
        "report": {"source": m.report.source, "lines": [asdict(line) for line in m.report.lines]},
    }


@app.command("zoo")
def zoo_command(json: JsonOpt = False) -> None:
    """The built-in mechanisms."""
    found = [
        (name, (maker.__doc__ or "").split("\n")[0].split(". ")[0].rstrip(".")) for name, maker in bc.zoo.TABLE.items()
    ]
    if json:
        screen.data([{"name": name, "what": what} for name, what in found])
        return
    screen.table([Column("mechanism"), Column("what it is", wrap=True)], found)
    screen.line()
    screen.line("chain, tree and random_tree take numbers: chain:8, tree:15:3", style="dim")


# -- Graph


@app.command()
def count(
    name: MechanismArg,
    quantity_name: QuantityOpt = "forward_dynamics",
    method_name: MethodOpt = "auto",
    frame: FrameOpt = "",
    every: Annotated[bool, typer.Option("--all", help="Every quantity by every method that applies.")] = False,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
    json: JsonOpt = False,
) -> None:
    """The operations of a quantity, and their span.

    The span is the longest chain of operations that wait for each other, with an addition as 1, a division as 4, a sine
    or cosine as 8; work is the sum over all of them, and work / span is how many processors could be kept busy.
    """
    from bellcrank import build

    m = mechanism(name, base, check)
    if every:
        frame = frame or list(m.frames)[-1]
        rows = _all_counted(m, frame)
    else:
        with screen.working(f"tracing {quantity_name} of {m.name}"):
            by, graph = build.chosen(m, build.Request(quantity_name, method_name, frame))
            rows = [_counted(quantity_name, by.name, graph)]
    if json:
        screen.data({"mechanism": m.name, "frame": frame or None, "rows": rows})
    elif every:
        screen.line(f"{m.name}: operations (pose, velocity and jacobian of {frame})", style="bold")
        screen.line()
        kinds = [k for k in rows[0]["count"] if any(row["count"][k] for row in rows)]
        head = [Column("quantity"), Column("method"), *(Column(k, right=True, optional=True) for k in kinds)]
        head += [Column(k, right=True, optional=k == "nodes") for k in ("total", "span", "work/span", "nodes")]
        cells = [(r["quantity"], r["method"], *(str(r["count"][k]) for k in kinds), *_tail(r)) for r in rows]
        screen.table(head, cells)
    else:
        able = ", ".join(by.name for by in candidates(quantity_name, m.tree))
        chosen = f", chosen from {able}" if method_name == "auto" and "," in able else ""
        screen.line(f"{m.name}: {quantity_name} by {by.name}{chosen}", style="bold")
        screen.line()
        total, span, ratio, nodes = _tail(rows[0])
        screen.table(
            [Column("operation"), Column("number", right=True), Column("", wrap=True)],
            [
                *((kind, str(n), "") for kind, n in rows[0]["count"].items() if n),
                ("total", total, "mul + add + sub + div"),
                ("span", span, "longest chain; div counts 4, sin and cos 8"),
                ("work/span", ratio, "processors that could be kept busy"),
                ("nodes", nodes, "of the graph, inputs included"),
            ],
        )


def _all_counted(m: Mechanism, frame: str) -> list[dict[str, Any]]:
    from bellcrank import build

    rows = []
    with screen.working(f"tracing {m.name}") as say:
        for q in QUANTITIES.values():
            likely = candidates(q.name, m.tree)
            for by in METHODS.values():
                if q.name not in by.solves or not by.applies(m.tree):
                    continue
                if by not in likely:
                    screen.note(f"not traced: {q.name} by {by.name}, far behind (ask with --quantity and --method)")
                    continue
                say(f"tracing {q.name} by {by.name}")
                graph = build.graph(m, q.name, by.name, frame if q.option == "frame" else "")
                rows.append(_counted(q.name, by.name, graph))
    return rows


def _counted(quantity_name: str, method_name: str, graph: bc.Graph) -> dict[str, Any]:
    from bellcrank.graph.ops import OPS

    c = graph.count()
    work = sum(OPS[n.op].cost for n in graph.nodes if n.op != "input")
    span = graph.span()
    return {
        "quantity": quantity_name,
        "method": method_name,
        "count": dict(c.by_kind),
        "total": c.arithmetic,
        "work": work,
        "span": span,
        "parallelism": work / span if span else 0.0,
        "nodes": len(graph.nodes),
    }


def _tail(row: dict[str, Any]) -> tuple[str, str, str, str]:
    return str(row["total"]), f"{row['span']:g}", f"{row['parallelism']:.1f}", str(row["nodes"])


# -- Source


@app.command()
def emit(
    name: MechanismArg,
    target: Annotated[str, typer.Option("--target", "-t", metavar="NAME", help=f"{', '.join(TARGETS)}.")],
    quantity_name: QuantityOpt = "forward_dynamics",
    method_name: MethodOpt = "auto",
    frame: FrameOpt = "",
    dtype: DtypeOpt = "float64",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="PATH", help="A file or folder to write.")] = None,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
    json: JsonOpt = False,
) -> None:
    """Generated text: LLVM IR, C99, assembly.

    Printed, or written with --out. C is a header and a source; printed, they are one text that a C compiler accepts.
    graph is the data flow as assignments; dot and json are the same for Graphviz and for other programs.
    """
    from bellcrank import build

    if target not in TARGETS:
        raise InputError(unknown("target", target, TARGETS))
    if dtype not in build.DTYPES:
        raise InputError(unknown("dtype", dtype, build.DTYPES))
    m = mechanism(name, base, check)
    stem = re.sub(r"\W+", "_", f"{m.name}_{quantity_name}" if out is None or not out.suffix else out.stem)
    with screen.working(f"tracing {quantity_name} of {m.name}") as say:
        by, graph = build.chosen(m, build.Request(quantity_name, method_name, frame))
        say(f"writing {target}")
        files = _texts(m, graph, target, dtype, stem)
    written = _write(files, out) if out is not None else []
    if json:
        about = {"mechanism": m.name, "quantity": quantity_name, "method": by.name, "target": target, "dtype": dtype}
        screen.data(about | ({"files": files} if out is None else {"written": written}))
    elif out is not None:
        for path in written:
            screen.note(f"wrote {path}")
    else:
        print(_one_text(files))


def _texts(m: Mechanism, graph: bc.Graph, target: str, dtype: str, stem: str) -> dict[str, str]:
    """File names and what belongs in them."""
    from bellcrank import build

    match target:
        case "c":
            from bellcrank.emit import c99

            q, v = m.columns
            return dict(c99.source(graph, dtype, stem, {"q": q, "v": v, "tau": v, "a": v, "dv": v}))
        case "llvm":
            return {f"{stem}.ll": build.source(graph, dtype)}
        case "asm":
            from bellcrank.emit.load import assembly

            return {f"{stem}.s": assembly(build.source(graph, dtype))}
        case "dot":
            return {f"{stem}.dot": graph.dot()}
        case "json":
            return {f"{stem}.json": graph.json()}
    return {f"{stem}.txt": str(graph)}


def _one_text(files: dict[str, str]) -> str:
    """The files as one: a header in place of the line that includes it."""
    headers = {name: text for name, text in files.items() if name.endswith(".h")}
    parts = []
    for text in (text for name, text in files.items() if name not in headers):
        for header, inside in headers.items():
            text = text.replace(f'#include "{header}"', inside.rstrip("\n"))
        parts.append(text.rstrip("\n"))
    return "\n".join(parts)


def _write(files: dict[str, str], out: Path) -> list[str]:
    written = []
    folder = out.parent if out.suffix and not out.is_dir() else out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = out if len(files) == 1 and folder != out else folder / name
            path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
            written.append(str(path))
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}. Choose another --out.") from None
    return written


# -- Kernel


@app.command()
def bench(
    name: Annotated[str, typer.Argument(metavar="MECHANISM", help="A file, or built in.")] = "excavator",
    quantity_names: Annotated[
        list[str] | None, typer.Option("--quantity", "-q", metavar="NAME", help="May be given several times.")
    ] = None,
    method_name: MethodOpt = "all",
    frame: FrameOpt = "",
    dtype: DtypeOpt = "float64",
    rows: Annotated[int, typer.Option("--rows", min=1, metavar="N", help="States in a batch.")] = 4096,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
    json: JsonOpt = False,
) -> None:
    """Compile and time a mechanism's quantities.

    Compile is trace, generate, compile and load with an empty cache; from cache is the second time. The comparison with
    Pinocchio is `python -m bench` in the repository.
    """
    from bellcrank import build, timing
    from bellcrank.emit.host import host

    m = mechanism(name, base, check)
    jobs = []
    timed = TIMED if method_name not in METHODS else METHODS[method_name].solves
    for q in map(quantity, quantity_names or [name for name in timed if name in TIMED]):
        able = candidates(q.name, m.tree)
        if method_name == "auto":
            able = [build.chosen(m, build.Request(q.name, frame=frame if q.option == "frame" else ""))[0]]
        elif method_name != "all":
            able = [method(method_name, q.name, m.tree)]
        jobs += [(q, by) for by in able]
    found = []
    with screen.working(f"compiling {m.name}") as say:
        for i, (q, by) in enumerate(jobs):
            say(f"{i + 1} of {len(jobs)}: {q.name} by {by.name}")
            found.append(timing.measure(m, q.name, by.name, frame if q.option == "frame" else "", dtype, rows))
    n, cpu, lanes = timing.cores(), host().cpu, host().lanes(dtype)
    if json:
        about = {"mechanism": m.name, "dtype": dtype, "cpu": cpu, "lanes": lanes, "cores": n, "rows": rows}
        screen.data(about | {"seconds": [asdict(t) for t in found]})
        return
    screen.line(f"{m.name} on {cpu}, {lanes} lanes of {dtype}", style="bold")
    screen.line()
    head = [
        Column("\n\nquantity", wrap=True),
        Column("\n\nmethod"),
        Column("\n\noperations", right=True, optional=True),
        Column("\ncompile\nms", right=True),
        Column("from\ncache\nms", right=True, optional=True),
        Column("one\nstate\nns", right=True),
        Column("batch,\n1 core\nns", right=True),
        Column(f"batch,\n{n} cores\nns", right=True),
    ]
    body = [
        (
            t.quantity,
            t.method,
            str(t.operations),
            f"{t.compile * 1e3:.0f}",
            f"{t.from_cache * 1e3:.1f}",
            f"{t.call * 1e9:.0f}",
            f"{t.batch * 1e9:.1f}",
            f"{t.batch_all_cores * 1e9:.1f}",
        )
        for t in found
    ]
    screen.table(head[:-1] if n == 1 else head, [row[:-1] if n == 1 else row for row in body])
    screen.line()
    screen.line(f"Least of {timing.REPEATS} repeats. One state: a call from Python with numpy arrays.", style="dim")
    least, most = (pick(t.rows_all_cores for t in found) for pick in (min, max))
    span = f"{least}" if least == most else f"{least} to {most}"
    wide = f", on {n} cores of {span}, so that all have work" if n > 1 else ""
    screen.line(f"Batch: time for each of {rows} states{wide}.", style="dim")


# -- credits


@app.command()
def methods(json: JsonOpt = False) -> None:
    """The methods and where they were published."""
    if json:
        facts = ("name", "solves", "topology", "citation")
        screen.data([{fact: getattr(m, fact) for fact in facts} for m in METHODS.values()])
        return
    screen.table(
        [
            Column("method"),
            Column("solves", wrap=True),
            Column("topology", optional=True),
            Column("source", wrap=True, least=30),
        ],
        [(m.name, ", ".join(m.solves), m.topology, m.citation) for m in METHODS.values()],
    )


@app.command()
def cite(
    name: MechanismArg,
    method_name: MethodOpt = "auto",
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print BibTeX.")] = False,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
    json: JsonOpt = False,
) -> None:
    """What to cite for a mechanism.

    The paper it comes from, if any, and the papers of the methods that compute its quantities.
    """
    from bellcrank import build
    from bellcrank.bibtex import bibtex as entry

    m = mechanism(name, base, check)
    used: dict[str, list[str]] = {}
    if method_name != "auto":
        for q in bc.methods()[method_name].solves:
            used.setdefault(method(method_name, q, m.tree).name, []).append(q)
    else:
        with screen.working(f"tracing {m.name}"):
            for q in QUANTITIES:
                able = candidates(q, m.tree)
                by = able[0] if len(able) == 1 else build.chosen(m, build.Request(q))[0]
                used.setdefault(by.name, []).append(q)
    found: list[dict[str, Any]] = [{"what": "mechanism", "name": m.name, "citation": c} for c in _papers(name)]
    for by_name, names in used.items():
        citation = METHODS[by_name].citation
        found.append({"what": "method", "name": by_name, "quantities": names, "citation": citation})
    if json:
        screen.data([row | {"bibtex": entry(row["citation"])} for row in found])
    elif bibtex:
        print("\n\n".join(entry(row["citation"]) for row in found))
    else:
        screen.table(
            [Column(""), Column("used for", wrap=True), Column("reference", wrap=True, least=30)],
            [(row["name"], ", ".join(row.get("quantities", ["the mechanism"])), row["citation"]) for row in found],
        )


def _papers(name: str) -> list[str]:
    """Where a built-in mechanism comes from; nowhere if it is a family or a file."""
    try:
        return list(bc.zoo.data(name)["cite"])
    except InputError:
        return []
