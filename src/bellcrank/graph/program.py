"""A state machine made of graphs: what is run in lanes and on a GPU, stepped, driven in real time, exported.

All that one tick tells the next is a state `s`, laid out by name. Every graph takes s, the inputs u and the free
numbers p, as far as they exist, and gives the next s. Some fields are signs to whoever calls the graphs:

    live   the run goes on; where it does not, `tick` leaves the state as it is
    due    a row is to be written before the next tick       status   why it does not go on (below)
    hit    `locate` is to be called after this tick          input    which line of a table of inputs is valid now
    fresh  that line is a new one, or a sample is due: `renew` is to be called before the next tick

To step one by hand: a state from `begun`, `start` once, then `tick` as often as there is time for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph.counting import Count, Counter, joined, split
from bellcrank.graph.elimination import Factors, Loops
from bellcrank.graph.graph import Graph
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node
from bellcrank.parameters import Parameters
from bellcrank.scalar import Scalar

Array = np.ndarray[Any, Any]


# Why a run stopped: its field "status".
RUNNING, FINISHED, NOT_FINITE, TOO_SMALL, EVENT, REPARTITION, NOT_CLOSED, TOO_MANY = range(8)
BAD_STEP = 8  # of what is exported: a step that is not above zero, or too short for the time
NEVER = 1e300  # a time that does not come
HUGE = 1e150  # a state beyond this has left physics


Width = int | tuple[int] | Counter  # what a field is: one scalar, a list of so many, or a counter


class Layout:
    """Fields by name, one after the other; a size of 1 is a scalar, a Counter counts, anything else is a list.

    A counter of one word lies where a scalar would; inside a trace it is a Count in either case.
    """

    def __init__(self, fields: Mapping[str, Width]) -> None:
        self.fields = dict(fields)
        self.places: dict[str, int | slice] = {}
        at = 0
        for name, size in fields.items():
            width = _width(size)
            single = width == 1 and not isinstance(size, tuple)
            self.places[name] = at if single else slice(at, at + width)
            at += width
        self.size = at

    def read(self, s: Sequence[Scalar]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, place in self.places.items():
            words = [s[place]] if isinstance(place, int) else list(s[place])
            if isinstance(self.fields[name], Counter):
                found[name] = Count(words)
            else:
                found[name] = words[0] if isinstance(place, int) else words
        return found

    def written(self, values: Mapping[str, Any]) -> list[Scalar]:
        flat: list[Scalar] = []
        for name in self.places:
            x = values[name]
            flat += list(x) if isinstance(self.fields[name], Counter | tuple) else [x]
        return flat

    def constants(self, values: Mapping[str, float]) -> dict[int, float]:
        """The elements of a state that hold these numbers, by their places; what there is no field for is left out."""
        found: dict[int, float] = {}
        for name, x in values.items():
            if name in self.places:
                words = self.words(name)
                found |= dict(zip(self._range(name), [x] if words is None else split(x, words).tolist(), strict=True))
        return found

    def words(self, name: str) -> int | None:
        """How many words a counter has; None for what is not a counter, or not there."""
        kind = self.fields.get(name)
        return kind.words if isinstance(kind, Counter) else None

    def count(self, state: Any, name: str) -> Any:
        """What a counter has counted, in float64: of one state, or of the columns of an array of states."""
        return joined([state[k] for k in self._range(name)])

    def _range(self, name: str) -> range:
        place = self.places[name]
        return range(place, place + 1) if isinstance(place, int) else range(place.start, place.stop)

    def array(self, lanes: int, values: Mapping[str, Any], xp: Any = np, dtype: str = "float64") -> Any:
        """The state of as many lanes, (size, lanes), from numbers or arrays (lanes,) or (lanes, width); else zero.

        Arrays of one lane, (1, width), are of all; what there is no field for is left out. xp: numpy, or what makes
        arrays elsewhere.
        """
        out = xp.zeros((self.size, lanes), dtype)
        for name, value in values.items():
            if name not in self.places:
                continue
            if self.words(name) is not None:
                self._put_count(out, name, value, xp)
            else:
                out[self.places[name]] = xp.asarray(value).T if np.ndim(value) else value
        return out

    def _put_count(self, state: Any, name: str, value: Any, xp: Any = np) -> None:
        """Write a counter's words into a state, or into the columns of an array of states."""
        words = self.words(name)
        assert words is not None
        for place, word in zip(self._range(name), split(value, words), strict=True):
            state[place] = xp.asarray(word) if np.ndim(word) else float(word)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def put(self, state: Any, values: Mapping[str, Any]) -> Any:
        """A copy of one lane's state with some fields changed."""
        out = state.copy()
        for name, x in values.items():
            if name not in self.places:
                continue
            if self.words(name) is not None:
                self._put_count(out, name, x)
            else:
                out[self.places[name]] = x
        return out

    def span(self, name: str) -> slice:
        """Where a field is that is a list."""
        found = self.places[name]
        assert isinstance(found, slice)
        return found

    def place(self, name: str) -> int:
        found = self.places[name]
        assert isinstance(found, int)
        return found


