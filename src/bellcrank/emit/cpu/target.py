"""The target "cpu": one state, or a batch in lanes, on one core or its rows shared out among some."""

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

THREADS_WORTH = 1e-4  # seconds of work: below that, waking a thread costs more than it brings
SEGMENT = 128  # bodies: to join two segments costs as much as some ten
ALL_ROWS = 2**62  # rows: the entry keeps every batch to itself


@dataclass(frozen=True)
class Cpu:
    dtype: str = "float64"
    threads: int = 1

    @property
    def segments(self) -> tuple[int, int]:
        """Into which a branch is cut whose segments go side by side, a bundle of lanes, and bodies of each at least."""
        return host().lanes(self.dtype), SEGMENT

    @property
    def key(self) -> tuple[str, ...]:
        h = host()  # threads decide only how large a batch the Python entry keeps to itself
        return "cpu", self.dtype, str(min(self.threads, 2)), h.cpu, h.features, h.llvm

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        from bellcrank.emit.cpu.costs import cheapest  # what comes from the cache needs no choice

        return cheapest(graphs, self.dtype)

    def source(self, graph: Graph) -> str:
        """LLVM IR with the Python entry."""
        from bellcrank.emit.cpu import llvm  # what comes from the cache needs no spelling

        return self.entered(llvm.source(graph, host().lanes(self.dtype), self.dtype), graph)

    def entered(self, text: str, graph: Graph) -> str:
        """A module with the entry that Python calls."""
        from bellcrank.emit.cpu import entry

        outputs = list(graph.shapes.values())
        if len(outputs) != 1 or not graph.inputs:
            return text
        limit = ALL_ROWS if self.threads == 1 else 2 * rows_per_thread(graph, self.dtype)
        return text + "\n" + entry.definition(list(graph.inputs.values()), outputs[0], self.dtype, limit)

    def compile(self, graph: Graph) -> tuple[dict[str, Any], bytes, bool]:
        from bellcrank.emit.cpu import llvm

        apart = llvm.halved(graph)
        code, cached, where = compiled(self._state(graph) if apart else self.source(graph))
        share = rows_per_thread(graph, self.dtype) if self.threads > 1 else 0
        facts: dict[str, Any] = {"code": where, "code_size": code_size(code), "rows_per_thread": share}
        if apart:  # the same graph and the same speller: the same code
            facts["batch"] = store.key("batch of", where, code_fingerprint()) + ".o"
        return facts, code, cached

    def recall(self, facts: Mapping[str, Any]) -> bytes | None:
        return store.load(facts["code"])

    def load(self, code: bytes, facts: Mapping[str, Any], about: About) -> Kernel:
        rest = partial(self._batch, facts["batch"], facts["code"], about) if "batch" in facts else None
        return Kernel(about, Library(code), self.threads, facts["code_size"], rest)

    def _state(self, graph: Graph) -> str:
        """The half of a kernel that is compiled at once."""
        from bellcrank.emit.cpu import halves

        return self.entered(halves.state_half(graph, host().lanes(self.dtype), self.dtype), graph)

    def _batch(self, name: str, one: str, about: About) -> bytes:
        """The other half of a kernel, from the cache or compiled now. one: the name of the first half, which tells
        whether a graph that was traced later is still that one.
        """
        if (found := store.load(name)) is not None:
            return found
        from bellcrank.emit.cpu import halves

        graph = about.graph()
        if about.cached and object_key(self._state(graph)) != one:
            raise CompileError(
                f"{graph.name}: its code for batches is made now, and what it is made of has changed since its code "
                "for one state was: a function of a method or a joint was exchanged. Make the kernel anew: "
                "bellcrank.kernel(...)."
            )
        with patience.said(f"compiling {graph.name}, for batches"):
            code = compile_text(halves.batch_half(graph, host().lanes(self.dtype), self.dtype))
        store.save(name, code)
        return code


def rows_per_thread(graph: Graph, dtype: str) -> int:
    """States that are worth a thread."""
    from bellcrank.emit.cpu.costs import costs

    return max(16, round(THREADS_WORTH / costs(dtype).predicted(graph)))
