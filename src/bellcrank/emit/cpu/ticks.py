"""Ticks of a Program, one after the other: the one loop around them, which runs, actions and the real-time drive call.

    ptr @go(i64 ticks, ptr s, ptr spare, ptr p, ptr u, ptr ws)      so many ticks from the state in s

It gives where the state is then: s or spare. Before a tick samples that are due are taken (renew), and after it what
happened on the way is found (locate), in all lanes where any asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellcrank.emit.cpu.llvm import library
from bellcrank.emit.cpu.routine import CHUNK, Routines, routines
from bellcrank.emit.cpu.writer import Writer
from bellcrank.graph import Graph, Program
from bellcrank.graph.inline import opened


def ticking(
    program: Program,
    lanes: int,
    trig_width: int,
    dtype: str,
    more: Mapping[str, Graph],
    chunk: int = CHUNK,
) -> Routines:
    """@go and all that it calls, but for @sincos; more: graphs beside it, by the names of their functions."""
    own = {"renew": program.renew, "locate": program.locate}
    asked = {"tick": opened(program.tick), **{name: g for name, g in own.items() if g is not None}, **more}
    made, w = routines(asked, lanes, trig_width, dtype, chunk), Writer(lanes, dtype)
    return Routines("\n".join([*library(w), made.text, _go(program, w)]), made.slots, made.names)


def gone(ticks: str, here: str, there: str, to: str, other: str) -> str:
    """Calls @go; `to` is where the state is then, and `other` the place that is free."""
    return f"""  {to} = call ptr @go(i64 {ticks}, ptr {here}, ptr {there}, ptr %p, ptr %u, ptr %ws)
  {to}.stays = icmp eq ptr {to}, {here}
  {other} = select i1 {to}.stays, ptr {there}, ptr {here}
"""


def sign(w: Writer, name: str, state: str, place: int) -> str:
    """%name.bits, one bit per lane where s[place] is positive, and %name, whether there is any."""
    bits = f"i{w.lanes}"
    return f"""  %{name}.at = getelementptr i8, ptr {state}, i64 {place * w.align}
  %{name}.x = load {w.type}, ptr %{name}.at, align {w.align}
  %{name}.set = fcmp ogt {w.type} %{name}.x, {w.immediate(0.0)}
  %{name}.bits = bitcast {w.mask} %{name}.set to {bits}
  %{name} = icmp ne {bits} %{name}.bits, 0
"""


def call_of(graph: Graph, name: str, state: str, *outputs: str) -> str:
    given = {"s": state, "p": "%p", "u": "%u"}
    arguments = ", ".join(f"ptr {a}" for a in ("%ws", *(given[key] for key in graph.inputs), *outputs))
    return f"  call void @{name}({arguments})\n"


def begin(program: Program) -> str:
    """void @begin(ptr s, ptr spare, ptr p, ptr u, ptr ws): the state in s, completed in spare before the first tick."""
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
