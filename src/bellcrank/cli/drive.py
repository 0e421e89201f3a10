"""Commands drive and loads: a machine in real time, operated on a page, and its tool forces and lift capacities."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import TableColumn, numbers
from bellcrank.errors import InputError, check_known
from bellcrank.lazy_import import optional_import
from bellcrank.quoting import visible
from bellcrank.sim.realtime.deadlines import full_text, one_line, summary

if TYPE_CHECKING:
    from bellcrank.cockpit.machines import Machine
    from bellcrank.record.formats.mcap import RecordFiles

DEFAULT_PORT = 8731
RECORD_ROWS_PER_SECOND = 1000.0  # 1/s, rows of the record per second
RECORD_SECONDS = 600.0  # s, length of the record in memory: a drive may run for days
LINE_SECONDS = 5.0  # s between lines about the deadlines without a terminal
Watch = Callable[[float, str, Callable[[], dict[str, Any]]], None]
CYLINDER_MACHINES = ("excavator_linkage",)
LIMIT_LETTERS = {"boom cylinder": "b", "stick cylinder": "s", "bucket cylinder": "k", "tipping": "t"}


@app.command()
def drive(
    name: options.MechanismArg,
    port: Annotated[int, option("N", "Port of the page; 0 takes a free one.")] = DEFAULT_PORT,
    host: Annotated[str, option("ADDRESS", "Address to serve; by default this computer only.")] = "127.0.0.1",
    rate: Annotated[float | None, option("HZ", "Steps per second, 100 to 10000.")] = None,
    integrator: Annotated[str | None, option("NAME", "Integrator of the steps.")] = None,
    method: options.MethodOpt = "auto",
    by: Annotated[str, option("position|torque", "Meaning of a mechanism's sliders.")] = ("position"),
    on_machine: Annotated[
        str,
        option("wong", "Wong's simulator, with the time that his mesh would take.", "--machine"),
    ] = "",
    pilot: Annotated[str, option("NAME", "A program that drives until a person takes over.")] = "",
    browser: Annotated[bool, typer.Option(help="Open the page if there is a screen.")] = True,
    seconds: Annotated[float | None, option("S", "Stop after this time; by default at Ctrl-C.")] = None,
    record: Annotated[str | None, option("FILE", "Write the record to FILE.mcap as it grows.")] = None,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
) -> None:
    """Drive a mechanism in real time, on a page.

    The excavator has two sticks (keys, a gamepad, or touch); any other mechanism has a slider for each joint.

    --machine wong drives the excavator of 1991 as its simulator did: RK4 with steps of 0.01 s, control sampled 20 times
    a second, one slider for each desired rate. This computer computes it on one core. The time that the mesh of
    transputers would take is printed beside.
    """
    from bellcrank.cockpit.machines import generic
    from bellcrank.cockpit.session import Session, Settings, compile_warning
    from bellcrank.excavators.machines import MACHINES
    from bellcrank.sim.run_arguments import duration

    if not 0 <= port < 65536:
        raise InputError(f"--port {port}: expected 0 to 65535.")
    if seconds is not None:
        duration("--seconds", seconds)
    for package in ("starlette", "uvicorn", "websockets"):
        optional_import(package, "cockpit", "`bellcrank drive`")
    from bellcrank.cockpit.app import BUILD, STATIC
    from bellcrank.cockpit.server import listening_socket, serve
    from bellcrank.record.formats.mcap import RecordFiles

    files = None if record is None else RecordFiles(record)
    if on_machine:
        machine = _wong_machine(name, on_machine)
    else:
        machine = MACHINES[name]() if name in MACHINES else generic(load_mechanism(name, base, check), by)
    listening = listening_socket(host, port)
    try:
        if not (STATIC / "index.html").exists():
            screen.note(f"The page is not built; the websocket works without it. To build it: {BUILD}")
        used_rate = machine.rate if rate is None else rate
        settings = Settings(used_rate, machine.integrator if integrator is None else integrator, method)
        if warning := compile_warning(machine.system.size, settings.integrator):
            screen.note(f"{warning[0].upper()}{warning[1:]}.")
        with screen.progress(f"compiling {name}"):
            session = Session(machine, drive_factory(files), settings)
        session.start_pilot(pilot)
        with stop_event_of_signals() as ended, contextlib.suppress(KeyboardInterrupt), live_line() as watch:
            shown = browser and screen.stdout_console().is_terminal
            serve(
                session, listening, host, shown, seconds, _announcer(seconds),
                each=lambda s: _update_live_line(watch, s), ended=ended.is_set,
            )  # fmt: skip
        with contextlib.suppress(OSError):  # after a hang-up there is no terminal
            screen.line()
            screen.lines(full_text(session.drive.report()))
            if on_machine:
                screen.lines(_mesh_times_text())
            for path in files.written if files is not None else ():
                screen.lines(f"record: {path}")
    finally:
        listening.close()


def _wong_machine(name: str, on_machine: str) -> Machine:
    """Return the excavator with the step and the control of Wong's simulator."""
    from bellcrank.excavators import sampled_machine

    if (name, on_machine) != ("excavator", "wong"):
        raise InputError(
            f"--machine {on_machine} for {name}: expected --machine wong with the excavator, the only simulator whose "
            "parallel program is known."
        )
    return sampled_machine.machine()


