"""Break-even of recursive methods, bounds of the parallel speed-up, and times of two formulations (nikravesh1989).

Sections 4 and 5: the results are in tests/papers/test_nikravesh1989.py, and with measured times in
`python -m bench.nikravesh`. An arm is counted in three ways. "folded" is the graph that this package compiles:
parameters are constants, and zeros and ones are folded. "unfolded" is a program for any arm with these joints: every
number of the tree is an input. "dense" is the unfolded program with B^T M B multiplied as full matrices, including zero
blocks and both triangles.

Section 7: a four-bar on a slide for ten seconds.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.historical import joint_coordinates
from bellcrank.dynamics.historical.free_bodies import body_jacobians, place_bodies
from bellcrank.dynamics.loops.absolute import absolute, state
from bellcrank.dynamics.ltl_factorisation import coordinate_names, nonzero_triangle, solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, Tree, mechanism_of
from bellcrank.model.parts import Array
from bellcrank.papers import Result, Row, bound_row
from bellcrank.papers.operation_counts import published
from bellcrank.record import Record
from bellcrank.scalar import Scalar
from bellcrank.sim.run.simulator import Simulator
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform
from bellcrank.spatial.vector import SYM_ZERO, ZERO, Mat, Motion, SymMat, Vec
from bellcrank.text_table import Table
from bellcrank.view.curves import Line, Panel, figure, line_chart
from bellcrank.zoo import slider_fourbar, stanford

# Unit cost: every operation takes the same time.
UNIT_COSTS: Mapping[str, float] = dict.fromkeys(("div", "sqrt", "sin", "cos"), 1.0)

ScalarIterator = Iterator[Scalar]
SECONDS, STEP, EVERY = 10.0, 1e-3, 0.01
PRINTED_SECONDS = {"absolute": 352.0, "joint": 75.0}  # seconds
# m; Baumgarte stabilisation holds the loop closed in two, "minimal" solves for it
LOOP_GAP_BOUNDS = {"absolute": 1e-8, "joint": 1e-8, "minimal": 1e-14}


def break_even(recursive: Mapping[int, float], direct: Mapping[int, float]) -> int | None:
    """Return the least tried n from which on the recursive form costs less, or None.

    Parameters
    ----------
    recursive
        Cost of the recursive form by number of joints.
    direct
        Cost of the direct form by number of joints.
    """
    least = None
    for n in sorted(recursive, reverse=True):
        if recursive[n] >= direct[n]:
            break
        least = n
    return least


def count_operations(make: Callable[[int], Mechanism], sizes: Sequence[int], method: str) -> dict[int, int]:
    """Count the operations of forward dynamics by number of joints.

    Parameters
    ----------
    make
        Function that builds the mechanism for a number of joints.
    sizes
        Numbers of joints.
    method
        Method of forward dynamics.
    """
    return {n: graphs.graph(make(n), "forward_dynamics", method=method).count().arithmetic for n in sizes}


def first_joints(m: Mechanism, n: int) -> Mechanism:
    """Return the part of the serial arm `m` up to its `n`-th joint."""
    return mechanism_of(f"{m.name}{n}", m.bodies[:n], m.joints[:n], ground=m.ground, gravity=m.gravity)


def folded_graph(m: Mechanism, method: str = "joint_coordinates") -> Graph:
    """Trace forward dynamics of `m` by `method`, with its parameters as constants."""
    return graphs.graph(m, "forward_dynamics", method=method)


def unfolded_graph(m: Mechanism, method: str = "joint_coordinates") -> Graph:
    """Trace forward dynamics of `m` by `method`, with all its parameters as inputs."""
    f = METHODS[method].function("forward_dynamics")

    def body(q: Vector, v: Vector, tau: Vector, number: Vector) -> dict[str, object]:
        return {"a": f(_parametrised_tree(m.tree, iter(number)), q, v, tau)}

    return _trace_dynamics(m, body)


def dense_graph(m: Mechanism) -> Graph:
    """Trace `joint_coordinates` for `m` as a program with full matrices would compute it."""

    def body(q: Vector, v: Vector, tau: Vector, number: Vector) -> dict[str, object]:
        numbers = iter(number)
        tree = _parametrised_tree(m.tree, numbers)
        bodies = place_bodies(tree, q, v, common=True)
        B = body_jacobians(tree, bodies)
        full = [{k: row.get(k, Motion(_vec(numbers), _vec(numbers))) for k in range(tree.nv)} for row in B]
        M: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(tree.nv)]
        for b, row in zip(bodies, full, strict=True):
            for k, block in row.items():
                MB = b.M @ block
                for j, other in row.items():
                    M[k][j] = M[k][j] + other.dot(MB)
        V = joint_coordinates.body_velocities(tree, full, v)
        f = joint_coordinates.bias_from_velocities(tree, bodies, full, V, v)
        right = [t - x for t, x in zip(tau, f, strict=True)]
        return {"a": solve(nonzero_triangle(M), right, coordinate_names(tree)), "M": M}

    return _trace_dynamics(m, body)


# -- figure 7: bound of the speed-up by number of joints of the Stanford arm


def maximum_speedup(joints: Sequence[int] = range(1, 7)) -> dict[str, dict[int, float]]:
    """Return work / span with unit costs for the first n joints of the Stanford arm, by program and n in `joints`."""
    programs: dict[str, Callable[[Mechanism], Graph]] = {
        "full matrices": dense_graph,
        "any arm": unfolded_graph,
        "this arm": folded_graph,
    }
    arms = {n: first_joints(stanford(), n) for n in joints}
    traced = {name: {n: make(m) for n, m in arms.items()} for name, make in programs.items()}
    return {name: {n: g.work(UNIT_COSTS) / g.span(UNIT_COSTS) for n, g in row.items()} for name, row in traced.items()}


def figure_7() -> str:
    """Plot figure 7 as SVG; of the paper's curve, the text gives only both ends."""
    series = {name: {float(n): y for n, y in row.items()} for name, row in maximum_speedup().items()}
    ends = dict(zip((1.0, 6.0), map(float, published()["dataflow"]["stanford_max_speedup_n1_to_n6"]), strict=True))
    title = "Stanford arm: work / span of the data-flow graph"
    return line_chart(title, "joints", "maximum speed-up", series, ends, "nikravesh1989")


