"""Times of Wong's mesh and its rivals as programs on the same machines, with and without messages (wong1991, 4.7).

The thesis compares printed polynomials, without messages. Here every algorithm is a program (rivals.py) for the same
general chain, on its own network, with every step on its own processor. All have the same constants, and the same costs
of operations and messages. Sines and cosines are included, which adds the same time to all.

The equations are solved on a systolic array: 4 n cycles for Wong's, 7 n - 5 for the others, of Liu and Young. In a
cycle, a cell does one multiplication and one addition and passes a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from bellcrank.papers import operation_counts as papers
from bellcrank.papers.wong.comparison import published_costs
from bellcrank.papers.wong.mesh_schedule import mesh
from bellcrank.papers.wong.rivals import RIVALS, program_graph, rival_schedule
from bellcrank.scheduling import Machine
from bellcrank.scheduling.machines import machine_of_kind, single
from bellcrank.text_table import Table
from bellcrank.view.curves import line_chart

KINDS = {
    "hidden": "T800, messages free",
    "t800": "T800, messages beside the computation",
    "explicit": "T800, messages keep both ends busy",
    "multicore": "cores of a processor of the 2020s",
    "h200": "threads of one H200",
}
SIZES = {"hidden": (4, 8, 11, 12, 13, 14, 16), "t800": (4, 8, 12, 16, 17, 18, 20)}
OTHER_SIZES = (4, 8, 16)
TITLES = {"wong": "Wong's mesh", **{name: rival.title for name, rival in RIVALS.items()}}


@cache
def matrix_time(name: str, n: int, kind: str) -> float:
    """Return the time of the mass matrix of a general chain.

    Parameters
    ----------
    name
        "wong", a key of RIVALS, or "force" for Lee's force vector.
    n
        Number of joints.
    kind
        Cost model of the machine.
    """
    if name != "wong":
        return rival_schedule(name, n, kind).makespan
    s = mesh(papers.chain(n), solver=False).schedule(kind)
    return next(s.finish[task.index] for task in s.tasks if task.name == f"S[1,{n},{n}]")


def solver_cycle(machine: Machine) -> float:
    """Return the time of a cycle of a systolic solver on a `machine`."""
    compute, send = machine.cost["mul"] + machine.cost["add"], machine.message(1)
    return max(compute, send) if machine.overlapped else compute + 2 * send


def total_time(name: str, n: int, kind: str) -> float:
    """Return the time of mass matrix and solver; `name`, `n` and `kind` are as in `matrix_time`."""
    cycle = solver_cycle(machine_of_kind(single(), kind))
    return matrix_time(name, n, kind) + (4 * n if name == "wong" else 7 * n - 5) * cycle


def series(kind: str, solver: bool = False, sizes: Sequence[int] = ()) -> dict[str, dict[int, float]]:
    """Return times by algorithm and number of joints.

    Parameters
    ----------
    kind
        Cost model of the machine.
    solver
        Whether the equations are solved.
    sizes
        Numbers of joints.
    """
    time = total_time if solver else matrix_time
    return {name: {n: time(name, n, kind) for n in sizes or SIZES.get(kind, OTHER_SIZES)} for name in TITLES}


def crossover(kind: str, solver: bool = False, sizes: Sequence[int] = ()) -> int | None:
    """Return the least tried number of joints with a rival faster than Wong's mesh, or None.

    Parameters
    ----------
    kind, solver, sizes
        As in `series`.
    """
    times = series(kind, solver, sizes)
    slower = (n for n, t in times["wong"].items() if any(times[name][n] < t for name in RIVALS))
    return next(slower, None)


def tables() -> list[Table]:
    """Return a table for each machine, the crossovers, and the counts."""
    return [*(_time_table(kind) for kind in KINDS), _crossover_table(), _count_table()]


def _time_table(kind: str) -> Table:
    times, unit = series(kind), machine_of_kind(single(), kind).unit
    sizes = list(times["wong"])
    rows = [
        (str(n), *(f"{times[name][n]:.0f}" for name in TITLES), f"{matrix_time('force', n, kind):.0f}") for n in sizes
    ]
    title = f"Mass matrix of a general chain, {unit}: {KINDS[kind]}"
    head = ("n", *TITLES.values(), "force vector, Lee")
    return Table(title, head, rows, range(len(head)))


def _crossover_table() -> Table:
    rows: list[tuple[str, ...]] = [("print, without messages", "13", "15", "20")]
    for kind, title in KINDS.items():
        cells = (crossover(kind), crossover(kind, solver=True))
        rows.append((title, *("none" if n is None else str(n) for n in cells), str(max(series(kind)["wong"]))))
    caption = "The least tried number of joints with a rival that is faster than Wong's mesh."
    return Table("Crossovers", ("machine", "matrix", "matrix and solver", "up to"), rows, (1, 2, 3), caption)


def _count_table(n: int = 8) -> Table:
    printed = {name: cost.time() for name, cost in published_costs(n, "inertia").items()}
    rows: list[tuple[str, ...]] = []
    for name, rival in RIVALS.items():
        s = rival_schedule(name, n)
        M, A = papers.tally(program_graph(name, n))
        shown = f"{printed[name]:g}" if name in printed else ""
        cells = f"{matrix_time(name, n, 'hidden'):.0f}", str(M), str(A), str(s.used), str(len(s.messages)), str(s.words)
        rows.append((rival.title, shown, *cells))
    head = ("program", "print, us", "ours, us", "M", "A", "processors", "messages", "words x hops")
    caption = (
        "print: the polynomial, or for Amin-Javaheri none in M and A. ours: T800, messages free. M, A: all processors "
        "together."
    )
    return Table(f"The programs for {n} joints", head, rows, range(1, 8), caption)


def _draw(kind: str, solver: bool) -> str:
    times, unit = series(kind, solver), machine_of_kind(single(), kind).unit
    lines = {TITLES[name]: {float(n): t for n, t in line.items()} for name, line in times.items()}
    quantity = "mass matrix and solver" if solver else "mass matrix"
    return line_chart(f"{quantity}, programs: {KINDS[kind]}", "joints", unit, lines)


FIGURES: Mapping[str, Callable[[], str]] = {
    f"wong_rivals_{kind}{'_solver' if solver else ''}.svg": partial(_draw, kind, solver)
    for kind in ("hidden", "t800", "multicore", "h200")
    for solver in (False, True)
}
