"""bc.gradient: gradients of a scalar of a run with respect to inputs, parameters and the initial state.

The scalar is an integral over the run, a function of its final state, or the sum of both. The discrete adjoint of the
run gives its gradient with respect to the inputs at every time, every free parameter and the whole initial state for
the cost of a few runs, however many of these there are. It is the exact derivative of the computed numbers, not an
approximation of the derivative of the continuous solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.build.stages import Where
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.pool import shared
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph, Program
from bellcrank.integrate import integrator as integrator_of
from bellcrank.misfits import explained, explained_class
from bellcrank.model import Mechanism
from bellcrank.room import check_room
from bellcrank.scalar import Scalar
from bellcrank.sim.adjoint_gpu import GpuThreads
from bellcrank.sim.adjoint_steps import AdjointSteps
from bellcrank.sim.adjoint_sweeps import Lanes, Place, Task, Weights, stretch_of, taken_back
from bellcrank.sim.amounts import steps_of
from bellcrank.sim.arguments import Given, listed
from bellcrank.sim.columns import Columns
from bellcrank.sim.dynamics import Dynamics, Integral
from bellcrank.sim.events import Event
from bellcrank.sim.gpu import GpuProgram
from bellcrank.sim.looped_dynamics import looped_dynamics
from bellcrank.sim.run_gradient import Cost, Gradient, watched
from bellcrank.sim.runner import Compiled
from bellcrank.sim.sampling import checked as check_samples
from bellcrank.sim.settings import Plan, Saving, Solver, changed, grouped, planned
from bellcrank.sim.single_precision import check_gradient_counts
from bellcrank.sim.stiff_damping import check_damping
from bellcrank.sim.stiff_elements import check_steps
from bellcrank.sim.systems import Control, System, system
from bellcrank.sim.tree_dynamics import tree_dynamics

Array = np.ndarray[Any, Any]
Made = TypeVar("Made")
CHOICES, MANY = 4, 16  # coordinate partitions that are tried, and states by which each one is chosen


@explained_class("__init__", "run")
class Adjoint:
    """Gradients of a scalar of the runs of one system; compiled on first use, for any number of runs.

    Parameters
    ----------
    mechanism : Mechanism or System
        The plant.
    running : callable or str, optional
        The integrand of an integral over the run: a function of (t, q, v, x, u), as outputs of a system are, or the
        name of a column ("elbow.q", "energy").
    final : callable or str, optional
        The term that is added at the end of the run, in the same form.
    integrator, method, form : str, optional
        As in `bellcrank.simulate`.
    events : sequence of Event, optional
        Must be empty: a run with events has no gradient.
    solver, where : optional
        As in `bellcrank.simulate`.
    **parts
        Parts of the system, as in `bellcrank.system`.
    """

    def __init__(
        self,
        mechanism: Mechanism | System,
        running: Cost = None,
        final: Cost = None,
        integrator: str | None = None,
        method: str | None = None,
        form: str | None = None,
        events: Sequence[Event] = (),
        solver: Solver | None = None,
        where: Where | None = None,
        **parts: Any,
    ) -> None:
        short = {"integrator": integrator, "method": method, "form": form}
        self.solver = grouped(Solver, "solver", solver, short)
        self.where = grouped(Where, "where", where, {})
        plant = system(mechanism, **parts)
        if len(listed("events", events, "events")):
            raise InputError(
                "events: a run with events has no gradient, because they change the state, or end the run, at times "
                "that themselves depend on all inputs. Replace them by continuous forces, and leave events= out."
            )
        if running is None and final is None:
            raise InputError("there is no scalar to differentiate: give running=..., final=..., or both.")
        self.system, self._running = watched(plant, "running", running)
        self.system, self._final = watched(self.system, "final", final)
        self.integrator = integrator_of(self.solver.integrator)
        integrals = (Integral(self._running),) if self._running else ()
        made: Callable[..., Dynamics] = looped_dynamics if self.system.mechanism.loops else tree_dynamics
        self.dynamics = made(self.system, self.solver, (), integrals)
        self._made: dict[Any, Any] = {}
        self.steps = self._by(self.dynamics)

    def _by(self, dynamics: Dynamics) -> AdjointSteps:
        """Return the steps for `dynamics`: with closed loops, those of one coordinate partition."""
        return self._once(dynamics, lambda: AdjointSteps(dynamics, self.integrator))

    @property
    def end(self) -> Graph:
        """(t, y, u, p, w_value) -> the scalar at the end of a run and, for w_value = 1, its gradient there."""
        return self._end(self.dynamics)

    def _end(self, by: Dynamics) -> Graph:
        def valued(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            total = y[by.own - 1] if self._running else 0.0
            seen = Columns(self.system, lambda y, tau: by.moved(t, y, tau)[0], t, list(y), u)
            return {"value": total + seen[self._final] if self._final else total}

        plain = by.trace("end", valued, by.arguments)
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
        """Return the gradient of the scalar of each run.

        Parameters
        ----------
        seconds : float
            Duration of a run, s.
        q0, v0, x0 : array_like or mapping, optional
            Initial positions, velocities and states of actuators; leading axes make a batch.
        inputs : mapping, optional
            Inputs by name.
        input_step : float, optional
            Time that each line of the inputs holds, s.
        parameters : mapping, optional
            Values of free parameters by name.
        batch : int, optional
            Number of runs, where no array gives it.
        checkpoints : int, optional
            Number of checkpoints of a run; by default every step is kept if the memory allows it.
        step : float, optional
            Length of a step, s; 1 ms by default.
        tolerance : float, optional
            Must be left out: steps are fixed.
        target, dtype, threads : optional
            As in `bellcrank.simulate`.

        Returns
        -------
        Gradient
            The scalar and its derivatives.

        Raises
        ------
        InputError
            If an argument is invalid, or if the integrator would choose its own steps.
        """
        solver = changed(self.solver, {"step": step, "tolerance": tolerance})
        where = changed(self.where, {"target": target, "dtype": dtype, "threads": threads})
        plan = planned(seconds, self.integrator, 0, solver, Saving(keep="final"), where)
        if plan.adaptive:
            raise InputError(
                f"a gradient needs fixed steps, and {self.integrator.name} would choose its own by an error estimate: "
                "give step=... and no tolerance."
            )
        given = Given(self.system, q0, v0, x0, inputs, input_step, parameters, batch)
        given.check_inputs(plan.h, False)
        check_samples(self.system, plan.h, False)
        check_gradient_counts(self.system, plan.h, plan.where.dtype, plan.steps, given.hold, given.table.shape[1])
        check_steps(self.system, self.integrator, plan.h, given.y[0])
        check_damping(self.system, self.dynamics.implicit, self.integrator, plan.h)
        on, held = self._place(plan.where, given.runs), steps_of(given.hold, plan.h)
        size = 8 * given.runs * (2 * self.dynamics.size + given.table[0].size + given.parameters.shape[-1])
        check_room(f"a gradient of {given.runs} runs", size, "take a smaller batch")
        closure = self.dynamics.closure
        y = self.dynamics.started(closure.checked(given.y, given.parameters))
        seen, free = y, given.parameters  # states that the coordinate partition must suit
        for _ in range(CHOICES):
            steps = self._by(closure.common(seen, free))
            stretch = stretch_of(plan.steps, on.room(steps.note.size), checkpoints)
            task = Task(y, given.table, given.parameters, plan.h, plan.steps, held, stretch)
            found = self._taken_back(steps, on, task, plan)
            stuck = np.flatnonzero(found.trouble > 0.5)[:MANY]
            if not len(stuck):
                break
            seen = np.concatenate([seen[:MANY], found.stuck[stuck]])
            free = np.concatenate([free[:MANY], given.parameters[stuck]])
        return self._named(self._determined(steps, found, task), given, input_step is not None, steps)

    def _taken_back(self, steps: AdjointSteps, on: Place, task: Task, plan: Plan) -> Weights:
        """Return the weights of all runs, computed in groups of runs."""

        def some(runs: Array) -> Weights:
            return taken_back(steps, on, task.part(runs), partial(self._weighed, steps.dynamics, plan.seconds))

        shares, threads = task.shares(on.together(task, steps.note.size)), plan.where.threads
        if threads == 1 or len(shares) == 1 or plan.where.target == "cuda":
            found = list(map(some, shares))
        else:  # the first group compiles and caches what all groups share
            found = [some(shares[0]), *shared(lambda k: some(shares[k + 1]), len(shares) - 1, threads)]
        if len(shares) == 1:
            return Weights(*(getattr(found[0], f.name)[: task.runs] for f in fields(Weights)))
        whole = (np.concatenate([getattr(x, f.name) for x in found])[: task.runs] for f in fields(Weights))
        return Weights(*whole)

    def _determined(self, steps: AdjointSteps, found: Weights, task: Task) -> Weights:
        """Return the weights of the independent coordinates of a start; dependent ones have weight zero."""
        if not steps.loops:
            return found
        sound = np.isfinite(found.y).all(axis=1, keepdims=True)
        given = {"y": task.y, "p": task.parameters, "w_y": np.where(sound, found.y, 0.0)}
        back = self._once(("start", steps), lambda: of_graph(steps.start))
        told = back(**{name: given[name] for name in steps.start.inputs})
        told = told if isinstance(told, Mapping) else {"g_y": told}
        return replace(found, y=told["g_y"], p=found.p + told.get("g_p", 0.0))

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

    def _weighed(self, by: Dynamics, t: float, y: Array, u: Array, p: Array) -> Weights:
        lost = np.asarray(~np.isfinite(y).all(axis=1))  # a kernel does not accept these
        given = {"t": t, "y": np.where(lost[:, None], 0.0, y), "u": u, "p": p, "w_value": 1.0}
        end = self._once(("end", by), lambda: of_graph(self._end(by)))
        found = end(**{name: given[name] for name in end.graph.inputs})
        nothing = np.zeros((len(y), 0))
        value, by_p, by_u = np.where(lost, np.nan, found["value"]), found.get("g_p", nothing), found.get("g_u", nothing)
        return Weights(value, found["g_y"], by_p, by_u, 0.0 * value, nothing)

    def _named(self, found: Weights, given: Given, sampled: bool, steps: AdjointSteps) -> Gradient:
        """Return the gradient by names; of a run that diverged, all of it is NaN."""
        lost = ~np.isfinite(found.value)
        if lost.any():
            for weights in (found.y, found.p, found.u):
                weights[lost] = np.nan
            which = f"run {int(np.flatnonzero(lost)[0])} of {lost.size}" if lost.size > 1 else "the run"
            why = "diverged: its scalar is not finite, and its gradient NaN"
            help_ = "bellcrank.simulate reports the reason; a smaller step may help."
            if found.trouble[lost][0] > 0.5:
                why = "passes a region where no single choice of independent coordinates works: its gradient is NaN"
                help_ = 'form="projected" needs no such choice.'
            warn(f"{which} {why}. {help_}")
        m, shape = self.system.mechanism, given.shape
        q, v, x = np.split(found.y[:, : self.system.size].reshape(*shape, -1), [m.nq, m.nq + m.nv], axis=-1)
        table = found.u.reshape(*shape, *found.u.shape[1:])
        by_input = {name: table[..., k] if sampled else table[..., 0, k] for k, name in enumerate(self.system.inputs)}
        by_number = {name: found.p[:, k].reshape(shape) for k, name in enumerate(self.system.parameters)}
        names = m.columns[1]
        return Gradient(
            found.value.reshape(shape),
            by_input,
            q,
            v,
            x,
            by_number,
            tuple(names[i] for i in steps.dynamics.independent),
        )


@explained
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
    form: str | None = None,
    events: Sequence[Event] = (),
    solver: Solver | None = None,
    where: Where | None = None,
    **settings: Any,
) -> Gradient:
    """Return a scalar of a run and its gradient with respect to inputs, free parameters and the initial state.

        found = bc.gradient(plant, 1.0, running=lambda t, q, v, x, u: u["torque"] ** 2, final="tip.z",
                            inputs={"torque": torques}, input_step=0.01)
        found.value, found.inputs["torque"], found.q0, found.parameters["boom.mass"]

    The cost is that of two to four runs, however many inputs there are. `bellcrank.Adjoint` does the same for many runs
    and is compiled once. See docs/derivatives.md.

    Parameters
    ----------
    mechanism : Mechanism or System
        The plant.
    seconds : float
        Duration of a run, s.
    q0, v0, x0 : array_like or mapping, optional
        Initial positions, velocities and states of actuators; leading axes make a batch.
    running : callable or str, optional
        The integrand of an integral over the run: a function of (t, q, v, x, u) or the name of a column ("elbow.q",
        "energy", an output of the system): running="effort" is the summary integral(effort).
    final : callable or str, optional
        The term that is added at the end of the run, in the same form.
    control : callable, optional
        As in `bellcrank.simulate`.
    integrator, method, form : str, optional
        As in `bellcrank.simulate`; form is that of closed loops.
    events : sequence of Event, optional
        Must be empty: a run with events has no gradient.
    solver, where : optional
        As in `bellcrank.simulate`.
    **settings
        inputs, input_step, parameters, batch, step, target, dtype and threads, as in `bellcrank.simulate`, and
        checkpoints: the number of states of a run that are kept; the steps between them are computed again in the
        backward pass. By default all steps are kept if the memory allows it. The result is the same.

    Returns
    -------
    Gradient
        The value of the scalar and its derivatives, by name.

    Raises
    ------
    InputError
        If an argument is invalid. Steps are fixed (1 ms without step=), so tolerance= is not accepted.
    """
    parts: dict[str, Any] = {"control": control} if control is not None else {}
    made = Adjoint(mechanism, running, final, integrator, method, form, events, solver, where, **parts)
    return made.run(seconds, q0, v0, x0, **settings)
