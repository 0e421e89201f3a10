"""The user's outputs at one state, as machine code: a cockpit reads them sixty times a second."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.build.function_compilation import compile_graph
from bellcrank.sim.program.system_graphs import Dynamics

Array = np.ndarray[Any, Any]


class OutputProbe:
    """Evaluates the outputs at (t, y, u, p) and returns them by name."""

    def __init__(self, dynamics: Dynamics) -> None:
        system = dynamics.system
        self.names = tuple(system.outputs)
        if not self.names:
            return

        def observed(t: Any, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"output": list(system.observed(t, list(y), u).values())}

        self._kernel = compile_graph(
            dynamics.trace("probe", observed, dynamics.arguments), parameters=system.parameters
        )

    def __call__(self, t: float, y: Array, u: Array, p: Array) -> dict[str, float]:
        """Return the outputs by name at time `t`, state `y`, inputs `u` and parameters `p`."""
        if not self.names:
            return {}
        arguments = {"t": t, "y": y, "u": u, "p": p}
        values = self._kernel(*(arguments[name] for name in self._kernel.signature.inputs))
        return dict(zip(self.names, values.tolist(), strict=True))
