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
from dataclasses import dataclass

from bellcrank.emit.cpu.elimination_code import EliminationCode
from bellcrank.emit.cpu.lanes import Writer, library
from bellcrank.emit.cpu.plan import chunks, items, order
from bellcrank.emit.cpu.registers import known_before
from bellcrank.emit.cpu.rolled_code import Rolled
from bellcrank.emit.cpu.speller import Speller
from bellcrank.emit.cpu.strip_code import StripCode
from bellcrank.errors import CompileError
from bellcrank.graph import Graph, Program, Recursion, elimination, strip_parts
from bellcrank.graph.coverage import BUG
from bellcrank.graph.inline import opened
from bellcrank.quoting import comment

# Items in a function. Fewer than in emit/cpu/llvm.py: this saves a third of the compile time, and values live in memory
# here anyway.
CHUNK = 500


@dataclass(frozen=True)
class Routines:
    """Text of functions, and the workspace that they need."""

    text: str
    slots: int  # of the workspace that suffices for any of them; a slot is as wide as the lanes
    names: Mapping[str, str]  # requested name -> name of the function


def _check_reads(graph: Graph) -> None:
    """Raise CompileError if a graph reads an element that a recursion does not store."""
    for n in graph.nodes:
        if n.op == "result" and isinstance(n.args[0].args[0], Recursion):
            called, element = n.args[0].args[0], n.args[1]
            if not called.stored[element]:
                raise CompileError(
                    f"{graph.name}: it reads element {element} of {called.name}, which is not stored{BUG}"
                )


def _spelled(
    name: str,
    graph: Graph,
    lanes: int,
    trig_width: int,
    dtype: str,
    called: Mapping[int, tuple[str, int]],
    chunk: int,
    inner: bool,
    writer: Callable[[int, str], Writer],
) -> tuple[str, int]:
    """Return the text of one function and the slots of its workspace; inner: called only by other functions."""
    if isinstance(graph, Recursion):
        loops = Rolled(graph, lanes, trig_width, dtype, name)
        loops.w = writer(lanes, dtype)
        return loops.text(), loops.size
    if isinstance(graph, elimination.Loops):
        solver = EliminationCode(graph, lanes, trig_width, dtype, name, called)
        solver.w = writer(lanes, dtype)
        return solver.text(), solver.size
    _check_reads(graph)
    large = graph.size >= strip_parts.FEWEST and graph.widest >= strip_parts.LONG
    if large and (made := strip_parts.stripped(graph)) is not None:
        code = StripCode(graph, made, lanes, trig_width, dtype, name, called)
        code.w = writer(lanes, dtype)
        return code.text(), code.size
    known = known_before(graph) if inner else {}
    pieces = chunks(items(graph, order(graph), known), chunk)
    speller = Speller(graph, lanes, trig_width, dtype, pieces, called=called)
    speller.w = writer(lanes, dtype)
    for output, places in known.items():  # elements that callers know, and do not read here
        speller.coverage.note(output, places)
    return speller.function(name), speller.size


