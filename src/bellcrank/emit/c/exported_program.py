"""Program as functions of arrays for external callers: without rows, end time and input table.

    begin(s, u, p) -> next            completes a state before its first step, or where an input has jumped
    tick(s, u, p) -> next, status     one step; status 0 (graph/program.py) on success, else next is s
    slope(t, y, u, p) -> dy           observe(t, y, u, p) -> out
    renew(s, u, p) -> next            before a tick where s has fresh > 0: samples are taken
    indicate(t, y, u, p) -> g         the functions of events
    switch(t, y, u, e, p) -> y        the state after those events that are 1 in e

A Program with adaptive steps or events advances to s.end in as many ticks as necessary: there status is (status, live,
hit). It ticks while live is 1, and where hit is 1, locate(s, u, p, signs) -> next, status follows the tick, whose
status is passed as signs.

Flags of the Program that are constant here are folded, with all code that depends on them. s begins with t and y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph import Graph, Program
from bellcrank.graph.inline import copy_to_tape, inline_small
from bellcrank.graph.program import NEVER_TIME
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape

# Fields of a Program's state that are constant here.
CONSTANT_FIELDS = {
    **dict.fromkeys(("last", "next", "input_steps", "input_step"), NEVER_TIME),
    **dict.fromkeys(("due", "status", "input", "input_last", "input_old", "held"), 0.0),
    **dict.fromkeys(("live", "stride", "hit", "every"), 1.0),
}
UNITS = dict.fromkeys(("t", "begin", "h", "step", "end", "t_old", "h_old"), "s")
STATUS_FIELDS = ("status", "live", "hit")
COUNTER_WORDS = ("high", "low")  # words of a counter that one number cannot hold exactly
# Operations up to which a tick is inlined: for such short stages a call takes a quarter of the time.
MAX_INLINED_OPERATIONS = 1000
MOST_TICKS = 100_000.0  # limit of ticks per step, with adaptive steps or events


@dataclass(frozen=True)
class Member:
    """One number: its name, unit and initial value."""

    name: str
    unit: str
    value: float = 0.0


@dataclass(frozen=True, eq=False)
class ExportedProgram:
    """Functions of a Program with constant flags folded."""

    program: Program
    step: float  # seconds that each call advances the state
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        p = self.program
        if p.observe is not None:
            raise InputError(
                f"{p.tick.name}: this program writes rows, which exported code does not support; build it with "
                "rows=False."
            )
        bound = ("s", p.layout.place("bound")) if "bound" in p.layout else None
        if any(a.op == "input" and a.args == bound for n in p.tick.nodes if n.op == "lt" for a in n.operands):
            raise InputError(
                f"{p.tick.name}: the closed loops of this program are in minimal form with one fixed choice of "
                "dependent coordinates, and other choices may be needed; Simulator.self_contained_program() returns a "
                "program with all of them."
            )

    @property
    def multi_tick(self) -> bool:
        """Return whether a step takes several ticks: with adaptive steps or events."""
        return "hit" in self.program.layout

    @property
    def adaptive(self) -> bool:
        """Return whether the step size is adaptive."""
        return self.program.ports.adaptive

    @cached_property
    def renews(self) -> bool:
        """Return whether a tick can need a call of `renew`: a sample, or a multistep memory after an event."""
        p = self.program
        if p.renew is None:
            return False
        fresh = copy_to_tape(p.tick, *self._input_values(p.tick, {**CONSTANT_FIELDS, "fresh": 0.0}))["s"][p.fresh]
        return isinstance(fresh, Node) or bool(fresh > 0.0)

    @cached_property
    def constant_fields(self) -> dict[str, float]:
        """State fields that are constant here."""
        return CONSTANT_FIELDS if self.renews else {**CONSTANT_FIELDS, "fresh": 0.0}

    @cached_property
    def kept_indices(self) -> dict[str, list[int]]:
        """Indices in the Program's state that are kept, by field."""
        places = self.program.layout.places
        kept_places = {name: place for name, place in places.items() if name not in self.constant_fields}
        return {k: [x] if isinstance(x, int) else list(range(x.start, x.stop)) for k, x in kept_places.items()}

    @cached_property
    def field_offsets(self) -> dict[str, int]:
        """Index in s at which each field begins."""
        offsets, offset = dict[str, int](), 0
        for name, places in self.kept_indices.items():
            offsets[name], offset = offset, offset + len(places)
        return offsets

    @cached_property
    def state(self) -> list[Member]:
        """Members of the state."""
        ports, members = self.program.ports, list[Member]()
        begins = {
            "h": self.step, "step": self.step, "bound": NEVER_TIME, "rtol": self.tolerance, "atol": self.tolerance,
            "h_old": 1.0, "most": MOST_TICKS,
        }  # fmt: skip
        words = {"n": "steps", "h": "next_step" if self.multi_tick else "step"}  # names of one-letter fields
        for field, places in self.kept_indices.items():
            if field == "y":
                rows = zip(ports.elements, ports.elements.values(), ports.rest.tolist(), strict=True)
                members += [Member(*row) for row in rows]
                continue
            word, more = words.get(field, field), len(places) > 1
            parts = COUNTER_WORDS if self.program.layout.words(field) == 2 else [str(k + 1) for k in range(len(places))]
            names = [f"{word}.{part}" if more else word for part in parts]
            members += [Member(name, UNITS.get(field, ""), begins.get(field, 0.0)) for name in names]
        return members

    @property
    def graphs(self) -> dict[str, Graph]:
        """All graphs, by name."""
        names = ["begin", "tick", "slope", "observe"]
        names += ["renew"] * self.renews + ["locate"] * (self.program.locate is not None)
        names += ["indicate", "switch"] * bool(self.program.ports.events)
        return {name: getattr(self, name) for name in names}

    @cached_property
    def inputs(self) -> list[Member]:
        """Inputs with their initial values."""
        return [Member(name, "", x) for name, x in self.program.ports.inputs.items()]

    @cached_property
    def parameters(self) -> list[Member]:
        """Free parameters with their values."""
        table = self.program.ports.parameters
        return [Member(name, table.unit(name), x) for name, x in table.items()]

    @cached_property
    def outputs(self) -> list[Member]:
        """Columns that are observed."""
        ports = self.program.ports
        return [Member(name, ports.units.get(name, "")) for name in ports.columns]

    @property
    def size(self) -> int:
        """Number of elements of y."""
        return len(self.kept_indices["y"])

    @cached_property
    def begin(self) -> Graph:
        """Graph that completes a state."""
        return self._fold_constants(self.program.start, "begin")

    @cached_property
    def tick(self) -> Graph:
        """Graph of one tick."""
        return inline_small(self._fold_constants(self.program.tick, "tick"), MAX_INLINED_OPERATIONS)

    @cached_property
    def renew(self) -> Graph:
        """Graph that takes samples."""
        assert self.program.renew is not None
        return self._fold_constants(self.program.renew, "renew")

    @cached_property
    def locate(self) -> Graph:
        """Graph that locates an event."""
        assert self.program.locate is not None
        return self._fold_constants(self.program.locate, "locate")

    @cached_property
    def indicate(self) -> Graph:
        """Graph of the event functions."""
        return self.program.ports.indicators

    @cached_property
    def switch(self) -> Graph:
        """Graph of the state after events."""
        return self.program.ports.switch

    @cached_property
    def slope(self) -> Graph:
        """Graph of the time derivative."""
        return self.program.ports.rate

    @cached_property
    def observe(self) -> Graph:
        """Graph of all columns in one array."""
        ports = self.program.ports
        g, out = ports.outputs, np.empty(len(ports.columns), dtype=object)
        out[:] = [g.outputs[key].flat[i] for key, i in ports.columns.values()]
        return Graph(g.name, g.inputs, {"out": out}, g.tape)

    def _input_values(self, graph: Graph, numbers: dict[str, float]) -> tuple[Tape, dict[tuple[str, int], Any]]:
        """Return a tape, and on it the value of each input element of a graph of the Program."""
        tape, layout = Tape(), self.program.layout
        input_values: dict[tuple[str, int], Any] = {("s", place): x for place, x in layout.constants(numbers).items()}
        remaining_indices = [place for place in range(layout.size) if ("s", place) not in input_values]
        input_values |= {("s", place): tape.node("input", "s", k) for k, place in enumerate(remaining_indices)}
        return tape, input_values | {
            element: tape.node("input", *element) for element in graph.elements if element[0] != "s"
        }

    def _fold_constants(self, graph: Graph, name: str) -> Graph:
        """Return a graph of the Program on the kept part of its state."""
        tape, input_values = self._input_values(graph, self.constant_fields)
        signs = STATUS_FIELDS if self.multi_tick else STATUS_FIELDS[:1]
        more: dict[str, tuple[int, ...]] = {}
        if name == "locate":
            input_values |= {
                ("s", self.program.layout.place(x)): tape.node("input", "signs", k) for k, x in enumerate(signs)
            }
            more = {"signs": (len(signs),)}
        kept_places = [place for places in self.kept_indices.values() for place in places]
        next_state = copy_to_tape(graph, tape, input_values)["s"]
        outputs = {"next": next_state[kept_places]}
        if name in ("tick", "locate"):
            outputs["status"] = next_state[[self.program.layout.place(x) for x in signs]]
        stem = graph.name.rpartition(".")[0]
        return Graph(f"{stem}.{name}", {**graph.inputs, "s": (len(kept_places),), **more}, outputs, tape)
