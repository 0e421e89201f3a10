"""Translation of a graph to a module of LLVM IR text: `@one` for a state and `@many` for a batch in lanes.

    i64 @one(ptr in..., ptr out...)                                        0, or 1 when an input is not finite
    i64 @many(i64 n, ptr in, i64 stride, ..., ptr out, i64 stride, ...)    n rows; strides in bytes from row to row

Both are written by the same printer, with one lane and with as many as the processor has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bellcrank.emit.cpu import column_code, sincos
from bellcrank.emit.cpu.column_places import NO_COLUMNS
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.lanes import Writer, far, fetching, library
from bellcrank.emit.cpu.plan import MATRIX, WINDOW, ahead, chunks, items, order
from bellcrank.emit.cpu.speller import Speller
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.columns import condensed
from bellcrank.graph.strip_parts import LONG
from bellcrank.quoting import comment, symbol

STACK = 65536  # bytes; larger workspaces are allocated on the heap
CHUNK = 1500  # items in a function: larger ones compile slower and run no faster
TOGETHER, NEAR = 16, 2**18  # blocks that execute a chunk before the next chunk, and bytes of their workspaces
FEW = 6  # scheduling window for matrices: enough work is ready at any time, and waiting values need registers
NARROW = 40  # scheduling window if the next block's sines fill the gaps: fewer values wait


SPARED = 4_000  # operations of straight-line code that loops over columns must save to be worthwhile
LARGE = 8_000  # nodes from which on loop rolling is tried


def source(graph: Graph, width: int, dtype: str = "float64", chunk: int | None = None) -> str:
    """Return the whole module except the Python entry, which emit/cpu/entry.py adds.

    Parameters
    ----------
    graph
        The graph.
    width
        Lanes of the processor.
    dtype
        Floating-point type.
    chunk
        Items in a function; CHUNK by default.
    """
    if isinstance(graph, Recursion) or graph.calls or loops(graph):
        from bellcrank.emit.cpu import rolled_module  # imports this module

        return rolled_module.source(graph, width, dtype)
    state = alone(graph, width, dtype, chunk)
    block = abreast(graph, width, dtype, len(state.pieces) == 1, chunk)
    cut = len(block.pieces) > 1
    functions = block.function("block", apart=cut)  # determines the size of the workspace
    batch = groups(graph, block) if cut else [many(graph, block)]
    parts = [
        f"; {comment(graph.name)}: {graph.count().arithmetic} operations, {width} lanes of {dtype}",
        sincos.definition(width, dtype),
        *library(state.w),
        state.function("state"),
        functions,
        *state.loops,
        *block.loops,
        one(graph, state),
        *batch,
        block.w.pooled(),
        writable(),
    ]
    return "\n".join(parts)


def large(graph: Graph) -> bool:
    """Return True if the code of `graph` has several chunks."""
    return graph.size > CHUNK


def halved(graph: Graph) -> bool:
    """Return True if scalar code and batch code of `graph` are compiled separately (halves.py)."""
    return not isinstance(graph, Recursion) and not graph.calls and large(graph) and not loops(graph)


def loops(graph: Graph) -> bool:
    """Return True if `graph` is so large and regular that it is compiled as rolled loops."""
    if graph.size < LARGE or graph.widest < LONG:
        return False
    from bellcrank.graph.strip_parts import stripped

    return stripped(graph, LARGE) is not None


def alone(graph: Graph, width: int, dtype: str, chunk: int | None = None) -> Speller:
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
        Items in a function; CHUNK by default.
    """
    chunk = CHUNK if chunk is None else chunk
    graph = condensed(graph, SPARED, known=width > 1, apart=not host().avx512) if graph.tape.alike else graph
    calls = column_code.calls(graph, 1, width, dtype) if graph.calls else NO_COLUMNS
    sequence = items(graph, order(graph, FEW if _waits(graph) else WINDOW), calls.written)
    return Speller(graph, 1, width, dtype, chunks(sequence, chunk), columns=calls, registers=_registers(graph))


