"""A state machine made of graphs: simulated in lanes or on a GPU, stepped, driven in real time, exported.

All that one tick passes to the next is a state `s`, laid out by name. Every graph takes s, the inputs u and the free
parameters p, as far as they exist, and returns the next s. Some fields are flags for the caller of the graphs:

    live   the run continues; if not, `tick` leaves the state unchanged
    due    a row must be written before the next tick       status   reason why the run has ended (below)
    hit    `locate` must be called after this tick          input    current line of a table of inputs
    fresh  that line is new, or a sample is due: `renew` must be called before the next tick

To step a program: create a state with `initial_states`, call `start` once, then `tick` for every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph.counters import Counter, CounterWords, join_words, split_words
from bellcrank.graph.graph import Graph
from bellcrank.parameters import Parameters
from bellcrank.scalar import Scalar

Array = np.ndarray[Any, Any]


# Reasons why a run has ended: values of its field "status".
RUNNING, FINISHED, NOT_FINITE, TOO_SMALL, EVENT, REPARTITION, NOT_CLOSED, TOO_MANY = range(8)
BAD_STEP = 8  # in exported code: a step that is not positive, or too short for the time
NEVER_TIME = 1e300  # a time that is never reached
STATE_LIMIT = 1e150  # a state beyond this is not physical


Width = int | tuple[int] | Counter  # of a field: one scalar, a list of this length, or a counter


class Layout:
    """Named fields, one after the other in a vector.

    A field of size 1 is a scalar, a Counter counts, anything else is a list. A counter of one word is stored like a
    scalar; inside a trace every counter is CounterWords.
    """

    def __init__(self, fields: Mapping[str, Width]) -> None:
        """Lay out the `fields` in the given order."""
        self.fields = dict(fields)
        self.places: dict[str, int | slice] = {}
        offset = 0
        for name, size in fields.items():
            width = _width(size)
            single = width == 1 and not isinstance(size, tuple)
            self.places[name] = offset if single else slice(offset, offset + width)
            offset += width
        self.size = offset

    def read(self, s: Sequence[Scalar]) -> dict[str, Any]:
        """Return the fields of the state `s` by name."""
        values: dict[str, Any] = {}
        for name, place in self.places.items():
            words = [s[place]] if isinstance(place, int) else list(s[place])
            if isinstance(self.fields[name], Counter):
                values[name] = CounterWords(words)
            else:
                values[name] = words[0] if isinstance(place, int) else words
        return values

    def to_list(self, values: Mapping[str, Any]) -> list[Scalar]:
        """Return a state as a flat list from the `values` of all its fields."""
        flat: list[Scalar] = []
        for name in self.places:
            x = values[name]
            flat += list(x) if isinstance(self.fields[name], Counter | tuple) else [x]
        return flat

    def constants(self, values: Mapping[str, float]) -> dict[int, float]:
        """Return the state elements that hold these `values`, by index; names without a field are ignored."""
        elements: dict[int, float] = {}
        for name, x in values.items():
            if name in self.places:
                words = self.words(name)
                elements |= dict(
                    zip(self._range(name), [x] if words is None else split_words(x, words).tolist(), strict=True)
                )
        return elements

    def words(self, name: str) -> int | None:
        """Return the number of words of the counter `name`; None if it is not a counter or does not exist."""
        kind = self.fields.get(name)
        return kind.words if isinstance(kind, Counter) else None

    def count(self, state: Any, name: str) -> Any:
        """Return the count of counter `name` in float64, for one `state` or for the columns of an array of states."""
        return join_words([state[k] for k in self._range(name)])

    def _range(self, name: str) -> range:
        place = self.places[name]
        return range(place, place + 1) if isinstance(place, int) else range(place.start, place.stop)

    def array(self, lanes: int, values: Mapping[str, Any], xp: Any = np, dtype: str = "float64") -> Any:
        """Return the states of several lanes, shape (size, lanes); fields without a value are zero.

        Parameters
        ----------
        lanes
            Number of lanes.
        values
            Numbers or arrays of shape (lanes,) or (lanes, width) by field; an array of shape (1, width) applies to all
            lanes. Names without a field are ignored.
        xp
            Array library, numpy or cupy.
        dtype
            Type of the numbers.
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
        for place, word in zip(self._range(name), split_words(value, words), strict=True):
            state[place] = xp.asarray(word) if np.ndim(word) else float(word)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def with_fields(self, state: Any, values: Mapping[str, Any]) -> Any:
        """Return a copy of one lane's `state` with the fields in `values` changed."""
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
        """Return the slice of the list field `name`."""
        place = self.places[name]
        assert isinstance(place, slice)
        return place

    def place(self, name: str) -> int:
        """Return the index of the scalar field `name`."""
        index = self.places[name]
        assert isinstance(index, int)
        return index


def _width(size: Width) -> int:
    if isinstance(size, Counter):
        return size.words
    return size if isinstance(size, int) else size[0]


def list_width(width: int) -> int | tuple[int]:
    """Return the field size of a list of `width` elements, also for one element or none."""
    return (width,)


def _no_ports() -> Any:
    raise LookupError("this program was created without ports: the meaning of its numbers is not defined")


@dataclass(frozen=True)
class EventSpec:
    """An event: its name, its action (stop, record, switch), and the direction of the zero crossing of its function."""

    name: str
    action: str
    direction: int


