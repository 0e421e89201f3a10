"""bc.gradient: gradients of a scalar of a run with respect to inputs, parameters and the initial state.

The scalar is an integral over the run, a function of its final state, or the sum of both. The discrete adjoint of the
run gives its gradient with respect to the inputs at every time, every free parameter and the whole initial state for
the cost of a few runs, however many of these there are. It is the exact derivative of the computed numbers, not an
approximation of the derivative of the continuous solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, explain_methods
from bellcrank.buffers import check_memory
from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import compile_graph
from bellcrank.emit.cpu.thread_pool import run_on_threads
from bellcrank.emit.llvm.host import host
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph, Program
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.input_histories import History
from bellcrank.sim.program.events import Event
from bellcrank.sim.program.step_limits import check_gradient_counts
from bellcrank.sim.program.system_graphs import Dynamics, Integral
from bellcrank.sim.run.adjoint_sweeps import (
    AdjointSteps,
    AdjointTask,
    GpuSweeps,
    LaneSweeps,
    SweepBackend,
    Weights,
    pull_back,
    stretch_length,
)
from bellcrank.sim.run.gpu_runs import GpuProgram
from bellcrank.sim.run.lane_blocks import CompiledProgram
from bellcrank.sim.run.simulator import PreparedSystem, system_dynamics
from bellcrank.sim.run_arguments import RunArguments, as_tuple, check_known, step_count
from bellcrank.sim.settings import (
    Plan,
    RunOptions,
    Saving,
    Solver,
    check_keywords,
    check_options,
    grouped_settings,
    make_plan,
    with_shortcuts,
)
from bellcrank.sim.system.observed_columns import StateColumns, observable_units
from bellcrank.sim.system.systems import Control, System, system

Array = np.ndarray[Any, Any]

# Coordinate partitions that are tried, and states by which each one is chosen.
MAX_PARTITIONS, MAX_PARTITION_STATES = 4, 16


@explain_methods("__init__", "run")
class Adjoint(PreparedSystem):
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
        check_keywords(Adjoint, parts, system)
        short = {"integrator": integrator, "method": method, "form": form}
        groups = grouped_settings(short, solver, Saving(keep="final"), where)
        super().__init__(system(mechanism, **parts), groups)
        if len(as_tuple("events", events, "events")):
            raise InputError(
                "events: a run with events has no gradient, because they change the state, or end the run, at times "
                "that themselves depend on all inputs. Replace them by continuous forces, and leave events= out."
            )
        if latches := self.system.commanded_latches:
            raise InputError(
                f'latch "{latches[0].name}" has a command, which switches it at once: such a run has no gradient. '
                "Leave the command out, and let the latch stay as it starts."
            )
        if running is None and final is None:
            raise InputError("there is no scalar to differentiate: give running=..., final=..., or both.")
        self.system, self._running = with_cost_column(self.system, "running", running)
        self.system, self._final = with_cost_column(self.system, "final", final)
        integrals = (Integral(self._running),) if self._running else ()
        self.dynamics = system_dynamics(self.system, self.solver, (), integrals)
        self.steps = self._adjoint_steps(self.dynamics)

    def _adjoint_steps(self, dynamics: Dynamics) -> AdjointSteps:
        """Return the steps for `dynamics`: with closed loops, those of one coordinate partition."""
        return self._cached(dynamics, lambda: AdjointSteps(dynamics, self.integrator))

    @property
    def end(self) -> Graph:
        """(t, y, u, p, w_value) -> the scalar at the end of a run and, for w_value = 1, its gradient there."""
        return self._end(self.dynamics)

    def _end(self, dynamics: Dynamics) -> Graph:
        def valued(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            total = y[dynamics.plain_size - 1] if self._running else 0.0
            seen = StateColumns(self.system, partial(dynamics.solved_motion, t), t, list(y), u)
            return {"value": total + seen[self._final] if self._final else total}

        plain = dynamics.trace("end", valued, dynamics.arguments)
        pullback = plain.vjp([name for name in ("y", "u", "p") if name in plain.inputs])
        return Graph(f"{plain.name}.gradient", pullback.inputs, {**plain.outputs, **pullback.outputs}, plain.tape)

    def run(
        self,
        seconds: float,
        q0: Any = None,
        v0: Any = None,
        x0: Any = None,
        *,
        inputs: Mapping[str, Any] | History | None = None,
        input_step: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        batch: int | None = None,
        checkpoints: int | None = None,
        **settings: Unpack[RunOptions],
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
        **settings
            Settings overridden for this run: step (1 ms by default), target, dtype and threads. Steps are fixed, so
            tolerance must be left out.

        Returns
        -------
        Gradient
            The scalar and its derivatives.

        Raises
        ------
        InputError
            If an argument is invalid, or if the integrator would choose its own steps.
        """
        check_options(settings, ("every", "keep", "max_steps"))
        solver, where = with_shortcuts(self.solver, settings), with_shortcuts(self.where, settings)
        plan = make_plan(seconds, self.integrator, 0, solver, self.saving, where)
        if plan.adaptive:
            raise InputError(
                f"a gradient needs fixed steps, and {self.integrator.name} would choose its own by an error estimate: "
                "give step=... and no tolerance."
            )
        arguments = RunArguments(self.system, q0, v0, x0, inputs, input_step, parameters, batch)
        lines = arguments.table.shape[1]
        check_gradient_counts(self.system, plan.h, plan.where.dtype, plan.steps, arguments.hold, lines)
        backend, line_steps = self._backend(plan.where, arguments.runs), step_count(arguments.hold, plan.h)
        size = 8 * arguments.runs * (2 * self.dynamics.size + arguments.table[0].size + arguments.parameters.shape[-1])
        check_memory(f"a gradient of {arguments.runs} runs", size, "take a smaller batch")
        closure, y = self.dynamics.closure, self._checked_states(plan, arguments, parameters)
        states, free = y, arguments.parameters  # those that the coordinate partition must suit
        for _ in range(MAX_PARTITIONS):
            steps = self._adjoint_steps(closure.common_dynamics(states, free))
            stretch = stretch_length(plan.steps, backend.note_capacity(steps.note_layout.size), checkpoints)
            task = AdjointTask(y, arguments.table, arguments.parameters, plan.h, plan.steps, line_steps, stretch)
            weights = self._all_weights(steps, backend, task, plan)
            stuck = np.flatnonzero(weights.trouble > 0.5)[:MAX_PARTITION_STATES]
            if not len(stuck):
                break
            states = np.concatenate([states[:MAX_PARTITION_STATES], weights.stuck[stuck]])
            free = np.concatenate([free[:MAX_PARTITION_STATES], arguments.parameters[stuck]])
        weights = self._independent_weights(steps, weights, task)
        has_lines = input_step is not None or isinstance(inputs, History)
        return self._named_gradient(weights, arguments, has_lines, steps)

    def _all_weights(self, steps: AdjointSteps, backend: SweepBackend, task: AdjointTask, plan: Plan) -> Weights:
        """Return the weights of all runs, computed in groups of runs."""

        weigh = partial(self._final_weights, steps.dynamics, plan.seconds)

        def some(runs: Array) -> Weights:
            return pull_back(steps, backend, task.subset(runs), weigh)

        shares, threads = task.run_groups(backend.concurrent_runs(task, steps.note_layout.size)), plan.where.threads
        if threads == 1 or len(shares) == 1 or plan.where.target == "cuda":
            groups = list(map(some, shares))
        else:  # the first group compiles and caches what all groups share
            groups = [some(shares[0]), *run_on_threads(lambda k: some(shares[k + 1]), len(shares) - 1, threads)]
        columns = ([getattr(x, f.name) for x in groups] for f in fields(Weights))
        return Weights(*((x[0] if len(x) == 1 else np.concatenate(x))[: task.runs] for x in columns))

    def _independent_weights(self, steps: AdjointSteps, weights: Weights, task: AdjointTask) -> Weights:
        """Return the weights of the independent coordinates of a start; dependent ones have weight zero."""
        if not steps.has_loops:
            return weights
        is_finite = np.isfinite(weights.y).all(axis=1, keepdims=True)
        values = {"y": task.y, "p": task.parameters, "w_y": np.where(is_finite, weights.y, 0.0)}
        pullback = self._cached(("start", steps), lambda: compile_graph(steps.start_pullback))
        pulled_back = pullback(**{name: values[name] for name in steps.start_pullback.inputs})
        pulled_back = pulled_back if isinstance(pulled_back, Mapping) else {"g_y": pulled_back}
        return replace(weights, y=pulled_back["g_y"], p=weights.p + pulled_back.get("g_p", 0.0))

    def _backend(self, where: Where, runs: int) -> SweepBackend:
        if where.target == "cuda":
            return GpuSweeps(partial(self._on_gpu, where.dtype), where.dtype, runs)
        lanes = 1 if runs == 1 else host().lanes("float64")
        return LaneSweeps(partial(self._compiled, lanes), lanes, where.threads)

    def _on_gpu(self, dtype: str, program: Program) -> GpuProgram:
        return self._cached((program, dtype), lambda: GpuProgram(program, dtype))

    def _compiled(self, lanes: int, program: Program) -> CompiledProgram:
        return self._cached((program, lanes), lambda: CompiledProgram(program, lanes))

    def _final_weights(self, dynamics: Dynamics, t: float, y: Array, u: Array, p: Array) -> Weights:
        lost = np.asarray(~np.isfinite(y).all(axis=1))  # a kernel does not accept these
        values = {"t": t, "y": np.where(lost[:, None], 0.0, y), "u": u, "p": p, "w_value": 1.0}
        end = self._cached(("end", dynamics), lambda: compile_graph(self._end(dynamics)))
        results = end(**{name: values[name] for name in end.graph.inputs})
        nothing = np.zeros((len(y), 0))
        value = np.where(lost, np.nan, results["value"])
        by_p, by_u = (results.get(name, nothing) for name in ("g_p", "g_u"))
        return Weights(value, results["g_y"], by_p, by_u, 0.0 * value, nothing)

    def _named_gradient(
        self, weights: Weights, arguments: RunArguments, sampled: bool, steps: AdjointSteps
    ) -> Gradient:
        """Return the gradient by names; of a run that diverged, all of it is NaN."""
        lost = ~np.isfinite(weights.value)
        if lost.any():
            for x in (weights.y, weights.p, weights.u):
                x[lost] = np.nan
            run = f"run {int(np.flatnonzero(lost)[0])} of {lost.size}" if lost.size > 1 else "the run"
            why = "diverged: its scalar is not finite, and its gradient NaN"
            help_ = "bellcrank.simulate reports the reason; a smaller step may help."
            if weights.trouble[lost][0] > 0.5:
                why = "passes a region where no single choice of independent coordinates works: its gradient is NaN"
                help_ = 'form="projected" needs no such choice.'
            warn(f"{run} {why}. {help_}")
        m, shape = self.system.mechanism, arguments.shape
        q, v, x = np.split(weights.y[:, : self.system.size].reshape(*shape, -1), [m.nq, m.nq + m.nv], axis=-1)
        table = weights.u.reshape(*shape, *weights.u.shape[1:])
        by_input = {name: table[..., k] if sampled else table[..., 0, k] for k, name in enumerate(self.system.inputs)}
        by_number = {name: weights.p[:, k].reshape(shape) for k, name in enumerate(self.system.parameters)}

        independent = tuple(m.columns[1][i] for i in steps.dynamics.independent)
        return Gradient(weights.value.reshape(shape), by_input, q, v, x, by_number, independent)


