"""Command bench: compile times and run times of the quantities of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bellcrank.buffers import check_memory
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import TableColumn, numbers
from bellcrank.dynamics import METHODS, Method, Quantity, candidates, method, quantity
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.errors import InputError
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.cli.timing import StepTiming, Timing

STEP_INTEGRATORS = ("rk4", "euler")
TIMED_QUANTITIES = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "gravity_torque", "kinetic_energy")


@app.command()
def bench(
    name: Annotated[str, typer.Argument(metavar="MECHANISM", help="A file, or a built-in name.")] = "excavator",
    quantity_names: Annotated[
        list[str] | None, option("NAME", "May be given several times.", "--quantity", "-q")
    ] = None,
    method_name: options.MethodOpt = "all",
    frame: options.FrameOpt = "",
    dtype: options.DtypeOpt = "float64",
    rows: Annotated[int, option("N", "States in a batch.", min=1)] = 4096,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
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
