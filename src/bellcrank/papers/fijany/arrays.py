"""Fijany's processor arrays: the mass matrix of a chain of n joints on n(n+1)/2 or on n processors.

On n(n+1)/2 processors, PR_ji holds element (j, i) of the matrix; on n processors, processor i holds column i. The
processor on a body's diagonal does the work that belongs to the body. The slides count the operations of the busiest
processor, equation by equation, with a barrier after each equation (`counted`). A schedule waits for values only:
`laid_on_array` keeps every task on the processor of the slides, `laid_freely` lets the general scheduler choose. As in
the slides, an addition costs as much as a multiplication, sines, cosines and messages are free, and speed-ups are
relative to the serial VCRB.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bellcrank.dynamics import METHODS
from bellcrank.dynamics.mass_matrix import by_columns
from bellcrank.graph import Graph, trace
from bellcrank.papers import counts as papers
from bellcrank.papers.results import Result
from bellcrank.scheduling import Machine, Schedule, machine, schedule, tasks
from bellcrank.scheduling.listing import urgency
from bellcrank.scheduling.machines import STEPS
from bellcrank.scheduling.placing import Placement, Plan
from bellcrank.text import Table

ALIKE = {**STEPS, "div": 1.0, "sin": 0.0, "cos": 0.0}
LABEL = re.compile(r"([^(\[]*)(?:\(([^)]*)\))?\[([^\]]*)\]")  # equation, column, row


@dataclass(frozen=True)
class Array:
    """Row of the slides' last table: an algorithm on a processor array."""

    key: str
    function: Callable[..., Any]
    square: bool  # True: n(n+1)/2 processors; False: n

    def processors(self, n: int) -> int:
        """Return the number of processors for `n` joints."""
        return n * (n + 1) // 2 if self.square else n


ARRAYS = (
    Array("VCRB_n2", METHODS["vcrb_parallel"].function("mass_matrix"), True),
    Array("VNEB_n2", METHODS["vneb_parallel"].function("mass_matrix"), True),
    Array("VCRB_n", by_columns.composite_bodies, False),
    Array("VNEB_n", by_columns.newton_euler, False),
)


@cache
def graph(array: Array, n: int) -> Graph:
    """Trace the algorithm of `array` for a chain of `n` joints."""
    form = papers.tree(n, True)
    return trace(array.key, lambda q: {"M": array.function(form, q)}, {"q": (n,)})


@cache
def serial(n: int) -> int:
    """Count the operations of the serial VCRB of this package for `n` joints."""
    form, f = papers.tree(n, True), METHODS["vcrb"].function("mass_matrix")
    return sum(papers.tally(trace("vcrb", lambda q: {"M": f(form, q)}, {"q": (n,)})))


def place(array: Array, n: int, label: str) -> tuple[str, int]:
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
    found = LABEL.fullmatch(label)
    assert found, label
    row = _number(found[3], n)
    column = _number(found[2], n) if found[2] else row
    if not array.square:
        return found[1], column
    low, high = sorted((row, column))
    return found[1], high * (high + 1) // 2 + low


@cache
def _bodies(n: int) -> dict[str, int]:
    return {link.name: i for i, link in enumerate(papers.tree(n, True).links)}


def _number(name: str, n: int) -> int:
    return _bodies(n)[name]


def counted(array: Array, n: int) -> tuple[int, int]:
    """Count M and A as the slides do: the sum over all equations of the operations of the busiest processor.

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    """
    busy: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for node in graph(array, n).nodes:
        if ALIKE.get(node.op) and node.op != "input":
            equation, processor = place(array, n, node.label)
            busy[equation, "M" if node.op in ("mul", "div") else "A"][processor] += 1
    M, A = (sum(max(done.values()) for (_, x), done in busy.items() if x == kind) for kind in "MA")
    return M, A


def on(array: Array, n: int) -> Machine:
    """Return the machine model of `array` for `n` joints: a complete graph of processors."""
    return machine(f"complete:{array.processors(n)}").with_costs(cost=ALIKE)


