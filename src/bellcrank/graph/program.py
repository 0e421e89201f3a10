"""A state machine made of graphs: simulated in lanes or on a GPU, stepped, driven in real time, exported.

All that one tick passes to the next is a state `s`, laid out by name. Every graph takes s, the inputs u and the free
parameters p, as far as they exist, and returns the next s. Some fields are flags for the caller of the graphs:

    live   the run continues; if not, `tick` leaves the state unchanged
    due    a row must be written before the next tick       status   reason why the run has ended (below)
    hit    `locate` must be called after this tick          input    current line of a table of inputs
    fresh  that line is new, or a sample is due: `renew` must be called before the next tick

To step a program: create a state with `initial_states`, call `start` once, then `tick` for every step.

An Action is one action of a stepped simulation: the graphs that run before, after and between its ticks. Between
actions the state of a run is the vector `c`, laid out by name. It holds everything that differs between runs, without
the values that only a tick needs. Every graph takes c, the inputs u and the free parameters p as far as it needs them.

    open    c, u -> s                        state of the program before the first tick of an action
    close   c, s, u -> c, row, reward, end   after the last tick: the leading part of c that changes, the observation,
                                             the reward and the end signal
    begin   c -> c                           restarts runs where `new` is positive: 1 from y as it is, 2 from a start
                                             state that begin draws itself
    look    c -> row                         observation before the first action

`status` in c is the reason why a run has ended; an action leaves an ended run unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph.graph import Array, Graph
from bellcrank.graph.layout import Counter, Layout
from bellcrank.parameters import Parameters

# Reasons why a run has ended: values of its field "status".
RUNNING, FINISHED, NOT_FINITE, TOO_SMALL, EVENT, REPARTITION, NOT_CLOSED, TOO_MANY = range(8)
BAD_STEP = 8  # in exported code: a step that is not positive, or too short for the time
NEVER_TIME = 1e300  # a time that is never reached
STATE_LIMIT = 1e150  # a state beyond this is not physical


def _no_ports() -> Any:
    raise LookupError("this program was created without ports: the meaning of its numbers is not defined")


def _index(name: str) -> Any:
    """Return a property: the index in the state of a Program of the field `name`."""
    return property(lambda program: program.layout.place(name), doc=f"Index of the field `{name}`.")


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
    commanded: tuple[str, ...] = ()  # names of latches that are switched at the start of steps

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

    live = _index("live")
    due = _index("due")
    hit = _index("hit")
    input = _index("input")
    fresh = _index("fresh")

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
