"""What a person may change while it runs, beside levers and settings: soil, parameters, and the job to be done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bellcrank.cockpit import messages
from bellcrank.cockpit.messages import Soil, Tune
from bellcrank.errors import InputError, unknown
from bellcrank.ground.soils import SOILS, soil_named
from bellcrank.ground.tasks import TASKS, Task

if TYPE_CHECKING:
    from bellcrank.cockpit.session import Session


class Site:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.task: Task | None = None
        self._score, self._looks = 0.0, 0

    def obey(self, message: Tune | Soil | messages.Task) -> None:
        """What a page asks for."""
        match message:
            case Tune():
                self.turn(message.name, message.value)
            case Soil():
                self.become(message.name)
            case _:
                self.take(message.name)

    def turn(self, name: str, value: float) -> None:
        """A parameter of the machine, within its bounds."""
        tunes = {x.name: x for x in self.session.machine.tunes}
        if name not in tunes:
            raise InputError(unknown("parameter of this machine", name, tunes))
        x = tunes[name]
        if not x.low <= value <= x.high:
            raise InputError(f"{x.label}: {value:g} {x.unit}; expected {x.low:g} to {x.high:g}.")
        self.session.tune({name: value})

    def become(self, name: str) -> None:
        if self.session.ground is None:
            raise InputError("there is no ground that is dug.")
        self.session.ground.become(soil_named(name))

    def take(self, name: str) -> None:
        """A job; its score begins with the ground as it is."""
        if name and name not in TASKS:
            raise InputError(unknown("task", name, TASKS))
        self.task = TASKS[name]() if name else None
        self._looks = 0

    @property
    def score(self) -> float:
        """Twice a second; whole, so that it is told when it has changed."""
        ground = self.session.ground
        if self.task is None or ground is None:
            return 0.0
        if self._looks % 30 == 0:
            self._score = float(math.floor(self.task.score(ground)))
        self._looks += 1
        return self._score

    def offered(self) -> dict[str, Any]:
        """For a page that has just come."""
        m, nominal = self.session.machine, self.session.machine.system.parameters
        ground = self.session.ground is not None
        tunes = [vars(x) | {"first": nominal[x.name]} for x in m.tunes]
        return {"tunes": tunes, "soils": list(SOILS) if ground else [], "tasks": list(TASKS) if ground else []}

    def now(self) -> dict[str, Any]:
        s, nominal = self.session, self.session.machine.system.parameters
        place = None if self.task is None else [*self.task.low, *self.task.high]
        task = {"name": self.task.name if self.task else "", "place": place, "score": self.score}
        tuned = {x.name: s.tuned.get(x.name, nominal[x.name]) for x in s.machine.tunes}
        return {"soil": s.ground.soil.name if s.ground else "", "task": task, "tuned": tuned}
