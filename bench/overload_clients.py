"""`python -m bench.overload_clients CASE PORT SECONDS`: clients that overload a cockpit, in a process of their own."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

STATE = 1  # kind of a binary message
TOKEN = "bench"
KEY = {"Authorization": f"Bearer {TOKEN}"}
LEVERS = 6  # of excavator_linkage
SMALL = '{"type": "input", "values": [0, 0, 0, 0, 0, 0], "n": 0}'
MALFORMED: tuple[str | bytes, ...] = (
    "", "{", "null", "[]", '{"type": 7}', '{"type": "input"}', '{"type": "fly"}', "\x00\x01", b"\x01\x02", "x" * 4000,
    '{"type": "input", "values": "all", "n": -1}', '{"type": "input", "values": [0], "extra": 1}', "[" * 2000,
)  # fmt: skip
HOSTILE = (
    '{"type": "input", "values": [1e308, -1e308, 1e12, 0, 0, 0], "n": 4294967295}',
    '{"type": "input", "values": [NaN, Infinity, -Infinity, 0, 0, 0]}',
    '{"type": "slow", "factor": 0}',
    '{"type": "slow", "factor": 1e9}',
    '{"type": "switch", "rate": 1e9, "integrator": "../../etc/passwd", "method": "__import__"}',
    '{"type": "switch", "rate": 7}',
    '{"type": "pilot", "name": "; rm -rf /"}',
    '{"type": "seen", "serial": 4294967295}',
    '{"type": "answer", "grant": true}',
    '{"type": "reset"}',
    '{"type": "pause"}',
    json.dumps({"type": "input", "values": [0.0] * 5000}),
    '{"a":' * 600 + "1" + "}" * 600,
)


def url(port: str) -> str:
    return f"ws://127.0.0.1:{port}/live"


async def again(port: str, end: float, talk: Callable[[ClientConnection], Awaitable[Any]]) -> None:
    """Reconnect whenever the connection ends, and read all messages."""
    while time.monotonic() < end:
        with suppress(ConnectionClosed, InvalidHandshake, OSError):
            async with connect(url(port), additional_headers=KEY, compression=None, max_size=None) as s:

                async def read(s: ClientConnection = s) -> None:
                    with suppress(ConnectionClosed):
                        async for _ in s:
                            pass

                reading = asyncio.create_task(read())
                try:
                    while time.monotonic() < end:
                        await talk(s)
                finally:
                    reading.cancel()


async def malformed(port: str, end: float) -> None:
    async def talk(s: ClientConnection) -> None:
        await s.send(random.choice(MALFORMED))
        await asyncio.sleep(0.01)

    await again(port, end, talk)


async def hostile(port: str, end: float) -> None:
    async def talk(s: ClientConnection) -> None:
        await s.send(random.choice(HOSTILE))
        await asyncio.sleep(0.01)

    await again(port, end, talk)


async def oversized(port: str, end: float) -> None:
    async def talk(s: ClientConnection) -> None:
        await s.send("x" * 10_000_000)
        await asyncio.sleep(0.05)

    await again(port, end, talk)


async def flood(port: str, end: float) -> None:
    async def talk(s: ClientConnection) -> None:
        for _ in range(100):
            await s.send(SMALL)
        await asyncio.sleep(0)

    await again(port, end, talk)


async def deaf(port: str, end: float) -> None:
    """Open five connections and never read from them."""
    head = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    head += f"Authorization: {KEY['Authorization']}\r\n\r\n"
    writers = []
    for _ in range(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=1024)
        writer.write(head.encode())
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writers.append(writer)
    await asyncio.sleep(end - time.monotonic())
    for writer in writers:
        writer.close()


async def fifty(port: str, end: float) -> None:
    """Open fifty connections that read and acknowledge everything, as a page does."""

    async def one() -> None:
        with suppress(ConnectionClosed):
            async with connect(url(port), additional_headers=KEY, compression=None) as s:
                seen = 0
                async for got in s:
                    if time.monotonic() > end:
                        return
                    state = isinstance(got, bytes) and got[0] == STATE
                    seen += state
                    if state and seen % 2 == 0:
                        await s.send(json.dumps({"type": "seen", "serial": int.from_bytes(got[28:32], "little")}))

    await asyncio.gather(*(one() for _ in range(50)))


async def fickle(port: str, end: float) -> None:
    """Connect and disconnect repeatedly."""
    while time.monotonic() < end:
        with suppress(ConnectionClosed, InvalidHandshake, OSError):
            async with connect(url(port), additional_headers=KEY, compression=None):
                pass


CASES: dict[str, Callable[[str, float], Awaitable[None]]] = {
    "malformed messages": malformed, "hostile values": hostile, "10 MB messages": oversized, "a flood": flood,
    "five read nothing": deaf, "fifty pages": fifty, "one comes and goes": fickle,
}  # fmt: skip

if __name__ == "__main__":
    case, port, seconds = sys.argv[1:]
    asyncio.run(CASES[case](port, time.monotonic() + float(seconds)))  # type: ignore[arg-type]
