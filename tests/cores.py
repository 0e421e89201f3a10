"""Helpers for tests of kernels on several cores: partitioned kernels, and a bitwise comparison with one core."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

import bellcrank as bc
from bellcrank.emit.cores import thread_team as crews
from bellcrank.emit.cores.target import ParallelKernel
from bellcrank.model import Mechanism
from bellcrank.scheduling import Machine
from bellcrank.scheduling.machines import complete

EVER = 2**60
COST = {**Machine("", complete(1)).cost, "neg": 0.0}


def cheap(processors: int) -> Machine:
    """Return a machine with almost free messages, so that even small mechanisms are partitioned."""
    return Machine(f"cheap({processors})", complete(processors), COST, start=0.2, word=0.01)


def cut(
    m: Mechanism, processors: int = 2, quantity: str = "forward_dynamics", patience: int = EVER, **more: Any
) -> ParallelKernel:
    """Return a partitioned kernel that waits for its workers without a time limit, unless the arguments set one."""
    k = bc.kernel(m, quantity, machine=cheap(processors), **more)
    assert isinstance(k, ParallelKernel)
    assert k.team is not None, "nothing was cut"
    cpus = crews.allowed_cpus()
    k.team.pin([cpus[i % len(cpus)] for i in range(1, processors)], patience)
    return k


def same(k: ParallelKernel, m: Mechanism, states: int = 20, together: int = 1, seconds: float = 60.0) -> None:
    """Check that all bits agree with one core, and that some states were really computed by several cores."""
    single = bc.kernel(m, k.signature.name, method=k.method, dtype=k.signature.dtype)
    q, v, tau = m.random(3, (states,))
    known = {"q": q, "v": v, "tau": tau, "a": tau}
    rows = list(zip(*(known[name].astype(k.signature.dtype) for name in k.signature.inputs), strict=True))
    expected = [single(*row) for row in rows]
    first, until = k.counts[0], time.monotonic() + seconds
    while True:
        for row, wanted in zip(rows, expected, strict=True):
            assert k(*row).tobytes() == wanted.tobytes()
        if k.counts[0] - first >= together or time.monotonic() > until:
            break
    assert k.counts[0] - first >= together


@pytest.fixture
def all_cpus() -> Iterator[None]:
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    yield
    if before:
        os.sched_setaffinity(0, before)
