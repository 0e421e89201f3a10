"""A large kernel in two modules: the scalar code is compiled at once, the batch code when the first batch comes.

Each module takes about half of the time to a first call, and most programs need only one of the two. The first module
has `@one`, the Python entry, and a stub `@many` that fails until the batch module is loaded and its address is stored.
The batch module gets the address of `@one`, for the few rows that do not fill its lanes.
"""

from __future__ import annotations

from bellcrank.emit.cpu import llvm, sincos
from bellcrank.emit.cpu.lanes import library
from bellcrank.graph import Graph
from bellcrank.quoting import comment

NOT_YET = 1  # status of @many before the batch module is loaded: the entry falls back to Python, as for a bad input


def state_half(graph: Graph, width: int, dtype: str) -> str:
    """Return the module of scalar code for `graph`; `width` is the number of lanes of a vector of `dtype`."""
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
    """Return the module of vector code for `graph`; `width` is the number of lanes of a vector of `dtype`."""
    block = llvm.abreast(graph, width, dtype, small=not llvm.large(graph))
    cut = len(block.pieces) > 1
    functions = block.function("block", apart=cut)  # determines the size of the workspace
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
    """Return a stub of a function of the other module, whose address is stored in @<name>.at."""
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
