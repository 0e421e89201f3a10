"""Experiments and their results: printed values of a paper beside computed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bellcrank.record import Record
from bellcrank.text_table import Table


@dataclass(frozen=True)
class Row:
    """One quantity, as printed in a paper and as computed here.

    Parameters
    ----------
    what : str
        Name of the quantity; the key of the row in its `Result`.
    printed : str
        Value or statement in the paper; empty if the paper has none.
    ours : float or str
        Computed value.
    unit : str, default ""
        Unit of `ours`.
    agrees : bool or None, default None
        Agreement of both; None where the paper has no value.
    """

    what: str
    printed: str
    ours: float | str
    unit: str = ""
    agrees: bool | None = None

    @property
    def shown(self) -> str:
        """Computed value with its unit, rounded to two digits: further digits depend on the computer."""
        value = self.ours if isinstance(self.ours, str) else f"{self.ours:.2g}"
        if not isinstance(self.ours, str) and 10.0 <= abs(self.ours) < 1e4:
            value = f"{float(value):.0f}"  # 340 and not 3.4e+02
        return f"{value} {self.unit}".strip()

    @property
    def verdict(self) -> str:
        """Agreement with the printed value as a word: "agrees", "differs" or empty."""
        return {None: "", True: "agrees", False: "differs"}[self.agrees]


@dataclass(frozen=True, eq=False)
class Result:
    """Result of an experiment: rows or whole tables to compare, recorded runs, and figures.

    Parameters
    ----------
    rows : tuple of Row, default ()
        Quantities to compare.
    records : mapping of str to Record, optional
        Simulation runs by name.
    figures : mapping of str to str, optional
        SVG text by name.
    tables : tuple of Table, default ()
        Whole tables to compare.
    drawings : mapping of str to callable, optional
        Functions without arguments that return the text of a figure or page, by file name; called on demand.
    """

    rows: tuple[Row, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)  # SVG by name
    tables: tuple[Table, ...] = ()
    drawings: Mapping[str, Callable[[], str]] = field(default_factory=dict)  # by file name; called on demand

    def __getitem__(self, what: str) -> Row:
        return next(row for row in self.rows if row.what == what)


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper, and the module that reproduces it.

    Parameters
    ----------
    name : str
        Name on the command line.
    paper : str
        First author and year.
    section : str
        Section or sections of the paper.
    title : str
        Subject of the experiment.
    file : str
        Module inside `bellcrank.papers`, such as "wong.puma600": with a function `run` or, for an experiment of tables,
        with a function `tables` and FIGURES.
    """

    name: str
    paper: str
    section: str
    title: str
    file: str  # module inside bellcrank.papers

    def run(self) -> Result:
        """Run the experiment and return its results.

        Returns
        -------
        Result
            Rows, tables, records and figures.
        """
        module: Any = import_module(f"bellcrank.papers.{self.file}")
        if not hasattr(module, "run"):
            return Result(tables=tuple(module.tables()), drawings=getattr(module, "FIGURES", {}))
        result: Result = module.run()
        return result


def is_near(ours: float, printed: float, share: float = 0.2) -> bool:
    """Return whether a value agrees with a one-digit number read from a plot, in sign and within a relative tolerance.

    Parameters
    ----------
    ours
        Computed value.
    printed
        Value read from the plot.
    share
        Tolerance as a fraction of `printed`.
    """
    return abs(ours - printed) <= share * abs(printed)


def below_bound(x: float, bound: float) -> float | str:
    """Return "below `bound`" if |`x`| is less than `bound`, else `x`: small rounding errors depend on the computer."""
    return f"below {bound:g}" if abs(x) < bound else x


def bound_row(what: str, x: float, bound: float, unit: str = "", printed: str = "") -> Row:
    """Return the row of a small error.

    Parameters
    ----------
    what
        Name of the quantity.
    x
        The error.
    bound
        Bound, below which it agrees with the paper.
    unit
        Unit of the error.
    printed
        Statement in the paper; empty if it has none.
    """
    return Row(what, printed, below_bound(x, bound), unit, abs(x) < bound if printed else None)