def tables() -> list[Table]:
    """Tabulate figure 7 with the paper's two values."""
    least, most = published()["dataflow"]["stanford_max_speedup_n1_to_n6"]
    computed_rows = [(name, *(f"{y:.1f}" for y in row.values())) for name, row in maximum_speedup().items()]
    rows = [("print", f"{least}", "", "", "", "", f"{most}"), *computed_rows]
    title = "Figure 7: the most that any number of processors can gain with the Stanford arm, work / span"
    return [Table(title, ("joints", *"123456"), rows, range(1, 7))]


FIGURES: Mapping[str, Callable[[], str]] = {"nikravesh1989_figure_7.svg": figure_7}


def _trace_dynamics(m: Mechanism, body: Callable[..., dict[str, object]]) -> Graph:
    number_count = 3 + len(m.bodies) * (22 + 6 * m.nv)
    return trace(m.name, body, {"q": (m.nq,), "v": (m.nv,), "tau": (m.nv,), "number": (number_count,)})


@dataclass(slots=True, eq=False)
class _InputInertia(Inertia):
    """Inertia as a program receives it: mass, centre of mass, and moments about the centre of mass."""

    c: Vec
    J: SymMat

    @property
    def centre(self) -> Vec:
        return self.c

    @property
    def I_centre(self) -> SymMat:
        return self.J


def _parametrised_tree(tree: Tree, numbers: ScalarIterator) -> Tree:
    """Return the tree with its placements, inertias and gravity replaced by inputs."""
    links = []
    for link in tree.links:
        moves: list[Move] = [FullRotation(Mat(*(_vec(numbers) for _ in range(3)))), Shift(_vec(numbers))]
        inertia = _InputInertia(
            next(numbers), ZERO, SYM_ZERO, _vec(numbers), SymMat(*(next(numbers) for _ in range(6)))
        )
        links.append(replace(link, placement=Transform(moves), inertia=inertia))
    return replace(tree, links=tuple(links), gravity=_vec(numbers))


def _vec(numbers: ScalarIterator) -> Vec:
    return Vec(next(numbers), next(numbers), next(numbers))


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


def run_fourbar() -> Result:
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
