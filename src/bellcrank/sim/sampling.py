"""Sampled controllers: functions that run at times of their own, hold what they gave until the next, and remember.

What a controller holds and remembers are elements of x that do not move by themselves: a tick leaves them alone, and
`renew` of the program, which is called only where a sample is due, sets them. So records, steppers, drives and GPUs
have them as they have every other state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bellcrank.actuators import StateVariable
from bellcrank.errors import InputError
from bellcrank.scalar import Scalar, fabs, floor, maximum, quantised, where
from bellcrank.sim.amounts import delay, duration, positive, whole
from bellcrank.sim.arguments import Named, number, unique
from bellcrank.sim.user_code import called, vector

if TYPE_CHECKING:
    from bellcrank.sim.systems import System


UNDER_WAY = 10_000  # samples; each of them is a state


@dataclass(frozen=True)
class Sampled:
    """A controller that samples: function(t, q, v, x, u) is called every so many seconds, and what it gives is held.

        Sampled(lambda t, q, v, x, u: {"elbow": -20.0 * q["elbow"]}, every=1e-3)         as a system's control
        Sampled(plan, every=0.02, outputs={"target": 0.0}, states={"count": 0.0})        one of several

    As the control of a system it gives the commands. As one of the list sampled=[...] it gives its outputs, whose
    values here hold until the first sample, and everybody finds them in x. With states it gives (outputs, next states).
    Where several are due at once they run in the order of the list, each with what those before it gave; the control
    comes last. delay: seconds from a sample until what it gave holds; more than a period is allowed. quantum: outputs
    are rounded to whole multiples of it. Periods and delays are whole numbers of steps, which are fixed.
    """

    function: Callable[..., Any]
    every: float
    outputs: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, float] = field(default_factory=dict)
    delay: float = 0.0
    quantum: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"Sampled: {self.function!r} is no function of (t, q, v, x, u).")
        duration("Sampled: every", self.every)
        if self.quantum is not None:
            positive("Sampled: quantum", self.quantum, "")
        delay("Sampled: delay", self.delay)
        for what, given in (("outputs", self.outputs), ("states", self.states)):
            if not isinstance(given, Mapping):
                raise InputError(f'Sampled: {what} is {given!r}; expected a mapping, {what}={{"target": 0.0}}.')
            unique(what.rstrip("s"), list(given))
            for name, x in given.items():
                number(f'Sampled: {what} "{name}"', x)
        if not self.delay / self.every <= UNDER_WAY:
            raise InputError(
                f"Sampled: delay is {self.delay:g} s, and so {self.delay / self.every:.3g} samples would be under way "
                f"at once; expected at most {UNDER_WAY}. Is it in seconds?"
            )

    @property
    def name(self) -> str:
        """What it is called in errors: its function's name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def waiting(self) -> int:
        """How many samples are under way at most."""
        return max(0, math.ceil(self.delay / self.every - 1e-9))

    @property
    def variables(self) -> tuple[StateVariable, ...]:
        """What it holds, what it remembers, and what is under way, the newest first."""
        held = [StateVariable(name, "", float(x)) for name, x in {**self.outputs, **self.states}.items()]
        coming = [(k, name, x) for k in range(1, self.waiting + 1) for name, x in self.outputs.items()]
        return (*held, *(StateVariable(f"{name}.coming{k}", "", float(x)) for k, name, x in coming))

    def result(self, s: System, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar]) -> tuple[list[Scalar], ...]:
        """Outputs and next states."""
        what = f"sampled controller ({self.name})"
        found, states = called(what, self.function, t, *s.split(y), Named("u", s.inputs, u)), []
        if self.states:
            if not isinstance(found, tuple) or len(found) != 2:
                raise InputError(
                    f"{what} has states ({', '.join(self.states)}) and returned {type(found).__name__}; expected the "
                    "pair (outputs, next states)."
                )
            found, states = found[0], vector(f"states of {what}", found[1], list(self.states))
        outputs = vector(what, found, list(self.outputs)) if self.outputs else []
        return [x if self.quantum is None else quantised(x, self.quantum) for x in outputs], states