def laid_on_array(array: Array, n: int) -> Schedule:
    """Schedule every operation as early as possible, on the processor that the slides assign to it.

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    """
    todo = tasks(graph(array, n), "node")
    plan = Plan(todo, on(array, n))
    rank = urgency(plan)
    order = sorted(range(len(plan)), key=lambda i: (-rank[i], i))
    return Placement(plan).run(order, [place(array, n, task.nodes[0].label)[1] for task in todo])


def laid_freely(array: Array, n: int) -> Schedule:
    """Schedule the operations of `array` for `n` joints, with processors chosen by the general scheduler."""
    return schedule(graph(array, n), on(array, n), "auto")


def printed(array: Array, n: int) -> tuple[int, int]:
    """Return M and A by the slides' formulas in n and L = ceil(log2 n).

    Parameters
    ----------
    array
        Processor array.
    n
        Number of joints.
    """
    L, row = math.ceil(math.log2(n)), papers.published()["counts"]["parallel_mass_matrix"][array.key]

    def value(text: str) -> int:
        terms = re.findall(r"([+-]?)\s*(\d+)\s*([nL]?)", text)
        return sum((-1 if sign == "-" else 1) * int(c) * {"n": n, "L": L, "": 1}[x] for sign, c, x in terms)

    return value(row["M"]), value(row["A"])


def tables(n: int = 6) -> list[Table]:
    """Return the comparison for `n` joints and the growth with the number of joints, as tables."""
    return [_compared(n), _growth()]


def _compared(n: int) -> Table:
    """Tabulate the slides' counts and those of this package.

    At n = 6 the speed-ups of the slides are the printed ones, from 1199 and 1179 serial steps.
    """
    counts = papers.published()["counts"]
    theirs, slides = counts["mass_matrix"]["VCRB"], counts["parallel_mass_matrix"]
    said = int(papers.parsed(theirs["M"])(n) + papers.parsed(theirs["A"])(n))
    rows: list[tuple[str, ...]] = [("serial VCRB", "1", str(said), "1.00", str(serial(n)), "1.00", "", "", "", "")]
    for array in ARRAYS:
        print_, ours = sum(printed(array, n)), sum(counted(array, n))
        fixed, free = laid_on_array(array, n).makespan, laid_freely(array, n).makespan
        cells = [f"{print_}", f"{slides[array.key]['SP'] if n == 6 else said / print_:.2f}"]
        for steps in (ours, fixed, free):
            cells += [f"{steps:g}", f"{serial(n) / steps:.2f}"]
        rows.append((array.key, str(array.processors(n)), *cells))
    head = (f"n = {n}", "proc.", "print", "SP", "counted", "SP", "on array", "SP", "freely", "SP")
    below = "SP: speed-up against the serial VCRB. counted: equation by equation, all wait for the busiest processor.\n"
    below += "on array: waits for values only. freely: single operations where the scheduler likes them."
    return Table("The last slide: the mass matrix on arrays, steps of one operation", head, rows, range(1, 10), below)


def _growth(sizes: Sequence[int] = (2, 4, 8, 16)) -> Table:
    """Tabulate steps by number of joints, counted as in the slides."""
    rows = []
    for array in ARRAYS:
        rows.append((f"{array.key}, print", *(str(sum(printed(array, n))) for n in sizes)))
        rows.append(("  ours", *(str(sum(counted(array, n))) for n in sizes)))
    rows.append(("serial VCRB, ours", *(str(serial(n)) for n in sizes)))
    return Table("How it grows: steps, counted", ("joints", *map(str, sizes)), rows, range(1, len(sizes) + 1))


FIGURES: Mapping[str, Callable[[], str]] = {}


def run() -> Result:
    """Return all tables, for `bellcrank papers`."""
    return Result(tables=tuple(tables()), drawings=FIGURES)
