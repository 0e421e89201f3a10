"""Break-even of recursive methods and bounds of the parallel speed-up (nikravesh1989, sections 4 and 5).

The results are in tests/papers/test_nikravesh1989.py, and with measured times in `python -m bench.nikravesh`. An arm is
counted in three ways. "folded" is the graph that this package compiles: parameters are constants, and zeros and ones
are folded. "unfolded" is a program for any arm with these joints: every number of the tree is an input. "dense" is the
unfolded program with B^T M B multiplied as full matrices, including zero blocks and both triangles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.historical import joint_coordinates
from bellcrank.dynamics.historical.free_bodies import body_jacobians, place_bodies
from bellcrank.dynamics.ltl_factorisation import coordinate_names, nonzero_triangle, solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, Tree, mechanism_of
from bellcrank.papers.operation_counts import published
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform
from bellcrank.spatial.vector import SYM_ZERO, ZERO, Mat, Motion, SymMat, Vec
from bellcrank.text_table import Table
from bellcrank.view.curves import line_chart
from bellcrank.zoo import stanford

# Unit cost: every operation takes the same time.
UNIT_COSTS: Mapping[str, float] = dict.fromkeys(("div", "sqrt", "sin", "cos"), 1.0)

ScalarIterator = Iterator[Scalar]


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
