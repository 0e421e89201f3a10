"""Command count: operations of one quantity, or of all by every method, also beside the counts of papers."""

from __future__ import annotations

from typing import Annotated

import typer

from bellcrank.cli import (
    BaseOpt,
    CheckOpt,
    DtypeOpt,
    FrameOpt,
    JsonOpt,
    MechanismArg,
    MethodOpt,
    app,
    load_mechanism,
    screen,
)
from bellcrank.cli.screen import TableColumn
from bellcrank.dynamics import candidates, quantity
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.emit.target import DTYPES
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Recursion
from bellcrank.model import Mechanism

LINK_CLASS_HEADINGS = ("operations", "constants in a table", "numbers kept")  # facts about a link class


@app.command()
def count(
    name: MechanismArg,
    quantity_name: Annotated[
        str, typer.Option("--quantity", "-q", metavar="NAME", help="Quantity to compute [default: forward_dynamics].")
    ] = "",
    method_name: MethodOpt = "auto",
    frame: FrameOpt = "",
    every: Annotated[bool, typer.Option("--all", help="Every method; without -q, every quantity.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Why the code has loops or has none.")] = False,
    measure: Annotated[bool, typer.Option(help="With --all: also compile and time each.")] = True,
    target: Annotated[str, typer.Option(metavar="cpu|cuda", help="cuda: plan for a GPU, and its resources.")] = "cpu",
    dtype: DtypeOpt = "float64",
    papers: Annotated[bool, typer.Option("--papers", help="With chain: the counts that the papers print.")] = False,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
) -> None:
    """Count the operations of a quantity, with span and time.

    The span is the longest chain of dependent operations, with an addition as 1, a division as 4, a sine or cosine as
    8; work is the sum over all operations, and work / span is the number of processors that could be kept busy.

    --explain prints instead, without tracing, which methods may answer, whether their code is written out body by body
    or has loops over identical bodies, and the numbers that decide it.

    --target cuda prints the plan for a GPU instead, and needs no GPU: the number of threads that compute a state, the
    registers of each, the spilled values in shared and local memory, and the states per second predicted for an H200.
    """
    from bellcrank.cli import gpu_plans, method_tables

    if target not in ("cpu", "cuda"):
        raise InputError(unknown("target", target, ("cpu", "cuda"), "cuda" if target == "gpu" else ""))
    if dtype not in DTYPES:
        raise InputError(unknown("dtype", dtype, DTYPES))
    if papers:
        if quantity_name or every or explain or method_name != "auto":
            raise InputError("--papers shows all counts of the papers; it takes no -q, -m, --all and no --explain.")
        if name != "chain":
            raise InputError(
                f'the papers count a general chain of revolute joints, not "{name}"; use: count chain --papers.'
            )
        method_tables.print_paper_counts(json)
        return
    if quantity_name:
        quantity(quantity_name)
    m = load_mechanism(name, base, check)
    if explain:
        if every or target == "cuda":
            raise InputError("--explain is for one quantity, on every target; it takes no --all and no --target.")
        _print_reasons(m, Request(quantity_name or "forward_dynamics", method_name, frame), json)
        return
    if target == "cuda":
        gpu_plans.print_plans(m, Request(quantity_name or "forward_dynamics", method_name, frame), dtype, every, json)
        return
    if every:
        if method_name != "auto":
            raise InputError(f"--all shows every method; leave it out to see {method_name} alone.")
        method_tables.print_methods(m, quantity_name, frame, measure, json)
        return
    _print_quantity(m, quantity_name or "forward_dynamics", method_name, frame, json)


def _print_reasons(m: Mechanism, request: Request, json: bool) -> None:
    """Print the form of the code of each method, and why."""
    from bellcrank.build import graphs, policy

    strategy = graphs.checked_strategy(m, request, cores=True)
    by_columns = policy.columns(m, quantity(request.quantity)) if request.method == "auto" else None
    plans = [("kernel", p) for p in strategy.plans]
    plans += [("several cores", strategy.wide)] if strategy.wide else []
    plans += [(f"mechanism.{request.quantity}", by_columns)] if by_columns else []
    plans += [("not used", p) for p in strategy.dropped]
    rows = [{"use": use, "method": p.method.name, "code": p.form, "reasons": list(p.reasons)} for use, p in plans]
    if json:
        screen.data({"mechanism": m.name, "quantity": request.quantity, "frame": request.frame or None, "rows": rows})
        return
    screen.line(f"{m.name}: how the code of {request.quantity} is made", style="bold")
    screen.line()
    screen.table(
        [TableColumn("method"), TableColumn("for"), TableColumn("code"), TableColumn("because", wrap=True)],
        [(p.method.name, use, p.form, "; ".join(p.reasons)) for use, p in plans],
    )
    if len(strategy.plans) > 1:
        screen.line()
        screen.line("Of several methods for a kernel, the cost model of the target takes the fastest.", style="dim")


def _print_quantity(m: Mechanism, quantity_name: str, method_name: str, frame: str, json: bool) -> None:
    """Print one quantity by one method."""
    from bellcrank.build import graphs
    from bellcrank.cli import method_tables

    with screen.progress(f"tracing {quantity_name} of {m.name}"):
        method, graph = graphs.choose_graph(m, Request(quantity_name, method_name, frame), calls=True)
        row = method_tables.count_row(quantity_name, method.name, graph)
    if isinstance(graph, Recursion):
        row["kinds"] = [dict(zip(("bodies", "as", *LINK_CLASS_HEADINGS), kind, strict=True)) for kind in graph.kinds]
    if json:
        screen.data({"mechanism": m.name, "frame": frame or None, "rows": [row]})
        return
    able = ", ".join(method.name for method in candidates(quantity_name, m.tree))
    chosen = f", chosen from {able}" if method_name == "auto" and "," in able else ""
    screen.line(f"{m.name}: {quantity_name} by {method.name}{chosen}", style="bold")
    screen.line()
    screen.table(
        [TableColumn("operation"), TableColumn("number", right=True), TableColumn("", wrap=True)],
        [
            *((kind, str(n), "") for kind, n in row["count"].items() if n),
            ("total", str(row["total"]), "mul + add + sub + div"),
            ("span", f"{row['span']:g}", "longest chain; div counts 4, sin and cos 8"),
            ("work/span", f"{row['parallelism']:.1f}", "processors that could be kept busy"),
            ("nodes", str(row["nodes"]), "of the graph, inputs included"),
        ],
    )
    if isinstance(graph, Recursion):
        screen.line()
        screen.line(f"Rolled loops: {len(graph.cells)} link classes of identical bodies (docs/size.md)", style="bold")
        screen.line()
        screen.table(
            [
                TableColumn("bodies", right=True),
                TableColumn("as"),
                *(TableColumn(x, right=True) for x in LINK_CLASS_HEADINGS),
            ],
            [tuple(map(str, kind)) for kind in graph.kinds],
        )
