"""bc.stepper: a system that learners and controllers take from action to action, one run or a million at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.build.stages import Where
from bellcrank.errors import InputError
from bellcrank.graph.program import NEVER
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.sim.actions import Task, observed
from bellcrank.sim.amounts import count, duration, positive
from bellcrank.sim.arguments import listed
from bellcrank.sim.settings import STEP, Solver, available, grouped
from bellcrank.sim.simulator import Simulator
from bellcrank.sim.steppers import Stepper
from bellcrank.sim.systems import System, system


def _forced(m: Mechanism) -> System:
    """A mechanism alone takes the forces on its joints."""

    def forces(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return list(u)

    return system(m, control=forces, inputs=m.columns[1])


@explained
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
    """A system to be taken from action to action, one run (batch=None) or many at once: for learners and controllers.

        env = bc.stepper(plant, batch=4096, every=0.02, reward=lambda t, q, v, x, u: -q["pole"] ** 2, limit=10.0)
        y = env.reset()                             # (4096, outputs)
        y = env.step(u)                             # u: (4096, inputs), which hold for 0.02 s; or step(u, out=y)
        env.reward, env.ended, env.t, env.state

    plant: a system with inputs (bc.system), or a mechanism alone, whose inputs are then the forces on its joints.
    every: seconds of an action, a whole number of steps (default: one); step: of the integrator (default: 1 ms or a
    little less), so that the states are those of bc.simulate to the last bit. outputs: columns of a record to be
    observed; by default the outputs of the system, or positions and velocities where it has none.

    reward(t, q, v, x, u) judges an action by where it leads; ends(t, q, v, x, u) ends a run where it is positive, or a
    comparison that holds; limit ends it after so many seconds. All are traced, as controls are, and compiled. A run
    that diverges ends, too, and the others go on. restart: runs that end begin anew at once, and what is observed is
    their new start. start(random): where runs begin, by names of elements ({"pole.q": random.uniform(-0.1, 0.1)}) or
    all of them; the numbers follow from the seed, the place in the batch and how often a run began, and from nothing
    else. parameters: values of free numbers, each one for all or for every run its own. threads: cores for a batch.
    resolve: a relative error, such as 0.01; the steps are then checked for it, and env.doubt has what half the step
    would change, as a share of the way of each run. Without it nothing is checked, which is faster.

    target="cuda": all of it on the GPU, in float64 or float32; arrays of CuPy, PyTorch or JAX go in as they are, CuPy's
    come out, and nobody waits: an input that is not finite ends its run ("not finite") instead of being refused.
    """
    parts = {"integrator": integrator, "step": step, "method": method, "form": form}
    solver = grouped(Solver, "solver", solver, parts)
    where = available(grouped(Where, "where", where, {"target": target, "dtype": dtype, "threads": threads}))
    made = _forced(plant) if isinstance(plant, Mechanism) else plant
    if isinstance(made, System) and made.mechanism.loops and solver.form == "auto":
        solver = replace(solver, form="projected")
    checked = 0.0 if resolve is None else positive("resolve", resolve, ", a relative error")
    simulator = Simulator(made, solver=replace(solver, resolve=checked), where=Where(dtype=where.dtype))
    if checked and simulator.joined() is not None:
        raise InputError("stepper: the minimal form of closed loops is not checked; give form=projected or no resolve.")
    if solver.tolerance is not None:
        raise InputError("stepper: an action has fixed steps, so that all runs take it together; give step=.")
    h, every = _times(solver.step, every)
    known = observed(simulator.dynamics, None if outputs is None else listed("outputs", outputs, "names of columns"))
    for name, function in (("reward", reward), ("ends", ends), ("start", start)):
        if function is not None and not callable(function):
            raise InputError(f"stepper: {name} is {function!r}; expected a function.")
    steps = NEVER if limit is None else float(math.ceil(duration("limit", limit) / h - 1e-9))
    task = Task(known, reward, ends, start, steps, bool(restart))
    runs = None if batch is None else count("batch", batch)
    if where.target == "cuda":
        if simulator.joined() is not None:
            raise InputError(
                "stepper: the minimal form of closed loops is for the CPU; on the GPU give form=projected."
            )
        from bellcrank.sim.gpu_stepping import GpuStepper  # which is a Stepper

        return GpuStepper(where.dtype, simulator, runs, every, h, task, 1, seed, parameters)
    return Stepper(simulator, runs, every, h, task, where.threads, seed, parameters)


def _times(step: float | None, every: float | None) -> tuple[float, float]:
    """The step, and the seconds of an action."""
    if every is None:
        h = duration("step", step) if step is not None else STEP
        return h, h
    every = duration("every", every)
    if step is None:
        return every / max(1, math.ceil(every / STEP - 1e-9)), every
    return duration("step", step), every
