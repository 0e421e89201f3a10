"""The experiments of nikravesh1989, sections 4 and 5, on our graphs: from how many joints on a recursive form pays, and
how much many processors could gain. What comes out is in tests/papers/test_nikravesh1989.py, and with the times beside
it in `python -m bench.nikravesh`.

An arm is counted in three ways. "folded" is how we compile it: its numbers are constants, and zeros and ones are gone.
"unfolded" is a program for any arm with these joints: every number of the tree is an input. "dense" is the same, but
B^T M B is multiplied out as full matrices, zero blocks and both triangles included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, joint_coordinates
from bellcrank.dynamics.centres import jacobians, placed
from bellcrank.dynamics.inertia_matrix import coordinate_names, rows, solve
from bellcrank.dynamics.sweep import Vector
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, Tree, mechanism_of
from bellcrank.papers.counts import published
from bellcrank.papers.results import Result
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform
from bellcrank.spatial.vector import SYM_ZERO, ZERO, Mat, Motion, Sym, Vec
from bellcrank.text import Table
from bellcrank.view.chart import lines
from bellcrank.zoo import stanford

# Every operation takes the same time.
ALIKE: Mapping[str, float] = dict.fromkeys(("div", "sqrt", "sin", "cos"), 1.0)

Numbers = Iterator[Scalar]


def break_even(recursive: Mapping[int, float], direct: Mapping[int, float]) -> int | None:
    """The least n from which on the recursive form costs less, of those that were tried."""
    found = None
    for n in sorted(recursive, reverse=True):
        if recursive[n] >= direct[n]:
            break
        found = n
    return found


def operations(make: Callable[[int], Mechanism], sizes: Sequence[int], method: str) -> dict[int, int]:
    return {n: graphs.graph(make(n), "forward_dynamics", method=method).count().arithmetic for n in sizes}


def first_joints(m: Mechanism, n: int) -> Mechanism:
    """The arm without what comes after its n-th joint."""
    return mechanism_of(f"{m.name}{n}", m.bodies[:n], m.joints[:n], ground=m.ground, gravity=m.gravity)


def folded(m: Mechanism, method: str = "joint_coordinates") -> Graph:
    return graphs.graph(m, "forward_dynamics", method=method)


def unfolded(m: Mechanism, method: str = "joint_coordinates") -> Graph:
    f = METHODS[method].function("forward_dynamics")

    def body(q: Vector, v: Vector, tau: Vector, number: Vector) -> dict[str, object]:
        return {"a": f(_any_arm(m.tree, iter(number)), q, v, tau)}

    return _traced(m, body)


def dense(m: Mechanism) -> Graph:
    """joint_coordinates as a program for full matrices would do it."""

    def body(q: Vector, v: Vector, tau: Vector, number: Vector) -> dict[str, object]:
        numbers = iter(number)
        tree = _any_arm(m.tree, numbers)
        bodies = placed(tree, q, v, common=True)
        B = jacobians(tree, bodies)
        full = [{k: row.get(k, Motion(_vec(numbers), _vec(numbers))) for k in range(tree.nv)} for row in B]
        M: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(tree.nv)]
        for b, row in zip(bodies, full, strict=True):
            for k, block in row.items():
                MB = b.M @ block
                for j, other in row.items():
                    M[k][j] = M[k][j] + other.dot(MB)
        V = joint_coordinates.velocities(tree, full, v)
        f = joint_coordinates.held(tree, bodies, full, V, v)
        right = [t - x for t, x in zip(tau, f, strict=True)]
        return {"a": solve(rows(M), right, coordinate_names(tree)), "M": M}

    return _traced(m, body)


# -- figure 7: the most that many processors can gain, by the joints of the Stanford arm


def maximum_speedup(joints: Sequence[int] = range(1, 7)) -> dict[str, dict[int, float]]:
    """Work / span, every operation alike, of the first n joints."""
    ways: dict[str, Callable[[Mechanism], Graph]] = {"full matrices": dense, "any arm": unfolded, "this arm": folded}
    arms = {n: first_joints(stanford(), n) for n in joints}
    graphs = {name: {n: make(m) for n, m in arms.items()} for name, make in ways.items()}
    return {name: {n: g.work(ALIKE) / g.span(ALIKE) for n, g in row.items()} for name, row in graphs.items()}


def figure_7() -> str:
    """The plot, as SVG. Of the paper's curve the text gives both ends."""
    series = {name: {float(n): y for n, y in row.items()} for name, row in maximum_speedup().items()}
    ends = dict(zip((1.0, 6.0), map(float, published()["dataflow"]["stanford_max_speedup_n1_to_n6"]), strict=True))
    title = "Stanford arm: work / span of the data-flow graph"
    return lines(title, "joints", "maximum speed-up", series, ends, "nikravesh1989")


def tables() -> list[Table]:
    least, most = published()["dataflow"]["stanford_max_speedup_n1_to_n6"]
    found = [(name, *(f"{y:.1f}" for y in row.values())) for name, row in maximum_speedup().items()]
    rows = [("print", f"{least}", "", "", "", "", f"{most}"), *found]
    title = "Figure 7: the most that any number of processors can gain with the Stanford arm, work / span"
    return [Table(title, ("joints", *"123456"), rows, range(1, 7))]


FIGURES: Mapping[str, Callable[[], str]] = {"nikravesh1989_figure_7.svg": figure_7}


def _traced(m: Mechanism, body: Callable[..., dict[str, object]]) -> Graph:
    many = 3 + len(m.bodies) * (22 + 6 * m.nv)
    return trace(m.name, body, {"q": (m.nq,), "v": (m.nv,), "tau": (m.nv,), "number": (many,)})


@dataclass(slots=True, eq=False)
class _Given(Inertia):
    """As a program gets it: mass, centre of mass, and moments about that."""

    c: Vec
    J: Sym

    @property
    def centre(self) -> Vec:
        return self.c

    @property
    def I_centre(self) -> Sym:
        return self.J


def _any_arm(tree: Tree, numbers: Numbers) -> Tree:
    """The same joints in the same order; where they stand and what they carry are inputs."""
    links = []
    for link in tree.links:
        moves: list[Move] = [FullRotation(Mat(*(_vec(numbers) for _ in range(3)))), Shift(_vec(numbers))]
        inertia = _Given(next(numbers), ZERO, SYM_ZERO, _vec(numbers), Sym(*(next(numbers) for _ in range(6))))
        links.append(replace(link, placement=Transform(moves), inertia=inertia))
    return replace(tree, links=tuple(links), gravity=_vec(numbers))


def _vec(numbers: Numbers) -> Vec:
    return Vec(next(numbers), next(numbers), next(numbers))


def run() -> Result:
    """All of it, for `bellcrank papers`."""
    return Result(tables=tuple(tables()), drawings=FIGURES)
