"""The excavator through a cycle of its autopilot, as a picture that moves: python docs/figures/digging.py > ...svg

The run is that of docs/excavator.md: mechanics, hydraulics, control and soil. The arm is drawn in its own plane, so
that it stays in sight while the machine swings.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import excavator_linkage as still

import bellcrank as bc
from bellcrank.excavators.geometry import Linkage
from bellcrank.excavators.linkage_system import parts

CYCLE, FRAMES, PLAYED = 30.0, 75, 10.0  # s of the machine, pictures of it, s of the reader
TOP, BOTTOM = 6.6, -1.9  # m


def drawing() -> str:
    digger = bc.system(**parts())
    every = CYCLE / FRAMES
    run = bc.simulate(digger, 2 * CYCLE, step=5e-4, every=every, inputs={"autopilot": 1.0}, form="projected")
    m, cylinders = bc.zoo.excavator_linkage(), Linkage.of_zoo().given["cylinders"]
    q = np.array(run.q[FRAMES : 2 * FRAMES + 1])  # the second cycle, which ends as it began
    q[:, 0] = 0.0
    frames = [still.arm(*still.places(m, row), cylinders) for row in q]
    frames[-1] = frames[0]
    width, top = still.WIDTH * still.SCALE, (still.TOP - TOP) * still.SCALE
    height = (TOP - BOTTOM) * still.SCALE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top:.0f} {width:.0f} {height:.0f}">',
        "<title>An excavator digs: simulated with its linkage, hydraulics, control and soil</title>",
        f'<rect y="{top:.0f}" width="100%" height="100%" fill="#fbfaf7"/>',
        f'<rect y="{still.TOP * still.SCALE:.1f}" width="100%" height="100%" fill="#e9e1d0"/>',
        *(still.shape(*part) for part in still.body()),
    ]
    for k, (points, style, close) in enumerate(frames[0]):
        moved = ";".join(" ".join(still.px(p) for p in frame[k][0]) for frame in frames)
        drawn = still.shape(points, style, close).removesuffix("/>")
        kind = "polygon" if close else "polyline"
        animated = f'<animate attributeName="points" dur="{PLAYED:g}s" repeatCount="indefinite" values="{moved}"/>'
        lines.append(f"{drawn}>{animated}</{kind}>")
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    print(drawing(), end="")
