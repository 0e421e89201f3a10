"""Actions of a stepper: their arguments, controllers in Python that give them, and the code that executes them.

Arguments are checked before any state changes. A controller in Python is called at every sample of one run, for
functions that cannot be traced; its cost is measured.

An Action is built from a System: the ticks of a fixed-step run, with observation, reward, termination and restart.

Between actions only y, the number of steps since the start, the status of the run, and the memory of an integrator or
of closed loops are kept. The rest of a tick's state is the same for all runs and is written before the first tick of
each action. The machine code of an action is executed by one thread or several.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.buffers import check_memory
from bellcrank.emit.cpu import action as text
from bellcrank.emit.cpu.thread_pool import shared_pool, wait_for_tasks
from bellcrank.emit.llvm.host import host
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Layout, Node, Program
from bellcrank.graph.graph import structure
from bellcrank.graph.inline import inline
from bellcrank.graph.layout import Counter, CounterWords, list_width, split_words
from bellcrank.graph.program import DRAWN, EVENT, FINISHED, NEVER_TIME, Action
from bellcrank.integrate import Integrator
from bellcrank.integrate.problem import select
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.scalar import Scalar, where
from bellcrank.sim.constraints.multi_partition_program import JoinedPartitions
from bellcrank.sim.program.counter_rng import SEED_NUMBERS, Random
from bellcrank.sim.program.fixed_steps import initial_fields
from bellcrank.sim.program.step_check import KEPT_FIELDS
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.run.lane_blocks import address, loaded_library
from bellcrank.sim.run_arguments import (
    NamedVector,
    as_tuple,
    call_user_function,
    check_argument_count,
    check_known,
    duration,
    named_scalars,
    real_array,
    real_number,
    whole_multiple,
)
from bellcrank.sim.system.observed_columns import StateColumns, observable_units
from bellcrank.sim.system.sampling import any_due, clocks, first_phases

if TYPE_CHECKING:
    from bellcrank.sim.stepper.stepper import Stepper

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def action_inputs(u: Any, shape: Shape, names: Sequence[str], nu: int) -> Array:
    """Return the inputs of an action as a contiguous float64 array.

    Parameters
    ----------
    u
        Inputs, (*shape, nu), or None for a system without inputs.
    shape
        Shape of the batch.
    names
        Names of the inputs.
    nu
        Number of inputs.
    """
    if not takes_inputs(u, (*shape, nu), names):
        return np.zeros((*shape, 1))
    try:
        array = np.asanyarray(u)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"step: u is not an array in this computer's memory: {error}") from None
    check_numbers(array, (*shape, nu), names)
    if np.ma.is_masked(array):
        raise InputError("step: u has masked entries; expected a number for each entry.")
    return np.ascontiguousarray(array, float)


def takes_inputs(u: Any, expected: Shape, names: Sequence[str]) -> bool:
    """Return whether a system takes inputs, or raise an InputError if `u` is missing or superfluous.

    Parameters
    ----------
    u
        Inputs of a step, or None.
    expected
        Their shape.
    names
        Names of the inputs.
    """
    if not names and u is not None:
        raise InputError("step: this system has no inputs; call step() alone.")
    if names and u is None:
        raise InputError(f"step: u is missing; expected an array {expected}: {', '.join(names)}.")
    return bool(names)


def check_numbers(array: Any, expected: Shape, names: Sequence[str]) -> None:
    """Raise an InputError if the inputs `array`, on the host or a GPU, are not real numbers of the shape `expected`.

    `names` are those of the inputs.
    """
    if array.dtype.kind not in "fiub":
        raise InputError(f"step: u has dtype {array.dtype}; expected real numbers.")
    if array.shape != expected:
        raise InputError(f"step: u has the shape {array.shape}; expected {expected}: {', '.join(names)}.")


def action_output(out: Any, expected: Shape) -> Array:
    """Return `out` after checking that it is a writable float64 array of the shape `expected`."""
    fits = isinstance(out, np.ndarray) and out.shape == expected and out.dtype == float and out.flags.writeable
    if not fits:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"out must be a writable float64 array of shape {expected}; got {got}.")
    array: Array = out
    return array


def reset_mask(given: Any, shape: Shape) -> Array:
    """Return the mask `given` as a boolean array of the shape `shape`."""
    try:
        mask = np.asarray(given)
    except ValueError:  # rows of different lengths
        mask = np.asarray(given, dtype=object)
    if mask.dtype != bool or mask.shape != shape:
        raise InputError(
            f"reset: mask has the shape {mask.shape} of {mask.dtype}; expected {shape} of bool: True for runs to reset."
        )
    return mask


def rows_per_run(what: str, x: Array, shape: tuple[int, ...], runs: int) -> Array:
    """Return `x` as one row for every run.

    Parameters
    ----------
    what
        Name of the argument, for messages.
    x
        Array, (n,) or (*shape, n).
    shape
        Shape of the batch.
    runs
        Number of runs.
    """
    try:
        return np.broadcast_to(x, (*shape, x.shape[-1])).reshape(runs, x.shape[-1])
    except ValueError:
        raise InputError(f"{what} has the shape {x.shape}; expected {(*shape, x.shape[-1])}, or one for all.") from None


@dataclass(frozen=True, eq=False)
class ControlledRun:
    """Observations at every sample and at the end, the inputs given after each sample, and the time spent."""

    t: Array  # (samples + 1,)
    y: Array  # (samples + 1, outputs)
    u: Array  # (samples, inputs)
    reason: str  # why the run ended early, or an empty string
    plant: float  # mean time of the plant for one sample, s
    python: float  # mean time of the function for one sample, s, including the calls

    def __repr__(self) -> str:
        share = self.python / max(self.plant + self.python, 1e-300)
        ended = f", then {self.reason}" if self.reason else ""
        return (
            f"<ControlledRun {len(self.u)} samples, {self.t[-1]:g} s{ended}: of each, {1e6 * self.plant:.3g} us in the "
            f"plant and {1e6 * self.python:.3g} us in Python ({100 * share:.0f} %)>"
        )


def run_controller(env: Stepper, function: Callable[..., Any], seconds: float) -> ControlledRun:
    """Run the stepper `env` for `seconds` with inputs from `function`; see Stepper.follow."""
    if env.batch is not None or env.xp is not np:
        raise InputError("follow: a function in Python is for one run on the CPU; expected a stepper without batch=.")
    if not callable(function):
        raise InputError(f"follow: {function!r} is not a function of (t, y).")
    check_argument_count("follow: the function", function, 2, "(t, y)")
    if not env.inputs:
        raise InputError("follow: this system has no inputs that a controller could set.")
    samples = whole_multiple("seconds", duration("seconds", seconds), env.every, "every")
    size = 8 * (samples + 1) * (1 + env._action.row + len(env.inputs))
    check_memory(f"a record of {samples} samples", size, "follow for fewer seconds")
    begin, observation = float(env.t), env.seen()
    t, y, u = np.empty(samples + 1), np.empty((samples + 1, len(observation))), np.empty((samples, len(env.inputs)))
    t[0], y[0], plant, done_samples, reason = begin, observation, 0.0, 0, ""
    start_seconds = time.perf_counter()
    for k in range(samples):
        u[k] = _checked_inputs(env, function(t[k], y[k].copy()))
        before = time.perf_counter()
        env.step(u[k], out=y[k + 1])
        plant += time.perf_counter() - before
        t[k + 1], done_samples, (reason,) = begin + (k + 1) * env.every, k + 1, env.reasons
        if reason:
            break
    spent = time.perf_counter() - start_seconds
    rows = t[: done_samples + 1], y[: done_samples + 1], u[:done_samples]
    return ControlledRun(*rows, reason, plant / done_samples, (spent - plant) / done_samples)


def _checked_inputs(env: Stepper, result: Any) -> Any:
    """Return the inputs that the function gave, all of them or by name."""
    if not isinstance(result, dict):
        values = real_array("follow: what the function gave", result)
        if values.shape not in ((), (1,), (len(env.inputs),)):
            expected = f"one number for each of {', '.join(env.inputs)}"
            raise InputError(f"follow: the function gave the shape {values.shape}; expected {expected}.")
        return values
    if set(result) != set(env.inputs):
        raise InputError(f"follow: the function gave {', '.join(map(str, result))}; expected {', '.join(env.inputs)}.")
    return [real_number(f"follow: what the function gave for {name}", result[name]) for name in env.inputs]


# Loop closures of a drawn start, which may leave loops wide open; each takes two Newton iterations.
START_CLOSURE_ROUNDS = 3
PHASES = "phases"


@dataclass(frozen=True)
class StepperTask:
    """Observation, reward, termination and start of stepped runs, as a user gives them; the functions are traced."""

    outputs: tuple[str, ...]  # columns of a record; all q and v by default (see `observed_names`)
    reward: Callable[..., Scalar] | None = None
    ends: Callable[..., Scalar] | None = None
    start: Callable[[Random], Any] | None = None
    limit: float = NEVER_TIME  # steps
    restarts: bool = False


def observed_names(dynamics: Dynamics, requested: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the observed columns: `requested`, else outputs or q and v of `dynamics`."""
    s, m = dynamics.system, dynamics.system.mechanism
    if requested is None:
        return tuple(s.outputs) or (*(f"{n}.q" for n in m.columns[0]), *(f"{n}.v" for n in m.columns[1]))
    known = ["t", *observable_units(s)]
    check_known("outputs", "column", as_tuple("outputs", requested, "names of columns"), known)
    if not len(requested):
        raise InputError("outputs is empty; expected names of columns, or no outputs= for those of the system.")
    return tuple(requested)


