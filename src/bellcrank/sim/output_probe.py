"""The user's outputs of one state, in machine code: a cockpit looks sixty times a second."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from bellcrank.emit.cpu import llvm
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.library import Library, compiled
from bellcrank.sim.dynamics import Traced
from bellcrank.sim.runner import address

Array = np.ndarray[Any, Any]


class Seen:
    """Call it with t, y, u and p: the outputs by name."""

    def __init__(self, traced: Traced) -> None:
        system = traced.system
        self.names = tuple(system.outputs)
        if not self.names:
            return

        def observed(t: Any, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"output": list(system.observed(t, list(y), u).values())}

        graph = traced.trace("seen", observed, traced.arguments)
        self.inputs = tuple(graph.inputs)
        self._library = Library(compiled(llvm.source(graph, host().lanes("float64"), "float64"))[0])
        kinds = [ctypes.c_void_p] * (len(self.inputs) + 1)
        self._one = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self._library.address("one"))

    def __call__(self, t: float, y: Array, u: Array, p: Array) -> dict[str, float]:
        if not self.names:
            return {}
        given = {"t": np.array([t]), "y": y, "u": u, "p": p}
        arrays = [np.ascontiguousarray(given[name]) for name in self.inputs]
        out = np.empty(len(self.names))
        self._one(*map(address, arrays), address(out))
        return dict(zip(self.names, out.tolist(), strict=True))
