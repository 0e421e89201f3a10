"""Model-predictive control of an arm with bellcrank's derivatives, while the arm runs in the real-time drive.

    python examples/predictive_control.py [--seconds 3]

In every period the controller reads the newest state. It improves its plan for the torques of the next half second by a
few steps of gradient descent (Adam) on the predicted error of the arm, and sends the first torques. The prediction is
the transition of a stepper, twelve times; the gradient is the vjp of all of it, one kernel. The lateness of the
controller and the deadlines of the drive are printed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import bellcrank as bc

Array = np.ndarray[Any, Any]
PERIOD, AHEAD, ROUNDS, STRENGTH = 0.04, 12, 20, 5.0


@dataclass
class Result:
    missed: Array  # m, at every period
    slowest: float  # s, of the controller
    late: int  # periods in which it took longer than the period
    period: float
    report: str  # of the drive's deadlines


def plant() -> bc.System:
    """Return two links in a plane, pushed by torques at both joints, with some friction."""
    b = bc.Builder("arm", gravity=(0, 0, 0))
    for k, parent in enumerate(("ground", "upper")):
        name = ("upper", "lower")[k]
        b.body(name, mass=1.0, com=(0.25 + 0.5 * k, 0, 0), inertia=(1e-3, 0.02, 0.02))
        b.joint(("shoulder", "elbow")[k], "revolute", parent, name, axis=(0, 0, 1), point=(0.5 * k, 0, 0))

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
        return [STRENGTH * u[name] - 0.5 * v[name] for name in ("shoulder", "elbow")]

    return bc.system(b.build(), control=control, inputs={"shoulder": 0.0, "elbow": 0.0})


def hand(y: Array) -> Array:
    a, b = y[..., 0], y[..., 0] + y[..., 1]
    return 0.5 * np.stack([np.cos(a) + np.cos(b), np.sin(a) + np.sin(b)], -1)


class Planner:
    """A plan of torques, improved at every call."""

    def __init__(self, system: bc.System, wanted: Array) -> None:
        step = bc.stepper(system, every=PERIOD, step=PERIOD).transition

        def cost(y: Any, plan: Any) -> Any:
            total = 0.0
            for u in plan:
                y = step(y, u)
                a, b = y[0], y[0] + y[1]
                off = 0.5 * (bc.cos(a) + bc.cos(b)) - wanted[0], 0.5 * (bc.sin(a) + bc.sin(b)) - wanted[1]
                total = total + off[0] * off[0] + off[1] * off[1] + 0.005 * (y[2] * y[2] + y[3] * y[3])
                total = total + 1e-4 * (u[0] * u[0] + u[1] * u[1])
            return total

        self._slope = bc.compile(cost, inputs={"y": 4, "plan": (AHEAD, 2)}).vjp("plan")
        self.plan = np.zeros((AHEAD, 2))
        self.mean, self.square, self.count = np.zeros((AHEAD, 2)), np.zeros((AHEAD, 2)), 0

    def gradient(self, y: Array) -> Array:
        found: Array = self._slope(y, self.plan, 1.0)
        return found

    def __call__(self, y: Array) -> Array:
        """Return the torques for now and shift the rest of the plan forward."""
        for _ in range(ROUNDS):
            g = self.gradient(y)
            self.count += 1
            self.mean, self.square = 0.8 * self.mean + 0.2 * g, 0.95 * self.square + 0.05 * g * g
            ratio = self.mean / (1 - 0.8**self.count) / (np.sqrt(self.square / (1 - 0.95**self.count)) + 1e-9)
            self.plan = np.clip(self.plan - 0.1 * ratio, -1.0, 1.0)
        now = self.plan[0].copy()
        for x in (self.plan, self.mean, self.square):
            x[:-1] = x[1:].copy()
        return now


def controlled(seconds: float = 3.0) -> Result:
    system, wanted = plant(), np.array([0.3, 0.6])
    planner = Planner(system, wanted)
    planner.gradient(np.zeros(4))  # compiles
    missed, took = [], []
    with bc.Drive(system, rate=1000.0) as drive:
        began = time.perf_counter()
        for k in range(round(seconds / PERIOD)):
            start = time.perf_counter()
            y = drive.snapshot().y
            missed.append(float(np.linalg.norm(hand(y) - wanted)))
            u = planner(y)
            drive.input({"shoulder": u[0], "elbow": u[1]})
            took.append(time.perf_counter() - start)
            time.sleep(max(0.0, began + (k + 1) * PERIOD - time.perf_counter()))
    late = sum(t > PERIOD for t in took)
    return Result(np.array(missed), max(took), late, PERIOD, str(drive.deadlines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    found = controlled(parser.parse_args().seconds)
    print(f"the hand missed {found.missed[0]:.2f} m at first and {1e3 * found.missed[-1]:.1f} mm at the end")
    print(
        f"the controller took {1e3 * found.slowest:.1f} of {1e3 * found.period:g} ms at most, late {found.late} times"
    )
    print(found.report)


if __name__ == "__main__":
    main()
