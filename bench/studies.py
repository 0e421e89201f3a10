"""`python -m bench.studies [RUNS]`: runs of the puma600 (1 s at 1 ms, four summaries) by bc.study over two workers.

They are compared with the same runs in one process of two threads without Dask: rates, their ratio, and the memory of
the workers.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import bellcrank as bc

ASKED = ["max(joint1.v)", "min(joint2.v)", "rms(joint3.v)", "final(energy)"]
OVER = {"joint1.v": bc.uniform(-1.0, 1.0), "joint2.q": bc.uniform(-1.0, 1.0)}
CHUNK = 4096


class Memory(threading.Thread):
    """The largest resident size of any descendant process, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = 0, threading.Event()

    def run(self) -> None:
        import psutil

        while not self.over.wait(0.5):
            for p in psutil.Process().children(recursive=True):
                try:
                    self.most = max(self.most, p.memory_info().rss)
                except psutil.Error:
                    continue


def alone(runs: int) -> float:
    """Return runs per second in one process."""
    arm, rng = bc.zoo.puma600(), np.random.default_rng(0)
    sim = bc.Simulator(arm, summary=ASKED)
    sim.run(0.01, batch=16, step=1e-3, threads=2, progress=False)
    began = time.perf_counter()
    for first in range(0, runs, CHUNK):
        n = min(CHUNK, runs - first)
        v0, q0 = {"joint1": rng.uniform(-1, 1, n)}, {"joint2": rng.uniform(-1, 1, n)}
        sim.run(1.0, q0, v0, step=1e-3, threads=2, progress=False)
    return runs / (time.perf_counter() - began)


def by_study(runs: int) -> tuple[float, float]:
    """Return runs per second from the first chunk to the last, as in a long study, and the memory of a worker in GB."""
    memory, marks = Memory(), list[tuple[float, float]]()
    memory.start()
    with tempfile.TemporaryDirectory() as place:
        bc.study(
            bc.zoo.puma600(), OVER, runs, seconds=1.0, step=1e-3, summary=ASKED, to=Path(place) / "s", workers=2,
            chunk=CHUNK, progress=lambda share: marks.append((time.perf_counter(), share)),
        )  # fmt: skip
    memory.over.set()
    (t0, s0), (t1, s1) = marks[0], marks[-1]
    return runs * (s1 - s0) / (t1 - t0), memory.most / 1e9


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rate, size = by_study(runs)
    plain = alone(min(runs, 100_000))
    print(f"{runs} runs: {rate:.0f} a second by two workers, {plain:.0f} by two threads of one process")
    print(f"{rate / plain:.0%} of its rate, floor 90 %; {size:.2f} GB for a worker, ceiling 2 GB")


if __name__ == "__main__":
    main()
