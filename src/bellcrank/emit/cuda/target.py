"""The target "cuda": every state of a batch a thread of an NVIDIA GPU, or a team of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cuda.kernel import CudaKernel
from bellcrank.emit.target import About, By
from bellcrank.graph import Graph, Recursion

SEGMENT = 32  # bodies at least that a thread goes through one after the other


@dataclass(frozen=True)
class Cuda:
    dtype: str = "float64"

    @property
    def key(self) -> tuple[str, ...]:
        return "cuda", self.dtype, host().llvm

    @property
    def segments(self) -> tuple[int | None, int]:
        """Into which a branch is cut whose segments go side by side: any number, of so many bodies at least."""
        return None, SEGMENT

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        from bellcrank.emit.cuda import straight  # what comes from the cache needs no choice

        return straight.cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """PTX, for arrays that lie in any way."""
        if isinstance(graph, Recursion) and graph.abreast:
            from bellcrank.emit.cuda.waves import waved

            return waved(graph, self.dtype).ptx
        from bellcrank.emit.cuda.parts import parts

        return "\n".join(part.ptx for part in parts(graph, self.dtype))

    def compile(self, graph: Graph) -> tuple[dict[str, Any], Any, bool]:
        """The driver makes machine code of PTX when it is loaded (device.py), which is kept, too."""
        if isinstance(graph, Recursion) and graph.abreast:
            from bellcrank.emit.cuda.wave_kernel import packed
            from bellcrank.emit.cuda.waves import waved

            found = packed(waved(graph, self.dtype))
            return {"waves": found}, found, False
        from bellcrank.emit.cuda.parts import texts

        made = texts(graph, self.dtype)
        return {"texts": made}, made, False

    def recall(self, facts: Mapping[str, Any]) -> Any:
        return facts["waves"] if "waves" in facts else facts["texts"]

    def load(self, code: Any, facts: Mapping[str, Any], about: About) -> Kernel:
        if "waves" in facts:
            from bellcrank.emit.cuda.wave_kernel import WaveKernel, unpacked

            return WaveKernel(about, unpacked(code))
        return CudaKernel(about, code)
