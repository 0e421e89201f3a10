"""The target "cores": each state by several cores of this computer together, where that is faster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bellcrank.emit.cores import kernel as cores
from bellcrank.emit.cpu.host import Library
from bellcrank.emit.cpu.target import Cpu
from bellcrank.emit.target import About, By
from bellcrank.graph import Graph, Recursion
from bellcrank.scheduling import Machine, Schedule


@dataclass(frozen=True)
class Cores:
    machine: Machine
    dtype: str = "float64"

    @property
    def _one(self) -> Cpu:
        return Cpu(self.dtype)

    @property
    def segments(self) -> tuple[int, int]:
        """As many lanes as all cores have together, and twice that, so that all have the same to do."""
        lanes, shortest = self._one.segments
        return 2 * lanes * self.machine.processors, shortest

    @property
    def key(self) -> tuple[str, ...]:
        m = self.machine
        decides = json.dumps([m.name, m.processors, dict(m.cost), m.start, m.word, m.overlapped])
        return *self._one.key, "cores", decides

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        return self._one.choose(graphs)

    def schedule(self, graph: Graph) -> Schedule:
        """Which core computes what, and when."""
        return cores.planned(graph, self.machine, self.dtype)

    def source(self, graph: Graph) -> str:
        return self._text(graph, self.used(graph))

    def used(self, graph: Graph) -> int:
        """Cores that work on it."""
        if isinstance(graph, Recursion) and graph.abreast:
            return cores.sharing(graph, self.machine, self.dtype)
        return self.schedule(graph).used

    def _text(self, graph: Graph, used: int) -> str:
        if isinstance(graph, Recursion) and graph.abreast:
            return self._one.entered(cores.abreast(graph, used, self.dtype), graph)
        return self._one.entered(cores.source(graph, self.schedule(graph), self.dtype), graph)

    def compile(self, graph: Graph) -> tuple[dict[str, Any], bytes, bool]:
        from bellcrank.emit.cpu.host import code_size, compiled

        used = self.used(graph)
        code, cached, where = compiled(self._text(graph, used))
        facts = {"code": where, "code_size": code_size(code), "rows_per_thread": 0, "used": used}
        return facts, code, cached

    def recall(self, facts: Mapping[str, Any]) -> bytes | None:
        return self._one.recall(facts)

    def load(self, code: bytes, facts: Mapping[str, Any], about: About) -> cores.ParallelKernel:
        layout = cache(lambda: self.schedule(about.graph()))
        return cores.ParallelKernel(
            about, Library(code), 1, facts["code_size"], layout=layout, machine=self.machine, used=facts["used"]
        )
