"""`python -m bench loops`: runs of mechanisms with closed loops, against Pinocchio's constraintDynamics in C++.

Theirs is the classical Runge-Kutta method around constraintDynamics, with a point constraint (CONTACT_3D) for each loop
(pinocchio_loops.cpp); nothing is projected, nothing is recorded, and the proximal solver has the fewest rounds that
give the result of more rounds. Ours is the minimal form, from `Simulator.run` to the finished Record. Both have the
same step, and ours must end at least as near as theirs to a run with a quarter of the step; loops of theirs drift
apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc
from bench import baseline, peers
from bench.row import CORE, Row
from bench.simulation import fastest

Array = np.ndarray[Any, Any]
STEP, SECONDS, STEPS = 1e-3, 10.0, 200  # of a step; of a run of ours; steps of theirs that are timed together
MU, ROUNDS = 1e-12, 1  # of the proximal solver: more rounds cost more and leave the same error
PROMISED = {"four_bar": 5.0, "n_four_bar(8)": 5.0, "n_four_bar(40)": 10.0}


def rows() -> Iterator[Row]:
    if not baseline.available():
        raise RuntimeError(f"{baseline.missing()} not found: constraintDynamics is only timed in C++.")
    for name, must in PROMISED.items():
        yield compared(name, must)


def compared(name: str, must: float) -> Row:
    m = bc.zoo.load(name)
    q, v = bc.zoo.start(m)
    s = bc.Simulator(m, "rk4")
    check(name, m, s, q, v)
    per_step = 1e9 * STEP / SECONDS

    def ours() -> float:
        return per_step * fastest(lambda: s.run(SECONDS, q0=q, v0=v, step=STEP))

    first = ours()
    theirs = [run.ns for run in pinocchio_runs(m, q, v, STEPS, seconds=1.0)]
    return Row(f"one state, {name}, step, Pinocchio", min(first, ours()), theirs[0], "ns", must, fastest=min(theirs))


def check(name: str, m: bc.Mechanism, s: bc.Simulator, q: Array, v: Array, steps: int = STEPS) -> None:
    """Check that both motions agree after a fifth of a second, and that ours is at least as accurate."""
    seconds = steps * STEP
    exact, mine = (s.run(seconds, q0=q, v0=v, step=h, every=seconds) for h in (STEP / 4, STEP))
    end = np.concatenate([exact.q[-1], exact.v[-1]])
    off = np.abs(np.concatenate([mine.q[-1], mine.v[-1]]) - end).max()
    for run in pinocchio_runs(m, q, v, steps):
        missed = np.abs(run.end - end).max()
        print(f"{name}: after {steps} steps ours is {off:.2g} off, Pinocchio's {missed:.2g}", file=sys.stderr)
        if missed > 1e-6:
            raise RuntimeError(f"{name}: Pinocchio is {missed:.3g} away after {steps} steps: not the same run.")
        if off > missed + 1e-12:
            raise RuntimeError(f"{name}: ours is {off:.3g} off after {steps} steps, Pinocchio's {missed:.3g}.")


def pinocchio_runs(
    m: bc.Mechanism, q: Array, v: Array, steps: int, seconds: float = 0.0, mu: float = MU, rounds: int = ROUNDS
) -> list[peers.Run]:
    """Run every build, the usual one first; return the state at the end in our order of joints."""
    model = peers.pinocchio_model(m, peers.depth_first(m))
    joints = [j.name for j in m.joints]
    order = [joints.index(name) for name in list(model.names)[1:]]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        model.saveToText(f"{folder}/model.txt")
        np.savetxt(f"{folder}/start.txt", np.concatenate([q[order], v[order]]), fmt="%.17g")
        Path(f"{folder}/loops.txt").write_text("".join(f"{_end(m, x.a)} {_end(m, x.b)}\n" for x in m.loops))
        for program in baseline.build(baseline.LOOPS).values():
            files = [f"{folder}/{part}.txt" for part in ("model", "loops", "start")]
            given = [str(CORE), *files, str(steps), repr(STEP), str(seconds), repr(mu), str(rounds)]
            said = json.loads(subprocess.run([program, *given], stdout=subprocess.PIPE, text=True, check=True).stdout)
            state = np.array(said["end"]).reshape(2, -1)
            found.append(peers.Run(said["ns_min"], state[:, np.argsort(order)].ravel()))
    return found


def _end(m: bc.Mechanism, frame: str) -> str:
    """Return Pinocchio's joint of the body, and the point there."""
    f = m.frames[frame]
    joint = next((j.name for j, b in zip(m.joints, m.bodies, strict=True) if b.name == f.body), "universe")
    return " ".join([joint, *(repr(float(x)) for x in f.point)])
