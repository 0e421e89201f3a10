"""Target "cpu": one state, or a batch in lanes, on one core or with its rows shared among several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bellcrank import patience
from bellcrank.emit import cache as store
from bellcrank.emit.constants import code_fingerprint
from bellcrank.emit.cpu.host import Library, code_size, compile_text, compiled, host, object_key
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.target import About, By
from bellcrank.errors import CompileError

if TYPE_CHECKING:
    from bellcrank.graph import Graph

THREADS_WORTH = 1e-4  # seconds of work, below which waking a thread costs more than it gains
SEGMENT = 128  # bodies; joining two segments costs as much as about ten
ALL_ROWS = 2**62  # rows; with this limit the entry accepts every batch


@dataclass(frozen=True)
class Cpu:
    """Code generator for this processor, with a floating-point type and a number of threads."""

    dtype: str = "float64"
    threads: int = 1

    @property
    def segments(self) -> tuple[int, int]:
        """Segments that a branch is divided into to be processed in parallel lanes, and the least bodies of each."""
        return host().lanes(self.dtype), SEGMENT

    @property
    def key(self) -> tuple[str, ...]:
        """Everything that decides the code beside the graph."""
        h = host()  # the number of threads only decides which batches the Python entry accepts
        return "cpu", self.dtype, str(min(self.threads, 2)), h.cpu, h.features, h.llvm

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the pair of `graphs` that will be fastest by the cost model."""
        from bellcrank.emit.cpu.costs import cheapest  # not needed for code from the cache

        return cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """Return LLVM IR of `graph` with the Python entry."""
        from bellcrank.emit.cpu import llvm  # not needed for code from the cache

        return self.entered(llvm.source(graph, host().lanes(self.dtype), self.dtype), graph)

    def entered(self, text: str, graph: Graph) -> str:
        """Return the module `text` of `graph` with the entry that Python calls."""
        from bellcrank.emit.cpu import entry

        outputs = list(graph.shapes.values())
        if len(outputs) != 1 or not graph.inputs:
            return text
        limit = ALL_ROWS if self.threads == 1 else 2 * rows_per_thread(graph, self.dtype)
        return text + "\n" + entry.definition(list(graph.inputs.values()), outputs[0], self.dtype, limit)

    def compile(self, graph: Graph) -> tuple[dict[str, Any], bytes, bool]:
        """Compile `graph`; return facts, object code, and True if it came from the cache."""
        from bellcrank.emit.cpu import llvm

        apart = llvm.halved(graph)
        code, cached, where = compiled(self._state(graph) if apart else self.source(graph))
        share = rows_per_thread(graph, self.dtype) if self.threads > 1 else 0
        facts: dict[str, Any] = {"code": where, "code_size": code_size(code), "rows_per_thread": share}
        if apart:  # the key suffices, because the same graph and printer give the same code
            facts["batch"] = store.key("batch of", where, code_fingerprint()) + ".o"
        return facts, code, cached

    def recall(self, facts: Mapping[str, Any]) -> bytes | None:
        """Return the object code that belongs to `facts`; None if it is gone."""
        return store.load(facts["code"])

    def load(self, code: bytes, facts: Mapping[str, Any], about: About) -> Kernel:
        """Return the kernel, described by `about`, of the object `code` and its `facts`."""
        rest = partial(self._batch, facts["batch"], facts["code"], about) if "batch" in facts else None
        return Kernel(about, Library(code), self.threads, facts["code_size"], rest)

    def _state(self, graph: Graph) -> str:
        """Return the module with the scalar code of a kernel, which is compiled at once."""
        from bellcrank.emit.cpu import halves

        return self.entered(halves.state_half(graph, host().lanes(self.dtype), self.dtype), graph)

    def _batch(self, name: str, one: str, about: About) -> bytes:
        """Return the batch module of a kernel, from the cache or compiled now.

        `one` is the cache file of the scalar module, which shows if a graph that was traced later is still the same.
        """
        if (found := store.load(name)) is not None:
            return found
        from bellcrank.emit.cpu import halves

        graph = about.graph()
        if about.cached and object_key(self._state(graph)) != one:
            raise CompileError(
                f"{graph.name}: its code for batches is compiled now, and its graph has changed since its code for one "
                "state was compiled: a function of a method or a joint was replaced. Create the kernel again: "
                "bellcrank.kernel(...)."
            )
        with patience.said(f"compiling {graph.name}, for batches"):
            code = compile_text(halves.batch_half(graph, host().lanes(self.dtype), self.dtype))
        store.save(name, code)
        return code


def rows_per_thread(graph: Graph, dtype: str) -> int:
    """Return the number of states of `graph`, in `dtype`, that are worth waking a thread for."""
    from bellcrank.emit.cpu.costs import costs

    return max(16, round(THREADS_WORTH / costs(dtype).predicted(graph)))
