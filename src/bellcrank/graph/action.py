"""One action of a stepped simulation: the graphs that run before, after and between its ticks.

Between actions the state of a run is the vector `c`, laid out by name. It holds everything that differs between runs,
without the values that only a tick needs. Every graph takes c, the inputs u and the free parameters p as far as it
needs them.

    open    c, u -> s                        state of the program before the first tick of an action
    close   c, s, u -> c, row, reward, end   after the last tick: the leading part of c that changes, the observation,
                                             the reward and the end signal
    begin   c -> c                           restarts runs where `new` is positive: 1 from y as it is, 2 from a start
                                             state that begin draws itself
    look    c -> row                         observation before the first action

`status` in c is the reason why a run has ended (graph/program.py); an action leaves an ended run unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.graph.graph import Graph
from bellcrank.graph.program import Layout, Program

GIVEN, DRAWN = 1.0, 2.0  # values of `new`: the start state is given, or drawn


@dataclass(frozen=True, eq=False)
class Action:
    """The graphs, layout and number of ticks of one action."""

    program: Program
    ticks: int
    layout: Layout
    changing: int  # number of leading elements of c that an action changes
    open: Graph
    close: Graph
    begin: Graph
    look: Graph
    restarts: bool  # true if a run that has ended restarts by itself

    @property
    def graphs(self) -> dict[str, Graph]:
        """The four graphs by name."""
        return {name: getattr(self, name) for name in ("open", "close", "begin", "look")}

    @property
    def row(self) -> int:
        """Number of observed values."""
        return math.prod(self.look.outputs["row"].shape)

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return self.program.nu

    @property
    def free(self) -> int:
        """Number of free parameters of a run."""
        parameter_counts = (g.inputs["p"][0] for g in self.graphs.values() if "p" in g.inputs)
        return max([self.program.free, *parameter_counts])
