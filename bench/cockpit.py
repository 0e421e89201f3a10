"""`python -m bench.cockpit [--seconds S]`: processor time and latency of the cockpit, and which clients delay the loop.

A server in a process of its own drives excavator_linkage (12 bodies, hydraulics, 1 kHz, rodas4) natively. One page (a
program here) drives it. The figures are taken without it, with it, and with hostile clients in addition
(bench/overload_clients.py, in a third process). Required: 60 states per second for less than 5 % of a core; input to
state below 20 ms at the median. Late periods are counted for the same time before each case and during it, because this
computer has other work, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from websockets.asyncio.client import ClientConnection, connect

from bellcrank.cockpit.messages import HEADER, STATE
from bench.overload_clients import CASES, KEY, LEVERS, TOKEN, url

CORE, LATE = 0.05, 0.020  # promised


def serve() -> None:
    """Run the server in a process of its own, so that its processor time is separate."""
    from bellcrank.cli.drive import drive_factory
    from bellcrank.cockpit.guard import Guard
    from bellcrank.cockpit.server import listening_socket
    from bellcrank.cockpit.server import serve as run
    from bellcrank.cockpit.session import Session
    from bellcrank.excavators.machines import MACHINES

    session = Session(MACHINES["excavator_linkage"](), drive_factory())
    listening = listening_socket("127.0.0.1", 0)
    print(listening.getsockname()[1], flush=True)
    run(session, listening, browser=False, ready=lambda address: None, guard=Guard(token=TOKEN))


def spent(process: int) -> float:
    with open(f"/proc/{process}/stat") as f:
        user, system = f.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@dataclass
class Page:
    """A client that drives, receives states, and keeps the newest report."""

    socket: ClientConnection
    states: int = 0
    delays: list[float] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    sent: dict[int, float] = field(default_factory=dict)

    async def hand(self) -> None:
        for n in range(1, 2**31):
            self.sent[n] = time.perf_counter()
            values = [0.0] * (LEVERS - 1) + [1.0]  # the autopilot digs
            await self.socket.send(json.dumps({"type": "input", "values": values, "n": n}))
            # Inputs are not synchronised with pictures; otherwise all would wait equally long for one.
            await asyncio.sleep(random.uniform(0.02, 0.05))

    async def eyes(self) -> None:
        async for got in self.socket:
            if isinstance(got, str):
                said = json.loads(got)
                self.report = said if said["type"] == "report" else self.report
                continue
            if got[0] != STATE:
                continue
            _, _, _, number, *_, serial = HEADER.unpack_from(got)
            self.states += 1
            if self.states % 2 == 0:  # as the page does
                await self.socket.send(json.dumps({"type": "seen", "serial": serial}))
            if number in self.sent:
                self.delays.append(time.perf_counter() - self.sent[number])
                self.sent = {n: t for n, t in self.sent.items() if n > number}


@dataclass
class Figures:
    share: float  # of a core
    states: float  # a second
    delays: list[float]
    late: int
    skipped: int
    jitter: float  # s, p99 of the wake-ups

    @property
    def middle(self) -> float:
        return statistics.median(self.delays)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.delays, n=100)[98]


async def figures(page: Page, process: int, seconds: float) -> Figures:
    before, start, first = spent(process), time.perf_counter(), page.report
    page.states, page.delays = 0, []
    await asyncio.sleep(seconds)
    wall, last = time.perf_counter() - start, page.report
    late, skipped = (last[key] - first[key] for key in ("overruns", "skipped"))
    share = (spent(process) - before) / wall
    return Figures(share, page.states / wall, page.delays, late, skipped, _p99(first, last))


def _p99(first: dict[str, Any], last: dict[str, Any]) -> float:
    """Return p99 of the wake-ups between two reports, whose histograms are cumulative."""
    then, now = (r["jitter"]["histogram"] for r in (first, last))
    old = dict(zip(then["edges"], then["counts"], strict=False))
    counts = np.array([n - old.get(edge, 0) for edge, n in zip(now["edges"], now["counts"], strict=False)])
    k = int(np.searchsorted(np.cumsum(counts), 0.99 * counts.sum()))
    return float(now["edges"][min(k + 1, len(now["edges"]) - 1)])


async def measured(port: str, process: int, seconds: float) -> bool:
    idle = spent(process)
    await asyncio.sleep(seconds)
    idle = (spent(process) - idle) / seconds
    cost = Table("pages", "of a core", "of which pages", "states/s", "input to state, median", "99 %")
    overload = Table(
        "company", "late before", "with", "skipped before", "with", "wake-up p99 before", "with", "of a core"
    )
    cost.add_row("none", f"{idle:.1%}", "", "", "", "")
    async with connect(url(port), additional_headers=KEY, compression=None) as socket:
        page = Page(socket)
        jobs = [asyncio.create_task(page.eyes()), asyncio.create_task(page.hand())]
        await asyncio.sleep(2.0)
        one = await figures(page, process, seconds)
        cost.add_row("1", *_row(one, idle))
        for case in CASES:
            before = await figures(page, process, seconds)
            company = [sys.executable, "-m", "bench.overload_clients", case, port, str(seconds + 3.0)]
            others = subprocess.Popen(company)
            await asyncio.sleep(2.0)  # until they are connected
            with_them = await figures(page, process, seconds)
            others.wait()
            cost.add_row(f"1 and {case}", *_row(with_them, idle))
            pairs = [(f"{f.late}", f"{f.skipped}", f"{1e6 * f.jitter:.0f} us") for f in (before, with_them)]
            cells = [x for pair in zip(*pairs, strict=True) for x in pair]
            overload.add_row(case, *cells, f"{with_them.share:.0%}")
        for job in jobs:
            job.cancel()
    good = one.share - idle < CORE and one.middle < LATE
    console = Console(width=130)
    console.print(f"12 bodies, {seconds:g} s each; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    console.print(cost)
    console.print(f"Late periods of a loop of 1 kHz in {seconds:g} s, each case after as long without it:")
    console.print(overload)
    for note in page.report.get("notes", ()):
        console.print(f"note: {note}")
    console.print("as promised" if good else f"promised: {CORE:.0%} of a core, {1e3 * LATE:.0f} ms")
    return good


def _row(f: Figures, idle: float) -> list[str]:
    times = [f"{1e3 * x:.1f} ms" for x in (f.middle, f.p99)]
    return [f"{f.share:.1%}", f"{f.share - idle:.1%}", f"{f.states:.1f}", *times]


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench.cockpit")
    asked.add_argument("--seconds", type=float, default=10.0, help="of each figure")
    seconds = asked.parse_args().seconds
    server = subprocess.Popen([sys.executable, "-m", "bench.cockpit", "serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        return 0 if asyncio.run(measured(port, server.pid, seconds)) else 1
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        sys.exit(main())
