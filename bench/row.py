"""One row of the table that `python -m bench` prints, shared by all groups."""

from __future__ import annotations

import os
from dataclasses import dataclass

import bellcrank as bc
from bench import baseline

CORE = max(os.sched_getaffinity(0))


@dataclass
class Row:
    work: str
    ours: float
    theirs: float | None
    unit: str
    must: float | None  # ratio theirs/ours, or a limit for ours if there are no theirs
    aim: float | None = None
    fastest: float | None = None  # Pinocchio in its fastest build

    @property
    def ratio(self) -> float | None:
        return self.theirs / self.ours if self.theirs is not None else None

    @property
    def ok(self) -> bool:
        if self.must is None:
            return True
        return self.ratio >= self.must if self.ratio is not None else self.ours <= self.must


def robot(name: str, floating: bool = False) -> bc.Mechanism:
    base = "floating" if floating else "fixed"
    return bc.read(baseline.robot_path(name), base=base, lock=baseline.LOCKED.get(name, ())).frictionless()