def routines(
    asked: Mapping[str, Graph],
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
    asked
        Graphs by the names of their functions.
    lanes
        Lanes of an element.
    trig_width
        Lanes of one vector of @sincos.
    dtype
        Floating-point type.
    chunk
        Items in a function; CHUNK by default.
    prefix
        Prefix of the numbered names of called functions.
    writer
        Makes the writer of lines, from lanes and floating-point type.
    """
    chunk = CHUNK if chunk is None else chunk
    called: dict[int, tuple[str, int]] = {}
    parts: list[str] = []
    names: dict[str, str] = {}
    inside = {id(g): g for a in asked.values() for g in a.functions}
    wanted: Sequence[tuple[str, Graph]] = [
        *((f"{prefix}{k}", g) for k, g in enumerate(inside.values())),
        *asked.items(),
    ]
    whole = {id(g) for g in (*asked.values(), *(f for g in inside.values() for f in g.within))}  # every result is read
    for name, graph in wanted:
        if id(graph) not in called:
            inner = id(graph) not in whole
            text, size = _spelled(name, graph, lanes, trig_width, dtype, called, chunk, inner, writer)
            parts.append(f"; {comment(graph.name)}\n{text}")
            called = {**called, id(graph): (name, size)}
        names[name] = called[id(graph)][0]
    return Routines("\n".join(parts), max((size for _, size in called.values()), default=1), names)


def ticking(
    program: Program,
    lanes: int,
    trig_width: int,
    dtype: str,
    more: Mapping[str, Graph],
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
    more
        Further graphs, by the names of their functions.
    chunk
        Items in a function; CHUNK by default.
    writer
        Makes the writer of lines, from lanes and floating-point type.
    """
    own = {"renew": program.renew, "locate": program.locate}
    asked = {"tick": opened(program.tick), **{name: g for name, g in own.items() if g is not None}, **more}
    made, w = routines(asked, lanes, trig_width, dtype, chunk, writer=writer), writer(lanes, dtype)
    return Routines("\n".join([*library(w), made.text, _go(program, w)]), made.slots, made.names)


def gone(ticks: str, here: str, there: str, to: str, other: str) -> str:
    """Return a call of @go.

    Parameters
    ----------
    ticks
        Number of ticks.
    here
        Address of the state.
    there
        Address of the free place.
    to
        Name for the address of the state afterwards.
    other
        Name for the address of the free place afterwards.
    """
    return f"""  {to} = call ptr @go(i64 {ticks}, ptr {here}, ptr {there}, ptr %p, ptr %u, ptr %ws)
  {to}.stays = icmp eq ptr {to}, {here}
  {other} = select i1 {to}.stays, ptr {there}, ptr {here}
"""


def sign(w: Writer, name: str, state: str, place: int) -> str:
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


def call_of(graph: Graph, name: str, state: str, *outputs: str) -> str:
    """Return a call of the function `name` of `graph` for a `state`, with the addresses of its `outputs`."""
    given = {"s": state, "p": "%p", "u": "%u"}
    arguments = ", ".join(f"ptr {a}" for a in ("%ws", *(given[key] for key in graph.inputs), *outputs))
    return f"  call void @{name}({arguments})\n"


def begin(program: Program) -> str:
    """Return @begin(s, spare, p, u, ws), which completes the state s of `program` in spare before the first tick."""
    arguments = ", ".join(f"ptr noalias %{a}" for a in ("s", "spare", "p", "u", "ws"))
    return f"""define void @begin({arguments}) nounwind {{
{call_of(program.start, "start", "%s", "%spare")}  ret void
}}"""


def _go(program: Program, w: Writer) -> str:
    renew, turned, turned2 = "  br label %tick\n", "", ""
    if program.renew:
        renew = f"""{sign(w, "fresh", "%here", program.fresh)}  br i1 %fresh, label %renew, label %tick
renew:
{call_of(program.renew, "renew", "%here", "%there")}  br label %tick
"""
        turned, turned2 = ", [%there, %renew]", ", [%here, %renew]"
    located, hit, found, found2, foundk = "", "  br label %top\n", "", "", ""
    if program.locate:
        hit = f"{sign(w, 'hit', '%to', program.hit)}  br i1 %hit, label %find, label %top\n"
        located = f"find:\n{call_of(program.locate, 'locate', '%to', '%from')}  br label %top\n"
        found, found2, foundk = (f", [%{x}, %find]" for x in ("from", "to", "k.next"))
    given = ", ".join(f"ptr noalias %{x}" for x in ("s", "spare", "p", "u", "ws"))
    return f"""define internal ptr @go(i64 %ticks, {given}) noinline nounwind {{
begin:
  br label %top
top:
  %k = phi i64 [0, %begin], [%k.next, %tick]{foundk}
  %here = phi ptr [%s, %begin], [%to, %tick]{found}
  %there = phi ptr [%spare, %begin], [%from, %tick]{found2}
  %more = icmp ult i64 %k, %ticks
  br i1 %more, label %go, label %done
go:
{renew}tick:
  %from = phi ptr [%here, %go]{turned}
  %to = phi ptr [%there, %go]{turned2}
{call_of(program.tick, "tick", "%from", "%to")}  %k.next = add i64 %k, 1
{hit}{located}done:
  ret ptr %here
}}"""
