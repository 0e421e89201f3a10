"""What happens between two looks at a program that somebody steps: some ticks, and what is kept, seen and judged then.

Between actions a run is no more than `c`, laid out by name: all that differs from run to run, and not what a tick needs
beside it. Every graph takes c, the inputs u and the free numbers p as far as it needs them.

    open    c, u -> s                        the program's state before the first tick of an action
    close   c, s, u -> c, row, reward, end   after the last: the head of c that changes, what is observed, and how it is
    begin   c -> c                           where `new` is positive: 1 from y as it is, 2 from a start of its own
    look    c -> row                         what is observed before the first action

`status` in c says why a run has ended (graph/program.py): an action leaves it as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.graph.graph import Graph
from bellcrank.graph.program import Layout, Program

GIVEN, DRAWN = 1.0, 2.0  # what `new` says of where a run begins


@dataclass(frozen=True, eq=False)
class Action:
    program: Program
    ticks: int
    layout: Layout
    changing: int  # elements of c that an action changes: the first ones
    open: Graph
    close: Graph
    begin: Graph
    look: Graph
    restarts: bool  # whether a run that has ended begins anew by itself

    @property
    def graphs(self) -> dict[str, Graph]:
        return {name: getattr(self, name) for name in ("open", "close", "begin", "look")}

    @property
    def row(self) -> int:
        """How many numbers are observed."""
        return math.prod(self.look.outputs["row"].shape)

    @property
    def nu(self) -> int:
        return self.program.nu

    @property
    def free(self) -> int:
        """How many free numbers a run has."""
        found = (g.inputs["p"][0] for g in self.graphs.values() if "p" in g.inputs)
        return max([self.program.free, *found])
