"""A large kernel in two modules: what one state needs is compiled at once, what a batch needs when the first comes.

Either half is half of the time to a first call, and most programs only ever want one of the two. The first has `@one`,
the Python entry and a `@many` that knows no better than to say no, until it is told where the other half's lies; that
one is told where `@one` is, for the few rows that do not fill its lanes.
"""

from __future__ import annotations

from bellcrank.emit.cpu import llvm, sincos
from bellcrank.emit.cpu.lanes import library
from bellcrank.graph import Graph
from bellcrank.quoting import comment

NOT_YET = 1  # what @many says before the other half is there: the entry hands over to Python, as for a bad input


def state_half(graph: Graph, width: int, dtype: str) -> str:
    """The module of one state."""
    state = llvm.alone(graph, width, dtype)
    names = llvm.arrays(graph)
    parameters = ["i64 %n", *(x for n in names for x in (f"ptr %{n}", f"i64 %stride_{n}"))]
    parts = [
        f"; {comment(graph.name)}: {graph.count().arithmetic} operations, one state of {dtype} ({width} lanes)",
        sincos.definition(width, dtype),
        *library(state.w),
        state.function("state"),
        *state.loops,
        llvm.one(graph, state),
        _elsewhere("many", parameters),
        llvm.writable(),
    ]
    return "\n".join(parts)


def batch_half(graph: Graph, width: int, dtype: str) -> str:
    """The module of a batch."""
    block = llvm.abreast(graph, width, dtype, small=not llvm.large(graph))
    cut = len(block.pieces) > 1
    functions = block.function("block", apart=cut)  # and then it is known how large a workspace is
    parts = [
        f"; {comment(graph.name)}: {graph.count().arithmetic} operations, {width} lanes of {dtype}",
        sincos.definition(width, dtype),
        *library(block.w),
        functions,
        *block.loops,
        *(llvm.groups(graph, block) if cut else [llvm.many(graph, block)]),
        _elsewhere("one", [f"ptr %{n}" for n in llvm.arrays(graph)]),
        block.w.pooled(),
        llvm.writable(),
    ]
    return "\n".join(parts)


def _elsewhere(name: str, parameters: list[str]) -> str:
    """A function that is in the other module, once @<name>.at says where."""
    given = ", ".join(parameters)
    return f"""@{name}.at = global ptr null
define i64 @{name}({given}) nounwind {{
  %at = load ptr, ptr @{name}.at
  %none = icmp eq ptr %at, null
  br i1 %none, label %later, label %now
later:
  ret i64 {NOT_YET}
now:
  %status = tail call i64 %at({given})
  ret i64 %status
}}"""