def as_control(found: Sampled, commands: Sequence[str]) -> tuple[Sampled, Callable[..., Any]]:
    """A sampled controller that gives the commands themselves, and the control that hands them on."""
    if found.outputs:
        raise InputError(
            f"control ({found.name}) is sampled and has outputs of its own ({', '.join(found.outputs)}); as the "
            "control it gives the commands. Put it into sampled=[...], with a control that reads its outputs from x."
        )
    function, names = found.function, {f"{c}.held": 0.0 for c in commands}

    def give(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        given = function(t, q, v, x, u)
        outputs, states = given if found.states and isinstance(given, tuple) and len(given) == 2 else (given, None)
        held = vector(f"control ({found.name})", outputs, commands)
        return held if states is None else (held, states)

    give.__name__ = found.name
    made = Sampled(give, found.every, names, found.states, found.delay, found.quantum)

    def held(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> list[Scalar]:
        return [x[name] for name in names]

    held.__name__ = found.name
    return made, held


def clocks(s: System) -> tuple[tuple[float, float], ...]:
    """When anything is sampled or arrives: seconds between two times, and from the start to the first. Each once."""
    return tuple(dict.fromkeys((c.every, late) for c in s.sampled for late in dict.fromkeys((0.0, float(c.delay)))))


def first_phases(s: System, h: Scalar) -> list[Scalar]:
    """The phases before the first step.

    The phase of a clock counts the steps since its last time; before its first time it counts up to 0. It stays below
    the steps of one period, so that it is exact where the number of all steps would not be.
    """
    return [-_steps(late, h) if late else 0.0 for _, late in clocks(s)]


def next_phases(s: System, phases: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    """The phases a step later."""
    later = [phase + 1.0 for phase in phases]
    return [where(x >= _steps(every, h), 0.0, x) for x, (every, _) in zip(later, clocks(s), strict=True)]


def phases_at(s: System, n: Scalar, h: Scalar) -> list[Scalar]:
    """The phases after n steps of h, n being exact."""
    found: list[Scalar] = []
    for every, late in clocks(s):
        each, past = _steps(every, h), n - _steps(late, h)
        # A half: where it is whole, the quotient is rounded to it or below.
        turn = past - each * floor((past + 0.5) / each)
        found.append(where(past > -0.5, turn, past))
    return found


def any_due(phases: Sequence[Scalar]) -> Scalar:
    """1 in steps before which a sample is taken or arrives."""
    found: Scalar = 0.0
    for phase in phases:
        found = maximum(found, _due(phase))
    return found


def _due(phase: Scalar) -> Scalar:
    return where(fabs(phase) < 0.5, 1.0, 0.0)


def _steps(seconds: Scalar, h: Scalar) -> Scalar:
    return floor(seconds / h + 0.5) if seconds else 0.0


def taken(s: System, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar], phases: Sequence[Scalar]) -> list[Scalar]:
    """y after the samples of this moment."""
    y, phase = list(y), dict(zip(clocks(s), phases, strict=True))
    for c, at in _places(s):
        y[at : at + len(c.variables)] = _one(c, s, t, y, u, phase, at)
    return y


def _one(
    c: Sampled,
    s: System,
    t: Scalar,
    y: list[Scalar],
    u: Sequence[Scalar],
    phase: Mapping[tuple[float, float], Scalar],
    at: int,
) -> list[Scalar]:
    """What one controller holds, remembers and has under way."""
    width, remembered = len(c.outputs), len(c.states)
    new, states = c.result(s, t, y, u)
    now, behind = _due(phase[c.every, 0.0]) > 0.5, at + width + remembered
    held, memory = y[at : at + width], y[at + width : behind]
    queue = [y[behind + k * width : behind + (k + 1) * width] for k in range(c.waiting)]
    if c.waiting:  # what arrives now was taken a delay ago, and is the last in the queue before that moves on
        held = _picked(_due(phase[c.every, float(c.delay)]) > 0.5, queue[-1], held)
        queue = [_picked(now, a, b) for a, b in zip([new, *queue], queue, strict=False)]
    else:
        held = _picked(now, new, held)
    return [*held, *_picked(now, states, memory), *(x for some in queue for x in some)]


def _picked(condition: Scalar, new: Sequence[Scalar], old: Sequence[Scalar]) -> list[Scalar]:
    return [where(condition, a, b) for a, b in zip(new, old, strict=True)]


def _places(s: System) -> Iterator[tuple[Sampled, int]]:
    """Each controller, and where in y its own begins."""
    at = s.size - sum(len(c.variables) for c in s.sampled)
    for c in s.sampled:
        yield c, at
        at += len(c.variables)


def checked(s: System, h: float, watched: bool) -> None:
    """An error where samples would fall between steps."""
    for c in s.sampled:
        if watched:
            raise InputError(
                f"the controller {c.name} samples, and that goes with fixed steps without events: give step=, an "
                "integrator such as rk4, and no tolerance."
            )
        whole(f"every of the sampled controller {c.name}", c.every, h, "step")
        if c.delay:
            whole(f"delay of the sampled controller {c.name}", c.delay, h, "step")
