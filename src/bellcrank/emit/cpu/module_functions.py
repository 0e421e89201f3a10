"""Functions of a module of LLVM IR around the code of a graph: `@one` for a state and `@many` for a batch in lanes.

    i64 @one(ptr in..., ptr out...)                                        0, or 1 when an input is not finite
    i64 @many(i64 n, ptr in, i64 stride, ..., ptr out, i64 stride, ...)    n rows; strides in bytes from row to row

@one calls @state; @many calls @block for as many rows as the lanes of a vector, and @one for fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bellcrank.emit.llvm import sincos
from bellcrank.emit.llvm.lanes import Writer, library_declarations, prefetch_function, uncached_rows
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.scheduling import MATRIX_ELEMENTS
from bellcrank.graph import Graph
from bellcrank.quoting import comment, symbol

STACK_BYTES = 65536  # bytes; larger workspaces are allocated on the heap
# Blocks that execute a chunk before the next chunk, and bytes of their workspaces.
GROUP_BLOCKS, GROUP_BYTES = 16, 2**18


def operations_text(graph: Graph) -> str:
    """Return the name of `graph` and its number of operations, for a comment."""
    return f"{comment(graph.name)}: {graph.count().arithmetic} operations"


def module_head(title: str, width: int, dtype: str) -> list[str]:
    """Return the beginning of a module: its title, @sincos for vectors of `width` lanes of `dtype`, declarations."""
    return [f"; {title}", sincos.definition(width, dtype), *library_declarations(Writer(1, dtype))]


def writable_global() -> str:
    """Return a writable global, which every module needs."""
    return "@writable = global i64 0 ; llvmlite's memory manager aborts on a module that has nothing to write to"


def has_matrix_output(graph: Graph) -> bool:
    """Return True if an output of `graph` is a matrix; then a block should begin the work of the next one.

    Measurements justify this for matrices (Panda's mass matrix takes 15 ns instead of 17), whose recursion has one long
    critical path. Graphs with more parallelism would lose registers for nothing.
    """
    return any(math.prod(shape) > MATRIX_ELEMENTS for shape in graph.shapes.values())


def array_names(graph: Graph) -> list[str]:
    """Return the names of all arrays of `graph`, inputs first."""
    return [f"in_{symbol(n)}" for n in graph.inputs] + [f"out_{symbol(n)}" for n in graph.shapes]


def workspace_text(slots: int, w: Writer) -> tuple[str, str]:
    """Return text that allocates %ws of `slots` for the writer `w`, on the stack if small, and text that frees it."""
    size = slots * w.align
    if size <= STACK_BYTES:
        return f"  %ws = alloca [{size} x i8], align 64\n", ""
    allocation = f"""  %ws.raw = call ptr @malloc(i64 {size + 64})
  %ws.int = ptrtoint ptr %ws.raw to i64
  %ws.up = add i64 %ws.int, 63
  %ws.on = and i64 %ws.up, -64
  %ws = inttoptr i64 %ws.on to ptr
"""
    return allocation, "  call void @free(ptr %ws.raw)\n"


def state_function(graph: Graph, size: int, w: Writer, name: str = "one") -> str:
    """Return the function `name` for one state of `graph`, which calls @state.

    Parameters
    ----------
    graph
        The graph.
    size
        Slots of the workspace of @state.
    w
        Its writer.
    name
        Name of the function.
    """
    args = ", ".join(f"ptr %{n}" for n in array_names(graph))
    allocation, release = workspace_text(size, w)
    return f"""define i64 @{name}({args}) nounwind {{
{allocation}  %status = call i64 @state(ptr %ws, {args})
{release}  ret i64 %status
}}"""


def row_addresses(names: Sequence[str], row: str, prefix: str) -> tuple[str, str]:
    """Return text that computes the addresses of a row in every array, and the list of arguments.

    Parameters
    ----------
    names
        Names of the arrays.
    row
        Number of the row.
    prefix
        Prefix of the names of the addresses.
    """
    lines = (
        f"  %{prefix}{i}.o = mul i64 {row}, %stride_{n}\n"
        f"  %{prefix}{i} = getelementptr i8, ptr %{n}, i64 %{prefix}{i}.o\n"
        for i, n in enumerate(names)
    )
    return "".join(lines), ", ".join(f"ptr %{prefix}{i}" for i in range(len(names)))


def single_row_loop(names: Sequence[str]) -> str:
    """Return the end of @many for fewer rows than lanes: a loop over @one for the arrays `names`."""
    state_rows, state_args = row_addresses(names, "%k", "s")
    return f"""some:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %end, label %single
single:
  %k = phi i64 [0, %some], [%k.next, %single]
  %k.seen = phi i64 [0, %some], [%k.status, %single]
{state_rows}  %k.bad = call i64 @one({state_args})
  %k.status = or i64 %k.seen, %k.bad
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %n
  br i1 %k.more, label %single, label %end
end:
  %result = phi i64 [0, %some], [%k.status, %single]
  ret i64 %result
"""


def output_sizes(graph: Graph) -> dict[str, int]:
    """Return the number of elements of each output of `graph`, by the names of the arrays."""
    return {f"out_{symbol(name)}": math.prod(shape) for name, shape in graph.shapes.items()}


def _prefetch_call(graph: Graph, tag: str) -> str:
    """Return the call that prefetches the rows of a block, whose addresses have this tag (`row_addresses`)."""
    places = enumerate(output_sizes(graph), len(graph.inputs))
    return f"  call void @fetch({', '.join(f'ptr %{tag}{i}, i64 %stride_{n}' for i, n in places)})\n"


def batch_functions(graph: Graph, block: LLVMPrinter) -> list[str]:
    """Return @many of `graph`, and the functions that it calls besides those of the printer `block`."""
    if len(block.chunks) > 1:
        return grouped_batch_function(graph, block)
    return [batch_function(graph, block.size, block.w, bool(block.prologue))]


def grouped_batch_function(graph: Graph, block: LLVMPrinter) -> list[str]:
    """Return @many for code of several chunks, which no instruction cache holds, by the printer `block` of `graph`.

    Each chunk is executed for a group of blocks before the next chunk, so that it is fetched once for all of them.
    Every block has a workspace of its own. The last block is moved back so that it ends with the last row, as in
    `batch_function`.
    """
    w, names = block.w, array_names(graph)
    max_blocks = max(1, min(GROUP_BLOCKS, GROUP_BYTES // (block.size * w.align)))
    allocation, release = workspace_text(block.size * max_blocks, w)
    parameters = ", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)
    group = f"""define internal i64 @group(i64 %n, ptr %ws, i64 %row, i64 %count, {parameters}) noinline nounwind {{
entry:
  %far = icmp ugt i64 %n, {uncached_rows(output_sizes(graph), w)}
{"".join(_chunk_loop(graph, block, k) for k in range(len(block.chunks)))}  ret i64 %status
}}"""
    loop = f"""define i64 @many(i64 %n, {parameters}) nounwind {{
  %few = icmp ult i64 %n, {w.lanes}
  br i1 %few, label %some, label %begin
begin:
{allocation}  %final = sub i64 %n, {w.lanes}
  br label %loop
loop:
  %row = phi i64 [0, %begin], [%next, %loop]
  %seen = phi i64 [0, %begin], [%status, %loop]
  %left = sub i64 %n, %row
  %whole = udiv i64 %left, {w.lanes}
  %short = icmp eq i64 %whole, 0
  %from = select i1 %short, i64 %final, i64 %row
  %some.left = select i1 %short, i64 1, i64 %whole
  %many.left = icmp ugt i64 %some.left, {max_blocks}
  %count = select i1 %many.left, i64 {max_blocks}, i64 %some.left
  %bad = call i64 @group(i64 %n, ptr %ws, i64 %from, i64 %count, {parameters})
  %status = or i64 %seen, %bad
  %taken = mul i64 %count, {w.lanes}
  %next = add i64 %from, %taken
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{release}  ret i64 %status
{single_row_loop(names)}}}"""
    return [prefetch_function(output_sizes(graph), w), group, loop]


def _chunk_loop(graph: Graph, block: LLVMPrinter, k: int) -> str:
    """Return the loop of chunk k over the blocks of a group; the last chunk returns the status of the inputs."""
    w, names, previous_label = block.w, array_names(graph), f"done{k - 1}" if k else "entry"
    address_text, addresses = row_addresses(names, f"%row{k}", f"b{k}.")
    strides = "" if w.lanes == 1 else "".join(f", i64 %stride_{n}" for n in names)
    arguments, status_phi = f"(ptr %ws{k}, {addresses}{strides})", ""
    call = f"call void @block_{k}{arguments}"
    if k + 1 == len(block.chunks):
        status_phi = f"  %seen = phi i64 [0, %{previous_label}], [%status, %chunk{k}]\n"
        call = f"%bad = call i64 @block{arguments}\n  %status = or i64 %seen, %bad"
    fetch, latch_label = "", f"chunk{k}"
    if has_matrix_output(graph) and not k:
        fetch, latch_label = (
            f"""  br i1 %far, label %fetch, label %compute
fetch:
{_prefetch_call(graph, "b0.")}  br label %compute
compute:
""",
            "compute",
        )
    return f"""  br label %chunk{k}
chunk{k}:
  %i{k} = phi i64 [0, %{previous_label}], [%j{k}, %{latch_label}]
{status_phi}  %offset{k} = mul i64 %i{k}, {block.size * w.align}
  %ws{k} = getelementptr i8, ptr %ws, i64 %offset{k}
  %rows{k} = mul i64 %i{k}, {w.lanes}
  %row{k} = add i64 %row, %rows{k}
{address_text}{fetch}  {call}
  %j{k} = add i64 %i{k}, 1
  %more{k} = icmp ult i64 %j{k}, %count
  br i1 %more{k}, label %chunk{k}, label %done{k}
done{k}:
"""


def batch_function(graph: Graph, size: int, w: Writer, pipelined: bool = False) -> str:
    """Return @many for code of one chunk, a loop over whole blocks of rows.

    The last block is moved back so that it ends with the last row; fewer rows than lanes are computed one by one. Rows
    that two blocks share are computed twice, with equal results, because inputs and outputs never overlap. With
    software pipelining, blocks alternate between two workspaces; the last block does the work ahead once more for
    itself.

    Parameters
    ----------
    graph
        The graph.
    size
        Slots of the workspace of a block.
    w
        Writer of a block.
    pipelined
        Whether a block does work for the next one.
    """
    names = array_names(graph)
    allocation, release = workspace_text(size * (2 if pipelined else 1), w)
    block_rows, block_args = row_addresses(names, "%row", "b")
    strides = "" if w.lanes == 1 else "".join(f", i64 %stride_{n}" for n in names)
    workspace_name, workspace_phis, latch_label = "%ws", "", "compute" if has_matrix_output(graph) else "loop"
    if pipelined:
        inputs = names[: len(graph.inputs)]
        allocation += f"""  %other = getelementptr i8, ptr %ws, i64 {size * w.align}
  call void @block_first(ptr %ws, {", ".join(f"ptr %{n}, i64 %stride_{n}" for n in inputs)})
"""
        workspace_name, workspace_phis = "%here", f"  %here = phi ptr [%ws, %begin], [%then, %{latch_label}]\n"
        workspace_phis += f"  %then = phi ptr [%other, %begin], [%here, %{latch_label}]\n"
        next_rows, next_args = row_addresses(inputs, "%next", "n")
        block_rows += next_rows
        block_args += f", ptr %then, {next_args}"
    head = ""
    if has_matrix_output(graph):
        head = prefetch_function(output_sizes(graph), w) + "\n"
        allocation += f"  %far = icmp ugt i64 %n, {uncached_rows(output_sizes(graph), w)}\n"
        block_rows += f"""  br i1 %far, label %fetch, label %compute
fetch:
{row_addresses(names, "%next", "t")[0]}{_prefetch_call(graph, "t")}  br label %compute
compute:
"""
    return f"""{head}define i64 @many(i64 %n, {", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)}) nounwind {{
  %few = icmp ult i64 %n, {w.lanes}
  br i1 %few, label %some, label %begin
begin:
{allocation}  %final = sub i64 %n, {w.lanes}
  br label %loop
loop:
  %row = phi i64 [0, %begin], [%next, %{latch_label}]
  %seen = phi i64 [0, %begin], [%status, %{latch_label}]
{workspace_phis}  %after = add i64 %row, {w.lanes}
  %inside = icmp ule i64 %after, %final
  %next = select i1 %inside, i64 %after, i64 %final
{block_rows}  %bad = call i64 @block(ptr {workspace_name}, {block_args}{strides})
  %status = or i64 %seen, %bad
  %more = icmp ult i64 %row, %final
  br i1 %more, label %loop, label %done
done:
{release}  ret i64 %status
{single_row_loop(names)}}}"""
