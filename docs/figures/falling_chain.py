"""`python docs/figures/falling_chain.py FILE.svg [LINKS]`: a chain that falls over a peg, of 10,000 links unless told.

The chain is 100 m long, lies level at first, a little off the middle of the peg, and is let go. Its links push at the
peg as balls do, and rub.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import bellcrank as bc
from bellcrank.formats.builder import Builder
from bellcrank.scalar import maximum, sqrt

LENGTH, DENSITY = 100.0, 1.0  # m, kg/m
PEG, AT = 2.0, (6.0, -2.2)  # radius of the peg, and where its axis is, from the chain's middle, m
STIFF, DAMPED, FRICTION, SLOW = 2e4, 20.0, 0.15, 0.1  # N/m and N s/m for a metre of chain; m/s
RUBBING = 0.02  # N s, of a pin, for a metre of link: without any, a chain that is pushed crumples ever finer
SECONDS, STEP, SHOWN = 2.4, 2e-4, 7


def chain(n: int) -> bc.Mechanism:
    """Level, in the xy plane; its first link is free, and all others hang on the one before."""
    b = Builder(f"falling_chain{n}", gravity=(0.0, -9.81, 0.0))
    link = LENGTH / n
    mass = DENSITY * link
    for i in range(n):
        at = -LENGTH / 2 + i * link
        b.body(
            f"link{i}", mass=mass, com=(at + link / 2, 0, 0), inertia=(1e-9, mass * link**2 / 12, mass * link**2 / 12)
        )
        before, kind = (f"link{i - 1}", "revolute") if i else ("ground", "planar")
        rubbing = RUBBING * link if i else 0.0
        b.joint(f"pin{i}", kind, before, f"link{i}", point=(at, 0, 0), axis=(0, 0, 1), damping=rubbing)
    return b.build()


def peg(n: int) -> Any:
    share = LENGTH / n  # of a metre

    def push(place: Any, velocity: Any, mass: Any) -> list[Any]:
        x, y = place[0] - AT[0], place[1] - AT[1]
        far = sqrt(x * x + y * y + 1e-12)
        ex, ey = x / far, y / far
        out, along = velocity[0] * ex + velocity[1] * ey, velocity[1] * ex - velocity[0] * ey
        deep = maximum(PEG - far, 0.0)
        N = maximum(STIFF * share * deep * (1.0 - DAMPED / STIFF * 1e2 * out), 0.0)
        F = -FRICTION * N * along / sqrt(along * along + SLOW * SLOW)
        return [N * ex - F * ey, N * ey + F * ex, 0.0]

    return push


def places(m: bc.Mechanism, q: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """The pins, from what each link has turned: (rows, n + 1, 2)."""
    turned = np.concatenate([q[:, 2:3], q[:, 3:]], axis=1).cumsum(axis=1)
    steps = LENGTH / n * np.stack([np.cos(turned), np.sin(turned)], axis=-1)
    first = q[:, None, :2] + np.array([-LENGTH / 2, 0.0]) * (abs(q[0, 0]) < 1.0)
    return np.concatenate([first, first + steps.cumsum(axis=1)], axis=1)


def main(path: str, n: int = 10_000) -> None:
    m = chain(n)
    began = time.perf_counter()
    step = STEP if n > 2000 else 1e-3
    run = bc.simulate(
        bc.system(m, everywhere=peg(n)), seconds=SECONDS, step=step, every=SECONDS / (SHOWN - 1), integrator="rk4"
    )
    print(f"{n} links, {SECONDS:g} s in {time.perf_counter() - began:.0f} s; stops: {run.stops}")
    at = places(m, run.q, n)
    figure = Figure(figsize=(7.0, 5.5))
    axes = figure.add_subplot()
    circle = np.linspace(0.0, 2 * np.pi, 100)
    axes.fill(AT[0] + PEG * np.cos(circle), AT[1] + PEG * np.sin(circle), color="0.75")
    for row, (t, where) in enumerate(zip(run.t, at, strict=True)):
        shade = 0.15 + 0.85 * row / (SHOWN - 1)
        axes.plot(*where[:: max(1, n // 1000)].T, color=(0.85 * shade, 0.33 * shade, 0.1), lw=1.0, label=f"{t:.1f} s")
    axes.set_aspect("equal")
    axes.set_xlabel("m")
    axes.set_title(f"{n:,} links, {LENGTH:g} m, let go above a peg")
    axes.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.25))
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
