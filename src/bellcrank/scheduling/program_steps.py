"""Steps of the program of a processor: compute a task, send a message, receive a message."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.scheduling.timetable import Schedule


@dataclass(frozen=True)
class Compute:
    """Compute a task; `during`: it takes no time, and does not wait for the longer task before it."""

    task: int
    during: bool = False


@dataclass(frozen=True)
class Send:
    """Send a message: index in the timetable, and the channel of its route (0 on the first processor)."""

    message: int
    hop: int = 0


@dataclass(frozen=True)
class Receive:
    """Receive a message: index in the timetable, and the channel of its route, from which it comes."""

    message: int
    hop: int


Step = Compute | Send | Receive


def meets(schedule: Schedule, message: int) -> bool:
    """Return true if a message of a `schedule` keeps both ends of its channels busy for some time.

    Parameters
    ----------
    schedule
        The schedule.
    message
        Index of the message.
    """
    machine = schedule.machine
    return not machine.overlapped and not machine.topology.lockstep and _takes_time(schedule, message)


def _takes_time(schedule: Schedule, message: int) -> bool:
    return any(hop.finish > hop.start for hop in schedule.messages[message].hops)
