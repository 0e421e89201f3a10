"""Command schedule: a quantity on the processors of a machine, as a table and as a page."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bellcrank import quoting
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.schedule_candidates import number_text, print_candidates, print_coordinates, print_map
from bellcrank.cli.screen import TableColumn, numbers, page_path, texts, write_pages
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.progress import bar
from bellcrank.scheduling import Schedule
from bellcrank.scheduling.machines import KINDS, LAYOUTS
from bellcrank.scheduling.task import LEVELS

if TYPE_CHECKING:
    from bellcrank.build.schedules import MethodSchedule

MAX_LISTED_PROCESSORS = 4  # processors whose tasks are listed one by one
MAX_TABLE_PROCESSORS = 64  # processors in the table
BAR_CHARACTERS = 20  # characters of a full bar
# Same as in build/schedules.py, whose import would load the compiler.
MACHINE_NAMES = (*LAYOUTS, "threads", "gpu", "wong")


@app.command()
def schedule(
    name: options.MechanismArg,
    machine_name: Annotated[
        str,
        option("NAME[:N]", f"{', '.join(MACHINE_NAMES)}; mesh:2,3  [default: complete]", "--machine"),
    ] = "",
    kind: Annotated[str, option("|".join(KINDS), "Cost of operations and messages  [default: ideal]")] = "",
    quantity_name: options.QuantityOpt = "forward_dynamics",
    method_name: options.MethodOpt = "auto",
    frame: options.FrameOpt = "",
    projection: Annotated[
        str, option("base|end|body", "Frame of projection of a method that has several.", "--projection")
    ] = "",
    level: Annotated[str, option("|".join((*LEVELS, "auto")), "Size of a task  [default: auto]")] = "",
    strategy: Annotated[str, option("NAME[+NAME]", "Partition into subsystems, modules, factorisation instead.")] = "",
    control: Annotated[str, option("NAME", "Control law of a strategy: none, proportional, computed_torque.")] = "none",
    map_sizes: Annotated[
        str, option("BODIES/PROCESSORS", "Best method of a family for these numbers: 4,8,16/1,4,16.", "--map")
    ] = "",
    coordinates: Annotated[
        bool, typer.Option("--coordinates", help="Compare sets of independent coordinates of closed loops instead.")
    ] = False,
    config: Annotated[
        Path | None, option("FILE", "Processors of subsystems and modules, from a TOML file.", "--config")
    ] = None,
    out: Annotated[Path | None, option("FILE", "Page to write (or .svg).", "--out", "-o")] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Also write a picture.")] = False,
    page: Annotated[bool, typer.Option(help="Write the page.")] = True,
    execute: Annotated[
        bool, typer.Option("--execute", help="Execute it on a simulated machine, with numbers.")
    ] = False,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Schedule a quantity on the processors of a machine.

    Prints the makespan and related facts, and writes a page, MECHANISM_QUANTITY_MACHINE.html in this folder or --out:
    processors down, time across, tasks as boxes coloured by the step of the method (IA[boom] is step IA of the boom),
    messages as arrows, the critical path outlined in red. Wheel zooms, drag moves, point and click explain; ? lists the
    keys. --json prints everything and writes nothing unless --out is given.

    A machine without a number gets a size that suits the mechanism: triangle gets a row for each joint, the others at
    most eight processors. threads is this computer with its measured costs: the schedule that a kernel uses. gpu is
    the team of threads that computes a state on a GPU, one thread if that is fastest; gpu:4 is a team of four. wong is
    Wong's program for his mesh of 1991. A strategy partitions the equations as Schäfer and Schiehlen did in 1992, for
    three transputers: modules+factorisation. `bellcrank papers` prints their tables beside ours.

    Method auto compares methods, frames of projection and sizes of tasks on this machine, and the table lists the
    candidates with their makespans. --map repeats that for a family: `bellcrank schedule chain -q mass_matrix --map
    4,8,16/1,4,16` prints the best method for 4, 8 and 16 bodies on 1, 4 and 16 processors, and --svg draws the map.
    --coordinates compares the sets of independent coordinates of a mechanism with loops, by the critical path of its
    equations of motion, and with --machine by their schedules.

    ideal counts steps (an addition 1, a division 4, a sine 8), and messages are free; t800 is a transputer, in us;
    hidden and explicit are a transputer whose messages are free, or keep both ends busy. A cluster holds the operations
    of one step of the method for one body, a node is one operation; auto takes the best of these and of sizes between.

    --config reads the processors of subsystems and modules from a file ("Assign processors yourself" in
    docs/parallel.md). The machine of the file holds unless --machine is given.

    --execute translates the schedule to one program for each processor and executes these on a simulated machine, for
    a random state. It adds rows with the observed makespan, idle time and messages, and with the difference of the
    results from those of one core; and the makespan where a channel carries the first message that is ready.
    """
    import bellcrank.papers  # noqa: F401  # adds its machines and strategies
    from bellcrank.build import schedules as machines

    request = Request(quantity_name, method_name, frame)
    if map_sizes:
        _check_excluded("--map compares methods", {"--method": method_name != "auto", "--strategy": strategy})
        machine = machine_name or "complete", kind or "ideal", level or "auto"
        print_map(name, map_sizes, request, machine, out, svg, json)
        return
    m = load_mechanism(name, base, check)
    if coordinates:
        print_coordinates(m, machine_name, kind, level or "auto", json)
        return
    file_part = quoting.stem(strategy or machine_name or (config.stem if config else "complete"))
    text = f"tracing {quantity_name} of {m.name}, and laying it out"
    with screen.progress(text) as show:
        if config is not None:
            excluded = {"--level": level, "--strategy": strategy, "--control": control != "none"}
            _check_excluded("--config has its own tasks and control", excluded)
            planned = machines.assigned_schedule(m, request, config, machine_name, kind)
        else:
            planned = machines.method_schedule(
                m, request, machine_name, kind, level, strategy, control, projection=projection,
                progress=lambda share: show(f"{text} {bar(share)}"),
            )  # fmt: skip
        timetable = planned.schedule
        stem = quoting.stem(f"{m.name}_{quantity_name}_{file_part}").strip("_")
        written = write_pages(_output_files(timetable, stem, out, svg, page and not (json and out is None)))
    observed = _observed(m, timetable) if execute else None
    if json:
        about = {"mechanism": m.name, "quantity": quantity_name, "method": planned.method, "written": written}
        screen.data(about | _data(planned, observed))
        return
    _print(timetable, f"{m.name}: {quantity_name} by {planned.method} on {timetable.machine}", observed)
    if planned.candidates:
        screen.line()
        print_candidates(planned.candidates, timetable.machine.unit)
    if written:
        screen.line()
    for path in written:
        screen.line(f"wrote {path}" + (": open it in a browser" if path.endswith(".html") else ""), style="dim")


