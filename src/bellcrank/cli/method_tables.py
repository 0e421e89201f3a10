"""Comparison of methods: on a mechanism, on a GPU, and on the general chain of the papers beside printed counts."""

from __future__ import annotations

from typing import Any

from bellcrank.build import kernels
from bellcrank.build.graphs import choose_graph, graph, trace_quantity
from bellcrank.build.policy import check_request
from bellcrank.cli import screen, timing
from bellcrank.cli.count import count_row
from bellcrank.cli.screen import TableColumn, numbers
from bellcrank.dynamics import METHODS, QUANTITIES, Method, Quantity, applicable_methods, candidates, estimate
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.cpu.costs import cheapest, costs
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.cuda.lane_code import state_loop_code
from bellcrank.emit.cuda.target import Cuda
from bellcrank.graph import Graph
from bellcrank.model import Mechanism

MAX_TRACED_OPERATIONS = 30_000  # estimated operations; a larger method with three times the least estimate is left out


NOTES = (
    "*: the method that auto takes: the least predicted time, and among equals the fewest operations.",
    "Span: the longest chain of operations; an addition counts 1, a division 4, a sine or cosine 8.",
    "Times: per state of a batch, on one core. Code: for one state and for batches.",
)
GPU_NOTES = (
    "threads: threads that compute one state together, each in a different warp. alive: largest number of live values "
    "of a thread. parked: values in shared memory, spilled or sent to another thread. local: values spilled to local "
    "memory, because shared memory is full. blocks: resident blocks of a multiprocessor.",
    "per s: predicted states per second on one H200, limited by arithmetic or by memory. Within 25 %, for large "
    "mechanisms within 50 %; `python -m bench.gpu teams` measures it.",
)


def print_methods(m: Mechanism, quantity_name: str, frame: str, measure: bool, json: bool) -> None:
    """Print every quantity, or one, by every applicable method: counted, predicted, compiled and timed.

    Parameters
    ----------
    m
        Mechanism.
    quantity_name
        Quantity; empty for all.
    frame
        Frame for the quantities that need one; empty for the last frame.
    measure
        Compile and time each method.
    json
        Print JSON instead of tables.
    """
    frame = frame or list(m.frames)[-1]
    wanted = [QUANTITIES[quantity_name]] if quantity_name else QUANTITIES.values()
    quantities = [q for q in wanted if quantity_name or applicable_methods(q.name, m.tree)]
    if not applicable_methods(quantities[0].name, m.tree):
        check_request(m, Request(quantities[0].name))  # raises an error with the reason
    jobs, left_out = _jobs(m, quantities)
    rows = []
    graphs: dict[str, list[tuple[Method, Graph]]] = {q.name: [] for q in quantities}
    with screen.progress(f"tracing {m.name}") as say:
        for i, (q, method) in enumerate(jobs):
            say(f"{i + 1} of {len(jobs)}: {q.name} by {method.name}")
            of_frame = frame if q.option == "frame" else ""
            graphs[q.name].append((method, graph(m, q.name, method.name, of_frame)))
            rows.append(_row(m, q.name, *graphs[q.name][-1], of_frame, measure))
        for row in rows:
            row["choice"] = row["method"] == _auto_method(m, row["quantity"], graphs[row["quantity"]])
    order = list(QUANTITIES)
    rows.sort(key=lambda row: (order.index(row["quantity"]), row["total"]))
    inapplicable = _inapplicable(m, quantities)
    if json:
        about = {"mechanism": m.name, "frame": frame, "rows": rows}
        screen.data(about | {"left_out": left_out, "not_for_this": inapplicable})
        return
    framed = any(q.option == "frame" for q in quantities)
    of_frame = f" (of {frame} where a frame is needed)" if framed else ""
    heading = f"{quantities[0].name} by every method" if len(quantities) == 1 else "every quantity by every method"
    screen.heading(f"{m.name}: {heading}{of_frame}")
    _print_rows(rows, measure, headings=len(quantities) > 1)
    screen.line()
    for text in NOTES[: 3 if measure else 2]:
        screen.line(text, "dim")
    if inapplicable:
        reasons = "; ".join(f"{name} ({why})" for name, why in inapplicable.items())
        screen.line(f"Not for this mechanism: {reasons}.", "dim")
    if left_out:
        screen.line(f"Left out, because far slower (show them with -q and -m): {', '.join(left_out)}.", "dim")


def _auto_method(m: Mechanism, name: str, graphs: list[tuple[Method, Graph]]) -> str:
    """Return the method that auto takes, from graphs that are traced already; empty if there is only one."""
    if len(graphs) < 2:
        return ""
    tried = {method.name for method in candidates(name, m.tree)}
    return cheapest([pair for pair in graphs if pair[0].name in tried])[0].name


def _inapplicable(m: Mechanism, quantities: list[Quantity]) -> dict[str, str]:
    """Return the methods of these quantities that do not cover this mechanism, with the topology they need."""
    names = {q.name for q in quantities}
    applicable = {method.name for q in quantities for method in applicable_methods(q.name, m.tree)}
    others = [x for x in METHODS.values() if x.name not in applicable and names & set(x.solves)]
    inapplicable = {method.name: method.topology for method in others}
    return inapplicable | {q.name: "needs the driven joints" for q in quantities if q.driven and m.loops}


