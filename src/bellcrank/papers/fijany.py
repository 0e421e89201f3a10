"""Fijany's processor arrays: the mass matrix of a chain of n joints on n(n+1)/2 or on n processors.

On n(n+1)/2 processors, PR_ji holds element (j, i) of the matrix; on n processors, processor i holds column i. The
processor on a body's diagonal does the work that belongs to the body. The slides count the operations of the busiest
processor, equation by equation, with a barrier after each equation (`count_busiest`). A schedule waits for values only:
`schedule_on_array` keeps every task on the processor of the slides, `schedule_freely` lets the general scheduler
choose. As in the slides, an addition costs as much as a multiplication, sines, cosines and messages are free, and
speed-ups are relative to the serial VCRB.

The second experiment is the critical path of O(log n) algorithms. Fijany's arrays give the mass matrix of a chain in
O(log n) steps, and Lathrop's give velocities and forces; Featherstone's divide and conquer (dynamics/dca.py) gives the
accelerations. The first table lists the critical path: the longest chain of dependent operations, a lower bound on any
number of processors. The second is measured: one state of a long chain, on one core by the articulated-body algorithm,
and on a GPU by divide and conquer with one thread per segment (`python -m bench.size_gpu --write`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from bellcrank.build.graphs import graph
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.historical.mass_matrix.composite_bodies import vcrb_column_parallel
from bellcrank.dynamics.historical.mass_matrix.newton_euler import vneb_column_parallel
from bellcrank.graph import Graph, trace
from bellcrank.papers import Result, Row
from bellcrank.papers import operation_counts as papers
from bellcrank.scheduling import Machine, Schedule, machine, schedule, tasks
from bellcrank.scheduling.machines import STEP_COSTS
from bellcrank.scheduling.placement import Placement, Plan, upward_rank
from bellcrank.text_table import Table
from bellcrank.zoo import chain

UNIT_COSTS = {**STEP_COSTS, "div": 1.0, "sin": 0.0, "cos": 0.0}
LABEL_PATTERN = re.compile(r"([^(\[]*)(?:\(([^)]*)\))?\[([^\]]*)\]")  # equation, column, row
JOINT_COUNTS = (8, 16, 32, 64, 128, 256)
MAX_MATRIX_JOINTS = 32  # largest number of joints for which the mass matrix is tabulated
MEASUREMENTS_FILE = Path(__file__).with_name("depth.json")  # written by bench/size_gpu.py


@dataclass(frozen=True)
class ProcessorArray:
    """Row of the slides' last table: an algorithm on a processor array."""

    key: str
    function: Callable[..., Any]
    square: bool  # True: n(n+1)/2 processors; False: n

    def processors(self, n: int) -> int:
        """Return the number of processors for `n` joints."""
        return n * (n + 1) // 2 if self.square else n


ARRAYS = (
    ProcessorArray("VCRB_n2", METHODS["vcrb_parallel"].function("mass_matrix"), True),
    ProcessorArray("VNEB_n2", METHODS["vneb_parallel"].function("mass_matrix"), True),
    ProcessorArray("VCRB_n", vcrb_column_parallel, False),
    ProcessorArray("VNEB_n", vneb_column_parallel, False),
)


@cache
def array_graph(array: ProcessorArray, n: int) -> Graph:
    """Trace the algorithm of `array` for a chain of `n` joints."""
    tree = papers.tree(n, True)
    return trace(array.key, lambda q: {"M": array.function(tree, q)}, {"q": (n,)})


@cache
def serial_operations(n: int) -> int:
    """Count the operations of the serial VCRB of this package for `n` joints."""
    tree, f = papers.tree(n, True), METHODS["vcrb"].function("mass_matrix")
    return sum(papers.tally(trace("vcrb", lambda q: {"M": f(tree, q)}, {"q": (n,)})))


