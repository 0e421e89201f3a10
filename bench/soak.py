"""`python -m bench.soak [--seconds 600]`: excavator_linkage digs by itself in real time, one page watches; the report.

The machine has hydraulics, soil and closed loops, at 1 kHz; the page is a program in a process of its own, which reads
all it is sent. A line every minute says how it goes. Outside CI: the report is this computer's as much as ours.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bellcrank.cli.drive import maker
from bellcrank.cockpit.guard import Guard
from bellcrank.cockpit.messages import HEADER, STATE
from bellcrank.cockpit.server import bound, serve
from bellcrank.cockpit.session import Session
from bellcrank.excavators.machines import MACHINES
from bellcrank.sim.deadline_text import line, whole
from bench.rough import KEY, TOKEN, url

MACHINE = "excavator_linkage"


async def watch(port: str) -> None:
    """Until the server goes; then how many states it saw."""
    states, began = 0, time.monotonic()
    with suppress(ConnectionClosed):
        async with connect(url(port), additional_headers=KEY, compression=None) as s:
            async for got in s:
                if isinstance(got, bytes) and got[0] == STATE:
                    states += 1
                    if states % 2 == 0:
                        await s.send(json.dumps({"type": "seen", "serial": HEADER.unpack_from(got)[-1]}))
    print(f"the page saw {states} states, {states / (time.monotonic() - began):.1f} a second", flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench.soak")
    asked.add_argument("--seconds", type=float, default=600.0)
    asked.add_argument("--rate", type=float, default=1000.0, help="steps per second")
    asked.add_argument("--machine", default=MACHINE, choices=list(MACHINES))
    given = asked.parse_args()
    machine = MACHINES[given.machine]()
    session = Session(machine, maker())
    if given.rate != session.settings.rate:
        session.switch(rate=given.rate)
    session.fly("dig")
    listening = bound("127.0.0.1", 0)
    page = subprocess.Popen([sys.executable, "-m", "bench.soak", "watch", str(listening.getsockname()[1])])
    told = time.monotonic() + 60.0

    def each(session: Session) -> None:
        nonlocal told
        if time.monotonic() >= told:
            told += 60.0
            print(f"{session.drive.snapshot().t:.0f} s: {line(session.drive.report())}", flush=True)

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
    print(whole(report))
    return 0 if session.drive.snapshot().status == "stopped" else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        asyncio.run(watch(sys.argv[2]))
    else:
        sys.exit(main())
