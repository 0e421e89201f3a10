"""Machines as data: processors, what an operation and a message cost, and how messages find their way.

A message of w words takes start + word * w on every channel of its route, one after the other, and a channel carries
one message at a time. Where a machine does not overlap communication with computation, sender and receiver are kept
busy too. Times are in the machine's own unit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bellcrank.errors import InputError, unknown
from bellcrank.misfits import explained_class
from bellcrank.nodes.ops import OPS
from bellcrank.quoting import shown

Channel = tuple[int, int]  # from, to; a bus is one channel for all
Place = tuple[float, float]  # column, row: where a picture puts a processor

STEPS: Mapping[str, float] = {name: op.cost for name, op in OPS.items()}
# wong1991 chapters 3 and 5: a multiplication (or division) 1 us, an addition half of it, a sine or cosine 7 us, three
# floats to a neighbour 12 us. How the 12 split into start and words is ours: the links move a word in about 2.3 us.
T800: Mapping[str, float] = {
    name: {"add": 0.5, "mul": 1.0, "div": 1.0, "sqrt": 2.0, "trig": 7.0, "exp": 7.0, "neg": 0.0, "select": 0.5}[
        "add" if op.kind == "sub" else op.kind
    ]
    for name, op in OPS.items()
}


@dataclass(frozen=True)
class Topology:
    """`neighbours[i]` are joined to processor i by a pair of channels, one each way."""

    name: str
    neighbours: tuple[tuple[int, ...], ...]
    places: tuple[Place, ...]
    bus: bool = False  # one channel that all take turns on
    lockstep: bool = False  # all do the same operation at the same time, or wait; a message is a step too
    _ways: dict[int, Mapping[int, int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _hops: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _routes: dict[tuple[int, int], tuple[Channel, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def processors(self) -> int:
        return len(self.neighbours)

    def route(self, a: int, b: int) -> tuple[Channel, ...]:
        """The channels from a to b, the same every time: a shortest way, by the neighbours that come first."""
        if a == b:
            return ()
        if self.bus:
            return ((0, 0),)
        if self._sees_all(a):
            return ((a, b),)
        if (a, b) not in self._routes:
            towards, at, way = self._towards(b), a, []
            while at != b:
                way.append((at, towards[at]))
                at = towards[at]
            self._routes[a, b] = tuple(way)
        return self._routes[a, b]

    def hops(self, a: int) -> Sequence[int]:
        """How many channels there are between a and every other processor."""
        if a not in self._hops:
            found = [0 if b == a else 1 for b in range(self.processors)]
            if not self.bus and not self._sees_all(a):
                found = [-1] * self.processors
                found[a], front = 0, [a]
                while front:
                    further = []
                    for at in front:
                        for b in self.neighbours[at]:
                            if found[b] < 0:
                                found[b] = found[at] + 1
                                further.append(b)
                    front = further
            self._hops[a] = found
        return self._hops[a]

    def _sees_all(self, a: int) -> bool:
        """Whether a is joined to every other processor: where all are, a search would look at all pairs each time."""
        return len(self.neighbours[a]) == self.processors - 1

    def _towards(self, target: int) -> Mapping[int, int]:
        """From every processor the next on the way to the target."""
        if target not in self._ways:
            found, front = {target: target}, [target]
            while front:
                further = []
                for at in front:
                    for other in self.neighbours[at]:
                        if other not in found:
                            found[other] = at
                            further.append(other)
                front = further
            self._ways[target] = found
        return self._ways[target]


@explained_class("message", "with_costs")
@dataclass(frozen=True)
class Machine:
    """A parallel machine as data: its processors and channels (topology), what each operation costs, and what a message
    costs: start + word times its words; overlapped: a processor computes while its messages travel.
    """

    name: str
    topology: Topology
    cost: Mapping[str, float] = field(default_factory=lambda: STEPS)  # of an operation, by name
    start: float = 0.0  # of a message on a channel
    word: float = 0.0
    overlapped: bool = True
    unit: str = "steps"

    @property
    def processors(self) -> int:
        """How many there are."""
        return self.topology.processors

    def message(self, words: int) -> float:
        """Time that a message of so many words takes on one channel."""
        return self.start + self.word * words

    def with_costs(self, **changes: Any) -> Machine:
        """The same layout with other costs: cost=, start=, word=, overlapped=, unit=, name=."""
        return replace(self, **changes)

    def __str__(self) -> str:
        costly = bool(self.start or self.word)
        words = f" + {self.word:.3g} per word" if self.word else ""
        unit = "step" if self.unit == "steps" and self.start == 1.0 and not words else self.unit
        send = f"a message costs {self.start:g}{words} {unit}" if costly else "messages are free"
        how = "" if self.overlapped or not costly else ", which keeps both ends busy"
        how = ", which keeps all lanes busy" if self.topology.lockstep else how
        plural = "s" if self.processors > 1 else ""
        return f"{self.name}: {self.processors} processor{plural}; {send}{how}"


# -- layouts


PROCESSORS = 20_000  # of a machine, at most
LINKS = 20_000_000


def _grid(name: str, cells: list[tuple[int, int]]) -> Topology:
    """Cells (row, column) joined to those beside, above and below; messages go along rows first where they can."""
    index = {cell: i for i, cell in enumerate(cells)}
    around = [tuple(index[c] for c in ((r, k - 1), (r, k + 1), (r - 1, k), (r + 1, k)) if c in index) for r, k in cells]
    return Topology(name, tuple(around), tuple((float(k), float(r)) for r, k in cells))


def single() -> Topology:
    return _grid("single", [(0, 0)])


def complete(p: int) -> Topology:
    everyone = tuple(range(_fits(_count(p), p * (p - 1))))
    others = tuple(everyone[:i] + everyone[i + 1 :] for i in everyone)
    return Topology(f"complete({p})", others, tuple((float(i), 0.0) for i in everyone))


def pipeline(p: int) -> Topology:
    return replace(_grid("", [(0, i) for i in range(_fits(_count(p)))]), name=f"pipeline({p})")


def mesh(rows: int, columns: int) -> Topology:
    _fits(_count(rows) * _count(columns))
    cells = [(r, k) for r in range(rows) for k in range(columns)]
    return _grid(f"mesh({rows}, {columns})", cells)


def triangle(n: int) -> Topology:
    """Wong's: row 0 and row 1 have n processors, row 2 has n - 1, ..., row n has one: n (n + 1)/2 + n."""
    _fits(_count(n) * (n + 3) // 2)
    cells = [(0, k) for k in range(n)] + [(r, k) for r in range(1, n + 1) for k in range(r - 1, n)]
    return _grid(f"triangle({n})", cells)


def cone_cells(n: int) -> list[tuple[int, int]]:
    """(row, column) of every processor of a cone, both as Wong numbers them: row 0 and columns 1..n."""
    return [(0, k) for k in range(1, _count(n) + 1)] + [(r, k) for r in range(1, n + 1) for k in range(r, n + 1)]


def cone(n: int, *, joined: Sequence[tuple[tuple[int, int], tuple[int, int]]] = ()) -> Topology:
    """The triangle rolled up: row 0 is wound around and joined to the last column too, (0, k) to (n + 1 - k, n).

    `joined` are more pairs of cells with a link between them, such as a mechanism's branches ask for.
    """
    _fits(_count(n) * (n + 3) // 2)
    cells = cone_cells(n)
    index, flat = {cell: i for i, cell in enumerate(cells)}, triangle(n)
    around = [list(them) for them in flat.neighbours]
    for a, b in (*(((0, k), (n + 1 - k, n)) for k in range(1, n)), *joined):
        for one, other in ((index[a], index[b]), (index[b], index[a])):
            if other not in around[one]:
                around[one].append(other)
    return Topology(f"cone({n})", tuple(map(tuple, around)), flat.places)


def hypercube(d: int) -> Topology:
    if isinstance(d, bool) or not isinstance(d, int) or not 0 <= d <= 12:
        raise InputError(f"hypercube: dimension {d!r}; expected a whole number from 0 to 12.")
    p = 2**d
    around = tuple(tuple(i ^ (1 << k) for k in range(d)) for i in range(p))
    half = (d + 1) // 2
    return Topology(f"hypercube({d})", around, tuple((float(i % 2**half), float(i // 2**half)) for i in range(p)))


def bus(p: int) -> Topology:
    return replace(complete(p), name=f"bus({p})", bus=True)


def warp(lanes: int) -> Topology:
    """What a graphics processor calls a warp: one stream of instructions for all lanes (lockstep.py)."""
    return replace(complete(lanes), name=f"warp({lanes})", lockstep=True)


def _count(p: int) -> int:
    if isinstance(p, bool) or not isinstance(p, int) or p < 1:
        raise InputError(f"a machine of {p!r} processors; expected a whole number from 1 up.")
    return p


def _fits(processors: int, links: int = 0) -> int:
    """The processors, or an error where they would take minutes and gigabytes only to be there."""
    if processors > PROCESSORS or links > LINKS:
        also = f" with {links:,} links" if links else ""
        most = f"{PROCESSORS:,} processors" + (f" and {LINKS:,} links" if links else "")
        raise InputError(
            f"a machine of {processors:,} processors{also} is too large to lay anything out; at most {most}."
        )
    return processors


LAYOUTS: dict[str, Callable[..., Topology]] = {
    "single": single,
    "complete": complete,
    "pipeline": pipeline,
    "mesh": mesh,
    "triangle": triangle,
    "cone": cone,
    "hypercube": hypercube,
    "bus": bus,
    "warp": warp,
}


def ideal(topology: Topology) -> Machine:
    """Messages cost nothing; an addition or a multiplication is one step, and so is a shuffle of a warp."""
    return Machine(topology.name, topology, start=1.0 if topology.lockstep else 0.0)


def transputer_t800(topology: Topology) -> Machine:
    """T800 transputers as Wong measured them; their links work beside the processor."""
    return Machine(f"T800 {topology.name}", topology, T800, start=5.0, word=7.0 / 3.0, unit="us")


KINDS: dict[str, Callable[[Topology], Machine]] = {
    "ideal": ideal,
    "t800": transputer_t800,
    "hidden": lambda t: transputer_t800(t).with_costs(name=f"{t.name}, messages hidden", start=0.0, word=0.0),
    "explicit": lambda t: transputer_t800(t).with_costs(overlapped=False),
}
ALSO = {"transputer_t800": "t800"}  # other names of them


def machine(text: str, kind: str = "ideal") -> Machine:
    """By its name: "single", "complete:4", "mesh:2,3", "triangle:4"."""
    name, _, numbers = text.partition(":")
    if name not in LAYOUTS:
        raise InputError(unknown("machine", name, LAYOUTS))
    wanted = [x.name for x in inspect.signature(LAYOUTS[name]).parameters.values() if x.kind != x.KEYWORD_ONLY]
    sizes = [x.strip() for x in numbers.split(",")] if numbers.strip() else []
    if len(sizes) != len(wanted) or not all(x.isdecimal() for x in sizes):
        how = f"{name}:{','.join(wanted)} with whole numbers" if wanted else f"{name} without numbers"
        raise InputError(f"machine {shown(text)}: expected {how}.")
    if any(len(x) > 9 for x in sizes):  # which need not be read to be too many, and which Python may not read
        raise InputError(f"machine {shown(text)} is too large to lay anything out; at most {PROCESSORS:,} processors.")
    return made(LAYOUTS[name](*map(int, sizes)), kind)


def made(topology: Topology, kind: str) -> Machine:
    kind = ALSO.get(kind, kind)
    if kind not in KINDS:
        raise InputError(unknown("kind of machine", kind, KINDS))
    return KINDS[kind](topology)
