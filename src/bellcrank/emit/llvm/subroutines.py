"""Graphs as functions that call each other, with packed lanes, and the tick loop of a Program.

Runs, actions and the real-time loop call that tick loop.

    void @name(ptr ws, ptr in..., ptr out...)
    ptr @go(i64 ticks, ptr s, ptr spare, ptr p, ptr u, ptr ws)      given number of ticks from the state in s

An array is its columns one after the other, each as wide as the lanes. Nothing is transposed and nothing is allocated:
the outermost caller supplies the workspace, and a caller's part lies behind that of the functions it calls. @go returns
where the state is then: s or spare. Before a tick, samples that are due are taken (renew), and after it, events that
occurred during the tick are located (locate), in all lanes if any lane requests it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bellcrank.emit.llvm.lanes import Writer, library_declarations
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.loop_code import LoopCode
from bellcrank.emit.llvm.register_allocation import known_outputs
from bellcrank.emit.llvm.scheduling import chunks, items, order
from bellcrank.errors import CompileError
from bellcrank.graph import Graph, Program, Recursion
from bellcrank.graph.graph import REPORT_BUG
from bellcrank.graph.inline import inline_small
from bellcrank.quoting import comment

# Items in a function. Fewer than in emit/cpu/kernel_module.py: this saves a third of the compile time, and values live
# in memory here anyway.
CHUNK_ITEMS = 500

# Copies n numbers.
COPY_FUNCTION = """define internal void @copy(ptr %to, ptr %from, i64 %n) nounwind {
begin:
  %some = icmp ne i64 %n, 0
  br i1 %some, label %one, label %end
one:
  %k = phi i64 [0, %begin], [%k.next, %one]
  %a = getelementptr double, ptr %from, i64 %k
  %x = load double, ptr %a, align 8
  %b = getelementptr double, ptr %to, i64 %k
  store double %x, ptr %b, align 8
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %n
  br i1 %more, label %one, label %end
end:
  ret void
}"""


def clock_function(signature: str, clock_id: int) -> str:
    """Return the function with this `signature` that reads the clock `clock_id` of the system, in ns.

    On Linux, 1 is monotonic time and 3 the CPU time of the calling thread.
    """
    return f"""define {signature} {{
  %ts = alloca [2 x i64], align 8
  %rc = call i32 @clock_gettime(i32 {clock_id}, ptr %ts)
  %s = load i64, ptr %ts, align 8
  %n.at = getelementptr i64, ptr %ts, i64 1
  %n = load i64, ptr %n.at, align 8
  %sn = mul i64 %s, 1000000000
  %t = add i64 %sn, %n
  ret i64 %t
}}"""


@dataclass(frozen=True)
class Routines:
    """Text of functions, and the workspace that they need."""

    text: str
    slots: int  # of the workspace that suffices for any of them; a slot is as wide as the lanes
    names: Mapping[str, str]  # requested name -> name of the function


def _check_reads(graph: Graph) -> None:
    """Raise CompileError if a graph reads an element that a recursion does not store."""
    for n in () if graph.opaque else graph.nodes:
        if n.op == "result" and isinstance(n.args[0].args[0], Recursion):
            called, element = n.args[0].args[0], n.args[1]
            if not called.stored[element]:
                raise CompileError(
                    f"{graph.name}: it reads element {element} of {called.name}, which is not stored{REPORT_BUG}"
                )


def _function_text(
    name: str, graph: Graph, w: Writer, trig_width: int, called: Mapping[int, tuple[str, int]], chunk: int, inner: bool
) -> tuple[str, int]:
    """Return the text of one function and the slots of its workspace; inner: called only by other functions."""
    _check_reads(graph)
    if (program := graph.loops()) is not None:
        code = LoopCode(graph, program, w, trig_width, name, called)
        return code.text(), code.size
    known_elements = known_outputs(graph) if inner else {}
    pieces = chunks(items(graph, order(graph), known_elements), chunk)
    printer = LLVMPrinter(graph, w.lanes, trig_width, w.dtype, pieces, called=called, w=w)
    for output, places in known_elements.items():  # elements that callers know, and do not read here
        printer.coverage.note(output, places)
    return printer.function(name), printer.size


def routines(
    requested: Mapping[str, Graph],
    lanes: int,
    trig_width: int,
    dtype: str,
    chunk: int | None = None,
    prefix: str = "f",
    writer: Callable[[int, str], Writer] = Writer,
) -> Routines:
    """Return the requested functions and all that they call.

    Parameters
    ----------
    requested
        Graphs by the names of their functions.
    lanes
        Lanes of an element.
    trig_width
        Lanes of one vector of @sincos.
    dtype
        Floating-point type.
    chunk
        Items in a function; CHUNK_ITEMS by default.
    prefix
        Prefix of the numbered names of called functions.
    writer
        Makes the writer of lines, from lanes and floating-point type.
    """
    chunk = CHUNK_ITEMS if chunk is None else chunk
    called: dict[int, tuple[str, int]] = {}
    parts: list[str] = []
    names: dict[str, str] = {}
    called_graphs = {id(g): g for a in requested.values() for g in a.functions}
    ordered_graphs: Sequence[tuple[str, Graph]] = [
        *((f"{prefix}{k}", g) for k, g in enumerate(called_graphs.values())),
        *requested.items(),
    ]
    loops_call = [f for g in (*requested.values(), *called_graphs.values()) for f in g.within]
    fully_read = {id(g) for g in (*requested.values(), *loops_call)}  # every result is read
    for name, graph in ordered_graphs:
        if id(graph) not in called:
            inner = id(graph) not in fully_read
            text, size = _function_text(name, graph, writer(lanes, dtype), trig_width, called, chunk, inner)
            parts.append(f"; {comment(graph.name)}\n{text}")
            called = {**called, id(graph): (name, size)}
        names[name] = called[id(graph)][0]
    return Routines("\n".join(parts), max((size for _, size in called.values()), default=1), names)


def tick_routines(
    program: Program,
    lanes: int,
    trig_width: int,
    dtype: str,
    more_graphs: Mapping[str, Graph],
    chunk: int | None = None,
    writer: Callable[[int, str], Writer] = Writer,
) -> Routines:
    """Return @go and all functions that it calls, except @sincos.

    Parameters
    ----------
    program
        The program.
    lanes
        Lanes of an element.
    trig_width
        Lanes of one vector of @sincos.
    dtype
        Floating-point type.
    more_graphs
        Further graphs, by the names of their functions.
    chunk
        Items in a function; CHUNK_ITEMS by default.
    writer
        Makes the writer of lines, from lanes and floating-point type.
    """
    optional_graphs = {"renew": program.renew, "locate": program.locate}
    requested = {
        "tick": inline_small(program.tick),
        **{name: g for name, g in optional_graphs.items() if g is not None},
        **more_graphs,
    }
    made_routines, w = routines(requested, lanes, trig_width, dtype, chunk, writer=writer), writer(lanes, dtype)
    text = "\n".join([*library_declarations(w), made_routines.text, _go_function(program, w)])
    return replace(made_routines, text=text)


def call_go(ticks: str, state_address: str, free_address: str, to: str, other: str) -> str:
    """Return a call of @go.

    Parameters
    ----------
    ticks
        Number of ticks.
    state_address
        Address of the state.
    free_address
        Address of the free place.
    to
        Name for the address of the state afterwards.
    other
        Name for the address of the free place afterwards.
    """
    return f"""  {to} = call ptr @go(i64 {ticks}, ptr {state_address}, ptr {free_address}, ptr %p, ptr %u, ptr %ws)
  {to}.stays = icmp eq ptr {to}, {state_address}
  {other} = select i1 {to}.stays, ptr {free_address}, ptr {state_address}
