"""Representation of a program for the mesh: a list of atoms per processor, and the routes of the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bellcrank.papers.wong.arm_data import MeshArm

Cpu = tuple[int, int]  # row, column


@dataclass(frozen=True)
class Atom:
    """One operation on a processor, with the names of its operands and results."""

    cpu: Cpu
    results: tuple[str, ...]
    operands: tuple[str, ...]
    function: Callable[..., Any]  # function of the operands; returns one value, or a tuple if there are several results

    @property
    def name(self) -> str:
        """Name of the atom: that of its last result."""
        return self.results[-1]


@dataclass
class MeshProgram:
    """Atoms of each processor in order, and routes of the values."""

    arm: MeshArm
    atoms: dict[Cpu, list[Atom]] = field(default_factory=dict)
    ways: dict[tuple[str, Cpu], Cpu] = field(default_factory=dict)  # (value, processor) -> neighbour that sends it

    def append(self, cpu: Cpu, gives: str, takes: Sequence[str], does: Callable[..., Any]) -> None:
        """Append an atom to the program of a processor.

        Parameters
        ----------
        cpu
            Processor.
        gives
            Names of the results, separated by spaces.
        takes
            Names of the operands.
        does
            Function of the operands.
        """
        self.atoms.setdefault(cpu, []).append(Atom(cpu, tuple(gives.split()), tuple(takes), does))

    def add_route(self, value: str, way: Sequence[Cpu]) -> None:
        """Route `value` along `way`, a sequence of neighbouring processors."""
        for a, b in pairwise(way):
            self.ways.setdefault((value, b), a)


def column_path(i: int, a: int, b: int) -> list[Cpu]:
    """Return the processors of column `i` from row `a` to row `b`."""
    return [(r, i) for r in (range(a, b + 1) if a <= b else range(a, b - 1, -1))]
