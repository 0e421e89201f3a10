"""Changes to a running drive other than levers and settings: soil, parameters of the machine, and tasks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bellcrank.errors import InputError, check_known
from bellcrank.ground.field import TASKS, DigTask
from bellcrank.ground.soils import SOILS, soil_named

if TYPE_CHECKING:
    from bellcrank.cockpit.session import Session


class Site:
    """Soil, parameters and task of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.task: DigTask | None = None
        self._score, self._score_calls = 0.0, 0

    def set_parameter(self, name: str, value: float) -> None:
        """Set the parameter `name` of the machine to `value`, which must lie within its bounds."""
        tunes = {x.name: x for x in self.session.machine.tunes}
        check_known("parameter of this machine", name, tunes)
        x = tunes[name]
        if not x.low <= value <= x.high:
            raise InputError(f"{x.label}: {value:g} {x.unit}; expected {x.low:g} to {x.high:g}.")
        self.session.tune({name: value})

    def set_soil(self, name: str) -> None:
        """Change the ground to the soil `name`."""
        if self.session.ground is None:
            raise InputError("this machine has no ground to dig.")
        self.session.ground.set_soil(soil_named(name))

    def set_task(self, name: str) -> None:
        """Start the task `name`, or end the task if empty; its score refers to the present ground."""
        if name:
            check_known("task", name, TASKS)
        self.task = TASKS[name]() if name else None
        self._score_calls = 0

    @property
    def score(self) -> float:
        """Score of the task, computed twice a second and rounded down, so that few messages are sent."""
        ground = self.session.ground
        if self.task is None or ground is None:
            return 0.0
        if self._score_calls % 30 == 0:
            self._score = float(math.floor(self.task.score(ground)))
        self._score_calls += 1
        return self._score

    def choices(self) -> dict[str, Any]:
        """Return the parameters, soils and tasks that a new page offers."""
        m, nominal = self.session.machine, self.session.machine.system.parameters
        ground = self.session.ground is not None
        tunes = [vars(x) | {"first": nominal[x.name]} for x in m.tunes]
        return {"tunes": tunes, "soils": list(SOILS) if ground else [], "tasks": list(TASKS) if ground else []}

    def current_state(self) -> dict[str, Any]:
        """Return the present soil, task and parameters."""
        s, nominal = self.session, self.session.machine.system.parameters
        place = None if self.task is None else [*self.task.low, *self.task.high]
        task = {"name": self.task.name if self.task else "", "place": place, "score": self.score}
        tuned = {x.name: s.tuned.get(x.name, nominal[x.name]) for x in s.machine.tunes}
        return {"soil": s.ground.soil.name if s.ground else "", "task": task, "tuned": tuned}