def _check_excluded(reason: str, options_given: Mapping[str, object]) -> None:
    """Raise an InputError if one of these options, by name, was given."""
    if any(options_given.values()):
        raise InputError(f"{reason}; leave out {', '.join(name for name, given in options_given.items() if given)}.")


def _data(planned: MethodSchedule, observed: Observed | None) -> dict[str, object]:
    """Return the data of a schedule, of its rivals and of its execution, for --json."""
    candidates = {"candidates": [asdict(c) for c in planned.candidates]} if planned.candidates else {}
    executed = {"executed": vars(observed)} if observed else {}
    return {**candidates, **json_module.loads(planned.schedule.json()), **executed}


# -- execution


@dataclass(frozen=True)
class Observed:
    """Figures of an execution."""

    makespan: float
    idle: float
    message_time: float
    waiting_time: float
    first_ready_makespan: float  # where a channel carries the first message that is ready
    difference: float  # of the results from those of one core, relative


def _observed(m: Mechanism, s: Schedule) -> Observed:
    """Execute a schedule for a random state of a mechanism."""
    from bellcrank.build.checked_execution import checked_execution, random_inputs

    q, v, tau = m.random(0)
    state = {"q": q, "v": v, "tau": tau, "a": tau, "p": m.parameters.nominal}
    inputs = {name: state.get(name, x) for name, x in random_inputs(s).items()}
    with screen.progress(f"executing {s.tasks.name}"):
        done, difference = checked_execution(s, inputs)
        first_ready = s.execute(links="fifo", **inputs)
    times = done.makespan, done.idle, done.message_time, done.waiting_time, first_ready.makespan
    return Observed(*times, difference)


