"""The target "cuda": every state of a batch in one thread of an NVIDIA GPU, or in a team of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cuda.gpu_kernel import CudaKernel
from bellcrank.emit.llvm.host import host
from bellcrank.emit.target import About, By
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.inline import inline
from bellcrank.graph.loop_levels import roll_if_worthwhile
from bellcrank.graph.recursion import has_parallel_runs, recursions

if TYPE_CHECKING:
    from bellcrank.emit.cuda.lane_code import StateLoopCode
    from bellcrank.emit.cuda.waves import WaveText

# Operations up to which unrolled code is faster in single precision: chain:70 by far, chain:100 no more.
MAX_UNROLLED_OPERATIONS = 15_000
MIN_SEGMENT_BODIES = 32  # least bodies of a segment, which one thread processes sequentially


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
        return None, MIN_SEGMENT_BODIES

    def used(self, graph: Graph) -> int:
        """Return the number of processor cores that share the work of `graph` on one state: always one."""
        return 1

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the fastest of `graphs`, pairs of method and graph."""
        if any(recursions(g) for _, g in graphs):
            return min(graphs, key=lambda pair: (not recursions(pair[1]), pair[1].count().arithmetic))
        from bellcrank.emit.cuda import batch_kernel  # not needed for kernels that come from the cache

        return batch_kernel.cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """Return the PTX of `graph`, for arrays with any strides."""
        if (code := self._loop_code(graph)) is not None:
            return code.ptx
        from bellcrank.emit.cuda.batch_kernel import best_parts

        return "\n".join(part.ptx for part in best_parts(_inline_calls(graph), self.dtype))

    def compile(self, graph: Graph) -> tuple[dict[str, Any], Any, bool]:
        """Return facts to cache, the code of `graph`, and False: no machine code came from the cache.

        The driver translates PTX to machine code when it is loaded (device.py), which is cached, too.
        """
        code: Any = self._loop_code(graph)
        if code is None:
            from bellcrank.emit.cuda.batch_kernel import layout_texts

            kind, code = "texts", layout_texts(_inline_calls(graph), self.dtype)
        elif self._has_parallel_runs(graph):
            from bellcrank.emit.cuda.rolled_kernels import pack_wave_text

            kind, code = "waves", pack_wave_text(code)
        else:
            kind, code = "loops", asdict(code)
        return {kind: code}, code, False

    def _loop_code(self, graph: Graph) -> WaveText | StateLoopCode | None:
        """Return the code of `graph` with rolled loops; None if it is compiled to straight-line code."""
        if self._has_parallel_runs(graph):
            from bellcrank.emit.cuda.waves import wave_text

            return wave_text(graph, self.dtype)
        if self.in_loops(graph):
            from bellcrank.emit.cuda.lane_code import state_loop_code

            return state_loop_code(graph, self.dtype)
        return None

    def _has_parallel_runs(self, graph: Graph) -> TypeGuard[Recursion]:
        return self.waves and has_parallel_runs(graph)

    def in_loops(self, graph: Graph) -> bool:
        """Return whether `graph` is compiled to rolled loops over link classes or over similar array elements.

        Unrolled, a thread would have more values than it can hold.
        """
        if recursions(graph):
            return self.dtype == "float64" or graph.count().arithmetic > MAX_UNROLLED_OPERATIONS
        return not graph.calls and roll_if_worthwhile(graph) is not None

    def recall(self, facts: Mapping[str, Any]) -> Any:
        """Return the code from the cached `facts`."""
        return next(facts[kind] for kind in ("waves", "loops", "texts") if kind in facts)

    def load(self, code: Any, facts: Mapping[str, Any], about: About) -> Kernel:
        """Return the kernel for `code`, with its `facts` and its description `about`."""
        if "texts" in facts:
            return CudaKernel(about, code)
        from bellcrank.emit.cuda import rolled_kernels  # imported here, because small mechanisms do not need it
        from bellcrank.emit.cuda.lane_code import StateLoopCode

        if "waves" in facts:
            return rolled_kernels.WaveKernel(about, rolled_kernels.unpack_wave_text(code))
        return rolled_kernels.StateKernel(about, StateLoopCode(**code))


def _inline_calls(graph: Graph) -> Graph:
    """Return the graph with its calls inlined, for straight-line code."""
    return inline(graph) if graph.calls else graph
