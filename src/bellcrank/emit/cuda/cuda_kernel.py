"""GPU kernel of straight-line code: one thread, or a team of threads, per state.

It is fastest for column-major inputs (the states of one quantity are contiguous, as in the transpose of an (n, rows)
array); the result is then column-major, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import DeviceFunction, cupy
from bellcrank.emit.cuda.gpu_kernel import GpuKernel, is_contiguous_along, strides
from bellcrank.emit.target import About


class CudaKernel(GpuKernel):
    """Kernel on the GPU, called with arrays; see `.graph`, `.source` (PTX), `.registers`, `.members`, `.predicted`."""

    def __init__(self, about: About, texts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Keep the texts of each layout ("strided", "tiled"); the parts are loaded on first use."""
        self._set_description(about)
        self.threads, self.texts, self.code_size = 1, texts, 0
        self._source = lambda: "\n".join(t["ptx"] for t in texts["strided"])
        self.function = self.convert
        cupy()

    @cached_property
    def strided(self) -> list[DeviceFunction]:
        """Functions for arrays with any strides."""
        return self._load_parts("strided")

    @cached_property
    def tiled(self) -> list[DeviceFunction]:
        """Functions for row-major arrays, which are staged through tiles."""
        return self._load_parts("tiled")

    def _load_parts(self, layout: str) -> list[DeviceFunction]:
        """Load the parts, each of which computes some of the outputs; usually there is one."""
        return [DeviceFunction(t["ptx"], "many", t["threads"], t["shared"], t["states"]) for t in self.texts[layout]]

    @property
    def registers(self) -> dict[str, int]:
        """Registers of a thread, in the part that has most.

        "predicted" from the graph, "given" by the driver; "local": bytes that the driver spilled.
        """
        return {
            "predicted": max(t["registers"] for t in self.texts["strided"]),
            "given": max(f.registers for f in self.strided),
            "local": max(f.local for f in self.strided),
        }

    @property
    def predicted(self) -> float:
        """Predicted seconds per state on an H200, in a large column-major batch."""
        return sum(1.0 / float(t["per_second"]) for t in self.texts["strided"])

    @property
    def members(self) -> int:
        """Number of threads that compute one state together."""
        return max(int(t["members"]) for t in self.texts["strided"])

    def filled(self, stream: int, rows: int, places: Sequence[int]) -> None:
        """Launch the kernel in a stream of the caller, on dense row-major arrays.

        Parameters
        ----------
        stream
            Address of the CUDA stream.
        rows
            Number of states.
        places
            Addresses of the arrays, inputs first, then results.
        """
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        numbers = [rows, *(x for place, s in zip(places, shapes, strict=True) for x in (place, math.prod(s), 1))]
        for function in self.in_rows:
            function.launch(stream, rows, numbers)

    def launch(self, rows: int, given: Sequence[Any]) -> None:
        """Compute `rows` states; `given` has inputs and results as (rows, size)."""
        tiled = is_contiguous_along([a for k, a in enumerate(given) if k in self.tiles and a.shape[1] > 1], 1)
        for function in self.tiled if tiled else self.strided:
            function(rows, np.int64(rows), *(x for a in given for x in (a, *map(np.uint32, strides(a)))))

    most = 0  # largest number of blocks of a kernel that needs a workspace; this one needs none

    def scratch(self, rows: int) -> int:
        """Return the number of workspace elements for `rows` states: none."""
        return 0

    @cached_property
    def in_rows(self) -> list[DeviceFunction]:
        """Functions for arrays that are all row-major."""
        shapes = [*self.signature.inputs.values(), *self.signature.outputs.values()]
        return self.tiled if any(math.prod(shapes[k]) > 1 for k in self.tiles) else self.strided

    @property
    def tiles(self) -> Sequence[int]:
        """Indices of arrays, inputs first, that are staged through tiles where they are row-major."""
        tiles: Sequence[int] = self.texts["tiled"][0]["tiles"] if "tiled" in self.texts else ()
        return tiles
