"""The running drive: its settings, what the levers say, and its newest picture as a message.

Changing rate, integrator or method means other machine code. It is compiled beside the running drive, and the motion
goes on from the state at that moment.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bellcrank.cockpit import messages, stage
from bellcrank.cockpit.machines import Machine, Pilot
from bellcrank.cockpit.plant import Driven, Make
from bellcrank.cockpit.reach import reached, tool
from bellcrank.cockpit.replay import packed, with_ground
from bellcrank.cockpit.site import Site
from bellcrank.dynamics import candidates
from bellcrank.errors import InputError, unknown
from bellcrank.ground.digger import Digger
from bellcrank.ground.field import Ground, Patch
from bellcrank.integrate import INTEGRATORS
from bellcrank.patience import uncollected
from bellcrank.record import Record
from bellcrank.version import __version__

RATES = (100, 200, 500, 1000, 2000, 5000, 10000)  # steps per second
SLOWEST, FASTEST = 0.01, 2.0
STEP = 0.02  # s, of one step by hand
MANY = 40  # states from which on slopes between them take long to compile


@dataclass(frozen=True)
class Settings:
    rate: float = 1000.0
    integrator: str = "rk4"
    method: str = "auto"


def patience(states: int, integrator: str) -> str:
    """What to expect of code that takes long to compile; nothing for the rest."""
    if states < MANY or integrator not in INTEGRATORS or not INTEGRATORS[integrator].stiff:
        return ""
    return (
        f"{integrator} needs how all {states} states change each other: the first time that takes a minute or two to "
        "compile, and is kept. rk4 compiles in a fifth of it"
    )


class Session:
    def __init__(self, machine: Machine, make: Make, settings: Settings | None = None) -> None:
        self.machine, self.make = machine, make
        self.settings = self.checked(settings or Settings(machine.rate, machine.integrator))
        self.epoch, self.resets, self.slowness = 0, 0, 1.0
        self._goes_on = False  # whether a person wants it to run
        self.compiling = ""  # what for, while it takes
        self.pilot = ""
        self._pilot: Pilot | None = None
        self.levers = machine.first()
        self.number = 0  # of the driver's newest message
        self.poses = stage.pose_kernel(machine.mechanism)
        # Once: it takes long, and whoever comes and goes a hundred times a second must not hold up the others.
        self.scene = stage.described(machine.mechanism, np.asarray(self._start()), alone=bool(machine.look))
        self.digger = Digger(machine.contact) if machine.contact else None
        self.site = Site(self)
        self.tuned = dict[str, float]()  # parameters that are not as the model says
        self._switching, self._swap, self._over = threading.Lock(), threading.RLock(), False
        self.drive: Driven = self._made(self.settings)
        self.drive.reset(q0=self._start())
        self.drive.input(self.levers)

    # -- what a person may do

    @property
    def running(self) -> bool:
        """Whether the drive runs: a person wants it to, and its physics has not failed."""
        return self._goes_on and self.drive.snapshot().status != "failed"

    def start(self) -> None:
        self._over = False
        self.drive.start()
        self._goes_on = True

    def stop(self) -> None:
        with self._swap:  # a drive that is still being compiled is not started any more
            self._over = True
            self.drive.stop()
            self._goes_on = False

    def pause(self) -> None:
        self.drive.pause()
        self._goes_on = False

    def resume(self) -> None:
        self.drive.resume()
        self._goes_on = True

    def step(self) -> None:
        """On by STEP seconds, or a little more, and still again; a drive that runs is stopped."""
        self.pause()
        begun = self.drive.snapshot().t
        self.drive.resume()
        for _ in range(200):
            time.sleep(2e-3)
            if self.drive.snapshot().t - begun >= STEP:
                break
        self.drive.pause()

    def reached(self, point: Sequence[float]) -> list[float]:
        """Sliders that bring the tool there, from where it is."""
        return reached(self.machine, np.array(self.drive.snapshot().y[: self.machine.mechanism.nq]), point)

    def reset(self) -> None:
        self.pilot = ""
        pairs = zip(self.machine.levers, self.levers, self.machine.first(), strict=True)
        self.levers = [now if lever.name == self.machine.mode else first for lever, now, first in pairs]
        with self._swap:
            self.resets += 1
            self.drive.input(self.levers)
            self.drive.reset(q0=self._start())
            if not self._over:
                self.drive.start()  # its thread has ended where the physics had failed
            if self.digger is not None:
                self.digger.ground.heal()

    def slow(self, factor: float) -> None:
        if not SLOWEST <= factor <= FASTEST:
            raise InputError(f"slow motion of {factor:g}; expected {SLOWEST:g} to {FASTEST:g}, 1 is real time.")
        self.drive.slow(factor)
        self.slowness = factor

    def move(self, values: Sequence[float], number: int = 0) -> None:
        self.levers = self.machine.values(values)
        self.number = number
        self.pilot = ""
        self.drive.input(self.levers)

    def let_go(self) -> None:
        """All levers to neutral; those that stay where they are stay."""
        neutral = self.machine.neutral(self.levers)
        if neutral != self.levers:
            self.levers = neutral
            self.drive.input(neutral)

    def fly(self, name: str) -> None:
        if name and name not in self.machine.pilots:
            raise InputError(unknown("program", name, self.machine.pilots))
        self.pilot = name
        self._pilot = self.machine.pilots[name]() if name else None
        if not name:
            self.let_go()

    def switch(self, rate: float = 0.0, integrator: str = "", method: str = "") -> None:
        """Slow: compiles, while the drive runs on. One at a time."""
        wanted = replace(
            self.settings,
            rate=rate or self.settings.rate,
            integrator=integrator or self.settings.integrator,
            method=method or self.settings.method,
        )
        if self.checked(wanted) == self.settings:
            return
        if not self._switching.acquire(blocking=False):
            raise InputError("another change is being compiled; wait for it.")
        try:
            self.compiling = f"{wanted.integrator}, {wanted.method}, {wanted.rate:g} steps per second"
            if slow := patience(self.machine.system.size, wanted.integrator):
                self.compiling += f" ({slow})"
            with uncollected():  # which would hold up the pictures, 0.3 s at a time
                made = self._made(wanted)
                self._place(made)  # loops need code for where they are: compiled now, and not in the gap below
            with self._swap:
                if not self._over:
                    self._replace(made, wanted)
        finally:
            self.compiling = ""
            self._switching.release()

    def _replace(self, made: Driven, settings: Settings) -> None:
        """The other drive goes on from where this one is."""
        self.drive.pause()
        self._place(made)
        self.drive.stop()
        made.slow(self.slowness)
        made.input(self.levers)
        made.tune(self.tuned, check=False)  # it is in force already
        self.drive, self.settings, self.epoch = made, settings, self.epoch + 1
        if self.ground is not None:
            self.ground.begin()
        made.start()
        if not self._goes_on:
            made.pause()

    def _place(self, made: Driven) -> None:
        """Puts it into the state of the running one."""
        y, m = np.array(self.drive.snapshot().y), self.machine.mechanism
        made.reset(q0=y[: m.nq], v0=y[m.nq : m.nq + m.nv], x0=y[m.nq + m.nv :])

    def checked(self, s: Settings) -> Settings:
        if s.rate not in RATES:
            raise InputError(f"rate is {s.rate:g}; expected one of {', '.join(map(str, RATES))} steps per second.")
        for what, name, known in (("integrator", s.integrator, INTEGRATORS), ("method", s.method, self.methods)):
            if name not in known:
                raise InputError(unknown(what, name, known))
        return s

    @property
    def methods(self) -> list[str]:
        return ["auto", *(by.name for by in candidates("forward_dynamics", self.machine.mechanism.tree))]

    # -- what the page is told

    def welcome(self) -> dict[str, Any]:
        """Everything that does not change, for a page that has just come."""
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
            "patterns": {name: {mode: dict(axes) for mode, axes in p.items()} for name, p in m.patterns.items()},
            "mode": m.mode,
            "modes": list(m.modes),
            "words": {name: dict(x) for name, x in m.words.items()},
            "spans": {name: dict(x) for name, x in m.spans.items()},
            "look": m.look,
            "ground": m.ground,
            "trace": m.trace,
            "tool": asdict(m.tool) if m.tool else None,
            "pilots": list(m.pilots),
            **self.site.offered(),
            "handle": tool(m),
            "formats": ["csv", "npz", "parquet"],
            "choices": {"rate": list(RATES), "integrator": list(INTEGRATORS), "method": self.methods},
        }

    def now(self) -> dict[str, Any]:
        """What a person may have changed."""
        changed = {"running": self.running, "slow": self.slowness, "pilot": self.pilot, "compiling": self.compiling}
        return asdict(self.settings) | changed | self.site.now()

    def frame(self, flags: int, serial: int) -> bytes:
        drive = self.drive
        shot = drive.snapshot()
        y = np.asarray(shot.y)
        flags |= messages.RUNNING if self.running else 0
        outputs = np.fromiter(shot.outputs.values(), float) if self.machine.system.outputs else np.empty(0)
        poses = self.poses(np.ascontiguousarray(y[: self.machine.mechanism.nq]))
        numbers = poses, y, np.asarray(shot.u), outputs
        return messages.state(flags, self.epoch, self.number, shot.n, shot.t, self.slowness, serial, numbers)

    def shown(self) -> tuple[object, ...]:
        """Two equal ones give the same picture."""
        return self.epoch, self.resets, self.number, self.running, self.slowness, self.drive.snapshot().n

    @property
    def ground(self) -> Ground | None:
        return self.digger.ground if self.digger is not None else None

    def dig(self) -> Patch | None:
        """Lets the teeth work on the ground, and the machine feel it; what has changed of it."""
        if self.digger is None or self.machine.trace is None:
            return None
        with self._swap:
            shot, m = self.drive.snapshot(), self.machine.mechanism
            index = [b.name for b in m.bodies].index(self.machine.trace[0])
            pose = self.poses(np.ascontiguousarray(np.asarray(shot.y)[: m.nq]))[index].reshape(3, 4)
            if np.isfinite(pose).all():
                self.tune(self.digger.look(shot.t, pose), check=False)  # made by the ground itself, many times a second
            return self.digger.ground.news()

    def tune(self, values: Mapping[str, float], check: bool = True) -> None:
        """Parameters from now on: only what is another number than before goes to the drive."""
        new = {name: x for name, x in values.items() if self.tuned.get(name) != x}
        if new:
            self.drive.tune(new, check=check)
            self.tuned |= new  # what the drive refuses is not in force

    def piloted(self) -> None:
        """Lets the program at the levers move them."""
        if self._pilot is not None and self.pilot:
            self.levers = self.machine.values(self._pilot(self.drive.snapshot()))
            self.drive.input(self.levers)

    def recorded(self, begin: float = -math.inf, end: float = math.inf) -> Record:
        """All that is kept, or the part between two times."""
        run = self.drive.record()
        return run if (begin, end) == (-math.inf, math.inf) else run.between(begin, end)

    def saved(self, begin: float, end: float) -> Record:
        """The same, and what became of the ground."""
        return with_ground(self.recorded(begin, end), self.ground)

    def state_of_record(self, end: float) -> tuple[object, ...]:
        """Two equal ones have the same rows up to `end`, but for those that the record has forgotten meanwhile."""
        with self._swap:
            shot = self.drive.snapshot()
            return self.epoch, self.resets, shot.n if end >= shot.t else None

    def replay(self, begin: float, end: float) -> bytes:
        """What was recorded between two times, thinned out, and the ground with it, as a page takes it."""
        return packed(self.recorded(begin, end), self.machine.names, self.poses, self.ground)

    # -- inside

    def _made(self, s: Settings) -> Driven:
        return self.make(self.machine.system, s.rate, s.integrator, s.method)

    def _start(self) -> list[float]:
        start = self.machine.start
        return [float(x) for x in (start if start is not None else self.machine.mechanism.neutral())]
