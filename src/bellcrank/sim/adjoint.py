"""bc.gradient: how fast a scalar of a run changes with all that the run was given.

The scalar is an integral over the run, something of its end, or both. By the discrete adjoint of the run, its gradient
with respect to every input at every time, every free number and the whole start costs a few runs, however many of those
there are; and it is that of the numbers that the run computes, not of what they approximate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.targets import Where
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.pool import shared
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Program
from bellcrank.integrate import integrator as integrator_of
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.adjoint_gpu import GpuThreads
from bellcrank.sim.adjoint_steps import AdjointSteps
from bellcrank.sim.adjoint_sweeps import Lanes, Place, Task, Weights, stretch_of, taken_back
from bellcrank.sim.arguments import steps_of
from bellcrank.sim.columns import Columns, units
from bellcrank.sim.dynamics import Integral
from bellcrank.sim.events import Event
from bellcrank.sim.gpu import GpuProgram
from bellcrank.sim.initial import Given
from bellcrank.sim.memory import check_room
from bellcrank.sim.plan import planned
from bellcrank.sim.runner import Compiled
from bellcrank.sim.settings import Saving, Solver, changed, grouped
from bellcrank.sim.systems import Control, System, system
from bellcrank.sim.tree_dynamics import tree_dynamics

Array = np.ndarray[Any, Any]
Made = TypeVar("Made")
Cost = str | Callable[..., Scalar] | None


@dataclass(frozen=True, eq=False)
class Gradient:
    """A scalar of each run, and how fast it changes with all that the run was given; leading axes are those of runs.

    inputs: by name, (..., lines) where samples were given, else (...). q0, v0, x0: the start, in the coordinates of the
    state. parameters: by name.
    """

    value: Array
    inputs: Mapping[str, Array]
    q0: Array
    v0: Array
    x0: Array
    parameters: Mapping[str, Array]

    def __repr__(self) -> str:
        found = {"inputs": len(self.inputs), "parameters": len(self.parameters)}
        shown = ", ".join(f"{n} {what}" for what, n in found.items())
        return f"<Gradient of {self.value.size} runs: {shown}, {self.q0.shape[-1]} positions at the start>"


class Adjoint:
    """A system with a scalar of its runs, compiled on first use, for gradients of as many runs as asked.

    running: what is integrated over a run; final: what is added at its end. Each is a function of (t, q, v, x, u), as
    outputs of a system are, or the name of a column ("elbow.q", "energy").
    """

    def __init__(
        self,
        mechanism: Mechanism | System,
        running: Cost = None,
        final: Cost = None,
        integrator: str | None = None,
        method: str | None = None,
        events: Sequence[Event] = (),
        solver: Solver | None = None,
        where: Where | None = None,
        **parts: Any,
    ) -> None:
        self.solver = grouped(Solver, "solver", solver, {"integrator": integrator, "method": method})
        self.where = grouped(Where, "where", where, {})
        plant = system(mechanism, **parts)
        if events:
            raise InputError(
                "events: there is no gradient of a run with events, which change the state, or the end, at times that "
                "change with everything else. Describe what happens by forces that are continuous, and leave them out."
            )
        if plant.mechanism.loops:
            raise InputError(
                f'"{plant.mechanism.name}" has closed loops, and of runs of those there is no gradient: which of their '
                "coordinates depend on which changes on the way, and where one element of the start moves, others must "
                "move along, and nobody says which. Run a batch with inputs that differ a little, and take differences."
            )
        if plant.sampled:
            raise InputError(
                "of a run with sampled controllers there is no gradient yet: they change the state between steps. Give "
                "the plant a control that is continuous, or inputs in its place."
            )
        if running is None and final is None:
            raise InputError("there is no scalar to differentiate: give running=..., final=..., or both.")
        self.system, self._running = _watched(plant, "running", running)
        self.system, self._final = _watched(self.system, "final", final)
        self.integrator = integrator_of(self.solver.integrator)
        integrals = (Integral(self._running),) if self._running else ()
        self.dynamics = tree_dynamics(self.system, self.solver, (), integrals)
        self.steps = AdjointSteps(self.dynamics, self.integrator)
        self._made: dict[Any, Any] = {}

    @cached_property
    def end(self) -> Graph:
        """(t, y, u, p, w_value) -> the scalar where a run ends and, for w_value = 1, its gradient there."""

        def valued(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            total = y[self.dynamics.own - 1] if self._running else 0.0
            seen = Columns(self.system, self.dynamics.accelerations, t, list(y), u)
            return {"value": total + seen[self._final] if self._final else total}

        plain = self.dynamics.trace("end", valued, self.dynamics.arguments)
        back = plain.vjp([name for name in ("y", "u", "p") if name in plain.inputs])
        return Graph(f"{plain.name}.gradient", back.inputs, {**plain.outputs, **back.outputs}, plain.tape)

    def run(
        self,
        seconds: float,
        q0: Any = None,
        v0: Any = None,
        x0: Any = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        input_step: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        batch: int | None = None,
        checkpoints: int | None = None,
        step: float | None = None,
        tolerance: float | None = None,
        target: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> Gradient:
        """See bellcrank.gradient."""
        solver = changed(self.solver, {"step": step, "tolerance": tolerance})
        where = changed(self.where, {"target": target, "dtype": dtype, "threads": threads})
        plan = planned(seconds, self.integrator, 0, solver, Saving(keep="final"), where)
        if plan.adaptive:
            raise InputError(
                f"a gradient needs fixed steps, and {self.integrator.name} would choose its own, by looking at the "
                "numbers: give step=... and no tolerance."
            )
        given = Given(self.system, q0, v0, x0, inputs, input_step, parameters, batch)
        given.check_inputs(plan.h, False)
        on, note = self._place(plan.where, given.runs), self.steps.note.size
        stretch, held = stretch_of(plan.steps, on.room(note), checkpoints), steps_of(given.hold, plan.h)
        size = 8 * given.runs * (2 * self.dynamics.size + given.table[0].size + given.parameters.shape[-1])
        check_room(f"a gradient of {given.runs} runs", size, "take a smaller batch")
        y = self.dynamics.started(given.y)
        task = Task(y, given.table, given.parameters, plan.h, plan.steps, held, stretch)

        def some(runs: Array) -> Weights:
            return taken_back(self.steps, on, task.part(runs), partial(self._weighed, plan.seconds))

        shares, threads = task.shares(on.together(task, note)), plan.where.threads
        if threads == 1 or len(shares) == 1 or plan.where.target == "cuda":
            found = list(map(some, shares))
        else:  # the first one makes all that is made once
            found = [some(shares[0]), *shared(lambda k: some(shares[k + 1]), len(shares) - 1, threads)]
        whole = (np.concatenate([getattr(x, f.name) for x in found])[: task.runs] for f in fields(Weights))
        return self._named(Weights(*whole), given, input_step is not None)

    def _place(self, where: Where, runs: int) -> Place:
        if where.target == "cuda":
            return GpuThreads(partial(self._on_gpu, where.dtype), where.dtype, runs)
        return Lanes(self._compiled, 1 if runs == 1 else host().lanes("float64"), where.threads)

    def _on_gpu(self, dtype: str, program: Program) -> GpuProgram:
        return self._once((program, dtype), lambda: GpuProgram(program, dtype))

    def _compiled(self, program: Program, lanes: int) -> Compiled:
        return self._once((program, lanes), lambda: Compiled(program, lanes).ready())

    def _once(self, key: Any, make: Callable[[], Made]) -> Made:
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
        return found

    def _weighed(self, t: float, y: Array, u: Array, p: Array) -> Weights:
        lost = np.asarray(~np.isfinite(y).all(axis=1))  # which a kernel would not take
        given = {"t": t, "y": np.where(lost[:, None], 0.0, y), "u": u, "p": p, "w_value": 1.0}
        found = self._once("end", lambda: of_graph(self.end))(**{name: given[name] for name in self.end.inputs})
        nothing = np.zeros((len(y), 0))
        return Weights(
            np.where(lost, np.nan, found["value"]), found["g_y"], found.get("g_p", nothing), found.get("g_u", nothing)
        )

    def _named(self, found: Weights, given: Given, sampled: bool) -> Gradient:
        """The gradient as people see it. Of a run that ran away, all of it is not a number."""
        lost = ~np.isfinite(found.value)
        if lost.any():
            for weights in (found.y, found.p, found.u):
                weights[lost] = np.nan
            which = f"run {int(np.flatnonzero(lost)[0])} of {lost.size}" if lost.size > 1 else "the run"
            warnings.warn(
                f"{which} ran away: its scalar is not finite, and its gradient NaN. bellcrank.simulate says why; a "
                "smaller step may help.", RuntimeWarning, stacklevel=4,
            )  # fmt: skip
        m, shape = self.system.mechanism, given.shape
        q, v, x = np.split(found.y[:, : self.system.size].reshape(*shape, -1), [m.nq, m.nq + m.nv], axis=-1)
        table = found.u.reshape(*shape, *found.u.shape[1:])
        by_input = {name: table[..., k] if sampled else table[..., 0, k] for k, name in enumerate(self.system.inputs)}
        by_number = {name: found.p[:, k].reshape(shape) for k, name in enumerate(self.system.parameters)}
        return Gradient(found.value.reshape(shape), by_input, q, v, x, by_number)


def _watched(plant: System, what: str, cost: Cost) -> tuple[System, str]:
    """A scalar as a column of a system, and its name; none where there is no such scalar."""
    if cost is None:
        return plant, ""
    if isinstance(cost, str):
        known = list(units(plant))
        if cost not in known:
            raise InputError(f"{what}: {unknown('column', cost, known)}")
        return plant, cost
    if not callable(cost):
        raise InputError(f"{what} is {cost!r}; expected a function of (t, q, v, x, u), or the name of a column.")
    while what in plant.outputs:
        what += "'"
    return replace(plant, outputs={**plant.outputs, what: cost}), what


def gradient(
    mechanism: Mechanism | System,
    seconds: float,
    q0: Any = None,
    v0: Any = None,
    x0: Any = None,
    *,
    running: Cost = None,
    final: Cost = None,
    control: Control | None = None,
    integrator: str | None = None,
    method: str | None = None,
    events: Sequence[Event] = (),
    solver: Solver | None = None,
    where: Where | None = None,
    **settings: Any,
) -> Gradient:
    """A scalar of a run, and how fast it changes with every input at every time, every free number and the start.

        found = bc.gradient(plant, 1.0, running=lambda t, q, v, x, u: u["torque"] ** 2, final="tip.z",
                            inputs={"torque": torques}, input_step=0.01)
        found.value, found.inputs["torque"], found.q0, found.parameters["boom.mass"]

    running: what is integrated over the run; final: what is added at its end. Each is a function of (t, q, v, x, u) or
    the name of a column ("elbow.q", "energy", an output of the system): running="effort" is the summary
    integral(effort). Start, control, inputs, input_step, parameters, batch, step, target, dtype, threads, solver and
    where are those of bc.simulate; leading axes make a batch. Steps are fixed: without step= they are 1 ms.
    checkpoints: so many states are kept of a run, and the steps between are done again on the way back; unless told,
    all steps are kept where the memory allows. The result is the same.

    It costs two to four runs, however many inputs there are. bc.Adjoint is the same for many runs: compiled once. All
    of it: docs/derivatives.md.
    """
    parts: dict[str, Any] = {"control": control} if control is not None else {}
    made = Adjoint(mechanism, running, final, integrator, method, events, solver, where, **parts)
    return made.run(seconds, q0, v0, x0, **settings)
