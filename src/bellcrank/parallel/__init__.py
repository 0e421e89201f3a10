"""What the papers did on parallel machines, done again with our graphs and schedules: `bellcrank papers`.

One file for each; `tables()` is what it prints, the print's numbers beside ours, and FIGURES what it can draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from bellcrank.text import Table


@dataclass(frozen=True)
class Experiment:
    paper: str
    file: str
    about: str

    def tables(self) -> list[Table]:
        found: list[Table] = import_module(f"bellcrank.parallel.{self.file}").tables()
        return found

    @property
    def figures(self) -> Mapping[str, Callable[[], str]]:
        """By the name of the file that each is written to."""
        found: Mapping[str, Callable[[], str]] = import_module(f"bellcrank.parallel.{self.file}").FIGURES
        return found


EXPERIMENTS = {
    x.paper: x
    for x in (
        Experiment("wong1991", "wong", "the mesh of transputers, cycle by cycle; its solver; the excavator on it"),
        Experiment("schaefer1992", "schaefer", "three strategies; the Stanford arm on one and three transputers"),
        Experiment("fijany1989", "fijany", "the mass matrix on n and on n (n + 1)/2 processors"),
        Experiment("nikravesh1989", "nikravesh", "the most that any machine could gain with the Stanford arm"),
    )
}
