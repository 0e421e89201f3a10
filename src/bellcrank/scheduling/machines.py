"""Models of parallel machines: processors, costs of operations and messages, topology and routing.

A message of w words takes start + word * w on every channel of its route, one after the other, and a channel carries
one message at a time. If a machine does not overlap communication with computation, sender and receiver are busy, too.
Times are in the unit of the machine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import InputError, check_known
from bellcrank.nodes.ops import OPS
from bellcrank.quoting import quoted_name

Channel = tuple[int, int]  # from, to; a bus is one channel for all
SHARED_BUS: Channel = (-1, -1)  # medium of all channels that share a bus
Cell = tuple[int, int]  # row and column of a processor in a grid
CellPair = tuple[Cell, Cell]
PicturePosition = tuple[float, float]  # column and row of a processor in a picture

STEP_COSTS: Mapping[str, float] = {name: op.cost for name, op in OPS.items()}
# wong1991, chapters 3 and 5: multiplication or division 1 us, addition half of it, sine or cosine 7 us, three
# floats to a neighbour 12 us. Our split of the 12 into start and words assumes 2.3 us per word on a link.
T800_COSTS_US: Mapping[str, float] = {
    name: {"add": 0.5, "mul": 1.0, "div": 1.0, "sqrt": 2.0, "trig": 7.0, "exp": 7.0, "neg": 0.0, "select": 0.5}[
        "add" if op.kind == "sub" else op.kind
    ]
    for name, op in OPS.items()
}
# A core of an AMD Ryzen 9 7950X (Zen 4) at 5 GHz. Assumed latencies of scalar operations in double precision: 3 cycles
# for an addition or multiplication, 13 for a division, 21 for a square root, 40 for a sine or cosine. A message between
# cores takes 68 ns, the median that core-to-core-latency by N. Viennot lists for this processor (16 ns within one of
# its two dies, 68 to 73 ns between them). A cache line carries eight numbers, for which we assume 1 ns each.
MULTICORE_COSTS_NS: Mapping[str, float] = {
    name: {"add": 0.6, "mul": 0.6, "div": 2.6, "sqrt": 4.2, "trig": 8.0, "exp": 8.0, "neg": 0.0, "select": 0.2}[
        "add" if op.kind == "sub" else op.kind
    ]
    for name, op in OPS.items()
}
# A thread of an NVIDIA H200, one thread of every warp working, in double precision at 1.755 GHz: 4 cycles for an
# operation and 20 for an access to shared memory, as the table of GPU architectures in Ultrasonics Sonochemistry 99,
# 106546, 2023 gives for the H100, which has the same multiprocessors. Division, square root and sine are 10, 20 and 30
# operations (emit/cuda/team.py). A message is a write, a flag that is read, and a read: three accesses, and then a
# read every other cycle. We derived this cost, and did not measure it.
H200_COSTS_NS: Mapping[str, float] = {
    name: (4 / 1.755)
    * {"add": 1.0, "mul": 1.0, "div": 10.0, "sqrt": 20.0, "trig": 30.0, "exp": 30.0, "neg": 0.0, "select": 1.0}[
        "add" if op.kind == "sub" else op.kind
    ]
    for name, op in OPS.items()
}


@dataclass(frozen=True)
class Topology:
    """The processors of a machine and their connections.

    `neighbours[i]` are connected to processor i by a pair of channels, one each way. Channels in `shared` are not links
    of their own, but a bus that carries one message at a time for all of them.
    """

    name: str
    neighbours: tuple[tuple[int, ...], ...]
    places: tuple[PicturePosition, ...]
    bus: bool = False  # one channel that all processors share
    lockstep: bool = False  # all do the same operation at the same time, or wait; a message is a step, too
    shared: frozenset[Channel] = frozenset()
    _next_hops: dict[int, Mapping[int, int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _hops: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _routes: dict[tuple[int, int], tuple[Channel, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def processors(self) -> int:
        """Number of processors."""
        return len(self.neighbours)

    def medium(self, channel: Channel) -> Channel:
        """Return what carries the messages of a `channel`: the channel itself, or the bus that it shares."""
        return SHARED_BUS if channel in self.shared else channel

    def route(self, a: int, b: int) -> tuple[Channel, ...]:
        """Return the channels from `a` to `b`: a shortest path, always the same, by the neighbours that come first."""
        if a == b:
            return ()
        if self.bus:
            return ((0, 0),)
        if self._sees_all(a):
            return ((a, b),)
        if (a, b) not in self._routes:
            towards, processor, channels = self._towards(b), a, []
            while processor != b:
                channels.append((processor, towards[processor]))
                processor = towards[processor]
            self._routes[a, b] = tuple(channels)
        return self._routes[a, b]

    def hops(self, a: int) -> Sequence[int]:
        """Return the number of channels between `a` and every processor."""
        if a not in self._hops:
            distances = [0 if b == a else 1 for b in range(self.processors)]
            if not self.bus and not self._sees_all(a):
                for b, towards in self._towards(a).items():  # the nearest first
                    distances[b] = distances[towards] + (b != a)
            self._hops[a] = distances
        return self._hops[a]

    def _sees_all(self, a: int) -> bool:
        """Return true if a is connected to every other processor; a search would then visit all pairs each time."""
        return len(self.neighbours[a]) == self.processors - 1

    def _towards(self, target: int) -> Mapping[int, int]:
        """Return for every processor the next one on the way to the target."""
        if target not in self._next_hops:
            next_hop, front = {target: target}, [target]
            for processor in front:
                for other in self.neighbours[processor]:
                    if other not in next_hop:
                        next_hop[other] = processor
                        front.append(other)
            self._next_hops[target] = next_hop
        return self._next_hops[target]


@explain_methods("message", "with_costs")
@dataclass(frozen=True)
class Machine:
    """A parallel machine: topology, cost of each operation, and cost of a message, start + word * number of words.

    Parameters
    ----------
    name : str
        Name of the machine.
    topology : Topology
        Processors and channels.
    cost : mapping of str to float
        Cost of each operation, by name.
    start : float
        Cost of a message on a channel.
    word : float
        Further cost of each word of a message.
    overlapped : bool
        True if a processor computes while its messages travel.
    unit : str
        Unit of the costs.
    """

    name: str
    topology: Topology
    cost: Mapping[str, float] = field(default_factory=lambda: STEP_COSTS)
    start: float = 0.0
    word: float = 0.0
    overlapped: bool = True
    unit: str = "steps"

    @property
    def processors(self) -> int:
        """Number of processors."""
        return self.topology.processors

    def message(self, words: int) -> float:
        """Return the time of a message on one channel.

        Parameters
        ----------
        words : int
            Number of words.

        Returns
        -------
        float
            Time in the unit of the machine.
        """
        return self.start + self.word * words

    def with_costs(self, **changes: Any) -> Machine:
        """Return the same layout with other costs.

        Parameters
        ----------
        **changes
            New values of cost, start, word, overlapped, unit or name.

        Returns
        -------
        Machine
            The changed copy.
        """
        return replace(self, **changes)

    def __str__(self) -> str:
        costly = bool(self.start or self.word)
        words = f" + {self.word:.3g} per word" if self.word else ""
        unit = "step" if self.unit == "steps" and self.start == 1.0 and not words else self.unit
        send = f"a message costs {self.start:g}{words} {unit}" if costly else "messages are free"
        note = "" if self.overlapped or not costly else ", which keeps both ends busy"
        note = ", which keeps all lanes busy" if self.topology.lockstep else note
        plural = "s" if self.processors > 1 else ""
        return f"{self.name}: {self.processors} processor{plural}; {send}{note}"


def busy_ends(machine: Machine, channel: Channel, source: int, target: int) -> tuple[int, ...]:
    """Return the processors of a `machine` that a message is keeping busy while it is on a `channel`.

    Parameters
    ----------
    machine
        The machine.
    channel
        The channel.
    source, target
        First and last processor of the route.
    """
    if machine.overlapped or machine.topology.lockstep:
        return ()
    return (source, target) if machine.topology.bus else channel


# -- layouts


MAX_PROCESSORS = 20_000  # maximum of a machine
MAX_LINKS = 20_000_000


def _grid(name: str, cells: list[tuple[int, int]]) -> Topology:
    """Connect cells (row, column) with those beside, above and below; messages go along rows first if possible."""
    index = {cell: i for i, cell in enumerate(cells)}
    around = [tuple(index[c] for c in ((r, k - 1), (r, k + 1), (r - 1, k), (r + 1, k)) if c in index) for r, k in cells]
    return Topology(name, tuple(around), tuple((float(k), float(r)) for r, k in cells))


def single() -> Topology:
    """Return one processor."""
    return _grid("single", [(0, 0)])


def complete(p: int) -> Topology:
    """Return `p` processors, each connected with every other."""
    everyone = tuple(range(_check_size(_check_count(p), p * (p - 1))))
    others = tuple(everyone[:i] + everyone[i + 1 :] for i in everyone)
    return Topology(f"complete({p})", others, tuple((float(i), 0.0) for i in everyone))


def pipeline(p: int) -> Topology:
    """Return `p` processors in a row."""
    return replace(_grid("", [(0, i) for i in range(_check_size(_check_count(p)))]), name=f"pipeline({p})")


def mesh(rows: int, columns: int) -> Topology:
    """Return a rectangular grid of `rows` times `columns` processors."""
    _check_size(_check_count(rows) * _check_count(columns))
    cells = [(r, k) for r in range(rows) for k in range(columns)]
    return _grid(f"mesh({rows}, {columns})", cells)


def triangle(n: int) -> Topology:
    """Return Wong's triangle: rows 0 and 1 have `n` processors, row 2 has n - 1, ..., row n has 1: n (n + 1)/2 + n."""
    _check_size(_check_count(n) * (n + 3) // 2)
    cells = [(0, k) for k in range(n)] + [(r, k) for r in range(1, n + 1) for k in range(r - 1, n)]
    return _grid(f"triangle({n})", cells)


def cone_cells(n: int) -> list[Cell]:
    """Return (row, column) of every processor of a cone of size `n`, numbered as Wong does: row 0 and columns 1..n."""
    return [(0, k) for k in range(1, _check_count(n) + 1)] + [(r, k) for r in range(1, n + 1) for k in range(r, n + 1)]


def cone(n: int) -> Topology:
    """Return Wong's cone: the triangle of size `n` rolled up, so that row 0 also connects to the last column.

    Processor (0, k) is connected to (n + 1 - k, n).
    """
    _check_size(_check_count(n) * (n + 3) // 2)
    return grid_of_cells(f"cone({n})", cone_cells(n), [((0, k), (n + 1 - k, n)) for k in range(1, n)])


def grid_of_cells(
    name: str, cells: Sequence[Cell], joined: Sequence[CellPair] = (), on_bus: Sequence[CellPair] = ()
) -> Topology:
    """Return a grid of any cells, with further connections.

    Parameters
    ----------
    name
        Name of the topology.
    cells
        Row and column of each processor; cells beside, above and below each other are connected.
    joined
        Further pairs of cells with a link between them.
    on_bus
        Pairs of cells without a link, even if they are neighbours, which exchange messages on one common bus.
    """
    plain, index = _grid(name, list(cells)), {cell: i for i, cell in enumerate(cells)}
    around, shared = [list(them) for them in plain.neighbours], set()
    for a, b in (*joined, *on_bus):
        for one, other in ((index[a], index[b]), (index[b], index[a])):
            if other not in around[one]:
                around[one].append(other)
            if (a, b) in on_bus:
                shared.add((one, other))
    first = min(k for _, k in cells)
    places = tuple((float(k - first), float(r)) for r, k in cells)
    return Topology(name, tuple(map(tuple, around)), places, shared=frozenset(shared))


def hypercube(d: int) -> Topology:
    """Return a hypercube of dimension `d`."""
    if isinstance(d, bool) or not isinstance(d, int) or not 0 <= d <= 12:
        raise InputError(f"hypercube: dimension {d!r}; expected a whole number from 0 to 12.")
    p = 2**d
    around = tuple(tuple(i ^ (1 << k) for k in range(d)) for i in range(p))
    half = (d + 1) // 2
    return Topology(f"hypercube({d})", around, tuple((float(i % 2**half), float(i // 2**half)) for i in range(p)))


def bus(p: int) -> Topology:
    """Return `p` processors that share one channel."""
    return replace(complete(p), name=f"bus({p})", bus=True)


def warp(lanes: int) -> Topology:
    """Return a warp of a GPU with this number of `lanes`: one instruction stream for all lanes (lockstep.py)."""
    return replace(complete(lanes), name=f"warp({lanes})", lockstep=True)


def _check_count(p: int) -> int:
    if isinstance(p, bool) or not isinstance(p, int) or p < 1:
        raise InputError(f"a machine of {p!r} processors; expected a whole number of at least 1.")
    return p


def _check_size(processors: int, links: int = 0) -> int:
    """Return the number of processors; raise an error if the machine alone would take minutes and gigabytes."""
    if processors > MAX_PROCESSORS or links > MAX_LINKS:
        also = f" with {links:,} links" if links else ""
        most = f"{MAX_PROCESSORS:,} processors" + (f" and {MAX_LINKS:,} links" if links else "")
        raise InputError(
            f"a machine of {processors:,} processors{also} is too large to schedule anything; at most {most}."
        )
    return processors


LAYOUTS: dict[str, Callable[..., Topology]] = {
    layout.__name__: layout for layout in (single, complete, pipeline, mesh, triangle, cone, hypercube, bus, warp)
}


def ideal(topology: Topology) -> Machine:
    """Return a machine of this `topology` with free messages; an addition, multiplication or shuffle is one step."""
    return Machine(topology.name, topology, start=1.0 if topology.lockstep else 0.0)


def transputer_t800(topology: Topology) -> Machine:
    """Return T800 transputers in this `topology` as Wong measured them; links work in parallel to the processor."""
    return Machine(f"T800 {topology.name}", topology, T800_COSTS_US, start=5.0, word=7.0 / 3.0, unit="us")


def multicore(topology: Topology) -> Machine:
    """Return cores of a processor of the 2020s in this `topology`, in ns."""
    return Machine(f"multicore {topology.name}", topology, MULTICORE_COSTS_NS, start=68.0, word=1.0, unit="ns")


def h200(topology: Topology) -> Machine:
    """Return threads of a block on an NVIDIA H200 in this `topology`, in ns; messages go through shared memory."""
    return Machine(f"H200 {topology.name}", topology, H200_COSTS_NS, start=60 / 1.755, word=2 / 1.755, unit="ns")


KINDS: dict[str, Callable[[Topology], Machine]] = {
    "ideal": ideal,
    "t800": transputer_t800,
    "hidden": lambda t: transputer_t800(t).with_costs(name=f"{t.name}, messages hidden", start=0.0, word=0.0),
    "explicit": lambda t: transputer_t800(t).with_costs(overlapped=False),
    "multicore": multicore,
    "h200": h200,
}
KIND_ALIASES = {"transputer_t800": "t800"}  # alternative names


def machine(text: str, kind: str = "ideal") -> Machine:
    """Return a machine by its name, such as "single", "complete:4", "mesh:2,3" or "triangle:4".

    Parameters
    ----------
    text
        Name of the topology, with its sizes.
    kind
        Kind of processor.
    """
    name, _, numbers = text.partition(":")
    check_known("machine", name, LAYOUTS)
    parameter_names = [x.name for x in inspect.signature(LAYOUTS[name]).parameters.values() if x.kind != x.KEYWORD_ONLY]
    sizes = [x.strip() for x in numbers.split(",")] if numbers.strip() else []
    if len(sizes) != len(parameter_names) or not all(x.isdecimal() for x in sizes):
        how = f"{name}:{','.join(parameter_names)} with whole numbers" if parameter_names else f"{name} without numbers"
        raise InputError(f"machine {quoted_name(text)}: expected {how}.")
    if any(len(x) > 9 for x in sizes):  # too large in any case, and Python limits the digits it converts
        raise InputError(
            f"machine {quoted_name(text)} is too large to schedule anything; at most {MAX_PROCESSORS:,} processors."
        )
    return machine_of_kind(LAYOUTS[name](*map(int, sizes)), kind)


def machine_of_kind(topology: Topology, kind: str) -> Machine:
    """Return a machine of this `topology` with processors of this `kind`."""
    kind = KIND_ALIASES.get(kind, kind)
    check_known("kind of machine", kind, KINDS)
    return KINDS[kind](topology)
