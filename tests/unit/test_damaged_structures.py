"""Damaged files of flexible bodies, matrices and tyres are either read or refused with a message."""

from __future__ import annotations

import os
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import forces
from bellcrank.errors import BellcrankError
from bellcrank.structures.beam import Beam
from bellcrank.structures.modes import beam_modes
from right_calls import MAGIC

WORDS = (
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"99999999999999",
    b"",
    b"x",
    b"1.5",
    b"\n",
    b"\x00" * 8,
    b"\xff\xfe",
    b"9" * 400,
)


def sid(folder: Path) -> bytes:
    beam = Beam(2.0, bc.Section.circle(0.05), bc.Material.steel(), 4)
    bc.write_sid(folder / "made", beam_modes(beam, ("bend_z", "twist"), {"end": 1.0}, 1, True, np.inf))
    return (folder / "made").read_bytes()


def fem(folder: Path) -> bytes:
    nodes = np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1], [1, 0.3, 0.3]])
    rigid = np.hstack(
        [np.tile(np.eye(3), (7, 1)), np.vstack([[[0, z, -y], [-z, 0, x], [y, -x, 0]] for x, y, z in nodes])]
    )
    Q = np.linalg.qr(rigid)[0]
    P, A = np.eye(21) - Q @ Q.T, np.random.default_rng(1).normal(size=(21, 21))
    K = 1e6 * P @ (A @ A.T + np.eye(21)) @ P
    bc.write_fem(folder / "made", bc.flexible(K, np.eye(21), nodes, {"a": [0, 1, 2], "b": [3, 4, 5]}, modes=2))
    return (folder / "made").read_bytes()


def market(folder: Path) -> bytes:
    return b"%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 4\n1 1 2.5\n2 1 -1e3\n3 3 4\n2 2 1\n"


def formatted(folder: Path) -> bytes:
    rows = [(1, 1, (1.0, 2.5)), (2, 1, (2.5, 3.0)), (3, 1, (1.0,))]
    text = "       2       2       6       2KAAX    1P,3E23.16\n"
    for column, row, numbers in rows:
        text += f"{column:8d}{row:8d}{len(numbers):8d}\n" + "".join(f"{x:23.16E}" for x in numbers) + "\n"
    return text.encode()


def unformatted(folder: Path) -> bytes:
    def record(data: bytes) -> bytes:
        return struct.pack("<i", len(data)) + data + struct.pack("<i", len(data))

    columns = (record(struct.pack("<3i2d", c, 1, 4, c, 2.5)) for c in (1, 2))
    return (
        record(struct.pack("<4i8s", 2, 2, 6, 2, b"KAAX    "))
        + b"".join(columns)
        + record(struct.pack("<3id", 3, 1, 1, 1.0))
    )


def tyre(folder: Path) -> bytes:
    return "".join(f"{name} = {x} $ of a tyre\n" for name, x in MAGIC.items()).encode()


def driven(path: Path) -> Any:
    return bc.system(bc.zoo.chain(2), elements=[forces.read_tyre(path, "t", "ground", "link2")])


KINDS: dict[str, tuple[Callable[[Path], bytes], str, Callable[[Path], Any]]] = {
    "SID": (sid, "file.SID_FEM", lambda p: bc.read_sid(p, {"end": 1})),
    "fem": (fem, "file.fem", lambda p: bc.read_fem(p, {"a": 1})),
    "market": (market, "file.mtx", bc.read_matrix),
    "formatted": (formatted, "file.op4", bc.read_matrix),
    "unformatted": (unformatted, "file.op4", bc.read_matrix),
    "tyre": (tyre, "file.tir", driven),
}


def damaged(rng: random.Random, whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2, 4])):
        i = rng.randrange(len(data) + 1)
        j = i + rng.choice([1, 2, 4, 30])
        match rng.randrange(6):
            case 0:
                data[i:j] = bytes(x ^ 1 << rng.randrange(8) for x in data[i:j])
            case 1:
                del data[i:j]
            case 2:
                data[i:i] = data[i:j] * rng.choice([1, 2, 50])
            case 3:
                data = data[:i] if rng.random() < 0.3 else data
            case 4:
                data[i:j] = rng.choice(WORDS)
            case _:
                if found := list(re.finditer(rb"-?\d+(\.\d+)?", bytes(data))):
                    at = rng.choice(found)
                    data[at.start() : at.end()] = rng.choice(WORDS)
    return bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged(kind: str, tmp_path: Path) -> None:
    make, name, read = KINDS[kind]
    whole, path, said, cases = make(tmp_path), tmp_path / name, list[str](), 150
    path.write_bytes(whole)
    read(path)
    for number in range(cases):
        path.write_bytes(damaged(random.Random(f"{kind} {number}"), whole))
        try:
            read(path)
        except BellcrankError as error:
            said.append(str(error))
    assert len(said) > cases // 4
    assert all(20 < len(words) < 2500 for words in said)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system [a POSIX system]")
@pytest.mark.parametrize("kind", KINDS)
def test_a_pipe_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    _, name, read = KINDS[kind]
    os.mkfifo(tmp_path / name)
    with pytest.raises(BellcrankError, match=r"no plain file|not a regular file"):
        read(tmp_path / name)