def equation_and_processor(array: ProcessorArray, n: int, label: str) -> tuple[str, int]:
    """Return the equation named by a node label, and the index of the processor that computes it.

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    label
        Label of the node: equation(column)[row].
    """
    match = LABEL_PATTERN.fullmatch(label)
    assert match, label
    row = _body_indices(n)[match[3]]
    column = _body_indices(n)[match[2]] if match[2] else row
    if not array.square:
        return match[1], column
    low, high = sorted((row, column))
    return match[1], high * (high + 1) // 2 + low


@cache
def _body_indices(n: int) -> dict[str, int]:
    return {link.name: i for i, link in enumerate(papers.tree(n, True).links)}


def count_busiest(array: ProcessorArray, n: int) -> tuple[int, int]:
    """Count M and A as the slides do: the sum over all equations of the operations of the busiest processor.

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    """
    busy: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for node in array_graph(array, n).nodes:
        if UNIT_COSTS.get(node.op) and node.op != "input":
            equation, processor = equation_and_processor(array, n, node.label)
            busy[equation, "M" if node.op in ("mul", "div") else "A"][processor] += 1
    M, A = (sum(max(done.values()) for (_, x), done in busy.items() if x == kind) for kind in "MA")
    return M, A


def array_machine(array: ProcessorArray, n: int) -> Machine:
    """Return the machine model of `array` for `n` joints: a complete graph of processors."""
    return machine(f"complete:{array.processors(n)}").with_costs(cost=UNIT_COSTS)


def schedule_on_array(array: ProcessorArray, n: int) -> Schedule:
    """Schedule every operation as early as possible, on the processor that the slides assign to it.

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    """
    todo = tasks(array_graph(array, n), "node")
    plan = Plan(todo, array_machine(array, n))
    rank = upward_rank(plan)
    order = sorted(range(len(plan)), key=lambda i: (-rank[i], i))
    return Placement(plan).run(order, [equation_and_processor(array, n, task.nodes[0].label)[1] for task in todo])


def schedule_freely(array: ProcessorArray, n: int) -> Schedule:
    """Schedule the operations of `array` for `n` joints, with processors chosen by the general scheduler."""
    return schedule(array_graph(array, n), array_machine(array, n), "auto")


def printed_counts(array: ProcessorArray, n: int) -> tuple[int, int]:
    """Return M and A by the slides' formulas in n and L = ceil(log2 n).

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    """
    row = papers.published()["counts"]["parallel_mass_matrix"][array.key]
    return papers.evaluate_formula(row["M"], n), papers.evaluate_formula(row["A"], n)


def printed_serial_operations(n: int) -> list[int]:
    """Return the printed operations of the serial VCRB for `n` joints: the cell of the slides, and their polynomial.

    For six joints the two contradict each other; for other numbers of joints there is only the polynomial.
    """
    row = papers.published()["counts"]["mass_matrix"]["VCRB"]
    polynomial = int(papers.parse_polynomial(row["M"])(n) + papers.parse_polynomial(row["A"])(n))
    return [*([sum(row[f"n{n}"])] if f"n{n}" in row else []), polynomial]


def serial_rows(n: int) -> list[tuple[str, ...]]:
    """Return the rows of the serial VCRB for `n` joints: as printed, with our count, and by its polynomial."""
    ours = str(serial_operations(n))
    first, *contradicting = printed_serial_operations(n)
    rows = [("serial VCRB", "1", str(first), "1.00", ours, "1.00", "", "", "", "")]
    return rows + [("  its polynomial", "", str(x), *[""] * 7) for x in contradicting]


def tables(n: int = 6) -> list[Table]:
    """Return the comparison for `n` joints and the growth with the number of joints, as tables."""
    return [_comparison_table(n), _growth_table()]


