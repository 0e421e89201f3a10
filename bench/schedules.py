"""`python -m bench.schedules`: distance of schedules from a lower bound, and the time to find them.

A cell is makespan / bound: 1.00 cannot be improved. The bound is max(work / processors, span) and ignores messages, so
on machines with a cost of messages it may be out of reach.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from rich.console import Console
from rich.table import Table

from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.scheduling import machine, schedule

MECHANISMS = ("stanford", "puma600", "excavator", "torso", "tree:15", "chain:16", "chain:64", "tree:63")
METHODS = ("crba", "aba", "newton_euler_symbolic")
MACHINES = (
    ("complete:2", "ideal"), ("complete:4", "ideal"), ("complete:16", "ideal"), ("mesh:3,3", "ideal"),
    ("complete:3", "t800"), ("mesh:2,2", "t800"), ("hypercube:3", "t800"), ("bus:4", "t800"),
)  # fmt: skip
SMALL = 8  # joints: newton_euler_symbolic, whose work grows with the cube, is included up to here


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mechanisms", nargs="*", default=MECHANISMS)
    parser.add_argument("--level", default="cluster")
    given = parser.parse_args()
    table = Table(title=f"makespan / bound, {given.level} level", box=None, title_justify="left")
    table.add_column("forward dynamics")
    for text, kind in MACHINES:
        table.add_column(f"{kind}\n{text}", justify="right")
    table.add_column("seconds", justify="right")
    product, count = 1.0, 0
    for name in given.mechanisms:
        m = zoo.load(name)
        for method in METHODS:
            if method == "newton_euler_symbolic" and m.nv > SMALL:
                continue
            g = graphs.graph(m, "forward_dynamics", method)
            cells, begin = [], time.perf_counter()
            for text, kind in MACHINES:
                s = schedule(g, machine(text, kind), given.level)
                s.check()
                cells.append(f"{s.makespan / s.bound:.2f}")
                product, count = product * s.makespan / s.bound, count + 1
            table.add_row(f"{name} {method}", *cells, f"{time.perf_counter() - begin:.1f}")
    table.caption = f"geometric mean {product ** (1 / count):.3f}"
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    raise SystemExit(main())
