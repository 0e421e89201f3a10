"""Stepper: runs of one system that advance one action per call. stepper_factory.py makes steppers.

The states stay in lanes where machine code works on them (emit/cpu/action.py); an action is one call without Python in
it. It executes the Program that bc.simulate runs, so the states equal the rows of a record to the last bit.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_methods
from bellcrank.buffers import check_memory, empty_buffer, poisoned
from bellcrank.build.function_compilation import compile_graph
from bellcrank.emit.cpu import action as text
from bellcrank.emit.cpu.kernel import Kernel, make_builtin
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_cached, host
from bellcrank.errors import InputError, warn, warn_deprecated
from bellcrank.forces.contact import Contact
from bellcrank.graph.layout import WORD_RANGE, split_words
from bellcrank.graph.program import DRAWN, EVENT, FINISHED, GIVEN, NOT_CLOSED, NOT_FINITE
from bellcrank.quoting import single_line
from bellcrank.sim.program.counter_rng import seed_numbers
from bellcrank.sim.program.step_limits import check_counts, check_fixed_steps
from bellcrank.sim.run.lane_blocks import address, aligned_zeros
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import MAX_STEPS_PER_CALL, vector_argument, whole_multiple
from bellcrank.sim.stepper.stepper_actions import (
    ActionBuilder,
    ActionCode,
    ControlledRun,
    StepperTask,
    action_inputs,
    action_output,
    reset_mask,
    rows_per_run,
    run_controller,
)
from bellcrank.sim.system.element_forces import CHECKED_RUNS, partial_contacts, warn_unfelt_overlaps

Array = np.ndarray[Any, Any]
OVERLAP_CHECK_ACTIONS = 1000  # most actions between looks for bumps of a terrain between contact points
BUSY_TEXT = "another thread uses this stepper; make one for each thread, or wait for it."
END_REASONS = {
    0: "", FINISHED: "limit", EVENT: "ended", NOT_FINITE: "not finite", NOT_CLOSED: "loops could not be closed"
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class StepperSnapshot:
    """The complete state of a stepper at one moment.

    Attributes
    ----------
    of
        Identification of the stepper: mechanism, elements, batch, integrator, step.
    kept
        States and parameters of all runs.
    reward, ended
        The arrays of the stepper.
    alive
        Nonzero while any run is alive.
    """

    identity: tuple[Any, ...]
    run_data: Array
    reward: Array
    ended: Array
    alive: int


@explain_methods("__init__", "reset", "restore", "tune", "follow")
class Stepper:
    """Runs of one system that advance one action per call. Made by bellcrank.stepper, which describes the arguments.

    The arrays reward, ended and final are overwritten by every action. Machine code holds their addresses, so they
    remain the same arrays.

    Parameters
    ----------
    simulator : Simulator
        The system with its integrator.
    batch : int, optional
        Number of runs; None for one run without a batch axis.
    every : float
        Duration of an action, s.
    h : float
        Step of the integrator, s.
    task : Task
        Outputs, reward, end conditions and starts.
    threads : int, default 1
        CPU threads.
    seed : int, default 0
        Seed of random starts.
    parameters : mapping, optional
        Values of free parameters.
    """

    xp: Any = np  # module of its arrays
    dtype = "float64"

    def __init__(
        self,
        simulator: Simulator,
        batch: int | None,
        every: float,
        h: float,
        task: StepperTask,
        threads: int = 1,
        seed: int = 0,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.simulator, self.system, self.task = simulator, simulator.system, task
        self.batch, self.every, self.h, self.threads = batch, every, h, threads
        self.runs, self._shape = batch or 1, () if batch is None else (batch,)
        check_fixed_steps(simulator.dynamics, simulator.integrator, h, self.system.mechanism.neutral())
        resolve = simulator.solver.resolve if simulator.joined() is None else 0.0
        ticks = whole_multiple("every", every, h, "step", MAX_STEPS_PER_CALL)
        program = simulator.self_contained_program(checks=resolve > 0.0)
        action_parts = simulator.dynamics, simulator.integrator, program, h, ticks, task
        self._stepped = ActionBuilder(*action_parts, simulator.joined(), self.dtype, resolve)
        self._action = self._stepped.action()
        check_counts(self.system, h, self.dtype)
        size = 8 * self.runs * (self._action.layout.size + self._action.free + 3 * self._action.row + 2)
        check_memory(f"a stepper of {self.runs} runs", size, "take a smaller batch")
        self.inputs, self.outputs = self.system.inputs, task.outputs
        self._lock = threading.Lock()
        self._load_module()
        self._initialise_runs(seed, parameters or {})
        self._refusal, self._is_guarded = "", False  # why steps are refused; whether `step` looks at it
        self.reset()
        self._check_first_start()
        if partial := partial_contacts(self.system.elements):
            self._watch_overlaps(partial)

    def _check_first_start(self) -> None:
        """Warn of random starts that are not possible, such as bodies inside each other, and refuse such a rest.

        The stepper itself is not refused, since other starts may be given to `reset`.
        """
        text = self._start_problem()
        if not text:
            return
        if self.task.start:
            warn(f"stepper: {text}")
            return
        unchecked_step = self.step

        def step(u: Any = None, *, out: Array | None = None) -> Array:
            if self._refusal:
                raise InputError(f"step: {self._refusal}")
            return unchecked_step(u, out=out)

        self._refusal, self._is_guarded = f"{text} This is the state of rest: call reset(start=...).", True
        self.step = step  # type: ignore[method-assign]

    def _watch_overlaps(self, contacts: list[Contact]) -> None:
        """Let `step` look, after some of its actions, for a terrain inside a shape between its contact points."""
        unwatched_step, actions, next_look = self.step, 0, 1

        def step(u: Any = None, *, out: Array | None = None) -> Array:
            nonlocal contacts, actions, next_look
            result = unwatched_step(u, out=out)
            actions += 1
            if contacts and actions >= next_look:
                next_look += min(actions, OVERLAP_CHECK_ACTIONS)
                nq, y = self.system.mechanism.nq, self._read(self._action.layout.places["y"])
                q = np.asarray(self._to_host(y[:CHECKED_RUNS, :nq]), float)
                t = np.reshape(self._to_host(self.t), -1)[:CHECKED_RUNS]
                contacts = warn_unfelt_overlaps(self.system.mechanism, contacts, t[:, None], q[:, None])
            return result

        self.step = step  # type: ignore[method-assign]

    def _start_problem(self) -> str:
        """Return why the present states are no possible starts, or an empty text."""
        try:
            self._check_starts(self._read(self._action.layout.places["y"]))
        except InputError as error:
            return str(error)
        return ""

    def _check_starts(self, y: Array) -> None:
        """Raise an InputError if one of the first states `y`, (runs, size), is no possible start."""
        if self.system.elements or self.system.motions or self.system.latches:
            self.simulator.dynamics.check_starts(np.asarray(self._to_host(y[:CHECKED_RUNS]), float), "start")

    # -- what is made once

    def _load_module(self) -> None:
        """Allocate memory for all runs, and load and configure the module that Python calls."""
        action, runs = self._action, self.runs
        self._code = ActionCode(action, 1 if runs == 1 else host().lanes("float64"))
        lanes, numbers_per_run = self._code.lanes, action.layout.size + action.free
        self._run_data = aligned_zeros(-(-runs // lanes) * numbers_per_run, lanes).reshape(-1, numbers_per_run, lanes)
        self._spaces = [aligned_zeros(self._code.workspace, lanes) for _ in range(max(1, self.threads))]
        self._reward, self._ended = np.zeros(self._shape), np.zeros(self._shape)
        self._final = np.zeros((*self._shape, action.row)) if self.task.restarts else None
        shapes = (*self._shape, max(1, action.nu)), (*self._shape, action.row)
        self._library = Library(compile_cached(text.entry(*shapes, runs))[0])
        self._words = (ctypes.c_int64 * len(text.SHARED_WORDS)).from_address(self._library.address("told"))
        arrays = {"reward": self._reward, "end": self._ended, "first": self._run_data, "ws": self._spaces[0]}
        arrays |= {"final": self._final} if self._final is not None else {}
        words = {name: address(x) for name, x in arrays.items()} | {"ticks": action.ticks, "runs": runs}
        words |= {name: self._code.library.address(name) for name in ("step", "odd")} | {"blocks": len(self._run_data)}
        for name, x in words.items():
            self._set(name, x)
        step_function = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2)
        self._step_address_call = step_function(self._library.address("one"))
        if action.nu and self.threads == 1:
            head = f"step(u, *, out=None)\n--\n\n{type(self).step.__doc__}"
            self.step = make_builtin(self._library.address, "step", head, self.step)  # type: ignore[method-assign]

    def _set(self, word: str, x: int) -> None:
        self._words[text.SHARED_WORDS.index(word)] = x

    def _get(self, word: str) -> int:
        return int(self._words[text.SHARED_WORDS.index(word)])

    def _initialise_runs(self, seed: int, parameters: Mapping[str, Any]) -> None:
        """Initialise status, seeds and parameters of every run before its first start."""
        places, all_runs = self._action.layout.places, np.ones(self.runs, bool)
        self._run_data[:, places["status"]] = FINISHED  # padding lanes stay finished
        words = seed_numbers(seed)
        if self.task.start:
            self._write_count("run", all_runs, np.arange(self.runs))
            self._write(places["seed"], all_runs, words)
            self._write(places["starts"], all_runs, 0.0)
        self._write(self._free, all_runs, self._numbers(parameters))

    @property
    def _lanes(self) -> int:
        return int(self._run_data.shape[0] * self._run_data.shape[2])

    def _read(self, place: int | slice) -> Array:
        """Return an element of state or parameters of all runs, (runs,), or a slice of them, (runs, elements)."""
        x = self.xp.moveaxis(self._run_data[:, place], 1, -1) if isinstance(place, slice) else self._run_data[:, place]
        return x.reshape(self._lanes, *x.shape[2:])[: self.runs]

    def _write(self, place: int | slice, chosen: Array, values: Any) -> None:
        """Set an element or a slice of state or parameters of some runs."""
        block, lane = (self.xp.asarray(k) for k in np.divmod(np.flatnonzero(chosen), self._run_data.shape[2]))
        values = self.xp.asarray(values)
        if isinstance(place, slice):
            self._run_data[block[:, None], self.xp.arange(place.start, place.stop), lane[:, None]] = values
        else:
            self._run_data[block, place, lane] = values

    def _write_count(self, name: str, chosen: Array, numbers: Array) -> None:
        """Set a counter of some runs; `numbers` has the values of all runs."""
        layout = self._action.layout
        words = layout.words(name)
        assert words is not None
        rows = split_words(numbers[chosen], words)
        self._write(layout.places[name], chosen, rows[0] if words == 1 else rows.T)

    @property
    def _free(self) -> slice:
        """Return the slice of the free parameters."""
        return slice(self._action.layout.size, self._run_data.shape[1])

    @property
    def _parameter_rows(self) -> Array:
        """Return the free parameters of all runs, in host memory."""
        rows: Array = self._to_host(self._read(self._free))
        return rows

    def _numbers(self, parameters: Mapping[str, Any]) -> Array:
        return rows_per_run("parameters", self.system.parameters.vector(parameters, "stepper"), self._shape, self.runs)

    # -- what users do

    def step(self, u: Any = None, *, out: Array | None = None) -> Array:
        """Execute one action and return the observations after it.

        Runs that have ended keep their state. The arrays reward, ended and final hold further results.

        Parameters
        ----------
        u : array_like, shape (batch, nu), optional
            Inputs, held during the action; None for a system without inputs.
        out : ndarray, shape (batch, outputs), optional
            Array for the result.

        Returns
        -------
        ndarray, shape (batch, outputs)
            Observations.

        Raises
        ------
        InputError
            If inputs are invalid or every run has ended.
        """
        checked = self._inputs(u)
        y = self._new_observations() if out is None else self._output(out)
        direct = y.flags.c_contiguous and not np.may_share_memory(y, checked)
        target = poisoned(y) if direct else empty_buffer(y.shape)
        if self.threads > 1:
            code = self._step_on_threads(checked, target)
        else:
            code = int(self._step_address_call(address(checked), address(target)))
        if code == text.BUSY:
            raise InputError(f"step: {BUSY_TEXT}")
        if code == text.ODD:
            bad = tuple(int(i) for i in np.argwhere(~np.isfinite(checked))[0])
            raise InputError(f"step: u{list(bad)} ({self.inputs[bad[-1]]}) is {checked[bad]}; expected finite numbers.")
        if code == text.ENDED:
            raise InputError("step: every run has ended; reset() restarts them, restart=True does so automatically.")
        if target is not y:
            y[...] = target
        return y

    def reset(
        self,
        mask: Any = None,
        start: Any = None,
        parameters: Mapping[str, Any] | None = None,
        seed: int | None = None,
        out: Array | None = None,
    ) -> Array:
        """Restart all runs or some of them, and return the observations.

        Parameters
        ----------
        mask : array_like of bool, shape (batch,), optional
            Runs to restart; default: all.
        start : array_like, shape (..., n), or mapping, optional
            Initial state, or elements of it by name ({"elbow.q": 0.1}) in the state of rest. Default: random starts if
            the stepper was made with `start`, else the state of rest.
        parameters : mapping of str to array_like, optional
            Values of free parameters, one for all or one per run.
        seed : int, optional
            Seed of random starts from now on.
        out : ndarray, shape (batch, outputs), optional
            Array for the result.

        Returns
        -------
        ndarray, shape (batch, outputs)
            Observations.

        Raises
        ------
        InputError
            If an argument is invalid, or a start does not satisfy the loop equations.
        """
        with self._exclusive_use("reset"):
            chosen = self._run_mask(mask)
            if parameters is not None and not self.system.parameters:
                raise InputError("reset: parameters is given, but this system has no free parameters.")
            p = None if parameters is None else self._numbers(parameters)
            y = None if start is None else self._start_states(start, self._parameter_rows if p is None else p)
            if y is not None:
                self._check_starts(y[chosen])
            words = None if seed is None else seed_numbers(seed)
            observations = self._new_observations() if out is None else self._output(out)
            places = self._action.layout.places
            if p is not None:
                self._write(self._free, chosen, p[chosen])
            if words is not None and self.task.start:
                self._write(places["seed"], chosen, words)
                self._write_count("starts", chosen, np.zeros(self.runs))
            if y is not None:
                self._write(places["y"], chosen, y[chosen])
            self._write(places["new"], chosen, DRAWN if y is None else GIVEN)
            for x in (self.reward, self.ended):
                x.reshape(-1)[self.xp.asarray(chosen)] = 0.0
            self._observe(observations)
            if self._is_guarded:
                self._refusal = self._start_problem()
            return observations

    def seen(self) -> Array:
        """Return the present observations, without an action.

        Returns
        -------
        ndarray, shape (batch, outputs)
            The observations; without the axis of the batch for one run.
        """
        with self._exclusive_use("seen"):
            place = self._new_observations()
            self._observe(place)
            return place

    def follow(self, function: Callable[..., Any], seconds: float) -> ControlledRun:
        """Advance one run with a controller in Python, for functions that cannot be traced.

        Parameters
        ----------
        function : callable
            Function of (t, y) that returns the inputs of an action, all or by name, from the observations.
        seconds : float
            Duration of the run.

        Returns
        -------
        ControlledRun
            Results of the run, with the time spent in Python.
        """
        return run_controller(self, function, seconds)

    def tune(self, parameters: Mapping[str, Any], *, check: bool = True) -> None:
        """Change values of free parameters from the next action on, while all runs continue.

        Parameters
        ----------
        parameters : mapping of str to array_like
            New values; other parameters keep theirs.
        check : bool, default True
            Check that the values are physically possible (no negative mass), which takes milliseconds.
        """
        with self._exclusive_use("tune"):
            p = self.system.parameters.changed(self._parameter_rows, parameters, "tune", check)
            self._write(self._free, np.ones(self.runs, bool), p)

    def _new_observations(self) -> Array:
        buffer: Array = empty_buffer((*self._shape, self._action.row), self.dtype, self.xp)
        return buffer

    def _observe(self, place: Array) -> None:
        """Initialise restarted runs, and write the observations of all runs."""
        target = poisoned(place) if place.flags.c_contiguous else empty_buffer(place.shape)
        settings = self._library.address("told")
        self._code.observe(0, len(self._run_data), settings, None, address(target), address(self._spaces[0]))
        running = self._read(self._action.layout.places["status"]) == 0
        self._set("alive", 1 if self.task.restarts else int(running.any()))
        if target is not place:
            place[...] = target

    def _to_host(self, x: Any) -> Any:
        """Return an array in host memory."""
        return x

    @property
    def reward(self) -> Array:
        """Return the reward of the last action for every run, (batch,)."""
        return self._reward

    @property
    def ended(self) -> Array:
        """Return 0 for runs that continue after the last action, else a code (see `reasons`), (batch,)."""
        return self._ended

    @property
    def final(self) -> Array | None:
        """Return the last observations of runs before their restart, (batch, outputs); None without `restart`."""
        return self._final

    @property
    def state(self) -> Array:
        """Return a copy of the states of every run, (batch, n), in the order of `elements`."""
        return self._shaped(self._read(self._action.layout.places["y"]))

    @property
    def elements(self) -> tuple[str, ...]:
        """Return the names of the elements of the state."""
        return tuple(self.simulator.dynamics.ports.elements)

    @property
    def t(self) -> Array:
        """Return the seconds since the start of every run, (batch,)."""
        words = self._read(self._action.layout.places["n"])
        words = words.astype(float)  # float32 (on a GPU) could represent neither the count nor the time exactly
        steps: Array = words if words.ndim == 1 else words[:, 0] * WORD_RANGE + words[:, 1]
        return steps.reshape(self._shape) * self.h

    @property
    def doubt(self) -> Array:
        """Return `step_error`: the former name, deprecated."""
        warn_deprecated("Stepper.doubt", "Stepper.step_error")
        return self.step_error

    @property
    def step_error(self) -> Array:
        """Return a copy of the estimated relative errors of every run since its start, (batch,).

        The error is the change by halving the step, as a share of the distance travelled; above the tolerance `resolve`
        a run is not resolved.

        Raises
        ------
        InputError
            If the stepper was made without resolve=...
        """
        if "step_error" not in self._action.layout:
            raise InputError("step_error: this stepper does not check its steps; make it with resolve=0.01.")
        return np.array(self._to_host(self._read(self._action.layout.places["step_error"]))).reshape(self._shape)

    @property
    def parameters(self) -> Array:
        """Return the free parameters of every run, (batch, np), in the order of system.parameters."""
        return self._shaped(self._read(self._free))

    def _shaped(self, x: Array) -> Array:
        return x.reshape(*self._shape, x.shape[1]).copy()

    @property
    def reasons(self) -> list[str]:
        """Return why each run has ended ("ended", "limit", "not finite", ...), or an empty text while it continues."""
        return [END_REASONS.get(int(x), "failed") for x in np.atleast_1d(self._to_host(self.ended))]

    @cached_property
    def transition(self) -> Kernel:
        """Return an action as a kernel (y, u) -> y, with derivatives (jvp, vjp).

        It is for control, bellcrank.jax and bellcrank.torch. It has neither runs nor end conditions. It also takes t if
        the system depends on it, and p.
        """
        return compile_graph(self._stepped.transition(), parameters=self.system.parameters)

    def snapshot(self) -> StepperSnapshot:
        """Return the complete state of the runs.

        Returns
        -------
        Snapshot
            For `restore` of this stepper or another one of the same system.
        """
        with self._exclusive_use("snapshot"):
            data, reward, ended = (x.copy() for x in (self._run_data, self.reward, self.ended))
            return StepperSnapshot(self._identity, data, reward, ended, self._get("alive"))

    def restore(self, snapshot: StepperSnapshot) -> None:
        """Restore the state of all runs.

        Parameters
        ----------
        snapshot : Snapshot
            Result of `snapshot` of this stepper, or of another one of the same system.

        Raises
        ------
        InputError
            If the snapshot belongs to a different stepper.
        """
        if not isinstance(snapshot, StepperSnapshot):
            raise InputError(f"restore: {type(snapshot).__name__} is not a snapshot; stepper.snapshot() makes one.")
        if snapshot.identity != self._identity:
            pairs = zip(self._identity, snapshot.identity, strict=True)
            differ = [f"{name}: {b}, not {a}" for (name, a), (_, b) in pairs if a != b]
            raise InputError(f"restore: the snapshot belongs to another stepper ({'; '.join(differ)}).")
        with self._exclusive_use("restore"):
            self._run_data[...], self.reward[...], self.ended[...] = snapshot.run_data, snapshot.reward, snapshot.ended
            self._set("alive", snapshot.alive)
            self._refusal = ""

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        """Return the properties that a snapshot must match."""
        m = self.system.mechanism
        return (
            ("mechanism", m.name), ("fingerprint", m.fingerprint), ("elements", self.elements), ("batch", self.batch),
            ("integrator", self.simulator.integrator.name), ("step", self.h), ("shape", self._run_data.shape),
        )  # fmt: skip

    def __repr__(self) -> str:
        many_runs = "one run" if self.batch is None else f"{self.batch} runs"
        return f"<Stepper {single_line(self.system.mechanism.name)}, {many_runs}, {self.every:g} s an action>"

    def __reduce__(self) -> str:
        raise InputError("a Stepper holds machine code of this process and cannot be pickled; send its .system.")

    # -- arguments

    @contextmanager
    def _exclusive_use(self, caller: str) -> Iterator[None]:
        """Give one thread exclusive use of the stepper; `caller` is named in the error of another one."""
        if not self._lock.acquire(blocking=False):
            raise InputError(f"{caller}: {BUSY_TEXT}")
        try:
            if self._get("busy"):
                raise InputError(f"{caller}: {BUSY_TEXT}")
            self._set("busy", 1)
            try:
                yield
            finally:
                self._set("busy", 0)
        finally:
            self._lock.release()

    def _inputs(self, u: Any) -> Array:
        return action_inputs(u, self._shape, self.inputs, self._action.nu)

    def _output(self, out: Any) -> Array:
        return action_output(out, (*self._shape, self._action.row))

    def _run_mask(self, mask: Any) -> Array:
        if mask is None:
            return np.ones(self.runs, bool)
        return reset_mask(self._to_host(mask), self._shape).reshape(self.runs)

    def _start_states(self, start: Any, p: Array) -> Array:
        dynamics = self.simulator.dynamics
        y = vector_argument("start", start, self.elements, dynamics.ports.rest)
        return dynamics.closure.checked(rows_per_run("start", y, self._shape, self.runs), p)

    def _step_on_threads(self, u: Array, y: Array) -> int:
        """Execute an action on several threads."""
        if not self._lock.acquire(blocking=False):
            return text.BUSY
        try:
            if not np.isfinite(u).all():
                return text.ODD
            if not self._get("alive"):
                return text.ENDED
            work = len(self._run_data), self.threads, self._library.address("told")
            self._set("alive", self._code.step_on_threads(*work, u, y, self._spaces))
            return 0
        finally:
            self._lock.release()