def _width(size: Width) -> int:
    if isinstance(size, Counter):
        return size.words
    return size if isinstance(size, int) else size[0]


def size(width: int) -> int | tuple[int]:
    """A list in a layout, also where it has one element or none."""
    return (width,)


def _nothing() -> Any:
    raise LookupError("this program was made without ports: nobody said what its numbers mean")


@dataclass(frozen=True)
class Crossing:
    """An event: what it is called, what happens (stop, record, switch), and which way its function must cross zero."""

    name: str
    action: str
    direction: int


@dataclass(frozen=True, eq=False)
class Ports:
    """What the numbers of a program mean: names, units and starts of y, u and p, and what can be observed of them."""

    names: tuple[str, ...] = ()  # of the elements of y, in their order
    inputs: Mapping[str, float] = field(default_factory=dict)  # of u, in their order: what holds until one is given
    parameters: Parameters = field(default_factory=Parameters)  # of p
    columns: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # which element of which output of `outputs`
    measuring: Callable[[], Mapping[str, str]] = dict  # these are made when somebody asks
    resting: Callable[[], Array] = _nothing
    watching: Callable[[], Graph] = _nothing
    rating: Callable[[], Graph] = _nothing
    sizing: Callable[[], Array] = _nothing
    events: tuple[Crossing, ...] = ()
    indicating: Callable[[], Graph] = _nothing
    switching: Callable[[], Graph] = _nothing
    clocks: tuple[tuple[float, float], ...] = ()  # of samples: seconds between them, and from the start to the first
    adaptive: bool = False  # whether the ticks choose their steps by the tolerance

    @cached_property
    def units(self) -> Mapping[str, str]:
        """Of columns, and of elements of y."""
        return self.measuring()

    @cached_property
    def elements(self) -> dict[str, str]:
        """Of y, in their order: their units."""
        return {name: self.units.get(name, "") for name in self.names}

    @cached_property
    def rest(self) -> Array:
        """y where nobody says how it begins."""
        return self.resting()

    @cached_property
    def nominals(self) -> Array:
        """How large the elements of y usually are; 1 for sensitivities, which come last."""
        own = self.sizing()
        return np.append(own, np.ones(len(self.names) - len(own)))

    @cached_property
    def outputs(self) -> Graph:
        """(t, y, u, p) -> all that can be observed."""
        return self.watching()

    @cached_property
    def rate(self) -> Graph:
        """(t, y, u, p) -> dy, how fast y changes."""
        return self.rating()

    @cached_property
    def indicators(self) -> Graph:
        """(t, y, u, p) -> g, the functions of the events."""
        return self.indicating()

    @cached_property
    def switch(self) -> Graph:
        """(t, y, u, e, p) -> y after the events that are 1 in e."""
        return self.switching()


