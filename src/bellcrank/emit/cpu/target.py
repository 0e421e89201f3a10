"""Target "cpu": one state, or a batch in lanes, on one core or with its rows shared among several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bellcrank import progress
from bellcrank.emit import cache as store
from bellcrank.emit.constant_changes import code_fingerprint
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import code_size, compile_cached, compile_text, host, object_key
from bellcrank.emit.target import About, By
from bellcrank.errors import CompileError

if TYPE_CHECKING:
    from bellcrank.graph import Graph

THREAD_WORK_SECONDS = 1e-4  # seconds of work, below which waking a thread costs more than it gains
SEGMENT_BODIES = 128  # bodies; joining two segments costs as much as about ten
UNLIMITED_ROWS = 2**62  # rows; with this limit the entry accepts every batch


@dataclass(frozen=True)
class Cpu:
    """Code generator for this processor, with a floating-point type and a number of threads."""

    dtype: str = "float64"
    threads: int = 1

    @property
    def segments(self) -> tuple[int, int]:
        """Segments that a branch is divided into to be processed in parallel lanes, and the least bodies of each."""
        return host().lanes(self.dtype), SEGMENT_BODIES

    @property
    def key(self) -> tuple[str, ...]:
        """Everything that decides the code beside the graph."""
        h = host()  # the number of threads only decides which batches the Python entry accepts
        return "cpu", self.dtype, str(min(self.threads, 2)), h.cpu, h.features, h.llvm

    def used(self, graph: Graph) -> int:
        """Return the number of cores that share the work of `graph` on one state: always one."""
        return 1

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the pair of `graphs` that will be fastest by the cost model."""
        from bellcrank.emit.cpu.costs import cheapest  # not needed for code from the cache

        return cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """Return LLVM IR of `graph` with the Python entry."""
        from bellcrank.emit.cpu import kernel_module  # not needed for code from the cache

        return self.with_python_entry(kernel_module.source(graph, host().lanes(self.dtype), self.dtype), graph)

    def with_python_entry(self, text: str, graph: Graph) -> str:
        """Return the module `text` of `graph` with the entry that Python calls."""
        from bellcrank.emit.cpu import python_entry

        outputs = list(graph.shapes.values())
        if len(outputs) != 1 or not graph.inputs:
            return text
        limit = UNLIMITED_ROWS if self.threads == 1 else 2 * rows_per_thread(graph, self.dtype)
        return text + "\n" + python_entry.definition(list(graph.inputs.values()), outputs[0], self.dtype, limit)

    def compile(self, graph: Graph) -> tuple[dict[str, Any], bytes, bool]:
        """Compile `graph`; return facts, object code, and True if it came from the cache."""
        from bellcrank.emit.cpu import kernel_module

        is_deferred = kernel_module.is_deferred(graph)
        code, cached, cache_name = compile_cached(self._scalar_module(graph) if is_deferred else self.source(graph))
        thread_rows = rows_per_thread(graph, self.dtype) if self.threads > 1 else 0
        facts: dict[str, Any] = {"code": cache_name, "code_size": code_size(code), "rows_per_thread": thread_rows}
        if is_deferred:  # the key suffices, because the same graph and printer give the same code
            facts["batch"] = store.key("batch of", cache_name, code_fingerprint()) + ".o"
        return facts, code, cached

    def recall(self, facts: Mapping[str, Any]) -> bytes | None:
        """Return the object code that belongs to `facts`; None if it is gone."""
        return store.load(facts["code"])

    def load(self, code: bytes, facts: Mapping[str, Any], about: About) -> Kernel:
        """Return the kernel, described by `about`, of the object `code` and its `facts`."""
        compile_batch = partial(self._batch_module, facts["batch"], facts["code"], about) if "batch" in facts else None
        return Kernel(about, Library(code), self.threads, facts["code_size"], compile_batch)

    def _scalar_module(self, graph: Graph) -> str:
        """Return the module with the scalar code of a kernel, which is compiled at once."""
        from bellcrank.emit.cpu import kernel_module

        return self.with_python_entry(kernel_module.scalar_module(graph, host().lanes(self.dtype), self.dtype), graph)

    def _batch_module(self, name: str, scalar_name: str, about: About) -> bytes:
        """Return the batch module of a kernel, from the cache or compiled now.

        `scalar_name` is the cache file of the scalar module, which shows if a graph that was traced later is still the
        same.
        """
        if (cached_code := store.load(name)) is not None:
            return cached_code
        from bellcrank.emit.cpu import kernel_module

        graph = about.graph()
        if about.cached and object_key(self._scalar_module(graph)) != scalar_name:
            raise CompileError(
                f"{graph.name}: its code for batches is compiled now, and its graph has changed since its code for one "
                "state was compiled: a function of a method or a joint was replaced. Create the kernel again: "
                "bellcrank.kernel(...)."
            )
        with progress.progress_message(f"compiling {graph.name}, for batches"):
            code = compile_text(kernel_module.batch_module(graph, host().lanes(self.dtype), self.dtype))
        store.save(name, code)
        return code


def rows_per_thread(graph: Graph, dtype: str) -> int:
    """Return the number of states of `graph`, in `dtype`, that are worth waking a thread for."""
    from bellcrank.emit.cpu.costs import costs

    return max(16, round(THREAD_WORK_SECONDS / costs(dtype).predicted(graph)))
