"""Check of a fixed step while a run goes on: some steps are repeated as two half steps, and the differences add up.

    change_i = sum over the steps of |y_i by one step - y_i by two half steps|
    way_i    = sum over the steps of |y_i after a step - y_i before it|
    doubt    = max over i of change_i / (way_i + STILL nominal_i)

`doubt` is a relative error: the share of the way travelled that halving the step would change, step by step. It is a
local measure, so that a chaotic motion of any length counts as resolved where its steps are. The Program computes it,
whoever runs it (lanes, threads, a GPU); sim/outcome.py compares it with the tolerance (Solver.resolve).

Regular checks happen at the steps 1, 2, 4, 8 ... and then every EVERY steps; each stands for all steps since the one
before. Impacts and reversals of friction fall between them, so a step in which the acceleration changes much more than
on average (a spike of the second difference of the velocities) is checked as well, and stands for itself.

Where a single step would put the run in doubt, a twin decides: from there it takes half steps beside the run for WINDOW
steps, and the mean difference in the LATE ones of them counts. An error that dies out before, as in the fast decay of
a stiff friction, does not count; one that stays, as behind an impact, does. The first bad window stands for itself, and
those that confirm it for all steps since the last good one.

The repetition is part of the graph `locate` of the Program, called where the sign `hit` is set: it costs as much as two
steps. The tick itself adds up the second differences and the way. The way is that of all steps, because one that is
estimated from few of them misses most of what an impact moves between two checks, and doubts a run that is converged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from bellcrank.graph import Graph
from bellcrank.graph.program import HUGE, size
from bellcrank.integrate import Integrator, State
from bellcrank.scalar import Scalar, fabs, maximum, minimum, where
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.nominals import nominals

EVERY = 251  # steps between regular checks; a prime, so that no sampling period coincides with it
WINDOW, LATE = 32.0, 24.0  # steps that a twin takes beside the run; the last ones count, by their mean
REST = 2048.0  # steps from a window to the next regular check, at most
CONFIRM = 128.0  # the same, where the window was the first that is bad
SPIKE = 16.0  # times the mean second difference of the velocities, from which a step is checked out of turn
SPIKES, SPIKE_SHARE = 4.0, 1.0 / 4096.0  # budget of such checks: so many, and so many per step
ALONE = 0.5  # of the tolerance: what checks of single steps may reach before a twin decides
IMPACT = 16.0  # steps that are expected to be as doubtful as a spike, when it is judged
REGULAR, SPIKED, TWIN, EVENTS = 1.0, 2.0, 3.0, 4.0  # the sign `hit`, to which events add theirs
STILL = 0.01  # of the nominal size of a state: shorter ways count as that long
ROUNDING_UNITS = 16.0  # of the larger state: differences below are rounding errors
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}

RESULTS = ("doubt", "doubt_of", "doubt_at")  # read by the record: how large, of which element, when it grew most
_COUNTERS = ("resolve", "check", "checked", "until", "share", "regular", "suspect", "bends", "spikes", "largest")
KEPT = (*RESULTS, *_COUNTERS[1:], "y_old", "twin", "change", "way")  # what a stepper keeps between actions
Fields = Mapping[str, Any]


class StepCheck:
    """The parts of a Program that check its fixed steps."""

    def __init__(self, dynamics: Dynamics, integrator: Integrator, dtype: str = "float64") -> None:
        self.dynamics, self.integrator, self.dtype = dynamics, integrator, dtype
        self.size = dynamics.system.size  # of the state without integrals and sensitivities
        sampled = sum(len(c.variables) for c in dynamics.system.sampled)
        self.held = range(self.size - sampled, self.size)  # elements that only samples change, between the steps

    @property
    def fields(self) -> dict[str, int | tuple[int]]:
        """Fields of the state of a Program, with the sign `hit`."""
        whole, own = size(self.dynamics.size), size(self.size)
        single = dict.fromkeys(("hit", *RESULTS, *_COUNTERS), 1)
        return {**single, "y_old": whole, "twin": whole, "change": own, "way": own}

    @cached_property
    def _per_nominal(self) -> list[float]:
        return [float(1.0 / x) for x in nominals(self.dynamics.system)]

    # -- in the tick

    def noticed(self, old: Fields, n: Scalar, y: Sequence[Scalar], go: Scalar) -> dict[str, Any]:
        """New values of fields after the n-th step, from the state `old` to y; `hit` says whether it is checked."""
        bend = where(n > 1.5, self._bend(old["y_old"], old["y"], y), 0.0)  # there is none of the first step
        bends = old["bends"] + bend
        spike = where(bend * n > SPIKE * bends, SPIKED, 0.0)
        spike = where(old["spikes"] < SPIKES + n * SPIKE_SHARE, spike, 0.0)
        regular = where(n > old["check"], REGULAR, 0.0)
        alone = maximum(regular, spike)
        moved = zip(old["way"], y[: self.size], old["y"][: self.size], strict=True)
        return {
            "hit": where(go, where(n < old["until"], TWIN, alone), 0.0),
            "bends": where(go, bends, old["bends"]),
            "way": [where(go, way + fabs(after - before), way) for way, after, before in moved],
            "y_old": old["y"],
        }

    def interrupted(self, now: Fields, y: State) -> dict[str, Any]:
        """New values of fields where an event ends the last step with the state y: what a window has seen so far counts
        as all of it, and the second difference begins anew.
        """
        twin, before = now["twin"][: self.size], now["y_old"][: self.size]
        change = [self._change(a, a, b) for a, b in zip(before, twin, strict=True)]
        left = minimum(maximum(now["until"] - now["n"].value, 0.0) / LATE, 1.0)
        added = _added(now["change"], change, now["share"] * left)
        doubt, element = self._doubt(added, now["way"])
        return {"change": added, "doubt": doubt, "doubt_of": element, "y_old": y, "until": 0.0}

    def _bend(self, before: Sequence[Scalar], now: Sequence[Scalar], after: Sequence[Scalar]) -> Scalar:
        """Second difference of velocities and further states, against their nominal sizes."""
        total: Scalar = 0.0
        for i in range(self.dynamics.system.mechanism.nq, self.size):
            total = total + self._per_nominal[i] * fabs((after[i] - now[i]) - (now[i] - before[i]))
        return total

    # -- after the tick, where it is asked for

    def judged(self, now: Fields, h: Scalar, u: Any) -> dict[str, Any]:
        """New values of fields where the last step, of length h, is repeated."""
        sign = now["hit"] - where(now["hit"] < EVENTS, 0.0, EVENTS)
        n, after, before = now["n"].value, now["y"][: self.size], now["y_old"][: self.size]
        beside = where(sign > 0.5 * (SPIKED + TWIN), 1.0, 0.0) > 0.0
        spike = where(sign > 0.5 * (REGULAR + SPIKED), where(beside, 0.0, 1.0), 0.0) > 0.0
        twin = self._halved(now, _chosen(beside, self._beside(now), now["y_old"]), h, u)
        change = [self._change(a, b, c) for a, b, c in zip(after, before, twin[: self.size], strict=True)]
        gap = n - now["checked"]  # steps that a regular check stands for
        expected = where(spike, IMPACT, gap)
        impact = where(spike, IMPACT, 0.0)
        ahead = [x + impact * fabs(a - b) for x, a, b in zip(now["way"], after, before, strict=True)]
        doubt, _ = self._doubt(_added(now["change"], change, expected), ahead)
        opens = where(beside, 0.0, where(doubt > ALONE * now["resolve"], 1.0, 0.0)) > 0.0
        open_ = where(beside, where(n < now["until"] - 1.0, 1.0, 0.0), where(opens, 1.0, 0.0)) > 0.0
        share = where(now["suspect"] > 0.0, (gap + (WINDOW - 1.0)) * (1.0 / WINDOW), 1.0)
        share = where(beside, now["share"], where(spike, 1.0, where(opens, share, gap)))
        left = where(open_, where(opens, WINDOW, now["until"] - n) - 1.0, 0.0)  # steps of the window
        late = where(beside, where(left < LATE, 1.0 / LATE, 0.0), where(opens, 0.0, 1.0))
        changes = _added(now["change"], change, share * late)
        guess = _added(changes, change, share * minimum(left / LATE, 1.0))  # of an open window
        doubt, element = self._doubt(guess, now["way"])
        largest: Scalar = 0.0
        for x, per_nominal in zip(change, self._per_nominal, strict=True):
            largest = maximum(largest, per_nominal * x)
        # A bad window may have met a rare event by chance: it stands for itself, unless the next is bad as well.
        regular = where(beside, now["regular"], where(spike, 0.0, 1.0))
        closed = where(open_, 0.0, regular) > 0.0
        whole, _ = self._doubt(_added(changes, change, gap * (1.0 / WINDOW)), now["way"])
        bad = where(beside, where(whole > now["resolve"], 1.0, 0.0), 0.0)
        again = where(closed, bad * (1.0 - now["suspect"]), 0.0) > 0.0
        wait = minimum(n, where(again, CONFIRM, where(beside, REST, float(EVERY))))
        new: dict[str, Any] = {
            "change": changes,
            "twin": twin,
            "doubt": doubt,
            "doubt_of": element,
            "doubt_at": where(largest > now["largest"], now["t"], now["doubt_at"]),
            "largest": maximum(largest, now["largest"]),
            "until": where(opens, n + WINDOW, where(open_, now["until"], 0.0)),
            "share": share,
            "regular": regular,
            "suspect": where(closed, bad, now["suspect"]),
            "checked": where(closed, where(again, now["checked"], n), now["checked"]),
            "check": where(closed, n + wait - 0.5, now["check"]),
            "spikes": where(spike, now["spikes"] + 1.0, now["spikes"]),
        }
        return {key: _chosen(sign > 0.0, x, now[key]) for key, x in new.items()} | {"hit": 0.0}

    def _beside(self, now: Fields) -> State:
        """Where the twin begins the step: it has the samples of the run."""
        twin = list(now["twin"])
        for i in self.held:
            twin[i] = now["y_old"][i]
        return twin

    @cached_property
    def half(self) -> Graph:
        """(t, y, h, memory, told, u, p) -> y and memory after a step of length h; told: what `settled` measures."""
        measured, memory = self.dynamics.measured, self.integrator.memory(self.dynamics.problem())
        shapes: dict[str, tuple[int, ...]] = {"t": (), "y": (self.dynamics.size,), "h": ()}
        shapes |= {"memory": (memory,)} if memory else {}
        shapes |= {"told": (len(measured),)} if measured else {}
        shapes |= {"u": (len(self.dynamics.system.inputs),)} if self.dynamics.system.inputs else {}

        def stepped(t: Scalar, y: Any, h: Scalar, memory: Any = (), told: Any = (), u: Any = ()) -> dict[str, Any]:
            made = self.integrator.step(self.dynamics.problem(u, h), t, list(y), h, list(memory))
            before = {"y": list(y), **dict(zip(measured, told, strict=True))}
            after, _, _ = self.dynamics.settled(made, before)
            return {"y": after, **({"memory": made.memory} if len(memory) else {})}

        return self.dynamics.trace(f"{self.integrator.name}.half", stepped, shapes)

    def _halved(self, now: Fields, y: State, h: Scalar, u: Any) -> State:
        """The state after the last step, made as two half steps from y, without a memory of earlier ones."""
        half, begin, more = 0.5 * h, now["t"] - h, dict[str, Any]()
        if "memory" in self.half.inputs:
            more["memory"] = list(self.integrator.begin(self.dynamics.problem(u, half), begin, y, half))
        told = {"told": [now[name] for name in self.dynamics.measured]} if self.dynamics.measured else {}
        for t in (begin, begin + half):
            made = self.dynamics.call(self.half, t, y, u, h=half, **told, **more)
            y = list(made["y"])
            more = {key: list(made[key]) for key in more}
        return y

    def _change(self, after: Scalar, before: Scalar, halved: Scalar) -> Scalar:
        """The difference of a state by a step and by two half steps, beyond rounding; HUGE if it is not a number."""
        rounding = ROUNDING_UNITS * EPSILON[self.dtype] * maximum(fabs(after), fabs(before))
        apart = fabs(after - halved) - rounding
        return where(apart < HUGE, maximum(apart, 0.0), HUGE)

    def _doubt(self, change: State, way: State) -> tuple[Scalar, Scalar]:
        """The largest relative change, and of which element it is."""
        doubt: Scalar = 0.0
        element: Scalar = 0.0
        for i, (x, whole, per_nominal) in enumerate(zip(change, way, self._per_nominal, strict=True)):
            relative = x / (whole + STILL / per_nominal)
            larger = relative > doubt
            doubt, element = where(larger, relative, doubt), where(larger, float(i), element)
        return doubt, element


def _added(total: State, change: State, times: Scalar) -> State:
    """Return sums to which a change is added so many times."""
    return [x + times * y for x, y in zip(total, change, strict=True)]


def _chosen(condition: Scalar, new: Any, old: Any) -> Any:
    if isinstance(new, list):
        return [where(condition, a, b) for a, b in zip(new, old, strict=True)]
    return where(condition, new, old)
