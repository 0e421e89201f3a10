"""Recursive elimination against a factorised mass matrix, for open and closed loops (nikravesh1989, section 4).

Figure 6 of the paper has CPU times by number of joints: (a) of a highly parallel system, whose joints are all on one
body, and (b), (c), (d) of serial chains with revolute, prismatic and spherical joints. For a closed loop the text says
that the breakpoint is approximately doubled, because the loop is cut: "approximately twelve or more bodies".

Here operations of one evaluation of the accelerations are counted. Both methods solve the tree; with a loop they solve
it once more for each constraint of the cut joint (eqs 13 and 14). The paper does not describe its systems. The open
ones have no special values here. The closed loop is a ring of equal rods in a plane, beside the same rods cut open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

from bellcrank.model import Mechanism
from bellcrank.papers.nikravesh import break_even, count_operations
from bellcrank.papers.operation_counts import published
from bellcrank.text_table import Table
from bellcrank.view.curves import line_chart
from bellcrank.zoo import ring, tree
from bellcrank.zoo.families import general_chain

DIRECT, RECURSIVE = "joint_coordinates", "joint_coordinates_recursive"
LOOP_SIZES = range(4, 15)


@dataclass(frozen=True)
class System:
    """A family of systems of section 4: a mechanism for each number of joints or bodies."""

    title: str
    make: Callable[[int], Mechanism]
    sizes: range
    printed: str  # breakpoint of the paper
    panel: str = ""  # of figure 6


def star(n: int) -> Mechanism:
    """Return `n` bodies with revolute joints on one base: the highly parallel system of figure 5(a)."""
    return tree(n, branching=n, twist="general")


def open_ring(n: int) -> Mechanism:
    """Return the tree of the ring of `n` rods, cut at its last hinge."""
    return replace(ring(n), loops=())


def systems() -> list[System]:
    """Return the systems, those of figure 6 first."""
    joints = published()["dataflow"]["breakeven_joints"]
    serial = [
        System(f"chain, {kind}", partial(general_chain, joints=kind), sizes, str(joints[kind]), panel)
        for kind, panel, sizes in (
            ("revolute", "b", range(2, 11)), ("prismatic", "c", range(2, 12)), ("spherical", "d", range(2, 8)),
        )
    ]  # fmt: skip
    return [
        System("all on one body, revolute", star, range(2, 11), "none", "a"),
        *serial,
        System("ring of equal rods, cut open", open_ring, LOOP_SIZES, ""),
        System("ring of equal rods", ring, LOOP_SIZES, f"{joints['closed_loop']}: twelve"),
    ]


@cache
def counts(title: str) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return the operations of both methods by number of joints, direct first, for the system called `title`."""
    system = next(x for x in systems() if x.title == title)
    direct, recursive = (count_operations(system.make, system.sizes, method) for method in (DIRECT, RECURSIVE))
    return direct, recursive


def crossing(system: System) -> int | None:
    """Return the least number of joints from which on the recursive method needs fewer operations in a `system`."""
    direct, recursive = counts(system.title)
    return break_even(recursive, direct)


def tables() -> list[Table]:
    """Tabulate the breakpoints, and the counts of the rings by number of bodies."""
    every = systems()
    rows = []
    for system in every:
        found = crossing(system)
        last = system.sizes[-1]
        direct, recursive = counts(system.title)
        ours = str(found) if found else f"none up to {last}"
        ratio = f"{direct[last] / recursive[last]:.2f} at {last}"
        rows.append((system.panel, system.title, system.printed, ours, ratio))
    head = ("figure 6", "system", "print", "here", "direct / recursive")
    below = "Print: CPU times of a program of 1989. Here: operations; from this number on recursion needs fewer."
    breakpoints = Table("Breakpoints: recursion is cheaper from this number of joints on", head, rows, (), below)
    rings = [x for x in every if "ring" in x.title]
    return [breakpoints, *(_ring_table(x) for x in rings)]


def _ring_table(system: System) -> Table:
    direct, recursive = counts(system.title)
    rows = [(str(n), str(direct[n]), str(recursive[n]), f"{direct[n] / recursive[n]:.2f}") for n in system.sizes]
    head = ("bodies", "factorised", "recursive", "ratio")
    return Table(f"{system.title}: operations for the accelerations", head, rows, range(4))


def figure_6(panel: str) -> str:
    """Plot one `panel` of figure 6 as SVG: operations by number of joints."""
    system = next(x for x in systems() if x.panel == panel)
    direct, recursive = counts(system.title)
    series = {"factorised": direct, "recursive": recursive}
    curves = {name: {float(n): float(y) for n, y in line.items()} for name, line in series.items()}
    return line_chart(f"({panel}) {system.title}", "joints", "operations", curves)


FIGURES: Mapping[str, Callable[[], str]] = {
    f"nikravesh1989_figure_6{panel}.svg": partial(figure_6, panel) for panel in "abcd"
}
