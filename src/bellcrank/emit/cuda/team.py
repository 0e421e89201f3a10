"""One state computed by several threads: members of a team, each in a warp of its own, that meet at barriers.

A mechanism with many limbs has more live values than a thread has registers, and shared memory holds the spilled ones
for few states only. So limbs go to different members, by the same division as on the cores of a CPU (divide.py). Values
that one member computes and another uses go through a mailbox in shared memory, with a barrier between write and read.

Members are warps and not lanes of one warp, because lanes execute the same instruction at the same time: they could
share a state only where limbs are identical operation by operation, and those of real robots are not (1552 of Talos'
6645 nodes have a counterpart of the same form on the other side, though it has two legs and two arms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.cuda.few import live
from bellcrank.emit.cuda.loads import ahead
from bellcrank.emit.cuda.park import Parking, parked
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.scheduling.coarse import fine
from bellcrank.scheduling.divide import by_branch

MEET = Unit((), ())  # barrier of all members
COSTS = {"sin": 30.0, "cos": 30.0, "div": 10.0, "sqrt": 20.0}  # instructions; anything else is about one
MEETING = 40.0  # instructions that a barrier costs each member
PROPOSALS = 2  # divisions that are planned in detail


def work(unit: Unit) -> float:
    """Return the instructions of `unit`, or the cost of a barrier."""
    return COSTS.get(unit.defines[0].op, 1.0) if unit.defines else MEETING


@dataclass(frozen=True, eq=False)
class Team:
    """One instruction stream per member."""

    streams: Sequence[Sequence[Unit]]  # units of each member

    def __len__(self) -> int:
        return len(self.streams)

    @cached_property
    def _phases(self) -> list[dict[int, int]]:
        """For each member, the number of barriers before each value that it computes."""
        found = []
        for stream in self.streams:
            met, made = 0, {}
            for unit in stream:
                met += unit is MEET
                made.update({n.serial: met for n in unit.defines if n.op != "input"})
            found.append(made)
        return found

    @cached_property
    def alive(self) -> list[int]:
        """Maximum number of live values of each member."""
        return [max(live(stream), default=0) for stream in self.streams]

    @cached_property
    def _parkings(self) -> dict[tuple[int, int], Parking]:
        return {}

    def parking(self, member: int, room: int) -> Parking:
        """Return the spill plan of a `member` with `room` registers, from a cache.

        Plans for one team differ by the room of a member at most, and often not even by that.
        """
        known = self._parkings
        if (member, room) not in known:
            known[member, room] = parked(self.streams[member], room, self.foreign(member))
        return known[member, room]

    @cached_property
    def _foreign(self) -> list[set[int]]:
        pairs = zip(self.streams, self._phases, strict=True)
        return [{n.serial for unit in s for n in unit.uses if n.op != "input"} - mine.keys() for s, mine in pairs]

    def foreign(self, member: int) -> set[int]:
        """Return the values that `member` uses and another member computes."""
        return self._foreign[member]

    @cached_property
    def mailbox(self) -> Mapping[int, int]:
        """Row in the mailbox of every value that is sent.

        A row is used again only after a barrier between its last reader and its next writer.
        """
        made = {serial: phase for phases in self._phases for serial, phase in phases.items()}
        last: dict[int, int] = {}
        for member, stream in enumerate(self.streams):
            foreign, met = self.foreign(member), 0
            for unit in stream:
                met += unit is MEET
                last.update({n.serial: max(met, last.get(n.serial, 0)) for n in unit.uses if n.serial in foreign})
        free: list[int] = []
        busy: list[tuple[int, int]] = []  # until which phase, which row
        rows: dict[int, int] = {}
        for serial in sorted(last, key=lambda s: (made[s], s)):
            free += [row for until, row in busy if until < made[serial]]
            busy = [pair for pair in busy if pair[0] >= made[serial]]
            rows[serial] = free.pop() if free else len(set(rows.values()))
            busy.append((last[serial], rows[serial]))
        return rows

    @property
    def meetings(self) -> int:
        """Number of barriers."""
        return sum(unit is MEET for unit in self.streams[0])

    @cached_property
    def rows(self) -> int:
        """Rows of the mailbox."""
        return len(set(self.mailbox.values()))

    @cached_property
    def work(self) -> float:
        """Instructions of all members, without stalls; at least one."""
        traffic = sum(len(self.foreign(member)) for member in range(len(self))) + len(self.mailbox)
        return max(1.0, sum(work(unit) for stream in self.streams for unit in stream) + traffic)

    @cached_property
    def balance(self) -> float:
        """Share of the time that members work, if each waits for the slowest at every barrier."""
        spans = [[0.0] for _ in self.streams]
        for span, stream in zip(spans, self.streams, strict=True):
            for unit in stream:
                if unit is MEET:
                    span.append(0.0)
                span[-1] += work(unit)
        longest = sum((max(phase) for phase in zip(*spans, strict=True)), 0.0)
        return sum((sum(span) for span in spans), 0.0) / (len(self) * longest) if longest else 1.0


def alone(sequence: Sequence[Unit], distance: int) -> Team:
    """Return a team of one thread for `sequence`, with inputs read up to `distance` units early."""
    return Team([ahead(sequence, distance)])


class _Weights(dict[str, float]):
    """Cost of operations, one by default."""

    def __missing__(self, op: str) -> float:
        return COSTS.get(op, 1.0)


class Division:
    """Division of a sequence of units among members, on integer indices because dozens of variants are compared."""

    def __init__(self, units: Units, sequence: Sequence[Unit]) -> None:
        self.sequence, self.tasks = sequence, fine(units.graph, {})
        task_of = {n.serial: k for k, task in enumerate(self.tasks) for n in task.nodes}
        self.task = mine = [task_of[unit.serial] for unit in sequence]
        place = {serial: i for i, unit in enumerate(sequence) for serial in unit.makes}  # inputs have none
        reads = ([place[serial] for serial in unit.reads if serial in place] for unit in sequence)
        # A task is never divided, so its own values never need a barrier.
        self.before = [[j for j in row if mine[j] != k] for row, k in zip(reads, mine, strict=True)]
        self.work = [work(unit) for unit in sequence]

    def teams(self, members: int, distance: int) -> list[Team]:
        """Return the best teams of so many `members`, each member in the order of the sequence.

        `distance` is the number of units by which reads of inputs are hoisted.
        """
        homes = sorted(self._homes(members), key=lambda home: self.price(home, members))
        return [self.divided(home, members, distance) for home in homes[:PROPOSALS]]

    def _homes(self, members: int) -> Iterator[list[int]]:
        """Yield assignments of units to members: branches of the mechanism to members, in several ways."""
        weights = [task.work(_Weights()) for task in self.tasks]
        for where in dict.fromkeys(tuple(where) for where in by_branch(self.tasks, weights, members)):
            yield [where[k] for k in self.task]

    def phases(self, home: Sequence[int], members: int) -> list[int]:
        """Return the number of barriers that precede each unit.

        A member meets the others whenever a unit uses values that they have computed since the last barrier.

        Parameters
        ----------
        home
            Member of each unit.
        members
            Number of members.
        """
        found: list[int] = []
        met = [0] * members
        for p, before in zip(home, self.before, strict=True):
            now = met[p]
            for j in before:
                if found[j] >= now and home[j] != p:
                    now = found[j] + 1
            met[p] = now
            found.append(now)
        return found

    def price(self, home: Sequence[int], members: int) -> float:
        """Return an estimate of Team.work / Team.balance, without building the streams.

        Every phase lasts as long as its slowest member.

        Parameters
        ----------
        home
            Member of each unit.
        members
            Number of members.
        """
        phases = self.phases(home, members)
        spans = [[MEETING] * members for _ in range(max(phases, default=-1) + 1)]
        for phase, p, time in zip(phases, home, self.work, strict=True):
            spans[phase][p] += time
        return sum((max(span) for span in spans), 0.0)

    def divided(self, home: Sequence[int], members: int, distance: int) -> Team:
        """Return the team for an assignment of units.

        Parameters
        ----------
        home
            Member of each unit.
        members
            Number of members.
        distance
            Units by which reads of inputs are hoisted.
        """
        streams: list[list[Unit]] = [[] for _ in range(members)]
        met = [0] * members
        for unit, p, phase in zip(self.sequence, home, self.phases(home, members), strict=True):
            streams[p] += [MEET] * (phase - met[p])
            met[p] = phase
            streams[p].append(unit)
        for p, stream in enumerate(streams):
            stream += [MEET] * (max(met) - met[p])
        return Team([ahead(stream, distance) for stream in streams])
