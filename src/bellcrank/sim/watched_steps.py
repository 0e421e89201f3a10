"""Program of runs with adaptive steps or events, whose rows are interpolated by the dense output of each step.

A tick tries a step. If its error is too large, it is repeated with a shorter one. An accepted step leaves its
polynomial; `observe` reads rows from it at the times of the record's grid and of events, one at a time, and `locate`
finds the time of an event in the step. If only the final state is kept there are no rows to observe, and without events
the polynomial is not needed. A run that tries more than `most` steps ends there: a stiff system, or a ball that comes
to rest in infinitely many bounces, would run for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from bellcrank.graph import Graph, Layout, Program
from bellcrank.graph.counting import Counter, counted
from bellcrank.graph.program import FINISHED, NEVER, TOO_SMALL, Crossing, size
from bellcrank.integrate import Integrator, Problem, interpolate
from bellcrank.scalar import Scalar, fabs, floor, maximum, minimum, where
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.event_steps import located_events, spent
from bellcrank.sim.events import Event, crossed, crossings, switches
from bellcrank.sim.fixed_steps import begun, broken, chosen, fed, is_sound, renewed, untroubled
from bellcrank.sim.step_check import EVENTS, StepCheck
from bellcrank.sim.stepsize import judged
from bellcrank.sim.summary import NOTHING, Summary, Watch

SMALLEST = 1e-14  # smallest step, relative to the time or to one second
NEAR = 1e-3  # share of a grid interval: rounding of a time that a user sets
EARLY = 1e-6  # share of a step after which an event function that starts at zero has its sign


class Watched:
    """The graphs of a run with adaptive steps or events; they share the layout of the state."""

    def __init__(
        self,
        dynamics: Dynamics,
        integrator: Integrator,
        events: Sequence[Event],
        adaptive: bool,
        grid: bool,
        summary: Summary = NOTHING,
        rows: bool = True,
        dtype: str = "float64",
        check: StepCheck | None = None,
    ) -> None:
        self.check = None if adaptive else check
        self.rows, self.watch = rows, Watch(summary, dynamics)
        self.dynamics, self.integrator, self.events = dynamics, integrator, tuple(events)
        self.adaptive, self.grid = adaptive, grid  # grid: rows at multiples of `every`, else one per step
        s = dynamics.system
        problem = dynamics.problem()
        self.nu, self.nd = len(s.inputs), self._degree() + 1
        single = [
            *("live", "due", "hit", "status", "tried", "most", "h", "step", "begin", "end", "every", "next"),
            *("which", "rtol", "atol", "t_old", "h_old"),
        ]
        # The integrator's memory restarts after a change of inputs, and after a step that an event shortened.
        self.renews = integrator.memory(problem) > 0 and (self.nu > 0 or (len(self.events) > 0 and not adaptive))
        clock = {"input_step": 1, "input_last": 1, "input_old": 1} if self.nu else {}
        clock |= {"fresh": 1} if self.nu or self.renews else {}
        self.layout = Layout(
            {
                "t": 1,
                "y": size(dynamics.size),
                **({"input": 1} if self.nu else {}),
                "n": Counter.of(dtype),
                # Number of passed points of a grid with spacing `step`, for steppers and exports.
                **({} if rows else {"grid": Counter.of(dtype)}),
                **dict.fromkeys(single, 1),
                **clock,
                **dict.fromkeys(dynamics.measured, 1),
                "memory": size(integrator.memory(problem)),
                "dense": size(self.nd * dynamics.size if rows or self.events else 0),
                "g_old": size(len(self.events)),
                "g": size(len(self.events)),
                "pending": size(len(self.events) if rows else 0),
                "summary": size(len(summary.cells)),
                **(self.check.fields if self.check else {}),
            }
        )

    def _degree(self) -> int:
        """Return the degree of the integrator's dense output, measured on a tiny system."""
        tiny = Problem(lambda t, y: [0.0 * y[0], 0.0 * y[0]], 1, 1, 0, lambda t, y: ([[0.0, 0.0]] * 2, [0.0, 0.0]))
        begun = self.integrator.begin(tiny, 0.0, [0.0, 0.0], 1.0)
        return len(self.integrator.step(tiny, 0.0, [0.0, 0.0], 1.0, begun).dense) - 1

    def problem(self, u: Any, h: Scalar) -> Problem:
        """Return the problem of the integrator with inputs `u`; `h` is the length of fixed, partly implicit steps."""
        return self.dynamics.problem(u, None if self.adaptive else h)

    # -- graphs

    def program(self) -> Program:
        """Return the Program of the run."""
        shapes = {"s": (self.layout.size,), **({"u": (self.nu,)} if self.nu else {})}

        def traced(name: str, function: Callable[..., dict[str, Any]]) -> Graph:
            return self.dynamics.trace(f"{self.integrator.name}.{name}", function, shapes)

        return Program(
            self.layout,
            tick=traced("tick", self._tick),
            row=2 + self.dynamics.size + (1 if self.nu else 0),
            observe=traced("observe", self._observe) if self.rows else None,
            locate=traced("locate", partial(located_events, self)) if self.events else None,
            start=traced("start", self._start),
            renew=renewed(self.layout, self.integrator, self.dynamics, self.problem) if self.renews else None,
            ports=replace(
                self.dynamics.ports,
                events=tuple(Crossing(e.name, e.action, e.direction) for e in self.events),
                indicating=lambda: self.crossings,
                switching=lambda: switches(self.dynamics, self.events),
                adaptive=self.adaptive,
            ),
        )

    @cached_property
    def crossings(self) -> Graph:
        """Return the graph of the event functions."""
        return crossings(self.dynamics, self.events)

    def _start(self, s: Any, u: Any = ()) -> dict[str, Any]:
        """Return the state before the first step, completed from t, y and h."""
        now = self.layout.read(s)
        now["memory"] = begun(self.integrator, self.problem(u, now["h"]), now)
        now["dense"] = [*now["y"], *[0.0] * (len(now["dense"]) - len(now["y"]))] if now["dense"] else []
        now["pending"] = [NEVER] * len(now["pending"])
        now["summary"] = self.watch.noted(now["summary"], now["t"], now["y"], u)
        if "grid" in now:
            now["grid"] = self._on_grid(now)
        if self.events:
            now["g"] = now["g_old"] = list(self.dynamics.call(self.crossings, now["t"], now["y"], u)["g"])
        return {"s": self.layout.written(now)}

    def _on_grid(self, now: dict[str, Any]) -> list[Scalar]:
        """Return the number of passed grid points: the counter, unless the time was changed from outside."""
        words = self.layout.words("grid")
        assert words is not None
        passed = (now["t"] - now["begin"]) / now["step"]
        over = passed - now["grid"].value
        kept = where(over > -0.5, where(over < 1.0 - NEAR, 1.0, 0.0), 0.0) > 0.0
        return list(chosen(kept, now["grid"], counted(floor(passed + NEAR), words)))

    def _tick(self, s: Any, u: Any = ()) -> dict[str, Any]:
        old = self.layout.read(s)
        t, y = old["t"], old["y"]
        h, memory = old["h"], old["memory"]
        problem = self.problem(u, h)
        if self.adaptive:
            room = old["end"] - t
            if self.nu:  # no step crosses a jump of the inputs
                until = (old["input"] + 1.0) * old["input_step"] - t
                room = where(old["input"] < old["input_last"], minimum(room, until), room)
            tried = minimum(h, room)
            memory = self.integrator.rescale(problem, memory, tried / h)
            h = tried
        made = self.integrator.step(problem, t, y, h, memory)
        y_new, trouble, measured = self.dynamics.settled(made, old)
        sound = is_sound(y_new, trouble)
        n = old["n"].next()
        if self.adaptive:
            atol = old["atol"] + measured.get("noise", 0.0)
            fits, factor = judged(self.integrator, y, made, sound, old["rtol"], atol)
            wish = h * factor
            left = old["end"] - t
            t_new = where(h < left, t + h, old["end"])
            stuck = where(fits > 0.0, 0.0, where(wish < SMALLEST * maximum(fabs(t), 1.0), 1.0, 0.0))
            ended = t_new >= old["end"]
            # a step that was shortened to end on time does not limit the next one
            h_next = where(fits > 0.0, where(h < old["h"], maximum(wish, old["h"]), wish), wish)
            ratio = h_next / h
        else:
            fits = where(sound, 1.0, 0.0)
            stuck = where(sound, 0.0, 1.0)
            t_new = old["begin"] + n.value * old["step"]
            ended = t_new >= old["end"] - 1e-9 * old["step"]
            h_next = old["step"]
            ratio = 1.0
        go = where(old["live"] > 0.0, fits, 0.0) > 0.0
        new = {"t": t_new, "y": y_new, "n": n, "t_old": t, "h_old": h, **measured}
        new["dense"] = [x for d in made.dense for x in d] if old["dense"] else []
        new["summary"] = self.watch.passed(old["summary"], t, y, t_new, y_new, u)
        kept = {key: chosen(go, new[key], old[key]) for key in new}
        kept["memory"] = self._remembered(problem, go, made.memory, memory, ratio, old["memory"])
        kept["h"] = where(old["live"] > 0.0, h_next, old["h"])
        kept["tried"] = where(old["live"] > 0.0, old["tried"] + 1.0, old["tried"])
        going = where(ended, 0.0, untroubled(trouble))
        kept["live"] = where(go, going, where(stuck > 0.0, 0.0, old["live"]))
        failure = broken(trouble) if not self.adaptive else where(sound, float(TOO_SMALL), broken(trouble))
        outcome = where(go, where(ended, float(FINISHED), trouble), where(stuck > 0.0, failure, 0.0))
        kept["status"] = where(old["live"] > 0.0, outcome, old["status"])
        kept |= spent(kept["live"], kept["status"], kept["tried"], old["most"])
        kept["next"] = old["next"] if self.grid else where(go, 0.0, old["next"])
        if self.nu:
            kept |= fed(old, kept["t"], old["input_step"], 1e-9 * old["input_step"]) | {"input_old": old["input"]}
        if self.renews and not self.adaptive:
            kept["fresh"] = where(h < old["step"], 1.0, kept.get("fresh", 0.0))
        if self.events:
            g = list(self.dynamics.call(self.crossings, kept["t"], kept["y"], u)["g"])
            # an event function that is zero now, like the height of a bouncing ball, takes its sign from shortly
            # afterwards: it may return to zero within this step
            early = self.dynamics.call(self.crossings, t + EARLY * h, interpolate(made.dense, EARLY), u)["g"]
            before = [where(fabs(a) > 0.0, a, e) for a, e in zip(old["g"], early, strict=True)]
            kept["g_old"], kept["g"] = before, chosen(go, g, old["g"])
            hits = [crossed(e, a, b) for e, a, b in zip(self.events, before, g, strict=True)]
            happened = where(go, sum(hits[1:], hits[0]), 0.0) > 0.0
            kept["hit"] = where(happened, EVENTS, 0.0)
            # after a hit, `locate` determines the end of this step and updates the summary there
            kept["summary"] = chosen(happened, old["summary"], kept["summary"])
        if self.check:
            noticed = self.check.noticed(old, n.value, y_new, go)
            kept |= noticed | {"hit": kept.get("hit", 0.0) + noticed["hit"]}
        return self.result(old | kept)

    def _remembered(self, problem: Any, go: Scalar, new: Any, tried: Any, ratio: Scalar, old: Any) -> list[Scalar]:
        if not new:
            return []
        if not self.adaptive:
            return list(chosen(go, self.integrator.rescale(problem, new, ratio), old))
        accepted = self.integrator.rescale(problem, new, ratio)
        again = self.integrator.rescale(problem, tried, ratio)
        return list(chosen(go, accepted, again))

    def _row_times(self, now: dict[str, Any]) -> tuple[Scalar, Scalar, list[Scalar]]:
        """Return the time of the next grid row (NEVER if not yet due), of any next row, and of the rows of events."""
        if self.grid:
            tg = minimum(now["next"] * now["every"], now["end"])
            tg = where(now["next"] < NEVER, tg, NEVER)
            come = tg <= now["t"] + 1e-9 * now["every"]
            regular = where(come, minimum(tg, now["t"]), NEVER)
        else:
            regular = where(now["next"] < NEVER, now["t"], NEVER)
        pending = list(now["pending"])
        first = regular
        for p in pending:
            first = minimum(first, p)
        return regular, first, pending

    def result(self, now: dict[str, Any]) -> dict[str, Any]:
        """Return the state `now` as an array, with the flag `due` set if a row is due."""
        now["due"] = where(self._row_times(now)[1] < NEVER, 1.0, 0.0) if self.rows else 0.0
        return {"s": self.layout.written(now)}

    def dense(self, now: dict[str, Any]) -> list[list[Scalar]]:
        """Return the coefficients of the polynomial of the last step, from the state `now`."""
        n = self.dynamics.size
        return [now["dense"][k * n : (k + 1) * n] for k in range(self.nd)]

    def _observe(self, s: Any, u: Any = ()) -> dict[str, Any]:
        now = self.layout.read(s)
        regular, first, pending = self._row_times(now)
        which: Scalar = 0.0
        for k, p in reversed([*enumerate(pending)]):  # simultaneous events are written in the order of the list
            which = where(p <= first, k + 1.0, which)
        on_grid = where(which > 0.0, 0.0, where(regular <= first, 1.0, 0.0)) > 0.0
        y, doubt = self.dynamics.observed(interpolate(self.dense(now), (first - now["t_old"]) / now["h_old"]))
        new = dict(now)
        new["pending"] = [_done(which, k + 1.0, p) for k, p in enumerate(pending)]
        if self.grid:
            after = where(first >= now["end"] - 1e-9 * now["every"], NEVER, now["next"] + 1.0)
        else:
            after = NEVER
        due = where(now["due"] > 0.0, 1.0, 0.0) > 0.0
        new["next"] = where(on_grid, after, now["next"])
        kept = {key: chosen(due, new[key], now[key]) for key in ("pending", "next")}
        said = which if isinstance(doubt, float) else where(which > 0.0, which, -doubt)
        row = [first, *y, *([self._input_at(now, first)] if self.nu else []), said]
        return {"row": row, **self.result(now | kept)}

    def _input_at(self, now: dict[str, Any], t: Scalar) -> Scalar:
        """Return the line of the inputs at a time in the last step: only its end may have a new one."""
        return where(t < now["t"] - 1e-9 * now["h_old"], now["input_old"], now["input"])


def _done(which: Scalar, mine: float, pending: Scalar) -> Scalar:
    """Clear the pending time of the event whose row was written."""
    return where(fabs(which - mine) < 0.5, NEVER, pending)
