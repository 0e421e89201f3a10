"""Calls that a graph makes: calls of other graphs, and of loops over columns.

Arguments are stored in the workspace, and results stay there until they are used.
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
    from bellcrank.emit.cpu.column_homes import Homes
    from bellcrank.emit.cpu.speller import Speller


def call(s: Speller, item: Item) -> None:
    """Emit the call `item` by printer `s`; arguments are stored unless they are contiguous, results stay in place."""
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
    """Return the address of each array that a function takes."""
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
    """Call a loop over columns.

    Columns are stored in the workspace, and shared numbers are read in place. Results go to an output, or they stay in
    the workspace until they are used.
    """
    function, *values = call.args
    code, to = s.columns.codes[call.serial], s.columns.places.get(call.serial)
    shared = math.prod(function.inputs["shared"])
    s._keep([x for x in values[:shared] if x.serial not in s.slots])
    home = code.homes(_read_last(s, call)) if s.w.lanes > 1 else None
    s.loops.append(code.text([s.slots[x.serial] for x in values[:shared]], home))
    start = given(s, call)
    for i, x in enumerate(values[shared:], start):
        if not isinstance(x, Node) or s.slots.get(x.serial) != i:
            s.w.store(s._value(x), s._slot(i))
    arguments, name = f"ptr %ws, ptr {s._slot(start)}", code.name
    if to is not None:
        s.coverage.note(to.array, to.taken)
        s.w.do(f"call void @{name}({arguments}, ptr %out_{symbol(to.array)})")
        return
    base = s._room(home.beyond * function.number if home else math.prod(function.shapes["x"]))
    s.w.do(f"call void @{name}({arguments}, ptr {s._slot(base)})")
    if home:
        _settle(s, call, results, home, base)
    else:
        s.slots.update((x.serial, base + x.args[1]) for x in results)


def _settle(s: Speller, call: Node, results: Sequence[Node], home: Homes, base: int) -> None:
    """Update the slots after a loop: record the results, forget overwritten values, and free unused rows."""
    function, *values = call.args
    n, start = function.number, given(s, call)
    for i, x in enumerate(values[math.prod(function.inputs["shared"]) :]):
        if i // n in home.over and isinstance(x, Node) and s.slots.get(x.serial) == start + i:
            del s.slots[x.serial]
    begins = [start + n * i for i in range(home.given)] + [base + n * i for i in range(home.beyond)]
    s.slots.update((x.serial, begins[home.results[x.args[1] // n]] + x.args[1] % n) for x in results)
    s.free += [begins[place] + k for place in home.left for k in range(n)]


def _read_last(s: Speller, call: Node) -> list[int]:
    """Return the rows of a loop's arguments that nothing reads after the loop."""
    function, *values = call.args
    columns, n = values[math.prod(function.inputs["shared"]) :], function.number
    later = s.read_after(call)
    rows = [columns[i : i + n] for i in range(0, len(columns), n)]
    return [i for i, row in enumerate(rows) if not any(isinstance(x, Node) and x.serial in later for x in row)]


def given(s: Speller, call: Node) -> int:
    """Return the slot, as printer `s` counts them, where the columns of the loop `call` begin; values wait there."""
    if call.serial not in s.given:
        room = math.prod(call.args[0].inputs["given"]) + s.trig_width  # vectors may reach beyond the last column
        s.given[call.serial] = s._room(room)
    return s.given[call.serial]