@dataclass(frozen=True, eq=False)
class ActionBuilder:
    """Several ticks of size h with constant inputs, and the observation, reward and status of a task after them."""

    dynamics: Dynamics
    integrator: Integrator
    program: Program
    h: float
    ticks: int
    task: StepperTask
    # Present if the program contains several coordinate partitions of closed loops.
    joined: JoinedPartitions | None = None
    dtype: str = "float64"  # floating-point type of the compiled code
    resolve: float = 0.0  # relative error that the step check of the program allows; 0 without a step check

    def action(self) -> Action:
        """Return the Action: the program of a tick and the graphs that open, close, begin and observe an action."""
        c, u = {"c": (self.kept_layout.size,)}, self.dynamics.input_shapes
        trace = self.dynamics.trace
        return Action(
            self.program, self.ticks, self.kept_layout, self.changing_size,
            open=trace("open", self._open, {**c, **u}),
            close=trace("close", self._close, {**c, "s": (self.program.size,), **u}),
            begin=trace("begin", self._begin, c),
            look=trace("look", self._observe, c),
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
            fields: dict[str, Any] = {"y": list(y), **dict.fromkeys(dynamics.measured_fields, 0.0), "bound": NEVER_TIME}
            for k in range(self.ticks):
                step = self.integrator.step(dynamics.problem(u, self.h), t + k * self.h, fields["y"], self.h, [])
                fields["y"] = dynamics.step_end_state(step, fields)[0]
            return {"y_next": fields["y"]}

        shapes: dict[str, Any] = {"y": (dynamics.size,), **dynamics.input_shapes}
        graph = inline(dynamics.trace("transition", moved, {**shapes, "t": ()}))
        timed = any(n.op == "input" and n.args[0] == "t" for n in graph.nodes)
        return graph if timed else inline(dynamics.trace("transition", moved, shapes))

    @cached_property
    def kept_layout(self) -> Layout:
        """Layout of the state that is kept between actions; fields that change with every action come first."""
        # With inputs, the integrator's memory begins again at every action, so that it is not kept.
        renewed = self.program.renew is not None and len(self.default_inputs) > 0
        memory = 0 if renewed else _field_width(self.program.layout, "memory")
        fields: dict[str, Any] = {"y": list_width(self.dynamics.size), "memory": list_width(memory)}
        part = () if self.joined is None else ("part",)
        for name in self._checked:
            place = self.program.layout.places[name]
            fields[name] = 1 if isinstance(place, int) else list_width(_field_width(self.program.layout, name))
        counter = Counter.for_dtype(self.dtype)
        fields |= dict.fromkeys((*self.dynamics.measured_fields, *part), 1) | {"n": counter}
        if self.dynamics.system.sampled:
            fields[PHASES] = list_width(len(clocks(self.dynamics.system)))
        fields |= {"status": 1, "new": 1}
        # Only random starts need the number of the run, the number of its starts and the seed.
        chance = {"run": counter, "starts": counter, "seed": list_width(SEED_NUMBERS)}
        return Layout(fields | (chance if self.task.start else {}))

    @property
    def _checked(self) -> tuple[str, ...]:
        """Fields of the step check that are kept between actions."""
        return KEPT_FIELDS if self.resolve else ()

    @property
    def changing_size(self) -> int:
        """Number of leading elements of `kept_layout` that change with every action."""
        return self.kept_layout.place("new") + 1

    @cached_property
    def default_inputs(self) -> list[float]:
        """Default inputs, in force until the caller gives others."""
        return list(self.dynamics.ports.inputs.values())

    @property
    def _any_state_dynamics(self) -> Dynamics:
        """The dynamics in a form that is valid in every state, independent of the active partition."""
        return self.dynamics if self.joined is None else self.joined.parts[0].without_partition

    # -- graphs

    def _open(self, c: Any, u: Any = ()) -> dict[str, Any]:
        fields, places = self.kept_layout.read(c), self.program.layout
        values = initial_fields(places) | {"h": self.h, "resolve": self.resolve}
        values |= {name: x for name, x in fields.items() if name in places and x != []}
        values |= {"t": fields["n"].value * self.h, "live": where(fields["status"] > 0.0, 0.0, 1.0)}
        values["fresh"] = 1.0 if self.default_inputs else any_due(fields.get(PHASES, ()))  # inputs may have changed
        return {"s": places.to_list(values)}

    def _constant_counter(self, number: float) -> CounterWords:
        """Return a constant as a counter."""
        return CounterWords(split_words(number, Counter.for_dtype(self.dtype).words).tolist())

    def _close(self, c: Any, s: Any, u: Any = ()) -> dict[str, Any]:
        old, new, task = self.kept_layout.read(c), self.program.layout.read(s), self.task
        t, y, over = new["t"], new["y"], old["status"] > 0.0
        limited: Scalar = 0.0
        if task.limit < NEVER_TIME:
            limited = where(new["n"].reached(self._constant_counter(task.limit)), float(FINISHED), 0.0)
        code = where(self._user_number("ends", task.ends, t, y, u) > 0.0, float(EVENT), limited)
        status = where(over, old["status"], where(new["status"] > 0.0, new["status"], code))
        fields = {name: new[name] if name in new and x != [] else x for name, x in old.items()}
        fields |= {"status": status, "new": where(status > 0.0, DRAWN, 0.0) if task.restarts else 0.0}
        reward = where(over, 0.0, self._user_number("reward", task.reward, t, y, u))
        return {
            "c": self.kept_layout.to_list(fields)[: self.changing_size], "row": self._observed_row(t, y, u),
            "reward": [reward], "end": [status],
        }  # fmt: skip

    def _begin(self, c: Any) -> dict[str, Any]:
        old, task = self.kept_layout.read(c), self.task
        new = old["new"] > 0.0
        fresh: dict[str, Any] = {name: 0.0 for name in ("status", "open", "noise") if name in self.kept_layout}
        fresh["n"] = self._constant_counter(0.0)
        if PHASES in self.kept_layout:
            fresh[PHASES] = first_phases(self.dynamics.system, self.h)
        y, start_counter = [float(x) for x in self.dynamics.ports.rest], {}
        if task.start:
            y = self._drawn_start(task.start, Random(old["seed"], old["run"], old["starts"]), y)
            for _ in range(START_CLOSURE_ROUNDS if self.dynamics.system.mechanism.loops else 1):
                y = self._any_state_dynamics.constrained_state(y)
            start_counter = {"starts": select(new, old["starts"].incremented(), old["starts"])}
        first = select(old["new"] > 1.5, y, old["y"])
        if self.joined is not None:
            fresh |= dict(zip(("part", "bound"), self.joined.selected_at(first, old["new"]), strict=True))
        for name in self._checked:
            fresh[name] = [0.0] * len(old[name]) if isinstance(old[name], list) else 0.0
        fields = {name: select(new, x, old[name]) for name, x in fresh.items()} | {"y": select(new, first, old["y"])}
        if _field_width(self.kept_layout, "memory"):
            problem = self.dynamics.problem(self.default_inputs, self.h)
            memory = list(self.integrator.begin(problem, 0.0, first, self.h))
            fields["memory"] = select(new, memory, old["memory"])
        return {"c": self.kept_layout.to_list(old | fields | start_counter | {"new": 0.0})}

    def _observe(self, c: Any) -> dict[str, Any]:
        fields = self.kept_layout.read(c)
        return {"row": self._observed_row(fields["n"].value * self.h, fields["y"], self.default_inputs)}

    # -- functions of the user

    def _observed_row(self, t: Scalar, y: list[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        solve = partial(self._any_state_dynamics.solved_motion, t)
        columns = StateColumns(self.dynamics.system, solve, t, y, u)
        return [t if name == "t" else columns[name] for name in self.task.outputs]

    def _user_number(
        self, name: str, function: Callable[..., Any] | None, t: Scalar, y: list[Scalar], u: Any
    ) -> Scalar:
        if function is None:
            return 0.0
        s = self.dynamics.system
        result = call_user_function(name, function, t, *s.split(y), NamedVector("u", s.inputs, u))
        if name == "ends" and isinstance(result, Node) and result.op in COMPARISONS:
            return where(result, 1.0, 0.0)
        return named_scalars(name, result, [name])[0]

    def _drawn_start(self, start: Callable[[Random], Any], random: Random, numbers: list[float]) -> list[Scalar]:
        """Return the start that the user's function draws: all elements, or some by name on top of `numbers`."""
        names = list(self.dynamics.ports.elements)
        drawn = call_user_function("start", start, random, expected="(random)")
        if isinstance(drawn, Mapping):
            check_known("start returned a value for an unknown element", "element", drawn, names)
            drawn = dict(zip(names, numbers, strict=True)) | dict(drawn)
        return named_scalars("start", drawn, names)


def _field_width(places: Layout, name: str) -> int:
    span = places.span(name)
    return int(span.stop - span.start)


LEAST_BLOCKS_PER_THREAD = 4  # smallest number of blocks per thread


class ActionCode:
    """An action as machine code for a number of lanes, shared by steppers with the same action."""

    def __init__(self, action: Action, lanes: int) -> None:
        self.action, self.lanes = action, lanes
        known: dict[int, Any] = {}
        graphs = {**action.graphs, **action.program.graphs}
        structures = tuple((name, structure(g, known)) for name, g in graphs.items())
        places = action.layout.place("new"), action.program.layout.places.get("fresh")
        key = "action", lanes, action.changing, action.restarts, places, structures
        self.library, self.workspace = loaded_library(key, lambda: text.source(action, lanes, host().lanes("float64")))
        kinds = (ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
        self.step, self.observe = (
            ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self.library.address(name)) for name in ("step", "see")
        )

    def step_on_threads(
        self, blocks: int, threads: int, settings: int, u: Array, y: Array, spaces: Sequence[Array]
    ) -> int:
        """Execute an action on several threads, each with some blocks; return nonzero if any run is alive.

        Parameters
        ----------
        blocks
            Number of blocks of lanes.
        threads
            Number of threads.
        settings
            Address of the settings of the stepper's entry module.
        u, y
            Inputs and observations of all runs.
        spaces
            Workspaces, one for each thread.
        """
        parts = min(threads, max(1, blocks // LEAST_BLOCKS_PER_THREAD))
        edges = [blocks * k // parts for k in range(parts + 1)]

        def step_part(k: int) -> int:
            return int(self.step(edges[k], edges[k + 1], settings, address(u), address(y), address(spaces[k])))

        others = [shared_pool(threads).submit(step_part, k) for k in range(1, parts)]
        try:
            alive = step_part(0)
        finally:
            wait_for_tasks(others)
        return int(max([alive, *(other.result() for other in others)]))
