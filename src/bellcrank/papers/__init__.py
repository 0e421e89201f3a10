"""Numerical experiments of five papers, reproduced: `bellcrank papers` lists them, `bellcrank papers NAME` runs one.

Only the command line imports this package. The import registers two additions with build/schedules.py: the machine
"wong", which has its own program, and the strategies of Schäfer and Schiehlen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from bellcrank.build.schedules import CUTS, PROGRAMS, MethodSchedule
from bellcrank.errors import InputError, check_known
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.scheduling import Tasks
from bellcrank.text_table import Table

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Row", "experiment"]


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
        Section or sections of the paper; "slides" for a paper without sections.
    title : str
        Subject of the experiment.
    file : str
        Module inside `bellcrank.papers` and its function, such as "saha:run_planar_arm". The function returns a Result,
        or tables; the module of tables may have FIGURES.
    """

    name: str
    paper: str
    section: str
    title: str
    file: str  # module inside bellcrank.papers, and its function

    @property
    def source(self) -> str:
        """Paper and section, as a heading."""
        numbered = self.section[0].isdigit()
        return f"{self.paper}, {'section ' * numbered}{self.section}"

    def run(self) -> Result:
        """Run the experiment and return its results.

        Returns
        -------
        Result
            Rows, tables, records and figures.
        """
        name, _, function = self.file.partition(":")
        module = import_module(f"bellcrank.papers.{name}")
        results: Result | list[Table] = getattr(module, function)()
        if isinstance(results, Result):
            return results
        return Result(tables=tuple(results), drawings=getattr(module, "FIGURES", {}))


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
    is_below = abs(x) < bound  # small rounding errors depend on the computer, and are not shown
    return Row(what, printed, f"below {bound:g}" if is_below else x, unit, is_below if printed else None)


# Ordered by paper: name, section, title, and the function inside bellcrank.papers.
TABLE = {
    "Nikravesh 1989": (
        ("nikravesh1989", "5", "Upper bound of the speed-up on any machine", "nikravesh:tables"),
        (
            "break_even",
            "4",
            "Recursive or factorised, figure 6, and closed loops",
            "nikravesh_recursion:tables",
        ),
        (
            "coordinates",
            "5",
            "Coordinates with a short critical path",
            "coordinates:tables",
        ),
        ("nikravesh-7", "7", "Four-bar on a slide, absolute and joint coordinates", "nikravesh_motion:run_fourbar"),
    ),
    "Fijany 1989": (
        ("fijany1989", "slides", "The mass matrix on n and on n (n + 1)/2 processors", "fijany:tables"),
        (
            "fijany_arrays",
            "slides",
            "Layouts, clocks and frames of processor arrays",
            "fijany_layouts:tables",
        ),
        ("critical_path", "slides", "O(log n): critical path, and times on one GPU", "fijany:critical_paths"),
    ),
    "Wong 1991": (
        ("wong1991", "4 to 6", "The mesh of transputers, and the excavator on it", "wong.comparison:tables"),
        ("wong_solvers", "4.5", "Systolic solvers of linear equations, cell by cell", "wong.solver_comparison:tables"),
        ("wong_rivals", "4.7", "Rival algorithms as programs, with and without messages", "wong.rival_times:tables"),
        ("executed", "5.4", "Programs of all processors: predicted and executed", "executed_schedules:tables"),
        ("wong_counts", "2.2, 3", "Operations on one processor, figure 3.11", "wong.serial_counts:tables"),
        ("wong_simulator", "5.4", "The simulator, whole: state, control and display", "wong.simulator_tables:run"),
        ("wong-3.5.1", "3.5.1", "PUMA 600, open-loop inverse dynamics", "wong.experiments:run_puma600"),
        ("wong-3.5.2", "3.5.2", "Human torso, open-loop inverse dynamics", "wong.experiments:run_torso"),
        ("wong_feasible", "5.5.2", "Excavator: the numbers that are not printed", "wong.feasible_set:tables"),
        ("wong-5.5.2", "5.5.2", "Excavator in JOINT and RESOLVED mode", "wong.experiments:run_excavator"),
    ),
    "Schäfer 1992": (
        ("schaefer1992", "3, 5", "Three strategies; the Stanford arm on three transputers", "schaefer:tables"),
    ),
    "Saha 2001": (
        ("saha-smoothness", "1", "Rounding noise of accelerations, by method", "smoothness:run"),
        ("saha-planar", "4", "Planar arm against its explicit equations", "saha:run_planar_arm"),
        ("saha-stanford", "4", "Stanford arm, free fall and forced", "saha:run_stanford"),
        ("saha-puma", "4", "PUMA robot, free fall and forced", "saha:run_puma"),
    ),
}
EXPERIMENTS = {name: Experiment(name, paper, *row) for paper, rows in TABLE.items() for name, *row in rows}


def experiment(name: str) -> Experiment:
    """Return the experiment called `name`.

    Parameters
    ----------
    name : str
        A key of `EXPERIMENTS`, such as "wong-3.5.1".

    Returns
    -------
    Experiment
        The experiment; its method `run` computes the results.

    Raises
    ------
    InputError
        If there is no experiment of that name.
    """
    check_known("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


# -- additions to build/schedules.py


def _wong_schedule(m: Mechanism, numbers: str, kind: str) -> MethodSchedule:
    from bellcrank.papers.wong import wong_mesh

    if numbers:
        raise InputError(
            f'machine "wong:{numbers}": Wong\'s mesh always has one column per joint; leave out the numbers.'
        )
    return MethodSchedule("Wong's own program", wong_mesh(m, kind or "t800"))


def _strategy_tasks(m: Mechanism, names: Sequence[str], control: str) -> list[Tasks]:
    from bellcrank.papers.schaefer import SHARING_MODES, tasks_of

    return [tasks_of(m, *names, control=control, shared=shared) for shared in SHARING_MODES]


PROGRAMS["wong"] = _wong_schedule
CUTS |= dict.fromkeys(("subsystems", "modules", "factorisation"), _strategy_tasks)
