"""Drive: a mechanism in real time, with a person at its levers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bellcrank.cli import BaseOpt, CheckOpt, MechanismArg, MethodOpt, app, mechanism, screen
from bellcrank.errors import InputError
from bellcrank.extras import extra

PORT = 8731


@app.command()
def drive(
    name: MechanismArg,
    port: Annotated[int, typer.Option(metavar="N", help="Of the page; 0 takes a free one.")] = PORT,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="To serve; others than this computer need the token.")
    ] = "127.0.0.1",
    rate: Annotated[float | None, typer.Option(metavar="HZ", help="Steps per second, 100 to 10000.")] = None,
    integrator: Annotated[str | None, typer.Option(metavar="NAME", help="How to step.")] = None,
    method: MethodOpt = "auto",
    by: Annotated[str, typer.Option(metavar="position|torque", help="What the sliders of a mechanism are.")] = (
        "position"
    ),
    pilot: Annotated[str, typer.Option(metavar="NAME", help="A program that drives, until a hand takes over.")] = "",
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="Stop after so long; else at Ctrl-C.")] = None,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
) -> None:
    """Drive a mechanism in real time, on a page.

    The excavator has two sticks (keys, a gamepad, or fingers); any other mechanism has a slider for each joint.
    """
    from dataclasses import replace

    from bellcrank.cockpit.known import MACHINES
    from bellcrank.cockpit.machines import generic
    from bellcrank.cockpit.session import Session, Settings

    if not 0 <= port < 65536:
        raise InputError(f"--port {port}: expected 0 to 65535.")
    for package in ("starlette", "uvicorn", "websockets"):
        extra(package, "cockpit", "`bellcrank drive`")
    from bellcrank.cockpit.app import BUILD, STATIC
    from bellcrank.cockpit.serve import bound, serve

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
        with screen.working(f"compiling {name}"):
            session = Session(machine, maker(), wanted)
        session.fly(pilot)
        try:
            serve(session, listening, host, browser, seconds, ready=_say)
        except KeyboardInterrupt:
            screen.line()
        _print(session.drive.report(), session.settings.rate)
    finally:
        listening.close()


def maker() -> Any:
    """What makes a running drive of a system."""
    from bellcrank.sim import Drive

    return lambda system, rate, integrator, method: Drive(system, rate=rate, integrator=integrator, method=method)


def _say(address: str) -> None:
    screen.line(f"drive it at {address}", style="bold")
    screen.line("Ctrl-C ends it", style="dim")


def _print(report: dict[str, Any], rate: float) -> None:
    """The deadline report."""

    def time(x: Any) -> str:
        return f"{1e6 * x:.1f}" if isinstance(x, (int, float)) else "-"

    predicted = report.get("predicted")
    predicted = predicted.get("mean") if isinstance(predicted, dict) else predicted
    rows = []
    for what, key, expected in (("step", "measured", predicted), ("wake-up", "jitter", None)):
        times = report.get(key) or {}
        rows.append([what, time(expected), *(time(times.get(k)) for k in ("min", "mean", "p99", "max"))])
    names = ("us", "predicted", "min", "mean", "p99", "max")
    screen.table([screen.Column(n, right=i > 0) for i, n in enumerate(names)], rows)
    factor = report.get("real_time_factor")
    parts = [f"{rate:g} steps per second", *(f"{report.get(key, 0)} {key}" for key in ("overruns", "skipped"))]
    parts += [f"real-time factor {factor:.4f}"] if isinstance(factor, (int, float)) else []
    screen.line("; ".join(parts))
    for note in report.get("notes") or ():
        screen.line(f"not permitted: {note}", style="dim")
