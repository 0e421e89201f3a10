"""Machine code of a stepper's action, executed by one thread or several."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.emit.cpu import action as text
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.pool import pool, settle
from bellcrank.graph.action import Action
from bellcrank.graph.program import structure
from bellcrank.sim.runner import address, machine_code

Array = np.ndarray[Any, Any]
SEVERAL = 4  # smallest number of blocks per thread


class Code:
    """An action as machine code for a number of lanes, shared by steppers with the same action."""

    def __init__(self, made: Action, lanes: int) -> None:
        self.action, self.lanes = made, lanes
        known: dict[int, Any] = {}
        graphs = {**made.graphs, **made.program.graphs}
        alike = tuple((name, structure(g, known)) for name, g in graphs.items())
        places = made.layout.place("new"), made.program.layout.places.get("fresh")
        key = "action", lanes, made.changing, made.restarts, places, alike
        self.library, self.workspace = machine_code(key, lambda: text.source(made, lanes, host().lanes("float64")))
        kinds = (ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
        self.step, self.see = (
            ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self.library.address(name)) for name in ("step", "see")
        )

    def shared(self, blocks: int, threads: int, told: int, u: Array, y: Array, spaces: Sequence[Array]) -> int:
        """Execute an action on several threads, each with some blocks; return nonzero if any run is alive.

        Parameters
        ----------
        blocks
            Number of blocks of lanes.
        threads
            Number of threads.
        told
            Address of the settings of the stepper's entry module.
        u, y
            Inputs and observations of all runs.
        spaces
            Workspaces, one for each thread.
        """
        parts = min(threads, max(1, blocks // SEVERAL))
        edges = [blocks * k // parts for k in range(parts + 1)]

        def some(k: int) -> int:
            return int(self.step(edges[k], edges[k + 1], told, address(u), address(y), address(spaces[k])))

        others = [pool(threads).submit(some, k) for k in range(1, parts)]
        try:
            alive = some(0)
        finally:
            settle(others)
        return int(max([alive, *(other.result() for other in others)]))
