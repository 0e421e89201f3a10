"""`python -m bench.parallel`: one state on two cores against one core, predicted and measured.

Both kernels are timed in turn, in native loops of a few states, and the fastest loop of each counts: on a shared
machine that is the least disturbed. Of the two-core kernel only loops count in which every state was computed by both.
The cost of a message is measured again at the start, because it depends on which cores the system assigns. A kernel
that would stay on one core by default is partitioned as well, to check that decision.

    python -m bench.parallel                      excavator, Talos, tree(63), tree(255), chain(256)
    python -m bench.parallel --processors 4 "tree(255)"
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

import bellcrank as bc
from bellcrank.emit.cores import calibration
from bellcrank.emit.cores.target import ParallelKernel
from bellcrank.emit.cores.thread_team import allowed_cpus
from bench import baseline, bellcrank_runs

ROWS = 16
NAMES = ("excavator", "talos", "tree(63)", "tree(255)", "chain(256)")
LARGE = 5_000.0  # ns of work; predictions are judged from there on
WITHIN = 0.25
MUST = {"tree(255)": 1.5}


@dataclass
class Row:
    name: str
    method: str
    one: float  # ns, measured on one core
    both: float | None  # ns, on all; None where the scheduler finds no gain
    predicted_one: float
    predicted_both: float
    messages: int
    used: int  # cores that the kernel uses by default

    @property
    def speedup(self) -> float:
        return self.one / self.both if self.both else 1.0

    @property
    def predicted(self) -> float:
        return self.predicted_one / self.predicted_both

    @property
    def verdict(self) -> str:
        wrong = []
        if self.one > LARGE and abs(self.predicted / self.speedup - 1.0) > WITHIN:
            wrong.append("prediction MISSED")
        if self.speedup < MUST.get(self.name, 0.0):
            wrong.append(f"MISSED {MUST[self.name]} x")
        if self.used > 1 and self.speedup < 1.0:
            wrong.append("MISSED: one core wins")
        return ", ".join(wrong) or ("one core wins, and does it" if self.used == 1 else "ok")


def mechanism(name: str) -> bc.Mechanism:
    return bc.read(baseline.robot_path(name)).frictionless() if name == "talos" else bc.zoo.load(name)


def measured(m: bc.Mechanism, one: bc.Kernel, both: ParallelKernel, seconds: float) -> tuple[float, float | None]:
    arrays = bellcrank_runs.inputs(m, one, (ROWS,))
    arrays.append(np.empty_like(one(*arrays)))
    pointers = [a.ctypes.data for a in arrays]
    _, loop = bellcrank_runs.loop(tuple(a[0].size for a in arrays))
    alone = one.library.address("one")
    least = [float("inf"), float("inf")]
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for _ in range(20):
            t0 = time.perf_counter_ns()
            loop(alone, ROWS, *pointers)
            least[0] = min(least[0], (time.perf_counter_ns() - t0) / ROWS)
        if both.team is None:
            continue
        together = both.library.address("anyway")
        both.team.wake()
        for _ in range(20):
            before = both.counts[0]
            t0 = time.perf_counter_ns()
            loop(together, ROWS, *pointers)
            ns = (time.perf_counter_ns() - t0) / ROWS
            if both.counts[0] - before == ROWS:
                least[1] = min(least[1], ns)
    return least[0], least[1] if both.team is not None else None


def row(name: str, processors: int, method: str, seconds: float) -> Row:
    m = mechanism(name)
    best = bc.kernel(m, "forward_dynamics", method=method)
    chosen = bc.kernel(m, "forward_dynamics", method=best.method, machine="threads", processors=processors)
    # The same costs under another name: partition even without gain, to check that decision.
    cut = calibration.threads_machine(processors).with_costs(name=f"cores({processors})")
    both = chosen if chosen.schedule.used > 1 else bc.kernel(m, "forward_dynamics", method=best.method, machine=cut)
    assert isinstance(both, ParallelKernel)
    one, together = measured(m, best, both, seconds)
    work, s = both.schedule.work, both.schedule
    used = chosen.schedule.used
    return Row(name, best.method, one, together, work, 1e9 * both.predicted, len(s.messages), used)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.parallel", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="mechanisms; default: " + ", ".join(NAMES))
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring, for each")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    args = parser.parse_args()
    log = Console(stderr=True)
    if len(allowed_cpus()) < args.processors:
        log.print(f"{args.processors} processors were asked for and {len(allowed_cpus())} are allowed.", style="yellow")
        return 1
    today = calibration.core_times(again=True)
    rows = []
    with log.status("measuring ...") as status:
        for name in args.names or NAMES:
            status.update(f"measuring {name}")
            rows.append(row(name, args.processors, args.method, args.seconds))
    table = Table(
        title=f"one state of forward dynamics on {args.processors} cores; a message takes {today.start:.0f} ns",
        box=None,
    )
    for column in ("mechanism", "method", "one core", "predicted", "all", "predicted", "speed-up", "predicted", ""):
        table.add_column(column, justify="left" if column in ("mechanism", "method", "") else "right")
    for r in rows:
        table.add_row(
            r.name, r.method, f"{r.one:.0f} ns", f"{r.predicted_one:.0f}", f"{r.both:.0f} ns" if r.both else "",
            f"{r.predicted_both:.0f}", f"{r.speedup:.2f} x", f"{r.predicted:.2f} x", r.verdict,
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    if args.json:
        with open(args.json, "w") as file:
            rest = [{"speedup": r.speedup, "predicted": r.predicted, "verdict": r.verdict} for r in rows]
            json.dump([asdict(r) | more for r, more in zip(rows, rest, strict=True)], file, indent=1)
    return 1 if any("MISSED" in r.verdict for r in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
