"""What a run is to say of itself when it ends: "max(elbow.tau)", "integral(effort)", ... (docs/simulation.md).

Extremes are cells in the memory of the run, brought up to date at the end of every step by a graph. Integrals are
elements of the state, with a rate like any other, so that the integrator gives them its order. Neither loop, of the CPU
or of the GPU, knows of any of it, and a run remembers as much after a million steps as after one.
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
# What a cell holds before anything was seen.
CELLS = {"min": np.inf, "max": -np.inf, "t_min": np.nan, "t_max": np.nan, "final": np.nan}
POWERS = {"integral": 1, "mean": 1, "rms": 2}  # of the column, whose integral over time is needed
KINDS = (*CELLS, *POWERS)


@dataclass(frozen=True)
class Asked:
    kind: str
    column: str

    @property
    def name(self) -> str:
        return f"{self.kind}({self.column})"

    @property
    def integral(self) -> Integral:
        return Integral(self.column, POWERS[self.kind])

    def unit(self, of_column: str) -> str:
        if self.kind.startswith("t_"):
            return "s"
        return f"{of_column} s".strip() if self.kind == "integral" else of_column


@dataclass(frozen=True, eq=False)
class Summary:
    """All that was asked for, and what the run has to remember for it."""

    asked: tuple[Asked, ...] = ()
    cells: tuple[Asked, ...] = ()
    integrals: tuple[Integral, ...] = ()
    blank: tuple[float, ...] = ()  # the cells of a run that has seen nothing

    def column(self, asked: Asked, t: Array, cells: Array, y: Mapping[str, Array]) -> Array:
        """Its value for each run, from the cells (n, runs), the elements of y by name, and the times t at the end."""
        if asked.kind in CELLS:
            found = cells[self.cells.index(asked)]
            return np.where(found == CELLS[asked.kind], np.nan, found)  # nothing seen, or nothing but NaN
        total = y[asked.integral.name]
        if asked.kind == "integral":
            return total
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(t > 0.0, total / t, np.nan)
        return np.sqrt(mean) if asked.kind == "rms" else mean


NOTHING = Summary()


class Watch:
    """The graph that looks at the columns of a summary, for one Dynamics."""

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
        """The cells after a look at this state. What is not a number is smaller and greater than nothing."""
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
        """The cells after a step from (t, y) to (then, end). Inputs may have jumped at t: both sides of that count."""
        if self.graph is not None and self._fed:
            memory = self.noted(memory, t, y, u)
        return self.noted(memory, then, end, u)

    @cached_property
    def _fed(self) -> bool:
        """Whether the columns feel the inputs."""
        return self.graph is not None and any(n.op == "input" and n.args[0] == "u" for n in self.graph.nodes)


def summarised(asked: Sequence[str], columns: Sequence[str], wrt: Sequence[str]) -> Summary:
    """From what the user wrote; a * in the name of a column stands for any of them that fit."""
    varied = [derivative(name, w) for w in wrt for name in columns]
    found = []
    for text in listed("summary", asked, 'what is asked, as in "max(elbow.tau)"'):
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
                f'summary "{text}": ask for "{kind}" of the column itself; with sensitivities its derivatives come '
                "along."
            )
        found += [Asked(kind, column) for column in _meant(text, name, [*columns, *varied])]
    unique("summary", [a.name for a in found])
    # With a time goes the value that it is the time of.
    needed = [x for a in found if a.kind in CELLS for x in (Asked(a.kind.removeprefix("t_"), a.column), a)]
    cells = tuple(dict.fromkeys(needed))
    integrals = tuple(dict.fromkeys(a.integral for a in found if a.kind in POWERS))
    return Summary(tuple(found), cells, integrals, tuple(CELLS[c.kind] for c in cells))


def _meant(text: str, name: str, columns: Sequence[str]) -> list[str]:
    """The columns of that name, or that fit it."""
    if name in columns:
        return [name]
    pattern = ".*".join(map(re.escape, name.split("*")))
    fitting = [c for c in columns if "*" in name and re.fullmatch(pattern, c) and not c.startswith("d(")]
    if not fitting:
        raise InputError(f'summary "{text}": {unknown("column", name, columns)}')
    return fitting


def _parts(name: str, wrt: Sequence[str]) -> tuple[str, int]:
    """The column that is meant, and with respect to which of wrt it is varied, counted from 1; 0 for not at all."""
    for j, w in enumerate(wrt, 1):
        tail = f")/d({w})"
        if name.startswith("d(") and name.endswith(tail):
            return name[2 : -len(tail)], j
    return name, 0
