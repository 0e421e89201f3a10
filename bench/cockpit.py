"""`python -m bench.cockpit`: what the cockpit costs and how late it is, with pages that are programs on this computer.

    12 bodies, 1 page     processor time of the server, and from an input sent to the first state that has it
    50 pages, 1 that does not read, 1 that floods

The drive here does nothing but hand back its inputs, so that the figures are the cockpit's own. Promised: 60 states a
second for less than 5 % of a core; input to state below 20 ms at the median. The 99th percentile is printed, too; the
maximum is the other programs' of this computer.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

import bellcrank as bc
from bellcrank.cockpit.messages import HEADER
from bellcrank.sim.driving import Snapshot

BODIES, SECONDS = 12, 10.0
CORE, LATE = 0.05, 0.020  # promised


class Echo:
    """A drive without dynamics."""

    def __init__(self, system: bc.System, rate: float, integrator: str, method: str) -> None:
        self.system, self.rate = system, rate
        self.y, self.u = np.zeros(system.size), np.zeros(len(system.inputs))
        self.began = time.monotonic()

    def nothing(self, *_: Any, **__: Any) -> None:
        pass

    start = pause = resume = stop = slow = reset = nothing

    def input(self, values: Sequence[float]) -> None:
        self.u = np.array(values)

    def snapshot(self) -> Snapshot:
        t = time.monotonic() - self.began
        return Snapshot(int(t * self.rate), t, self.y, self.u)

    def report(self) -> dict[str, Any]:
        times = dict.fromkeys(("min", "mean", "p99", "max"), 1e-6)
        edges = list(np.geomspace(1e-7, 1e-2, 51))
        return {"measured": times, "jitter": times, "histogram": {"edges": edges, "counts": [1] * 50}, "overruns": 0}


def serve() -> None:
    """In a process of its own, so that its processor time is the server's alone."""
    from bellcrank.cockpit.machines import generic
    from bellcrank.cockpit.serve import bound
    from bellcrank.cockpit.serve import serve as run
    from bellcrank.cockpit.session import Session

    session = Session(generic(bc.zoo.load(f"tree:{BODIES}")), Echo)
    run(session, bound("127.0.0.1", 0), browser=False, ready=lambda address: print(address, flush=True))


def spent(process: int) -> float:
    with open(f"/proc/{process}/stat") as f:
        user, system = f.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def page(port: str, seconds: float, drives: bool) -> tuple[float, list[float]]:
    """States seen per second, and the delays of the inputs sent thirty times a second."""
    seen, delays, sent = 0, list[float](), dict[int, float]()
    async with connect(f"ws://127.0.0.1:{port}/live", compression=None) as s:

        async def hand() -> None:
            for n in range(1, 2**31):
                sent[n] = time.perf_counter()
                await s.send(json.dumps({"type": "input", "values": [0.1] * BODIES, "n": n}))
                # Not in step with the pictures, or all inputs would wait equally long for one.
                await asyncio.sleep(random.uniform(0.02, 0.05))

        job = asyncio.create_task(hand()) if drives else None
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            got = await s.recv()
            if isinstance(got, str):
                continue
            _, _, _, number, *_, serial = HEADER.unpack_from(got)
            seen += 1
            if seen % 2 == 0:  # as the page does
                await s.send(json.dumps({"type": "seen", "serial": serial}))
            if number in sent:
                delays.append(time.perf_counter() - sent[number])
                for n in [n for n in sent if n <= number]:
                    del sent[n]
        if job is not None:
            job.cancel()
    return seen / seconds, delays


async def deaf(port: str, seconds: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=1024)
    head = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    writer.write(f"{head}Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(seconds)
    writer.close()


async def flood(port: str, seconds: float) -> None:
    end = time.perf_counter() + seconds
    with suppress(ConnectionClosed):
        while time.perf_counter() < end:
            with suppress(ConnectionClosed):
                async with connect(f"ws://127.0.0.1:{port}/live", compression=None) as s:
                    while time.perf_counter() < end:
                        await s.send('{"type": "input", "values": [1e300], "n": 0}')
                        await asyncio.sleep(0)


async def measured(port: str, process: int, pages: int, rough: bool) -> tuple[float, float, list[float]]:
    """Share of a core, states per second and page, delays."""
    jobs = [asyncio.create_task(page(port, SECONDS + 0.5, True))]
    await asyncio.sleep(0.5)  # the first to come drives
    jobs += [asyncio.create_task(page(port, SECONDS, False)) for _ in range(pages - 1)]
    more = [asyncio.create_task(f(port, SECONDS)) for f in (deaf, flood)] if rough else []
    before, start = spent(process), time.perf_counter()
    found = await asyncio.gather(*jobs)
    share = (spent(process) - before) / (time.perf_counter() - start)
    for task in more:
        task.cancel()
    return share, statistics.mean(rate for rate, _ in found), found[0][1]


def main() -> int:
    server = subprocess.Popen([sys.executable, "-m", "bench.cockpit", "serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip().rstrip("/").rpartition(":")[2]
    table = Table("pages", "of a core", "states/s each", "input to state, median", "99 %")
    good = True
    try:
        for name, pages, rough in (("1", 1, False), ("1, one deaf, one floods", 1, True), ("50", 50, False)):
            share, rate, delays = asyncio.run(measured(port, server.pid, pages, rough))
            middle, late = statistics.median(delays), statistics.quantiles(delays, n=100)[98]
            table.add_row(name, f"{share:.1%}", f"{rate:.1f}", f"{1e3 * middle:.1f} ms", f"{1e3 * late:.1f} ms")
            if name == "1":
                good = share < CORE and middle < LATE
    finally:
        server.terminate()
        server.wait()
    console = Console(width=100)
    console.print(f"{BODIES} bodies; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    console.print(table)
    console.print("as promised" if good else f"promised: {CORE:.0%} of a core, {1e3 * LATE:.0f} ms")
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        sys.exit(main())
