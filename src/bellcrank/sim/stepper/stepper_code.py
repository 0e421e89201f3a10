"""Machine code of a stepper's action, executed by one thread or several."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.emit.cpu import action as text
from bellcrank.emit.cpu.thread_pool import shared_pool, wait_for_tasks
from bellcrank.emit.llvm.host import host
from bellcrank.graph.graph import structure
from bellcrank.graph.program import Action
from bellcrank.sim.run.lane_blocks import address, loaded_library

Array = np.ndarray[Any, Any]
LEAST_BLOCKS_PER_THREAD = 4  # smallest number of blocks per thread


class ActionCode:
    """An action as machine code for a number of lanes, shared by steppers with the same action."""

    def __init__(self, action: Action, lanes: int) -> None:
        self.action, self.lanes = action, lanes
        known: dict[int, Any] = {}
        graphs = {**action.graphs, **action.program.graphs}
        structures = tuple((name, structure(g, known)) for name, g in graphs.items())
        places = action.layout.place("new"), action.program.layout.places.get("fresh")
        key = "action", lanes, action.changing, action.restarts, places, structures
        self.library, self.workspace = loaded_library(key, lambda: text.source(action, lanes, host().lanes("float64")))
        kinds = (ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
        self.step, self.observe = (
            ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self.library.address(name)) for name in ("step", "see")
        )

    def step_on_threads(
        self, blocks: int, threads: int, settings: int, u: Array, y: Array, spaces: Sequence[Array]
    ) -> int:
        """Execute an action on several threads, each with some blocks; return nonzero if any run is alive.

        Parameters
        ----------
        blocks
            Number of blocks of lanes.
        threads
            Number of threads.
        settings
            Address of the settings of the stepper's entry module.
        u, y
            Inputs and observations of all runs.
        spaces
            Workspaces, one for each thread.
        """
        parts = min(threads, max(1, blocks // LEAST_BLOCKS_PER_THREAD))
        edges = [blocks * k // parts for k in range(parts + 1)]

        def step_part(k: int) -> int:
            return int(self.step(edges[k], edges[k + 1], settings, address(u), address(y), address(spaces[k])))

        others = [shared_pool(threads).submit(step_part, k) for k in range(1, parts)]
        try:
            alive = step_part(0)
        finally:
            wait_for_tasks(others)
        return int(max([alive, *(other.result() for other in others)]))
