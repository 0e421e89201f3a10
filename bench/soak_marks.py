"""Activities of a cockpit process during late periods: looks at the ground, pictures, rows, garbage collections.

`Marks` records when each of them began and ended, by the clock of the loop. Each line of `blamed` compares how often
one of them was active when a late period should have begun with how often it was for any period: a cause is active more
often in the late ones.
"""

from __future__ import annotations

import functools
import gc
import time
from typing import Any

import numpy as np

from bellcrank.cockpit.hub import Hub
from bellcrank.cockpit.messages import Outbox
from bellcrank.cockpit.session import Session
from bellcrank.emit.cpu.realtime_loop import KEPT_PERIODS
from bellcrank.sim.realtime.realtime_drive import Drive
from bellcrank.text_table import table

Array = np.ndarray[Any, Any]
WATCHED = (
    (Session, "dig", "look at the ground"), (Session, "frame", "picture"), (Session, "piloted", "autopilot"),
    (Drive, "_drain", "rows of the record"), (Hub, "report", "deadline report"), (Hub, "tell_settings", "settings"),
    (Outbox, "ground", "ground as a message"),
)  # fmt: skip


class Marks:
    """Time spans in ns by activity, since construction, and all periods that `take` has collected."""

    def __init__(self) -> None:
        self.spans: dict[str, list[tuple[int, int]]] = {name: [] for *_, name in WATCHED} | {"garbage collection": []}
        self.periods: list[Array] = []
        self._taken, self._collecting = 0, 0
        for owner, method, name in WATCHED:
            setattr(owner, method, self._noted(getattr(owner, method), self.spans[name]))
        gc.callbacks.append(self._collected)

    @staticmethod
    def _noted(function: Any, into: list[tuple[int, int]]) -> Any:
        @functools.wraps(function)
        def noted(*given: Any, **named: Any) -> Any:
            began = time.monotonic_ns()
            try:
                return function(*given, **named)
            finally:
                into.append((began, time.monotonic_ns()))

        return noted

    def _collected(self, phase: str, _: Any) -> None:
        if phase == "start":
            self._collecting = time.monotonic_ns()
        else:
            self.spans["garbage collection"].append((self._collecting, time.monotonic_ns()))

    def take(self, drive: Drive) -> None:
        """Collect the periods since the last call, which must come before any are overwritten."""
        traced = drive.shared.get("traced")
        self.periods.append(drive.shared.trace[np.arange(self._taken, traced) % KEPT_PERIODS].copy())
        self._taken = traced

    def blamed(self, late: float = 200e-6) -> str:
        """Return a table of the activities during late periods, beside those of all other periods.

        A period is late if it woke up `late` (s) or took so long.
        """
        x = np.concatenate(self.periods)
        woken, delay, cost = x[:, 0], x[:, 1], x[:, 2]
        due = woken - delay
        rows = []
        for name, spans in self.spans.items():
            if not spans:
                continue
            s = np.array(sorted(spans))
            k = np.searchsorted(s[:, 1], due)  # the first one that ends after the period was due
            met = (k < len(s)) & (s[np.minimum(k, len(s) - 1), 0] < due)
            took = (s[:, 1] - s[:, 0]) * 1e-3
            groups = met, met[delay > late * 1e9], met[cost > late * 1e9]
            rows.append(
                (
                    name,
                    f"{len(s)}",
                    f"{np.median(took):.0f}",
                    f"{took.max():.0f}",
                    *(f"{_share(g):.1%}" for g in groups),
                )
            )
        many = ", ".join(f"{int(n)}" for n in ((delay > late * 1e9).sum(), (cost > late * 1e9).sum()))
        head = ("what", "times", "median us", "max us", "met by all", "by late ones", "by long ones")
        return (
            f"{table(head, rows, right=range(1, 7))}\nlate and long by {1e6 * late:.0f} us: {many} of {len(x)} periods"
        )


def _share(met: Array) -> float:
    return float(met.mean()) if met.size else 0.0