def abreast(graph: Graph, width: int, dtype: str, small: bool, chunk: int | None = None) -> Speller:
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
        Items in a function; CHUNK by default.
    """
    chunk = CHUNK if chunk is None else chunk
    graph = condensed(graph, SPARED) if graph.tape.alike else graph
    if small and not graph.calls and _waits(graph) and width > 1:
        first, sequence = ahead(items(graph, order(graph, NARROW)))
        return Speller(graph, width, width, dtype, chunks(sequence, chunk), first, registers=_registers(graph))
    if graph.calls:
        from bellcrank.emit.cpu.renewal import renewed  # imported here, because few graphs are so large

        graph = renewed(graph, order(graph, FEW))
    calls = column_code.calls(graph, width, width, dtype, "block_") if graph.calls else NO_COLUMNS
    sequence = items(graph, order(graph, FEW if _waits(graph) else WINDOW), whole=bool(graph.calls))
    return Speller(graph, width, width, dtype, chunks(sequence, chunk), columns=calls, registers=_registers(graph))


def writable() -> str:
    """Return a writable global, which every module needs."""
    return "@writable = global i64 0 ; llvmlite's memory manager aborts on a module that has nothing to write to"


def _waits(graph: Graph) -> bool:
    """Return True if an output is a matrix; then a block should begin the work of the next one.

    Measurements justify this for matrices (Panda's mass matrix takes 15 ns instead of 17), whose recursion has one long
    critical path. Graphs with more parallelism would lose registers for nothing.
    """
    return any(math.prod(shape) > MATRIX for shape in graph.shapes.values())


def _registers(graph: Graph) -> int:
    """Return the registers to allocate here for derivatives; 0 to leave allocation to LLVM.

    Derivatives are stacks of matrices whose columns all read the same values. Those of an arm take up to a tenth less
    time so, in batch and alone. A mass matrix would take a seventh more, forward dynamics a twentieth.
    """
    stacks = any(len(shape) > 2 for shape in graph.shapes.values())
    return host().registers if stacks and _waits(graph) and graph.size > CHUNK else 0


def arrays(graph: Graph) -> list[str]:
    """Return the names of all arrays of `graph`, inputs first."""
    return [f"in_{symbol(n)}" for n in graph.inputs] + [f"out_{symbol(n)}" for n in graph.shapes]


def workspace(slots: int, w: Writer) -> tuple[str, str]:
    """Return text that allocates %ws of `slots` for the writer `w`, on the stack if small, and text that frees it."""
    size = slots * w.align
    if size <= STACK:
        return f"  %ws = alloca [{size} x i8], align 64\n", ""
    take = f"""  %ws.raw = call ptr @malloc(i64 {size + 64})
  %ws.int = ptrtoint ptr %ws.raw to i64
  %ws.up = add i64 %ws.int, 63
  %ws.on = and i64 %ws.up, -64
  %ws = inttoptr i64 %ws.on to ptr
"""
    return take, "  call void @free(ptr %ws.raw)\n"


def one(graph: Graph, state: Speller, name: str = "one") -> str:
    """Return the function `name` for one state of `graph`, which calls the code of printer `state`."""
    args = ", ".join(f"ptr %{n}" for n in arrays(graph))
    take, give = workspace(state.size, state.w)
    return f"""define i64 @{name}({args}) nounwind {{
{take}  %status = call i64 @state(ptr %ws, {args})
{give}  ret i64 %status
}}"""


def rows(names: Sequence[str], row: str, tag: str) -> tuple[str, str]:
    """Return text that computes the addresses of a row in every array, and the list of arguments.

    Parameters
    ----------
    names
        Names of the arrays.
    row
        Number of the row.
    tag
        Prefix of the names of the addresses.
    """
    lines = (
        f"  %{tag}{i}.o = mul i64 {row}, %stride_{n}\n  %{tag}{i} = getelementptr i8, ptr %{n}, i64 %{tag}{i}.o\n"
        for i, n in enumerate(names)
    )
    return "".join(lines), ", ".join(f"ptr %{tag}{i}" for i in range(len(names)))


def one_by_one(names: Sequence[str]) -> str:
    """Return the end of @many for fewer rows than lanes: a loop over @one for the arrays `names`."""
    state_rows, state_args = rows(names, "%k", "s")
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


def results(graph: Graph) -> dict[str, int]:
    """Return the number of elements of each output of `graph`, by the names of the arrays."""
    return {f"out_{symbol(name)}": math.prod(shape) for name, shape in graph.shapes.items()}


def _fetched(graph: Graph, tag: str) -> str:
    """Return the call that prefetches the rows of a block, whose addresses have this tag (`rows`)."""
    places = enumerate(results(graph), len(graph.inputs))
    return f"  call void @fetch({', '.join(f'ptr %{tag}{i}, i64 %stride_{n}' for i, n in places)})\n"


def groups(graph: Graph, block: Speller) -> list[str]:
    """Return @many for code of several chunks, which no instruction cache holds, by the printer `block` of `graph`.

    Each chunk is executed for a group of blocks before the next chunk, so that it is fetched once for all of them.
    Every block has a workspace of its own. The last block is moved back so that it ends with the last row, as in
    `many`.
    """
    w, names = block.w, arrays(graph)
    most = max(1, min(TOGETHER, NEAR // (block.size * w.align)))
    take, give = workspace(block.size * most, w)
    given = ", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)
    group = f"""define internal i64 @group(i64 %n, ptr %ws, i64 %row, i64 %count, {given}) noinline nounwind {{
entry:
  %far = icmp ugt i64 %n, {far(results(graph), w)}
{"".join(_for_all(graph, block, k) for k in range(len(block.pieces)))}  ret i64 %status
}}"""
    loop = f"""define i64 @many(i64 %n, {given}) nounwind {{
  %few = icmp ult i64 %n, {w.lanes}
  br i1 %few, label %some, label %begin
begin:
{take}  %final = sub i64 %n, {w.lanes}
  br label %loop
loop:
  %row = phi i64 [0, %begin], [%next, %loop]
  %seen = phi i64 [0, %begin], [%status, %loop]
  %left = sub i64 %n, %row
  %whole = udiv i64 %left, {w.lanes}
  %short = icmp eq i64 %whole, 0
  %from = select i1 %short, i64 %final, i64 %row
  %some.left = select i1 %short, i64 1, i64 %whole
  %many.left = icmp ugt i64 %some.left, {most}
  %count = select i1 %many.left, i64 {most}, i64 %some.left
  %bad = call i64 @group(i64 %n, ptr %ws, i64 %from, i64 %count, {given})
  %status = or i64 %seen, %bad
  %taken = mul i64 %count, {w.lanes}
  %next = add i64 %from, %taken
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{give}  ret i64 %status
{one_by_one(names)}}}"""
    return [fetching(results(graph), w), group, loop]


def _for_all(graph: Graph, block: Speller, k: int) -> str:
    """Return the loop of chunk k over the blocks of a group; the last chunk returns the status of the inputs."""
    w, names, before = block.w, arrays(graph), f"done{k - 1}" if k else "entry"
    at, addresses = rows(names, f"%row{k}", f"b{k}.")
    strides = "" if w.lanes == 1 else "".join(f", i64 %stride_{n}" for n in names)
    given, seen = f"(ptr %ws{k}, {addresses}{strides})", ""
    call = f"call void @block_{k}{given}"
    if k + 1 == len(block.pieces):
        seen = f"  %seen = phi i64 [0, %{before}], [%status, %chunk{k}]\n"
        call = f"%bad = call i64 @block{given}\n  %status = or i64 %seen, %bad"
    fetch, last = "", f"chunk{k}"
    if _waits(graph) and not k:
        fetch, last = (
            f"""  br i1 %far, label %fetch, label %compute
fetch:
{_fetched(graph, "b0.")}  br label %compute
compute:
""",
            "compute",
        )
    return f"""  br label %chunk{k}
chunk{k}:
  %i{k} = phi i64 [0, %{before}], [%j{k}, %{last}]
{seen}  %offset{k} = mul i64 %i{k}, {block.size * w.align}
  %ws{k} = getelementptr i8, ptr %ws, i64 %offset{k}
  %rows{k} = mul i64 %i{k}, {w.lanes}
  %row{k} = add i64 %row, %rows{k}
{at}{fetch}  {call}
  %j{k} = add i64 %i{k}, 1
  %more{k} = icmp ult i64 %j{k}, %count
  br i1 %more{k}, label %chunk{k}, label %done{k}
done{k}:
"""


def many(graph: Graph, block: Speller) -> str:
    """Return @many for code of one chunk, by the printer `block` of `graph`: a loop over whole blocks of rows.

    The last block is moved back so that it ends with the last row; fewer rows than lanes are computed one by one. Rows
    that two blocks share are computed twice, with equal results, because inputs and outputs never overlap. With
    software pipelining, blocks alternate between two workspaces; the last block does the work ahead once more for
    itself.
    """
    w, names = block.w, arrays(graph)
    take, give = workspace(block.size * (2 if block.first else 1), w)
    block_rows, block_args = rows(names, "%row", "b")
    strides = "" if w.lanes == 1 else "".join(f", i64 %stride_{n}" for n in names)
    here, turns, last = "%ws", "", "compute" if _waits(graph) else "loop"
    if block.first:
        inputs = names[: len(graph.inputs)]
        take += f"""  %other = getelementptr i8, ptr %ws, i64 {block.size * w.align}
  call void @block_first(ptr %ws, {", ".join(f"ptr %{n}, i64 %stride_{n}" for n in inputs)})
"""
        here, turns = "%here", f"  %here = phi ptr [%ws, %begin], [%then, %{last}]\n"
        turns += f"  %then = phi ptr [%other, %begin], [%here, %{last}]\n"
        next_rows, next_args = rows(inputs, "%next", "n")
        block_rows += next_rows
        block_args += f", ptr %then, {next_args}"
    head = ""
    if _waits(graph):
        head = fetching(results(graph), w) + "\n"
        take += f"  %far = icmp ugt i64 %n, {far(results(graph), w)}\n"
        block_rows += f"""  br i1 %far, label %fetch, label %compute
fetch:
{rows(names, "%next", "t")[0]}{_fetched(graph, "t")}  br label %compute
compute:
"""
    return f"""{head}define i64 @many(i64 %n, {", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)}) nounwind {{
  %few = icmp ult i64 %n, {w.lanes}
  br i1 %few, label %some, label %begin
begin:
{take}  %final = sub i64 %n, {w.lanes}
  br label %loop
loop:
  %row = phi i64 [0, %begin], [%next, %{last}]
  %seen = phi i64 [0, %begin], [%status, %{last}]
{turns}  %after = add i64 %row, {w.lanes}
  %inside = icmp ule i64 %after, %final
  %next = select i1 %inside, i64 %after, i64 %final
{block_rows}  %bad = call i64 @block(ptr {here}, {block_args}{strides})
  %status = or i64 %seen, %bad
  %more = icmp ult i64 %row, %final
  br i1 %more, label %loop, label %done
done:
{give}  ret i64 %status
{one_by_one(names)}}}"""
