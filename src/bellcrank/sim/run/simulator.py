"""bc.simulate: simulation of a system, from its start and settings to a Record.

A Simulator is compiled once and runs any number of times, with other starts, steps, inputs and parameters.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, explain_methods
from bellcrank.build.compilation import Where
from bellcrank.emit.cpu.costs import costs, critical_path_seconds, parts
from bellcrank.emit.llvm.host import host
from bellcrank.errors import InputError, warn_deprecated
from bellcrank.graph import Graph, Program
from bellcrank.graph.inline import inline_small
from bellcrank.integrate import integrator as integrator_of
from bellcrank.model import Mechanism
from bellcrank.progress import progress_bar, progress_message
from bellcrank.record import Record
from bellcrank.sim.input_histories import History
from bellcrank.sim.program.adaptive_steps import AdaptiveSteps
from bellcrank.sim.program.events import Event, checked_events
from bellcrank.sim.program.fixed_steps import FixedSteps
from bellcrank.sim.program.implicit_forces import has_resistance
from bellcrank.sim.program.step_check import StepCheck
from bellcrank.sim.program.step_limits import check_counts, check_damping, check_steps
from bellcrank.sim.program.summary import EMPTY_SUMMARY, parse_summary
from bellcrank.sim.program.system_graphs import Dynamics, Integral
from bellcrank.sim.program.tree_dynamics import tree_dynamics
from bellcrank.sim.run.batch_execution import (
    Backend,
    Batch,
    Lanes,
    ProgressReporter,
    RowMemory,
    RunResults,
    RunStanding,
    run_to_end,
)
from bellcrank.sim.run.lane_blocks import CompiledProgram
from bellcrank.sim.run.record_builder import Interrupted, Outcome, build_record, warn_doubts
from bellcrank.sim.run_arguments import RunArguments, as_tuple
from bellcrank.sim.settings import (
    Plan,
    RunOptions,
    Saving,
    Solver,
    StepMode,
    check_keywords,
    check_options,
    grouped_settings,
    make_plan,
    with_shortcuts,
)
from bellcrank.sim.system.element_forces import CHECKED_RUNS
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.sampling import check_sampling
from bellcrank.sim.system.systems import Control, System, system

if TYPE_CHECKING:
    from bellcrank.sim.constraints.multi_partition_program import JoinedPartitions

Array = np.ndarray[Any, Any]
Cached = TypeVar("Cached")


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """All that a run executes: settings, graphs and numbers.

    `shape` is that of the batch; `start` is the given start of each run, before closed loops are assembled.
    """

    plan: Plan
    program: Program
    runs: Batch
    shape: tuple[int, ...]
    start: Array


class PreparedSystem:
    """A system with an integrator and the settings of its runs, and what is made of it once.

    Parameters
    ----------
    plant
        The system.
    groups
        Settings of the integration, the record and the target.
    """

    dynamics: Dynamics

    def __init__(self, plant: System, groups: tuple[Solver, Saving, Where]) -> None:
        self.system, (self.solver, self.saving, self.where) = plant, groups
        self.integrator = integrator_of(self.solver.integrator)
        self._cache: dict[Any, Any] = {}
        self._lock = threading.RLock()  # to trace and to compile, which several threads may want at once
        _prepared.add(self)

    def _cached(self, key: Any, make: Callable[[], Cached]) -> Cached:
        with self._lock:
            if key not in self._cache:
                self._cache[key] = make()
            cached: Cached = self._cache[key]
            return cached

    def _checked_states(self, plan: Plan, given: RunArguments, parameters: Mapping[str, Any] | None) -> Array:
        """Return the states before the first step of runs with these settings, after checking that they are possible.

        Parameters
        ----------
        plan
            Steps and target.
        given
            Starts, inputs and parameters.
        parameters
            The parameters that the user gave, if any.
        """
        given.check_inputs(plan.h, plan.adaptive)
        if not plan.adaptive:
            if not self.system.rigid:
                check_steps(self.system, self.integrator, plan.h, given.y[0])
            self._check_damping(plan.h, given.parameters if parameters else None)
        if self.system.sampled:
            check_sampling(self.system, plan.h, plan.mode is not None)
        if plan.where.dtype != "float64":
            check_counts(self.system, plan.h, plan.where.dtype, given.hold, given.table.shape[1])
        return self.dynamics.initial_state(self.dynamics.checked_start(given.y, given.parameters))

    def _check_damping(self, h: float, parameters: Any) -> None:
        """Check damping, also for some of the given values of free parameters, which may be far from nominal ones."""
        m, implicit = self.system.mechanism, self.dynamics.implicit
        self._cached(("damping", h), lambda: check_damping(self.system, implicit, self.integrator, h))
        if parameters is None or not m.parameters or not has_resistance(self.system):
            return
        names = list(self.system.parameters)
        values = parameters[:, [names.index(name) for name in m.parameters]]
        low, high = self._cache.get(("checked", h), (np.inf, -np.inf))
        if (values >= low).all() and (values <= high).all():
            return
        for row in np.unique(values, axis=0)[:CHECKED_RUNS]:
            system_at = replace(self.system, mechanism=m.at(dict(zip(m.parameters, row.tolist(), strict=True))))
            check_damping(system_at, implicit, self.integrator, h)
        # Skip the check within half as much again around checked values: a fit calls this hundreds of times.
        least, most = values.min(axis=0), values.max(axis=0)
        low, high = np.minimum(low, least - 0.5 * np.abs(least)), np.maximum(high, most + 0.5 * np.abs(most))
        self._cache["checked", h] = low, high


@explain_methods("__init__", "run", "prepared", "planned", "self_contained_program", "program")
class Simulator(PreparedSystem):
    """A system with an integrator, compiled on first use. Settings given here are the defaults of all its runs.

    Parameters
    ----------
    mechanism : Mechanism or System
        The system; a mechanism takes further parts of bc.system by keyword.
    integrator, method : str, optional
        Shortcuts for `solver`.
    events : sequence of Event
        Events to be located.
    sensitivities : sequence of str
        Parameters and initial states with respect to which all columns are differentiated.
    form : str, optional
        Shortcut for `solver`.
    baumgarte : float, optional
        Shortcut for `solver`.
    summary : sequence of str, optional
        Shortcut for `saving`.
    solver : Solver, optional
        Settings of the integration.
    saving : Saving, optional
        Settings of the record.
    where : Where, optional
        Target, number type and threads.
    **parts
        Parts of bc.system, such as control and actuators.

    Raises
    ------
    InputError
        If an argument is invalid.
    """

    def __init__(
        self,
        mechanism: Mechanism | System,
        integrator: str | None = None,
        method: str | None = None,
        events: Sequence[Event] = (),
        sensitivities: Sequence[str] = (),
        form: str | None = None,
        baumgarte: float | None = None,
        summary: Sequence[str] | None = None,
        solver: Solver | None = None,
        saving: Saving | None = None,
        where: Where | None = None,
        **parts: Any,
    ) -> None:
        check_keywords(Simulator, parts, system)
        shortcuts: dict[str, Any] = {"integrator": integrator, "method": method, "form": form, "baumgarte": baumgarte}
        shortcuts["summary"] = summary
        groups = grouped_settings(shortcuts, solver, saving, where)
        super().__init__(system(mechanism, **parts), groups)
        wrt = as_tuple("sensitivities", sensitivities, "names")
        self.summary = EMPTY_SUMMARY
        if not _is_empty_list(self.saving.summary):
            self.summary = parse_summary(self.saving.summary, list(observable_units(self.system)), wrt)
            self.saving = replace(self.saving, summary=tuple(a.name for a in self.summary.items))
        if wrt and self.system.sampled:
            raise InputError(
                "sensitivities do not support sampled controllers, which change the state discontinuously."
            )
        self.dynamics = system_dynamics(self.system, self.solver, wrt, self.summary.integrals, self.where.dtype)
        self._memory = RowMemory()
        self.events = () if events is None or _is_empty_list(events) else checked_events(events, wrt)
        if self.system.outputs:
            _ = self.dynamics.outputs  # an output that cannot be traced raises here, not after the run

    # -- what is made once

    def program(
        self,
        mode: StepMode = None,
        by: Dynamics | None = None,
        rows: bool = True,
        dtype: str | None = None,
        checks: bool = True,
    ) -> Program:
        """Return the Program of a run: all its computations as graphs.

        Parameters
        ----------
        mode : tuple of bool, optional
            (adaptive steps, rows on a grid), or None for fixed steps without events.
        by : Dynamics, optional
            Graphs of this system, as selected by `dynamics.closure`.
        rows : bool, default True
            False if only the final state is needed.
        dtype : {"float64", "float32"}, optional
            Number type of the computation, which decides the layout of counters.
        checks : bool, default True
            Include the check of fixed steps if the solver requests it.

        Returns
        -------
        Program
            The same object for the same arguments.
        """
        dynamics, dtype = by or self.dynamics, dtype or self.where.dtype

        def make() -> Program:
            check = StepCheck(dynamics, self.integrator, dtype) if checks and self.solver.resolve else None
            if mode is None:
                return FixedSteps(dynamics, self.integrator, self.summary, rows, dtype, check).program()
            run = AdaptiveSteps(dynamics, self.integrator, self.events, *mode, self.summary, rows, dtype, check)
            return run.program()

        return self._cached(("program", mode, dynamics, rows, dtype, checks), make)

    def whole(self, mode: StepMode = None, dtype: str | None = None, checks: bool = False) -> Program:
        """Return `self_contained_program(mode, dtype, checks)`: the former name, deprecated.

        Parameters
        ----------
        mode, dtype, checks
            As for `self_contained_program`.

        Returns
        -------
        Program
            The program.
        """
        warn_deprecated("Simulator.whole", "Simulator.self_contained_program")
        return self.self_contained_program(mode, dtype, checks)

    def self_contained_program(self, mode: StepMode = None, dtype: str | None = None, checks: bool = False) -> Program:
        """Return a self-contained Program without rows, which needs no other graphs during a run.

        Steppers, drives and exports use it.

        Parameters
        ----------
        mode, dtype, checks
            See `program`.

        Returns
        -------
        Program
            The same object for the same arguments.
        """
        joined = self.joined(mode, dtype)
        if joined is None:
            return self.program(mode, rows=False, dtype=dtype, checks=checks)
        return self._cached(("whole", mode, dtype), joined.program)

    def joined(self, mode: StepMode = None, dtype: str | None = None) -> JoinedPartitions | None:
        """Return the joined partitions of closed loops in the minimal form.

        Parameters
        ----------
        mode, dtype
            See `program`.

        Returns
        -------
        JoinedPartitions or None
            None without closed loops, and in other forms.
        """
        if not self.system.mechanism.loops:
            return None
        from bellcrank.sim.constraints.looped_dynamics import MinimalDynamics
        from bellcrank.sim.constraints.multi_partition_program import JoinedPartitions, chosen_partitions

        dynamics = self.dynamics
        if not isinstance(dynamics, MinimalDynamics):
            return None
        parts = self._cached(("parts",), lambda: chosen_partitions(dynamics))
        return self._cached(
            ("joined", mode, dtype),
            lambda: JoinedPartitions(parts, [self.program(mode, x, False, dtype, False) for x in parts]),
        )

    def compiled(self, lanes: int, mode: StepMode, by: Dynamics, rows: bool = True) -> CompiledProgram:
        """Return the Program as machine code.

        Parameters
        ----------
        lanes : int
            Number of lanes.
        mode, by, rows
            See `program`.

        Returns
        -------
        CompiledProgram
            The same object for the same arguments.
        """
        return self._cached(
            (lanes, mode, by, rows), lambda: CompiledProgram(self.program(mode, by, rows, "float64"), lanes)
        )

    @property
    def predicted(self) -> PredictedStepTime:
        """Return the expected duration of a step (adaptive: of a try) on this computer, before it is compiled."""
        adaptive = self.integrator.adaptive
        return step_time(self.program((adaptive, True) if adaptive or self.events else None).tick)

    # -- a run

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
        progress: Any = None,
        **settings: Unpack[RunOptions],
    ) -> Record:
        """Run the system and return its Record.

        Parameters
        ----------
        seconds : float
            Duration of the run.
        q0, v0, x0 : array_like or mapping, optional
            Initial positions, velocities and further states; leading axes make a batch.
        inputs : mapping of str to array_like, optional
            Values of inputs, or samples (..., lines).
        input_step : float, optional
            Seconds that each sample holds.
        parameters : mapping of str to array_like, optional
            Values of free parameters.
        batch : int, optional
            Number of runs if the start is the same for all.
        progress : callable or bool, optional
            Receives the completed share; True shows it, False is silent.
        **settings
            Defaults of the Simulator overridden for this run: step, tolerance, max_steps; every, keep; target, dtype,
            threads.

        Returns
        -------
        Record
            See bellcrank.simulate.

        Raises
        ------
        InputError
            If an argument is invalid.
        Interrupted
            After Ctrl-C, with the record so far.
        """
        start_time = time.perf_counter()
        prepared = self.prepared(
            seconds, q0, v0, x0, inputs=inputs, input_step=input_step, parameters=parameters, batch=batch,
            progress=progress, **settings,
        )  # fmt: skip
        plan, program, runs, shape = prepared.plan, prepared.program, prepared.runs, prepared.shape
        done = self._execute(plan, program, runs, progress)
        settings_used = plan.provenance | {
            "threads": plan.where.threads, "lanes": self._lanes(runs), "target": plan.where.target,
            "dtype": plan.where.dtype, "wall": time.perf_counter() - start_time,
        }  # fmt: skip
        outcome = Outcome(
            self.dynamics, self.integrator, program.layout, done, shape, runs.input_table, runs.parameters,
            self.events, settings_used, self.summary,
        )  # fmt: skip
        record = build_record(outcome)
        if not done.finished:
            raise Interrupted(record)
        warn_doubts(outcome, record)
        return record

    def prepared(
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
        progress: Any = None,
        **settings: Unpack[RunOptions],
    ) -> PreparedRun:
        """Check the arguments of `run` and return all that it would execute, without executing it.

        Parameters
        ----------
        seconds, q0, v0, x0, inputs, input_step, parameters, batch, progress, **settings
            See `run`.

        Returns
        -------
        PreparedRun
            Plan, program and batch of the run.
        """
        plan = self.planned(seconds, settings)
        given = RunArguments(self.system, q0, v0, x0, inputs, input_step, parameters, batch)
        y = self._checked_states(plan, given, parameters)
        with progress_message(f"compiling {self.system.mechanism.name}", progress):
            program = self.program(plan.mode, rows=plan.keeps_rows, dtype=plan.where.dtype)
        plan.check_room(given.runs, program.row)
        initial_fields = plan.initial_fields(given.hold, given.table.shape[1])
        initial_fields |= {"y": y, "summary": np.array([self.summary.start_values])}
        runs = Batch(initial_fields, given.table, given.parameters, plan.rows)
        return PreparedRun(plan, program, runs, given.shape, given.y)

    def planned(self, seconds: float, settings: Mapping[str, Any]) -> Plan:
        """Return the settings of a run as numbers.

        Parameters
        ----------
        seconds : float
            Duration of the run.
        settings : mapping
            See `run`.

        Returns
        -------
        Plan
            Steps, rows and target.
        """
        check_options(settings)
        solver, saving = with_shortcuts(self.solver, settings), with_shortcuts(self.saving, settings)
        return make_plan(
            seconds, self.integrator, len(self.events), solver, saving, with_shortcuts(self.where, settings)
        )

    def _lanes(self, runs: Batch) -> int:
        return 1 if runs.runs == 1 else host().lanes("float64")

    def _execute(self, plan: Plan, program: Program, runs: Batch, progress: Any) -> RunResults:
        """Execute the runs on the selected target."""
        standing = RunStanding()
        with progress_bar(f"simulating {self.system.mechanism.name}", progress, standing) as tell:
            watch = ProgressReporter(program.layout, plan.seconds, plan.adaptive, tell, standing)
            backend = self._backend(plan, runs, watch, progress)
            return run_to_end(self.dynamics, program.layout, runs, backend)

    def _backend(self, plan: Plan, runs: Batch, watch: ProgressReporter, progress: Any) -> Backend:
        if plan.where.target == "cuda":
            from bellcrank.sim.run.gpu_runs import GpuBackend, GpuProgram  # loaded on demand

            def on_gpu(dynamics: Dynamics) -> GpuProgram:
                key = plan.mode, dynamics, plan.keeps_rows, plan.where.dtype
                return self._cached(key, lambda: GpuProgram(self.program(*key), plan.where.dtype))

            return GpuBackend(on_gpu, watch.layout, runs, self._memory, watch)

        def code(dynamics: Dynamics) -> CompiledProgram:
            with progress_message(f"compiling {self.system.mechanism.name}", progress):
                return self.compiled(self._lanes(runs), plan.mode, dynamics, plan.keeps_rows)

        return Lanes(code, watch.layout, runs, plan.where.threads, self._memory, watch)

    def __reduce__(self) -> str:
        raise InputError(
            "a Simulator holds machine code of this process and cannot be pickled; send its .system (or the "
            "mechanism), and make a Simulator in the other process: compiled code is found in the cache on disk."
        )


def _is_empty_list(given: Any) -> bool:
    """Return True for an empty list or tuple; other types are checked later."""
    return isinstance(given, tuple | list) and not given


@explain_argument_errors
def simulate(
    mechanism: Mechanism | System,
    seconds: float,
    q0: Any = None,
    v0: Any = None,
    x0: Any = None,
    control: Control | None = None,
    integrator: str | None = None,
    step: float | None = None,
    every: float | str | None = None,
    tolerance: float | None = None,
    inputs: Mapping[str, Any] | History | None = None,
    input_step: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    events: Sequence[Event] = (),
    sensitivities: Sequence[str] = (),
    form: str | None = None,
    method: str | None = None,
    threads: int | None = None,
    progress: Any = None,
    batch: int | None = None,
    target: str | None = None,
    dtype: str | None = None,
    keep: str | None = None,
    summary: Sequence[str] | None = None,
    max_steps: int | None = None,
    solver: Solver | None = None,
    saving: Saving | None = None,
    where: Where | None = None,
) -> Record:
    """Simulate a mechanism, or a system with actuators and control, and return its Record.

    A run that fails stops, while others continue; run.stops has the reasons. Settings are in the groups `solver`,
    `saving` and `where`, which can be used again. A shortcut sets one of them; a setting may not be given in both
    places. See docs/simulation.md.

    Parameters
    ----------
    mechanism : Mechanism or System
        With actuators, inputs or outputs, give a system (bc.system).
    seconds : float
        Duration of the run.
    q0, v0, x0 : array_like, shape (..., n), or mapping, optional
        Initial positions, velocities and further states; default: neutral, at rest, initial values of the system.
        Leading axes make a batch of runs.
    control : callable, optional
        Function of (t, q, v, x, u) that returns the forces on the joints. It is called once, on symbols, and compiled:
        write where(...) instead of if.
    integrator : str, optional
        Shortcut for `solver`.
    step : float, optional
        Shortcut for `solver`.
    every : float or "step", optional
        Shortcut for `saving`.
    tolerance : float, optional
        Shortcut for `solver`.
    inputs : mapping of str to array_like, optional
        A number for each input, or samples (..., lines).
    input_step : float, optional
        Seconds that each sample holds.
    parameters : mapping of str to array_like, optional
        Values of free parameters of the system: numbers, or arrays over the batch.
    events : sequence of Event
        Events to be located.
    sensitivities : sequence of str
        Parameters and elements of the start ("boom.q") with respect to which every column is differentiated:
        run["d(boom.v)/d(boom.mass)"].
    form, method : str, optional
        Shortcuts for `solver`.
    threads : int, optional
        Shortcut for `where`.
    progress : callable or bool, optional
        Receives the completed share; True shows it, False is silent.
    batch : int, optional
        Number of runs if the start is the same for all.
    target, dtype : str, optional
        Shortcuts for `where`.
    keep : {"rows", "final"}, optional
        Shortcut for `saving`.
    summary : sequence of str, optional
        Shortcut for `saving`.
    max_steps : int, optional
        Shortcut for `solver`.
    solver : Solver, optional
        Settings of the integration: bc.Solver("dopri5", tolerance=1e-8). The default is rk4 with fixed steps of 1 ms.
    saving : Saving, optional
        Settings of the record: bc.Saving(every=0.01). The default is a row for every step, or 1000 rows with adaptive
        steps.
    where : Where, optional
        Target, number type and threads: bc.Where("cuda") runs each run on a thread of the GPU (docs/gpu.md).

    Returns
    -------
    Record
        Time, states and derived columns of all runs.

    Raises
    ------
    InputError
        If an argument is invalid.
    Interrupted
        After Ctrl-C, with the record so far.

    Examples
    --------
    ::

        run = bc.simulate(arm, seconds=10, q0={"elbow": 0.5}, control=lambda t, q, v, x, u: -20.0 * q - 2.0 * v)
        run.t, run.q, run["energy"]; run.stops; run.plot()
    """
    shortcuts = {
        "integrator": integrator, "step": step, "tolerance": tolerance, "max_steps": max_steps, "method": method,
        "form": form, "every": every, "keep": keep, "summary": summary, "target": target, "dtype": dtype,
        "threads": threads,
    }  # fmt: skip
    groups = grouped_settings(shortcuts, solver, saving, where)
    simulator = Simulator(mechanism, None, None, events, sensitivities, None, None, None, *groups, control=control)
    run_inputs: dict[str, Any] = {"inputs": inputs, "input_step": input_step, "parameters": parameters}
    return simulator.run(seconds, q0, v0, x0, batch=batch, progress=progress, **run_inputs)


def system_dynamics(
    system: System,
    solver: Solver,
    wrt: tuple[str, ...] = (),
    integrals: tuple[Integral, ...] = (),
    dtype: str = "float64",
) -> Dynamics:
    """Return the dynamics of a tree or of closed loops; no later code depends on which.

    Parameters
    ----------
    system
        The system.
    solver
        Settings of the integration.
    wrt
        Names with respect to which states are differentiated.
    integrals
        Integrals over a run.
    dtype
        Floating-point type of the compiled code.
    """
    if not system.mechanism.loops:
        return tree_dynamics(system, solver, wrt, integrals)
    from bellcrank.sim.constraints.looped_dynamics import looped_dynamics  # only for mechanisms that have loops

    return looped_dynamics(system, solver, wrt, integrals, dtype)


_prepared: weakref.WeakSet[PreparedSystem] = weakref.WeakSet()


def _replace_locks() -> None:
    """Replace the locks in a child process, where the thread that held one does not exist."""
    for prepared in list(_prepared):
        prepared._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_locks)


@dataclass(frozen=True)
class PredictedStepTime:
    """Seconds per step on one core: of a single run, and of each run in a large batch."""

    one: float
    batch: float

    def __str__(self) -> str:
        return f"{1e9 * self.one:.0f} ns a step, {1e9 * self.batch:.0f} ns in a batch"


def step_time(tick: Graph) -> PredictedStepTime:
    """Return the predicted duration of a `tick`."""
    graph = inline_small(tick)
    graph_parts = parts(graph)
    work, path = costs(single_state=True).seconds(graph_parts), critical_path_seconds(graph)
    return PredictedStepTime(max(work, path), costs().seconds(graph_parts))
