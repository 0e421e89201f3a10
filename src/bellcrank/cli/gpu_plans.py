"""Plans of a quantity on a GPU: threads per state, registers, spilled values and predicted throughput."""

from __future__ import annotations

from typing import Any

from bellcrank.build.graphs import choose_graph, trace_quantity
from bellcrank.cli import screen
from bellcrank.cli.screen import TableColumn, numbers
from bellcrank.dynamics import candidates
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.cuda.lane_code import state_loop_code
from bellcrank.emit.cuda.target import Cuda
from bellcrank.graph import Graph
from bellcrank.model import Mechanism

NOTES = (
    "threads: threads that compute one state together, each in a different warp. alive: largest number of live values "
    "of a thread. parked: values in shared memory, spilled or sent to another thread. local: values spilled to local "
    "memory, because shared memory is full. blocks: resident blocks of a multiprocessor.",
    "per s: predicted states per second on one H200, limited by arithmetic or by memory. Within 25 %, for large "
    "mechanisms within 50 %; `python -m bench.gpu teams` measures it.",
)


def print_plans(m: Mechanism, request: Request, dtype: str, every: bool, json: bool) -> None:
    """Print the plan by which a GPU computes a quantity.

    Parameters
    ----------
    m
        Mechanism.
    request
        Quantity, method and frame.
    dtype
        "float64" or "float32".
    every
        Print every applicable method, not only the chosen one.
    json
        Print JSON instead of tables.
    """
    with screen.progress(f"tracing {request.quantity} of {m.name}") as say:
        method, graph = choose_graph(m, request, Cuda(dtype).choose)
        if Cuda(dtype).in_loops(graph):
            _print_rolled_plan(m, request, method.name, graph, dtype, json)
            return
        graphs = {method.name: graph}
        if every:
            others = [x for x in candidates(request.quantity, m.tree) if x.name not in graphs]
            graphs |= {other.name: trace_quantity(m, request, other) for other in others}
        rows = []
        for i, (name, g) in enumerate(graphs.items()):
            say(f"{i + 1} of {len(graphs)}: planning {request.quantity} by {name}")
            rows.append(_plan_row(name, g, dtype) | {"choice": name == method.name})
    rows.sort(key=lambda row: -row["per_second"])
    if json:
        screen.data({"mechanism": m.name, "quantity": request.quantity, "dtype": dtype, "rows": rows})
        return
    screen.heading(f"{m.name}: {request.quantity} on a GPU, {dtype}")
    keys = ("operations", "threads", "alive", "registers", "parked", "local", "blocks")
    head = [TableColumn("method"), *(TableColumn(key, right=True, optional=key == "blocks") for key in keys)]
    cells = [
        [row["method"] + "*" * (row["choice"] and every), *(str(row[key]) for key in keys), f"{row['per_second']:.2g}"]
        for row in rows
    ]
    screen.table([*head, *numbers("per s")], cells)
    screen.line()
    if every:
        screen.line("*: the method that auto takes.", "dim")
    for note in NOTES:
        screen.line(note, "dim")


def _print_rolled_plan(m: Mechanism, request: Request, method_name: str, graph: Graph, dtype: str, json: bool) -> None:
    """Print the workspace of a thread for a graph of rolled loops, which is not planned."""
    row: dict[str, Any] = {"method": method_name, "operations": graph.count().arithmetic, "threads": 1}
    row |= {"workspace": state_loop_code(graph, dtype).room, "choice": True}
    if json:
        screen.data({"mechanism": m.name, "quantity": request.quantity, "dtype": dtype, "rows": [row]})
        return
    screen.heading(f"{m.name}: {request.quantity} on a GPU, {dtype}")
    screen.line(
        f"By {method_name}: {row['operations']} operations in loops over identical bodies, one thread per state, with "
        f"{row['workspace']} numbers of workspace in GPU memory (docs/size.md)."
    )


def _plan_row(name: str, g: Graph, dtype: str) -> dict[str, Any]:
    planned = BatchKernelText(g, dtype)
    p = planned.plan
    return {
        "method": name, "operations": g.count().arithmetic, "threads": len(p.team), "alive": planned.max_live,
        "registers": p.registers, "parked": p.shared_rows, "local": p.local_values, "blocks": p.blocks,
        "states_per_block": p.states, "meetings": p.team.barriers, "balance": round(p.team.balance, 3),
        "per_second": planned.per_second,
    }  # fmt: skip
