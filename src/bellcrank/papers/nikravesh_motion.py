"""Times of two formulations of a four-bar on a slide, for ten seconds (nikravesh1989, section 7).

    absolute           every body free, every joint a constraint                                     eqs 1 to 4
    absolute, sparse   the same without redundant constraints, in the order of the bodies
    joint              joint coordinates of the tree, constraints for the cut loop                   eqs 11 to 14
    minimal            as many equations as degrees of freedom                                       eq 19

The paper has "several force elements" and a predictor-corrector Adams-Bashforth algorithm. It prints two CPU times, and
that eq 19 takes about as long as eqs 11 to 14. Here the force elements are two springs with dampers, with parameters
chosen here, and the integrator is Adams-Bashforth-Moulton of order 4 with a step of 1 ms. All formulations are compiled
in the same way.

"absolute" has all equations of all joints. Three of them are redundant, and which three depends on the configuration,
so most multipliers are found with pivots that are selected at run time. No program of the paper's time would do so.
"absolute, sparse" cuts the loop by two equations instead of five, has its bodies' coordinates at their centres of mass,
as the paper has, and factorises D M^-1 D^T = L D L^T in an order around the loop in which few blocks fill in. That is
the program that absolute coordinates deserve.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bellcrank.dynamics import aba
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.absolute import absolute, state
from bellcrank.dynamics.loops.constrained_dynamics import lagrange
from bellcrank.graph import Graph, trace
from bellcrank.model import Frame, Mechanism, mechanism_of
from bellcrank.model.parts import Array
from bellcrank.papers import Result, Row, bound_row
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import slider_fourbar

SECONDS, STEP, EVERY = 10.0, 1e-3, 0.01
PRINTED_SECONDS = {"absolute": 352.0, "joint": 75.0}  # seconds
# m; Baumgarte stabilisation holds the loop closed in three, "minimal" solves for it
LOOP_GAP_BOUNDS = {"absolute": 1e-8, "absolute, sparse": 1e-8, "joint": 1e-8, "minimal": 1e-14}
# The slide and its two neighbours in the loop first, so that elimination goes from the coupler to the slide.
ELIMINATION_ORDER = ("T1", "R2", "R5", "R3", "R4")
ABOUT_THE_SAME = 1.25  # largest ratio of two times that are "about the same"


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
        frame = _origin(name) if _origin(name) in self.mechanism.frames else name
        positions: Array = self.mechanism.pose(self.record.q, frame)[:, :3, 3]
        return positions


def formulations() -> dict[str, Formulation]:
    """Return the formulations by name, with the same initial state."""
    m = slider_fourbar(forces=True)
    q, v = m.neutral(), np.zeros(m.nv)
    free, sparse = absolute(m), sparse_absolute(m)
    return {
        "absolute": Formulation(free, *state(m, q, v), "lagrange"),
        "absolute, sparse": Formulation(sparse, *centred_state(m, q, v), "lagrange"),
        "joint": Formulation(m, q, v, "lagrange"),
        "minimal": Formulation(m, q, v, "minimal"),
    }


def _origin(body: str) -> str:
    """Return the name of the frame at the original origin of a body whose coordinates are at its centre of mass."""
    return f"{body}.origin"


def sparse_absolute(mechanism: Mechanism) -> Mechanism:
    """Return the four-bar `mechanism` in absolute coordinates at the centres of mass, with independent constraints."""
    free = absolute(mechanism)
    centre = {b.name: np.array(b.com, float) for b in free.bodies}
    own = {free.ground, *centre}
    frames = [
        replace(f, point=tuple(np.array(f.point, float) - centre.get(f.body, 0.0)))
        for name, f in free.frames.items()
        if name not in own
    ]
    frames += [Frame(_origin(name), name, point=tuple(-c)) for name, c in centre.items()]
    loops = {x.name: x for x in free.loops}
    loops["R5"] = replace(loops["R5"], kind="point_on_line")  # two equations; three more would follow from the others
    return mechanism_of(
        f"{free.name}_sparse", [replace(b, com=(0.0, 0.0, 0.0)) for b in free.bodies], list(free.joints), frames,
        ground=free.ground, gravity=free.gravity, loops=[loops[name] for name in ELIMINATION_ORDER],
        springs=list(free.springs),
    )  # fmt: skip


def centred_state(mechanism: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    """Convert a configuration and velocity of the four-bar to those of `sparse_absolute`.

    Parameters
    ----------
    mechanism
        The four-bar in joint coordinates.
    q
        Its positions.
    v
        Its velocities.
    """
    places, speeds = (np.array(x) for x in state(mechanism, q, v))
    for i, b in enumerate(mechanism.bodies):
        places[7 * i : 7 * i + 3] += mechanism.pose(q, b.name)[:3, :3] @ b.com
        speeds[6 * i : 6 * i + 3] += np.cross(speeds[6 * i + 3 : 6 * i + 6], b.com)
    return places, speeds


def sparse_graph(mechanism: Mechanism) -> Graph:
    """Trace the accelerations of `sparse_absolute` of a `mechanism` as eqs 1 to 4 state them, without refinement."""
    free = sparse_absolute(mechanism)
    tree, rank = free.tree, replace(analysis(free).rank, refinements=0)
    shapes = {"q": (free.nq,), "v": (free.nv,), "tau": (free.nv,)}
    return trace(free.name, lambda **x: {"a": lagrange(tree, aba.forward_dynamics, rank, *x.values())[0]}, shapes)


def run_fourbar() -> Result:
    """Run, compare and time the formulations."""
    forms = formulations()
    records = {name: f.record for name, f in forms.items()}  # compiles all simulators before the timing starts
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(5):  # interleaved, so that a disturbance affects all formulations
        for name, f in forms.items():
            times[name].append(f.step_nanoseconds())
    best = {name: min(x) for name, x in times.items()}
    ratio = best["absolute, sparse"] / best["joint"]
    same = best["minimal"] / best["joint"]
    fewer = forms["minimal"].operations / forms["joint"].operations
    traced = sparse_graph(forms["joint"].mechanism).count().arithmetic
    printed, gap = {name: f"{x:g} s for 10 s" for name, x in PRINTED_SECONDS.items()}, "loops open by at most"
    rows = (
        *(Row(f"velocities and constraints, {name}", "", forms[name].sizes) for name in list(forms)[:3]),
        *(Row(f"operations for accelerations, {name}", "", float(f.operations)) for name, f in forms.items()),
        Row("operations of eqs 1 to 4, absolute, sparse, without refinement", "", float(traced)),
        Row("operations of eqs 1 to 4 without refinement / joint", "", traced / forms["joint"].operations),
        Row("operations, minimal / joint", "about the same", fewer, "", _about_the_same(fewer)),
        *(Row(f"CPU time of a step, {name}", printed.get(name, ""), f"{best[name]:.1f} ns") for name in forms),
        Row("CPU time, absolute, sparse / joint", "about five times or more", f"{ratio:.1f}", "", ratio > 4.0),
        Row("CPU time, minimal / joint", "about the same", f"{same:.2f}"),
        *(
            bound_row(f"bodies, {name} against joint, apart by", _largest_difference(forms, name), 1e-6, "m")
            for name in ("absolute", "absolute, sparse")
        ),
        *(
            bound_row(f"{gap}, {name}", float(records[name].provenance[gap]), bound, "m")
            for name, bound in LOOP_GAP_BOUNDS.items()
        ),
    )
    return Result(rows, records, {"motion": _figure(forms)})


def _about_the_same(ratio: float) -> bool:
    return 1.0 / ABOUT_THE_SAME < ratio < ABOUT_THE_SAME


def _largest_difference(forms: Mapping[str, Formulation], name: str) -> float:
    """Return the largest distance of a body's position from that in joint coordinates, in any of the recorded rows."""
    bodies = [b.name for b in forms["joint"].mechanism.bodies]
    return max(float(np.abs(forms[name].positions(b) - forms["joint"].positions(b)).max()) for b in bodies)


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
