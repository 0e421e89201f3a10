"""Schedule: a quantity on the processors of a machine, as a table and as a page to look at."""

from __future__ import annotations

import json as json_module
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from bellcrank import quoting
from bellcrank.cli import (
    BaseOpt,
    CheckOpt,
    FrameOpt,
    JsonOpt,
    MechanismArg,
    MethodOpt,
    QuantityOpt,
    app,
    mechanism,
    screen,
)
from bellcrank.cli.screen import Column
from bellcrank.cli.write import write
from bellcrank.dynamics.requests import Request
from bellcrank.scheduling import Schedule
from bellcrank.scheduling.machines import KINDS, LAYOUTS
from bellcrank.scheduling.task import LEVELS

LISTED = 4  # processors whose tasks are listed one by one
SHOWN = 64  # processors in the table
BAR = 20  # letters of a full one
NAMES = (*LAYOUTS, "threads", "gpu", "wong")  # as build/schedules.py has them, which would load the compiler


@app.command()
def schedule(
    name: MechanismArg,
    machine_name: Annotated[
        str, typer.Option("--machine", metavar="NAME[:N]", help=f"{', '.join(NAMES)}; mesh:2,3  [default: complete]")
    ] = "",
    kind: Annotated[
        str, typer.Option(metavar="|".join(KINDS), help="What operations and messages cost  [default: ideal]")
    ] = "",
    quantity_name: QuantityOpt = "forward_dynamics",
    method_name: MethodOpt = "auto",
    frame: FrameOpt = "",
    level: Annotated[
        str, typer.Option(metavar="|".join((*LEVELS, "auto")), help="What a task is  [default: auto]")
    ] = "",
    strategy: Annotated[
        str, typer.Option(metavar="NAME[+NAME]", help="Cut into subsystems, modules, factorisation instead.")
    ] = "",
    control: Annotated[
        str, typer.Option(metavar="NAME", help="With a strategy: none, proportional, computed_torque.")
    ] = "none",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="The page (or .svg).")] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Write a picture beside the page.")] = False,
    page: Annotated[bool, typer.Option(help="Write the page.")] = True,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
) -> None:
    """A quantity laid out on the processors of a machine.

    Prints what it comes to and writes a page for the browser, MECHANISM_QUANTITY_MACHINE.html in this folder or --out:
    processors down, time across, tasks as boxes coloured by the step of the method (IA[boom] is step IA of the boom),
    messages as arrows, the critical path outlined in red. Wheel zooms, drag moves, point and click explain; ? lists the
    keys. --json prints everything and writes nothing unless --out is given.

    A machine without numbers is as large as suits the mechanism: triangle gets a row for each joint, the others at most
    eight processors. threads is this computer, with what was measured on it: the layout that a kernel uses. gpu is
    the team of threads that computes a state on a GPU, one if that is fastest; gpu:4 asks for four. wong is Wong's own
    program for his mesh of 1991. A strategy cuts the equations as Schäfer and Schiehlen did in 1992, for
    three transputers: modules+factorisation. `bellcrank papers` prints their tables beside ours.

    ideal counts steps (an addition 1, a division 4, a sine 8) and sends for nothing; t800 is a transputer in us, hidden
    and explicit are the same with messages that cost nothing, or keep both ends busy. A cluster is what one step of the
    method makes for one body, a node is one operation; auto takes the best of these and sizes between.
    """
    import bellcrank.papers  # noqa: F401  # adds its machines and strategies
    from bellcrank.build import schedules as machines

    m = mechanism(name, base, check)
    request = Request(quantity_name, method_name, frame)
    with screen.working(f"tracing {quantity_name} of {m.name}, and laying it out"):
        laid = machines.laid(m, request, machine_name, kind, level, strategy, control)
        found, what = laid.schedule, quoting.stem(strategy or machine_name or "complete")
        stem = quoting.stem(f"{m.name}_{quantity_name}_{what}").strip("_")
        written = write(_files(found, stem, out, svg, page and not (json and out is None)))
    if json:
        screen.data({"mechanism": m.name, "quantity": quantity_name, "method": laid.by, "written": written}
                    | json_module.loads(found.json()))  # fmt: skip
        return
    _print(found, f"{m.name}: {quantity_name} by {laid.by} on {found.machine}")
    if written:
        screen.line()
    for path in written:
        screen.line(f"wrote {path}" + (": open it in a browser" if path.endswith(".html") else ""), style="dim")


# -- the table


def _print(s: Schedule, title: str) -> None:
    f, unit = s.facts, s.machine.unit
    p = f["processors"]
    screen.line(title, style="bold")
    screen.line()
    screen.table(
        [Column(""), Column("number", right=True), Column("", wrap=True)],
        [
            ("makespan", _number(s.makespan), f"{unit}, {len(s.tasks)} tasks; one processor takes {_number(s.work)}"),
            ("speed-up", f"{s.speedup:.2f}", _used(s)),
            ("efficiency", f"{100 * s.efficiency:.0f} %", "speed-up for each processor"),
            ("work/p", _number(s.work / p), f"{unit}; no schedule is shorter than this"),
            ("span", _number(s.span), f"{unit}; nor than this, the longest chain of operations"),
            ("idle", _number(s.idle), f"{unit} of all processors together"),
            ("messages", str(f["messages"]), f"{f['words']} words, counted on every channel they pass"),
        ],
    )
    screen.line()
    listed = s.used <= LISTED and s.tasks.level == "cluster"
    head = [Column("processor", right=True), Column("tasks", right=True), Column(f"busy {unit}", right=True)]
    head += [Column("share", right=True), Column("load", optional=True)]
    if listed:
        head.append(Column("tasks in order", wrap=True, least=24))
    rows = []
    busy, used = s.busy, sorted(set(s.where))
    for i in used[:SHOWN]:
        share = busy[i] / s.makespan if s.makespan else 0.0
        mine = sorted((s.start[k], k) for k, at in enumerate(s.where) if at == i)
        bar = "#" * round(BAR * share)
        row = [str(i), str(len(mine)), _number(busy[i]), f"{100 * share:.0f} %", bar]
        rows.append([*row, _sequence([s.tasks[k].name for _, k in mine])] if listed else row)
    screen.table(head, rows)
    rest = [f"{len(used) - SHOWN} more are used"] if len(used) > SHOWN else []
    rest += [f"{p - len(used)} have nothing to do"] if p > len(used) else []
    if rest:
        screen.line(f"({', '.join(rest)})", style="dim")


def _used(s: Schedule) -> str:
    p = s.machine.processors
    if p == 1:
        return "one processor"
    if s.used == 1:
        return f"1 of {p} processors is used: nothing was found that is faster"
    return f"{s.used} of {p} processors are used"


def _sequence(names: list[str], most: int = 40) -> str:
    """f[boom] x3, Ic[boom], ..."""
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    text = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in runs[:most])
    return text + (f", and {len(runs) - most} more" if len(runs) > most else "")


def _number(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


# -- files


def _files(s: Schedule, stem: str, out: Path | None, svg: bool, page: bool) -> dict[Path, str]:
    """What is written where: the page, the picture, or both."""
    target = out if out is not None else Path(f"{stem}.html")
    if target.is_dir():
        target /= f"{stem}.html"
    only_picture = target.suffix.lower() == ".svg"
    files = {}
    if page and not only_picture:
        files[target] = s.html()
    if svg or only_picture:
        files[target.with_suffix(".svg")] = s.svg()
    return files
