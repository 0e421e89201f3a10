"""A large kernel in two modules: the scalar code is compiled at once, the batch code when the first batch comes.

Each module takes about half of the time to a first call, and most programs need only one of the two. The first module
has `@one`, the Python entry, and a stub `@many` that fails until the batch module is loaded and its address is stored.
The batch module gets the address of `@one`, for the few rows that do not fill its lanes.
"""

from __future__ import annotations

from bellcrank.emit.cpu import kernel_module
from bellcrank.graph import Graph

# Status of @many before the batch module is loaded: the entry falls back to Python, as for a bad input.
BATCH_NOT_LOADED = 1


def scalar_module(graph: Graph, width: int, dtype: str) -> str:
    """Return the module of scalar code for `graph`; `width` is the number of lanes of a vector of `dtype`."""
    state = kernel_module.scalar_code(graph, width, dtype)
    array_names = kernel_module.array_names(graph)
    parameters = ["i64 %n", *(x for n in array_names for x in (f"ptr %{n}", f"i64 %stride_{n}"))]
    title = f"{kernel_module.operations_text(graph)}, one state of {dtype} ({width} lanes)"
    parts = [
        *kernel_module.module_head(title, width, dtype),
        state.function("state"),
        *state.loop_functions,
        kernel_module.state_function(graph, state.size, state.w),
        _stub("many", parameters),
        kernel_module.writable_global(),
    ]
    return "\n".join(parts)


def batch_module(graph: Graph, width: int, dtype: str) -> str:
    """Return the module of vector code for `graph`; `width` is the number of lanes of a vector of `dtype`."""
    block = kernel_module.vector_code(graph, width, dtype, small=not kernel_module.is_chunked(graph))
    functions = block.function("block", apart=len(block.chunks) > 1)  # determines the size of the workspace
    parts = [
        *kernel_module.module_head(f"{kernel_module.operations_text(graph)}, {width} lanes of {dtype}", width, dtype),
        functions,
        *block.loop_functions,
        *kernel_module.batch_functions(graph, block),
        _stub("one", [f"ptr %{n}" for n in kernel_module.array_names(graph)]),
        block.w.pooled(),
        kernel_module.writable_global(),
    ]
    return "\n".join(parts)


def _stub(name: str, parameters: list[str]) -> str:
    """Return a stub of a function of the other module, whose address is stored in @<name>.at."""
    parameter_list = ", ".join(parameters)
    return f"""@{name}.at = global ptr null
define i64 @{name}({parameter_list}) nounwind {{
  %at = load ptr, ptr @{name}.at
  %none = icmp eq ptr %at, null
  br i1 %none, label %later, label %now
later:
  ret i64 {BATCH_NOT_LOADED}
now:
  %status = tail call i64 %at({parameter_list})
  ret i64 %status
}}"""
