"""bc.drive: a system stepped in real time by a native thread, with an operator in the loop.

The thread runs the code of emit/cpu/realtime_loop.py without Python, allocations or the interpreter's lock. This file
sets the thread up, passes inputs in and states out (realtime_memory.py), and periodically moves rows from the ring to a
record.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, explain_methods
from bellcrank.build.function_compilation import compile_graph
from bellcrank.emit.cpu import realtime_loop
from bellcrank.errors import InputError, warn
from bellcrank.graph.program import REPARTITION, RUNNING
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.record.formats.mcap import GrowingRecord, RecordFiles
from bellcrank.sim import run_arguments
from bellcrank.sim.program.step_limits import check_fixed_steps
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.realtime.deadlines import Deadlines, deadline_report
from bellcrank.sim.realtime.realtime_memory import Clock, Exchange, LoopCode, ParameterLog, RowStore, realtime_priority
from bellcrank.sim.run.batch_execution import RunResults, RunRows
from bellcrank.sim.run.record_builder import Outcome, build_record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Solver, check_keywords
from bellcrank.sim.system.element_forces import partial_contacts, warn_unfelt_overlaps
from bellcrank.sim.system.systems import System, system

Array = np.ndarray[Any, Any]
MOST_CAUGHT_UP_PERIODS = 5  # periods that are caught up after an overrun; further ones are skipped
LONGEST_SLEEP_S = 3600.0  # seconds
LONGEST_PERIOD_NS = 3.6e12  # ns: an hour
SAVE_INTERVAL_S = 0.25  # s between writes to a record that grows
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 1e9 / LONGEST_PERIOD_NS, 1e9  # lowest and highest rate, periods per second


@dataclass(frozen=True, eq=False)
class DriveSnapshot:
    """The newest published state of a drive.

    Attributes
    ----------
    n : int
        Number of steps since the start.
    t : float
        Simulated time, s.
    y : ndarray
        State: positions, velocities, further states.
    u : ndarray
        Inputs.
    status : str
        "running", "paused", "stopped" or "failed".
    outputs : mapping of str to float
        Outputs of the system by name.
    """

    n: int
    t: float
    y: Array
    u: Array
    status: str = "running"
    outputs: Mapping[str, float] = field(default_factory=dict)


@explain_methods("__init__", "input", "reset", "slow", "tune")
class Drive:
    """A system that runs in real time. Use it as a context manager, or call start() and stop().

    Parameters
    ----------
    mechanism : Mechanism or System
        The system; a mechanism takes further parts of bc.system by keyword.
    rate : float, default 1000.0
        Periods per second.
    integrator, method, form : str
        See bc.Solver.
    q0, v0, x0 : array_like or mapping, optional
        Initial positions, velocities and further states.
    parameters : mapping of str to float, optional
        Values of free parameters.
    substeps : int, default 1
        Integration steps per period.
    every : int, default 1
        Periods between rows of the record.
    spin : float, default 0.0
        Busy-waiting time before each deadline, s.
    most : int, default 5
        Periods that are caught up after an overrun; further ones are skipped.
    core : int, optional
        Processor core of the thread. None pins it only if that helps (thread priority, realtime_memory.py).
    keep : float, optional
        Seconds that the record goes back; None keeps all rows.
    record : str or Path, optional
        An .mcap file that is written during the run, independent of `keep`; a reset starts another file beside it.
    clock : optional
        Source of the time, for tests.
    **parts
        Parts of bc.system, such as control and actuators.

    Raises
    ------
    InputError
        If an argument is invalid, or if steps are too long for the system.
    """

    def __init__(
        self,
        mechanism: Mechanism | System,
        rate: float = 1000.0,
        integrator: str = "rk4",
        method: str = "auto",
        form: str = "projected",
        q0: Any = None,
        v0: Any = None,
        x0: Any = None,
        parameters: Mapping[str, float] | None = None,
        substeps: int = 1,
        every: int = 1,
        spin: float = 0.0,
        most: int = MOST_CAUGHT_UP_PERIODS,
        core: int | None = None,
        keep: float | None = None,
        record: str | Path | RecordFiles | None = None,
        clock: Clock | None = None,
        **parts: Any,
    ) -> None:
        """Check the arguments, compile the system and set the initial state."""
        check_keywords(Drive, parts, system)
        self.rate = run_arguments.rate("rate", rate, "periods a second", LOWEST_RATE_HZ, HIGHEST_RATE_HZ)
        substeps = run_arguments.count("substeps", substeps, run_arguments.MAX_STEPS_PER_CALL)
        every = run_arguments.count("every", every, items=" of periods")
        spin = run_arguments.delay("spin", spin)
        if most:
            run_arguments.count("most", most)
        self.step = 1.0 / (self.rate * substeps)
        self.simulator = Simulator(mechanism, integrator, method, form=form, solver=Solver(step=self.step), **parts)
        self.system = self.simulator.system
        self.substeps, self.every, self.core = substeps, every, core
        self._parameters = self.system.parameters.vector(parameters or {}, "drive").reshape(1, -1)
        self._parameter_log = ParameterLog(self.system.parameters, self._parameters[0])
        self._files = RecordFiles(record) if isinstance(record, str | Path) else record
        self._growing: GrowingRecord | None = None
        self._unwritten: list[Array] = []
        self._file_error = ""
        self._limit = None if keep is None else round(run_arguments.duration("keep", keep) * self.rate / every)
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self.notes: list[str] = []
        self._codes: dict[Dynamics, LoopCode] = {}
        simulated, y = (self.simulator.dynamics, self.simulator.integrator), self._given_start(q0, v0, x0)
        check_fixed_steps(*simulated, self.step, y, lambda h: f"rate={math.ceil(1 / (h * substeps)):g} or more")
        self.program = self.simulator.program()
        self._layout = self.program.layout
        self.shared = Exchange(self._layout.size, self.program.row, self.program.nu, self._parameters[0], clock)
        if self.program.nu:  # values before the operator's first input
            self.shared.set_default_inputs(np.array(list(self.program.ports.inputs.values())))
        self._period = round(1e9 / self.rate)
        loop_settings = {"stride": every, "ticks": substeps, "most": int(most), "spin": round(spin * 1e9)}
        for word, value in (loop_settings | {"period": self._period}).items():
            self.shared.set(word, value)
        # All slow preparation happens here, before real time starts.
        self._predicted = self.simulator.predicted.one * substeps
        self._output_probe = OutputProbe(self.simulator.dynamics)
        self.reset(q0, v0, x0)

    # -- for the operator

    def __enter__(self) -> Drive:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the thread; no effect if it runs."""
        with self._lock:
            if self.running:
                return
            if self._restarted:
                self.simulator.dynamics.check_starts(self.shared.state[None, self._layout.span("y")])
            self.shared.set("stop", 0)
            self._thread = threading.Thread(target=self._run, name="bellcrank drive", daemon=True)
            self._writer = threading.Thread(target=self._save_periodically, name="bellcrank ring", daemon=True)
            self._thread.start()
            self._writer.start()

    @property
    def running(self) -> bool:
        """Return True while the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Stop the thread and wait for it; the record stays available."""
        self.shared.set("stop", 1)
        for thread in (self._thread, getattr(self, "_writer", None)):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        self._drain()
        self._save_rows()
        self._close_file()
        if partial := partial_contacts(self.system.elements):
            rows, nq = self.row_store.rows()[None], self.system.mechanism.nq
            if rows.size:
                warn_unfelt_overlaps(self.system.mechanism, partial, rows[..., 0], rows[..., 1 : 1 + nq])
        if self._file_error:  # warn here, in the thread of the caller
            error, self._file_error = self._file_error, ""
            warn(error)

    def pause(self) -> None:
        """Pause the simulation with its state kept, until resume()."""
        self.shared.set("pause", 1)

    def resume(self) -> None:
        """Continue after pause(), without catching up."""
        self.shared.set("pause", 0)

    @property
    def paused(self) -> bool:
        """Return True while paused."""
        return bool(self.shared.get("pause"))

    def slow(self, factor: float) -> None:
        """Change the speed relative to real time.

        Parameters
        ----------
        factor : float
            Speed: 1 is real time, 0.1 is ten times slower.

        Raises
        ------
        InputError
            If a period would be shorter than 1 ns or longer than an hour.
        """
        period = self._period / run_arguments.positive("factor", factor, "")
        if not 1.0 <= period <= LONGEST_PERIOD_NS:
            raise InputError(
                f"factor is {factor!r}: a period would take {1e-9 * period:.3g} s; expected 1 ns to an hour."
            )
        self.shared.set("period", round(period))

    def reset(self, q0: Any = None, v0: Any = None, x0: Any = None) -> None:
        """Return to an initial state, with an empty record. A running drive is stopped for it and restarted.

        Parameters
        ----------
        q0, v0, x0 : array_like or mapping, optional
            Initial positions, velocities and further states; default: neutral, at rest, initial values of the system.

        Raises
        ------
        InputError
            If the start is not a single state, or does not satisfy the loop equations.
        """
        is_given = any(x is not None for x in (q0, v0, x0))
        q0 = self.program.ports.rest[: self.system.mechanism.nq] if q0 is None else q0
        y = self._given_start(q0, v0, x0).reshape(1, -1)
        if is_given:
            self.simulator.dynamics.check_starts(y)
        was_running = self.running
        if was_running or self._growing is not None:
            self.stop()
        y = self.simulator.dynamics.closure.checked(y, self._parameters)
        self.shared.restart(self.program.initial_states(y, self.step)[:, 0])
        self.row_store = RowStore(self.shared.row + self.shared.nu, self._limit)
        self._parameter_log.restart()
        self._restarted = True
        self._code_for_state()
        if was_running:
            self.start()

    def input(self, values: Mapping[str, float] | Sequence[float]) -> None:
        """Set the inputs from now on; the most recent call takes effect.

        Before the first call the inputs have the default values of the system, or 0.

        Parameters
        ----------
        values : mapping of str to float, or array_like of shape (nu,)
            New values; inputs that a mapping does not name keep their values.

        Raises
        ------
        InputError
            If a name is unknown or a value is not finite.
        """
        names = self.system.inputs
        new = self.shared.mailbox[1:].copy()
        if isinstance(values, Mapping):
            run_arguments.check_known("inputs", "input", values, names)
            for name, x in values.items():
                new[names.index(name)] = run_arguments.real_number(f"inputs: {name}", x)
        else:
            given_values = run_arguments.real_array("inputs", values)
            if given_values.shape != new.shape:
                raise InputError(
                    f"inputs has the shape {given_values.shape}; expected ({len(names)},): {', '.join(names)}."
                )
            new = given_values
        if not np.isfinite(new).all():
            raise InputError(f"inputs: {new.tolist()} is not finite.")
        with self._lock:
            self.shared.send(new)

    def tune(self, values: Mapping[str, float], *, check: bool = True) -> None:
        """Change values of free parameters from the next period on. The record stores the values of each row.

        Parameters
        ----------
        values : mapping of str to float
            New values; other parameters keep theirs.
        check : bool, default True
            Check that the values are physically possible (no negative mass), which takes milliseconds.
        """
        with self._lock:
            now = float(self.shared.newest()[0][self._layout.place("t")])
            new = self._parameter_log.change(values, now, check)
            self.shared.parameters[: len(new)] = self._parameters[0] = new

    def snapshot(self) -> DriveSnapshot:
        """Return the newest state, without waiting for the loop.

        Returns
        -------
        Snapshot
            Number of the period, time, state, inputs, status and columns.
        """
        state, u = self.shared.newest()
        t, y = float(state[self._layout.place("t")]), state[self._layout.places["y"]]
        status = "stopped" if not self.running else "paused" if self.paused else "running"
        if state[self._layout.place("status")] != RUNNING:
            status = "failed"
        outputs = self._output_probe(t, y, u, self._parameters[0])
        return DriveSnapshot(int(state[self._layout.place("n")]), t, y, u, status, outputs)

    def report(self) -> dict[str, Any]:
        """Return the deadline statistics so far as plain data; `deadline_report` is an object that prints itself.

        Returns
        -------
        dict
            Numbers, texts, and lists and mappings of these.
        """
        return self.deadlines.plain()

    @property
    def deadlines(self) -> Deadlines:
        """Return the deadline statistics: durations of periods, their delays, and deadline misses."""
        x = self.shared
        words = {name: x.get(name) for name in realtime_loop.BLOCK_WORDS}
        statistics = x.costs.copy(), x.delays.copy(), x.owns.copy(), x.log.copy()
        return deadline_report(words, *statistics, self.step, self._predicted, self.notes)

    def record(self) -> Record:
        """Return the record of the rows so far.

        Returns
        -------
        Record
            The rows, with the deadline statistics in its provenance.
        """
        self._drain()
        with self._lock:
            rows = self.row_store.rows()
        return self._recorded(rows)

    def _recorded(self, rows: Array) -> Record:
        row, nu = self.shared.row, self.shared.nu
        inputs = rows[None, :, row:] if nu else np.zeros((1, 1, 0))
        table = rows[:, :row].copy()
        if nu:
            table[:, -1] = np.arange(len(table))
        recorded_rows = RunRows(1)
        recorded_rows.add(np.arange(1), table[None], np.array([len(table)]))
        done = RunResults(self.shared.newest()[0][:, None], recorded_rows, np.zeros(1, int), True)
        settings = {"rate": self.rate, "step": self.step, "every": self.every, "realtime": self.report()}
        if self.row_store.dropped:
            settings["rows forgotten"] = self.row_store.dropped
        dynamics, integrator = self.simulator.dynamics, self.simulator.integrator
        tuned = self._parameter_log.rows(table[:, 0], self.step)
        run = done, (), inputs, self._parameters, (), settings
        return build_record(Outcome(dynamics, integrator, self._layout, *run, tuned_parameters=tuned))

    def _given_start(self, q0: Any, v0: Any, x0: Any) -> Array:
        """Return the state of a start, or raise an InputError if it is not a single one."""
        y = run_arguments.initial_state(self.system, q0, v0, x0)
        if y.ndim != 1:
            raise InputError(f"reset: the start has the shape {y.shape}, several states; a drive has one.")
        return y

    # -- threads

    def _run(self) -> None:
        status, live = (self._layout.place(name) for name in ("status", "live"))
        while True:
            self.shared.use_code(self._code_for_state())
            if self._restarted:
                self.shared.begin()
                self._restarted = False
            with realtime_priority(self.core) as self.notes:
                reason = self.shared.run()
            state = self.shared.state
            if reason == realtime_loop.STOPPED or state[status] != REPARTITION:
                return
            state[status], state[live] = RUNNING, 1.0

    def _code_for_state(self) -> LoopCode:
        """Return machine code for the present state: loops may need other dependent coordinates."""
        state = self.shared.state
        (group,) = self.simulator.dynamics.closure.grouped(state[self._layout.span("y")][None], self._parameters)
        if group.bound is not None:
            state[self._layout.place("bound")] = group.bound[0]
        if group.dynamics not in self._codes:
            self._codes[group.dynamics] = LoopCode(self.simulator.program(by=group.dynamics))
        return self._codes[group.dynamics]

    def _wait_for_first_period(self, timeout: float = 10.0) -> None:
        """Wait until the first period is over, which may take a while on a busy computer."""
        until = time.monotonic() + timeout
        while self.running and not self.shared.get("steps") and time.monotonic() < until:
            time.sleep(1e-3)

    def _save_periodically(self) -> None:
        next_save = time.monotonic() + SAVE_INTERVAL_S
        while self.running:
            time.sleep(0.05)
            self._drain()
            if time.monotonic() >= next_save:
                self._save_rows()
                next_save = time.monotonic() + SAVE_INTERVAL_S

    def _drain(self) -> None:
        """Move rows from the ring to the record."""
        with self._lock:
            rows = self.shared.drain()
            self.row_store.add(rows)
            if self._files is not None and len(rows):
                self._unwritten.append(rows)

    def _save_rows(self) -> None:
        """Append new rows to the growing file, without holding the lock, because writing takes long."""
        with self._lock:
            new, self._unwritten = self._unwritten, []
        if self._files is None or not new:
            return
        part = self._recorded(np.concatenate(new))
        try:
            if self._growing is None:
                self._growing = GrowingRecord(self._files.next(), part, self.rate / self.every)
            else:
                self._growing.add(part)
        except (OSError, InputError) as error:  # such as a full disk: rows in memory stay available
            self._give_up_file(error)

    def _close_file(self) -> None:
        if self._growing is not None:
            try:
                self._growing.finish(self._recorded(self.row_store.rows()[-1:]))
            except OSError as error:
                self._give_up_file(error)
            self._growing = None

    def _give_up_file(self, error: Exception) -> None:
        if self._growing is not None:
            self._growing.abandon()
        self._files = self._growing = None
        self._file_error = f"writing the record to its file has stopped ({error}); record() has the rows in memory."


