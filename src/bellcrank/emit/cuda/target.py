"""The target "cuda": every state of a batch in one thread of an NVIDIA GPU, or in a team of threads."""

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

FEW_OPERATIONS = 15_000  # up to which unrolled code is faster in single precision: chain:70 by far, chain:100 no more
SEGMENT = 32  # least bodies of a segment, which one thread processes sequentially


@dataclass(frozen=True)
class Cuda:
    """Compilation target for one NVIDIA GPU."""

    dtype: str = "float64"
    waves: bool = True  # allow the whole GPU to compute one state

    @property
    def key(self) -> tuple[str, ...]:
        """Cache key of everything that decides the generated code."""
        return "cuda", self.dtype, host().llvm, str(self.waves)

    @property
    def segments(self) -> tuple[int | None, int]:
        """Number of parallel segments of a branch (None: any) and the least bodies of one."""
        return None, SEGMENT

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the fastest of `graphs`, pairs of method and graph."""
        if any(_shares(g) for _, g in graphs):
            return min(graphs, key=lambda pair: (not _shares(pair[1]), pair[1].count().arithmetic))
        from bellcrank.emit.cuda import straight  # not needed for kernels that come from the cache

        return straight.cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """Return the PTX of `graph`, for arrays with any strides."""
        if self._abreast(graph):
            from bellcrank.emit.cuda.waves import waved

            return waved(graph, self.dtype).ptx
        if self.in_loops(graph):
            from bellcrank.emit.cuda.state_loops import looped

            return looped(graph, self.dtype).ptx
        from bellcrank.emit.cuda.parts import parts

        return "\n".join(part.ptx for part in parts(_alone(graph), self.dtype))

    def compile(self, graph: Graph) -> tuple[dict[str, Any], Any, bool]:
        """Return facts to cache, the code of `graph`, and False: no machine code came from the cache.

        The driver translates PTX to machine code when it is loaded (device.py), which is cached, too.
        """
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
        """Return whether `graph` is compiled to rolled loops over link classes or over similar array elements.

        Unrolled, a thread would have more values than it can hold.
        """
        if _shares(graph):
            return self.dtype == "float64" or graph.count().arithmetic > FEW_OPERATIONS
        return not graph.calls and stripped(graph) is not None

    def recall(self, facts: Mapping[str, Any]) -> Any:
        """Return the code from the cached `facts`."""
        return next(facts[kind] for kind in ("waves", "loops", "texts") if kind in facts)

    def load(self, code: Any, facts: Mapping[str, Any], about: About) -> Kernel:
        """Return the kernel for `code`, with its `facts` and its description `about`."""
        if "waves" in facts:
            from bellcrank.emit.cuda.wave_kernel import WaveKernel, unpacked

            return WaveKernel(about, unpacked(code))
        if "loops" in facts:
            from bellcrank.emit.cuda.state_kernel import StateKernel
            from bellcrank.emit.cuda.state_loops import LoopText

            return StateKernel(about, LoopText(**code))
        return CudaKernel(about, code)


def _shares(graph: Graph) -> bool:
    """Return whether the graph contains rolled loops over link classes."""
    return any(isinstance(g, Recursion) for g in (graph, *graph.calls))


def _alone(graph: Graph) -> Graph:
    """Return the graph with its calls inlined, for straight-line code."""
    return inlined(graph) if graph.calls else graph