def _comparison_table(n: int) -> Table:
    """Tabulate the slides' counts and those of this package.

    At n = 6 the speed-ups of the slides are the printed ones, from 1199 and 1179 serial steps.
    """
    slides = papers.published()["counts"]["parallel_mass_matrix"]
    printed_serial = printed_serial_operations(n)[-1]
    rows = serial_rows(n)
    for array in ARRAYS:
        printed_steps, ours = sum(printed_counts(array, n)), sum(count_busiest(array, n))
        fixed, free = schedule_on_array(array, n).makespan, schedule_freely(array, n).makespan
        cells = [f"{printed_steps}", f"{slides[array.key]['SP'] if n == 6 else printed_serial / printed_steps:.2f}"]
        for steps in (ours, fixed, free):
            cells += [f"{steps:g}", f"{serial_operations(n) / steps:.2f}"]
        rows.append((array.key, str(array.processors(n)), *cells))
    head = (f"n = {n}", "proc.", "print", "SP", "counted", "SP", "on array", "SP", "freely", "SP")
    caption = (
        "SP: speed-up against the serial VCRB. counted: equation by equation, all wait for the busiest processor.\n"
    )
    caption += "on array: waits for values only. freely: single operations, placed by the scheduler."
    return Table("The last slide: the mass matrix on arrays, steps of one operation", head, rows, range(1, 10), caption)


def _growth_table(sizes: Sequence[int] = (2, 4, 8, 16)) -> Table:
    """Tabulate steps by number of joints, counted as in the slides."""
    rows = []
    for array in ARRAYS:
        rows.append((f"{array.key}, print", *(str(sum(printed_counts(array, n))) for n in sizes)))
        rows.append(("  ours", *(str(sum(count_busiest(array, n))) for n in sizes)))
    rows.append(("serial VCRB, ours", *(str(serial_operations(n)) for n in sizes)))
    return Table("How it grows: steps, counted", ("joints", *map(str, sizes)), rows, range(1, len(sizes) + 1))


def critical_paths() -> Result:
    """Compute the critical paths, and tabulate them with the measured times."""
    paths = {n: {method: critical_path(n, method) for method in ("aba", "dca")} for n in JOINT_COUNTS}
    matrices = {n: f"{mass_matrix_path(n):.0f}" for n in JOINT_COUNTS if n <= MAX_MATRIX_JOINTS}
    rows = [(str(n), *(f"{x:.0f}" for x in paths[n].values()), matrices.get(n, "")) for n in JOINT_COUNTS]
    head = ("joints", "aba", "dca", "mass matrix, vcrb_parallel")
    on_paper = Table("longest path, operations", head, tuple(rows))
    before, last = (paths[b]["dca"] - paths[a]["dca"] for a, b in pairwise(JOINT_COUNTS[-3:]))
    growth = Row("path for twice the joints", "a constant more (O(log n))", last, "operations more", last <= before)
    return Result((growth,), tables=(on_paper, measured_times()))


def critical_path(n: int, method: str) -> float:
    """Return the critical path of forward dynamics of a chain, in operations.

    Parameters
    ----------
    n
        Number of joints.
    method
        Method of forward dynamics, such as "aba".
    """
    return graph(chain(n), "forward_dynamics", method).span()


def mass_matrix_path(n: int) -> float:
    """Return the critical path of the mass matrix of a chain of `n` joints, in operations."""
    return graph(chain(n), "mass_matrix", "vcrb_parallel").span()


def measured_times() -> Table:
    """Tabulate the times measured on a GPU."""
    head = ("joints", "one core", "GPU", "times as fast", "phases", "off by")
    if not MEASUREMENTS_FILE.exists():
        placeholder = ("python -m bench.size_gpu --write", *[""] * (len(head) - 1))
        return Table("one state, measured: not yet on this computer", head, (placeholder,))
    data = json.loads(MEASUREMENTS_FILE.read_text("utf-8"))
    return Table(f"one state, measured: {data['gpu']}", head, tuple(_row(x) for x in data["rows"]))


def _row(x: dict[str, Any]) -> tuple[str, ...]:
    gain = x["one_core_us"] / x["gpu_us"]
    times = f"{x['one_core_us']:.0f} us", f"{x['gpu_us']:.0f} us"
    return f"{x['bodies']:,}", *times, f"{gain:.1f}", str(x["phases"]), f"{x['off']:.0e}"
