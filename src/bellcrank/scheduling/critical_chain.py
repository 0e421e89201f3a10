"""Critical chain of a schedule: the tasks and messages that determine the makespan, found backwards from its end.

A task waits for the values it needs, computed locally or brought by a message, and for its processor. A message waits
for the task whose values it carries, for the channel of each hop, and, if sending keeps processors busy, for these. In
a warp everything waits for the step before. So the chain goes through tasks and hops, each of which begins when the one
before ends, from time 0 to the makespan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bellcrank.scheduling.machines import busy_ends

if TYPE_CHECKING:
    from bellcrank.scheduling.timetable import Schedule


@dataclass(frozen=True)
class Link:
    """One element of the chain: a task, or a hop of a message."""

    task: int  # the task, or the sender of the message
    start: float
    finish: float
    message: int = -1  # index of the message, for a hop
    hop: int = -1


Resource = tuple[str, int, int]  # a processor, a channel, or all lanes
ALL_LANES: Resource = ("lanes", 0, 0)


def chain(s: Schedule) -> list[Link]:
    """Return the critical chain of schedule `s`, the first element first."""
    if not s.finish:
        return []
    waiting = _Waiting(s)
    last = max(waiting.tasks, key=lambda link: (link.finish, link.start, link.task))
    # Elements without duration may lead to a dead end: then the next best cause is followed.
    path, causes, seen = [last], [waiting.causes(last)], {last}
    while path[-1].start > 0.0:
        cause = next((link for link in causes[-1] if link not in seen), None)
        if cause is not None:
            seen.add(cause)
            path.append(cause)
            causes.append(waiting.causes(cause))
            continue
        path.pop()
        causes.pop()
        if not path:  # a schedule with unexplained waiting, such as one edited manually
            return [last]
    return path[::-1]


class _Waiting:
    def __init__(self, s: Schedule) -> None:
        self.s = s
        times = enumerate(zip(s.start, s.finish, strict=True))
        self.tasks = [Link(i, a, b) for i, (a, b) in times]
        self.hops = [[Link(m.task, h.start, h.finish, k, n) for n, h in enumerate(m.hops)]
                     for k, m in enumerate(s.messages)]  # fmt: skip
        self.message_of = {(m.task, m.target): k for k, m in enumerate(s.messages)}
        self.ends: dict[tuple[Resource, float], list[Link]] = {}
        for link in (*self.tasks, *(hop for hops in self.hops for hop in hops)):
            for resource in self._resources(link):
                self.ends.setdefault((resource, link.finish), []).append(link)

    def _resources(self, link: Link) -> list[Resource]:
        machine = self.s.machine
        if machine.topology.lockstep:
            return [ALL_LANES]
        if link.message < 0:
            return [("processor", self.s.where[link.task], 0)]
        message = self.s.messages[link.message]
        channel = message.hops[link.hop].channel
        ends = busy_ends(machine, channel, message.source, message.target)
        return [("channel", *machine.topology.medium(channel)), *(("processor", p, 0) for p in ends)]

    def causes(self, link: Link) -> Iterator[Link]:
        """Yield the elements that ended when this one began and had to: values it needs first, then resource users."""
        for cause in self._needs(link):
            if cause.finish == link.start:
                yield cause
        waiting = [x for r in self._resources(link) for x in self.ends.get((r, link.start), ())]
        yield from sorted(waiting, key=lambda x: (x.start == x.finish, x.task, x.message, x.hop))

    def _needs(self, link: Link) -> Iterator[Link]:
        if link.hop > 0:
            yield self.hops[link.message][link.hop - 1]
        elif link.hop == 0:
            yield self.tasks[link.task]
        else:
            processor = self.s.where[link.task]
            for j in self.s.tasks[link.task].needs:
                k = self.message_of.get((j, processor), -1)
                yield self.tasks[j] if k < 0 or self.s.where[j] == processor else self.hops[k][-1]
