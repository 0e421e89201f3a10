"""A simulated machine that executes the programs of a schedule with numbers, and the timetable that is observed on it.

Every processor has a memory of its own and executes its steps in order; a task takes the time of its operations. A
message occupies the channels of its route, one after the other. Nothing happens at the times of the timetable: a step
begins when the steps and messages that it waits for are complete.

The observed timetable equals the planned one, to the last bit, if the machine is the same and every channel carries its
messages in the planned order. On a machine with other costs, or with channels that carry the message that is ready
first, messages wait for channels at other times, and the two differ.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from bellcrank.graph import Node
from bellcrank.graph.interpreter import Array
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling.machines import Channel, Machine
from bellcrank.scheduling.processor_programs import ProcessorPrograms
from bellcrank.scheduling.program_steps import Compute, Receive, Send
from bellcrank.scheduling.timetable import Hop, Message, Schedule, ScheduleError


@dataclass(eq=False)
class _Activity:
    """A task, or a message on one channel: when it takes place, and what waits for it."""

    duration: float
    begin: Callable[[], Any]  # takes what it needs
    end: Callable[[Any], None]  # delivers what it made
    channel: Channel | None = None
    missing: int = 0  # activities that it still waits for
    followers: list[_Activity] = field(default_factory=list)
    start: float = math.nan
    made: Any = None

    @property
    def finish(self) -> float:
        return self.start + self.duration

    def wait_for(self, others: Sequence[_Activity]) -> None:
        for other in others:
            other.followers.append(self)
        self.missing += len(others)


class EventMachine:
    """Processors with memories of their own, and the channels between them."""

    def __init__(self, programs: ProcessorPrograms, machine: Machine, links: str, inputs: Mapping[str, Array]) -> None:
        """Prepare to execute `programs` on a `machine` with its order of `links`, with the `inputs` by name."""
        self.programs, self.schedule, self.machine, self.inputs = programs, programs.schedule, machine, inputs
        self.fifo = links == "fifo"
        owned = programs.owned_inputs
        self.memories: list[dict[int, Any]] = [{} for _ in range(machine.processors)]
        self.is_private = owned.keys()
        for name, shape in programs.graph.inputs.items():
            for x in programs.graph.tape.inputs(name, shape).flat if owned else ():
                if x.serial in owned:
                    self.memories[owned[x.serial]][x.serial] = self._input(x)
        self.tasks = [self._task(i) for i in range(len(self.schedule.tasks))]
        self.hops = [self._message(k) for k in range(len(self.schedule.messages))]
        for p in range(machine.processors):
            self._order_steps(p)
        self._order_channels()
        self.barriers: list[_Activity] = []
        if machine.topology.lockstep:
            self._order_lanes()
        self.queues: dict[Channel, deque[_Activity]] = {}
        self.busy: set[Channel] = set()

    # -- activities

    def _input(self, x: Node) -> Any:
        name, flat = x.args
        return self.inputs[name][..., flat]

    def _value(self, p: int, x: Node, own: Mapping[int, Any]) -> Any:
        """Return the value of a node in the memory of processor p."""
        if x.serial in own:
            return own[x.serial]
        if x.serial in self.memories[p]:
            return self.memories[p][x.serial]
        if x.op == "input" and x.serial not in self.is_private:
            return self._input(x)
        raise ScheduleError(f"processor {p} has no value of {x.op} {x.label}: a message did not arrive in time.")

    def _task(self, i: int) -> _Activity:
        task, p = self.schedule.tasks[i], self.schedule.where[i]

        def begin() -> dict[int, Any]:
            own: dict[int, Any] = {}
            for n in task.nodes:
                own[n.serial] = self._operation(p, n, own)
            return own

        return _Activity(task.work(self.machine.cost), begin, self.memories[p].update)

    def _operation(self, p: int, n: Node, own: Mapping[int, Any]) -> Any:
        args = [self._value(p, a, own) if isinstance(a, Node) else a for a in n.args]
        if n.op == "call":
            return n.args[0].flat(args[1:])
        return args[0][args[1]] if n.op == "result" else OPS[n.op].value(*args)

    def _message(self, k: int) -> list[_Activity]:
        """Return the activities of a message, one for each channel of its route."""
        m, values = self.schedule.messages[k], self.programs.values[k]
        length, carried = self.machine.message(m.words), dict[int, Any]()

        def leave() -> None:
            carried.update({x.serial: self._value(m.source, x, {}) for x in values})

        def arrive(_: Any) -> None:
            self.memories[m.target].update(carried)

        last, medium = len(m.hops) - 1, self.schedule.machine.topology.medium
        hops = [
            _Activity(
                length, leave if n == 0 else _nothing, arrive if n == last else _nothing_with, medium(hop.channel)
            )
            for n, hop in enumerate(m.hops)
        ]
        for before, after in pairwise(hops):
            after.wait_for([before])
        return hops

    # -- what waits for what

    def _order_steps(self, p: int) -> None:
        """Let every step of processor p wait for the steps before it, and for the messages that it receives."""
        latest: list[_Activity] = []  # the last step that takes time, and those without duration after it
        earlier: list[_Activity] = []  # what that step waited for
        arrivals: list[_Activity] = []
        for step in self.programs.steps[p]:
            if isinstance(step, Send) and not self.programs.meets(step.message):
                self.hops[step.message][0].wait_for([self.tasks[self.schedule.messages[step.message].task]])
                continue
            if isinstance(step, Receive) and not self.programs.meets(step.message):
                arrivals.append(self.hops[step.message][-1])
                continue
            if isinstance(step, Compute):
                activity, timed = self.tasks[step.task], self._takes_time(step.task)
                during = step.during
                activity.wait_for(arrivals)
                arrivals = []
            else:
                activity, timed, during = self.hops[step.message][step.hop], True, False
            if isinstance(step, Send) and step.hop == 0:
                activity.wait_for([self.tasks[self.schedule.messages[step.message].task]])
            activity.wait_for([*earlier, *latest[1:]] if during else latest)
            if timed:
                earlier, latest = latest, [activity]
            else:
                latest = [*latest, activity]

    def _takes_time(self, i: int) -> bool:
        return self.schedule.finish[i] > self.schedule.start[i]

    def _order_channels(self) -> None:
        """Let a message wait for the one before it on a channel, in the order of the timetable."""
        rows: dict[Channel, list[tuple[float, float, int, int]]] = {}
        for k, m in enumerate(self.schedule.messages):
            for n, hop in enumerate(m.hops):
                if self.hops[k][n].duration:
                    medium = self.schedule.machine.topology.medium(hop.channel)
                    rows.setdefault(medium, []).append((hop.start, hop.finish, k, n))
        for row in () if self.fifo else rows.values():
            row.sort()
            for (_, _, k, n), (_, _, l, o) in pairwise(row):
                self.hops[l][o].wait_for([self.hops[k][n]])

    def _order_lanes(self) -> None:
        """Let all lanes wait for each other: a step of a warp begins when the step before it is complete."""
        s = self.schedule
        steps: dict[tuple[float, float], list[_Activity]] = {}
        for i, activity in enumerate(self.tasks):
            steps.setdefault((s.start[i], s.finish[i]), []).append(activity)
        for m, hops in zip(s.messages, self.hops, strict=True):
            steps.setdefault((m.start, m.arrival), []).extend(hops)
        before: list[_Activity] = []
        for key in sorted(steps):
            barrier = _Activity(0.0, _nothing, _nothing_with)
            barrier.wait_for(before)
            self.barriers.append(barrier)
            for activity in steps[key]:
                activity.wait_for([barrier])
            before = steps[key]

    # -- time

    def run(self) -> None:
        """Run until nothing is left to do."""
        activities = [*self.tasks, *self.barriers, *(hop for hops in self.hops for hop in hops)]
        ready = [a for a in activities if not a.missing]
        events: list[tuple[float, int, _Activity]] = []
        count, now = 0, 0.0
        while ready or events:
            for activity in ready:
                for begun in self._admitted(activity):
                    begun.start, begun.made = now, begun.begin()
                    count += 1
                    heappush(events, (begun.finish, count, begun))
            now, _, done = heappop(events)
            done.end(done.made)
            ready = self._released(done)
            for follower in done.followers:
                follower.missing -= 1
                if not follower.missing:
                    ready.append(follower)
        if any(math.isnan(a.start) for a in activities):
            raise ScheduleError(
                f"{self.schedule.tasks.name}: the processors wait for each other, and {now:g} {self.machine.unit} "
                "after the start nothing happens any more. The order of messages on a channel contradicts the programs."
            )

    def _admitted(self, activity: _Activity) -> list[_Activity]:
        """Return the activity if it may begin now; a message may have to wait for its channel."""
        if not self.fifo or activity.channel is None or not activity.duration:
            return [activity]
        if activity.channel in self.busy:
            self.queues.setdefault(activity.channel, deque()).append(activity)
            return []
        self.busy.add(activity.channel)
        return [activity]

    def _released(self, done: _Activity) -> list[_Activity]:
        """Return the next message of the channel that an activity has left."""
        if not self.fifo or done.channel is None or not done.duration:
            return []
        self.busy.discard(done.channel)
        queue = self.queues.get(done.channel)
        return [queue.popleft()] if queue else []

    # -- results

    def results(self) -> dict[str, Array]:
        """Return the outputs by name, from the memories of the processors that computed them."""
        batch = np.broadcast_shapes(*(a.shape[:-1] for a in self.inputs.values())) if self.inputs else ()
        outputs = {}
        for name, array in self.programs.graph.outputs.items():
            out = np.empty((*batch, array.size))
            for flat, x in enumerate(array.flat):
                out[..., flat] = self._result(x)
            outputs[name] = out.reshape((*batch, *array.shape))
        return outputs

    def _result(self, x: Any) -> Any:
        if not isinstance(x, Node):
            return x
        return self._input(x) if x.op == "input" else self.memories[self.programs.home[x.serial][1]][x.serial]

    def observed(self) -> Schedule:
        """Return the timetable with the times at which tasks and messages began and ended."""
        messages = tuple(
            Message(m.task, m.source, m.target, m.words,
                    tuple(Hop(hop.channel, a.start, a.finish) for hop, a in zip(m.hops, hops, strict=True)))
            for m, hops in zip(self.schedule.messages, self.hops, strict=True)
        )  # fmt: skip
        start, finish = tuple(a.start for a in self.tasks), tuple(a.finish for a in self.tasks)
        return replace(self.schedule, machine=self.machine, start=start, finish=finish, messages=messages)


def _nothing() -> None:
    pass


def _nothing_with(_: Any) -> None:
    pass