def _observed_rows(x: Observed, unit: str) -> list[tuple[str, str, str]]:
    return [
        ("executed makespan", number_text(x.makespan), f"{unit}, observed on a simulated machine"),
        ("executed idle", number_text(x.idle), f"{unit}, sum over all processors"),
        (
            "message time",
            number_text(x.message_time),
            f"{unit} on channels; {number_text(x.waiting_time)} waiting for them",
        ),
        (
            "first ready",
            number_text(x.first_ready_makespan),
            f"{unit}, where a channel carries the first ready message",
        ),
        ("difference", _size(x.difference), "results, relative to those of one core"),
    ]


def _size(x: float) -> str:
    return "below 1e-12" if x < 1e-12 else f"{x:.0e}"


# -- the table


def _print(s: Schedule, title: str, observed: Observed | None = None) -> None:
    f, unit = s.facts, s.machine.unit
    p = f["processors"]
    screen.heading(title)
    screen.table(
        [TableColumn(""), *numbers("number"), *texts("")],
        [
            (
                "makespan",
                number_text(s.makespan),
                f"{unit}, {len(s.tasks)} tasks; one processor takes {number_text(s.work)}",
            ),
            ("speed-up", f"{s.speedup:.2f}", _usage_text(s)),
            ("efficiency", f"{100 * s.efficiency:.0f} %", "speed-up for each processor"),
            ("work/p", number_text(s.work / p), f"{unit}; lower bound of any schedule"),
            ("span", number_text(s.span), f"{unit}; longest chain of operations, also a lower bound"),
            ("idle", number_text(s.idle), f"{unit}, sum over all processors"),
            ("messages", str(f["messages"]), f"{f['words']} words, counted once per channel"),
            *(_observed_rows(observed, unit) if observed else []),
        ],
    )
    screen.line()
    listed = s.used <= MAX_LISTED_PROCESSORS and s.tasks.level == "cluster"
    head = [*numbers("processor", "tasks", f"busy {unit}", "share"), TableColumn("load", optional=True)]
    if listed:
        head.append(TableColumn("tasks in order", wrap=True, min_width=24))
    rows = []
    busy, used = s.busy, sorted(set(s.where))
    for i in used[:MAX_TABLE_PROCESSORS]:
        share = busy[i] / s.makespan if s.makespan else 0.0
        starts = sorted((s.start[k], k) for k, processor in enumerate(s.where) if processor == i)
        bar = "#" * round(BAR_CHARACTERS * share)
        row = [str(i), str(len(starts)), number_text(busy[i]), f"{100 * share:.0f} %", bar]
        rows.append([*row, _sequence([s.tasks[k].name for _, k in starts])] if listed else row)
    screen.table(head, rows)
    remarks = [f"{len(used) - MAX_TABLE_PROCESSORS} more are used"] if len(used) > MAX_TABLE_PROCESSORS else []
    remarks += [f"{p - len(used)} have nothing to do"] if p > len(used) else []
    if remarks:
        screen.line(f"({', '.join(remarks)})", style="dim")


def _usage_text(s: Schedule) -> str:
    p = s.machine.processors
    if p == 1:
        return "one processor"
    if s.used == 1:
        return f"1 of {p} processors is used: no faster schedule was found"
    return f"{s.used} of {p} processors are used"


def _sequence(names: list[str], most: int = 40) -> str:
    """Return names with repetitions counted: f[boom] x3, Ic[boom], ..."""
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    text = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in runs[:most])
    return text + (f", and {len(runs) - most} more" if len(runs) > most else "")


# -- files


def _output_files(s: Schedule, stem: str, out: Path | None, svg: bool, page: bool) -> dict[Path, str]:
    """Return the text of each file to write: the page, the picture, or both."""
    target = page_path(out, Path(f"{stem}.html"))
    only_picture = target.suffix.lower() == ".svg"
    files = {}
    if page and not only_picture:
        files[target] = s.html()
    if svg or only_picture:
        files[target.with_suffix(".svg")] = s.svg()
    return files