"""


def sign_bits(w: Writer, name: str, state: str, place: int) -> str:
    """Return text that tests a sign of the state: %name.bits, one bit per lane that is set, and %name, true if any is.

    Parameters
    ----------
    w
        The writer.
    name
        Name of the sign.
    state
        Address of the state.
    place
        Index of the sign in the state, which is set if positive.
    """
    bits = f"i{w.lanes}"
    return f"""  %{name}.at = getelementptr i8, ptr {state}, i64 {place * w.align}
  %{name}.x = load {w.type}, ptr %{name}.at, align {w.bytes * w.lanes}
  %{name}.set = fcmp ogt {w.type} %{name}.x, {w.immediate(0.0)}
  %{name}.bits = bitcast {w.mask} %{name}.set to {bits}
  %{name} = icmp ne {bits} %{name}.bits, 0
"""


def call_text(graph: Graph, name: str, state: str, *outputs: str) -> str:
    """Return a call of the function `name` of `graph` for a `state`, with the addresses of its `outputs`."""
    addresses = {"s": state, "p": "%p", "u": "%u"}
    arguments = ", ".join(f"ptr {a}" for a in ("%ws", *(addresses[key] for key in graph.inputs), *outputs))
    return f"  call void @{name}({arguments})\n"


def begin_function(program: Program) -> str:
    """Return @begin(s, spare, p, u, ws), which completes the state s of `program` in spare before the first tick."""
    arguments = ", ".join(f"ptr noalias %{a}" for a in ("s", "spare", "p", "u", "ws"))
    return f"""define void @begin({arguments}) nounwind {{
{call_text(program.start, "start", "%s", "%spare")}  ret void
}}"""


def _go_function(program: Program, w: Writer) -> str:
    renew, from_after_renew, to_after_renew = "  br label %tick\n", "", ""
    if program.renew:
        renew = f"""{sign_bits(w, "fresh", "%here", program.fresh)}  br i1 %fresh, label %renew, label %tick
renew:
{call_text(program.renew, "renew", "%here", "%there")}  br label %tick
"""
        from_after_renew, to_after_renew = ", [%there, %renew]", ", [%here, %renew]"
    located, hit, here_after_find, there_after_find, k_after_find = "", "  br label %top\n", "", "", ""
    if program.locate:
        hit = f"{sign_bits(w, 'hit', '%to', program.hit)}  br i1 %hit, label %find, label %top\n"
        located = f"find:\n{call_text(program.locate, 'locate', '%to', '%from')}  br label %top\n"
        here_after_find, there_after_find, k_after_find = (f", [%{x}, %find]" for x in ("from", "to", "k.next"))
    parameters = ", ".join(f"ptr noalias %{x}" for x in ("s", "spare", "p", "u", "ws"))
    return f"""define internal ptr @go(i64 %ticks, {parameters}) noinline nounwind {{
begin:
  br label %top
top:
  %k = phi i64 [0, %begin], [%k.next, %tick]{k_after_find}
  %here = phi ptr [%s, %begin], [%to, %tick]{here_after_find}
  %there = phi ptr [%spare, %begin], [%from, %tick]{there_after_find}
  %more = icmp ult i64 %k, %ticks
  br i1 %more, label %go, label %done
go:
{renew}tick:
  %from = phi ptr [%here, %go]{from_after_renew}
  %to = phi ptr [%there, %go]{to_after_renew}
{call_text(program.tick, "tick", "%from", "%to")}  %k.next = add i64 %k, 1
{hit}{located}done:
  ret ptr %here
}}"""
