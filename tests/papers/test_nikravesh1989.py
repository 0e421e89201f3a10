"""P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, 1989: matrices, operation counts and speed-ups of the paper.

The title is "Systematic generation of multibody equations of motion suitable for recursive and parallel manipulation".

Numbers of the paper: B, D*B, C and E of the four-bar on a slide (section 3), break-even points in the number of joints
from CPU times (section 4), the largest speed-up of the Stanford arm with 1 to 6 joints (section 5), 352 s against 75 s
for absolute against joint coordinates (section 7). It prints no operation counts, and its times are those of a general
program on a workstation of 1989. We compare operations of our graphs: mul + add + sub + div for its times, all
operations alike for its numbers of processors. Measured times are in bench/nikravesh.py.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank import zoo
from bellcrank.dynamics import METHODS, kinematics
from bellcrank.dynamics.historical import absolute_coordinates
from bellcrank.dynamics.historical.cut_joints import constraints
from bellcrank.dynamics.historical.free_bodies import body_jacobians, place_bodies, propagate_velocities
from bellcrank.dynamics.tree_sweeps import joint_elements, subspace_motion
from bellcrank.graph import Graph
from bellcrank.model import Body, Joint, Mechanism, Tree, mechanism_of
from bellcrank.papers import nikravesh_motion
from bellcrank.papers.nikravesh import (
    UNIT_COSTS,
    break_even,
    count_operations,
    dense_graph,
    first_joints,
    folded_graph,
    unfolded_graph,
)
from bellcrank.papers.operation_counts import published
from bellcrank.spatial.vector import IDENTITY, NO_MOTION, ZERO, Motion, Vec
from bellcrank.zoo.families import general_chain
from trees import Array, close, few, state, trees

DIRECT, RECURSIVE = "joint_coordinates", "joint_coordinates_recursive"
seeds = st.integers(0, 1000)
anything = trees(armature=st.booleans(), passive=st.booleans())


def test_measured_time_is_that_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that takes a second of CPU time takes a billionth of it, divided by its steps, for each."""
    clock, runs = count(), []
    monkeypatch.setattr(nikravesh_motion, "time", SimpleNamespace(thread_time=lambda: next(clock)))
    formulation = SimpleNamespace(q=[0.0], v=[0.0], simulator=SimpleNamespace(run=lambda *a, **k: runs.append((a, k))))
    nanoseconds = nikravesh_motion.Formulation.step_nanoseconds(formulation)  # type: ignore[arg-type]
    ((seconds, _, _), options) = runs[0]
    assert nanoseconds == pytest.approx(1e9 / round(seconds / options["step"]))


# -- section 3: the four-bar on a slide


def array(x: Vec) -> Array:
    return np.array([float(e) for e in x])


@cache
def fourbar() -> Mechanism:
    return zoo.slider_fourbar(closed=False)


def points() -> dict[str, Array]:
    given = zoo.data("slider_fourbar")
    return {name: np.array(given[name], float) for name in ("R2", "R3", "R4", "R5")}


def unit(name: str) -> Array:
    x = np.array(zoo.data("slider_fourbar")[name], float)
    return x / np.linalg.norm(x)


def B_in_the_world(m: Mechanism, q: list[float]) -> Array:
    """24 x 4, in the paper's order: the linear rows of each body, then its angular rows."""
    R = np.array([list(row) for row in m.tree.ground.pose(IDENTITY, ZERO)[0].rows], float)
    rows = body_jacobians(m.tree, place_bodies(m.tree, q))
    out = np.zeros((len(rows), 2, 3, m.nv))
    for i, row in enumerate(rows):
        for k, block in row.items():
            out[i, 0, :, k], out[i, 1, :, k] = R @ array(block.lin), R @ array(block.ang)
    return out.reshape(6 * len(rows), m.nv)


