"""Translation of a graph to modules of LLVM IR text, with the functions of module_functions.py.

Code of a state and code of a batch are written by the same printer, with one lane and with as many as the processor
has. Both are in one module, except those of a large kernel: there the scalar code is compiled at once, the batch code
when the first batch comes. Each module takes about half of the time to a first call, and most programs need only one of
the two. The first module has `@one`, the Python entry, and a stub `@many` that fails until the batch module is loaded
and its address is stored. The batch module gets the address of `@one`, for the few rows that do not fill its lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.emit.cpu.module_functions import (
    array_names,
    batch_functions,
    has_matrix_output,
    module_head,
    operations_text,
    state_function,
    writable_global,
)
from bellcrank.emit.llvm import column_code
from bellcrank.emit.llvm.host import host
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.scheduling import WINDOW_NODES, Item, chunks, items, order, split_trig
from bellcrank.graph import Graph
from bellcrank.graph.columns import outline_columns
from bellcrank.graph.loop_levels import MIN_LOOP_ELEMENTS, roll_if_worthwhile

CHUNK_ITEMS = 1500  # items in a function: larger ones compile slower and run no faster
# Scheduling window for matrices: enough work is ready at any time, and waiting values need registers.
MATRIX_WINDOW_NODES = 6
PIPELINED_WINDOW_NODES = 40  # scheduling window if the next block's sines fill the gaps: fewer values wait
MIN_SAVED_OPERATIONS = 4_000  # operations of straight-line code that loops over columns must save to be worthwhile
ROLLING_NODES = 8_000  # nodes from which on loop rolling is tried
# Status of @many before the batch module is loaded: the entry falls back to Python, as for a bad input.
BATCH_NOT_LOADED = 1


def source(graph: Graph, width: int, dtype: str = "float64", chunk: int | None = None) -> str:
    """Return the whole module except the Python entry, which emit/cpu/python_entry.py adds.

    Parameters
    ----------
    graph
        The graph.
    width
        Lanes of the processor.
    dtype
        Floating-point type.
    chunk
        Items in a function; CHUNK_ITEMS by default.
    """
    if graph.opaque or graph.calls or is_rolled(graph):
        from bellcrank.emit.cpu import recursion_module  # not needed for small mechanisms

        return recursion_module.source(graph, width, dtype)
    state = scalar_code(graph, width, dtype, chunk)
    block = vector_code(graph, width, dtype, len(state.chunks) == 1, chunk)
    functions = block.function("block", apart=len(block.chunks) > 1)  # determines the size of the workspace
    parts = [
        *module_head(f"{operations_text(graph)}, {width} lanes of {dtype}", width, dtype),
        state.function("state"),
        functions,
        *state.loop_functions,
        *block.loop_functions,
        state_function(graph, state.size, state.w),
        *batch_functions(graph, block),
        block.w.pooled(),
        writable_global(),
    ]
    return "\n".join(parts)


def scalar_module(graph: Graph, width: int, dtype: str) -> str:
    """Return the module of scalar code for `graph`; `width` is the number of lanes of a vector of `dtype`."""
    state = scalar_code(graph, width, dtype)
    parameters = ["i64 %n", *(x for n in array_names(graph) for x in (f"ptr %{n}", f"i64 %stride_{n}"))]
    title = f"{operations_text(graph)}, one state of {dtype} ({width} lanes)"
    parts = [
        *module_head(title, width, dtype),
        state.function("state"),
        *state.loop_functions,
        state_function(graph, state.size, state.w),
        _stub("many", parameters),
        writable_global(),
    ]
    return "\n".join(parts)


def batch_module(graph: Graph, width: int, dtype: str) -> str:
    """Return the module of vector code for `graph`; `width` is the number of lanes of a vector of `dtype`."""
    block = vector_code(graph, width, dtype, small=not is_chunked(graph))
    functions = block.function("block", apart=len(block.chunks) > 1)  # determines the size of the workspace
    parts = [
        *module_head(f"{operations_text(graph)}, {width} lanes of {dtype}", width, dtype),
        functions,
        *block.loop_functions,
        *batch_functions(graph, block),
        _stub("one", [f"ptr %{n}" for n in array_names(graph)]),
        block.w.pooled(),
        writable_global(),
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


def is_chunked(graph: Graph) -> bool:
    """Return True if the code of `graph` has several chunks."""
    return graph.size > CHUNK_ITEMS


def is_deferred(graph: Graph) -> bool:
    """Return True if scalar code and batch code of `graph` are compiled separately."""
    return not graph.opaque and not graph.calls and is_chunked(graph) and not is_rolled(graph)


def is_rolled(graph: Graph) -> bool:
    """Return True if `graph` is so large and regular that it is compiled as rolled loops."""
    is_large = graph.size >= ROLLING_NODES and graph.widest >= MIN_LOOP_ELEMENTS
    return is_large and roll_if_worthwhile(graph, ROLLING_NODES) is not None


def scalar_code(graph: Graph, width: int, dtype: str, chunk: int | None = None) -> LLVMPrinter:
    """Return the printer of scalar code.

    Parameters
    ----------
    graph
        The graph.
    width
        Lanes of the processor.
    dtype
        Floating-point type.
    chunk
        Items in a function; CHUNK_ITEMS by default.
    """
    if graph.tape.columnwise_notes:
        graph = outline_columns(graph, MIN_SAVED_OPERATIONS, known=width > 1, apart=not host().avx512)
    columns = column_code.column_calls(graph, 1, width, dtype) if graph.calls else {}
    written = column_code.written_elements(columns) if columns else {}
    sequence = items(graph, order(graph, _window_nodes(graph), late=bool(columns)), written)
    return _printer(graph, 1, width, dtype, sequence, chunk, columns=columns)


def vector_code(graph: Graph, width: int, dtype: str, small: bool, chunk: int | None = None) -> LLVMPrinter:
    """Return the printer of vector code for a block of states.

    Parameters
    ----------
    graph
        The graph.
    width
        Lanes of the processor.
    dtype
        Floating-point type.
    small
        True to allow software pipelining, for code of one chunk.
    chunk
        Items in a function; CHUNK_ITEMS by default.
    """
    if graph.tape.columnwise_notes:
        graph = outline_columns(graph, MIN_SAVED_OPERATIONS)
    if small and not graph.calls and has_matrix_output(graph) and width > 1:
        prologue, sequence = split_trig(items(graph, order(graph, PIPELINED_WINDOW_NODES)))
        return _printer(graph, width, width, dtype, sequence, chunk, prologue)
    columns = {}
    if graph.calls:
        from bellcrank.emit.llvm.rematerialisation import rematerialise  # few graphs are so large

        graph = rematerialise(graph, order(graph, MATRIX_WINDOW_NODES, late=True))
        columns = column_code.column_calls(graph, width, width, dtype, "block_") if graph.calls else {}
    sequence = items(graph, order(graph, _window_nodes(graph), late=bool(columns)), whole_matrices=bool(columns))
    return _printer(graph, width, width, dtype, sequence, chunk, columns=columns)


def _printer(
    graph: Graph, lanes: int, width: int, dtype: str, sequence: Sequence[Item], chunk: int | None,
    prologue: Sequence[Item] = (), columns: Mapping[int, column_code.ColumnCode] | None = None,
) -> LLVMPrinter:  # fmt: skip
    parts = chunks(sequence, CHUNK_ITEMS if chunk is None else chunk)
    registers = _allocated_registers(graph)
    return LLVMPrinter(graph, lanes, width, dtype, parts, prologue, columns=columns, registers=registers)


def _window_nodes(graph: Graph) -> int:
    return MATRIX_WINDOW_NODES if has_matrix_output(graph) else WINDOW_NODES


def _allocated_registers(graph: Graph) -> int:
    """Return the registers to allocate here for derivatives; 0 to leave allocation to LLVM.

    Derivatives are stacks of matrices whose columns all read the same values. Those of an arm take up to a tenth less
    time so, in batch and alone. A mass matrix would take a seventh more, forward dynamics a twentieth.
    """
    stacks = any(len(shape) > 2 for shape in graph.shapes.values())
    return host().registers if stacks and has_matrix_output(graph) and graph.size > CHUNK_ITEMS else 0
