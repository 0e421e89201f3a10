"""The target "cores": each state computed by several cores of this computer together, where that is faster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bellcrank.emit.cores import multicore_kernel as cores
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.cpu.target import Cpu
from bellcrank.emit.target import About, By
from bellcrank.graph import Graph
from bellcrank.scheduling import Machine, Schedule


@dataclass(frozen=True)
class Cores:
    """Compilation target for several cores."""

    machine: Machine
    dtype: str = "float64"

    @property
    def _one(self) -> Cpu:
        return Cpu(self.dtype)

    @property
    def segments(self) -> tuple[int, int]:
        """Number of parallel segments of a branch, and the least bodies of one.

        The number is twice the lanes of all cores together, so that the load is balanced.
        """
        lanes, shortest = self._one.segments
        return 2 * lanes * self.machine.processors, shortest

    @property
    def key(self) -> tuple[str, ...]:
        """Cache key of everything that decides the generated code."""
        m = self.machine
        decides = json.dumps([m.name, m.processors, dict(m.cost), m.start, m.word, m.overlapped])
        return *self._one.key, "cores", decides

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the fastest of `graphs`, pairs of method and graph, on one core."""
        return self._one.choose(graphs)

    def schedule(self, graph: Graph) -> Schedule:
        """Return the assignment of `graph` to cores, with times."""
        return cores.plan_schedule(graph, self.machine, self.dtype)

    def source(self, graph: Graph) -> str:
        """Return the LLVM IR of `graph`."""
        return self._text(graph, self.used(graph))

    def used(self, graph: Graph) -> int:
        """Return the number of cores that compute `graph`."""
        return cores.used_cores(graph, self.machine, self.dtype)

    def _text(self, graph: Graph, used: int) -> str:
        return self._one.with_python_entry(cores.source(graph, self.machine, used, self.dtype), graph)

    def compile(self, graph: Graph) -> tuple[dict[str, Any], bytes, bool]:
        """Return facts to cache, the machine code of `graph`, and whether it came from the cache."""
        from bellcrank.emit.llvm.host import code_size, compile_cached

        used = self.used(graph)
        code, cached, code_key = compile_cached(self._text(graph, used))
        facts = {"code": code_key, "code_size": code_size(code), "rows_per_thread": 0, "used": used}
        return facts, code, cached

    def recall(self, facts: Mapping[str, Any]) -> bytes | None:
        """Return the machine code from the cached `facts`, if it exists."""
        return self._one.recall(facts)

    def load(self, code: bytes, facts: Mapping[str, Any], about: About) -> cores.ParallelKernel:
        """Return the kernel for `code`, with its `facts` and its description `about`."""
        layout = cache(lambda: self.schedule(about.graph()))
        return cores.ParallelKernel(
            about, Library(code), 1, facts["code_size"], layout=layout, machine=self.machine, used=facts["used"]
        )
