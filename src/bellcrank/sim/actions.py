"""Build an Action from a System: the ticks of a fixed-step run, with observation, reward, termination and restart.

Between actions only y, the number of steps since the start, the status of the run, and the memory of an integrator or
of closed loops are kept. The rest of a tick's state is the same for all runs and is written before the first tick of
each action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Layout, Node, Program
from bellcrank.graph.action import DRAWN, Action
from bellcrank.graph.counting import Count, Counter, split
from bellcrank.graph.inline import inlined
from bellcrank.graph.program import EVENT, FINISHED, NEVER, size
from bellcrank.integrate import Integrator
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.scalar import Scalar, where
from bellcrank.sim.arguments import Named, listed
from bellcrank.sim.chance import SEED, Random
from bellcrank.sim.columns import Columns, units
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.fixed_steps import begun, chosen
from bellcrank.sim.partitions import Joined
from bellcrank.sim.sampling import any_due, clocks, first_phases
from bellcrank.sim.step_check import KEPT
from bellcrank.sim.user_code import called, vector

REJOINED = 3  # loop closures of a drawn start, which may leave loops wide open; each takes two Newton iterations
PHASES = "phases"


@dataclass(frozen=True)
class Task:
    """Observation, reward, termination and start of stepped runs, as a user gives them; the functions are traced."""

    outputs: tuple[str, ...]  # columns of a record; all q and v by default (see `observed`)
    reward: Callable[..., Scalar] | None = None
    ends: Callable[..., Scalar] | None = None
    start: Callable[[Random], Any] | None = None
    limit: float = NEVER  # steps
    restarts: bool = False


def observed(dynamics: Dynamics, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the observed columns: `asked`, else the outputs of the system of `dynamics`, else q and v."""
    s, m = dynamics.system, dynamics.system.mechanism
    if asked is None:
        return tuple(s.outputs) or (*(f"{n}.q" for n in m.columns[0]), *(f"{n}.v" for n in m.columns[1]))
    known = ["t", *units(s)]
    for name in listed("outputs", asked, "names of columns"):
        if name not in known:
            raise InputError(f"outputs: {unknown('column', name, known)}")
    if not len(asked):
        raise InputError("outputs is empty; expected names of columns, or no outputs= for those of the system.")
    return tuple(asked)


