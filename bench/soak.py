"""`python -m bench.soak [--seconds 600] [--why]`: excavator_linkage digs by its autopilot in real time, watched by one
page.

The machine has hydraulics, soil and closed loops, at 1 kHz; the page is a program in a process of its own, which reads
all messages. First the same loop runs for a tenth of the time without a page: its late periods are caused by the
computer, and the difference by the cockpit. --why prints what else the process did when periods were late. A line every
minute reports progress. It does not run in CI, because the report depends on the computer as much as on the package.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bellcrank.cli.drive import drive_factory
from bellcrank.cockpit.guard import Guard
from bellcrank.cockpit.messages import HEADER, STATE
from bellcrank.cockpit.server import listening_socket, serve
from bellcrank.cockpit.session import Session
from bellcrank.excavators.machines import MACHINES
from bellcrank.sim.realtime.deadlines import full_text, one_line
from bellcrank.text_table import table
from bench.overload_clients import KEY, TOKEN, url
from bench.soak_marks import Marks

MACHINE = "excavator_linkage"


async def watch(port: str) -> None:
    """Read until the server ends; return how many states arrived."""
    states, began = 0, time.monotonic()
    with suppress(ConnectionClosed):
        async with connect(url(port), additional_headers=KEY, compression=None) as s:
            async for got in s:
                if isinstance(got, bytes) and got[0] == STATE:
                    states += 1
                    if states % 2 == 0:
                        await s.send(json.dumps({"type": "seen", "serial": HEADER.unpack_from(got)[-1]}))
    print(f"the page saw {states} states, {states / (time.monotonic() - began):.1f} a second", flush=True)


def alone(session: Session, seconds: float) -> dict[str, Any]:
    """Measure how punctual the loop is without a page on this computer."""
    session.start()
    time.sleep(seconds)
    session.stop()
    found = session.drive.report()
    session.reset()
    return found


def verdict(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures required by the issue, in one table."""
    rows = []
    for name, r in reports.items():
        times = [r[key][p] for key in ("measured", "own", "jitter") for p in ("p50", "p99")]
        counts = (r["measured"]["count"], r["overruns"], r["skipped"])
        rows.append((name, *(f"{1e6 * x:.0f}" for x in times), *map(str, counts)))
    head = ("us", "took p50", "p99", "own clock p50", "p99", "woke late p50", "p99", "periods", "late", "skipped")
    return table(head, rows, right=range(1, 10))


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench.soak")
    asked.add_argument("--seconds", type=float, default=600.0)
    asked.add_argument("--rate", type=float, default=1000.0, help="steps per second")
    asked.add_argument("--machine", default=MACHINE, choices=list(MACHINES))
    asked.add_argument("--why", action="store_true", help="what else was done when periods were late")
    given = asked.parse_args()
    marks = Marks() if given.why else None
    machine = MACHINES[given.machine]()
    session = Session(machine, drive_factory())
    if given.rate != session.settings.rate:
        session.switch(rate=given.rate)
    before = alone(session, max(given.seconds / 10, 3.0))
    session.start_pilot("dig")
    listening = listening_socket("127.0.0.1", 0)
    page = subprocess.Popen([sys.executable, "-m", "bench.soak", "watch", str(listening.getsockname()[1])])
    told = time.monotonic() + 60.0

    def each(session: Session) -> None:
        nonlocal told
        if marks:
            marks.take(session.drive)
        if time.monotonic() >= told:
            told += 60.0
            print(f"{session.drive.snapshot().t:.0f} s: {one_line(session.drive.report())}", flush=True)

    began = os.times()
    serve(
        session,
        listening,
        browser=False,
        seconds=given.seconds,
        ready=lambda address: None,
        each=each,
        guard=Guard(token=TOKEN),
    )
    ended = os.times()
    page.wait()
    report = session.drive.report()
    share = (ended.user + ended.system - began.user - began.system) / (ended.elapsed - began.elapsed)
    how = f"{given.rate:g} steps per second, {session.settings.integrator}"
    print(f"\n{given.machine}, {how}; {share:.1%} of a core in all")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
    print(verdict({"nobody watches": before, "in the cockpit": report}))
    print(f"\n{full_text(report)}")
    if marks:
        print(f"\n{marks.blamed()}")
    return 0 if session.drive.snapshot().status == "stopped" else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        asyncio.run(watch(sys.argv[2]))
    else:
        sys.exit(main())