@explain_argument_errors
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
    adjoint = Adjoint(mechanism, running, final, integrator, method, form, events, solver, where, control=control)
    return adjoint.run(seconds, q0, v0, x0, **settings)


Cost = str | Callable[..., Scalar] | None


@dataclass(frozen=True, eq=False)
class Gradient:
    """A scalar of each run and its derivatives; leading axes are those of the batch.

    Parameters
    ----------
    value : ndarray
        The scalar.
    inputs : mapping of str to ndarray
        Derivatives by inputs: (..., lines) for samples, else (...).
    q0, v0, x0 : ndarray
        Derivatives by the initial state, in its coordinates. With closed loops, dependent joints have zeros.
    parameters : mapping of str to ndarray
        Derivatives by free parameters.
    independent : tuple of str
        Joints that determine an initial state; the others follow them, also if a parameter changes.
    """

    value: Array
    inputs: Mapping[str, Array]
    q0: Array
    v0: Array
    x0: Array
    parameters: Mapping[str, Array]
    independent: tuple[str, ...]

    def __repr__(self) -> str:
        counts = {"inputs": len(self.inputs), "parameters": len(self.parameters)}
        shown = ", ".join(f"{n} {what}" for what, n in counts.items())
        return f"<Gradient of {self.value.size} runs: {shown}, {self.q0.shape[-1]} positions at the start>"


def with_cost_column(plant: System, what: str, cost: Cost) -> tuple[System, str]:
    """Return a system with the scalar as a column, and the name of the column; an empty name without a scalar.

    Parameters
    ----------
    plant
        System.
    what
        Name of the argument, for messages and for the column.
    cost
        None, the name of a column, or a function of (t, q, v, x, u).
    """
    if cost is None:
        return plant, ""
    if isinstance(cost, str):
        check_known(what, "column", [cost], list(observable_units(plant)))
        return plant, cost
    if not callable(cost):
        raise InputError(f"{what} is {cost!r}; expected a function of (t, q, v, x, u), or the name of a column.")
    while what in plant.outputs:
        what += "'"
    return replace(plant, outputs={**plant.outputs, what: cost}), what