def skew(a: Array) -> Array:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def test_B_block_by_block() -> None:
    P, u, slide = points(), unit("axis"), unit("slide")
    r = [(P["R2"] + P["R5"]) / 2, (P["R2"] + P["R3"]) / 2, (P["R3"] + P["R4"]) / 2, (P["R4"] + P["R5"]) / 2]
    B = B_in_the_world(fourbar(), [0.0] * 4).reshape(4, 2, 3, 4)
    for i in range(4):
        close(B[i, :, :, 0], [slide, np.zeros(3)], 1e-15)  # [u_1; 0]
        for k, joint in enumerate(("R2", "R3", "R4"), start=1):
            block = [-skew(r[i] - P[joint]) @ u, u] if k <= i else np.zeros((2, 3))  # [-d~ u; u]
            close(B[i, :, :, k], block, 1e-15)


def cut_joint(m: Mechanism, q: list[float]) -> Array:
    """D*, 6 x 24: two of the three rows of n_1 x n_4 = 0 are independent, and the paper keeps two."""
    X = {name: np.array(kinematics.pose(m.tree, q, name), float) for name in ("P1", "P4", "slide", "rocker")}
    com = {b.name: X[b.name][:3, :3] @ b.com + X[b.name][:3, 3] for b in m.bodies if b.name in X}
    s1, s4 = X["P1"][:3, 3] - com["slide"], X["P4"][:3, 3] - com["rocker"]
    n1, n4 = X["slide"][:3, :3] @ unit("axis"), X["rocker"][:3, :3] @ unit("axis")
    D = np.zeros((6, 24))
    D[:3, :3], D[:3, 3:6], D[:3, 18:21], D[:3, 21:] = np.eye(3), -skew(s1), -np.eye(3), skew(s4)
    D[3:, 3:6], D[3:, 21:] = skew(n4) @ skew(n1), -skew(n1) @ skew(n4)
    return D


def test_the_cut_joint() -> None:
    """Eq 15 and E of eq 23 equal the printed numbers to the printed digits."""
    m, printed = fourbar(), zoo.data("slider_fourbar")
    DB = cut_joint(m, [0.0] * 4) @ B_in_the_world(m, [0.0] * 4)
    close(DB[3:], np.zeros((3, 4)), 1e-15)
    np.testing.assert_allclose(DB[:3], printed["DstarB"], atol=5e-5)
    C = DB[[0, 2]]  # the second row repeats the first
    np.testing.assert_allclose(C, printed["C"], atol=5e-5)
    E = np.vstack([np.eye(2), -np.linalg.inv(C[:, 2:]) @ C[:, :2]])  # 23
    np.testing.assert_allclose(E, printed["E"], atol=1e-12)
    close(C @ E, np.zeros((2, 2)), 1e-12)  # 17
    c1, c2, c3, c4, c5, c6 = (*C[0, 1:], *C[1, 1:])
    close(E[2:, 1], np.array([c3 * c4 - c1 * c6, c1 * c5 - c2 * c4]) / (c2 * c6 - c3 * c5), 1e-12)


def test_the_loop_is_a_rectangle() -> None:
    """D*B = (P5 - P_j) x u reproduces the loop: u is normal to its columns, and its sides are 2 and sqrt(2)."""
    columns = np.array(zoo.data("slider_fourbar")["DstarB"], float).T[1:]
    across = np.cross(columns[1], columns[0])
    u = across / np.linalg.norm(across)
    assert np.allclose(np.abs(u), np.abs(unit("axis")))
    to_P5 = [np.cross(u, column) for column in columns]  # P5 - P_j, normal to u
    P = [-x for x in to_P5] + [np.zeros(3)]
    sides = [np.linalg.norm(b - a) for a, b in zip(P, P[1:] + P[:1])]
    np.testing.assert_allclose(sides, [2, 2**0.5, 2, 2**0.5], atol=1e-4)
    assert (P[1] - P[0]) @ (P[2] - P[1]) == pytest.approx(0)


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_joint_anywhere(seed: int) -> None:
    """Away from the printed configuration D*B is the difference of two frames' Jacobians."""
    m = fourbar()
    q = state(m, seed)[0]
    J = [np.array(kinematics.jacobian(m.tree, q, frame), float)[:3] for frame in ("P1", "P4")]
    close((cut_joint(m, q) @ B_in_the_world(m, q))[:3], J[0] - J[1], 1e-14)


