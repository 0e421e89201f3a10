"""`python -m bench.nikravesh`: recursive and non-recursive dynamics, and parallel speed-up, after Nikravesh et al.
1989.

    python -m bench.nikravesh             all three tables
    python -m bench.nikravesh speedup     only some: breakeven, speedup, absolute

Break-even points are counted in operations and measured in compiled kernels: both forms of one size are timed in turns,
one state after the other in a native loop, and in vector batches. A ratio above 1 means that the recursive form is
cheaper. The paper's speed-up is work / span of the data-flow graph with equal costs for all operations.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

import bellcrank as bc
from bellcrank import zoo
from bellcrank.papers.nikravesh import (
    UNIT_COSTS,
    break_even,
    dense_graph,
    first_joints,
    folded_graph,
    unfolded_graph,
)
from bellcrank.papers.operation_counts import published
from bellcrank.zoo.families import general_chain
from bench import bellcrank_runs

DIRECT, RECURSIVE = "joint_coordinates", "joint_coordinates_recursive"
SIZES = {"revolute": range(2, 11), "prismatic": range(2, 15), "spherical": range(2, 8)}
SECONDS = 0.05
COSTS: dict[str, Mapping[str, float]] = {
    "all alike": UNIT_COSTS,
    "div 4, sin 8": {},
    "mul 2, div 8, sin 16": {"mul": 2.0, "div": 8.0, "sin": 16.0, "cos": 16.0},
    "sin free": {"div": 1.0, "sin": 0.0, "cos": 0.0},
}


def measured(m: bc.Mechanism, methods: Sequence[str], rounds: int = 4) -> dict[str, dict[str, float]]:
    """Return operations and ns of each method; the methods take turns, so that other load affects all equally."""
    kernels = {by: bc.kernel(m, "forward_dynamics", method=by) for by in methods}
    found = {
        by: {"ops": float(k.graph.count().arithmetic), "one": float("inf"), "batch": float("inf")}
        for by, k in kernels.items()
    }
    for _ in range(rounds):
        for by, k in kernels.items():
            found[by]["one"] = min(found[by]["one"], bellcrank_runs.native_ns(m, k, 256, SECONDS))
            found[by]["batch"] = min(found[by]["batch"], bellcrank_runs.batch_ns(m, k, 1024, SECONDS))
    return found


def breakeven() -> Iterator[Table]:
    for kind, sizes in SIZES.items():
        for name, make in (("nothing special", general_chain), ("idealised robot", zoo.chain)):
            title = f"{kind} chain, {name}: forward dynamics, directly / recursively"
            table = columns(title, "joints", "ops", "ops", "ratio", "ns", "ns", "ratio", "batch ns", "ns", "ratio")
            found = {n: measured(make(n, kind), (DIRECT, RECURSIVE)) for n in sizes}
            for n, by in found.items():
                cells = [str(n)]
                for what in ("ops", "one", "batch"):
                    a, b = by[DIRECT][what], by[RECURSIVE][what]
                    cells += [f"{a:.0f}", f"{b:.0f}", f"{a / b:.2f}"]
                table.add_row(*cells)
            points = {
                what: break_even({n: x[RECURSIVE][what] for n, x in found.items()},
                                 {n: x[DIRECT][what] for n, x in found.items()})
                for what in ("ops", "one", "batch")
            }  # fmt: skip
            said = published()["dataflow"]["breakeven_joints"][kind]
            table.caption = (
                "recursive from {ops} joints in operations, {one} in time, {batch} in batches; ".format(
                    **{what: x or f"more than {sizes[-1]}" for what, x in points.items()}
                )
                + f"the paper: {said}"
            )
            yield table


def speedup() -> Iterator[Table]:
    makers: dict[str, Callable[[bc.Mechanism], bc.Graph]] = {
        "compiled": folded_graph,
        "any arm": unfolded_graph,
        "full matrices": dense_graph,
        "recursive, compiled": lambda m: folded_graph(m, RECURSIVE),
        "recursive, any arm": lambda m: unfolded_graph(m, RECURSIVE),
        "absolute, compiled": lambda m: folded_graph(m, "absolute"),
    }
    arms = [first_joints(zoo.stanford(), n) for n in range(1, 7)]
    graphs = {name: [make(m) for m in arms] for name, make in makers.items()}
    table = columns("Stanford arm, first n joints: work / span = speed-up, all operations alike", "", *"123456")
    for name, row in graphs.items():
        pairs = [(g.work(UNIT_COSTS), g.span(UNIT_COSTS)) for g in row]
        table.add_row(name, *(f"{w:.0f} / {s:.0f} = {w / s:.1f}" for w, s in pairs))
    least, most = published()["dataflow"]["stanford_max_speedup_n1_to_n6"]
    table.caption = f"the paper: {least} with one joint, {most} with six"
    yield table
    table = columns("speed-up with full matrices, other costs", "", *"123456")
    for name, cost in COSTS.items():
        table.add_row(name, *(f"{g.work(cost) / g.span(cost):.1f}" for g in graphs["full matrices"]))
    yield table


def absolute() -> Iterator[Table]:
    table = columns("absolute against joint coordinates", "", "ops", "ops", "ratio", "ns", "ns", "ratio")
    for name in ("slider_fourbar(closed=False)", "excavator", "stanford", "puma600"):
        by = measured(zoo.load(name), ("absolute", DIRECT))
        cells = [name]
        for what in ("ops", "one"):
            a, b = by["absolute"][what], by[DIRECT][what]
            cells += [f"{a:.0f}", f"{b:.0f}", f"{a / b:.2f}"]
        table.add_row(*cells)
    said = published()["dataflow"]["joint_coordinates_vs_absolute"]
    table.caption = (
        f"the paper: {said['absolute_s']} s / {said['joint_s']} s = {said['absolute_s'] / said['joint_s']:.1f} in "
        "simulations of the closed four-bar"
    )
    yield table


GROUPS: dict[str, Callable[[], Iterator[Table]]] = {"breakeven": breakeven, "speedup": speedup, "absolute": absolute}


def columns(title: str, first: str, *rest: str) -> Table:
    table = Table(title=title, box=None, title_justify="left", caption_justify="left", min_width=100)
    table.add_column(first)
    for name in rest:
        table.add_column(name, justify="right")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.nikravesh", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="default: all")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    console = Console(width=None if sys.stdout.isatty() else 130)
    for name in parser.parse_args().groups or GROUPS:
        for table in GROUPS[name]():
            console.print(table, "")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