@explain_argument_errors
def drive(
    mechanism: Mechanism | System, rate: float = 1000.0, seconds: float | None = None, **settings: Any
) -> Drive | Record:
    """Run a system in real time.

    Parameters
    ----------
    mechanism : Mechanism or System
        The system.
    rate : float, default 1000.0
        Periods per second.
    seconds : float, optional
        Duration; None runs until the drive is stopped.
    **settings
        Further arguments of Drive.

    Returns
    -------
    Record or Drive
        The Record after `seconds`, or the running Drive if `seconds` is None.
    """
    remaining = None if seconds is None else run_arguments.duration("seconds", seconds)
    started = Drive(mechanism, rate, **settings)
    started.start()
    if remaining is None:
        return started
    try:
        started._wait_for_first_period()
        while remaining > 0.0:  # time.sleep is limited to a longest duration
            time.sleep(min(remaining, LONGEST_SLEEP_S))
            remaining -= LONGEST_SLEEP_S
    finally:
        started.stop()
    return started.record()


class OutputProbe:
    """Evaluates the outputs at (t, y, u, p) and returns them by name."""

    def __init__(self, dynamics: Dynamics) -> None:
        system = dynamics.system
        self.names = tuple(system.outputs)
        if not self.names:
            return

        def observed(t: Any, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"output": list(system.observed(t, list(y), u).values())}

        graph = dynamics.trace("probe", observed, dynamics.arguments)
        self._kernel = compile_graph(graph, parameters=system.parameters)

    def __call__(self, t: float, y: Array, u: Array, p: Array) -> dict[str, float]:
        """Return the outputs by name at time `t`, state `y`, inputs `u` and parameters `p`."""
        if not self.names:
            return {}
        arguments = {"t": t, "y": y, "u": u, "p": p}
        values = self._kernel(*(arguments[name] for name in self._kernel.signature.inputs))
        return dict(zip(self.names, values.tolist(), strict=True))
