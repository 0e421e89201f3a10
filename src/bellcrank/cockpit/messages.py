"""The whole protocol between page and server. web/src/messages.ts says the same in TypeScript; a test compares them.

From the page: JSON objects with a "type", the classes below. From the server: JSON objects (welcome, roles, settings,
report, note, levers) and two kinds of binary messages. The state:

    u8 kind = 1, u8 flags, u16 epoch, u32 input, u64 n, f64 t, f32 slow, u32 serial
    f32: poses (12 numbers of each body, the rows of a 3x4 matrix), y, u, outputs

Little-endian. `epoch` counts changes of the running drive, `input` is the number of the driver's newest message, so a
page can measure how old its own hand is in what it sees. There is nothing to queue: a newer state replaces an older one
that has not been sent. The page answers every second one with "seen" and its serial number, and while more than a few
are on their way none is sent: so a slow page gets fewer pictures, not older ones.

And what has changed of the ground that is drawn (ground.py), all of it for a page that has just come:

    u8 kind = 2, u8 whole (cells that are not named are level), u16 0, u32 cells, f64 t, f32 load, f32 dug
    f32: heights, u16: which cells
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.ground.field import Patch

Array = np.ndarray[Any, Any]
PROTOCOL = 3
LARGEST_MESSAGE = 4096  # bytes of a message from a page
VALUES = 256  # numbers in one
TEXT = 64  # characters of a name in one
STATE, GROUND = 1, 2  # kinds of binary messages
HEADER = struct.Struct("<BBHIQdfI")
GROUND_HEADER = struct.Struct("<BBHIdff")
RUNNING, NEUTRAL, DRIVEN = 1, 2, 4  # flags: it runs; the dead-man holds the input; somebody drives


class MessageError(InputError):
    """A message that is not of the protocol. The page that sent it is told, and nothing else happens."""


# -- from the page


@dataclass(frozen=True)
class Input:
    """Where the levers are, one number for each of the machine's controls. Only the driver's counts."""

    values: tuple[float, ...]
    n: int = 0


@dataclass(frozen=True)
class Blur:
    """The page lost the attention of its user: neutral at once."""


@dataclass(frozen=True)
class Seen:
    """The state with this number has arrived."""

    serial: int


@dataclass(frozen=True)
class Ask:
    """Somebody who looks on would like to drive."""


@dataclass(frozen=True)
class Answer:
    """The driver's word to who asks."""

    grant: bool


@dataclass(frozen=True)
class Release:
    """I do not want to drive any more."""


@dataclass(frozen=True)
class Pause:
    pass


@dataclass(frozen=True)
class Resume:
    pass


@dataclass(frozen=True)
class Reset:
    """Back to the start."""


@dataclass(frozen=True)
class Slow:
    factor: float  # 1 is real time


@dataclass(frozen=True)
class Switch:
    """Another rate, integrator or method: the motion goes on from where it is."""

    rate: float = 0.0  # 0 and "": as it is
    integrator: str = ""
    method: str = ""


@dataclass(frozen=True)
class Pilot:
    """The machine drives itself through one of its programs, "" for by hand."""

    name: str


@dataclass(frozen=True)
class Step:
    """On by a little, and still again."""


@dataclass(frozen=True)
class Tune:
    """One of the machine's parameters from now on."""

    name: str
    value: float


@dataclass(frozen=True)
class Soil:
    """The ground is of another soil from now on."""

    name: str


@dataclass(frozen=True)
class Task:
    """A job with a score; "": none."""

    name: str


@dataclass(frozen=True)
class Reach:
    """Sliders that bring the tool to a place (x, y, z); only the page that asks is told."""

    point: tuple[float, ...]


Message = (
    Input
    | Blur
    | Seen
    | Ask
    | Answer
    | Release
    | Pause
    | Resume
    | Reset
    | Slow
    | Switch
    | Pilot
    | Step
    | Tune
    | Soil
    | Task
    | Reach
)
MESSAGES: dict[str, type[Any]] = {
    kind.__name__.lower(): kind
    for kind in (
        Input,
        Blur,
        Seen,
        Ask,
        Answer,
        Release,
        Pause,
        Resume,
        Reset,
        Slow,
        Switch,
        Pilot,
        Step,
        Tune,
        Soil,
        Task,
        Reach,
    )
}


def parsed(text: str | bytes) -> Message:
    """A checked message, or MessageError."""
    if len(text) > LARGEST_MESSAGE:
        raise MessageError(f"a message of {len(text)} bytes; at most {LARGEST_MESSAGE} are allowed.")
    if isinstance(text, bytes):
        raise MessageError("a binary message; expected JSON text.")
    try:
        given = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise MessageError(f"a message that is no JSON: {text[:TEXT]!r}.") from None
    if not isinstance(given, dict):
        raise MessageError(f"a message that is no JSON object: {text[:TEXT]!r}.")
    name = given.pop("type", None)
    if not isinstance(name, str) or name not in MESSAGES:
        raise MessageError(unknown("message", str(name)[:TEXT], MESSAGES))
    kind = MESSAGES[name]
    wanted = {f.name: f for f in fields(kind)}
    for key in given:
        if key not in wanted:
            raise MessageError(f'message "{name}": {unknown("field", key[:TEXT], wanted)}')
    values = {}
    for key, f in wanted.items():
        if key in given:
            values[key] = _CHECKS[str(f.type)](f'message "{name}", {key}', given[key])
        elif f.default is MISSING:
            raise MessageError(f'message "{name}" has no "{key}".')
    made: Message = kind(**values)
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _number(where: str, x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)) or not abs(x) < 1e12 or not math.isfinite(x):
        raise MessageError(f"{where}: expected a finite number, got {str(x)[:TEXT]}.")
    return float(x)


def _count(where: str, x: Any) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or not 0 <= x < 2**32:
        raise MessageError(f"{where}: expected a whole number below 2^32, got {str(x)[:TEXT]}.")
    return x


def _flag(where: str, x: Any) -> bool:
    if not isinstance(x, bool):
        raise MessageError(f"{where}: expected true or false, got {str(x)[:TEXT]}.")
    return x


def _text(where: str, x: Any) -> str:
    if not isinstance(x, str) or len(x) > TEXT:
        raise MessageError(f"{where}: expected a name, got {str(x)[:TEXT]}.")
    return x


def _numbers(where: str, x: Any) -> tuple[float, ...]:
    if not isinstance(x, list) or len(x) > VALUES:
        raise MessageError(f"{where}: expected a list of at most {VALUES} numbers.")
    return tuple(_number(where, v) for v in x)


_CHECKS = {"float": _number, "int": _count, "bool": _flag, "str": _text, "tuple[float, ...]": _numbers}


# -- from the server


def state(
    flags: int, epoch: int, number: int, n: int, t: float, slow: float, serial: int, numbers: Sequence[Array]
) -> bytes:
    """numbers: poses, y, u, outputs."""
    head = HEADER.pack(STATE, flags, epoch % 2**16, number, n, t, slow, serial)
    return head + np.concatenate([x.ravel() for x in numbers]).astype("<f4").tobytes()


def ground(patch: Patch) -> bytes:
    head = GROUND_HEADER.pack(GROUND, patch.whole, 0, len(patch.cells), patch.t, patch.load, patch.dug)
    return head + np.array(list(patch.cells.values()), "<f4").tobytes() + np.array(list(patch.cells), "<u2").tobytes()


def said(kind: str, /, **content: Any) -> str:
    """One of the server's JSON messages."""
    return json.dumps({**content, "type": kind}, allow_nan=False)
