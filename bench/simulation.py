"""`python -m bench simulation`: whole runs, 10 s at 1 ms with RK4, from `Simulator.run` to the finished Record.

Ours record every step, as a run does by default; MuJoCo and Pinocchio record nothing. They run the same mechanism from
the same start, and their state after 100 steps must equal ours to rounding, or nothing is compared. All run on one
pinned core and in CPU time of its thread, which equals wall time on an idle machine. Rows with two cores are in wall
time, and are meaningless on a busy machine. Pinocchio's loop is timed by wall time, but in pieces so short that the
best is undisturbed. The excavator has the hydraulics, the dead band and the PD control of Wong's RESOLVED run, at its
step of 0.01 s; a ratio there is the factor to real time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.excavators import spool_control as experiment
from bench import baseline, peers
from bench.row import CORE, Row, robot

Array = np.ndarray[Any, Any]
Clock = Callable[[], float]
SECONDS, STEP, STATES = 10.0, 1e-3, 1024
STEPS = round(SECONDS / STEP)
PIECE = 200  # steps of a peer that are timed together
EVERY_STEP, END = STEP, SECONDS  # seconds between rows of the record
ALLOWED = os.sched_getaffinity(0)  # before the process is pinned


def rows() -> Iterator[Row]:
    for name in ("ur5", "panda", "chain(8)"):
        m = robot(name) if name in ("ur5", "panda") else bc.zoo.load(name)
        s = bc.Simulator(m, "rk4")
        yield from one(name, m, s)
        yield from batch(name, m, s)
    yield from excavator()


def one(name: str, m: bc.Mechanism, s: bc.Simulator) -> Iterator[Row]:
    q, v, _ = m.random(0)

    def ours(every: float = EVERY_STEP) -> float:
        return 1e9 / STEPS * fastest(lambda: s.run(SECONDS, q0=q, v0=v, step=STEP, every=every))

    check(name, m, s, q, v)
    first = ours()
    mujoco = peers.mujoco_run(m, q, v, PIECE, STEP).ns
    builds = (
        [run.ns for run in peers.pinocchio_runs(m, q, v, PIECE, STEP, CORE, seconds=1.0)]
        if baseline.available()
        else []
    )
    best = min(first, ours())
    yield Row(f"one state, {name}, step, MuJoCo", best, mujoco, "ns", 8)
    if builds:
        yield Row(f"one state, {name}, step, Pinocchio", best, builds[0], "ns", 8, fastest=min(builds))
    yield recording(f"one state, {name}", ours)
    yield predicted(f"one state, {name}", 1e9 * s.predicted.one, best)


def batch(name: str, m: bc.Mechanism, s: bc.Simulator) -> Iterator[Row]:
    q, v, _ = m.random(0, STATES)

    def ours(every: float = EVERY_STEP, threads: int = 1, clock: Clock = time.thread_time) -> float:
        def run() -> None:
            s.run(SECONDS, q0=q, v0=v, step=STEP, every=every, threads=threads)

        return 1e9 / STEPS / STATES * timed(run, clock)

    s.run(STEP, q0=q, v0=v, step=STEP)  # compiles
    ours()  # the first record of this size gets its memory from the system, the next ones reuse it
    first = ours()
    mujoco = peers.mujoco_run(m, q[0], v[0], PIECE, STEP).ns
    best = min(first, ours())
    yield Row(f"batch of {STATES}, {name}, step, MuJoCo", best, mujoco, "ns", 40)
    yield recording(f"batch of {STATES}, {name}", ours)
    yield predicted(f"batch of {STATES}, {name}", 1e9 * s.predicted.batch, best)
    if len(ALLOWED) < 2:
        print("one core is allowed: two are not measured.", file=sys.stderr)
        return
    alone, together = [], []
    for _ in range(3):  # in turn
        alone.append(ours(clock=time.perf_counter))
        os.sched_setaffinity(0, sorted(ALLOWED)[-2:])
        together.append(ours(threads=2, clock=time.perf_counter))
        os.sched_setaffinity(0, {CORE})
    yield Row(f"batch of {STATES}, {name}, step, two cores, one", min(together), min(alone), "ns", 1.9)


def excavator() -> Iterator[Row]:
    arm, start = bc.zoo.excavator(), experiment.poses()[0]
    s = bc.Simulator(bc.system(arm, actuators=experiment.hydraulics(), control=experiment.resolved_mode()), "rk4")
    wall = fastest(lambda: s.run(experiment.SECONDS, q0=start, step=0.01))
    yield Row("excavator with hydraulics, its 15 s, real time", wall, experiment.SECONDS, "s", 1e4)
    steps = round(experiment.SECONDS / 0.01)
    yield predicted("excavator with hydraulics", 1e9 * s.predicted.one, 1e9 * wall / steps)


def recording(work: str, ours: Callable[[float], float]) -> Row:
    """Compare a record of every step with a record of the start and the end."""
    pairs = [(ours(END), ours(EVERY_STEP)) for _ in range(3)]  # in turn, so that a disturbance affects both
    end, every = (min(times) for times in zip(*pairs, strict=True))
    return Row(f"{work}, recording costs", 100.0 * (every / end - 1.0), None, "%", 10.0)


def predicted(work: str, before: float, measured: float) -> Row:
    """Compare the cost model's prediction of a step, made before compilation, with the measured time. No promise."""
    return Row(f"{work}, step, predicted", measured, before, "ns", None)


def check(name: str, m: bc.Mechanism, s: bc.Simulator, q: Array, v: Array, steps: int = 100) -> None:
    """Check that the peers are at the same state after a tenth of a second."""
    run = s.run(steps * STEP, q0=q, v0=v, step=STEP)
    ours = np.concatenate([run.q[-1], run.v[-1]])
    found = {"MuJoCo": peers.mujoco_run(m, q, v, steps, STEP, seconds=0.0)}
    if baseline.available():
        for k, r in enumerate(peers.pinocchio_runs(m, q, v, steps, STEP, CORE, seconds=0.0)):
            found[f"Pinocchio, build {k}"] = r
    for peer, theirs in found.items():
        off = np.abs(theirs.end - ours).max()
        if not off < 1e-9 * (1.0 + np.abs(ours).max()):
            raise RuntimeError(f"{name}: {peer} is {off:.3g} away after {steps} steps: not the same run.")


def fastest(call: Callable[[], Any], seconds: float = 0.5) -> float:
    """Return seconds of the fastest of several calls, after a first one that compiles."""
    call()
    best, until = timed(call), time.perf_counter() + seconds
    while time.perf_counter() < until:
        best = min(best, timed(call))
    return best


def timed(call: Callable[[], Any], clock: Clock = time.thread_time) -> float:
    t0 = clock()
    call()
    return clock() - t0
