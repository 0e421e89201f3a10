"""Response of excavator_linkage to its levers: a full bucket is heavy, a hard cut stalls the arm, and the heap stays.

    python examples/stick_response.py

The same levers are pulled each time; the cases differ in the load, in the soil, or in nothing at all. Speeds are those
of the joints, pressures those of the cylinders (bar, on the working side). It takes a minute of one core, most of it to
compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.excavators.linkage_machine import machine
from bellcrank.excavators.offline import moments
from bellcrank.ground.soils import SOILS, plane_of_failure, resistance
from bellcrank.sim.stepper.stepper_factory import stepper

BAR, DEG = 1e-5, 180.0 / np.pi
DEPTH, RAKE = 0.5, 0.8  # m, rad
M = machine()
NAMES = [*M.names[: M.system.size]]
HOW = {"integrator": "rk4", "step": 1e-3}


def seen(y: Any, name: str) -> float:
    return float(y[NAMES.index(name)])


def lifted(mass: float) -> tuple[float, float]:
    """Raise the boom for a second and a half; return its highest speed in deg/s and the pressure under its pistons."""
    plant = stepper(M.system, every=0.02, form="projected", **HOW)
    plant.reset()
    plant.tune({"load.mass": mass, "ground.height": -100.0})
    up, speeds, pressures = np.array(M.first(), float), [], []
    up[1] = M.levers[1].high
    for _ in range(75):
        plant.step(up)
        y = np.asarray(plant.state).reshape(-1)
        speeds.append(seen(y, "boom.v") * DEG)
        pressures.append(seen(y, "boom_cylinder.p_A") * BAR)
    return max(speeds), float(np.mean(pressures[25:]))


def pulled(soil: str) -> tuple[float, float]:
    """Pull the stick in for a second and a half with the teeth half a metre deep; return its speed and pressure."""
    plant, width = stepper(M.system, every=0.02, form="projected", **HOW), M.contact.tool.width
    plant.reset()
    deep = float(M.mechanism.pose(M.mechanism.neutral(), "tip")[2, 3]) + DEPTH
    beta = plane_of_failure(SOILS[soil], width, RAKE, 0.0, DEPTH)
    met = resistance(SOILS[soil], width, RAKE, 0.0, beta)
    plant.tune({"ground.height": deep, "ground.square": float(met.square), "ground.linear": float(met.linear)})
    pull, speeds, pressures = np.array(M.first(), float), [], []
    pull[2] = M.levers[2].low
    for _ in range(75):
        plant.step(pull)
        y = np.asarray(plant.state).reshape(-1)
        speeds.append(abs(seen(y, "stick.v")) * DEG)
        pressures.append(max(seen(y, f"stick_cylinder.p_{side}") for side in "AB") * BAR)
    return float(np.mean(speeds[25:])), float(np.mean(pressures[25:]))


def main() -> None:
    for what, mass in (("empty", 0.0), ("full, 1540 kg", 1540.0)):
        speed, pressure = lifted(mass)
        print(f"boom up, bucket {what:14} {speed:5.1f} deg/s, {pressure:4.0f} bar under the boom")
    for soil in ("loam", "lean clay", "heavy clay"):
        speed, pressure = pulled(soil)
        print(f"stick in, half a metre deep in {soil:11} {speed:5.1f} deg/s, {pressure:4.0f} bar in its cylinder")
    pilot = M.pilots["dig"]()
    heights = {}
    for now in moments(M, 40.0, lambda s: pilot(s) if s.t < 22.0 else M.first(), **HOW):
        heights[round(now.t, 2)] = now.digger.ground.heights.copy()
    ground, moved = now.digger.ground, float(np.abs(heights[40.0] - heights[30.0]).max())
    print(f"the heap: {heights[30.0].max():.2f} m high, the hole {-heights[30.0].min():.2f} m deep; ten seconds later")
    print(f"they differ by {1e3 * moved:.1f} mm, and earth by {ground.balance:.0e} m3 from what there was")


if __name__ == "__main__":
    main()
