"""LLVM IR of a Recursion as loops over parallel runs (graph/waves.py), for one state: lanes are runs, not states.

    void @waves(ptr ws, ptr in..., ptr out...)

Each shape has a function for each channel that processes a range of its bundles (graph/loops/runs.py). The
phases say which of them may run at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.loop_code import LoopCode
from bellcrank.graph.cells import ANGLES_CHANNEL
from bellcrank.graph.loops.runs import WaveLoops
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.waves import WaveRange, group_waves
from bellcrank.quoting import symbol

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Phase:
    """Waves of a channel that may run at the same time."""

    channel: int
    waves: tuple[WaveRange, ...]


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
        self.w = Writer(1, dtype)
        self.loops, self.code = self.make_loops()
        self.names = [f"in_{symbol(n)}" for n in r.inputs] + [f"out_{symbol(r.output[0])}"]

    def make_loops(self) -> tuple[WaveLoops, LoopCode]:
        """Return the loops and their code."""
        loops = WaveLoops(self.r, self.shapes, self.lanes)
        return loops, LoopCode(self.r, loops.program(), self.w, self.lanes, self.tag, {}, self.lanes)

    @property
    def size(self) -> int:
        """Numbers in the workspace."""
        return self.code.size

    def text(self) -> str:
        """Return all functions and tables."""
        lines = [
            line for phase in self.phases() for wave in phase.waves for line in self.share_call(phase.channel, wave)
        ]
        driver = f"define internal void @{self.tag}({self.code.parameters}) noinline nounwind {{"
        return "\n".join([self.code.tables(), self.code.procedures(), driver, *lines, "  ret void\n}"])

    def has_work(self, channel: int, shape: int) -> bool:
        """Return True if a loop of this `channel` and `shape` writes anything."""
        return (channel, shape) in self.loops.procedures

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
        return self.code.functions[self.loops.procedures[channel, shape]]

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
        lines = [f"  call void @{name}({self.code.parameters}, i64 {first}, i64 {last})"]
        if channel == ANGLES_CHANNEL:
            shape = self.shapes[wave.shape]
            angles_per_bundle, addresses = shape.places * self.loops.widths(shape)["angle"], []
            for kind in ("angle", "sine", "cosine"):
                place = f"%{kind}{wave.shape}.{first}"
                start = self.code.starts[kind, wave.shape] + first * angles_per_bundle * self.lanes
                lines.append(f"  {place} = getelementptr i8, ptr %ws, i64 {start * self.w.bytes}")
                addresses.append(f"ptr {place}")
            lines.append(f"  call void @sincos({', '.join(addresses)}, i64 {(last - first) * angles_per_bundle})")
        return lines
