"""`python -m bench`: the promised speed, measured against peers in the same run on the same pinned core.

    python -m bench             everything (some minutes: the first run compiles Pinocchio's loop)
    python -m bench batch one   only some groups: batch, one, python, compile, operations, derivatives,
                                large, simulation, loops, stepping, legs, flexible, size
    python -m bench --json F    also writes the figures to F

Pinocchio is timed in the build that most people have (-O3 -march=native) and in the fastest of several builds. The
promise is against the first, and the second is printed beside it. Its chains and trees have other numbers than ours in
the zoo, but as many joints; its time does not depend on the numbers. In `simulation`, `loops`, `stepping` and `legs`
they have the same numbers: see the files of these names.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

from rich.console import Console
from rich.table import Table

import bellcrank as bc
from bench import baseline, bellcrank_runs, exported, flexible, gradients, loops, quadruped, simulation, size, stepping
from bench.row import CORE, Row, robot


def theirs(name: str, algorithm: str, floating: bool = False) -> tuple[float, float | None]:
    """Return (usual build, fastest build) in ns; without a C++ compiler, (called from Python, nothing)."""
    if not baseline.available():
        return baseline.pinocchio_python_ns(name, algorithm, floating, core=CORE).ns_min, None
    timings = baseline.flavours_ns(name, algorithm, floating, core=CORE)
    return timings[0].ns_min, min(t.ns_min for t in timings)


def side_by_side(
    work: str, measure: Callable[[], float], peer: tuple[str, str, bool], must: float | None, aim: float | None = None
) -> Row:
    """Time ours, theirs, ours again; the better of ours counts, so that other load does not affect one side alone."""
    first = measure()
    usual, fastest = theirs(*peer)
    return Row(work, min(first, measure()), usual, "ns", must, aim, fastest)


def batch() -> Iterator[Row]:
    for name, floating, must, aim in (
        ("ur5", False, 60, 100),
        ("panda", False, 42, 70),
        ("talos", False, 24, 40),
        ("talos", True, 24, 40),
    ):
        m = robot(name, floating)
        k = bc.kernel(m, "forward_dynamics")
        title = f"batch, forward dynamics, {name}{' floating' if floating else ''} ({k.method})"
        yield side_by_side(title, partial(bellcrank_runs.batch_ns, m, k), (name, "aba", floating), must, aim)
    for name in ("ur5", "panda"):
        m = robot(name)
        for quantity, algorithm in (("mass_matrix", "crba"), ("inverse_dynamics", "rnea")):
            k = bc.kernel(m, quantity)
            yield side_by_side(
                f"batch, {quantity}, {name}", partial(bellcrank_runs.batch_ns, m, k), (name, algorithm, False), 30
            )


def one() -> Iterator[Row]:
    for name, must in (("ur5", 11), ("panda", 7), ("talos", 5)):
        m = robot(name)
        k = bc.kernel(m, "forward_dynamics")
        yield side_by_side(
            f"one state, native, {name} ({k.method})",
            partial(bellcrank_runs.native_ns, m, k),
            (name, "aba", False),
            must,
        )


def derivatives() -> Iterator[Row]:
    """Time dq, dv and dtau together."""
    for name, floating, many, single in (
        ("ur5", False, (50, 80), (8, 12)),
        ("panda", False, (25, 45), (5, 8)),
        ("talos", True, (12, 25), (4, 6)),
        # the only available one of the three robots that the literature measures
        ("hyq", True, (None, None), (None, None)),
    ):
        m = robot(name, floating)
        k = bc.kernel(m, "forward_dynamics_derivatives")
        peer, title = (name, "computeABADerivatives", floating), f"derivatives, {name} ({k.method})"
        yield side_by_side(f"batch, {title}", partial(bellcrank_runs.batch_ns, m, k), peer, *many)
        yield side_by_side(f"one state, {title}", partial(bellcrank_runs.native_ns, m, k), peer, *single)
        if name == "panda":
            yield Row(f"operations, {title}", k.graph.count().arithmetic, None, "ops", 5500, 4000)
    yield from gradients.rows()


def python() -> Iterator[Row]:
    m = robot("ur5")
    first = bellcrank_runs.python_ns(m)
    peer = baseline.pinocchio_python_ns("ur5", "aba", states=256, core=CORE)
    yield Row("one state, from Python, ur5", min(first, bellcrank_runs.python_ns(m)), peer.ns_min, "ns", 3)


def compile_times() -> Iterator[Row]:
    for name, limit in (("ur5", 1.0), ("talos", 5.0)):
        cold, cached, _ = bellcrank_runs.compile_seconds(str(baseline.robot_path(name)))
        yield Row(f"compile, cold, {name}", cold, None, "s", limit)
        yield Row(f"compile, from the cache, {name}", cached, None, "s", 0.05)


def operations() -> Iterator[Row]:
    for name, limit in (("ur5", 728), ("panda", 1449), ("talos", 8020)):
        k = bc.kernel(robot(name), "forward_dynamics")
        yield Row(f"operations, forward dynamics, {name} ({k.method})", k.graph.count().arithmetic, None, "ops", limit)


def large() -> Iterator[Row]:
    for name, peer in (("tree(255)", "tree:255"), ("chain(256)", "chain:256")):
        cold, _, peak = bellcrank_runs.compile_seconds(name, zoo=True)
        yield Row(f"compile, cold, {name}", cold, None, "s", 60.0)
        yield Row(f"memory of that process, {name}", peak, None, "GB", 2.0)
        m = bc.zoo.load(name)
        k = bc.kernel(m, "forward_dynamics")
        yield side_by_side(
            f"one state, native, {name} ({k.method})",
            partial(bellcrank_runs.native_ns, m, k, 64),
            (peer, "aba", False),
            3,
        )


GROUPS = {
    "batch": batch,
    "one": one,
    "python": python,
    "compile": compile_times,
    "operations": operations,
    "derivatives": derivatives,
    "large": large,
    "simulation": simulation.rows,
    "loops": loops.rows,
    "stepping": stepping.rows,
    "exported": exported.rows,
    "legs": quadruped.rows,
    "flexible": flexible.rows,
    "size": size.rows,
}


def number(x: float | None, unit: str) -> str:
    if x is None:
        return ""
    return f"{x:.0f}" if unit == "ops" or x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="default: all")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    args = parser.parse_args()
    wide = None if sys.stdout.isatty() else 130  # a file may be wider than the default width without a terminal
    console, log = Console(width=wide), Console(stderr=True)
    if baseline.missing() == "pin":
        log.print("Pinocchio is not installed; `make bench` sets up what is needed.", style="yellow")
        return 1
    if baseline.missing():
        log.print(
            f"{baseline.missing()} not found: Pinocchio is called from Python, which costs it about half a microsecond "
            "a call. The ratios below flatter us.",
            style="yellow",
        )
    os.sched_setaffinity(0, {CORE})
    rows: list[Row] = []
    with log.status("measuring ...") as status:
        for name in args.groups or GROUPS:
            for row in GROUPS[name]():
                status.update(f"measured {row.work}")
                rows.append(row)
    table = Table(
        title=f"bellcrank {bc.__version__} and its peers, one core, {platform.machine()}",
        box=None,
    )
    for column in ("work", "ours", "theirs", "ratio", "must", "aim", "fastest build", "ratio", ""):
        table.add_column(column, justify="left" if column == "work" else "right")
    for r in rows:
        best = r.fastest / r.ours if r.fastest else None
        must = "" if r.must is None else f"{'>=' if r.ratio else '<='} {r.must:g}"
        table.add_row(
            r.work, f"{number(r.ours, r.unit)} {r.unit}", f"{number(r.theirs, r.unit)} {r.unit if r.theirs else ''}",
            f"{r.ratio:.1f} x" if r.ratio else "", must, f"{r.aim:g}" if r.aim else "",
            f"{number(r.fastest, r.unit)} {r.unit if r.fastest else ''}",
            f"{best:.1f} x" if best else "", "ok" if r.ok else "MISSED",
        )  # fmt: skip
    console.print(table)
    if args.json:
        with open(args.json, "w") as file:
            json.dump([asdict(r) | {"ratio": r.ratio, "ok": r.ok} for r in rows], file, indent=1)
    return 0 if all(r.ok for r in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
