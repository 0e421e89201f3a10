"""Matrices of results from lanes to rows of states: a loop over their elements, which wait in a workspace.

    void @name(ptr ws, ptr out, i64 stride)

A batch has rows of states, and a vector the same element of several. Results that are stored where they become known
touch lines of memory here and there, and every line twice, for hardly a row begins where a line does. So a matrix is
stored from its first element to its last: lines come in the order in which they are expected, and go as wholes. The
rows of every second state may begin in the middle of a line; those are stored half a vector later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.emit.cpu.lanes import Writer, data, exchanged


def definition(name: str, lanes: int, dtype: str, slots: Sequence[int]) -> str:
    """slots: of each element, in the workspace."""
    code = _RowCode(name, lanes, dtype, len(slots))
    table = data(f"{name}_places", np.array(slots, np.int32) * code.w.align)
    return f"{table}\n{code.text()}"


class _RowCode:
    def __init__(self, name: str, lanes: int, dtype: str, size: int) -> None:
        self.name, self.size, self.w = name, size, Writer(lanes, dtype)
        self.half = lanes // 2

    def text(self) -> str:
        w, L, half = self.w, self.w.lanes, self.half
        for at in (0, half, self.size - L - half, self.size - L):  # both ends, wherever lines begin
            self._stored(str(at), self._group(str(at)), self._group(str(at + half)), range(L))
        address = w.let("ptrtoint ptr %out to i64")
        left = w.let(f"and i64 {w.let(f'sub i64 0, {address}')}, {w.align - 1}")
        w.do(f"%begin = udiv i64 {left}, {w.bytes}")
        first = self._group("%begin")
        part = w.let(f"and i64 %stride, {w.align - 1}")
        w.do(f"%turns = icmp eq i64 {part}, {w.align // 2}")
        w.do("br i1 %turns, label %turn, label %all")
        self._loop("turn", first, range(0, L, 2), range(1, L, 2))
        self._loop("all", first, range(L), range(0))
        w.do("end:")
        lines = "".join(f"  {line}\n" for line in w.lines)
        parameters = "ptr noalias %ws, ptr noalias %out, i64 %stride"
        return f"""define internal void @{self.name}({parameters}) noinline nounwind {{
entry:
{lines}  ret void
}}"""

    def _loop(self, label: str, first: Sequence[str], now: range, later: range) -> None:
        """Some states are stored from an element on, and the others from half a vector later."""
        w, L, half = self.w, self.w.lanes, self.half
        at, last = f"%{label}.at", [f"%{label}.last{i}" for i in range(half)]
        w.do(f"{label}:")
        w.do(f"{at} = phi i64 [%begin, %entry], [%{label}.next, %{label}]")
        place = len(w.lines)
        middle = self._group(w.let(f"add i64 {at}, {half}"))
        self._stored(at, last, middle, now)
        w.do(f"%{label}.next = add i64 {at}, {L}")
        following = self._group(f"%{label}.next")
        self._stored(w.let(f"add i64 {at}, {half}"), middle, following, later)
        phis = [
            f"{x} = phi {w.type} [{a}, %entry], [{b}, %{label}]" for x, a, b in zip(last, first, following, strict=True)
        ]
        w.lines[place:place] = phis
        more = w.let(f"icmp ult i64 %{label}.next, {self.size - L - half + 1}")
        w.do(f"br i1 {more}, label %{label}, label %end")

    def _group(self, at: str) -> list[str]:
        """Half as many elements as there are lanes, from one on, exchanged as far as they can be by themselves."""
        w = self.w
        table = w.let(f"getelementptr i32, ptr @{self.name}_places, i64 {at}", "p")
        vectors = []
        for i in range(self.half):
            place = w.let(f"zext i32 {w.load(w.at(table, 4 * i), 'i32', 4)} to i64")
            vectors.append(w.load(w.let(f"getelementptr i8, ptr %ws, i64 {place}", "p")))
        step = 1
        while step < self.half:
            vectors, step = exchanged(w, vectors, step, True), 2 * step
        return vectors

    def _stored(self, at: str, first: Sequence[str], second: Sequence[str], states: range) -> None:
        """Two groups, side by side, to the rows of some states."""
        if not states:
            return
        w = self.w
        rows = exchanged(w, [*first, *second], self.half, True)
        start = w.let(f"getelementptr {w.element}, ptr %out, i64 {at}", "p")
        for s in states:
            offset = w.let(f"mul i64 %stride, {s}")
            w.store(rows[s], w.let(f"getelementptr i8, ptr {start}, i64 {offset}", "p"), align=w.bytes)
