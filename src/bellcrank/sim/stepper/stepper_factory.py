"""bc.stepper: a system that learners and controllers advance action by action, one run or a million at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.build.compilation import Where
from bellcrank.errors import InputError
from bellcrank.graph.program import NEVER_TIME
from bellcrank.model import Mechanism
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import as_tuple, count, duration, positive
from bellcrank.sim.settings import DEFAULT_STEP_S, Solver, available_target, grouped_settings
from bellcrank.sim.stepper.stepper import Stepper
from bellcrank.sim.stepper.stepper_actions import StepperTask, observed_names
from bellcrank.sim.system.systems import System, system


def _force_driven_system(m: Mechanism) -> System:
    """Return the mechanism as a system whose inputs are the forces on its joints."""

    def forces(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return list(u)

    return system(m, control=forces, inputs=m.columns[1])


@explain_argument_errors
def stepper(
    plant: Mechanism | System,
    batch: int | None = None,
    every: float | None = None,
    *,
    step: float | None = None,
    integrator: str | None = None,
    outputs: Sequence[str] | None = None,
    reward: Callable[..., Any] | None = None,
    ends: Callable[..., Any] | None = None,
    limit: float | None = None,
    start: Callable[..., Any] | None = None,
    restart: bool = False,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    method: str | None = None,
    form: str | None = None,
    target: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    resolve: float | None = None,
    solver: Solver | None = None,
    where: Where | None = None,
) -> Stepper:
    """Make a system that advances one action per call, one run or many at once, for learners and controllers.

    Actions have fixed steps. A run that diverges ends, while the others continue. The functions reward, ends and start
    are traced and compiled, as controls are.

    Parameters
    ----------
    plant : Mechanism or System
        A system with inputs (bc.system), or a mechanism, whose inputs are then the forces on its joints.
    batch : int, optional
        Number of runs; None for one run without a batch axis.
    every : float, optional
        Duration of an action, s, a whole number of steps (default: one step).
    step : float, optional
        Step of the integrator, s (default: 1 ms or slightly less). The states equal those of bc.simulate to the last
        bit.
    integrator : str, optional
        Shortcut for `solver`.
    outputs : sequence of str, optional
        Columns of a record to be observed; default: the outputs of the system, else positions and velocities.
    reward : callable, optional
        Function of (t, q, v, x, u) at the end of an action.
    ends : callable, optional
        Function of (t, q, v, x, u) that ends a run if it is positive, or a comparison that holds.
    limit : float, optional
        Seconds after which a run ends.
    start : callable, optional
        Function of a random generator that returns initial states, by names of elements
        ({"pole.q": random.uniform(-0.1, 0.1)}) or as a whole. The numbers depend only on the seed, the index in the
        batch and the number of starts of the run.
    restart : bool, default False
        Restart runs that end at once; the observations are then those of the new start.
    seed : int, default 0
        Seed of random starts.
    parameters : mapping of str to array_like, optional
        Values of free parameters, one for all or one per run.
    method, form : str, optional
        Shortcuts for `solver`.
    target : {"cpu", "cuda"}, optional
        "cuda" runs everything on the GPU. Arrays of CuPy, PyTorch or JAX are accepted as inputs, results are CuPy
        arrays, and calls are asynchronous: an input that is not finite ends its run ("not finite") instead of raising
        an error.
    dtype : {"float64", "float32"}, optional
        Number type; "float32" only on the GPU.
    threads : int, optional
        CPU threads for a batch.
    resolve : float, optional
        Relative error, such as 0.01, for which steps are checked: env.step_error has the change by halving the step, as
        a share of the distance that each run has travelled. Default: no check, which is faster.
    solver, where : Solver, Where, optional
        The same settings in reusable groups.

    Returns
    -------
    Stepper
        With the methods reset and step.

    Raises
    ------
    InputError
        If an argument is invalid.

    Examples
    --------
    ::

        env = bc.stepper(plant, batch=4096, every=0.02, reward=lambda t, q, v, x, u: -q["pole"] ** 2, limit=10.0)
        y = env.reset()                             # (4096, outputs)
        y = env.step(u)                             # u: (4096, inputs), held for 0.02 s; or step(u, out=y)
        env.reward, env.ended, env.t, env.state
    """
    shortcuts = {"integrator": integrator, "step": step, "method": method, "form": form}
    shortcuts |= {"target": target, "dtype": dtype, "threads": threads}
    solver, _, where = grouped_settings(shortcuts, solver, None, where)
    where = available_target(where)
    plant_system = _force_driven_system(plant) if isinstance(plant, Mechanism) else plant
    if isinstance(plant_system, System) and plant_system.mechanism.loops and solver.form == "auto":
        solver = replace(solver, form="projected")
    tolerance = 0.0 if resolve is None else positive("resolve", resolve, ", a relative error")
    simulator = Simulator(plant_system, solver=replace(solver, resolve=tolerance), where=Where(dtype=where.dtype))
    if tolerance and simulator.joined() is not None:
        raise InputError("stepper: the minimal form of closed loops is not checked; give form=projected or no resolve.")
    if solver.tolerance is not None:
        raise InputError("stepper: an action has fixed steps, so that all runs take it together; give step=.")
    h, every = _step_and_duration(solver.step, every)
    observed_columns = observed_names(
        simulator.dynamics, None if outputs is None else as_tuple("outputs", outputs, "names of columns")
    )
    for name, function in (("reward", reward), ("ends", ends), ("start", start)):
        if function is not None and not callable(function):
            raise InputError(f"stepper: {name} is {function!r}; expected a function.")
    steps = NEVER_TIME if limit is None else float(math.ceil(duration("limit", limit) / h - 1e-9))
    task = StepperTask(observed_columns, reward, ends, start, steps, bool(restart))
    runs = None if batch is None else count("batch", batch)
    if where.target == "cuda":
        if simulator.joined() is not None:
            raise InputError(
                "stepper: the minimal form of closed loops is for the CPU; on the GPU give form=projected."
            )
        from bellcrank.sim.stepper.gpu_stepper import GpuStepper  # a subclass of Stepper

        return GpuStepper(where.dtype, simulator, runs, every, h, task, 1, seed, parameters)
    return Stepper(simulator, runs, every, h, task, where.threads, seed, parameters)


def _step_and_duration(step: float | None, every: float | None) -> tuple[float, float]:
    """Return the step and the duration of an action."""
    if every is None:
        h = duration("step", step) if step is not None else DEFAULT_STEP_S
        return h, h
    every = duration("every", every)
    if step is None:
        return every / max(1, math.ceil(every / DEFAULT_STEP_S - 1e-9)), every
    return duration("step", step), every
