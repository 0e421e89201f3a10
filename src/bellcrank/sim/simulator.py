"""bc.simulate: a system, where it starts, how to integrate -> Record.

A Simulator is compiled once and runs as often as asked, with other starts, steps, inputs and parameters.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.build.targets import TARGETS
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.loop import Program
from bellcrank.emit.cuda.device import missing
from bellcrank.emit.target import DTYPES
from bellcrank.errors import InputError, unknown
from bellcrank.integrate import INTEGRATORS
from bellcrank.integrate import integrator as integrator_of
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.sim import fixed_steps as fixed
from bellcrank.sim import initial as start
from bellcrank.sim.arguments import listed, many, positive, steps_of, unique, whole
from bellcrank.sim.columns import units
from bellcrank.sim.dynamics import Traced, chosen
from bellcrank.sim.events import Event
from bellcrank.sim.gpu import GpuProgram, run_gpu
from bellcrank.sim.lanes import run_lanes
from bellcrank.sim.layout import Layout
from bellcrank.sim.looped_dynamics import BAUMGARTE, looped
from bellcrank.sim.memory import Memory
from bellcrank.sim.outcome import Outcome, recorded
from bellcrank.sim.progress import Standing, said, shown
from bellcrank.sim.runner import Blocks, Compiled
from bellcrank.sim.step_time import StepTime, step_time
from bellcrank.sim.summary import summarised
from bellcrank.sim.systems import Control, System, system
from bellcrank.sim.watched_steps import Watched

Array = np.ndarray[Any, Any]
Mode = tuple[bool, bool] | None  # (adaptive, rows on a grid), or None: fixed steps with nothing to watch
TOLERANCE = 1e-6  # where none is asked for
STEP = 1e-3
ROWS = 1000  # of a record, where the integrator chooses its steps and nobody says how often
TRIES, TRIES_A_SECOND = 1_000_000, 100_000  # steps that a run may try where it chooses them, or stops at events
COUNTED = 2**24  # steps; float32 has no whole number behind it
KEEPS = ("rows", "final")
KEEP = 2_000_000_000  # bytes of a record that need no second thought


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; `record` has what was there by then."""

    def __init__(self, record: Record) -> None:
        super().__init__("interrupted; the record so far is in the attribute .record of this exception")
        self.record = record

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.record,)


