"""Sampled controllers: functions called at their own sampling times, with held outputs and memory.

Held outputs and memory are elements of x with zero rate: a tick leaves them unchanged, and the graph `renew` of the
Program, which is called only if a sample is due, sets them. Records, steppers, drives and GPUs thus handle them as any
other state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bellcrank.actuators import StateVariable
from bellcrank.errors import InputError
from bellcrank.integrate.problem import select
from bellcrank.scalar import Scalar, fabs, floor, maximum, quantised, where
from bellcrank.sim.run_arguments import (
    NamedVector,
    call_user_function,
    check_unique_names,
    delay,
    duration,
    named_scalars,
    positive,
    real_number,
    whole_multiple,
)

if TYPE_CHECKING:
    from bellcrank.sim.system.systems import System


MOST_DELAYED_SAMPLES = 10_000  # largest number of delayed samples; each of them is a state


@dataclass(frozen=True)
class Sampled:
    """A sampled controller: function(t, q, v, x, u) is called periodically, and its outputs are held in between.

    As the control of a system it returns the commands. As one of the list sampled=[...] it returns its outputs, which
    are elements of x. With states it returns (outputs, next states). Controllers that are due at the same time run in
    the order of the list, each with the outputs of those before it; the control comes last. Periods and delays are
    whole numbers of fixed steps.

    Parameters
    ----------
    function : callable
        Function of (t, q, v, x, u).
    every : float
        Sampling period, s.
    outputs : mapping of str to float
        Names of the outputs, with the values that hold until the first sample.
    states : mapping of str to float
        Names of the states, with initial values.
    delay : float, default 0.0
        Seconds from a sample until its outputs take effect; may exceed a period.
    quantum : float, optional
        Outputs are rounded to multiples of it.

    Examples
    --------
    As the control of a system, and as one of several controllers::

        Sampled(lambda t, q, v, x, u: {"elbow": -20.0 * q["elbow"]}, every=1e-3)
        Sampled(plan, every=0.02, outputs={"target": 0.0}, states={"count": 0.0})
    """

    function: Callable[..., Any]
    every: float
    outputs: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, float] = field(default_factory=dict)
    delay: float = 0.0
    quantum: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"Sampled: {self.function!r} is not a function of (t, q, v, x, u).")
        duration("Sampled: every", self.every)
        if self.quantum is not None:
            positive("Sampled: quantum", self.quantum, "")
        delay("Sampled: delay", self.delay)
        for what, given in (("outputs", self.outputs), ("states", self.states)):
            if not isinstance(given, Mapping):
                raise InputError(f'Sampled: {what} is {given!r}; expected a mapping, {what}={{"target": 0.0}}.')
            check_unique_names(what.rstrip("s"), list(given))
            for name, x in given.items():
                real_number(f'Sampled: {what} "{name}"', x)
        if not self.delay / self.every <= MOST_DELAYED_SAMPLES:
            raise InputError(
                f"Sampled: delay is {self.delay:g} s, so that {self.delay / self.every:.3g} samples would be delayed "
                f"at once; expected at most {MOST_DELAYED_SAMPLES}. Is it in seconds?"
            )

    @property
    def name(self) -> str:
        """Return the name used in errors: that of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def waiting(self) -> int:
        """Return the largest number of delayed samples at a time."""
        return max(0, math.ceil(self.delay / self.every - 1e-9))

    @property
    def variables(self) -> tuple[StateVariable, ...]:
        """Return the state variables: held outputs, memory, and delayed outputs, the newest first."""
        held = [StateVariable(name, "", float(x)) for name, x in {**self.outputs, **self.states}.items()]
        delayed = [(k, name, x) for k in range(1, self.waiting + 1) for name, x in self.outputs.items()]
        return (*held, *(StateVariable(f"{name}.coming{k}", "", float(x)) for k, name, x in delayed))

    def result(self, s: System, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar]) -> tuple[list[Scalar], ...]:
        """Return outputs and next states.

        Parameters
        ----------
        s : System
            The system.
        t, y, u
            Time, state and inputs.

        Returns
        -------
        outputs : list of scalar
            In the order of `outputs`.
        states : list of scalar
            The memory until the next sample, in the order of `states`.
        """
        what = f"sampled controller ({self.name})"
        returned, states = call_user_function(what, self.function, t, *s.split(y), NamedVector("u", s.inputs, u)), []
        if self.states:
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise InputError(
                    f"{what} has states ({', '.join(self.states)}) and returned {type(returned).__name__}; expected "
                    "the pair (outputs, next states)."
                )
            returned, states = returned[0], named_scalars(f"states of {what}", returned[1], list(self.states))
        outputs = named_scalars(what, returned, list(self.outputs)) if self.outputs else []
        return [x if self.quantum is None else quantised(x, self.quantum) for x in outputs], states


