"""A kernel of straight-line code on the GPU: every state a thread, or a team of threads.

With the states of one quantity side by side (column-major, as the transpose of an (n, rows) array) it is fastest, and
then the result lies so, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import Function, cupy
from bellcrank.emit.cuda.gpu_kernel import GpuKernel, adjacent, strides
from bellcrank.emit.target import About


class CudaKernel(GpuKernel):
    """Call it with arrays; see `.graph`, `.source` (PTX), `.registers`, `.members`, `.predicted`."""

    def __init__(self, about: About, texts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """texts: for each layout ("strided", "tiled") of each part its PTX, threads, shared bytes and the like."""
        self._know(about)
        self.threads, self.texts, self.code_size = 1, texts, 0
        self._source = lambda: "\n".join(t["ptx"] for t in texts["strided"])
        self.function = self.convert
        cupy()

    @cached_property
    def strided(self) -> list[Function]:
        return self._loaded("strided")

    @cached_property
    def tiled(self) -> list[Function]:
        return self._loaded("tiled")

    def _loaded(self, layout: str) -> list[Function]:
        """The parts, each of which gives some of the outputs; mostly there is one."""
        return [Function(t["ptx"], "many", t["threads"], t["shared"], t["states"]) for t in self.texts[layout]]

    @property
    def registers(self) -> dict[str, int]:
        """Of a thread, in the part that has most: as predicted from the graph, and as the driver gave them; local:
        bytes that it spilled.
        """
        return {
            "predicted": max(t["registers"] for t in self.texts["strided"]),
            "given": max(f.registers for f in self.strided),
            "local": max(f.local for f in self.strided),
        }

    @property
    def predicted(self) -> float:
        """Seconds of a state in a large batch with its columns side by side, on an H200."""
        return sum(1.0 / float(t["per_second"]) for t in self.texts["strided"])

    @property
    def members(self) -> int:
        """Threads that compute a state together."""
        return max(int(t["members"]) for t in self.texts["strided"])

    def filled(self, stream: int, rows: int, places: Sequence[int]) -> None:
        """In somebody's stream. places: the addresses of dense arrays of so many rows, inputs first, then results."""
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        numbers = [rows, *(x for place, s in zip(places, shapes, strict=True) for x in (place, math.prod(s), 1))]
        for function in self.in_rows:
            function.start(stream, rows, numbers)

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        """given: inputs and results as (rows, size)."""
        tiled = adjacent([a for k, a in enumerate(given) if k in self.tiles and a.shape[1] > 1], 1)
        for function in self.tiled if tiled else self.strided:
            function(rows, np.int64(rows), *(x for a in given for x in (a, *map(np.uint32, strides(a)))))

    most = 0  # blocks that take one state after the other, where they have a workspace

    def scratch(self, rows: int) -> int:
        """Numbers of a workspace."""
        return 0

    @cached_property
    def in_rows(self) -> list[Function]:
        """The functions for arrays that all lie row behind row."""
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        return self.tiled if any(math.prod(shapes[k]) > 1 for k in self.tiles) else self.strided

    @property
    def tiles(self) -> Sequence[int]:
        """Which arrays, inputs first, are read and written through tiles where their rows lie side by side."""
        found: Sequence[int] = self.texts["tiled"][0]["tiles"] if "tiled" in self.texts else ()
        return found
