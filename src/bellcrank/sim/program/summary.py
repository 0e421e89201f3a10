"""Summaries of runs, such as "max(elbow.tau)" or "integral(effort)", computed during the run (docs/simulation.md).

Extremes are cells in the memory of the run, updated at the end of every step by a graph. Integrals are elements of the
state, so the integrator computes them with its order. The loops of CPU and GPU need no special code for either, and the
memory of a run does not grow with its steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.scalar import Scalar, where
from bellcrank.sim.program.system_graphs import Dynamics, Integral, sensitivity_name
from bellcrank.sim.run_arguments import as_tuple, check_known, check_unique_names

Array = np.ndarray[Any, Any]
# Initial value of a cell.
CELL_START_VALUES = {"min": np.inf, "max": -np.inf, "t_min": np.nan, "t_max": np.nan, "final": np.nan}
INTEGRAL_POWERS = {"integral": 1, "mean": 1, "rms": 2}  # power of the column that is integrated over time
SUMMARY_KINDS = (*CELL_START_VALUES, *INTEGRAL_POWERS)


@dataclass(frozen=True)
class SummaryItem:
    """One requested summary: a kind, such as "max", and a column."""

    kind: str
    column: str

    @property
    def name(self) -> str:
        """Return its name, as in "max(elbow.tau)"."""
        return f"{self.kind}({self.column})"

    @property
    def integral(self) -> Integral:
        """Return the integral that it needs."""
        return Integral(self.column, INTEGRAL_POWERS[self.kind])

    def unit(self, column_unit: str) -> str:
        """Return its unit, given that of the column (`column_unit`)."""
        if self.kind.startswith("t_"):
            return "s"
        return f"{column_unit} s".strip() if self.kind == "integral" else column_unit


@dataclass(frozen=True, eq=False)
class Summary:
    """The requested summaries, and the cells and integrals that a run needs for them."""

    items: tuple[SummaryItem, ...] = ()
    cells: tuple[SummaryItem, ...] = ()
    integrals: tuple[Integral, ...] = ()
    start_values: tuple[float, ...] = ()  # initial values of the cells

    def column(self, item: SummaryItem, t: Array, cells: Array, y: Mapping[str, Array]) -> Array:
        """Return the value of a summary for each run.

        Parameters
        ----------
        item
            The summary.
        t
            Times at the end of the runs.
        cells
            Cells, (n, runs).
        y
            Elements of the final states, by name.
        """
        if item.kind in CELL_START_VALUES:
            values = cells[self.cells.index(item)]
            # Where a cell was never changed, the column had no value, or only NaN.
            return np.where(values == CELL_START_VALUES[item.kind], np.nan, values)
        total = y[item.integral.name]
        if item.kind == "integral":
            return total
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(t > 0.0, total / t, np.nan)
        return np.sqrt(mean) if item.kind == "rms" else mean


EMPTY_SUMMARY = Summary()


class SummaryGraph:
    """The graph that evaluates the columns of a summary, for one Dynamics."""

    def __init__(self, summary: Summary, dynamics: Dynamics) -> None:
        self.dynamics, self.cells = dynamics, summary.cells
        names = list(dict.fromkeys(c.column for c in self.cells))
        plain_columns = list(dict.fromkeys(_split_derivative(name, dynamics.wrt)[0] for name in names))
        self.graph = dynamics.columns_graph(plain_columns) if plain_columns else None
        self.column_places: dict[str, int] = {}
        for name in names:
            column, j = _split_derivative(name, dynamics.wrt)
            self.column_places[name] = j * len(plain_columns) + plain_columns.index(column)

    def updated(self, memory: Sequence[Scalar], t: Scalar, y: Sequence[Scalar], u: Any) -> list[Scalar]:
        """Return the cells updated with a state. A comparison with NaN leaves a cell unchanged.

        Parameters
        ----------
        memory
            Cells.
        t, y, u
            Time, state and inputs.
        """
        if self.graph is None:
            return []
        z = self.dynamics.call(self.graph, t, y, u)["z"]
        old = dict(zip(self.cells, memory, strict=True))
        new = []
        for cell, before in old.items():
            present = z[self.column_places[cell.column]]
            extreme = cell.kind.removeprefix("t_")
            best = old[SummaryItem(extreme, cell.column)]
            better = present < best if extreme == "min" else present > best
            value = t if cell.kind != extreme else present
            new.append(present if cell.kind == "final" else where(better, value, before))
        return new

    def updated_over_step(
        self, memory: Sequence[Scalar], t: Scalar, y: Sequence[Scalar], t_end: Scalar, y_end: Sequence[Scalar], u: Any
    ) -> list[Scalar]:
        """Return the cells after a step from (t, y) to (then, end).

        Inputs may have jumped at t, so the column is also evaluated there with the inputs of this step.

        Parameters
        ----------
        memory
            Cells.
        t, y
            Time and state before the step.
        t_end, y_end
            Time and state after the step.
        u
            Inputs during the step.
        """
        if self.graph is not None and self._depends_on_inputs:
            memory = self.updated(memory, t, y, u)
        return self.updated(memory, t_end, y_end, u)

    @cached_property
    def _depends_on_inputs(self) -> bool:
        """Return True if the columns depend on the inputs."""
        return self.graph is not None and any(n.op == "input" and n.args[0] == "u" for n in self.graph.nodes)


def parse_summary(texts: Sequence[str], columns: Sequence[str], wrt: Sequence[str]) -> Summary:
    """Return the Summary of requested texts; a * in the name of a column matches any characters.

    Parameters
    ----------
    texts
        Texts such as "max(elbow.tau)".
    columns
        Names of all columns.
    wrt
        Names with respect to which columns are differentiated.
    """
    derivatives = [sensitivity_name(name, w) for w in wrt for name in columns]
    items = []
    for text in as_tuple("summary", texts, 'texts, as in "max(elbow.tau)"'):
        match = re.fullmatch(r"(\w+)\((.*)\)", text) if isinstance(text, str) else None
        if match is None:
            raise InputError(
                f'summary: {text!r} cannot be read; expected KIND(COLUMN), as in "max({columns[0]})". '
                f"Kinds are {', '.join(SUMMARY_KINDS)}."
            )
        kind, name = match[1], match[2]
        check_known(f'summary "{text}"', "kind", [kind], SUMMARY_KINDS)
        if kind in INTEGRAL_POWERS and name in derivatives:
            raise InputError(
                f'summary "{text}": give "{kind}" of the column itself; with sensitivities its derivatives are '
                "included."
            )
        items += [SummaryItem(kind, column) for column in _matching_columns(text, name, [*columns, *derivatives])]
    check_unique_names("summary", [a.name for a in items])
    # A cell for a time needs the cell of the extreme that occurs at this time.
    extremes = [a for a in items if a.kind in CELL_START_VALUES]
    needed = [x for a in extremes for x in (SummaryItem(a.kind.removeprefix("t_"), a.column), a)]
    cells = tuple(dict.fromkeys(needed))
    integrals = tuple(dict.fromkeys(a.integral for a in items if a.kind in INTEGRAL_POWERS))
    return Summary(tuple(items), cells, integrals, tuple(CELL_START_VALUES[c.kind] for c in cells))


def _matching_columns(text: str, name: str, columns: Sequence[str]) -> list[str]:
    """Return the columns with this name, or that match it."""
    if name in columns:
        return [name]
    pattern = ".*".join(map(re.escape, name.split("*")))
    matching = [c for c in columns if "*" in name and re.fullmatch(pattern, c) and not c.startswith("d(")]
    if not matching:
        raise InputError(f'summary "{text}": {unknown("column", name, columns)}')
    return matching


def _split_derivative(name: str, wrt: Sequence[str]) -> tuple[str, int]:
    """Return the plain column, and the index from 1 in `wrt` of its derivative; 0 for none."""
    for j, w in enumerate(wrt, 1):
        tail = f")/d({w})"
        if name.startswith("d(") and name.endswith(tail):
            return name[2 : -len(tail)], j
    return name, 0
