"""How a GPU would compute a quantity: threads, registers, what waits where, and what is chosen."""

from __future__ import annotations

from typing import Any

from bellcrank.build.graphs import chosen, traced
from bellcrank.cli import screen
from bellcrank.cli.screen import Column
from bellcrank.dynamics import candidates
from bellcrank.dynamics.requests import Request
from bellcrank.emit.cuda.state_loops import looped
from bellcrank.emit.cuda.straight import Straight
from bellcrank.emit.cuda.target import Cuda
from bellcrank.graph import Graph
from bellcrank.model import Mechanism

NOTES = (
    "threads: that compute one state together, each in a warp of its own. alive: values that wait at once, in the "
    "busiest. parked: values in shared memory, their own and those they send each other. local: those for which "
    "shared memory has no room, far away. blocks: on a multiprocessor at once.",
    "per s: states on one H200, predicted: its arithmetic, or its memory where that is slower. Good to a quarter, for "
    "large mechanisms to a half; `python -m bench.gpu teams` measures it.",
)


def plans(m: Mechanism, request: Request, dtype: str, every: bool, json: bool) -> None:
    with screen.working(f"tracing {request.quantity} of {m.name}") as say:
        by, graph = chosen(m, request, Cuda(dtype).choose)
        if Cuda(dtype).in_loops(graph):
            _loops(m, request, by.name, graph, dtype, json)
            return
        graphs = {by.name: graph}
        if every:
            graphs |= {
                other.name: traced(m, request, other)
                for other in candidates(request.quantity, m.tree)
                if other.name not in graphs
            }
        rows = []
        for i, (name, g) in enumerate(graphs.items()):
            say(f"{i + 1} of {len(graphs)}: planning {request.quantity} by {name}")
            rows.append(_row(name, g, dtype) | {"choice": name == by.name})
    rows.sort(key=lambda row: -row["per_second"])
    if json:
        screen.data({"mechanism": m.name, "quantity": request.quantity, "dtype": dtype, "rows": rows})
        return
    screen.line(f"{m.name}: {request.quantity} on a GPU, {dtype}", style="bold")
    screen.line()
    names = ("method", "operations", "threads", "alive", "registers", "parked", "local", "blocks", "per s")
    keys = ("method", "operations", "threads", "alive", "registers", "parked", "local", "blocks")
    screen.table(
        [Column(name, right=name != "method", optional=name == "blocks") for name in names],
        [
            [*(str(row[key]) + ("*" if key == "method" and row["choice"] and every else "") for key in keys),
             f"{row['per_second']:.2g}"]
            for row in rows
        ],
    )  # fmt: skip
    screen.line()
    if every:
        screen.line("*: what method auto takes.", "dim")
    for note in NOTES:
        screen.line(note, "dim")


def _loops(m: Mechanism, request: Request, by: str, graph: Graph, dtype: str, json: bool) -> None:
    """Of what is not planned, but goes through loops: what a thread keeps."""
    row = {"method": by, "operations": graph.count().arithmetic, "threads": 1, "workspace": looped(graph, dtype).room}
    if json:
        screen.data(
            {"mechanism": m.name, "quantity": request.quantity, "dtype": dtype, "rows": [row | {"choice": True}]}
        )
        return
    screen.line(f"{m.name}: {request.quantity} on a GPU, {dtype}", style="bold")
    screen.line()
    screen.line(
        f"By {by}: {row['operations']} operations in loops over alike bodies, a thread for each state, which keeps "
        f"{row['workspace']} numbers in the GPU's memory (docs/size.md)."
    )


def _row(name: str, g: Graph, dtype: str) -> dict[str, Any]:
    made = Straight(g, dtype)
    p = made.plan
    return {
        "method": name, "operations": g.count().arithmetic, "threads": len(p.team), "alive": made.live,
        "registers": p.registers, "parked": p.rows, "local": p.local, "blocks": p.blocks,
        "states_per_block": p.states, "meetings": p.team.meetings, "balance": round(p.team.balance, 3),
        "per_second": made.per_second,
    }  # fmt: skip
