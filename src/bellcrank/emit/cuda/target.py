"""The target "cuda": every state of a batch a thread of an NVIDIA GPU, or a team of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cuda.kernel import CudaKernel
from bellcrank.emit.target import About, By
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.inline import inlined
from bellcrank.graph.strip_parts import stripped

FEW_OPERATIONS = 15_000  # that are faster written out in single precision: chain:70 is, by far, and chain:100 no more
SEGMENT = 32  # bodies at least that a thread goes through one after the other


@dataclass(frozen=True)
class Cuda:
    dtype: str = "float64"
    waves: bool = True  # whether all of the GPU may share out one state

    @property
    def key(self) -> tuple[str, ...]:
        return "cuda", self.dtype, host().llvm, str(self.waves)

    @property
    def segments(self) -> tuple[int | None, int]:
        """Into which a branch is cut whose segments go side by side: any number, of so many bodies at least."""
        return None, SEGMENT

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        if any(_shares(g) for _, g in graphs):
            return min(graphs, key=lambda pair: (not _shares(pair[1]), pair[1].count().arithmetic))
        from bellcrank.emit.cuda import straight  # what comes from the cache needs no choice

        return straight.cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """PTX, for arrays that lie in any way."""
        if self._abreast(graph):
            from bellcrank.emit.cuda.waves import waved

            return waved(graph, self.dtype).ptx
        if self.in_loops(graph):
            from bellcrank.emit.cuda.state_loops import looped

            return looped(graph, self.dtype).ptx
        from bellcrank.emit.cuda.parts import parts

        return "\n".join(part.ptx for part in parts(_alone(graph), self.dtype))

    def compile(self, graph: Graph) -> tuple[dict[str, Any], Any, bool]:
        """The driver makes machine code of PTX when it is loaded (device.py), which is kept, too."""
        if self._abreast(graph):
            from bellcrank.emit.cuda.wave_kernel import packed
            from bellcrank.emit.cuda.waves import waved

            found = packed(waved(graph, self.dtype))
            return {"waves": found}, found, False
        if self.in_loops(graph):
            from bellcrank.emit.cuda.state_loops import looped

            loops = asdict(looped(graph, self.dtype))
            return {"loops": loops}, loops, False
        from bellcrank.emit.cuda.parts import texts

        made = texts(_alone(graph), self.dtype)
        return {"texts": made}, made, False

    def _abreast(self, graph: Graph) -> TypeGuard[Recursion]:
        return self.waves and isinstance(graph, Recursion) and graph.abreast

    def in_loops(self, graph: Graph) -> bool:
        """Whether alike bodies, or alike elements of arrays, share their code; written out, a thread would have more
        values than room for them.
        """
        if _shares(graph):
            return self.dtype == "float64" or graph.count().arithmetic > FEW_OPERATIONS
        return not graph.calls and stripped(graph) is not None

    def recall(self, facts: Mapping[str, Any]) -> Any:
        return next(facts[kind] for kind in ("waves", "loops", "texts") if kind in facts)

    def load(self, code: Any, facts: Mapping[str, Any], about: About) -> Kernel:
        if "waves" in facts:
            from bellcrank.emit.cuda.wave_kernel import WaveKernel, unpacked

            return WaveKernel(about, unpacked(code))
        if "loops" in facts:
            from bellcrank.emit.cuda.state_kernel import StateKernel
            from bellcrank.emit.cuda.state_loops import LoopText

            return StateKernel(about, LoopText(**code))
        return CudaKernel(about, code)


def _shares(graph: Graph) -> bool:
    """Whether there are loops over alike bodies in it."""
    return any(isinstance(g, Recursion) for g in (graph, *graph.calls))


def _alone(graph: Graph) -> Graph:
    """Without calls, which straight-line code has none of."""
    return inlined(graph) if graph.calls else graph
