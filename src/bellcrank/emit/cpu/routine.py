"""Graphs as functions that call each other, with lanes side by side in memory: what a compiled loop is made of.

    void @name(ptr ws, ptr in..., ptr out...)

An array is its columns one after the other, each as wide as the lanes. Nothing is transposed, nothing is allocated: the
workspace comes from whoever starts the loop, and a caller's lies behind that of the functions it calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bellcrank.emit.cpu.lodgings import known_before
from bellcrank.emit.cpu.plan import chunks, items
from bellcrank.emit.cpu.rolled_code import Rolled
from bellcrank.emit.cpu.speller import Speller
from bellcrank.emit.cpu.strip_code import StripCode
from bellcrank.emit.order import order
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.strips import stripped
from bellcrank.quoting import comment

# Items in a function. Fewer than in emit/cpu/llvm.py: a third of the time to compile is saved, and values live in
# memory here anyway.
CHUNK = 500


@dataclass(frozen=True)
class Routines:
    text: str
    slots: int  # of the workspace that serves any of them; a slot is as wide as the lanes
    names: Mapping[str, str]  # of the functions asked for, by what they were asked as


def _spelled(
    name: str,
    graph: Graph,
    lanes: int,
    trig_width: int,
    dtype: str,
    called: Mapping[int, tuple[str, int]],
    chunk: int,
    inner: bool = False,
) -> tuple[str, int]:
    """The text of one function, and the slots of its workspace. inner: only others of them call it."""
    if isinstance(graph, Recursion):
        loops = Rolled(graph, lanes, trig_width, dtype, name)
        return loops.text(), loops.size
    if (made := stripped(graph)) is not None:
        code = StripCode(graph, made, lanes, trig_width, dtype, name, called)
        return code.text(), code.size
    known = known_before(graph) if inner else {}
    pieces = chunks(items(graph, order(graph), known), chunk)
    speller = Speller(graph, lanes, trig_width, dtype, pieces, called=called)
    return speller.function(name), speller.size


def routines(
    asked: Mapping[str, Graph], lanes: int, trig_width: int, dtype: str, chunk: int = CHUNK, prefix: str = "f"
) -> Routines:
    """The functions asked for and all that they call, which are named by numbers behind the prefix."""
    called: dict[int, tuple[str, int]] = {}
    parts: list[str] = []
    names: dict[str, str] = {}
    wanted: Sequence[tuple[str, Graph]] = [
        *((f"{prefix}{k}", g) for k, g in enumerate({id(g): g for a in asked.values() for g in a.calls}.values())),
        *asked.items(),
    ]
    for name, graph in wanted:
        if id(graph) not in called:
            inner = not any(graph is g for g in asked.values())
            text, size = _spelled(name, graph, lanes, trig_width, dtype, called, chunk, inner)
            parts.append(f"; {comment(graph.name)}\n{text}")
            called = {**called, id(graph): (name, size)}
        names[name] = called[id(graph)][0]
    return Routines("\n".join(parts), max((size for _, size in called.values()), default=1), names)
