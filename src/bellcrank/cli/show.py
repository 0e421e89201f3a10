"""Commands show and zoo: the contents of a mechanism, and the built-in mechanisms."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import BaseOpt, CheckOpt, JsonOpt, MechanismArg, app, mechanism, screen
from bellcrank.cli.screen import Column
from bellcrank.errors import ModelError
from bellcrank.model import Mechanism
from bellcrank.parameters import nominal

MARKS = {"ok": "", "note": "-", "warning": "!"}


@app.command()
def show(
    name: MechanismArg,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    report: Annotated[bool, typer.Option("--report", help="Outcome of every element of the source.")] = False,
    json: JsonOpt = False,
) -> None:
    """Print the joints, bodies, loops and frames of a mechanism.

    The warnings of its report follow: parts of its file that are doubtful.
    \f

    The options `name`, `base`, `check`, `report` and `json` are described by their help texts.
    """  # noqa: D301
    m = mechanism(name, base, check, quiet=True)
    if json:
        screen.data(_described(m))
        return
    mass = sum(nominal(b.mass) for b in m.bodies)
    about = f"nq {m.nq}, nv {m.nv}, {_number(mass)} kg, gravity {_vector(m.gravity)}"
    screen.line(f"{m.name}: {len(m.bodies)} moving bodies, {about}", style="bold")
    screen.line()
    _joints(m)
    doubts = _loops(m) if m.loops else 0
    if m.springs:
        numbers = [Column(what, right=True) for what in ("stiffness", "length", "damping")]
        screen.table(
            [Column("spring", wrap=True), Column("between", wrap=True), *numbers], [m.between(s) for s in m.springs]
        )
        screen.line()
    _frames(m)
    if m.parameters:
        free = [(name, _number(x), m.parameters.unit(name)) for name, x in m.parameters.items()]
        screen.table([Column("parameter", wrap=True), Column("nominal", right=True), Column("unit")], free)
        screen.line()
    if report:
        screen.table(
            [Column(""), Column("element", wrap=True), Column("outcome", wrap=True)],
            [(MARKS[line.level], line.element, line.outcome) for line in m.report.lines],
        )
    else:
        _warnings(m, doubts)


def _joints(m: Mechanism) -> None:
    rows = []
    for i, (b, j) in enumerate(zip(m.bodies, m.joints, strict=True)):
        kind = j.kind if j.mimic is None else f"{j.kind} = {j.mimic.multiplier:g} * {j.mimic.joint}"
        low, high = nominal((j.limits.lower, j.limits.upper))
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


def _loops(m: Mechanism) -> int:
    """Print the loops and the mobility they leave; return the number of warnings."""
    loops = [Column("loop", wrap=True), Column("type"), Column("closes", wrap=True), Column("value", right=True)]
    screen.table(loops, [m.closing(loop) for loop in m.loops])
    screen.line()
    return _mobility(m)


def _frames(m: Mechanism) -> None:
    on: dict[str, list[str]] = {}
    for f in m.frames.values():
        on.setdefault(f.body, []).append(f.name)
    carried = [(body, ", ".join(names)) for body, names in on.items()]
    screen.table([Column("body", wrap=True), Column("frames on it", wrap=True)], carried)
    screen.line()


def _warnings(m: Mechanism, doubts: int) -> None:
    """Print the warnings of the report; `doubts` is the number of warnings printed before."""
    for line in m.report.warnings:
        screen.line(f"warning: {line.element}: {line.outcome}", style="yellow")
    notes = sum(line.level == "note" for line in m.report.lines)
    more = " (--report shows them)" if notes else ""
    doubts += len(m.report.warnings)
    counted = f"{doubts} warning{'s' * (doubts != 1)}, {notes} note{'s' * (notes != 1)}"
    screen.line(f"{counted}{more}", style="dim")


def _mobility(m: Mechanism) -> int:
    """Print the mobility and the redundant loop equations; return the number of warnings."""
    try:
        found = m.loop_analysis
    except ModelError as error:
        screen.line(f"warning: {error}", style="yellow")
        screen.line()
        return 1
    equations = f"{len(found.kept)} of {len(found.names)} loop equations are independent"
    screen.line(f"mobility {found.mobility}: {m.nv} coordinates, {equations} (Gruebler counts {found.gruebler})")
    if found.blocks:
        screen.line(found.gap_in_words, style="dim")
    for warning in found.warnings:
        screen.line(f"warning: {warning}", style="yellow")
    idle = [(name, "follows from the others") for name in found.redundant]
    idle += [(found.names[k], "holds identically") for k in found.trivial]
    if idle:
        screen.line()
        screen.table([Column("redundant equation", wrap=True), Column("because it", wrap=True)], idle)
    screen.line()
    return len(found.warnings)


def _looped(m: Mechanism) -> dict[str, Any]:
    if not m.loops:
        return {}
    try:
        found = m.loop_analysis
    except ModelError as error:
        return {"cannot_be_closed": str(error)}
    return {
        "mobility": found.mobility,
        "gruebler": found.gruebler,
        "gap": list(found.gap),
        "redundant": list(found.redundant),
        "holding_by_themselves": [found.names[k] for k in found.trivial],
        "singular_start": bool(found.more),
    }


def _described(m: Mechanism) -> dict[str, Any]:
    q, v = m.columns
    parameters = {"parameters": dict(m.parameters)} if m.parameters else {}
    m = m.at() if m.parameters else m
    return parameters | {
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
        "loops": [asdict(loop) for loop in m.loops],
        "springs": [asdict(s) for s in m.springs],
        **_looped(m),
        "report": {"source": m.report.source, "lines": [asdict(line) for line in m.report.lines]},
    }


def _number(x: float) -> str:
    return f"{x:.5g}"


def _vector(xyz: Any) -> str:
    return f"({', '.join(f'{x:g}' for x in xyz)})"


@app.command("zoo")
def zoo_command(json: JsonOpt = False) -> None:
    """List the built-in mechanisms.

    \f

    The option `json` prints JSON.
    """  # noqa: D301
    found = [
        (name, (maker.__doc__ or "").split("\n")[0].split(". ")[0].rstrip(".")) for name, maker in bc.zoo.TABLE.items()
    ]
    if json:
        screen.data([{"name": name, "what": what} for name, what in found])
        return
    screen.table([Column("mechanism"), Column("description", wrap=True)], found)
    screen.line()
    screen.line("chain, tree, random_tree and n_four_bar take numbers: chain:8, tree:15:3", style="dim")