def _mesh_times_text() -> str:
    """Return the time that Wong's mesh needs for a second, by the schedules of its programs."""
    from bellcrank.papers.wong.excavator_simulator import modelled_times

    texts = []
    for kind in ("t800", "explicit"):
        mesh, with_display = modelled_times(kind)
        texts.append(f"{kind} {mesh:.2f} s, with the line to the display {with_display:.2f} s")
    return f"Wong's mesh, modelled time of a simulated second: {'; '.join(texts)}."


@contextlib.contextmanager
def stop_event_of_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGHUP set, so that a drive ends with its report and record, as at Ctrl-C."""
    ended = threading.Event()
    kinds = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        kinds = []  # only the main thread may set handlers
    before = {kind: signal.signal(kind, lambda *_: ended.set()) for kind in kinds}
    try:
        yield ended
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def drive_factory(files: RecordFiles | None = None) -> Any:
    """Return a function that makes a drive of a system, with `files` for its record."""
    from bellcrank.sim.realtime.realtime_drive import Drive

    def make_drive(system: Any, rate: float, integrator: str, method: str) -> Any:
        every = max(1, round(rate / RECORD_ROWS_PER_SECOND))
        return Drive(
            system, rate=rate, integrator=integrator, method=method, every=every, keep=RECORD_SECONDS, record=files
        )

    return make_drive


def _announcer(seconds: float | None) -> Callable[[str], None]:
    def say(address: str) -> None:
        screen.line(f"drive it at {address}", style="bold")
        screen.line("Ctrl-C ends it" + ("" if seconds is None else f", or {seconds:g} s"), style="dim")

    return say


def _update_live_line(watch: Watch, session: Any) -> None:
    shot = session.drive.snapshot()
    driver = f"{session.pilot} drives" if session.pilot else "by hand"
    watch(shot.t, driver if shot.status == "running" else f"{driver}, {shot.status}", session.drive.report)


@contextlib.contextmanager
def live_line(clock: Callable[[], float] = time.monotonic) -> Iterator[Watch]:
    """Yield a function to call a few times per second with time, status and report of a run; `clock` is in seconds."""
    due, console = clock() + LINE_SECONDS, screen.stdout_console()
    live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def watch(t: float, word: str, report: Callable[[], dict[str, Any]]) -> None:
        """Update the table, or print a line when it is due."""
        nonlocal due
        if live is not None:
            live.update(Text(visible(f"\n{t:.1f} s  {word}\n{summary(report())}")), refresh=True)
        elif clock() >= due:
            due += LINE_SECONDS
            screen.lines(f"{t:.0f} s  {word}: {one_line(report())}")

    with live or contextlib.nullcontext():
        yield watch


@app.command()
def loads(name: options.MechanismArg, json: options.JsonOpt = False) -> None:
    """Print tool forces and lift capacities of an excavator.

    Both are computed over the working range, with their limits.

    The tool forces follow ISO 6015 (forces at the teeth, with the bucket or stick cylinder at working pressure), the
    lift capacities ISO 10567 (loads at the bucket pin: 87 % of the cylinders' capacity, or 75 % of the tipping load).
    """
    from bellcrank.excavators.tool_forces import ToolForces

    check_known("machine with cylinders", name, CYLINDER_MACHINES, "loads")
    tool_forces = ToolForces()
    forces, lifts = [tool_forces.best(what) for what in ("bucket", "stick")], tool_forces.lifts()
    if json:
        rows = [vars(f) | {"angles": list(f.angles)} for f in forces]
        screen.data({"machine": name, "forces": rows, "lifts": [vars(x) for x in lifts]})
        return
    screen.line(f"{name}: forces at the teeth, kN, by limit")
    words = {w.replace(f.what, "own") if w == f"{f.what} cylinder" else w: None for f in forces for w in f.limits}
    table = [
        [word, *(_force_text(f.limits.get(word.replace("own", f.what), math.inf), f.newtons) for f in forces)]
        for word in words
    ]
    screen.table([TableColumn("limit"), *numbers(*(f"by the {f.what}" for f in forces))], table)
    for side in ("front", "side"):
        _print_lifts([x for x in lifts if x.side == side], side)
    screen.line(", ".join(f"{letter}: {word}" for word, letter in LIMIT_LETTERS.items()), style="dim")


def _print_lifts(lifts: Any, side: str) -> None:
    """Print the lift capacities over one side, by radius and height."""
    radii = sorted({x.radius for x in lifts})
    screen.line()
    screen.line(f"lift capacity over the {side}, kg, at the bucket's pin; by radius and height in m")
    cells = {(x.radius, x.height): f"{x.kilograms:.0f} {LIMIT_LETTERS.get(x.binds, '?')}" for x in lifts}
    heights = sorted({x.height for x in lifts}, reverse=True)
    table = [[f"{z:g}", *(cells.get((r, z), "") for r in radii)] for z in heights]
    screen.table(numbers("height", *(f"{r:g} m" for r in radii)), table)


def _force_text(x: float, least: float) -> str:
    """Format a force in kN, with a star if it is the binding limit."""
    return f"{x / 1e3:.1f}{'*' if x == least else ' '}" if math.isfinite(x) else "- "
