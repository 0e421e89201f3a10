"""What a graph calls, spelled: other graphs, and loops over columns. Arguments go to the workspace, and results stay
where they are put until they are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from bellcrank.emit.cpu.plan import Item
from bellcrank.emit.cpu.registers import in_a_row, taken
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.cpu.speller import Speller


def call(s: Speller, item: Item) -> None:
    """Arguments to the workspace, unless they lie in a row already; results stay where they are put."""
    made, *results = item.defines
    function, *values = made.args
    if isinstance(function, Columns):
        _columns(s, made, results)
        return
    assert s.called is not None
    name, _ = s.called[id(function)]
    arrays = _arguments(s, function, values)
    outputs = [math.prod(shape) for shape in function.shapes.values()]
    base, s.size = s.lodgings.found(results, sum(outputs), s.size)
    arrays += [s._slot(place) for place, _ in zip(accumulate([base, *outputs]), outputs, strict=False)]
    s.w.do(f"call void @{name}({', '.join(f'ptr {a}' for a in ('%ws', *arrays))})")
    for n in results:
        s.slots[n.serial] = base + n.args[1]


def _arguments(s: Speller, function: Graph, values: Sequence[Node | float]) -> list[str]:
    """Where each array that a function takes begins."""
    sizes = [math.prod(shape) for shape in function.inputs.values()]
    start, room = s.letters
    if room < sum(sizes):
        start, room = s.size, sum(sizes)
        s.letters, s.size = (start, room), s.size + room
    found, at = [], 0
    used = taken(function)
    for array, size in zip(function.inputs, sizes, strict=True):
        mine = values[at : at + size]
        row = in_a_row([(i, x) for i, x in enumerate(mine) if (array, i) in used], s.slots)
        if row is not None:
            found.append(s.w.at(f"%{row[0]}", row[1] * s.w.align))
        else:
            for i, x in enumerate(mine):
                if (array, i) in used:
                    s.w.store(s._value(x), s._slot(start + at + i))
            found.append(s._slot(start + at))
        at += size
    return found


def _columns(s: Speller, call: Node, results: Sequence[Node]) -> None:
    """Columns to the workspace, where shared numbers are read as they lie; results to the outputs, or they stay
    where they are put until they are used.
    """
    function, *values = call.args
    code, to = s.columns.codes[call.serial], s.columns.places.get(call.serial)
    shared = math.prod(function.inputs["shared"])
    s._keep([x for x in values[:shared] if x.serial not in s.slots])
    s.loops.append(code.text([s.slots[x.serial] for x in values[:shared]]))
    start = given(s, call)
    for i, x in enumerate(values[shared:], start):
        if not isinstance(x, Node) or s.slots.get(x.serial) != i:
            s.w.store(s._value(x), s._slot(i))
    arguments, name = f"ptr %ws, ptr {s._slot(start)}", code.name
    if to is not None:
        out = f"out_{symbol(to.array)}"
        s.w.do(f"call void @{name}({arguments}, ptr %{out})")
        return
    in_place = _in_place(s, call)
    base = start if in_place else s._room(math.prod(function.shapes["x"]))
    s.w.do(f"call void @{name}({arguments}, ptr {s._slot(base)})")
    if in_place:
        for i, x in enumerate(values[shared:], start):
            if isinstance(x, Node) and s.slots.get(x.serial) == i:
                del s.slots[x.serial]
    for n in results:
        s.slots[n.serial] = base + n.args[1]


def _in_place(s: Speller, call: Node) -> bool:
    """Whether results of a loop take the place of what it is given, which is in the nearest cache: where nobody else
    reads that, and the loop is done with it by then.
    """
    function, *values = call.args
    alone = all(s.uses[x.serial] == 1 for x in values[math.prod(function.inputs["shared"]) :] if isinstance(x, Node))
    return alone and s.w.lanes > 1 and call.serial not in s.columns.places and s.columns.codes[call.serial].in_place


def given(s: Speller, call: Node) -> int:
    """Where the columns of a loop begin, so that what waits for it does so in its place."""
    if call.serial not in s.given:
        room = math.prod(call.args[0].inputs["given"]) + s.trig_width  # vectors may reach beyond the last column
        if _in_place(s, call):
            room = max(room, math.prod(call.args[0].shapes["x"]))
        s.given[call.serial] = s._room(room)
    return s.given[call.serial]
