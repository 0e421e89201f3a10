"""Transposed stores of matrices: a loop over elements in the workspace writes them from lanes to rows of states.

    void @name(ptr ws, ptr out, i64 stride)

A batch has rows of states, while a vector holds the same element of several states. Results that are stored as soon as
they are known touch cache lines in no order, and every line twice, because hardly any row begins at a line. So a matrix
is stored from its first element to its last: lines are written completely, in an order that the hardware predicts.
Vectors of 64 bytes are split into halves: exchanging lanes of those takes fewer cycles, and wherever rows begin in a
cache line, stores of 32 bytes seldom cross two lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.emit.llvm.lanes import Writer, constant_array, exchange_step

MAX_STORE_BYTES = 32  # bytes that are exchanged and stored at once


def definition(name: str, lanes: int, dtype: str, slots: Sequence[int]) -> str:
    """Return the function and its table.

    Parameters
    ----------
    name
        Name of the function.
    lanes
        Lanes of an element.
    dtype
        Floating-point type.
    slots
        Slot of each element in the workspace.
    """
    code = _TransposeStore(name, lanes, dtype, len(slots))
    table = constant_array(f"{name}_places", np.array(slots, np.int32) * (lanes * code.w.bytes))
    return f"{table}\n{code.text()}"


class _TransposeStore:
    def __init__(self, name: str, lanes: int, dtype: str, size: int) -> None:
        self.name, self.lanes, self.size = name, lanes, size
        full_writer = Writer(lanes, dtype)
        self.w = Writer(min(lanes, MAX_STORE_BYTES // full_writer.bytes), dtype)
        self.step = 2 * self.w.lanes  # elements of a round

    def text(self) -> str:
        w, step = self.w, self.step
        for start in (0, self.size - step):  # both ends, regardless of alignment
            self._store_round(str(start))
        address, line = w.let("ptrtoint ptr %out to i64"), step * w.bytes
        bytes_to_line = w.let(f"and i64 {w.let(f'sub i64 0, {address}')}, {line - 1}")
        w.do(f"%begin = udiv i64 {bytes_to_line}, {w.bytes}")
        w.do("br label %round")
        w.do("round:")
        w.do("%at = phi i64 [%begin, %entry], [%next, %round]")
        self._store_round("%at")
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

    def _store_round(self, first_element: str) -> None:
        """Store a round of elements to the rows of all states."""
        w = self.w
        table = w.let(f"getelementptr i32, ptr @{self.name}_places, i64 {first_element}", "p")
        offsets = [w.load(w.at(table, 4 * i), "i32", 4) for i in range(self.step)]
        elements = [w.let(f"getelementptr i8, ptr %ws, i64 {w.let(f'zext i32 {x} to i64')}", "p") for x in offsets]
        start = w.let(f"getelementptr {w.element}, ptr %out, i64 {first_element}", "p")
        for first_lane in range(0, self.lanes, w.lanes):
            rows = [
                w.let(f"getelementptr i8, ptr {start}, i64 {w.let(f'mul i64 %stride, {first_lane + s}')}", "p")
                for s in range(w.lanes)
            ]
            for begin in range(0, self.step, w.lanes):
                vectors = [w.load(w.at(p, first_lane * w.bytes)) for p in elements[begin : begin + w.lanes]]
                for row, vector in zip(rows, self._transpose(vectors), strict=True):
                    w.store(vector, w.at(row, begin * w.bytes), align=w.bytes)

    def _transpose(self, vectors: list[str]) -> list[str]:
        step = 1
        while step < self.w.lanes:
            vectors, step = exchange_step(self.w, vectors, step, True), 2 * step
        return vectors
