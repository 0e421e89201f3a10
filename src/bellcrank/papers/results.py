"""What an experiment is: a run of a paper done again, with what the paper prints beside what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from bellcrank.record import Record
from bellcrank.text import Table


@dataclass(frozen=True)
class Row:
    """One thing that can be compared. agrees is None where the paper says nothing about it."""

    what: str
    printed: str
    ours: float | str
    unit: str = ""
    agrees: bool | None = None

    @property
    def shown(self) -> str:
        """Ours with two digits: more would be the computer's and not the experiment's."""
        value = self.ours if isinstance(self.ours, str) else f"{self.ours:.2g}"
        if not isinstance(self.ours, str) and 10.0 <= abs(self.ours) < 1e4:
            value = f"{float(value):.0f}"  # 340 and not 3.4e+02
        return f"{value} {self.unit}".strip()

    @property
    def verdict(self) -> str:
        """Whether ours agrees with what is printed."""
        return {None: "", True: "agrees", False: "differs"}[self.agrees]


@dataclass(frozen=True, eq=False)
class Result:
    """What came out: rows to compare, or whole tables; the runs; and the figures."""

    rows: tuple[Row, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)  # SVG by name
    tables: tuple[Table, ...] = ()
    drawings: Mapping[str, Callable[[], str]] = field(default_factory=dict)  # by file: figures and pages made on demand

    def __getitem__(self, what: str) -> Row:
        return next(row for row in self.rows if row.what == what)


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: its name, paper, section, what it is, and the file that does it."""

    name: str
    paper: str
    section: str
    title: str
    file: str  # of papers/, with a function `run`

    def run(self) -> Result:
        """Does it, and gives its results."""
        found: Result = import_module(f"bellcrank.papers.{self.file}").run()
        return found


def near(ours: float, printed: float, share: float = 0.2) -> bool:
    """Whether a number of one digit, read off a plot, is this one: same sign, and within a fifth of it."""
    return abs(ours - printed) <= share * abs(printed)


def below(x: float, bound: float) -> float | str:
    """For what rounding decides, and every computer rounds a little differently: that it is small, not how small."""
    return f"below {bound:g}" if abs(x) < bound else x