@dataclass(frozen=True, eq=False)
class Stepped:
    """Several ticks of size h with constant inputs, and the observation, reward and status of a task after them."""

    dynamics: Dynamics
    integrator: Integrator
    program: Program
    h: float
    ticks: int
    task: Task
    joined: Joined | None = None  # present if the program contains several coordinate partitions of closed loops
    dtype: str = "float64"  # floating-point type of the compiled code
    resolve: float = 0.0  # relative error that the step check of the program allows; 0 without a step check

    def action(self) -> Action:
        """Return the Action: the program of a tick and the graphs that open, close, begin and observe an action."""
        n = len(self.dynamics.system.inputs)
        c, u = {"c": (self.kept.size,)}, {"u": (n,)} if n else {}
        trace = self.dynamics.trace
        return Action(
            self.program, self.ticks, self.kept, self.changing,
            open=trace("open", self._open, {**c, **u}),
            close=trace("close", self._close, {**c, "s": (self.program.size,), **u}),
            begin=trace("begin", self._begin, c),
            look=trace("look", self._look, c),
            restarts=self.task.restarts,
        )  # fmt: skip

    def transition(self) -> Graph:
        """Return the graph (y, u, t, p) -> y after one action, for differentiation.

        Termination is left out. The graph has the input t only if the result depends on it.
        """
        s, dynamics = self.dynamics.system, self.dynamics
        if self.joined is not None and len(self.joined.parts) > 1:
            raise InputError("transition: the minimal form changes its dependent coordinates; use form=projected.")
        if s.sampled or self.integrator.memory(dynamics.problem()):
            why = "controllers that sample" if s.sampled else f'the integrator "{self.integrator.name}"'
            raise InputError(
                f"transition: {why} have memory besides y; expected a system without them, and a one-step method."
            )

        def moved(y: Any, u: Any = (), t: Scalar = 0.0) -> dict[str, Any]:
            now: dict[str, Any] = {"y": list(y), **dict.fromkeys(dynamics.measured, 0.0), "bound": NEVER}
            for k in range(self.ticks):
                made = self.integrator.step(dynamics.problem(u, self.h), t + k * self.h, now["y"], self.h, [])
                now["y"] = dynamics.settled(made, now)[0]
            return {"y_next": now["y"]}

        shapes: dict[str, Any] = {"y": (dynamics.size,)} | ({"u": (len(s.inputs),)} if s.inputs else {})
        whole = inlined(dynamics.trace("transition", moved, {**shapes, "t": ()}))
        timed = any(n.op == "input" and n.args[0] == "t" for n in whole.nodes)
        return whole if timed else inlined(dynamics.trace("transition", moved, shapes))

    @cached_property
    def kept(self) -> Layout:
        """Layout of the state that is kept between actions; fields that change with every action come first."""
        # With inputs, the integrator's memory begins again at every action, so that it is not kept.
        renewed = self.program.renew is not None and len(self.usual) > 0
        memory = 0 if renewed else _width(self.program.layout, "memory")
        fields: dict[str, Any] = {"y": size(self.dynamics.size), "memory": size(memory)}
        part = () if self.joined is None else ("part",)
        for name in self._checked:
            place = self.program.layout.places[name]
            fields[name] = 1 if isinstance(place, int) else size(_width(self.program.layout, name))
        counter = Counter.of(self.dtype)
        fields |= dict.fromkeys((*self.dynamics.measured, *part), 1) | {"n": counter}
        if self.dynamics.system.sampled:
            fields[PHASES] = size(len(clocks(self.dynamics.system)))
        fields |= {"status": 1, "new": 1}
        # Only random starts need the number of the run, the number of its starts and the seed.
        chance = {"run": counter, "starts": counter, "seed": size(SEED)}
        return Layout(fields | (chance if self.task.start else {}))

    @property
    def _checked(self) -> tuple[str, ...]:
        """Fields of the step check that are kept between actions."""
        return KEPT if self.resolve else ()

    @property
    def changing(self) -> int:
        """Number of leading elements of `kept` that change with every action."""
        return self.kept.place("new") + 1

    @cached_property
    def usual(self) -> list[float]:
        """Default inputs, in force until the caller gives others."""
        return list(self.dynamics.ports.inputs.values())

    @property
    def _anywhere(self) -> Dynamics:
        """The dynamics in a form that is valid in every state, independent of the active partition."""
        return self.dynamics if self.joined is None else self.joined.parts[0].anywhere

    # -- graphs

    def _open(self, c: Any, u: Any = ()) -> dict[str, Any]:
        now, places = self.kept.read(c), self.program.layout
        values: dict[str, Any] = {name: [0.0] * _width(places, name) for name in ("memory", "summary")}
        values |= dict.fromkeys(places.places.keys() - values.keys(), 0.0)
        values |= {name: self._counted(NEVER) for name in ("last", "next")} | {"stride": self._counted(1.0)}
        values |= dict.fromkeys(("input_steps", "bound"), NEVER) | {"h": self.h, "resolve": self.resolve}
        values |= {name: x for name, x in now.items() if name in places and x != []}
        values |= {"t": now["n"].value * self.h, "live": where(now["status"] > 0.0, 0.0, 1.0)}
        values["fresh"] = 1.0 if self.usual else any_due(now.get(PHASES, ()))  # inputs may have changed
        return {"s": places.written(values)}

    def _counted(self, number: float) -> Count:
        """Return a constant as a counter."""
        return Count(split(number, Counter.of(self.dtype).words).tolist())

    def _close(self, c: Any, s: Any, u: Any = ()) -> dict[str, Any]:
        old, new, task = self.kept.read(c), self.program.layout.read(s), self.task
        t, y, over = new["t"], new["y"], old["status"] > 0.0
        limited: Scalar = 0.0
        if task.limit < NEVER:
            limited = where(new["n"].reached(self._counted(task.limit)), float(FINISHED), 0.0)
        code = where(self._judged("ends", task.ends, t, y, u) > 0.0, float(EVENT), limited)
        status = where(over, old["status"], where(new["status"] > 0.0, new["status"], code))
        made = {name: new[name] if name in new and x != [] else x for name, x in old.items()}
        made |= {"status": status, "new": where(status > 0.0, DRAWN, 0.0) if task.restarts else 0.0}
        reward = where(over, 0.0, self._judged("reward", task.reward, t, y, u))
        return {
            "c": self.kept.written(made)[: self.changing], "row": self._seen(t, y, u), "reward": [reward],
            "end": [status],
        }  # fmt: skip

    def _begin(self, c: Any) -> dict[str, Any]:
        old, task = self.kept.read(c), self.task
        new = old["new"] > 0.0
        fresh: dict[str, Any] = {name: 0.0 for name in ("status", "open", "noise") if name in self.kept}
        fresh["n"] = self._counted(0.0)
        if PHASES in self.kept:
            fresh[PHASES] = first_phases(self.dynamics.system, self.h)
        y, more = [float(x) for x in self.dynamics.ports.rest], {}
        if task.start:
            y = self._drawn(task.start, Random(old["seed"], old["run"], old["starts"]), y)
            for _ in range(REJOINED if self.dynamics.system.mechanism.loops else 1):
                y = self._anywhere.rejoined(y)
            more = {"starts": chosen(new, old["starts"].next(), old["starts"])}
        first = chosen(old["new"] > 1.5, y, old["y"])
        if self.joined is not None:
            fresh |= dict(zip(("part", "bound"), self.joined.chosen_at(first, old["new"]), strict=True))
        for name in self._checked:
            fresh[name] = [0.0] * len(old[name]) if isinstance(old[name], list) else 0.0
        made = {name: chosen(new, x, old[name]) for name, x in fresh.items()} | {"y": chosen(new, first, old["y"])}
        if _width(self.kept, "memory"):
            at = {"t": 0.0, "y": first, "h": self.h}
            made["memory"] = chosen(
                new, begun(self.integrator, self.dynamics.problem(self.usual, self.h), at), old["memory"]
            )
        return {"c": self.kept.written(old | made | more | {"new": 0.0})}

    def _look(self, c: Any) -> dict[str, Any]:
        now = self.kept.read(c)
        return {"row": self._seen(now["n"].value * self.h, now["y"], self.usual)}

    # -- functions of the user

    def _seen(self, t: Scalar, y: list[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        columns = Columns(self.dynamics.system, self._anywhere.accelerations, t, y, u)
        return [t if name == "t" else columns[name] for name in self.task.outputs]

    def _judged(self, what: str, function: Callable[..., Any] | None, t: Scalar, y: list[Scalar], u: Any) -> Scalar:
        if function is None:
            return 0.0
        s = self.dynamics.system
        found = called(what, function, t, *s.split(y), Named("u", s.inputs, u))
        if what == "ends" and isinstance(found, Node) and found.op in COMPARISONS:
            return where(found, 1.0, 0.0)
        return vector(what, found, [what])[0]

    def _drawn(self, start: Callable[[Random], Any], random: Random, rest: list[float]) -> list[Scalar]:
        """Return the start that the user's function draws: all elements, or some by name on top of `rest`."""
        found, names = called("start", start, random, expected="(random)"), list(self.dynamics.ports.elements)
        if isinstance(found, Mapping):
            for key in found:
                if key not in names:
                    raise InputError(f"start returned a value for an unknown element: {unknown('element', key, names)}")
            found = dict(zip(names, rest, strict=True)) | dict(found)
        return vector("start", found, names)


def _width(places: Layout, name: str) -> int:
    span = places.span(name)
    return int(span.stop - span.start)
