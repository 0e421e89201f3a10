"""Matrices of results from lanes to rows of states: a loop over their elements, which wait in a workspace.

    void @name(ptr ws, ptr out, i64 stride)

A batch has rows of states, and a vector the same element of several. Results that are stored where they become known
touch lines of memory here and there, and every line twice, for hardly a row begins where a line does. So a matrix is
stored from its first element to its last: lines come in the order in which they are expected, and go as wholes.
Vectors of 64 bytes are taken by halves: exchanging lanes of those takes fewer cycles, and wherever rows of states begin
in a line, stores of 32 bytes seldom go across two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.emit.cpu.lanes import Writer, data, exchanged

WIDEST = 32  # bytes that are exchanged and stored at once


def definition(name: str, lanes: int, dtype: str, slots: Sequence[int]) -> str:
    """slots: of each element, in the workspace."""
    code = _RowCode(name, lanes, dtype, len(slots))
    table = data(f"{name}_places", np.array(slots, np.int32) * (lanes * code.w.bytes))
    return f"{table}\n{code.text()}"


class _RowCode:
    def __init__(self, name: str, lanes: int, dtype: str, size: int) -> None:
        self.name, self.lanes, self.size = name, lanes, size
        whole = Writer(lanes, dtype)
        self.w = Writer(min(lanes, WIDEST // whole.bytes), dtype)
        self.step = 2 * self.w.lanes  # elements of a round

    def text(self) -> str:
        w, step = self.w, self.step
        for at in (0, self.size - step):  # both ends, wherever lines begin
            self._stored(str(at))
        address, line = w.let("ptrtoint ptr %out to i64"), step * w.bytes
        left = w.let(f"and i64 {w.let(f'sub i64 0, {address}')}, {line - 1}")
        w.do(f"%begin = udiv i64 {left}, {w.bytes}")
        w.do("br label %round")
        w.do("round:")
        w.do("%at = phi i64 [%begin, %entry], [%next, %round]")
        self._stored("%at")
        w.do(f"%next = add i64 %at, {step}")
        w.do(f"%more = icmp ule i64 %next, {self.size - step}")
        w.do("br i1 %more, label %round, label %end")
        w.do("end:")
        lines = "".join(f"  {line}\n" for line in w.lines)
        parameters = "ptr noalias %ws, ptr noalias %out, i64 %stride"
        return f"""define internal void @{self.name}({parameters}) noinline nounwind {{
entry:
{lines}  ret void
}}"""

    def _stored(self, at: str) -> None:
        """A round of elements, from one on, to the rows of all states."""
        w = self.w
        table = w.let(f"getelementptr i32, ptr @{self.name}_places, i64 {at}", "p")
        found = [w.load(w.at(table, 4 * i), "i32", 4) for i in range(self.step)]
        elements = [w.let(f"getelementptr i8, ptr %ws, i64 {w.let(f'zext i32 {x} to i64')}", "p") for x in found]
        start = w.let(f"getelementptr {w.element}, ptr %out, i64 {at}", "p")
        for first in range(0, self.lanes, w.lanes):
            rows = [
                w.let(f"getelementptr i8, ptr {start}, i64 {w.let(f'mul i64 %stride, {first + s}')}", "p")
                for s in range(w.lanes)
            ]
            for begin in range(0, self.step, w.lanes):
                vectors = [w.load(w.at(p, first * w.bytes)) for p in elements[begin : begin + w.lanes]]
                for row, vector in zip(rows, self._exchanged(vectors), strict=True):
                    w.store(vector, w.at(row, begin * w.bytes), align=w.bytes)

    def _exchanged(self, vectors: list[str]) -> list[str]:
        step = 1
        while step < self.w.lanes:
            vectors, step = exchanged(self.w, vectors, step, True), 2 * step
        return vectors
