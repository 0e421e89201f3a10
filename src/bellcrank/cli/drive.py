"""Command drive: a mechanism in real time, operated by a person on a page."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellcrank.cli import BaseOpt, CheckOpt, MechanismArg, MethodOpt, app, mechanism, screen
from bellcrank.cli.live import LiveLine
from bellcrank.errors import InputError
from bellcrank.extras import extra

if TYPE_CHECKING:
    from bellcrank.record.growing import RecordFiles

PORT = 8731
ROWS = 1000.0  # 1/s, rows of the record per second
KEEP = 600.0  # s, length of the record in memory: a drive may run for days


@app.command()
def drive(
    name: MechanismArg,
    port: Annotated[int, typer.Option(metavar="N", help="Port of the page; 0 takes a free one.")] = PORT,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to serve; by default this computer only.")
    ] = "127.0.0.1",
    rate: Annotated[float | None, typer.Option(metavar="HZ", help="Steps per second, 100 to 10000.")] = None,
    integrator: Annotated[str | None, typer.Option(metavar="NAME", help="Integrator of the steps.")] = None,
    method: MethodOpt = "auto",
    by: Annotated[str, typer.Option(metavar="position|torque", help="Meaning of a mechanism's sliders.")] = (
        "position"
    ),
    pilot: Annotated[str, typer.Option(metavar="NAME", help="A program that drives until a person takes over.")] = "",
    browser: Annotated[bool, typer.Option(help="Open the page if there is a screen.")] = True,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Stop after this time; by default at Ctrl-C.")
    ] = None,
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the record to FILE.mcap as it grows.")
    ] = None,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
) -> None:
    """Drive a mechanism in real time, on a page.

    The excavator has two sticks (keys, a gamepad, or touch); any other mechanism has a slider for each joint.
    \f

    The options `name`, `port`, `host`, `rate`, `integrator`, `method`, `by`, `pilot`, `browser`, `seconds`, `record`,
    `base` and `check` are described by their help texts.
    """  # noqa: D301
    from dataclasses import replace

    from bellcrank.cockpit.machines import generic
    from bellcrank.cockpit.session import Session, Settings, patience
    from bellcrank.excavators.machines import MACHINES
    from bellcrank.sim.amounts import duration

    if not 0 <= port < 65536:
        raise InputError(f"--port {port}: expected 0 to 65535.")
    if seconds is not None:
        duration("--seconds", seconds)
    for package in ("starlette", "uvicorn", "websockets"):
        extra(package, "cockpit", "`bellcrank drive`")
    from bellcrank.cockpit.app import BUILD, STATIC
    from bellcrank.cockpit.server import bound, serve
    from bellcrank.record.growing import RecordFiles
    from bellcrank.sim.deadline_text import whole

    files = None if record is None else RecordFiles(record)
    machine = MACHINES[name]() if name in MACHINES else generic(mechanism(name, base, check), by)
    listening = bound(host, port)
    try:
        if not (STATIC / "index.html").exists():
            screen.note(f"The page is not built; the websocket works without it. To build it: {BUILD}")
        wanted = Settings(machine.rate, machine.integrator, method)
        if rate is not None:
            wanted = replace(wanted, rate=rate)
        if integrator is not None:
            wanted = replace(wanted, integrator=integrator)
        if slow := patience(machine.system.size, wanted.integrator):
            screen.note(f"{slow[0].upper()}{slow[1:]}.")
        with screen.working(f"compiling {name}"):
            session = Session(machine, maker(files), wanted)
        session.fly(pilot)
        with ended_by_signals() as ended, contextlib.suppress(KeyboardInterrupt), LiveLine() as watch:
            shown = browser and screen.out().is_terminal
            serve(
                session,
                listening,
                host,
                shown,
                seconds,
                ready=_say(seconds),
                each=lambda s: _look(watch, s),
                ended=ended.is_set,
            )
        with contextlib.suppress(OSError):  # after a hang-up there is no terminal
            screen.line()
            screen.lines(whole(session.drive.report()))
            for path in files.written if files is not None else ():
                screen.lines(f"record: {path}")
    finally:
        listening.close()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
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


def maker(files: RecordFiles | None = None) -> Any:
    """Return a function that makes a drive of a system, with `files` for its record."""
    from bellcrank.sim.realtime import Drive

    def made(system: Any, rate: float, integrator: str, method: str) -> Any:
        every = max(1, round(rate / ROWS))
        return Drive(system, rate=rate, integrator=integrator, method=method, every=every, keep=KEEP, record=files)

    return made


def _say(seconds: float | None) -> Callable[[str], None]:
    def say(address: str) -> None:
        screen.line(f"drive it at {address}", style="bold")
        screen.line("Ctrl-C ends it" + ("" if seconds is None else f", or {seconds:g} s"), style="dim")

    return say


def _look(watch: LiveLine, session: Any) -> None:
    shot = session.drive.snapshot()
    by = f"{session.pilot} drives" if session.pilot else "by hand"
    watch(shot.t, by if shot.status == "running" else f"{by}, {shot.status}", session.drive.report)