@dataclass(frozen=True, eq=False)
class Program:
    """Graphs that complete a state before the first tick, take it one tick further, and read rows from it."""

    layout: Layout
    start: Graph
    tick: Graph
    row: int  # elements of a row: the first ones of s, or what `observe` gives
    observe: Graph | None = None  # outputs row and s, called while a row is due
    locate: Graph | None = None
    renew: Graph | None = None
    ports: Ports = field(default_factory=Ports)

    @cached_property
    def graphs(self) -> dict[str, Graph]:
        found = {name: getattr(self, name) for name in ("start", "tick", "observe", "locate", "renew")}
        return {name: graph for name, graph in found.items() if graph is not None}

    @property
    def size(self) -> int:
        return self.layout.size

    @cached_property
    def nu(self) -> int:
        """How many inputs there are."""
        return math.prod(self.tick.inputs["u"]) if "u" in self.tick.inputs else 0

    @cached_property
    def free(self) -> int:
        """How many free numbers there are."""
        return max((math.prod(g.inputs["p"]) for g in self.graphs.values() if "p" in g.inputs), default=0)

    def check_counters(self, dtype: str) -> None:
        """Raise an InputError where the counters are those of numbers that count further than this dtype's."""
        words = self.layout.words("n")
        if words is not None and words < Counter.of(dtype).words:
            raise InputError(
                f"{self.tick.name}: this program counts its steps in one number, which {dtype} cannot hold; make it "
                f'with dtype="{dtype}" (Simulator.whole, Simulator.program).'
            )

    # Where in s the signs are.

    @property
    def live(self) -> int:
        return self.layout.place("live")

    @property
    def due(self) -> int:
        return self.layout.place("due")

    @property
    def hit(self) -> int:
        return self.layout.place("hit")

    @property
    def input(self) -> int:
        return self.layout.place("input")

    @property
    def fresh(self) -> int:
        return self.layout.place("fresh")

    def begun(self, y: Array, step: float, xp: Any = np, dtype: str = "float64") -> Any:
        """States (size, runs) from y (runs, n) for fixed steps without end, and no rows: inputs hold until they are
        changed. `start` completes them.
        """
        never = dict.fromkeys(("last", "next", "input_steps", "bound"), NEVER)
        return self.layout.array(len(y), {"y": y, "live": 1.0, "h": step, "stride": 1.0, **never}, xp, dtype)


def structure(graph: Graph, known: dict[int, Any] | None = None) -> tuple[Any, ...]:
    """What a graph is made of, as something that can be compared, for graphs of the same structure are the same code:
    inputs, outputs and operations. Names of steps are left out; numbers are told apart to the last bit."""
    known = {} if known is None else known
    if id(graph) not in known and isinstance(graph, Recursion):
        known[id(graph)] = _of_recursion(graph, known)
    if id(graph) not in known and isinstance(graph, Loops):
        of = (structure(graph.of, known), graph.along_input) if isinstance(graph, Factors) else ()
        known[id(graph)] = type(graph).__name__, graph.n, of
    if id(graph) not in known:
        nodes = tuple((n.serial, n.op, *(_told(a, known) for a in n.args)) for n in graph.nodes)
        outputs = tuple((key, x.shape, *(_told(a, known) for a in x.flat)) for key, x in graph.outputs.items())
        known[id(graph)] = graph.only, tuple(graph.inputs.items()), outputs, nodes
    found: tuple[Any, ...] = known[id(graph)]
    return found


def _told(x: Any, known: dict[int, Any]) -> Any:
    if isinstance(x, Node):
        return x.serial
    if isinstance(x, float):
        return x.hex()  # for 0.0 equals -0.0
    return structure(x, known) if isinstance(x, Graph) else (type(x).__name__, x)


def _of_recursion(r: Recursion, known: dict[int, Any]) -> tuple[Any, ...]:
    """Its cells, the constants of every place, and which place hangs on which."""
    cells = tuple((structure(c.graph, known), c.outwards, c.children, c.on_ground) for c in r.cells)
    arrays = (*r.tables, r.tree.parent, r.tree.children, *r.tree.elements.values())
    numbers = tuple((x.shape, x.dtype.str, x.tobytes()) for x in arrays)
    made = tuple(r.inputs.items()), r.output, r.shape
    return *made, cells, numbers, tuple(r.tree.elements), r.tree.runs, r.tree.chained
