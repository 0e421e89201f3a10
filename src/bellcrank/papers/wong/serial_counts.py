"""Tables 2.1, 3.2, 3.3 and 3.5 of wong1991, and figure 3.11: serial operation counts by number of joints.

The tables of the thesis cover a few numbers of joints each; the polynomials that it prints cover all. A cell shows the
printed number where there is one, with the polynomial's value in square brackets where that differs, and otherwise the
polynomial's value. Below it is the count of the same method in this package, traced on the general chain.

As in figure 3.11, methods are compared by M + A/2, the time on a transputer in us: a multiplication 1, an addition 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from bellcrank.errors import InputError
from bellcrank.papers.operation_counts import PublishedCount, compare_counts, parse_polynomial, published
from bellcrank.papers.wong.atom_programs import Cost
from bellcrank.text_table import Table
from bellcrank.view.curves import line_chart

ALL_INPUTS = ("q", "v", "tau")
# The functions of this package that do the work of a printed row; their counts are added.
TRACED: Mapping[str, Sequence[tuple[str, str, tuple[str, ...]]]] = {
    "forward_dynamics.wong": [("ness", "forward_dynamics", ALL_INPUTS)],
    "forward_dynamics.walker_orin_wong": [("walker_orin", "forward_dynamics", ALL_INPUTS)],
    "forward_dynamics.angeles": [("angeles", "forward_dynamics", ALL_INPUTS)],
    "forward_dynamics.brandl": [("aba", "forward_dynamics", ALL_INPUTS)],
    "forward_dynamics.featherstone": [("featherstone", "accelerations", ("q", "phi"))],
    "mass_matrix_and_force_vector.bae": [("bae_hwang", "mass_matrix", ("q",)), ("rnea", "bias", ("q", "v"))],
    "wong_parts.inertia_matrix": [("ness", "mass_matrix", ("q",))],
    "wong_parts.force_vector": [("ness", "bias", ("q", "v"))],
    "angeles_parts.inertia_matrix": [("angeles", "mass_matrix", ("q",))],
    "angeles_parts.force_vector": [("angeles", "bias", ("q", "v"))],
    "mass_matrix.walker": [("walker_orin", "mass_matrix", ("q",))],
    "mass_matrix.VCRB": [("vcrb", "mass_matrix", ("q",))],
    "mass_matrix.lilly_I": [("ness", "mass_matrix", ("q",))],
    "mass_matrix.lilly_III": [("crba", "mass_matrix", ("q",))],
    "force_vector.walker": [("rnea", "bias", ("q", "v"))],
    "force_vector.he": [("rnea", "bias", ("q", "v"))],
}
# Functions whose operations are shared with the row's function and counted elsewhere.
SHARED = {"wong_parts.force_vector": "mass_matrix"}
DEFAULT_SIZES = range(2, 17)
MIN_JOINTS, MAX_JOINTS = 2, 1000
FIGURE_LETTERS = {"Angeles": "A", "Walker": "W", "Brandl": "B", "Proposed": "P"}


@dataclass(frozen=True)
class SerialRow:
    """One algorithm of a table: its printed cells, its polynomials, and the count of this package."""

    name: str
    count: str  # table and key of the polynomials in published.toml
    cells: Mapping[int, Cost]  # printed, by number of joints
    lacks: str = ""  # part of the work that the count leaves out

    def polynomial(self, n: int) -> Cost:
        """Evaluate the printed polynomials for `n` joints."""
        table, _, key = self.count.partition(".")
        row = published()["counts"][table][key]
        return Cost(int(parse_polynomial(row["M"])(n)), int(parse_polynomial(row["A"])(n)))

    def printed(self, n: int) -> Cost:
        """Return the printed cell for `n` joints, or the polynomials where the table has no cell."""
        return self.cells.get(n) or self.polynomial(n)

    @property
    def sources(self) -> list[PublishedCount]:
        """Functions of this package that do the same work."""
        table, _, key = self.count.partition(".")
        given = SHARED.get(self.count, "")
        return [PublishedCount(table, key, *function, given) for function in TRACED[self.count]]

    @property
    def method(self) -> str:
        """Methods of this package that do the same work, as text."""
        return "+".join(source.method for source in self.sources)

    def traced(self, n: int) -> Cost:
        """Return the count of this package for `n` joints: traced, or by the polynomial that every trace fits."""
        total = Cost(0, 0)
        for source in self.sources:
            comparison = compare_counts(source)
            M, A = comparison.counts.get(n) or (int(comparison.M(n)), int(comparison.A(n)))
            total = total + Cost(M, A)
        return total

    def cell(self, n: int) -> str:
        """Return the printed cell for `n` joints as text, with the polynomial's value in brackets where it differs."""
        printed, formula = self.printed(n), self.polynomial(n)
        parts = zip((printed.M, printed.A), (formula.M, formula.A), strict=True)
        return " + ".join(f"{x}" if x == y else f"{x} [{y}]" for x, y in parts)


def serial_rows(table: str) -> list[SerialRow]:
    """Return the algorithms of a `table` of the thesis, such as "3.2", in its order."""
    data = published()["serial_tables"][table]
    rows = {name: row for name, row in data.items() if name not in ("what", "sizes")}
    return [
        SerialRow(
            name,
            row["count"],
            {n: Cost(*cell) for n, cell in zip(data["sizes"], row.get("cells", ()), strict=bool(row.get("cells")))},
            row.get("lacks", ""),
        )
        for name, row in rows.items()
    ]


