"""Commands show and zoo: the contents of a mechanism, and the built-in mechanisms."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.screen import TableColumn, numbers, texts
from bellcrank.errors import ModelError
from bellcrank.model import Mechanism
from bellcrank.parameters import nominal

LEVEL_MARKS = {"ok": "", "note": "-", "warning": "!"}


@app.command()
def show(
    name: options.MechanismArg,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    report: Annotated[bool, typer.Option("--report", help="Outcome of every element of the source.")] = False,
    json: options.JsonOpt = False,
) -> None:
    """Print the joints, bodies, loops and frames of a mechanism.

    The warnings of its report follow: parts of its file that are doubtful.
    """
    m = load_mechanism(name, base, check, quiet=True)
    if json:
        screen.data(_json_data(m))
        return
    mass = sum(nominal(b.mass) for b in m.bodies)
    about = f"nq {m.nq}, nv {m.nv}, {_number(mass)} kg, gravity {_vector(m.gravity)}"
    screen.heading(f"{m.name}: {len(m.bodies)} moving bodies, {about}")
    _print_joints(m)
    doubts = _print_loops(m) if m.loops else 0
    if m.springs:
        head = [*texts("spring", "between"), *numbers("stiffness", "length", "damping")]
        screen.table(head, [m.between(s) for s in m.springs])
        screen.line()
    _print_frames(m)
    if m.parameters:
        free = [(name, _number(x), m.parameters.unit(name)) for name, x in m.parameters.items()]
        screen.table([*texts("parameter"), *numbers("nominal"), TableColumn("unit")], free)
        screen.line()
    if report:
        rows = [(LEVEL_MARKS[line.level], line.element, line.outcome) for line in m.report.lines]
        screen.table([TableColumn(""), *texts("element", "outcome")], rows)
    else:
        _print_warnings(m, doubts)


def _print_joints(m: Mechanism) -> None:
    rows = []
    for i, (b, j) in enumerate(zip(m.bodies, m.joints, strict=True)):
        kind = j.kind if j.mimic is None else f"{j.kind} = {j.mimic.multiplier:g} * {j.mimic.joint}"
        low, high = nominal((j.limits.lower, j.limits.upper))
        limits = f"{_number(low)} .. {_number(high)}" if math.isfinite(low) or math.isfinite(high) else ""
        rows.append((str(i), j.name, kind, j.parent, b.name, _number(b.mass), limits))
    head = [TableColumn("#", right=True, optional=True), *texts("joint", "type", "parent", "body")]
    head += [*numbers("mass kg"), TableColumn("limits", optional=True)]
    limited = any(row[-1] for row in rows)
    screen.table(head if limited else head[:-1], [row if limited else row[:-1] for row in rows])
    screen.line()


def _print_loops(m: Mechanism) -> int:
    """Print the loops and the mobility they leave; return the number of warnings."""
    head = [*texts("loop"), TableColumn("type"), *texts("closes"), *numbers("value")]
    screen.table(head, [m.closing(loop) for loop in m.loops])
    screen.line()
    return _print_mobility(m)


def _print_frames(m: Mechanism) -> None:
    frames_on_body: dict[str, list[str]] = {}
    for f in m.frames.values():
        frames_on_body.setdefault(f.body, []).append(f.name)
    carried = [(body, ", ".join(names)) for body, names in frames_on_body.items()]
    screen.table(texts("body", "frames on it"), carried)
    screen.line()


def _print_warnings(m: Mechanism, doubts: int) -> None:
    """Print the warnings of the report; `doubts` is the number of warnings printed before."""
    for line in m.report.warnings:
        screen.line(f"warning: {line.element}: {line.outcome}", style="yellow")
    notes = sum(line.level == "note" for line in m.report.lines)
    more = " (--report shows them)" if notes else ""
    doubts += len(m.report.warnings)
    counted = f"{doubts} warning{'s' * (doubts != 1)}, {notes} note{'s' * (notes != 1)}"
    screen.line(f"{counted}{more}", style="dim")


def _print_mobility(m: Mechanism) -> int:
    """Print the mobility and the redundant loop equations; return the number of warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # printed below
            analysis = m.loop_analysis
    except ModelError as error:
        screen.line(f"warning: {error}", style="yellow")
        screen.line()
        return 1
    equations = f"{len(analysis.kept)} of {len(analysis.names)} loop equations are independent"
    screen.line(f"mobility {analysis.mobility}: {m.nv} coordinates, {equations} (Gruebler counts {analysis.gruebler})")
    if analysis.blocks:
        screen.line(analysis.gap_in_words, style="dim")
    for warning in analysis.warnings:
        screen.line(f"warning: {warning}", style="yellow")
    redundant_rows = [(name, "follows from the others") for name in analysis.redundant]
    redundant_rows += [(analysis.names[k], "holds identically") for k in analysis.identically_satisfied]
    if redundant_rows:
        screen.line()
        screen.table(texts("redundant equation", "because it"), redundant_rows)
    screen.line()
    return len(analysis.warnings)


def _loop_facts(m: Mechanism) -> dict[str, Any]:
    if not m.loops:
        return {}
    try:
        analysis = m.loop_analysis
    except ModelError as error:
        return {"cannot_be_closed": str(error)}
    identically_satisfied = [analysis.names[k] for k in analysis.identically_satisfied]
    return {
        "mobility": analysis.mobility,
        "gruebler": analysis.gruebler,
        "gap": list(analysis.gap),
        "redundant": list(analysis.redundant),
        "identically_satisfied": identically_satisfied,
        "holding_by_themselves": identically_satisfied,  # deprecated name; remove it after one release
        "singular_start": bool(analysis.more),
    }


def _json_data(m: Mechanism) -> dict[str, Any]:
    q, v = m.columns
    parameters = {"parameters": dict(m.parameters)} if m.parameters else {}
    m = m.at() if m.parameters else m
    return parameters | {
        **{key: getattr(m, key) for key in ("name", "ground", "gravity", "nq", "nv")},
        "q": q,
        "v": v,
        **{key: [asdict(part) for part in getattr(m, key)] for key in ("bodies", "joints")},
        "frames": [asdict(f) for f in m.frames.values()],
        **{key: [asdict(part) for part in getattr(m, key)] for key in ("loops", "springs")},
        **_loop_facts(m),
        "report": {"source": m.report.source, "lines": [asdict(line) for line in m.report.lines]},
    }


def _number(x: float) -> str:
    return f"{x:.5g}"


def _vector(xyz: Any) -> str:
    return f"({', '.join(f'{x:g}' for x in xyz)})"


@app.command("zoo")
def zoo_command(json: options.JsonOpt = False) -> None:
    """List the built-in mechanisms."""
    descriptions = [
        (name, (maker.__doc__ or "").split("\n")[0].split(". ")[0].rstrip(".")) for name, maker in bc.zoo.TABLE.items()
    ]
    if json:
        screen.data([{"name": name, "what": what} for name, what in descriptions])
        return
    screen.table([TableColumn("mechanism"), *texts("description")], descriptions)
    screen.line()
    screen.line("chain, tree, random_tree and n_four_bar take numbers: chain:8, tree:15:3", style="dim")
