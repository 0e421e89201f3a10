"""`python -m bench legs`: Unitree's A1 on its four feet, standing and trotting, against MuJoCo with the same feet.

Ours are a thousand robots in lanes on one pinned core, with servos and a sampled trot compiled into the step. MuJoCo's
robots have servos of the same gains and get the targets of our run, sample by sample, in its own batched rollout, which
spends no time in Python. Both have the same step and no other contacts than the four feet. Before the timing, both must
stand up, carry their weight and have as many feet on the ground, on average, to a quarter of a foot. MuJoCo takes
semi-implicit steps, its usual ones; ours takes the same (`euler`), and four rates per step (`rk4`) in addition.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.control import Leg, Trot
from bench import baseline
from bench.row import Row

Array = np.ndarray[Any, Any]
ROBOTS, STEP, SECONDS = 1024, 1e-3, 2.0
KP, KD, LIMIT = 100.0, 3.0, 33.5
FEET = {"FR": 1, "FL": -1, "RR": -1, "RL": 1}  # 1: the pair that starts
APART = 0.25  # allowed difference between the two runs in feet on the ground, on average
TIMED = 500  # steps


def rows() -> Iterator[Row]:
    for what, speed in (("standing", 0.0), ("trotting", 0.5)):
        plant, q0 = robot(speed if speed else None)
        run = bc.simulate(plant, SECONDS, q0, step=STEP, every=STEP, integrator="euler")
        targets = np.stack([run[f"{a.joint}.held"] for a in plant.actuators], axis=-1)[1:]
        peer = Peer([a.joint for a in plant.actuators], q0)
        check(what, plant, run, peer.feet(targets))
        ours = {name: lanes(plant, q0, name) for name in ("euler", "rk4")}
        first = {name: timed() for name, timed in ours.items()}
        theirs = peer.seconds(targets[-TIMED:])
        for name, timed in ours.items():
            best = min(first[name], timed())
            yield Row(f"{ROBOTS} quadrupeds {what}, step of {name}, MuJoCo", 1e6 * best, 1e6 * theirs, "us", 5)


def robot(speed: float | None) -> tuple[bc.System, Array]:
    """Return the robot, standing (None) or trotting, and its start."""
    file = baseline.robot_path("a1")
    found = bc.collisions(file, bc.read(file, base="floating"))
    m = found.mechanism
    gait = trot(1e9 if speed is None else 0.5, speed or 0.0)
    touching = found.contacts(only=[f"{leg}_foot" for leg in FEET], stiffness=2e4, damping=1.0, friction=0.8)
    servos = [PD(joint, KP, KD, limit=LIMIT) for joint in gait.joints]
    control = bc.Sampled(gait, every=gait.every, states=gait.states)
    q0 = m.neutral()
    for joint, angle in gait.stance.items():
        q0[m.columns[0].index(joint)] = angle
    q0[2] = gait.height + 0.02
    return bc.system(m, servos, control, elements=touching), q0


def trot(start: float, speed: float) -> Trot:
    legs = {
        name: Leg(*(f"{name}_{j}_joint" for j in ("hip", "thigh", "calf")), 0.18 if name[0] == "F" else -0.18, pair > 0)
        for name, pair in FEET.items()
    }
    return Trot(legs, "root_joint", link=0.2, height=0.27, speed=speed, start=start)


def lanes(plant: bc.System, q0: Array, integrator: str) -> Callable[[], float]:
    """Return seconds per step and robot, of many robots with starts at different heights, in CPU time of one thread."""
    s = bc.Simulator(plant, integrator)
    many = np.tile(q0, (ROBOTS, 1))
    many[:, 2] += np.linspace(0.0, 0.01, ROBOTS)

    def run(seconds: float = SECONDS) -> float:
        t0 = time.thread_time()
        s.run(seconds, q0=many, step=STEP, keep="final", threads=1)
        return (time.thread_time() - t0) * STEP / seconds / ROBOTS

    run(STEP)  # compiles
    return run


def check(what: str, plant: bc.System, run: bc.Record, theirs: Mapping[str, float]) -> None:
    """Check that both runs stand or trot, with as many feet on the ground."""
    late = run.t > 1.0
    down = sum(float((run[f"{e.name}.fz"][late] > 0.0).mean()) for e in plant.elements)
    weight = 9.81 * sum(float(b.mass) for b in plant.mechanism.bodies)
    carried = sum(float(run[f"{e.name}.fz"][late].mean()) for e in plant.elements)
    low = min(theirs["low"], float(run[f"{plant.mechanism.bodies[0].name}.z"][late].min()))
    if abs(down - theirs["feet"]) > APART or abs(carried / weight - 1.0) > 0.05 or low < 0.2:
        raise RuntimeError(
            f"{what}: {down:.2f} and {theirs['feet']:.2f} feet on the ground, {carried / weight:.2f} of the weight "
            f"carried, trunks at {low:.2f} m or above: not the same runs."
        )


class Peer:
    """MuJoCo's A1, from the same file; only its feet and the floor have contacts."""

    def __init__(self, joints: list[str], q0: Array) -> None:
        import mujoco

        text = baseline.robot_path("a1").read_text("utf-8")
        text = re.sub(r"<visual>.*?</visual>", "", text, flags=re.DOTALL)
        text = re.sub(
            r"<collision>.*?</collision>", lambda c: c[0] if "sphere" in c[0] else "", text, flags=re.DOTALL
        )  # fmt: skip
        options = '<mujoco><compiler discardvisual="true" fusestatic="true" balanceinertia="true"/></mujoco>'
        spec = mujoco.MjSpec.from_string(re.sub(r"(<robot[^>]*>)", rf"\1{options}", text, count=1))
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[10, 10, 0.1])
        next(b for b in spec.bodies if b.name != "world").add_freejoint()
        spec.option.timestep = STEP
        for joint in joints:
            servo = spec.add_actuator(name=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT, target=joint)
            servo.set_to_position(kp=KP, kv=KD)
            servo.forcerange = [-LIMIT, LIMIT]
        self.mujoco, self.model = mujoco, spec.compile()
        self.data = mujoco.MjData(self.model)
        places = [self.model.joint(j).qposadr[0] for j in joints]
        self.data.qpos[places], self.data.qpos[2] = q0[7:], q0[2]

    def feet(self, targets: Array) -> dict[str, float]:
        """Run to the end; return the mean number of contacts after the first second, and the trunk's lowest height."""
        down, low = [], []
        for row in targets:
            self.data.ctrl[:] = row
            self.mujoco.mj_step(self.model, self.data)
            down.append(self.data.ncon)
            low.append(self.data.qpos[2])
        late = round(1.0 / STEP)
        return {"feet": float(np.mean(down[late:])), "low": float(np.min(low[late:]))}

    def seconds(self, targets: Array) -> float:
        """Return the best seconds per step, from the current state."""
        from mujoco import rollout

        spec = self.mujoco.mjtState.mjSTATE_FULLPHYSICS
        start = np.zeros(self.mujoco.mj_stateSize(self.model, spec))
        self.mujoco.mj_getState(self.model, self.data, start, spec)
        given, best = targets[None], float("inf")
        for _ in range(10):
            t0 = time.thread_time()
            rollout.rollout(self.model, self.data, start[None], given)
            best = min(best, time.thread_time() - t0)
        return best / len(targets)