def contradictions(table: str) -> list[tuple[str, int, Cost, Cost]]:
    """Return (algorithm, n, printed cell, polynomial) of each cell of a `table` that contradicts its polynomial."""
    cells = ((row, n, cell) for row in serial_rows(table) for n, cell in row.cells.items())
    return [(row.name, n, cell, row.polynomial(n)) for row, n, cell in cells if cell != row.polynomial(n)]


def cheapest(rows: Iterable[SerialRow], n: int, traced: bool = False) -> str:
    """Return the name of the algorithm with the least M + A/2 for `n` joints; of ours, the method's name.

    Parameters
    ----------
    rows
        Algorithms; those that leave out a part of the work do not compete.
    n
        Number of joints.
    traced
        Compare the counts of this package instead of the printed ones.
    """
    complete = [row for row in rows if not row.lacks]
    if traced:
        return min(complete, key=lambda row: row.traced(n).time(1.0, 0.5)).method
    return min(complete, key=lambda row: row.printed(n).time(1.0, 0.5)).name


def parse_sizes(text: str) -> range:
    """Return the numbers of joints in a `text` such as "6" or "2..16"."""
    first, dots, last = text.partition("..")
    numbers = [first, last if dots else first]
    if all(x.strip().isdecimal() for x in numbers):
        low, high = map(int, numbers)
        if MIN_JOINTS <= low <= high <= MAX_JOINTS:
            return range(low, high + 1)
    raise InputError(
        f'--n {text}: expected a number of joints or a range, such as "6" or "2..16", '
        f"from {MIN_JOINTS} to {MAX_JOINTS}."
    )


def tables(sizes: Sequence[int] = DEFAULT_SIZES) -> list[Table]:
    """Return all tables for the numbers of joints in `sizes`, and who needs least."""
    names = published()["serial_tables"]
    return [*(_count_table(name, sizes) for name in names), _figure_table(sizes), _winner_table(sizes)]


def _count_table(table: str, sizes: Sequence[int]) -> Table:
    data, rows = published()["serial_tables"][table], serial_rows(table)
    lines: list[tuple[str, ...]] = []
    for n in sizes:
        lines.append((str(n), "print", *(row.cell(n) for row in rows), cheapest(rows, n)))
        ours = [row.traced(n) for row in rows]
        lines.append(("", "here", *(f"{x.M} + {x.A}" for x in ours), cheapest(rows, n, traced=True)))
    here = ", ".join(f"{row.name} by {row.method}" for row in rows)
    lacking = "".join(f" {row.name} lacks {row.lacks} and does not compete." for row in rows if row.lacks)
    caption = f"M + A. {_cells_note(data['sizes'])}\nHere: {here}.{lacking}"
    head = ("n", "", *(row.name for row in rows), "least M + A/2")
    title = f"Table {table}: {data['what']}, one processor"
    return Table(title, head, lines, (0, *range(2, 2 + len(rows))), caption)


def _cells_note(sizes: Sequence[int]) -> str:
    if not sizes:
        return "The thesis prints polynomials only."
    span = f"n = {sizes[0]} to {sizes[-1]}"
    return f"The thesis prints cells for {span}, and polynomials. [ ]: the polynomial, where a cell contradicts it."


def figure_3_11(sizes: Sequence[int] = DEFAULT_SIZES) -> dict[str, dict[float, float]]:
    """Return the curves of figure 3.11 by name: us by number of joints in `sizes`, printed and of this package."""
    curves: dict[str, dict[float, float]] = {}
    for row in serial_rows("3.5"):
        curves[f"{FIGURE_LETTERS[row.name]} {row.name}"] = {float(n): row.printed(n).time(1.0, 0.5) for n in sizes}
    for row in serial_rows("3.5"):
        curves[f"{row.method}, here"] = {float(n): row.traced(n).time(1.0, 0.5) for n in sizes}
    return curves


def _figure_table(sizes: Sequence[int]) -> Table:
    curves = figure_3_11(sizes)
    rows = [(str(n), *(f"{line[float(n)]:g}" for line in curves.values())) for n in sizes]
    title = "Figure 3.11: forward dynamics, us (a multiplication 1, an addition 0.5)"
    below = "Walker's line has a step after n = 12: the cells of table 3.5 are less than the polynomial of table 3.1."
    return Table(title, ("n", *curves), rows, range(1 + len(curves)), below)


def _winner_table(sizes: Sequence[int]) -> Table:
    rows = []
    for table, data in published()["serial_tables"].items():
        algorithms = serial_rows(table)
        for source, traced in (("print", False), ("here", True)):
            names = [(n, cheapest(algorithms, n, traced)) for n in sizes]
            rows.append((f"{table} {data['what']}", source, _ranges(names)))
    return Table("Who needs the least, by M + A/2", ("table", "", "least"), rows)


def _ranges(names: Sequence[tuple[int, str]]) -> str:
    """Describe who is the least for which n: "Brandl for 3 to 6, Walker for 7"."""
    parts = []
    for name, group in groupby(names, key=lambda pair: pair[1]):
        sizes = [n for n, _ in group]
        parts.append(f"{name} for {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else ""))
    return ", ".join(parts)


def _draw_figure() -> str:
    title = "Forward dynamics of a chain on one processor (Wong's fig. 3.11)"
    return line_chart(title, "joints", "us", figure_3_11(range(3, 13)))


FIGURES: Mapping[str, Callable[[], str]] = {"wong1991_figure_3_11.svg": _draw_figure}
