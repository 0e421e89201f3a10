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
from bellcrank.sim.arguments import listed, unique
from bellcrank.sim.dynamics import Dynamics, Integral, derivative

Array = np.ndarray[Any, Any]
# Initial value of a cell.
CELLS = {"min": np.inf, "max": -np.inf, "t_min": np.nan, "t_max": np.nan, "final": np.nan}
POWERS = {"integral": 1, "mean": 1, "rms": 2}  # power of the column that is integrated over time
KINDS = (*CELLS, *POWERS)


@dataclass(frozen=True)
class Asked:
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
        return Integral(self.column, POWERS[self.kind])

    def unit(self, of_column: str) -> str:
        """Return its unit, given that of the column (`of_column`)."""
        if self.kind.startswith("t_"):
            return "s"
        return f"{of_column} s".strip() if self.kind == "integral" else of_column


@dataclass(frozen=True, eq=False)
class Summary:
    """The requested summaries, and the cells and integrals that a run needs for them."""

    asked: tuple[Asked, ...] = ()
    cells: tuple[Asked, ...] = ()
    integrals: tuple[Integral, ...] = ()
    blank: tuple[float, ...] = ()  # initial values of the cells

    def column(self, asked: Asked, t: Array, cells: Array, y: Mapping[str, Array]) -> Array:
        """Return the value of a summary for each run.

        Parameters
        ----------
        asked
            The summary.
        t
            Times at the end of the runs.
        cells
            Cells, (n, runs).
        y
            Elements of the final states, by name.
        """
        if asked.kind in CELLS:
            found = cells[self.cells.index(asked)]
            return np.where(found == CELLS[asked.kind], np.nan, found)  # the column had no value, or only NaN
        total = y[asked.integral.name]
        if asked.kind == "integral":
            return total
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(t > 0.0, total / t, np.nan)
        return np.sqrt(mean) if asked.kind == "rms" else mean


NOTHING = Summary()


class Watch:
    """The graph that evaluates the columns of a summary, for one Dynamics."""

    def __init__(self, summary: Summary, dynamics: Dynamics) -> None:
        self.dynamics, self.cells = dynamics, summary.cells
        names = list(dict.fromkeys(c.column for c in self.cells))
        plain = list(dict.fromkeys(_parts(name, dynamics.wrt)[0] for name in names))
        self.graph = dynamics.watching(plain) if plain else None
        self.place: dict[str, int] = {}
        for name in names:
            of, j = _parts(name, dynamics.wrt)
            self.place[name] = j * len(plain) + plain.index(of)

    def noted(self, memory: Sequence[Scalar], t: Scalar, y: Sequence[Scalar], u: Any) -> list[Scalar]:
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
            now = z[self.place[cell.column]]
            what = cell.kind.removeprefix("t_")
            best = old[Asked(what, cell.column)]
            better = now < best if what == "min" else now > best
            value = t if cell.kind != what else now
            new.append(now if cell.kind == "final" else where(better, value, before))
        return new

    def passed(
        self, memory: Sequence[Scalar], t: Scalar, y: Sequence[Scalar], then: Scalar, end: Sequence[Scalar], u: Any
    ) -> list[Scalar]:
        """Return the cells after a step from (t, y) to (then, end).

        Inputs may have jumped at t, so the column is also evaluated there with the inputs of this step.

        Parameters
        ----------
        memory
            Cells.
        t, y
            Time and state before the step.
        then, end
            Time and state after the step.
        u
            Inputs during the step.
        """
        if self.graph is not None and self._fed:
            memory = self.noted(memory, t, y, u)
        return self.noted(memory, then, end, u)

    @cached_property
    def _fed(self) -> bool:
        """Return True if the columns depend on the inputs."""
        return self.graph is not None and any(n.op == "input" and n.args[0] == "u" for n in self.graph.nodes)


def summarised(asked: Sequence[str], columns: Sequence[str], wrt: Sequence[str]) -> Summary:
    """Return the Summary of requested texts; a * in the name of a column matches any characters.

    Parameters
    ----------
    asked
        Texts such as "max(elbow.tau)".
    columns
        Names of all columns.
    wrt
        Names with respect to which columns are differentiated.
    """
    varied = [derivative(name, w) for w in wrt for name in columns]
    found = []
    for text in listed("summary", asked, 'texts, as in "max(elbow.tau)"'):
        shape = re.fullmatch(r"(\w+)\((.*)\)", text) if isinstance(text, str) else None
        if shape is None:
            raise InputError(
                f'summary: {text!r} cannot be read; expected KIND(COLUMN), as in "max({columns[0]})". '
                f"Kinds are {', '.join(KINDS)}."
            )
        kind, name = shape[1], shape[2]
        if kind not in KINDS:
            raise InputError(f'summary "{text}": {unknown("kind", kind, KINDS)}')
        if kind in POWERS and name in varied:
            raise InputError(
                f'summary "{text}": give "{kind}" of the column itself; with sensitivities its derivatives are '
                "included."
            )
        found += [Asked(kind, column) for column in _meant(text, name, [*columns, *varied])]
    unique("summary", [a.name for a in found])
    # A cell for a time needs the cell of the extreme that occurs at this time.
    needed = [x for a in found if a.kind in CELLS for x in (Asked(a.kind.removeprefix("t_"), a.column), a)]
    cells = tuple(dict.fromkeys(needed))
    integrals = tuple(dict.fromkeys(a.integral for a in found if a.kind in POWERS))
    return Summary(tuple(found), cells, integrals, tuple(CELLS[c.kind] for c in cells))


def _meant(text: str, name: str, columns: Sequence[str]) -> list[str]:
    """Return the columns with this name, or that match it."""
    if name in columns:
        return [name]
    pattern = ".*".join(map(re.escape, name.split("*")))
    fitting = [c for c in columns if "*" in name and re.fullmatch(pattern, c) and not c.startswith("d(")]
    if not fitting:
        raise InputError(f'summary "{text}": {unknown("column", name, columns)}')
    return fitting


def _parts(name: str, wrt: Sequence[str]) -> tuple[str, int]:
    """Return the plain column, and the index from 1 in `wrt` of its derivative; 0 for none."""
    for j, w in enumerate(wrt, 1):
        tail = f")/d({w})"
        if name.startswith("d(") and name.endswith(tail):
            return name[2 : -len(tail)], j
    return name, 0
