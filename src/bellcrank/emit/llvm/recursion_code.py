"""LLVM IR of a Recursion as rolled loops: one function for each repeated pattern of cells and each channel.

    void @rolled(ptr ws, ptr in..., ptr out...)

Arrays are as in subroutines.py: an element is as wide as the lanes, and nothing is transposed here. Values that a cell
sends to the next one stay in registers (as a phi of the loop), and are stored only where other loops read them: at the
ends of a run, and at bodies with several children. Values that later loops need lie in the workspace:

    angles, sines, cosines       of all places, each contiguous, so that one call computes them
    sent                         (place, element of all channels); along branches only the ends of runs
    kept                         (place, field)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.emit.llvm.lanes import Writer, constant_array
from bellcrank.emit.llvm.recursion_loop import ANGLES_CHANNEL, RecursionLoop
from bellcrank.graph.recursion import Recursion
from bellcrank.quoting import symbol

Array = np.ndarray[Any, Any]
MAX_DIRECT_CALLS = 40  # runs that are called one by one; with more, a loop over a table calls them


@dataclass
class WorkspaceLayout:
    """Layout of the workspace, in slots as wide as the lanes."""

    r: Recursion
    trig_width: int
    lanes: int
    angle_of: Array = field(init=False)  # (places, most angles of a place) -> index of the angle

    def __post_init__(self) -> None:
        counts = [cut.angle_count for cut in self.r.cell_loops]
        angle_counts = np.zeros(self.places, int)
        for run in self.r.tree.runs:
            for k, cell in enumerate(run.cells):
                angle_counts[run.places_of_cell(k)] = counts[cell]
        angles_before = np.concatenate([[0], np.cumsum(angle_counts)])
        self.angle_count = int(angles_before[-1])
        self.angle_of = angles_before[:-1, None] + np.arange(max(1, *counts))[None]
        ratio = self.trig_width // self.lanes
        self.padded_angles = -(-self.angle_count // ratio) * ratio
        self.starts = np.cumsum([0, *(sum(w) for w in self.r.wanted)]).tolist()
        self.field_index: dict[tuple[int, int], int] = {}
        for k, w in enumerate(self.r.wanted):
            for e in np.flatnonzero(w).tolist():
                self.field_index[k, e] = len(self.field_index)
        self.kept_width = max(cut.stored_values for cut in self.r.cell_loops)
        self.slot = self._slots()
        self.handed_at = 3 * self.padded_angles
        self.kept_at = self.handed_at + (int(self.slot.max(initial=-1)) + 1) * len(self.field_index)
        self.size = self.kept_at + self.places * self.kept_width

    def _slots(self) -> Array:
        """Return the slot of the values that each place sends; -1 if they stay in registers.

        Along a branch only the ends of runs have slots. Memory for all would be several times what the loops touch, and
        be returned to the system after each call.
        """
        if not self.r.tree.chained:
            return np.arange(self.places)
        parent = self.r.tree.parent
        ends = np.unique([x for run in self.r.tree.runs for x in (run.begin, run.end - 1, parent[run.begin])])
        slots = np.full(self.places, -1)
        slots[ends[ends >= 0]] = np.arange(int((ends >= 0).sum()))
        return slots

    @property
    def places(self) -> int:
        """Number of places (bodies)."""
        return len(self.r.tree.parent)


class RecursionCode:
    """LLVM IR of all loops of a recursion, for a given number of lanes."""

    loop = RecursionLoop

    def __init__(self, r: Recursion, lanes: int, trig_width: int, dtype: str, tag: str) -> None:
        """Lay out the workspace.

        Parameters
        ----------
        r
            The recursion.
        lanes
            Lanes of an element.
        trig_width
            Lanes of one vector of @sincos.
        dtype
            Floating-point type.
        tag
            Name of the function, and prefix of those of its loops.
        """
        self.r, self.lanes, self.trig_width, self.dtype, self.tag = r, lanes, trig_width, dtype, tag
        self.layout = WorkspaceLayout(r, trig_width, lanes)
        self.w = Writer(lanes, dtype)
        self.patterns = list(dict.fromkeys(run.cells for run in r.tree.runs))
        self.runs_of = {p: [run for run in r.tree.runs if run.cells == p] for p in self.patterns}
        self.indices: dict[str, Array] = {}  # index tables, where no formula applies
        names = [f"in_{symbol(n)}" for n in r.inputs] + [f"out_{symbol(r.output[0])}"]
        self.parameters = ", ".join(f"ptr noalias %{n}" for n in ("ws", *names))

    @property
    def size(self) -> int:
        """Slots of the workspace."""
        return self.layout.size

    def text(self) -> str:
        """Return all functions and tables."""
        parts = []
        for k in (ANGLES_CHANNEL, *range(len(self.r.outwards))):
            for p, pattern in enumerate(self.patterns):
                parts.append(self.loop(self, k, pattern, self._name(k, p)).text())
        driver = self._driver()
        return "\n".join([*self._constants(), *parts, driver])

    def _name(self, k: int, p: int) -> str:
        return f"{self.tag}_{'angles' if k == ANGLES_CHANNEL else k}_{p}"

    # -- calls of the loops

    def _driver(self) -> str:
        lines: list[str] = []
        blocks = 0
        runs, calls_directly = self.r.tree.runs, len(self.r.tree.runs) <= MAX_DIRECT_CALLS
        max_pattern = max(len(p) for p in self.patterns)
        for k in (ANGLES_CHANNEL, *range(len(self.r.outwards))):
            forwards = k == ANGLES_CHANNEL or self.r.outwards[k]
            if calls_directly:
                for run in runs if forwards else reversed(runs):
                    rows = [*run.rows, *[0] * (max_pattern - len(run.rows))]
                    numbers = ", ".join(f"i64 {x}" for x in (run.begin, run.repeats, *rows))
                    lines.append(
                        f"  call void @{self._name(k, self.patterns.index(run.cells))}({self.parameters}, {numbers})"
                    )
            else:
                blocks += 1
                lines += self._table_loop(k, forwards, max_pattern, f"d{blocks}")
            if k == ANGLES_CHANNEL:
                lines += self._sincos_call()
        return (
            f"define internal void @{self.tag}({self.parameters}) noinline nounwind {{\nentry:\n"
            + "\n".join(lines)
            + "\n  ret void\n}"
        )

    def _sincos_call(self) -> list[str]:
        """Return the computation of all sines and cosines; the angles that only fill up a vector are zero."""
        layout, w = self.layout, self.w
        if not layout.angle_count:
            return []
        lines_before, w.lines = w.lines, []
        for i in range(layout.angle_count, layout.padded_angles):
            w.store("zeroinitializer" if w.lanes > 1 else w.immediate(0.0), w.at("%ws", i * w.align))
        x, s, c = (w.at("%ws", i * layout.padded_angles * w.align) for i in range(3))
        w.do(f"call void @sincos(ptr {x}, ptr {s}, ptr {c}, i64 {layout.padded_angles * w.lanes // self.trig_width})")
        lines, w.lines = [f"  {line}" for line in w.lines], lines_before
        return lines

    def _table_loop(self, k: int, forwards: bool, max_pattern: int, tag: str) -> list[str]:
        """Return a loop over the table of runs, with a switch over the functions."""
        n, width = len(self.r.tree.runs), 3 + max_pattern
        lines = [
            f"  br label %{tag}",
            f"{tag}:",
            f"  %{tag}.from = phi i64 [0, %{self._previous_label(tag)}], [%{tag}.next, %{tag}.on]",
            f"  %{tag}.i = {'add i64 0,' if forwards else f'sub i64 {n - 1},'} %{tag}.from",
            f"  %{tag}.o = mul i64 %{tag}.i, {width * 4}",
            f"  %{tag}.p = getelementptr i8, ptr @{self.tag}_runs, i64 %{tag}.o",
        ]
        for j in range(width):
            lines += [
                f"  %{tag}.p{j} = getelementptr i8, ptr %{tag}.p, i64 {4 * j}",
                f"  %{tag}.w{j} = load i32, ptr %{tag}.p{j}, align 4",
                f"  %{tag}.x{j} = zext i32 %{tag}.w{j} to i64",
            ]
        cases = " ".join(f"i64 {p}, label %{tag}.c{p}" for p in range(len(self.patterns)))
        lines.append(f"  switch i64 %{tag}.x0, label %{tag}.on [{cases}]")
        numbers = ", ".join(f"i64 %{tag}.x{j}" for j in range(1, width))
        for p in range(len(self.patterns)):
            lines += [
                f"{tag}.c{p}:",
                f"  call void @{self._name(k, p)}({self.parameters}, {numbers})",
                f"  br label %{tag}.on",
            ]
        lines += [
            f"{tag}.on:",
            f"  %{tag}.next = add i64 %{tag}.from, 1",
            f"  %{tag}.more = icmp ult i64 %{tag}.next, {n}",
            f"  br i1 %{tag}.more, label %{tag}, label %{tag}.done",
            f"{tag}.done:",
        ]
        return lines

    def _previous_label(self, tag: str) -> str:
        number = int(tag.removeprefix("d"))
        return "entry" if number == 1 else f"d{number - 1}.done"

    # -- constants

    def _constants(self) -> Iterator[str]:
        if len(self.r.tree.runs) > MAX_DIRECT_CALLS:
            max_pattern = max(len(p) for p in self.patterns)
            rows = [
                [
                    self.patterns.index(run.cells),
                    run.begin,
                    run.repeats,
                    *run.rows,
                    *[0] * (max_pattern - len(run.rows)),
                ]
                for run in self.r.tree.runs
            ]
            yield constant_array(f"{self.tag}_runs", np.array(rows, np.int32))
        for k, table in enumerate(self.r.tables):
            if table.size:
                yield constant_array(f"{self.tag}_table{k}", np.ascontiguousarray(table, self.dtype))
        for name, values in self.indices.items():
            yield constant_array(name, values.astype(np.int32))

    def index(self, name: str, values: Array) -> str:
        """Register the index table `values` under `name`; return its full name."""
        self.indices[f"{self.tag}_{name}"] = values
        return f"{self.tag}_{name}"