@dataclass(frozen=True, eq=False)
class Ports:
    """Names, units and start values of y, u and p, and the values that can be observed."""

    names: tuple[str, ...] = ()  # names of the elements of y, in order
    inputs: Mapping[str, float] = field(default_factory=dict)  # values of u until others are given, in order
    parameters: Parameters = field(default_factory=Parameters)  # the free parameters p
    columns: Mapping[str, tuple[str, int]] = field(
        default_factory=dict
    )  # output of `outputs` and element in it, by column
    make_units: Callable[[], Mapping[str, str]] = dict  # this and the following are evaluated on demand
    make_rest: Callable[[], Array] = _no_ports
    make_outputs: Callable[[], Graph] = _no_ports
    make_rate: Callable[[], Graph] = _no_ports
    make_nominals: Callable[[], Array] = _no_ports
    events: tuple[EventSpec, ...] = ()
    make_indicators: Callable[[], Graph] = _no_ports
    make_switch: Callable[[], Graph] = _no_ports
    clocks: tuple[tuple[float, float], ...] = ()  # per sampled controller: period and time of the first sample, s
    adaptive: bool = False  # true if the step size is adaptive

    @cached_property
    def units(self) -> Mapping[str, str]:
        """Units of the columns and of the elements of y."""
        return self.make_units()

    @cached_property
    def elements(self) -> dict[str, str]:
        """Units of the elements of y, in their order."""
        return {name: self.units.get(name, "") for name in self.names}

    @cached_property
    def rest(self) -> Array:
        """Default start value of y."""
        return self.make_rest()

    @cached_property
    def nominals(self) -> Array:
        """Typical magnitudes of the elements of y; 1 for sensitivities, which come last."""
        magnitudes = self.make_nominals()
        return np.append(magnitudes, np.ones(len(self.names) - len(magnitudes)))

    @cached_property
    def outputs(self) -> Graph:
        """(t, y, u, p) -> all values that can be observed."""
        return self.make_outputs()

    @cached_property
    def rate(self) -> Graph:
        """(t, y, u, p) -> dy, the time derivative of y."""
        return self.make_rate()

    @cached_property
    def indicators(self) -> Graph:
        """(t, y, u, p) -> g, the event functions."""
        return self.make_indicators()

    @cached_property
    def switch(self) -> Graph:
        """(t, y, u, e, p) -> y after the events that are 1 in e."""
        return self.make_switch()


@dataclass(frozen=True, eq=False)
class Program:
    """Graphs that complete a state before the first tick, advance it by one tick, and read rows from it."""

    layout: Layout
    start: Graph
    tick: Graph
    row: int  # elements of a row: the first ones of s, or the row from `observe`
    observe: Graph | None = None  # has the outputs row and s; called while a row is due
    locate: Graph | None = None
    renew: Graph | None = None
    ports: Ports = field(default_factory=Ports)

    @cached_property
    def graphs(self) -> dict[str, Graph]:
        """The existing graphs by name."""
        graphs = {name: getattr(self, name) for name in ("start", "tick", "observe", "locate", "renew")}
        return {name: graph for name, graph in graphs.items() if graph is not None}

    @property
    def size(self) -> int:
        """Number of elements of a state."""
        return self.layout.size

    @cached_property
    def nu(self) -> int:
        """Number of inputs."""
        return math.prod(self.tick.inputs["u"]) if "u" in self.tick.inputs else 0

    @cached_property
    def free(self) -> int:
        """Number of free parameters."""
        return max((math.prod(g.inputs["p"]) for g in self.graphs.values() if "p" in g.inputs), default=0)

    def check_counters(self, dtype: str) -> None:
        """Raise InputError if the counters have too few words for numbers of this `dtype`."""
        words = self.layout.words("n")
        if words is not None and words < Counter.for_dtype(dtype).words:
            raise InputError(
                f"{self.tick.name}: this program counts its steps in one number, which {dtype} cannot hold; create it "
                f'with dtype="{dtype}" (Simulator.self_contained_program, Simulator.program).'
            )

    # Indices of the flags in s.

    @property
    def live(self) -> int:
        """Index of the flag `live`."""
        return self.layout.place("live")

    @property
    def due(self) -> int:
        """Index of the flag `due`."""
        return self.layout.place("due")

    @property
    def hit(self) -> int:
        """Index of the flag `hit`."""
        return self.layout.place("hit")

    @property
    def input(self) -> int:
        """Index of the field `input`."""
        return self.layout.place("input")

    @property
    def fresh(self) -> int:
        """Index of the flag `fresh`."""
        return self.layout.place("fresh")

    def initial_states(self, y: Array, step: float, xp: Any = np, dtype: str = "float64") -> Any:
        """Return initial states for fixed steps without end and without rows; inputs hold until they are changed.

        `start` completes them.

        Parameters
        ----------
        y
            Start values, shape (runs, n).
        step
            Step size, s.
        xp
            Array library, numpy or cupy.
        dtype
            Type of the numbers.

        Returns
        -------
        array, shape (size, runs)
            One column per run.
        """
        never = dict.fromkeys(("last", "next", "input_steps", "bound"), NEVER_TIME)
        return self.layout.array(len(y), {"y": y, "live": 1.0, "h": step, "stride": 1.0, **never}, xp, dtype)
