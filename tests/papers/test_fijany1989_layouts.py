"""Fijany 1989: the array as a machine, its clocks, frames of projection, and generalised speeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.dynamics import aba, crba
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import InputError
from bellcrank.papers.fijany_layouts import (
    LAYOUTS,
    ColumnPlaces,
    array_program,
    array_schedule,
    array_topology,
    clocked_schedule,
    projected_counts,
    speed_graph,
)
from bellcrank.papers.generalised_speeds import (
    Choice,
    GeneralisedSpeeds,
    absolute_rates,
    joint_rates,
)
from bellcrank.scalar import Scalar, cos, sin
from trees import close, random_tree, state


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_array_computes_the_mass_matrix_of_random_chains(layout: str, n: int) -> None:
    m = random_tree(n, ["revolute"] * n)
    q = np.random.default_rng(n).uniform(-3.0, 3.0, n)
    close(
        np.array(array_program(m.tree, layout).evaluate(q=q)["M"], float), crba.mass_matrix(m.tree, q.tolist()), 1e-12
    )


def test_partners_of_a_doubling_are_neighbours_after_the_shuffles() -> None:
    for rows in (2, 3, 5, 8, 16):
        column = ColumnPlaces(rows)
        for stage in range(column.digits):
            places = [column.rotated(k, stage) for k in range(rows)]
            assert len(set(places)) == rows
            for k in range(rows - 2**stage):
                assert places[k + 2**stage] == places[k] + 1
        assert [column.rotated(k, column.digits) for k in range(rows)] == list(range(rows))


def test_a_shuffle_is_one_hop_on_its_network() -> None:
    n = 8
    first, column = array_topology(n, "senn"), ColumnPlaces(n)
    for k in range(n):
        for stage in range(column.digits):
            a, b = column.rotated(k, stage), column.rotated(k, stage + 1)
            assert first.hops(a)[b] <= 1
    assert array_topology(n, "nearest").hops(0)[7] == 7


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clocks_cost_time_and_every_schedule_can_be_followed(layout: str) -> None:
    driven = array_schedule(4, layout)
    column, array = (clocked_schedule(4, layout, "t800", whole) for whole in (False, True))
    for s in (driven, column, array):
        s.check()
    assert driven.makespan < column.makespan <= array.makespan
    assert array_schedule(4, layout, "hidden").makespan < driven.makespan


def test_messages_grow_with_the_logarithm_on_the_shuffle_network_only() -> None:
    """Slide "Algorithm-To-Architecture Mapping": O(log n) against O(n)."""
    cost = {
        layout: [array_schedule(n, layout).makespan - array_schedule(n, layout, "hidden").makespan for n in (8, 16, 32)]
        for layout in LAYOUTS
    }
    senn, nearest = ([b - a for a, b in pairwise(cost[layout])] for layout in LAYOUTS)
    assert senn[1] <= senn[0]
    assert nearest[1] > 1.9 * nearest[0]
    assert all(a < b for a, b in zip(cost["senn"], cost["nearest"], strict=True))


def test_frames_of_projection() -> None:
    """Slide "Choice of Coordinate Frame": the end for V N-E B, the base for V C R-B; both need the same steps here."""
    counts = {
        (method, frame): projected_counts(method, frame, 12)
        for method in ("vneb_parallel", "vcrb_parallel")
        for frame in ("base", "end", "body")
    }
    assert counts["vneb_parallel", "end"][0] < counts["vneb_parallel", "base"][0]
    assert counts["vcrb_parallel", "base"][0] < counts["vcrb_parallel", "end"][0]
    for method in ("vneb_parallel", "vcrb_parallel"):
        base, end, body = (counts[method, frame] for frame in ("base", "end", "body"))
        assert base[1:] == end[1:]
        assert body[1] >= base[1]
        assert body[2] > base[2]


def uneven(q: Vector) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return a full lower triangle that depends on the positions, and a B that does, too."""
    n = len(q)
    A = [[2.0 + cos(q[i]) if i == j else 0.3 * sin(q[j] + i) if j < i else 0.0 for j in range(n)] for i in range(n)]
    return A, [sin(q[i]) * q[(i + 1) % n] for i in range(n)]


@pytest.mark.parametrize("choice", [joint_rates, absolute_rates, uneven])
@pytest.mark.parametrize("seed", range(2))
def test_generalised_speeds_describe_the_same_motion(choice: Choice, seed: int) -> None:
    m = random_tree(seed, ["revolute", "prismatic", "revolute", "revolute"], [0, 0, 1, 1], armature=True)
    q, v, tau = (list(x) for x in state(m))
    speeds = GeneralisedSpeeds(m.tree, choice, q)
    close(speeds.velocities(q, speeds.speeds(q, v)), v, 1e-12)
    C = np.linalg.inv(np.array(choice(q)[0], float))
    M = np.array(crba.mass_matrix(m.tree, q), float)
    close(np.array(speeds.mass_matrix(q), float), C.T @ M @ C, 1e-12)
    a, h = np.array(aba.forward_dynamics(m.tree, q, v, tau), float), 1e-5

    def later(t: float) -> np.ndarray:
        moved = np.array(q) + t * np.array(v) + t * t / 2 * a
        return np.array(speeds.speeds(moved.tolist(), (np.array(v) + t * a).tolist()), float)

    close((later(h) - later(-h)) / (2 * h), np.array(speeds.rates(q, v, tau), float), 1e-7)


def test_sums_of_rates_suit_planar_arms() -> None:
    joint, total = (speed_graph(zoo.planar3r(), choice) for choice in (joint_rates, absolute_rates))
    assert total.count().arithmetic < joint.count().arithmetic
    assert total.span() < joint.span()


def test_speeds_that_do_not_determine_the_motion_are_refused() -> None:
    tree = zoo.planar3r().tree
    with pytest.raises(InputError, match="singular"):
        GeneralisedSpeeds(tree, lambda q: ([[1.0] * 3] * 3, [0.0] * 3), [0.0] * 3)
    with pytest.raises(InputError, match="expected"):
        GeneralisedSpeeds(tree, lambda q: ([[1.0]], [0.0]), [0.0] * 3)
    with pytest.raises(InputError, match="quaternions"):
        GeneralisedSpeeds(random_tree(0, ["spherical"]).tree, joint_rates, [0.0, 0.0, 0.0, 1.0])
    vanishing = GeneralisedSpeeds(
        tree, lambda q: ([[q[0], 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.0] * 3), [1.0] * 3
    )
    assert np.isnan(np.array(vanishing.mass_matrix([1e-12, 0.1, 0.2]), float)).any()
    assert np.isfinite(np.array(vanishing.mass_matrix([0.5, 0.1, 0.2]), float)).all()
