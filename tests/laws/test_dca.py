"""Divide and conquer: accelerations equal those of other methods, and the critical path grows with the logarithm."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.build.graphs import graph
from bellcrank.dynamics import aba, crba, dca
from bellcrank.dynamics.segments import FREE_END, Segment, join_segments
from bellcrank.errors import InputError
from bellcrank.formats.builder import Builder
from bellcrank.model.mechanism import Mechanism
from bellcrank.spatial.inertia import column_dot, dense_matrix, symmetric_matrix, to_articulated, to_force


def off(m: Mechanism, seed: int = 0) -> float:
    """Error against the accelerations of aba, relative to the largest of them."""
    q, v, tau = (list(x) for x in m.random(seed))
    a, b = (np.array(by.forward_dynamics(m.tree, q, v, tau), float) for by in (dca, aba))
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("twist", ["alternate", "parallel", "general"])
def test_long_chains(twist: str) -> None:
    for n in (1, 2, 3, 32, 129):
        assert off(zoo.chain(n, twist=twist)) < 1e-10


def test_against_a_mass_matrix() -> None:
    """Compare with crba, which does not use articulated bodies."""
    m = zoo.random_tree(3, 12, passive=True)
    q, v, tau = (list(x) for x in m.random(1))
    a, b = (np.array(by.forward_dynamics(m.tree, q, v, tau), float) for by in (dca, crba))
    assert np.abs(a - b).max() < 1e-10 * np.abs(b).max()


def test_branches_on_branches() -> None:
    assert off(zoo.tree(63)) < 1e-12
    assert off(zoo.tree(40, branching=3, joints=["revolute", "universal"])) < 1e-12


def test_a_body_without_mass_cannot_be_reduced_alone() -> None:
    b = Builder("cross")
    b.body("cross")  # two crossing axes are two joints with no body between them
    b.joint("yaw", "revolute", "ground", "cross", axis=(0, 0, 1))
    b.body("arm", mass=2.0, com=(0.5, 0.1, 0), inertia=(0.1, 0.2, 0.3))
    b.joint("pitch", "revolute", "cross", "arm", axis=(0, 1, 0))
    with pytest.raises(InputError, match=r'"dca" cannot compute forward_dynamics of this mechanism.*needs mass'):
        graph(b.build(), "forward_dynamics", "dca")


def test_rows_hang_on_earlier_rows() -> None:
    tree = zoo.tree(31).tree
    rows = dca.branches(tree)
    assert sorted(i for row in rows for i in row) == list(range(31))
    seen = {-1}
    for row in rows:
        assert tree.links[row[0]].parent in seen
        assert all(tree.links[b].parent == a for a, b in pairwise(row))
        seen |= set(row)
    assert dca.branches(zoo.chain(9).tree) == [list(range(9))]


def test_two_segments_move_each_other() -> None:
    """R^T e R = M (1 + W M)^-1, also if M is singular for some motions and W for some forces."""
    rng = np.random.default_rng(0)
    for blind, stiff in ((0, 0), (2, 0), (0, 3), (4, 5)):
        A, B = rng.normal(size=(6, 6 - blind)), rng.normal(size=(6, 6 - stiff))
        M, W = A @ A.T, B @ B.T
        rows: Any = [[float(M[i, j]) for j in range(i + 1)] for i in range(6)]
        near = Segment(to_articulated(np.zeros((6, 6)).tolist()), to_force([0.0] * 6), FREE_END)
        near.response = type(FREE_END)(
            FREE_END.K, tuple(tuple(map(float, W[i, : i + 1])) for i in range(6)), FREE_END.b
        )
        far = Segment(to_articulated(rows), to_force([0.0] * 6), FREE_END)
        found, both = join_segments(near, far)
        eR = [[x * e for x in row] for row, e in zip(both.R, both.e, strict=True)]
        E = np.array([[column_dot(both.R, i, eR, j) for j in range(6)] for i in range(6)])
        expected = M @ np.linalg.inv(np.eye(6) + W @ M)
        np.testing.assert_allclose(E, expected, atol=1e-11 * np.abs(M).max())
        np.testing.assert_allclose(
            np.tril(np.array(dense_matrix(found.IA))), np.tril(expected), atol=1e-11 * np.abs(M).max()
        )
        assert found.response is not None
        np.testing.assert_allclose(
            symmetric_matrix(found.response.W), W - W @ expected @ W, atol=1e-10 * np.abs(W).max()
        )


def test_the_path_grows_with_the_logarithm_and_the_work_with_the_bodies() -> None:
    spans, work = [], []
    for n in (8, 16, 32):
        g = graph(zoo.chain(n), "forward_dynamics", "dca")
        spans.append(g.span())
        work.append(g.count().arithmetic)
    assert spans[2] - spans[1] == spans[1] - spans[0] < 100
    assert work[2] < 2.7 * work[1]
    assert graph(zoo.chain(32), "forward_dynamics", "aba").span() > 1.8 * spans[2]
