"""Four-bar on a slide for ten seconds, in absolute and in joint coordinates (Nikravesh et al. 1989, section 7).

    absolute    every body free, every joint a constraint                                            eqs 1 to 4
    joint       joint coordinates of the tree, constraints for the cut loop                          eqs 11 to 14
    minimal     as many equations as degrees of freedom; derived in the paper, but not timed         eq 19

The paper has "several force elements" and a predictor-corrector Adams-Bashforth algorithm, and prints two CPU times.
Here the force elements are two springs with dampers, with parameters chosen here, and the integrator is
Adams-Bashforth-Moulton of order 4 with a step of 1 ms. Both formulations are compiled in the same way, and each omits
its redundant constraints.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bellcrank.dynamics.loops.absolute import absolute, state
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array
from bellcrank.papers.results import Result, Row, bound_row
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import slider_fourbar

SECONDS, STEP, EVERY = 10.0, 1e-3, 0.01
PRINTED_SECONDS = {"absolute": 352.0, "joint": 75.0}  # seconds
# m; Baumgarte stabilisation holds the loop closed in two, "minimal" solves for it
LOOP_GAP_BOUNDS = {"absolute": 1e-8, "joint": 1e-8, "minimal": 1e-14}


@dataclass(frozen=True, eq=False)
class Formulation:
    """Mechanism, initial state and form of the equations of motion."""

    mechanism: Mechanism
    q: Array
    v: Array
    form: str

    @cached_property
    def simulator(self) -> Simulator:
        """Simulator with Adams-Bashforth-Moulton of order 4."""
        return Simulator(self.mechanism, "abm4", form=self.form)

    @cached_property
    def record(self) -> Record:
        """Recorded run from the initial state."""
        return self.simulator.run(SECONDS, self.q, self.v, step=STEP, every=EVERY)

    @property
    def sizes(self) -> str:
        """Numbers of velocities and of independent constraints, as text."""
        return f"{self.mechanism.nv} and {len(self.mechanism.loop_analysis.kept)}"

    @property
    def operations(self) -> int:
        """Operations of one evaluation of the equations of motion."""
        return self.simulator.dynamics.f.count().arithmetic

    def step_nanoseconds(self) -> float:
        """Measure the CPU time of one step, in ns."""
        before = time.thread_time()
        self.simulator.run(SECONDS, self.q, self.v, step=STEP, every=SECONDS)
        return 1e9 * (time.thread_time() - before) * STEP / SECONDS

    def positions(self, name: str) -> Array:
        """Return the origin of the body `name` over time, (rows, 3), in m."""
        positions: Array = self.mechanism.pose(self.record.q, name)[:, :3, 3]
        return positions


def formulations() -> dict[str, Formulation]:
    """Return the three formulations by name, with the same initial state."""
    m = slider_fourbar(forces=True)
    q, v = m.neutral(), np.zeros(m.nv)
    free = absolute(m)
    return {
        "absolute": Formulation(free, *state(m, q, v), "lagrange"),
        "joint": Formulation(m, q, v, "lagrange"),
        "minimal": Formulation(m, q, v, "minimal"),
    }


def run() -> Result:
    """Run, compare and time the formulations."""
    forms = formulations()
    records = {name: f.record for name, f in forms.items()}  # compiles all simulators before the timing starts
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(5):  # interleaved, so that a disturbance affects all formulations
        for name, f in forms.items():
            times[name].append(f.step_nanoseconds())
    best = {name: min(x) for name, x in times.items()}
    ratio = best["absolute"] / best["joint"]
    printed, gap = {name: f"{x:g} s for 10 s" for name, x in PRINTED_SECONDS.items()}, "loops open by at most"
    rows = (
        *(Row(f"velocities and constraints, {name}", "", forms[name].sizes) for name in PRINTED_SECONDS),
        *(Row(f"operations for accelerations, {name}", "", float(f.operations)) for name, f in forms.items()),
        Row("operations, absolute / joint", "", forms["absolute"].operations / forms["joint"].operations),
        *(Row(f"CPU time of a step, {name}", printed.get(name, ""), f"{best[name]:.1f} ns") for name in forms),
        Row("CPU time, absolute / joint", "about five times or more", f"{ratio:.1f}", "", ratio > 4.0),
        bound_row("bodies, absolute against joint, apart by", _largest_difference(forms), 1e-6, "m"),
        *(
            bound_row(f"{gap}, {name}", float(records[name].provenance[gap]), bound, "m")
            for name, bound in LOOP_GAP_BOUNDS.items()
        ),
    )
    return Result(rows, records, {"motion": _figure(forms)})


def _largest_difference(forms: dict[str, Formulation]) -> float:
    bodies = [b.name for b in forms["joint"].mechanism.bodies]
    return max(float(np.abs(forms["absolute"].positions(b) - forms["joint"].positions(b)).max()) for b in bodies)


def _rounded(x: Array) -> Array:
    """Round values for the plot: the slide stays at height 0, and noise of 1e-17 m differs between processors."""
    return np.round(x, 9) + 0.0


def _figure(forms: dict[str, Formulation]) -> str:
    joint, free = forms["joint"], forms["absolute"]
    t = joint.record.t
    panels = []
    for name in ("slide", "coupler", "rocker"):
        for axis, k in (("x", 0), ("z", 2)):
            lines = [
                Line("absolute coordinates", t, _rounded(free.positions(name)[:, k]), wide=True),
                Line("joint coordinates", t, _rounded(joint.positions(name)[:, k])),
            ]
            panels.append(Panel(f"{name} {axis} [m]", lines))
    return figure("The four-bar on a slide, in both formulations", panels, 2)
