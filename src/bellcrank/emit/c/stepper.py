"""A Program of fixed steps as functions of arrays, for those who call them: no rows, no end, no table of inputs.

    begin(s, u, p) -> next            completes a state before its first step, or where an input has jumped
    tick(s, u, p) -> next, status     one step; status 0 (layout.py) while all is well, else next is s
    slope(t, y, u, p) -> dy           observe(t, y, u, p) -> out

What Program's signs are for is decided here once and for all, and folds away with all that hung on it. s begins with t
and y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph import Graph, Program
from bellcrank.graph.inline import moved
from bellcrank.graph.layout import NEVER
from bellcrank.nodes.node import Tape

# Fields of a Program's state that are numbers here.
FIXED = {
    **dict.fromkeys(("last", "next", "input_steps"), NEVER),
    **dict.fromkeys(("due", "status", "input", "input_last", "fresh"), 0.0),
    **dict.fromkeys(("live", "stride"), 1.0),
}
UNITS = {"t": "s", "begin": "s", "h": "s"}
WORDS = {"n": "steps", "h": "step"}  # what fields of one letter are called


@dataclass(frozen=True)
class Member:
    """One number: what it is called, its unit, and what it is in the beginning."""

    name: str
    unit: str
    value: float = 0.0


@dataclass(frozen=True, eq=False)
class Stepper:
    program: Program
    step: float  # seconds

    def __post_init__(self) -> None:
        p = self.program
        for part, why in ((p.locate, "finds events"), (p.observe, "chooses its steps or its rows")):
            if part is not None:
                raise InputError(
                    f"{p.tick.name}: this program {why}, and what is exported takes fixed steps without events; "
                    "leave out events= and tolerance=, and give step=."
                )
        bound = ("s", p.layout.place("bound")) if "bound" in p.layout else None
        if any(a.op == "input" and a.args == bound for n in p.tick.nodes if n.op == "lt" for a in n.operands):
            raise InputError(
                f"{p.tick.name}: the closed loops of this program are in the minimal form, which may have to go on by "
                'other dependent coordinates, hence by other code than is exported; make it with form="projected".'
            )

    @cached_property
    def fields(self) -> dict[str, list[int]]:
        """The places in the Program's state that are kept, by field."""
        places = self.program.layout.places
        kept = {name: place for name, place in places.items() if name not in FIXED}
        return {k: [x] if isinstance(x, int) else list(range(x.start, x.stop)) for k, x in kept.items()}

    @cached_property
    def state(self) -> list[Member]:
        ports, found = self.program.ports, list[Member]()
        begins = {"h": self.step, "bound": NEVER}
        for field, places in self.fields.items():
            if field == "y":
                rows = zip(ports.elements, ports.elements.values(), ports.rest.tolist(), strict=True)
                found += [Member(*row) for row in rows]
                continue
            word, more = WORDS.get(field, field), len(places) > 1
            names = [f"{word}.{k + 1}" if more else word for k in range(len(places))]
            found += [Member(name, UNITS.get(field, ""), begins.get(field, 0.0)) for name in names]
        return found

    @cached_property
    def inputs(self) -> list[Member]:
        return [Member(name, "", x) for name, x in self.program.ports.inputs.items()]

    @cached_property
    def parameters(self) -> list[Member]:
        table = self.program.ports.parameters
        return [Member(name, table.unit(name), x) for name, x in table.items()]

    @cached_property
    def outputs(self) -> list[Member]:
        ports = self.program.ports
        return [Member(name, ports.units.get(name, "")) for name in ports.columns]

    @property
    def size(self) -> int:
        """How many elements y has."""
        return len(self.fields["y"])

    @cached_property
    def begin(self) -> Graph:
        return self._reduced(self.program.start, "begin")

    @cached_property
    def tick(self) -> Graph:
        return self._reduced(self.program.tick, "tick")

    @cached_property
    def slope(self) -> Graph:
        return self.program.ports.rate

    @cached_property
    def observe(self) -> Graph:
        """All columns in one array."""
        ports = self.program.ports
        g, out = ports.outputs, np.empty(len(ports.columns), dtype=object)
        out[:] = [g.outputs[key].flat[i] for key, i in ports.columns.values()]
        return Graph(g.name, g.inputs, {"out": out}, g.tape)

    def _reduced(self, graph: Graph, name: str) -> Graph:
        """A graph of the Program on what is kept of its state."""
        tape, layout = Tape(), self.program.layout
        kept = [place for places in self.fields.values() for place in places]
        given: dict[tuple[str, int], Any] = {
            ("s", layout.place(field)): x for field, x in FIXED.items() if field in layout
        }
        given |= {("s", place): tape.node("input", "s", k) for k, place in enumerate(kept)}
        given |= {at: tape.node("input", *at) for at in graph.elements if at[0] != "s"}
        made = moved(graph, tape, given)["s"]
        outputs = {"next": made[kept]}
        if name == "tick":
            outputs["status"] = made[[layout.place("status")]]
        stem = graph.name.rpartition(".")[0]
        return Graph(f"{stem}.{name}", {**graph.inputs, "s": (len(kept),)}, outputs, tape)
