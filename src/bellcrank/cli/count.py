"""Graph: the operations of a quantity."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import (
    BaseOpt,
    CheckOpt,
    FrameOpt,
    JsonOpt,
    MechanismArg,
    MethodOpt,
    QuantityOpt,
    app,
    mechanism,
    screen,
)
from bellcrank.cli.screen import Column
from bellcrank.methods import METHODS, QUANTITIES, candidates
from bellcrank.model import Mechanism


@app.command()
def count(
    name: MechanismArg,
    quantity_name: QuantityOpt = "forward_dynamics",
    method_name: MethodOpt = "auto",
    frame: FrameOpt = "",
    every: Annotated[bool, typer.Option("--all", help="Every quantity by every method that applies.")] = False,
    base: BaseOpt = "fixed",
    check: CheckOpt = "error",
    json: JsonOpt = False,
) -> None:
    """The operations of a quantity, and their span.

    The span is the longest chain of operations that wait for each other, with an addition as 1, a division as 4, a sine
    or cosine as 8; work is the sum over all of them, and work / span is how many processors could be kept busy.
    """
    from bellcrank import build

    m = mechanism(name, base, check)
    if every:
        frame = frame or list(m.frames)[-1]
        rows = _all_counted(m, frame)
    else:
        with screen.working(f"tracing {quantity_name} of {m.name}"):
            by, graph = build.chosen(m, build.Request(quantity_name, method_name, frame))
            rows = [_counted(quantity_name, by.name, graph)]
    if json:
        screen.data({"mechanism": m.name, "frame": frame or None, "rows": rows})
    elif every:
        screen.line(f"{m.name}: operations (pose, velocity and jacobian of {frame})", style="bold")
        screen.line()
        kinds = [k for k in rows[0]["count"] if any(row["count"][k] for row in rows)]
        head = [Column("quantity"), Column("method"), *(Column(k, right=True, optional=True) for k in kinds)]
        head += [Column(k, right=True, optional=k == "nodes") for k in ("total", "span", "work/span", "nodes")]
        cells = [(r["quantity"], r["method"], *(str(r["count"][k]) for k in kinds), *_tail(r)) for r in rows]
        screen.table(head, cells)
    else:
        able = ", ".join(by.name for by in candidates(quantity_name, m.tree))
        chosen = f", chosen from {able}" if method_name == "auto" and "," in able else ""
        screen.line(f"{m.name}: {quantity_name} by {by.name}{chosen}", style="bold")
        screen.line()
        total, span, ratio, nodes = _tail(rows[0])
        screen.table(
            [Column("operation"), Column("number", right=True), Column("", wrap=True)],
            [
                *((kind, str(n), "") for kind, n in rows[0]["count"].items() if n),
                ("total", total, "mul + add + sub + div"),
                ("span", span, "longest chain; div counts 4, sin and cos 8"),
                ("work/span", ratio, "processors that could be kept busy"),
                ("nodes", nodes, "of the graph, inputs included"),
            ],
        )


def _all_counted(m: Mechanism, frame: str) -> list[dict[str, Any]]:
    from bellcrank import build

    rows = []
    with screen.working(f"tracing {m.name}") as say:
        for q in QUANTITIES.values():
            likely = candidates(q.name, m.tree)
            for by in METHODS.values():
                if q.name not in by.solves or not by.applies(m.tree):
                    continue
                if by not in likely:
                    screen.note(f"not traced: {q.name} by {by.name}, far behind (ask with --quantity and --method)")
                    continue
                say(f"tracing {q.name} by {by.name}")
                graph = build.graph(m, q.name, by.name, frame if q.option == "frame" else "")
                rows.append(_counted(q.name, by.name, graph))
    return rows


def _counted(quantity_name: str, method_name: str, graph: bc.Graph) -> dict[str, Any]:
    c, work, span = graph.count(), graph.work(), graph.span()
    return {
        "quantity": quantity_name,
        "method": method_name,
        "count": dict(c.by_kind),
        "total": c.arithmetic,
        "work": work,
        "span": span,
        "parallelism": work / span if span else 0.0,
        "nodes": len(graph.nodes),
    }


def _tail(row: dict[str, Any]) -> tuple[str, str, str, str]:
    return str(row["total"]), f"{row['span']:g}", f"{row['parallelism']:.1f}", str(row["nodes"])
