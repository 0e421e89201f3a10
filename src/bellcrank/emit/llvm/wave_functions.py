"""LLVM IR of a Recursion as loops over parallel runs (graph/waves.py), for one state: lanes are runs, not states.

    void @waves(ptr ws, ptr in..., ptr out...)

Each shape has a function for each channel that processes a range of its bundles; a bundle is as many runs as there are
lanes. Values that later loops need lie in the workspace lane by lane, so that no gathering is needed:

    angles, sines, cosines       (shape, bundle, place in the run, index, lane)
    kept                         likewise
    sent                         (first or last place of a run, element of all channels), one number each
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.emit.llvm.lanes import Writer, constant_array
from bellcrank.emit.llvm.wave_loop import WaveLoop
from bellcrank.graph.cells import ANGLES_CHANNEL
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.waves import WaveCode, WaveRange, group_waves
from bellcrank.quoting import symbol

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Phase:
    """Waves of a channel that may run at the same time."""

    channel: int
    waves: tuple[WaveRange, ...]


class WaveLayout:
    """Layout of the workspace, in numbers."""

    def __init__(self, r: Recursion, shapes: Sequence[WaveCode], lanes: int) -> None:
        """Lay out the workspace of the recursion `r` with these `shapes`, for a number of `lanes`."""
        self.angles_at, self.kept_at, offset = list[int](), list[int](), 0
        self.angles = [max(r.cell_loops[c].angle_count for c in shape.cells) for shape in shapes]
        self.kept_counts = [max(r.cell_loops[c].stored_values for c in shape.cells) for shape in shapes]
        self.bundles = [len(shape.runs) // lanes for shape in shapes]
        for shape, n, width in zip(shapes, self.bundles, self.angles, strict=True):
            self.angles_at.append(offset)
            offset += n * lanes * shape.places * width
        self.angle_count = offset
        offset = 3 * self.angle_count
        for shape, n, width in zip(shapes, self.bundles, self.kept_counts, strict=True):
            self.kept_at.append(offset)
            offset += n * lanes * shape.places * width
        self.handed_at = offset
        self.field_index: dict[tuple[int, int], int] = {}
        for k, w in enumerate(r.wanted):
            for e in np.flatnonzero(w).tolist():
                self.field_index[k, e] = len(self.field_index)
        # Values of parallel runs are stored next to each other.
        ways = [way for shape in shapes for way in (shape.begins, shape.begins + shape.places - 1)]
        parents = [r.tree.parent[shape.begins] for shape in shapes]
        ends = np.array(list(dict.fromkeys(x for x in np.concatenate([*ways, *parents]).tolist() if x >= 0)))
        self.slot = np.full(len(r.tree.parent) + 1, -1)  # the last entry stands for a missing neighbour
        self.slot[ends] = np.arange(len(ends))
        self.slots = len(ends)
        self.size = offset + self.slots * len(self.field_index)
        self.size += -self.size % 8


class Waves:
    """LLVM IR of all loops of a recursion."""

    def __init__(self, r: Recursion, lanes: int, dtype: str, tag: str) -> None:
        """Group the runs and lay out the workspace.

        Parameters
        ----------
        r
            The recursion.
        lanes
            Runs in a bundle.
        dtype
            Floating-point type.
        tag
            Name of the function, and prefix of those of its loops.
        """
        self.r, self.lanes, self.dtype, self.tag = r, lanes, dtype, tag
        self.shapes, self.waves = group_waves(r, lanes)
        self.layout = WaveLayout(r, self.shapes, lanes)
        self.w = Writer(1, dtype)
        self.indices: dict[str, Array] = {}
        self.names = [f"in_{symbol(n)}" for n in r.inputs] + [f"out_{symbol(r.output[0])}"]
        self.parameters = ", ".join(f"ptr noalias %{n}" for n in ("ws", *self.names))

    @property
    def size(self) -> int:
        """Numbers in the workspace."""
        return self.layout.size

    def text(self) -> str:
        """Return all functions and tables."""
        loops = [
            WaveLoop(self, k, i).text()
            for k in (ANGLES_CHANNEL, *range(len(self.r.outwards)))
            for i in range(len(self.shapes))
            if self.has_work(k, i)
        ]
        lines = [
            line for phase in self.phases() for wave in phase.waves for line in self.share_call(phase.channel, wave)
        ]
        driver = f"define internal void @{self.tag}({self.parameters}) noinline nounwind {{"
        return "\n".join([*self._constants(), *loops, driver, *lines, "  ret void\n}"])

    def has_work(self, channel: int, shape: int) -> bool:
        """Return True if a loop of this `channel` and `shape` writes anything."""
        return any(self.r.cell_loops[cell].body(channel).writes for cell in self.shapes[shape].cells)

    def phases(self) -> Iterator[Phase]:
        """Yield the phases in dependency order."""
        yield Phase(ANGLES_CHANNEL, tuple(wave for wave in self.waves if self.has_work(ANGLES_CHANNEL, wave.shape)))
        for k, outwards in enumerate(self.r.outwards):
            for depth in sorted({w.depth for w in self.waves}, reverse=not outwards):
                ready_waves = tuple(w for w in self.waves if w.depth == depth and self.has_work(k, w.shape))
                if ready_waves:
                    yield Phase(k, ready_waves)

    def name(self, channel: int, shape: int) -> str:
        """Return the name of the function for a `channel` and a `shape`."""
        return f"{self.tag}_{'angles' if channel == ANGLES_CHANNEL else channel}_{shape}"

    def share_call(self, channel: int, wave: WaveRange, share: int = 0, shares: int = 1) -> list[str]:
        """Return the call that processes one of several shares of a wave, and then computes its sines and cosines.

        Parameters
        ----------
        channel
            Number of the channel, or ANGLES_CHANNEL; only this has sines and cosines.
        wave
            The wave.
        share
            Number of the share.
        shares
            Number of shares.
        """
        n = (wave.last - wave.first) // self.lanes
        first, last = (wave.first // self.lanes + n * k // shares for k in (share, share + 1))
        if first == last:
            return []
        name = self.name(channel, wave.shape)
        lines = [f"  call void @{name}({self.parameters}, i64 {first}, i64 {last})"]
        if channel == ANGLES_CHANNEL:
            angles_per_bundle = self.shapes[wave.shape].places * self.layout.angles[wave.shape]
            start, addresses = self.layout.angles_at[wave.shape] + first * angles_per_bundle * self.lanes, []
            for j in range(3):
                place = f"%a{wave.shape}.{first}.{j}"
                offset = (start + j * self.layout.angle_count) * self.w.bytes
                lines.append(f"  {place} = getelementptr i8, ptr %ws, i64 {offset}")
                addresses.append(f"ptr {place}")
            lines.append(f"  call void @sincos({', '.join(addresses)}, i64 {(last - first) * angles_per_bundle})")
        return lines

    def _constants(self) -> Iterator[str]:
        for i, shape in enumerate(self.shapes):
            yield constant_array(f"{self.tag}_begins{i}", shape.begins.astype(np.int32))
            for j, cell in enumerate(shape.cells):
                if self.r.tables[cell].shape[1]:
                    yield constant_array(f"{self.tag}_rows{i}_{j}", shape.rows(j).astype(np.int32))
        for k, table in enumerate(self.r.tables):
            if table.size:
                yield constant_array(f"{self.tag}_table{k}", np.ascontiguousarray(table, self.dtype))
        for name, values in (*self._relations(), *self.indices.items()):
            yield constant_array(f"{self.tag}_{name}", values.astype(np.int32))

    def index(self, name: str, of_runs: Array) -> str:
        """Register the table `of_runs`, with a number for each run of a shape, under `name`; return the name."""
        self.indices[name] = of_runs
        return name

    def _relations(self) -> Iterator[tuple[str, Array]]:
        """Yield index tables, where no formula applies: slots of values that neighbours send, elements of arrays."""
        tree, slot = self.r.tree, self.layout.slot
        yield "parent", slot[tree.parent]
        for j in range(tree.children.shape[1]):
            yield f"child{j}", slot[tree.children[:, j]]
        yield "slot", slot[:-1]
        for name, values in tree.elements.items():
            for e in range(values.shape[1]):
                yield f"{symbol(name)}_{e}", values[:, e]
