"""How a program for the mesh is written down: a list of atoms for each processor, and the ways of the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bellcrank.papers.wong.arm import Arm

Cpu = tuple[int, int]  # row, column


@dataclass(frozen=True)
class Atom:
    cpu: Cpu
    gives: tuple[str, ...]
    takes: tuple[str, ...]
    does: Callable[..., Any]  # of what it takes; as many values as it gives, or the one

    @property
    def name(self) -> str:
        return self.gives[-1]


@dataclass
class Program:
    arm: Arm
    of: dict[Cpu, list[Atom]] = field(default_factory=dict)
    ways: dict[tuple[str, Cpu], Cpu] = field(default_factory=dict)  # a value at a processor: the neighbour it is from

    def do(self, cpu: Cpu, gives: str, takes: Sequence[str], does: Callable[..., Any]) -> None:
        self.of.setdefault(cpu, []).append(Atom(cpu, tuple(gives.split()), tuple(takes), does))

    def carry(self, value: str, way: Sequence[Cpu]) -> None:
        for a, b in pairwise(way):
            self.ways.setdefault((value, b), a)


def column(i: int, a: int, b: int) -> list[Cpu]:
    """The way along column i from row a to row b."""
    return [(r, i) for r in (range(a, b + 1) if a <= b else range(a, b - 1, -1))]