class Simulator:
    """A system with an integrator, compiled on first use."""

    def __init__(
        self,
        mechanism: Mechanism | System,
        integrator: str = "rk4",
        method: str = "auto",
        events: Sequence[Event] = (),
        sensitivities: Sequence[str] = (),
        form: str = "minimal",
        baumgarte: float = BAUMGARTE,
        summary: Sequence[str] = (),
        **parts: Any,
    ) -> None:
        self.system = system(mechanism, **parts)
        self.integrator = integrator_of(integrator)
        wrt = listed("sensitivities", sensitivities, "names")
        self.summary = summarised(summary, list(units(self.system)), wrt)
        sums = self.summary.integrals
        if self.system.mechanism.loops:
            self.traced: Traced = looped(self.system, form, method, baumgarte, self.integrator, wrt, sums)
        else:
            self.traced = chosen(self.system, method, "float64", wrt, sums)
        self._programs: dict[Any, Any] = {}
        self._memory = Memory()
        self._lock = threading.RLock()  # to trace and to compile, which several threads may want at once
        _simulators.add(self)
        self.events = listed("events", events, "events")
        for e in self.events:
            if not isinstance(e, Event):
                raise InputError(f"events: {e!r} is no event; write bellcrank.Event(name, function, action).")
            if e.action == "switch" and sensitivities:
                raise InputError(f'event "{e.name}" changes the state at once, and sensitivities cannot follow that.')
        unique("event", [e.name for e in self.events])
        if self.system.outputs:
            _ = self.traced.outputs  # so that a function that cannot be traced says so before the run, not after it

    def program(self, mode: Mode, traced: Traced, rows: bool = True) -> tuple[Layout, Program]:
        """How the state of the loop is laid out, and what the loop does; without rows, only its state is asked for."""
        key = ("program", mode, traced, rows)
        with self._lock:
            if key not in self._programs:
                by = traced, self.integrator
                if mode is None:
                    made = fixed.layout(*by, self.summary), fixed.program(*by, self.summary, rows)
                else:
                    watched = Watched(*by, self.events, *mode, self.summary, rows)
                    made = watched.layout, watched.program()
                self._programs[key] = made
            found: tuple[Layout, Program] = self._programs[key]
            return found

    def compiled(self, lanes: int, mode: Mode, traced: Traced, rows: bool = True) -> Compiled:
        key = (lanes, mode, traced, rows)
        with self._lock:
            if key not in self._programs:
                self._programs[key] = Compiled(self.program(mode, traced, rows)[1], lanes).ready()
            found: Compiled = self._programs[key]
            return found

    @property
    def predicted(self) -> StepTime:
        """What a step is expected to take on this computer, before it is compiled; of an adaptive run, a try."""
        adaptive = self.integrator.adaptive
        mode = (adaptive, True) if adaptive or self.events else None
        return step_time(self.program(mode, self.traced)[1].tick)

    def run(
        self,
        seconds: float,
        q0: Any = None,
        v0: Any = None,
        x0: Any = None,
        step: float | None = None,
        every: float | str | None = None,
        tolerance: float | None = None,
        inputs: Mapping[str, Any] | None = None,
        input_step: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        threads: int = 1,
        progress: Any = None,
        batch: int | None = None,
        target: str = "cpu",
        dtype: str = "float64",
        keep: str | None = None,
        max_steps: int | None = None,
    ) -> Record:
        """See bellcrank.simulate."""
        began = time.perf_counter()
        seconds = positive("seconds", seconds)
        if not isinstance(threads, (int, np.integer)) or threads < 1:
            raise InputError(f"threads is {threads!r}; expected a whole number from 1.")
        target = self._where(target, dtype)
        in_rows = self._in_rows(keep, every)
        adaptive = self._adaptive(step, tolerance)
        h = positive("step", step) if step is not None else min(STEP, seconds / 100 if adaptive else STEP)
        tol = positive("tolerance", tolerance, "") if tolerance is not None else TOLERANCE
        each = every == "step"
        if isinstance(every, str) and not each:
            raise InputError(f'every is "{every}"; expected seconds between rows, or "step" for one row per step.')
        steps = 0 if adaptive else whole("seconds", seconds, h, "step")
        if every is None:
            every = seconds / ROWS if adaptive else h
        gap = h if each else min(positive("every", every), seconds)
        stride = 1 if adaptive or each else whole("every", gap, h, "step")
        mode = (adaptive, not each or not adaptive or not in_rows) if adaptive or self.events else None
        if mode is not None and dtype == "float32":
            raise InputError(
                "float32 does not tell times apart as finely as chosen steps and events need; "
                'give dtype="float64", or fixed steps (step=...) without events.'
            )
        if dtype == "float32" and steps > COUNTED:
            raise InputError(
                f'{steps} steps are more than float32 can count, {COUNTED}; give dtype="float64", longer steps, or '
                "fewer seconds."
            )
        y = start.state(self.system, q0, v0, x0)
        table, hold = start.inputs(self.system, inputs, input_step)
        p = self.system.parameters.vector(parameters or {}, "simulate")
        if self.system.inputs and hold < h * (1 - 1e-9) and not adaptive:
            raise InputError(
                f"input_step is {hold:g} s, shorter than the step of {h:g} s; inputs hold for whole steps."
            )
        asked = () if batch is None else (many("batch", batch),)
        try:
            shape = np.broadcast_shapes(y.shape[:-1], table.shape[:-2], p.shape[:-1], asked)
        except ValueError:
            shapes = f"start {y.shape[:-1]}, inputs {table.shape[:-2]}, parameters {p.shape[:-1]}, batch {asked}"
            raise InputError(f"the leading axes do not broadcast: {shapes}.") from None
        runs = int(np.prod(shape, dtype=int))
        if runs == 0:
            raise InputError(f"the start has the shape {y.shape}: there is nothing to run.")
        y = np.broadcast_to(y, (*shape, y.shape[-1])).reshape(runs, -1)
        table = np.broadcast_to(table, (*shape, *table.shape[-2:])).reshape(runs, *table.shape[-2:])
        p = np.broadcast_to(p, (*shape, p.shape[-1])).reshape(runs, -1)
        y = self.traced.started(self.traced.checked(y, p))
        rows = self._rows(mode, steps, stride, seconds / gap) if in_rows else 0
        lanes = 1 if runs == 1 else host().lanes("float64")
        compiling = f"compiling {self.system.mechanism.name}"
        with said(compiling, progress):
            places, program = self.program(mode, self.traced, in_rows)
        self._room(runs * rows * program.row * 8, runs, rows)
        first = {
            "t": 0.0, "y": y, "live": 1.0, "due": float(in_rows), "h": h, "step": h, "every": gap, "end": seconds,
            "last": steps, "stride": stride, "next": stride if mode is None else 0.0, "rtol": tol, "atol": tol,
            "most": self._most(max_steps, mode, seconds, steps), "h_old": 1.0,
            "input_step": hold, "input_steps": steps_of(hold, h), "input_last": table.shape[1] - 1,
            "summary": self.summary.blank[None],
        }  # fmt: skip
        first = {key: x for key, x in first.items() if key in places.places}

        def code(traced: Traced) -> Compiled:
            with said(compiling, progress):
                return self.compiled(lanes, mode, traced, in_rows)

        def share(b: Blocks) -> float:
            """How far those are that still run, on average; one block of lanes goes after the other."""
            state = b.state
            t, live = state[places.place("t")], state[places.place("live")]
            if tell is not None:
                k = int(np.where(live > 0.0, t, seconds).argmin())
                standing.see(float(t[k]), float(state[places.place("h"), k]) if adaptive else None)
            return float(np.where(live > 0.0, t, seconds).mean()) / seconds

        def on_gpu(traced: Traced) -> GpuProgram:
            return self._gpu(mode, traced, dtype, in_rows)

        standing = Standing()
        with shown(f"simulating {self.system.mechanism.name}", progress, standing) as tell:
            if target == "cuda":
                done = run_gpu(
                    self.traced, on_gpu, places, first, table, p, rows, self._memory, tell, seconds,
                    standing if adaptive else None,
                )  # fmt: skip
            else:
                state = places.array(runs, first)
                done = run_lanes(
                    self.traced, code, places, state, table, p, rows, self._memory, int(threads), tell, share
                )
        outcome = Outcome(
            self.system, self.traced, self.integrator, places, done, shape, table, p, self.events,
            {"seconds": seconds, "step": None if adaptive else h, "tolerance": tol if adaptive else None,
             "every": None if not in_rows else "step" if each else gap, "threads": int(threads), "lanes": lanes,
             "target": target, "dtype": dtype if target == "cuda" else "float64", "wall": time.perf_counter() - began},
            self.summary,
        )  # fmt: skip
        record = recorded(outcome)
        if not done.finished:
            raise Interrupted(record)
        return record

    def __reduce__(self) -> str:
        raise InputError(
            "a Simulator is machine code of this process and cannot be pickled; send its .system (or the mechanism), "
            "and make a Simulator where it arrives: compiled code is found in the cache on disk."
        )

    def _gpu(self, mode: Mode, traced: Traced, dtype: str, rows: bool) -> GpuProgram:
        key = ("cuda", dtype, mode, traced, rows)
        with self._lock:
            if key not in self._programs:
                self._programs[key] = GpuProgram(self.program(mode, traced, rows)[1], dtype)
            found: GpuProgram = self._programs[key]
            return found

    def _in_rows(self, keep: str | None, every: float | str | None) -> bool:
        """Whether rows are kept, or the end of each run alone."""
        if keep is None:
            keep = "final" if self.summary.asked else "rows"
        if keep not in KEEPS:
            raise InputError(unknown("keep", keep, KEEPS))
        if keep == "rows" and self.summary.asked:
            raise InputError(
                'a summary is one row for each run, so that keep="rows" does not go with it; all rows have all there '
                "is: run without a summary, and take numpy's min and max of their columns."
            )
        if keep == "final" and every is not None:
            raise InputError(f"every is {every!r}, the time between rows, but only the end of each run is kept.")
        return keep == "rows"

    def _where(self, target: str, dtype: str) -> str:
        """The target that will do it, where all that was asked for goes together."""
        if target not in TARGETS:
            raise InputError(unknown("target", target, TARGETS, "cuda" if target == "gpu" else ""))
        if dtype not in DTYPES:
            raise InputError(unknown("dtype", dtype, DTYPES))
        if target == "cuda" and (why := missing()):
            warnings.warn(f"{why} The CPU runs it instead, in float64.", RuntimeWarning, stacklevel=4)
            return "cpu"
        if target == "cpu" and dtype != "float64":
            raise InputError('simulations on the CPU are in float64; dtype="float32" goes with target="cuda".')
        return target

    def _adaptive(self, step: float | None, tolerance: float | None) -> bool:
        if tolerance is not None and not self.integrator.adaptive:
            able = [name for name, i in INTEGRATORS.items() if i.adaptive]
            raise InputError(
                f'integrator "{self.integrator.name}" does not estimate its error, so it cannot keep a tolerance; '
                f"give step=..., or take one of {', '.join(able)}."
            )
        return self.integrator.adaptive and (tolerance is not None or step is None)

    def _most(self, asked: int | None, mode: Mode, seconds: float, steps: int) -> float:
        """Steps that a run may try: nobody knows how many it will take where it chooses them, or stops at events."""
        if asked is not None and mode is None:
            raise InputError(
                f"max_steps is {asked!r}, and this run takes {steps} steps, no more and no less: its step is fixed and "
                "there are no events. It goes with chosen steps (tolerance=...) or events."
            )
        return float(many("max_steps", asked)) if asked is not None else steps + TRIES + TRIES_A_SECOND * seconds

    def _rows(self, mode: Mode, steps: int, stride: int, gaps: float) -> int:
        """Room for so many rows of each run: exact with fixed steps, else what is likely, for it can grow."""
        if mode is None:
            return -(-steps // stride) + 1
        on_grid = mode[1]
        return round(gaps) + 2 + 8 * len(self.events) if on_grid else 1024

    def _room(self, size: int, runs: int, rows: int) -> None:
        if size > KEEP:
            try:
                free = _free_memory()
            except OSError:
                return
            if size > free:
                raise InputError(
                    f"the record of {runs} runs with {rows} rows each needs {size / 1e9:.1f} GB and "
                    f"{free / 1e9:.1f} GB are free; record less often (every=...)."
                )


def _free_memory() -> int:
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def simulate(
    mechanism: Mechanism | System,
    seconds: float,
    q0: Any = None,
    v0: Any = None,
    x0: Any = None,
    control: Control | None = None,
    integrator: str = "rk4",
    step: float | None = None,
    every: float | str | None = None,
    tolerance: float | None = None,
    inputs: Mapping[str, Any] | None = None,
    input_step: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    events: Sequence[Event] = (),
    sensitivities: Sequence[str] = (),
    form: str = "minimal",
    method: str = "auto",
    threads: int = 1,
    progress: Any = None,
    batch: int | None = None,
    target: str = "cpu",
    dtype: str = "float64",
    keep: str | None = None,
    summary: Sequence[str] = (),
    max_steps: int | None = None,
) -> Record:
    """Runs a mechanism, or a system with actuators and control, and records it.

        run = bc.simulate(arm, seconds=10, q0={"elbow": 0.5}, control=lambda t, q, v, x, u: -20.0 * q - 2.0 * v)
        run.t, run.q, run["energy"]; run.stops; run.plot()

    q0, v0, x0: arrays (..., n) or mappings by name (the rest: neutral, at rest, as the system says); leading axes make
    a batch of runs. control(t, q, v, x, u): the forces on the joints; it runs once, on symbols, and is compiled, so
    write where(...) for if. With actuators, inputs or outputs give a system (bc.system) instead of the mechanism. step:
    fixed, in seconds (default 1 ms); or tolerance: the integrator chooses its steps (rkf45, dopri5, abm4, rodas4;
    default 1e-6; step is then the first). every: seconds between rows of the record (default: every step, or 1000
    rows), or "step". inputs: a number for each name, or samples (..., lines) that hold for
    input_step seconds each. parameters: other values of the system's free numbers, each a number or an array over the
    batch. events: see Event. sensitivities: names of parameters and of elements of the start ("boom.q"), with respect
    to which every column is differentiated: run["d(boom.v)/d(boom.mass)"]. form: how closed loops are kept closed
    (minimal, projected, lagrange). progress: a function told the share done, True, or False for silence. threads: cores
    for a batch.

    max_steps: so many steps, with those that had to be tried again, may a run take that chooses them or has events
    (default: a million and 100,000 for each second of the run); it then ends with the reason "too many steps".

    batch: so many runs, where the start is one for all. target="cuda": every run a thread of the GPU, in float64, or
    with fixed steps and no events in float32 (docs/gpu.md). keep="final": only where each run ends. summary: what to
    say of each run as a whole, ["max(elbow.tau)", "integral(effort)"]: min, max, t_min, t_max, integral, mean, rms or
    final of any column.

    A run that fails stops, the others go on; run.stops says why. Ctrl-C raises Interrupted with what is recorded. All
    of it: docs/simulation.md.
    """
    parts: dict[str, Any] = {"control": control} if control is not None else {}
    made = Simulator(mechanism, integrator, method, events, sensitivities, form, summary=summary, **parts)
    return made.run(seconds, q0, v0, x0, step, every, tolerance, inputs, input_step, parameters, threads,
                    progress, batch, target, dtype, keep, max_steps)  # fmt: skip


_simulators: weakref.WeakSet[Simulator] = weakref.WeakSet()


def _after_fork() -> None:
    """In a child, where nobody is left to open a lock that another thread held."""
    for simulator in list(_simulators):
        simulator._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
