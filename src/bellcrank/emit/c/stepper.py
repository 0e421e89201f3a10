"""A Program as functions of arrays, for those who call them: no rows, no end, no table of inputs.

    begin(s, u, p) -> next            completes a state before its first step, or where an input has jumped
    tick(s, u, p) -> next, status     one step; status 0 (graph/program.py) while all is well, else next is s
    slope(t, y, u, p) -> dy           observe(t, y, u, p) -> out
    renew(s, u, p) -> next            before a tick where s has fresh > 0: samples are taken
    indicate(t, y, u, p) -> g         the functions of events
    switch(t, y, u, e, p) -> y        the state after those events that are 1 in e

A Program that chooses its steps or has events goes to s.end in as many ticks as it takes: there status is (status,
live, hit). It ticks while live is 1, and where hit is 1 locate(s, u, p, signs) -> next, status comes after the tick,
whose status is signs.

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
from bellcrank.graph.inline import moved, opened
from bellcrank.graph.program import NEVER
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape

# Fields of a Program's state that are numbers here.
FIXED = {
    **dict.fromkeys(("last", "next", "input_steps", "input_step"), NEVER),
    **dict.fromkeys(("due", "status", "input", "input_last", "input_old", "held"), 0.0),
    **dict.fromkeys(("live", "stride", "hit", "every"), 1.0),
}
UNITS = dict.fromkeys(("t", "begin", "h", "step", "end", "t_old", "h_old"), "s")
SIGNS = ("status", "live", "hit")
HALVES = ("high", "low")  # words of a counter that one number cannot hold exactly
SHORT = 1000  # operations of a tick without calls: where a stage is so short, a call takes a quarter of its time
MOST_TICKS = 100_000.0  # ticks until the end that was set, where they are chosen or events happen


@dataclass(frozen=True)
class Member:
    """One number: what it is called, its unit, and what it is in the beginning."""

    name: str
    unit: str
    value: float = 0.0


@dataclass(frozen=True, eq=False)
class Stepper:
    program: Program
    step: float  # seconds; where steps are chosen, what each call takes it further
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        p = self.program
        if p.observe is not None:
            raise InputError(
                f"{p.tick.name}: this program chooses its rows, and what is exported writes none; make it with "
                "rows=False."
            )
        bound = ("s", p.layout.place("bound")) if "bound" in p.layout else None
        if any(a.op == "input" and a.args == bound for n in p.tick.nodes if n.op == "lt" for a in n.operands):
            raise InputError(
                f"{p.tick.name}: the closed loops of this program are in the minimal form, by one choice of dependent "
                "coordinates, and it may need others; Simulator.whole() is a program that has them all."
            )

    @property
    def watched(self) -> bool:
        """Whether it goes to an end in several ticks: it chooses its steps, or events happen."""
        return "hit" in self.program.layout

    @property
    def adaptive(self) -> bool:
        """Whether it chooses its steps."""
        return self.program.ports.adaptive

    @cached_property
    def renews(self) -> bool:
        """Whether a tick can leave something to be renewed: a sample, or a memory after an event."""
        p = self.program
        if p.renew is None:
            return False
        fresh = moved(p.tick, *self._known(p.tick, {**FIXED, "fresh": 0.0}))["s"][p.fresh]
        return isinstance(fresh, Node) or bool(fresh > 0.0)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Fields that are numbers here."""
        return FIXED if self.renews else {**FIXED, "fresh": 0.0}

    @cached_property
    def fields(self) -> dict[str, list[int]]:
        """The places in the Program's state that are kept, by field."""
        places = self.program.layout.places
        kept = {name: place for name, place in places.items() if name not in self.numbers}
        return {k: [x] if isinstance(x, int) else list(range(x.start, x.stop)) for k, x in kept.items()}

    @cached_property
    def places(self) -> dict[str, int]:
        """Where in s each field begins."""
        found, at = dict[str, int](), 0
        for name, places in self.fields.items():
            found[name], at = at, at + len(places)
        return found

    @cached_property
    def state(self) -> list[Member]:
        ports, found = self.program.ports, list[Member]()
        begins = {
            "h": self.step, "step": self.step, "bound": NEVER, "rtol": self.tolerance, "atol": self.tolerance,
            "h_old": 1.0, "most": MOST_TICKS,
        }  # fmt: skip
        words = {"n": "steps", "h": "next_step" if self.watched else "step"}  # what fields of one letter are called
        for field, places in self.fields.items():
            if field == "y":
                rows = zip(ports.elements, ports.elements.values(), ports.rest.tolist(), strict=True)
                found += [Member(*row) for row in rows]
                continue
            word, more = words.get(field, field), len(places) > 1
            parts = HALVES if self.program.layout.words(field) == 2 else [str(k + 1) for k in range(len(places))]
            names = [f"{word}.{part}" if more else word for part in parts]
            found += [Member(name, UNITS.get(field, ""), begins.get(field, 0.0)) for name in names]
        return found

    @property
    def graphs(self) -> dict[str, Graph]:
        """All that there are, by name."""
        names = ["begin", "tick", "slope", "observe"]
        names += ["renew"] * self.renews + ["locate"] * (self.program.locate is not None)
        names += ["indicate", "switch"] * bool(self.program.ports.events)
        return {name: getattr(self, name) for name in names}

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
        return opened(self._reduced(self.program.tick, "tick"), SHORT)

    @cached_property
    def renew(self) -> Graph:
        assert self.program.renew is not None
        return self._reduced(self.program.renew, "renew")

    @cached_property
    def locate(self) -> Graph:
        assert self.program.locate is not None
        return self._reduced(self.program.locate, "locate")

    @cached_property
    def indicate(self) -> Graph:
        return self.program.ports.indicators

    @cached_property
    def switch(self) -> Graph:
        return self.program.ports.switch

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

    def _known(self, graph: Graph, numbers: dict[str, float]) -> tuple[Tape, dict[tuple[str, int], Any]]:
        """A tape, and on it what each element of the inputs of a graph of the Program is."""
        tape, layout = Tape(), self.program.layout
        given: dict[tuple[str, int], Any] = {("s", place): x for place, x in layout.constants(numbers).items()}
        rest = [place for place in range(layout.size) if ("s", place) not in given]
        given |= {("s", place): tape.node("input", "s", k) for k, place in enumerate(rest)}
        return tape, given | {at: tape.node("input", *at) for at in graph.elements if at[0] != "s"}

    def _reduced(self, graph: Graph, name: str) -> Graph:
        """A graph of the Program on what is kept of its state."""
        tape, given = self._known(graph, self.numbers)
        signs = SIGNS if self.watched else SIGNS[:1]
        more: dict[str, tuple[int, ...]] = {}
        if name == "locate":
            given |= {("s", self.program.layout.place(x)): tape.node("input", "signs", k) for k, x in enumerate(signs)}
            more = {"signs": (len(signs),)}
        kept = [place for places in self.fields.values() for place in places]
        made = moved(graph, tape, given)["s"]
        outputs = {"next": made[kept]}
        if name in ("tick", "locate"):
            outputs["status"] = made[[self.program.layout.place(x) for x in signs]]
        stem = graph.name.rpartition(".")[0]
        return Graph(f"{stem}.{name}", {**graph.inputs, "s": (len(kept),), **more}, outputs, tape)
