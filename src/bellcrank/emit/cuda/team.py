"""One state computed by several threads: members of a team, each in a warp of its own, that meet at barriers.

A mechanism with many branches has more live values than a thread has registers, and shared memory holds the spilled
ones for few states only. So branches go to different members, by the same division as on the cores of a CPU
(partitioning.py). Values that one member computes and another uses go through a mailbox in shared memory, with a
barrier between write and read.

Members are warps and not lanes of one warp, because lanes execute the same instruction at the same time: they could
share a state only where branches are identical operation by operation, and those of real robots are not (1552 of Talos'
6645 nodes have a counterpart of the same form on the other side, though it has two legs and two arms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.cuda.register_pressure import hoist_loads, live_counts
from bellcrank.emit.cuda.thread_code import BARRIER, SpillPlan, Unit, Units, plan_spills
from bellcrank.graph import Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Machine, Schedule
from bellcrank.scheduling.coarsening import fine_tasks, leading_labels
from bellcrank.scheduling.list_scheduling import fixed_order_schedule
from bellcrank.scheduling.machines import complete
from bellcrank.scheduling.partitioning import by_branch
from bellcrank.scheduling.task import tasks_from_groups

INSTRUCTION_COSTS = {"sin": 30.0, "cos": 30.0, "div": 10.0, "sqrt": 20.0}  # instructions; anything else is about one
BARRIER_COST = 40.0  # instructions that a barrier costs each member
MAX_PROPOSALS = 2  # divisions that are planned in detail


def work(unit: Unit) -> float:
    """Return the instructions of `unit`, or the cost of a barrier."""
    return INSTRUCTION_COSTS.get(unit.defines[0].op, 1.0) if unit.defines else BARRIER_COST


@dataclass(frozen=True, eq=False)
class Team:
    """One instruction stream per member."""

    streams: Sequence[Sequence[Unit]]  # units of each member

    def __len__(self) -> int:
        return len(self.streams)

    @cached_property
    def _phases(self) -> list[dict[int, int]]:
        """For each member, the number of barriers before each value that it computes."""
        phases = []
        for stream in self.streams:
            barriers, phase_of = 0, {}
            for unit in stream:
                barriers += unit is BARRIER
                phase_of.update({n.serial: barriers for n in unit.defines if n.op != "input"})
            phases.append(phase_of)
        return phases

    @cached_property
    def max_live(self) -> list[int]:
        """Maximum number of live values of each member."""
        return [max(live_counts(stream), default=0) for stream in self.streams]

    @cached_property
    def _spill_plans(self) -> dict[tuple[int, int], SpillPlan]:
        return {}

    def spill_plan(self, member: int, register_limit: int) -> SpillPlan:
        """Return the spill plan of a `member` with `register_limit` registers, from a cache.

        Plans for one team differ by the room of a member at most, and often not even by that.
        """
        plans = self._spill_plans
        if (member, register_limit) not in plans:
            plans[member, register_limit] = plan_spills(self.streams[member], register_limit, self.foreign(member))
        return plans[member, register_limit]

    @cached_property
    def _foreign(self) -> list[set[int]]:
        pairs = zip(self.streams, self._phases, strict=True)
        return [
            {n.serial for unit in s for n in unit.uses if n.op != "input"} - own_phases.keys()
            for s, own_phases in pairs
        ]

    def foreign(self, member: int) -> set[int]:
        """Return the values that `member` uses and another member computes."""
        return self._foreign[member]

    @cached_property
    def mailbox(self) -> Mapping[int, int]:
        """Row in the mailbox of every value that is sent.

        A row is used again only after a barrier between its last reader and its next writer.
        """
        phase_of = {serial: phase for phases in self._phases for serial, phase in phases.items()}
        last: dict[int, int] = {}
        for member, stream in enumerate(self.streams):
            foreign, barriers = self.foreign(member), 0
            for unit in stream:
                barriers += unit is BARRIER
                last.update({n.serial: max(barriers, last.get(n.serial, 0)) for n in unit.uses if n.serial in foreign})
        free: list[int] = []
        busy: list[tuple[int, int]] = []  # until which phase, which row
        rows: dict[int, int] = {}
        for serial in sorted(last, key=lambda s: (phase_of[s], s)):
            free += [row for until, row in busy if until < phase_of[serial]]
            busy = [pair for pair in busy if pair[0] >= phase_of[serial]]
            rows[serial] = free.pop() if free else len(set(rows.values()))
            busy.append((last[serial], rows[serial]))
        return rows

    @property
    def barriers(self) -> int:
        """Number of barriers."""
        return sum(unit is BARRIER for unit in self.streams[0])

    @cached_property
    def mailbox_rows(self) -> int:
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
                if unit is BARRIER:
                    span.append(0.0)
                span[-1] += work(unit)
        longest = sum((max(phase) for phase in zip(*spans, strict=True)), 0.0)
        return sum((sum(span) for span in spans), 0.0) / (len(self) * longest) if longest else 1.0


def single_thread_team(sequence: Sequence[Unit], distance: int) -> Team:
    """Return a team of one thread for `sequence`, with inputs read up to `distance` units early."""
    return Team([hoist_loads(sequence, distance)])


class _Weights(dict[str, float]):
    """Cost of operations, one by default."""

    def __missing__(self, op: str) -> float:
        return INSTRUCTION_COSTS.get(op, 1.0)


class TeamDivision:
    """Division of a sequence of units among members, on integer indices because dozens of variants are compared."""

    def __init__(self, units: Units, sequence: Sequence[Unit]) -> None:
        self.sequence, self.tasks = sequence, fine_tasks(units.graph, {})
        task_of = {n.serial: k for k, task in enumerate(self.tasks) for n in task.nodes}
        self.task = task_of_unit = [task_of[unit.serial] for unit in sequence]
        place = {serial: i for i, unit in enumerate(sequence) for serial in unit.defined_serials}  # inputs have none
        reads = ([place[serial] for serial in unit.used_serials if serial in place] for unit in sequence)
        # A task is never divided, so its own values never need a barrier.
        self.predecessors = [
            [j for j in row if task_of_unit[j] != k] for row, k in zip(reads, task_of_unit, strict=True)
        ]
        self.work = [work(unit) for unit in sequence]

    def teams(self, members: int, distance: int) -> list[Team]:
        """Return the best teams of `members` members, each in the order of the sequence.

        `distance` is the number of units by which reads of inputs are hoisted.
        """
        homes = sorted(self._assignments(members), key=lambda home: self.estimate_cost(home, members))
        return [self.build_team(home, members, distance) for home in homes[:MAX_PROPOSALS]]

    def _assignments(self, members: int) -> Iterator[list[int]]:
        """Yield assignments of units to members: branches of the mechanism to members, in several ways."""
        weights = [task.work(_Weights()) for task in self.tasks]
        for assignment in dict.fromkeys(tuple(assignment) for assignment in by_branch(self.tasks, weights, members)):
            yield [assignment[k] for k in self.task]

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
        phases: list[int] = []
        barriers = [0] * members
        for p, predecessors in zip(home, self.predecessors, strict=True):
            phase = barriers[p]
            for j in predecessors:
                if phases[j] >= phase and home[j] != p:
                    phase = phases[j] + 1
            barriers[p] = phase
            phases.append(phase)
        return phases

    def estimate_cost(self, home: Sequence[int], members: int) -> float:
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
        spans = [[BARRIER_COST] * members for _ in range(max(phases, default=-1) + 1)]
        for phase, p, time in zip(phases, home, self.work, strict=True):
            spans[phase][p] += time
        return sum((max(span) for span in spans), 0.0)

    def build_team(self, home: Sequence[int], members: int, distance: int) -> Team:
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
        barriers = [0] * members
        for unit, p, phase in zip(self.sequence, home, self.phases(home, members), strict=True):
            streams[p] += [BARRIER] * (phase - barriers[p])
            barriers[p] = phase
            streams[p].append(unit)
        for p, stream in enumerate(streams):
            stream += [BARRIER] * (max(barriers) - barriers[p])
        return Team([hoist_loads(stream, distance) for stream in streams])


def team_schedule(name: str, units: Units, team: Team) -> Schedule:
    """Return the plan of a `team` for the `units` of a graph as a Schedule, for inspection.

    The work of a member between two barriers is a task; `name` is that of the schedule.
    """
    tasks: dict[tuple[int, int], dict[int, Node]] = {}
    for member, stream in enumerate(team.streams):
        barriers = 0
        for unit in stream:
            barriers += unit is BARRIER
            stack = [n for n in unit.defines if n.op != "input"]
            while stack:  # fused nodes are computed with their unit
                n = stack.pop()
                tasks.setdefault((barriers, member), {})[n.serial] = n
                stack += [a for a in n.operands if a.serial in units.inlined]
    keys = sorted(tasks)
    groups = [[tasks[key][serial] for serial in sorted(tasks[key])] for key in keys]
    cost = {op: INSTRUCTION_COSTS.get(op, 0.0 if op == "neg" else 1.0) for op in OPS}
    labels = [leading_labels((n.label, cost[n.op]) for n in group) for group in groups]
    todo = tasks_from_groups(name, "team", groups, labels, units.graph)
    machine = Machine(f"gpu({len(team)})", complete(len(team)), cost, BARRIER_COST, 1.0, unit="instructions")
    return fixed_order_schedule(todo, machine, [member for _, member in keys])