def _jobs(m: Mechanism, quantities: list[Quantity]) -> tuple[list[tuple[Quantity, Method]], list[str]]:
    jobs, left_out = [], []
    for q in quantities:
        if q.driven and m.loops:
            continue
        applicable, tried = applicable_methods(q.name, m.tree), candidates(q.name, m.tree)
        several = len(applicable) > 1
        work = [estimate(method.name, q.name, m.tree) if several else 0.0 for method in applicable]
        most = max(0 if q.differentiates else MAX_TRACED_OPERATIONS, 3 * min(work, default=0.0))
        for method, operations in zip(applicable, work, strict=True):
            if method not in tried and operations > most:
                left_out.append(f"{q.name} by {method.name}")
            else:
                jobs.append((q, method))
    return jobs, left_out


def _row(m: Mechanism, name: str, method: Method, graph: Graph, frame: str, measure: bool) -> dict[str, Any]:
    row = count_row(name, method.name, graph) | {"predicted": costs().predicted(graph)}
    if measure:
        kernel = kernels.kernel(m, name, method.name, frame=frame)
        row |= {"code_size": kernel.code_size, "measured": timing.batch_time(m, kernel)}
    return row


def _print_rows(rows: list[dict[str, Any]], measured: bool, headings: bool) -> None:
    kinds = ("mul", "add", "div", "sqrt", "trig")
    shown = [k for k in kinds if k in ("mul", "add") or any(row["count"][k] for row in rows)]
    head = [TableColumn("method")]
    head += [TableColumn(k, right=True, optional=k not in ("mul", "add")) for k in shown]
    head += [*numbers("total", "span"), TableColumn("parallel", right=True, optional=True)]
    head += [TableColumn("code", right=True, optional=True)] if measured else []
    head += numbers("predicted", "measured") if measured else numbers("predicted")
    cells, last = [], ""
    for row in rows:
        if headings and row["quantity"] != last:
            cells += [[""] * len(head)] * bool(last) + [[row["quantity"], *[""] * (len(head) - 1)]]
        c = row["count"] | {"add": row["count"]["add"] + row["count"]["sub"]}
        line = ["  " * headings + row["method"] + " *" * row["choice"]]
        line += [str(c[k]) for k in shown] + [str(row["total"]), f"{row['span']:g}", f"{row['parallelism']:.1f}"]
        line += [f"{row['code_size'] / 1000:.1f} kB"] if measured else []
        line += [f"{1e9 * row['predicted']:.1f} ns"] + ([f"{1e9 * row['measured']:.1f} ns"] if measured else [])
        cells.append(line)
        last = row["quantity"]
    screen.table(head, cells)


def print_paper_counts(json: bool) -> None:
    """Print traced and published operation counts, multiplications and additions apart; `json`: print JSON."""
    from bellcrank.papers import operation_counts as papers

    comparisons = []
    with screen.progress("tracing chains of 2 to 12 joints") as say:
        for i, row in enumerate(papers.PUBLISHED_COUNTS):
            say(f"{i + 1} of {len(papers.PUBLISHED_COUNTS)}: {row.key} by {row.method}")
            comparisons.append(papers.compare_counts(row))
    if json:
        screen.data([c.facts() for c in comparisons])
        return
    screen.heading("Operations on a general chain of n revolute joints: published, and traced here")
    head = [TableColumn("\npublished, and ours", wrap=True, min_width=20)]
    head += [TableColumn(name, wrap=True, min_width=15) for name in ("M\nmultiplications", "A\nadditions")]
    head += numbers("M + A\nn = 6", "\nn = 10")
    cells = []
    for c in comparisons:
        printed, counts = c.row.printed, [f"{float(c.theirs(n)):g}" for n in (6, 10)]
        cells.append((c.row.title, printed["M"], printed["A"], *counts))
        ours = [f"{c.ours(n)} ({c.ours(n) / float(c.theirs(n)):.2f})" for n in (6, 10)]
        cells.append((f"  by {c.row.method}", str(c.M), str(c.A), *ours))
    screen.table(head, cells)
    screen.line()
    for title, note in {c.row.title: c.row.printed["note"] for c in comparisons if "note" in c.row.printed}.items():
        screen.line(f"{title}: {note}.", "dim")
    since = max(c.least_n for c in comparisons)
    regrouped_methods = sorted({c.row.method for c in comparisons if METHODS[c.row.method].regrouped})
    for text in (
        f"Ours are exact from n = {since} on; in brackets: ours / printed. Negations, sines and cosines are free.",
        f"With regrouped inertias (docs/counting.md), unlike the papers: {', '.join(regrouped_methods)}.",
    ):
        screen.line(text, "dim")


def print_serial_tables(joints: str, json: bool) -> None:
    """Print the tables of Wong's thesis about one processor, printed and traced.

    Parameters
    ----------
    joints
        Numbers of joints: "6" or "2..16".
    json
        Print JSON instead of tables.
    """
    from bellcrank.papers.wong import serial_counts

    sizes = serial_counts.parse_sizes(joints)
    with screen.progress("tracing chains of 2 to 12 joints"):
        tables = serial_counts.tables(sizes)
    if json:
        screen.data([{"title": t.title, "head": list(t.head), "rows": [list(row) for row in t.rows]} for t in tables])
        return
    for k, t in enumerate(tables):
        if k:
            screen.line()
        screen.titled_table(t)


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
    for note in GPU_NOTES:
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