# -- section 2: relations of D, B, G and H


@few(40)
@given(m=anything, seed=seeds)
def test_B_moves_no_constraint(m: Mechanism, seed: int) -> None:
    """D B = 0 (eq 6), except for the rows that represent rotors."""
    q, _, _ = state(m, seed)
    bodies = place_bodies(m.tree, q)
    B, (D, _) = body_jacobians(m.tree, bodies), constraints(m.tree, q, bodies)
    assert sum(row.E == 0 for row in D) == 6 * len(m.bodies) - m.nv
    DB = [[sum(B[i].get(k, NO_MOTION).dot(T) for i, T in row.T.items()) for k in range(m.nv)] for row in D if not row.E]
    close(np.reshape(DB, (len(DB), m.nv)), np.zeros((len(DB), m.nv)), 1e-13)


@few(40)
@given(m=anything, seed=seeds)
def test_B_is_the_inverse_of_G_times_H(m: Mechanism, seed: int) -> None:
    """B = G^-1 H (eq 27): the recursion of eq 28 gives the same velocities."""
    q, v, _ = state(m, seed)
    bodies = place_bodies(m.tree, q, v)
    V: list[Motion] = []
    for link, body, by in zip(m.tree.links, bodies, propagate_velocities(m.tree, bodies, v)):
        V.append(
            by.G.motion(V[link.parent] if link.parent >= 0 else NO_MOTION)
            + subspace_motion(body.H, joint_elements(link, v))
        )  # 28
    direct = [subspace_motion(list(row.values()), [v[k] for k in row]) for row in body_jacobians(m.tree, bodies)]
    close([[*x.ang, *x.lin] for x in V], [[*x.ang, *x.lin] for x in direct], 1e-12)


# -- section 2.1: reactions


def test_a_hanging_weight() -> None:
    """The joint carries 2 kg upwards, without a moment."""
    m = mechanism_of("weight", [Body("bob", 2.0, (0, 0, -1), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))],
                 [Joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))])  # fmt: skip
    close(absolute_coordinates.reactions(m.tree, [0.0], [0.0], [0.0]), [[0, 0, 2 * 9.81, 0, 0, 0]])


def test_absolute_method_declines_singular_M() -> None:
    def applies(tree: Tree) -> bool:
        return METHODS["absolute"].applies(tree, "forward_dynamics")

    assert not applies(zoo.pendulum().tree)  # a point mass
    assert not applies(zoo.planar3r().tree)  # rods without thickness
    assert all(applies(zoo.load(name).tree) for name in ("puma600", "stanford", "torso", "excavator"))


# -- section 4: recursive or not

SIZES = range(2, 13)


@pytest.mark.parametrize(
    ("kind", "general", "alternate"),
    [
        ("revolute", 6, 5),  # 6 in the paper
        ("prismatic", 7, 5),  # 9
        ("spherical", 4, 4),  # 5
    ],
)
def test_break_even_in_operations(kind: str, general: int, alternate: int) -> None:
    """`general` has no special values; `alternate` is an idealised robot. The paper does not describe its chain."""
    sizes = SIZES if kind != "spherical" else range(2, 8)
    for make, n in ((lambda n: general_chain(n, kind), general), (lambda n: zoo.chain(n, kind), alternate)):
        found = break_even(count_operations(make, sizes, RECURSIVE), count_operations(make, sizes, DIRECT))
        assert found == n
    assert abs(general - published()["dataflow"]["breakeven_joints"][kind]) <= 2


