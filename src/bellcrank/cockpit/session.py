"""Session: the running drive with its settings, levers and state messages.

A change of rate, integrator or method needs other machine code. It is compiled while the drive runs, and the motion
then continues from the present state.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bellcrank.cockpit import messages, scene_poses
from bellcrank.cockpit.machines import Machine, Pilot, lever_positions, tool_frame
from bellcrank.cockpit.site import Site
from bellcrank.dynamics import candidates
from bellcrank.errors import InputError, check_known
from bellcrank.ground.contact import Digger
from bellcrank.ground.field import Ground, Patch
from bellcrank.integrate import INTEGRATORS
from bellcrank.progress import garbage_collection_paused
from bellcrank.record import Record
from bellcrank.sim.realtime.realtime_drive import Drive
from bellcrank.sim.system.systems import System
from bellcrank.version import __version__

RATES = (100, 200, 500, 1000, 2000, 5000, 10000)  # steps per second
MIN_SLOW_FACTOR, MAX_SLOW_FACTOR = 0.01, 2.0
STEP_SECONDS = 0.02  # s, length of a manual step
# (system, rate, integrator, method) to a drive that is not started.
DriveFactory = Callable[[System, float, str, str], Drive]
# Fields of a machine that a page gets as they are.
PAGE_FIELDS = ("patterns", "joysticks", "mode", "modes", "words", "spans", "look", "ground", "trace")
MANY_STATES = 40  # states from which on the compilation of their Jacobian is slow


@dataclass(frozen=True)
class Settings:
    """Settings that a person may change during a drive."""

    rate: float = 1000.0
    integrator: str = "rk4"
    method: str = "auto"


def compile_warning(states: int, integrator: str) -> str:
    """Return a warning if compilation for this `integrator` and number of `states` is slow; else ""."""
    if states < MANY_STATES or integrator not in INTEGRATORS or not INTEGRATORS[integrator].stiff:
        return ""
    return (
        f"{integrator} needs the Jacobian of all {states} states, which takes a minute or two to compile the first "
        "time; later it comes from the cache. rk4 compiles five times faster"
    )


class Session:
    """Running drive of a machine, and everything that its pages can do with it."""

    def __init__(self, machine: Machine, make: DriveFactory, settings: Settings | None = None) -> None:
        self.machine, self.make = machine, make
        self.settings = self.check_settings(settings or Settings(machine.rate, machine.integrator))
        self.epoch, self.resets, self.slowness = 0, 0, 1.0
        self.compiling = ""  # settings that are being compiled
        self.pilot = ""
        self._pilot: Pilot | None = None
        self.levers = machine.first()
        self.number = 0  # number of the driver's newest message
        self.poses = scene_poses.pose_kernel(machine.mechanism)
        # Computed once: it is slow, and pages that connect a hundred times a second must not delay the others.
        self.scene = scene_poses.scene_data(machine.mechanism, np.asarray(self._start()), alone=bool(machine.look))
        self.digger = Digger(machine.contact) if machine.contact else None
        self.site = Site(self)
        self.tuned = dict[str, float]()  # parameters that differ from the model
        self._switch_lock, self._swap_lock, self._stopped = threading.Lock(), threading.RLock(), False
        self.drive: Drive = self._new_drive(self.settings)
        self.drive.reset(q0=self._start())
        self.drive.input(self.levers)

    # -- actions of a person

    @property
    def running(self) -> bool:
        """True while the drive runs: started, not paused, and its physics has not failed."""
        with self._swap_lock:  # the short stop of a drive that is reset or replaced is not shown
            return self.drive.snapshot().status == "running"

    def start(self) -> None:
        """Start the drive, and end a pause."""
        with self._swap_lock:
            self._stopped = False
            self.drive.start()
            self.drive.resume()

    def stop(self) -> None:
        """Stop the drive."""
        with self._swap_lock:  # a drive that is still being compiled must not start any more
            self._stopped = True
            self.drive.stop()

    def pause(self) -> None:
        """Pause the drive."""
        self.drive.pause()

    def resume(self) -> None:
        """End a pause; a drive that is stopped stays so until start()."""
        self.drive.resume()

    def step(self) -> None:
        """Advance by STEP_SECONDS seconds, or a little more, and pause."""
        self.pause()
        begun = self.drive.snapshot().t
        self.drive.resume()
        for _ in range(200):
            time.sleep(2e-3)
            shot = self.drive.snapshot()
            if shot.status != "running" or shot.t - begun >= STEP_SECONDS:
                break
        self.drive.pause()

    def slider_targets(self, point: Sequence[float]) -> list[float]:
        """Return slider positions that move the tool from its present position to `point`."""
        return lever_positions(self.machine, np.array(self.drive.snapshot().y[: self.machine.mechanism.nq]), point)

    def reset(self) -> None:
        """Return to the start, with initial levers and undisturbed ground."""
        self.pilot = ""
        pairs = zip(self.machine.levers, self.levers, self.machine.first(), strict=True)
        self.levers = [now if lever.name == self.machine.mode else first for lever, now, first in pairs]
        with self._swap_lock:
            self.resets += 1
            self.drive.input(self.levers)
            self.drive.reset(q0=self._start())
            if not self._stopped:
                self.drive.start()  # its thread has ended if the physics had failed
            if self.digger is not None:
                self.digger.ground.heal()

    def slow(self, factor: float) -> None:
        """Run slower than real time by `factor`; 1 is real time."""
        if not MIN_SLOW_FACTOR <= factor <= MAX_SLOW_FACTOR:
            raise InputError(
                f"slow motion of {factor:g}; expected {MIN_SLOW_FACTOR:g} to {MAX_SLOW_FACTOR:g}, 1 is real time."
            )
        self.drive.slow(factor)
        self.slowness = factor

    def move_levers(self, values: Sequence[float], number: int = 0) -> None:
        """Move the levers to `values`, from the driver's message with this `number`; ends a program."""
        self.levers = self.machine.values(values)
        self.number = number
        self.pilot = ""
        self.drive.input(self.levers)

    def release_levers(self) -> None:
        """Release all levers."""
        neutral = self.machine.neutral(self.levers)
        if neutral != self.levers:
            self.levers = neutral
            self.drive.input(neutral)

    def start_pilot(self, name: str) -> None:
        """Start the program `name`, or end a program if empty."""
        if name:
            check_known("program", name, self.machine.pilots)
        self.pilot = name
        self._pilot = self.machine.pilots[name]() if name else None
        if not name:
            self.release_levers()

    def switch(self, rate: float = 0.0, integrator: str = "", method: str = "") -> None:
        """Change settings; compiles for seconds while the drive continues, one change at a time.

        Parameters
        ----------
        rate
            Steps per second; 0 keeps the present rate.
        integrator
            Name of the integrator; empty keeps the present one.
        method
            Method of forward dynamics; empty keeps the present one.
        """
        changes = {"rate": rate, "integrator": integrator, "method": method}
        new_settings = Settings(**asdict(self.settings) | {key: x for key, x in changes.items() if x})
        if self.check_settings(new_settings) == self.settings:
            return
        if not self._switch_lock.acquire(blocking=False):
            raise InputError("another change is being compiled; wait for it.")
        try:
            self.compiling = f"{new_settings.integrator}, {new_settings.method}, {new_settings.rate:g} steps per second"
            if slow := compile_warning(self.machine.system.size, new_settings.integrator):
                self.compiling += f" ({slow})"
            with garbage_collection_paused():  # garbage collection would delay states by 0.3 s each time
                new_drive = self._new_drive(new_settings)
                # Loops need code for the present state: compiled now, not while the drive is paused.
                self._copy_state(new_drive)
            with self._swap_lock:
                if not self._stopped:
                    self._replace(new_drive, new_settings)
        finally:
            self.compiling = ""
            self._switch_lock.release()

    def _replace(self, new_drive: Drive, settings: Settings) -> None:
        """Replace the drive by another that continues from the present state, and is paused or stopped as before."""
        stopped, paused = self.drive.snapshot().status == "stopped", self.drive.paused
        self.drive.pause()
        try:
            self._copy_state(new_drive)
        except InputError:  # the state is no possible start, such as bodies pressed deep into each other
            if not paused:
                self.drive.resume()
            raise
        self.drive.stop()
        new_drive.slow(self.slowness)
        new_drive.input(self.levers)
        new_drive.tune(self.tuned, check=False)  # checked when they were set
        self.drive, self.settings, self.epoch = new_drive, settings, self.epoch + 1
        if self.ground is not None:
            self.ground.begin()
        if not stopped:
            new_drive.start()
        if paused:
            new_drive.pause()

    def _copy_state(self, new_drive: Drive) -> None:
        """Set a drive to the state of the running drive."""
        y, m = np.array(self.drive.snapshot().y), self.machine.mechanism
        new_drive.reset(q0=y[: m.nq], v0=y[m.nq : m.nq + m.nv], x0=y[m.nq + m.nv :])

    def check_settings(self, s: Settings) -> Settings:
        """Return the settings `s`, or raise an InputError if they are invalid."""
        if s.rate not in RATES:
            raise InputError(f"rate is {s.rate:g}; expected one of {', '.join(map(str, RATES))} steps per second.")
        for what, name, known in (("integrator", s.integrator, INTEGRATORS), ("method", s.method, self.methods)):
            check_known(what, name, known)
        return s

    @property
    def methods(self) -> list[str]:
        """Names of the methods that apply to the mechanism."""
        return ["auto", *(method.name for method in candidates("forward_dynamics", self.machine.mechanism.tree))]

    # -- data for the page

    def welcome(self) -> dict[str, Any]:
        """Return the constant data of the session for a new page."""
        m = self.machine
        return {
            "protocol": messages.PROTOCOL,
            "version": __version__,
            "name": m.mechanism.name,
            "scene": self.scene,
            "names": m.names,
            "sizes": [len(m.mechanism.bodies), m.system.size, len(m.system.inputs), len(m.system.outputs)],
            "levers": [asdict(lever) | {"label": lever.label or lever.name} for lever in m.levers],
            "first": m.first(),
            "plots": [asdict(p) for p in m.plots],
            "gauges": [asdict(g) | {"warn": g.warn if math.isfinite(g.warn) else None} for g in m.gauges],
            **{key: getattr(m, key) for key in PAGE_FIELDS},
            "tool": asdict(m.tool) if m.tool else None,
            "pilots": list(m.pilots),
            **self.site.choices(),
            "handle": tool_frame(m),
            "formats": ["csv", "npz", "parquet"],
            "choices": {"rate": list(RATES), "integrator": list(INTEGRATORS), "method": self.methods},
        }

    def current_settings(self) -> dict[str, Any]:
        """Return the settings that a person may have changed."""
        changed = {"running": self.running, "slow": self.slowness, "pilot": self.pilot, "compiling": self.compiling}
        return asdict(self.settings) | changed | self.site.current_state()

    def frame(self, flags: int, serial: int) -> bytes:
        """Return the newest state as a message with `flags` and number `serial`."""
        drive = self.drive
        shot = drive.snapshot()
        y = np.asarray(shot.y)
        flags |= messages.RUNNING if self.running else 0
        outputs = np.fromiter(shot.outputs.values(), float) if self.machine.system.outputs else np.empty(0)
        poses = self.poses(np.ascontiguousarray(y[: self.machine.mechanism.nq]))
        numbers = poses, y, np.asarray(shot.u), outputs
        return messages.state_message(flags, self.epoch, self.number, shot.n, shot.t, self.slowness, serial, numbers)

    def state_key(self) -> tuple[object, ...]:
        """Return a key of the displayed state: equal keys give equal pictures."""
        return self.epoch, self.resets, self.number, self.running, self.slowness, self.drive.snapshot().n

    @property
    def ground(self) -> Ground | None:
        """Ground that the machine digs, if there is one."""
        return self.digger.ground if self.digger is not None else None

    def dig(self) -> Patch | None:
        """Let the tool dig, pass the ground's forces to the machine, and return the changes of the ground."""
        if self.digger is None or self.machine.trace is None:
            return None
        with self._swap_lock:
            shot, m = self.drive.snapshot(), self.machine.mechanism
            index = [b.name for b in m.bodies].index(self.machine.trace[0])
            pose = self.poses(np.ascontiguousarray(np.asarray(shot.y)[: m.nq]))[index].reshape(3, 4)
            if np.isfinite(pose).all():
                self.tune(self.digger.update(shot.t, pose), check=False)  # values from the ground, many times a second
            return self.digger.ground.take_changes()

    def tune(self, values: Mapping[str, float], check: bool = True) -> None:
        """Set parameters to `values`; only changed ones are passed to the drive, which validates them by `check`."""
        new = {name: x for name, x in values.items() if self.tuned.get(name) != x}
        if new:
            self.drive.tune(new, check=check)
            self.tuned |= new  # only after the drive has accepted them

    def run_pilot(self) -> None:
        """Let the active program move the levers."""
        if self._pilot is not None and self.pilot:
            self.levers = self.machine.values(self._pilot(self.drive.snapshot()))
            self.drive.input(self.levers)

    def recorded(self, begin: float = -math.inf, end: float = math.inf) -> Record:
        """Return the record from time `begin` to `end`."""
        run = self.drive.record()
        return run if (begin, end) == (-math.inf, math.inf) else run.between(begin, end)

    def record_with_ground(self, begin: float, end: float) -> Record:
        """Return the record from time `begin` to `end` with the changes of the ground, for a file."""
        return scene_poses.with_ground(self.recorded(begin, end), self.ground)

    def record_key(self, end: float) -> tuple[object, ...]:
        """Return a key of the record up to time `end`: equal keys have the same rows, except rows dropped since."""
        with self._swap_lock:
            shot = self.drive.snapshot()
            return self.epoch, self.resets, shot.n if end >= shot.t else None

    def replay(self, begin: float, end: float) -> bytes:
        """Return replay data from time `begin` to `end` for a page."""
        return scene_poses.pack_replay(self.recorded(begin, end), self.machine.names, self.poses, self.ground)

    # -- inside

    def _new_drive(self, s: Settings) -> Drive:
        return self.make(self.machine.system, s.rate, s.integrator, s.method)

    def _start(self) -> list[float]:
        start = self.machine.start
        return [float(x) for x in (start if start is not None else self.machine.mechanism.neutral())]
