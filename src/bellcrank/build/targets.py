"""Where a graph is to run: the target that answers to what people write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.emit.target import DTYPES, Target
from bellcrank.errors import InputError, brief, unknown, warn

TARGETS = ("cpu", "cuda")
MOST_THREADS = 1024  # far more than processors: they would be started all the same


@dataclass(frozen=True)
class Where:
    """As it is written: target="cpu", threads=2. machine="threads" shares out the work on each state."""

    target: str = "cpu"
    dtype: str = "float64"
    threads: int = 1
    machine: Any = ""  # a name, or a Machine
    processors: int | None = None

    def __post_init__(self) -> None:
        dtype = str(getattr(self.dtype, "name", getattr(self.dtype, "__name__", self.dtype)))  # np.float32 is welcome
        object.__setattr__(self, "dtype", dtype)
        if not isinstance(self.target, str) or self.target not in TARGETS:  # an array is in nothing, and says so itself
            raise InputError(unknown("target", self.target, TARGETS, "cuda" if repr(self.target) == "'gpu'" else ""))
        if dtype not in DTYPES:
            raise InputError(unknown("dtype", dtype, DTYPES))
        if not isinstance(self.threads, int | np.integer) or not 1 <= self.threads <= MOST_THREADS:
            raise InputError(f"threads is {self.threads!r}; expected a whole number from 1 to {os.cpu_count()}.")
        object.__setattr__(self, "threads", int(self.threads))
        if isinstance(self.machine, np.ndarray):  # neither true nor false, and no machine either
            raise InputError(f'machine is {brief(self.machine)}; expected "threads" or a Machine.')
        if self.processors is not None and not self.machine:
            raise InputError('processors= goes with machine="threads".')
        if self.target == "cuda" and (self.machine or self.threads > 1):
            raise InputError('threads= and machine= are of the CPU; target="cuda" has a thread for every state.')


def target(where: Where, what: str) -> Target:
    """Loads no more than it needs: the runtime of several cores, or of a GPU, only for those who ask."""
    if where.target == "cuda":
        from bellcrank.emit.cuda import device

        if not (why := device.missing()):
            from bellcrank.emit.cuda.target import Cuda

            return Cuda(where.dtype)
        warn(f"{why} The CPU computes {what} instead.")
    if not isinstance(where.machine, str) or where.machine:
        from bellcrank.emit.cores.kernel import machine
        from bellcrank.emit.cores.target import Cores

        made = machine(where.machine, where.processors, where.dtype)
        if where.threads > 1:
            raise InputError("threads= and machine= exclude each other: one shares out states, the other each state.")
        return Cores(made, where.dtype)
    from bellcrank.emit.cpu.target import Cpu

    return Cpu(where.dtype, where.threads)