@pytest.mark.parametrize("twist", ["alternate", "general"])
def test_a_parallel_system_is_better_done_directly(twist: str) -> None:
    """Fig 6(a): all bodies on one. Both forms grow linearly, and the recursive one is never cheaper."""
    make = {n: zoo.tree(n, branching=n, twist=twist) for n in SIZES}
    direct, recursive = (count_operations(make.__getitem__, SIZES, by) for by in (DIRECT, RECURSIVE))
    assert all(direct[n] < recursive[n] for n in SIZES)
    for counts in (direct, recursive):
        steps = np.diff([counts[n] for n in range(2, 13, 2)])  # in twos: every second alternate joint is identical
        assert np.ptp(steps) <= 0.01 * steps[0]


@pytest.mark.parametrize("name", ["puma600", "stanford", "excavator"])
def test_absolute_coordinates_cost_several_times_as_much(name: str) -> None:
    """Section 7 has 352 s against 75 s, a factor of 4.7, in simulations that contain more than this function."""
    m = zoo.load(name)
    ratio = folded_graph(m, "absolute").count().arithmetic / folded_graph(m, DIRECT).count().arithmetic
    assert 2.5 < ratio < 4.5


# -- section 5: the critical path


def of_stanford(how: Any) -> list[Graph]:
    return [how(first_joints(zoo.stanford(), n)) for n in range(1, 7)]


def speedups(graphs: list[Graph]) -> list[float]:
    return [g.work(UNIT_COSTS) / g.span(UNIT_COSTS) for g in graphs]


def test_the_critical_path_grows_linearly() -> None:
    """The growth is exact for a chain without special numbers.

    It is 11 operations a joint with folded constants, 12 where its numbers are inputs.
    """
    for how, each in ((folded_graph, 11), (unfolded_graph, 12)):
        spans = [how(general_chain(n)).span(UNIT_COSTS) for n in range(3, 13)]
        assert set(np.diff(spans)) == {each}


@pytest.mark.parametrize(("how", "each"), [(folded_graph, 5.9), (unfolded_graph, 11.2), (dense_graph, 11.5)])
def test_the_critical_path_of_the_stanford_arm_grows_linearly(how: Any, each: float) -> None:
    n, spans = np.arange(2, 7), [g.span(UNIT_COSTS) for g in of_stanford(how)][1:]
    slope, start = np.polyfit(n, spans, 1)
    assert slope == pytest.approx(each, abs=0.3)
    assert np.abs(start + slope * n - spans).max() < 2  # its joints are not all identical


def test_speed_up_of_the_stanford_arm() -> None:
    """The paper has speed-ups of 11 to 76, and so nearly has our program for any arm.

    That program has the arm's numbers as inputs and multiplies full matrices. A program that omits the zero blocks of B
    and the upper triangle has less work in the same time, and one that is compiled for this arm has much less.
    """
    least, most = published()["dataflow"]["stanford_max_speedup_n1_to_n6"]
    full, program, compiled = (speedups(of_stanford(how)) for how in (dense_graph, unfolded_graph, folded_graph))
    np.testing.assert_allclose(full, [9.3, 21.6, 31.3, 43.0, 55.8, 70.6], rtol=0.05)
    np.testing.assert_allclose(program, [9.3, 18.8, 23.3, 29.7, 35.1, 40.9], rtol=0.05)
    np.testing.assert_allclose(compiled, [1.5, 6.5, 11.7, 20.6, 25.8, 28.3], rtol=0.05)
    assert full[0] == pytest.approx(least, rel=0.2)
    assert full[5] == pytest.approx(most, rel=0.1)


def test_the_recursive_form_gains_less() -> None:
    """Its work and its path both grow with n, so the speed-up stays below 20 for any length of the chain."""
    graphs = [unfolded_graph(general_chain(n), RECURSIVE) for n in (6, 12)]
    assert all(15 < x < 20 for x in speedups(graphs))