def as_control(controller: Sampled, commands: Sequence[str]) -> tuple[Sampled, Callable[..., Any]]:
    """Return a sampled controller for the commands, and the control that passes its held outputs on.

    Parameters
    ----------
    controller
        Sampled controller without outputs of its own.
    commands
        Names of the commands.
    """
    if controller.outputs:
        raise InputError(
            f"control ({controller.name}) is sampled and has outputs of its own ({', '.join(controller.outputs)}); as "
            "the control it gives the commands. Put it into sampled=[...], with a control that reads its "
            "outputs from x."
        )
    function, names = controller.function, {f"{c}.held": 0.0 for c in commands}

    def give(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        given = function(t, q, v, x, u)
        outputs, states = given if controller.states and isinstance(given, tuple) and len(given) == 2 else (given, None)
        held = named_scalars(f"control ({controller.name})", outputs, commands)
        return held if states is None else (held, states)

    give.__name__ = controller.name
    sampler = Sampled(give, controller.every, names, controller.states, controller.delay, controller.quantum)

    def held(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> list[Scalar]:
        return [x[name] for name in names]

    held.__name__ = controller.name
    return sampler, held


def clocks(s: System) -> tuple[tuple[float, float], ...]:
    """Return the distinct clocks of samples and delayed outputs of the system `s`: (period, time of the first tick)."""
    return tuple(dict.fromkeys((c.every, late) for c in s.sampled for late in dict.fromkeys((0.0, float(c.delay)))))


def first_phases(s: System, h: Scalar) -> list[Scalar]:
    """Return the phases before the first step of the system `s` with steps of `h` seconds.

    The phase of a clock counts the steps since its last tick; before its first tick it counts up to 0. It stays below
    the number of steps in a period, so it is exact even if the number of all steps is not.
    """
    return [-_steps(late, h) if late else 0.0 for _, late in clocks(s)]


def next_phases(s: System, phases: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    """Return the phases of the system `s` one step of `h` seconds after `phases`."""
    later = [phase + 1.0 for phase in phases]
    return [where(x >= _steps(every, h), 0.0, x) for x, (every, _) in zip(later, clocks(s), strict=True)]


def phases_at(s: System, n: Scalar, h: Scalar) -> list[Scalar]:
    """Return the phases of the system `s` after `n` steps of `h` seconds, `n` being exact."""
    phases: list[Scalar] = []
    for every, late in clocks(s):
        steps_per_period, steps_since_first = _steps(every, h), n - _steps(late, h)
        # The half keeps a quotient that should be whole from being rounded down.
        wrapped = steps_since_first - steps_per_period * floor((steps_since_first + 0.5) / steps_per_period)
        phases.append(where(steps_since_first > -0.5, wrapped, steps_since_first))
    return phases


def any_due(phases: Sequence[Scalar]) -> Scalar:
    """Return 1 if any of the `phases` is zero: a sample is taken or takes effect before this step."""
    is_any_due: Scalar = 0.0
    for phase in phases:
        is_any_due = maximum(is_any_due, _is_due(phase))
    return is_any_due


def _is_due(phase: Scalar) -> Scalar:
    return where(fabs(phase) < 0.5, 1.0, 0.0)


def _steps(seconds: Scalar, h: Scalar) -> Scalar:
    return floor(seconds / h + 0.5) if seconds else 0.0


def sampled_state(
    s: System, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar], phases: Sequence[Scalar]
) -> list[Scalar]:
    """Return the state after the samples of this moment.

    Parameters
    ----------
    s
        System.
    t, y, u
        Time, state and inputs.
    phases
        Phases of its clocks.
    """
    y, phase = list(y), dict(zip(clocks(s), phases, strict=True))
    for c, first in _controller_places(s):
        y[first : first + len(c.variables)] = _controller_state(c, s, t, y, u, phase, first)
    return y


def _controller_state(
    c: Sampled,
    s: System,
    t: Scalar,
    y: list[Scalar],
    u: Sequence[Scalar],
    phase: Mapping[tuple[float, float], Scalar],
    first: int,
) -> list[Scalar]:
    """Return the new state elements of one controller: held outputs, memory and delayed outputs."""
    width, remembered = len(c.outputs), len(c.states)
    new, states = c.result(s, t, y, u)
    samples_now, queue_start = _is_due(phase[c.every, 0.0]) > 0.5, first + width + remembered
    held, memory = y[first : first + width], y[first + width : queue_start]
    queue = [y[queue_start + k * width : queue_start + (k + 1) * width] for k in range(c.waiting)]
    if c.waiting:  # the sample that takes effect now is the last in the queue, before the queue is shifted
        held = select(_is_due(phase[c.every, float(c.delay)]) > 0.5, queue[-1], held)
        queue = [select(samples_now, a, b) for a, b in zip([new, *queue], queue, strict=False)]
    else:
        held = select(samples_now, new, held)
    return [*held, *select(samples_now, states, memory), *(x for some in queue for x in some)]


def _controller_places(s: System) -> Iterator[tuple[Sampled, int]]:
    """Yield each controller with the index in y of its first element."""
    first = s.size - sum(len(c.variables) for c in s.sampled)
    for c in s.sampled:
        yield c, first
        first += len(c.variables)


def check_sampling(s: System, h: float, watched: bool) -> None:
    """Raise an InputError if samples would fall between steps.

    Parameters
    ----------
    s
        System.
    h
        Step, s.
    watched
        True if steps are adaptive or events are located.
    """
    for c in s.sampled:
        if watched:
            raise InputError(
                f"the controller {c.name} is sampled, which needs fixed steps without events: give step=, an "
                "integrator such as rk4, and no tolerance."
            )
        whole_multiple(f"every of the sampled controller {c.name}", c.every, h, "step")
        if c.delay:
            whole_multiple(f"delay of the sampled controller {c.name}", c.delay, h, "step")
