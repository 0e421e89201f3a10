"""Commands count and bench: operations of quantities, also beside the counts of papers, and measured times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellcrank.buffers import check_memory
from bellcrank.cli import app, load_mechanism, screen
from bellcrank.cli.options import BaseOpt, CheckOpt, DtypeOpt, FrameOpt, JsonOpt, MechanismArg, MethodOpt, option
from bellcrank.cli.screen import TableColumn, numbers, texts
from bellcrank.dynamics import METHODS, Method, Quantity, candidates, method, quantity
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Recursion
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.cli.timing import StepTiming, Timing

LINK_CLASS_HEADINGS = ("operations", "constants in a table", "numbers kept")  # facts about a link class
STEP_INTEGRATORS = ("rk4", "euler")
TIMED_QUANTITIES = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "gravity_torque", "kinetic_energy")


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
    joints: Annotated[
        str, typer.Option("--n", metavar="2..16", help="With --papers: Wong's tables for these numbers of joints.")
    ] = "",
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
    from bellcrank.cli import method_tables

    if target not in ("cpu", "cuda"):
        raise InputError(unknown("target", target, ("cpu", "cuda"), "cuda" if target == "gpu" else ""))
    if joints and not papers:
        raise InputError(
            f"--n {joints}: only --papers takes numbers of joints; use: count chain --papers --n {joints}."
        )
    if papers:
        if quantity_name or every or explain or method_name != "auto":
            raise InputError("--papers shows all counts of the papers; it takes no -q, -m, --all and no --explain.")
        if name != "chain":
            raise InputError(
                f'the papers count a general chain of revolute joints, not "{name}"; use: count chain --papers.'
            )
        if joints:
            method_tables.print_serial_tables(joints, json)
        else:
            method_tables.print_paper_counts(json)
        return
    if quantity_name:
        quantity(quantity_name)
    m = load_mechanism(name, base, check)
    request = Request(quantity_name or "forward_dynamics", method_name, frame)
    if explain:
        if every or target == "cuda":
            raise InputError("--explain is for one quantity, on every target; it takes no --all and no --target.")
        _print_reasons(m, request, json)
    elif target == "cuda":
        method_tables.print_plans(m, request, dtype, every, json)
    elif every:
        if method_name != "auto":
            raise InputError(f"--all shows every method; leave it out to see {method_name} alone.")
        method_tables.print_methods(m, quantity_name, frame, measure, json)
    else:
        _print_quantity(m, request, json)


def count_row(quantity_name: str, method_name: str, graph: Graph) -> dict[str, Any]:
    """Return the operation counts of `graph`, which computes `quantity_name` by `method_name`, as a table row."""
    c, work, span = graph.count(), graph.work(), graph.span()
    return {
        "quantity": quantity_name,
        "method": method_name,
        "count": dict(c.by_kind),
        "total": c.arithmetic,
        "work": work,
        "span": span,
        "parallelism": work / span if span else 0.0,
        "nodes": graph.size,
    }


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
    screen.heading(f"{m.name}: how the code of {request.quantity} is made")
    screen.table(
        [*map(TableColumn, ("method", "for", "code")), *texts("because")],
        [(p.method.name, use, p.form, "; ".join(p.reasons)) for use, p in plans],
    )
    if len(strategy.plans) > 1:
        screen.line()
        screen.line("Of several methods for a kernel, the cost model of the target takes the fastest.", style="dim")


def _print_quantity(m: Mechanism, request: Request, json: bool) -> None:
    """Print one quantity by one method."""
    from bellcrank.build import graphs

    with screen.progress(f"tracing {request.quantity} of {m.name}"):
        method, graph = graphs.choose_graph(m, request, calls=True)
        row = count_row(request.quantity, method.name, graph)
    if isinstance(graph, Recursion):
        row["kinds"] = [dict(zip(("bodies", "as", *LINK_CLASS_HEADINGS), kind, strict=True)) for kind in graph.kinds]
    if json:
        screen.data({"mechanism": m.name, "frame": request.frame or None, "rows": [row]})
        return
    able = ", ".join(method.name for method in candidates(request.quantity, m.tree))
    chosen = f", chosen from {able}" if request.method == "auto" and "," in able else ""
    screen.heading(f"{m.name}: {request.quantity} by {method.name}{chosen}")
    screen.table(
        [TableColumn("operation"), *numbers("number"), *texts("")],
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
        screen.heading(f"Rolled loops: {len(graph.cells)} link classes of identical bodies (docs/size.md)")
        head = [*numbers("bodies"), TableColumn("as"), *numbers(*LINK_CLASS_HEADINGS)]
        screen.table(head, [tuple(map(str, kind)) for kind in graph.kinds])


@app.command()
def bench(
    name: Annotated[str, typer.Argument(metavar="MECHANISM", help="A file, or a built-in name.")] = "excavator",
    quantity_names: Annotated[
        list[str] | None, option("NAME", "May be given several times.", "--quantity", "-q")
    ] = None,
    method_name: MethodOpt = "all",
    frame: FrameOpt = "",
    dtype: DtypeOpt = "float64",
    rows: Annotated[int, option("N", "States in a batch.", min=1)] = 4096,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
) -> None:
    """Compile and time quantities, and a step of a run.

    The compile time includes tracing, code generation, compilation and loading, with an empty cache; "from cache" is
    the time when the kernel is in the cache. A step is timed without recording; predicted times are available before
    anything is compiled. The comparison with Pinocchio is `python -m bench` in the repository.
    """
    from bellcrank.cli import timing
    from bellcrank.emit.llvm.host import host

    m = load_mechanism(name, base, check)
    # Inputs and at most one matrix of results.
    size = 8.0 * rows * (m.nq + (3 + m.nv) * m.nv)
    check_memory(f"a batch of {rows:,} rows of {m.name}", size, "take fewer rows")
    jobs = _jobs(m, quantity_names, method_name, frame)
    _check_frame(m, jobs, frame)
    timings = []
    with screen.progress(f"compiling {m.name}") as say:
        for i, (q, solver) in enumerate(jobs):
            say(f"{i + 1} of {len(jobs)}: {q.name} by {solver.name}")
            timings.append(
                timing.measure_quantity(m, q.name, solver.name, frame if q.option == "frame" else "", dtype, rows)
            )
        steps = []
        for integrator in () if quantity_names else STEP_INTEGRATORS:
            say(f"a step by {integrator}")
            steps.append(timing.measure_step(m, integrator, rows))
    n, cpu, lanes = timing.cores(), host().cpu, host().lanes(dtype)
    if json:
        about = {"mechanism": m.name, "dtype": dtype, "cpu": cpu, "lanes": lanes, "cores": n, "rows": rows}
        screen.data(about | {"seconds": [asdict(t) for t in timings], "steps": [asdict(t) for t in steps]})
        return
    screen.heading(f"{m.name} on {cpu}, {lanes} lanes of {dtype}")
    _print_timings(timings, n)
    screen.line()
    screen.line(f"Minimum of {timing.REPEATS} repeats. One state: a call from Python with numpy arrays.", style="dim")
    least, most = (pick(t.rows_all_cores for t in timings) for pick in (min, max))
    span = f"{least}" if least == most else f"{least} to {most}"
    wide = f", on {n} cores of {span}, so that all are busy" if n > 1 else ""
    screen.line(f"Batch: time per state of {rows} states{wide}.", style="dim")
    if steps:
        screen.line()
        _print_step_timings(steps)


def _jobs(m: Mechanism, names: list[str] | None, method_name: str, frame: str) -> list[tuple[Quantity, Method]]:
    """Return the quantities and methods to time: the requested quantities, or the usual ones of the method."""
    from bellcrank.build.graphs import choose_graph

    jobs = []
    timed = TIMED_QUANTITIES if method_name not in METHODS else METHODS[method_name].solves
    needs_more = ("inverse_dynamics",) if m.loops else ()  # with loops, inverse dynamics needs the driven joints
    usual = [name for name in timed if name in TIMED_QUANTITIES and name not in needs_more]
    for q in map(quantity, names or usual):
        able = candidates(q.name, m.tree)
        if method_name == "auto":
            able = [choose_graph(m, Request(q.name, frame=frame if q.option == "frame" else ""))[0]]
        elif method_name != "all":
            able = [method(method_name, q.name, m.tree)]
        jobs += [(q, solver) for solver in able]
    return jobs


def _print_step_timings(steps: list[StepTiming]) -> None:
    head = [TableColumn("\nstep by"), *numbers("predicted\nns", "one run\nns", "batch,\n1 core\nns")]
    rows = [(t.integrator, *(f"{1e9 * x:.0f}" for x in (t.predicted, t.one, t.batch))) for t in steps]
    screen.table(head, rows)
    screen.line()
    explained = "Step: time per step of a run without rows. Predicted: for one run, before anything is compiled."
    screen.line(explained, style="dim")


def _check_frame(m: Mechanism, jobs: list[tuple[Quantity, Method]], frame: str) -> None:
    """Raise an InputError for a frame that does not exist or that no timed quantity takes, before compilation."""
    if not frame:
        return
    m.frame(frame)
    if not any(q.option == "frame" for q, _ in jobs):
        names = ", ".join(dict.fromkeys(q.name for q, _ in jobs))
        raise InputError(
            f"--frame {frame}: {names} take no frame; leave it out, or time a quantity that takes one: -q pose."
        )


def _print_timings(timings: list[Timing], cores: int) -> None:
    columns: list[tuple[TableColumn, Callable[[Timing], str]]] = [
        (TableColumn("\n\nquantity", wrap=True), lambda t: t.quantity),
        (TableColumn("\n\nmethod"), lambda t: t.method),
        (TableColumn("\n\noperations", right=True, optional=True), lambda t: str(t.operations)),
        (TableColumn("\ncompile\nms", right=True), lambda t: f"{t.compile * 1e3:.0f}"),
        (TableColumn("from\ncache\nms", right=True, optional=True), lambda t: f"{t.from_cache * 1e3:.1f}"),
        (TableColumn("one\nstate\nns", right=True), lambda t: f"{t.call * 1e9:.0f}"),
        (TableColumn("batch,\n1 core\nns", right=True), lambda t: f"{t.batch * 1e9:.1f}"),
        (TableColumn(f"batch,\n{cores} cores\nns", right=True), lambda t: f"{t.batch_all_cores * 1e9:.1f}"),
    ]
    shown = columns[:-1] if cores == 1 else columns
    screen.table([c for c, _ in shown], [[text(t) for _, text in shown] for t in timings])
