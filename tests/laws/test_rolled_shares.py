"""Mimic joints and flexible bodies in rolled loops over link classes, with coordinates that several links share.

Compared with straight-line code of other methods, and with physical laws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs, independent_loops
from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.rolled_recursion import is_rollable, rolled_graph
from bellcrank.dynamics import METHODS, aba, crba, shape_of
from bellcrank.dynamics.quantities import QUANTITIES
from bellcrank.dynamics.recursion import link_classes
from bellcrank.dynamics.recursion.recursion_table import BODY_QUANTITIES
from bellcrank.dynamics.shared_coordinates import MAX_OPEN_SLOTS, collect_shared_coordinates
from bellcrank.dynamics.singular_mass import MATRIX_CHECK_MAX_NV
from bellcrank.graph import Graph, Recursion
from bellcrank.model import Mechanism
from laws.test_flexible_random import random_tree as flexible_tree
from trees import close, few, random_tree, trees

SAID = sorted((quantity, method) for (method, quantity), said in BODY_QUANTITIES.items() if said.coupled)
JOINTS = ("revolute", "prismatic", "helical", "spherical", "universal")


def loops(m: Mechanism, quantity: str, method: str, frames: tuple[str, ...] = ()) -> Graph:
    """Use rolled loops for any size; a quantity of a body is that of the last body."""
    row = QUANTITIES[quantity]
    names = [*row.inputs, *(["wrench"] if frames else [])]
    inputs = {x: shape_of(x, m.tree, frames) for x in names}
    told = {"frame": m.bodies[-1].name} if row.option == "frame" else {}
    told |= {"reference": "local"} if row.referred else {}
    return rolled_graph(m.name, m.tree, method, quantity, inputs, frames, m.parameters, **told)


def straight(m: Mechanism, quantity: str, method: str, frames: tuple[str, ...] = ()) -> Graph:
    """With mimic joints, aba exists only as loops, so crba is the other method."""
    by = METHODS[method if METHODS[method].applies(m.tree, quantity) else "crba"]
    row = QUANTITIES[quantity]
    frame = m.bodies[-1].name if row.option == "frame" else ""
    asked = graphs.Request(quantity, by.name, frame, frames, reference="local" if row.referred else "aligned")
    return graphs.trace_quantity(m, asked, by)


def state(m: Mechanism, graph: Graph, batch: tuple[int, ...] = ()) -> dict[str, Any]:
    q, v, a = m.random(3, batch)
    for body in m.tree.flexible:
        q[..., list(body.q_index)] *= 10.0
    known = {"q": q, "v": v, "a": a, "tau": a}
    known["wrench"] = np.random.default_rng(4).normal(size=(*batch, *graph.inputs.get("wrench", ())))
    known["p"] = m.parameters.nominal
    return {x: known[x] for x in graph.inputs}


def agree(m: Mechanism, said: list[tuple[str, str]], tolerance: float) -> None:
    for quantity, method in said:
        assert is_rollable(m.tree, method, quantity)
        frames = (m.bodies[-1].name, m.bodies[0].name) if QUANTITIES[quantity].option == "frames" else ()
        found = loops(m, quantity, method, frames)
        at = state(m, found, (2,))
        expected = straight(m, quantity, method, frames).evaluate(**at)[quantity]
        close(found.evaluate(**at)[quantity], expected, tolerance)


@few(8)
@given(
    trees(JOINTS, max_bodies=7, base="revolute", passive=True, armature=True, coupled=True),
    st.lists(st.sampled_from(SAID), min_size=4, max_size=4),
)
def test_mimic_joints_agree_with_straight_line_code(m: Mechanism, said: list[tuple[str, str]]) -> None:
    agree(m, [("forward_dynamics", "aba"), *said], 1e-10)


@few(8)
@given(trees(JOINTS, max_bodies=7, base="revolute", passive=True, armature=True, coupled=True))
def test_articulated_bodies_with_mimic_joints_agree_with_the_mass_matrix(m: Mechanism) -> None:
    """Between two joints of one coordinate are joints with axes of their own, which are eliminated before it is."""
    q, v, tau = (x.tolist() for x in m.random(2))
    close(aba.forward_dynamics(m.tree, q, v, tau), crba.forward_dynamics(m.tree, q, v, tau), 1e-10)


def test_mimic_joints_in_merged_classes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Link classes of few bodies have every constant in a table, and mimic joints have more constants."""
    m = random_tree(4, ["revolute", "prismatic"] * 15, coupled=True, passive=True)
    found = collect_shared_coordinates(m.tree)
    assert found is not None
    apart = len(link_classes.link_classes(m.tree, shares=found.share))
    monkeypatch.setattr(link_classes, "MERGE_ABOVE_CLASSES", 2)
    assert len(link_classes.link_classes(m.tree, shares=found.share)) <= apart
    agree(m, [("inverse_dynamics", "rnea"), ("forward_dynamics", "aba")], 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_of_bodies_that_bend_agree_with_straight_line_code(seed: int) -> None:
    """Rigid bodies and beams with two nodes each, with other bodies on them."""
    agree(flexible_tree(seed), SAID[seed::4], 1e-10)


def snake(bodies: int, every: int = 2) -> Mechanism:
    """The first joint of each group has a coordinate, and the others follow it."""
    b = bc.Builder("snake")
    for i in range(bodies):
        b.body(f"l{i}", mass=1.0, com=(i + 0.5, 0.1, 0.05), inertia=(0.01, 0.02, 0.03))
        follows = {"mimic": (f"j{i - i % every}", 1.0 + 0.1 * (i % every))} if i % every else {}
        b.joint(
            f"j{i}", "revolute", f"l{i - 1}" if i else "ground", f"l{i}", point=(i, 0, 0), axis=(0, 1, 0), **follows
        )
    return b.build()


def beams(bodies: int) -> Mechanism:
    b, steel = bc.Builder("beams"), bc.Material(2.1e11, 0.3, 7850.0)
    for i in range(bodies):
        b.beam(
            f"b{i}", length=1.0, start=(i, 0, 0), section=bc.Section.rectangle(0.02, 0.03), material=steel, elements=4,
            modes=0, motions=("bend_y",),
        )  # fmt: skip
        b.joint(f"j{i}", "revolute", f"b{i - 1}.end" if i else "ground", f"b{i}", point=(i, 0, 0), axis=(0, 1, 0))
    return b.build()


@pytest.mark.parametrize("make", [lambda: snake(9, 3), lambda: beams(4)], ids=["snake", "beams"])
def test_machine_code_and_derivatives_agree(make: Any) -> None:
    m = make()
    found, other = loops(m, "forward_dynamics", "aba"), straight(m, "forward_dynamics", "crba")
    kernel = compile_graph(found)
    for batch in ((), (11,)):
        at = state(m, found, batch)
        close(kernel(**at), other.evaluate(**at)["forward_dynamics"], 1e-9)
    rng, at = np.random.default_rng(1), state(m, found)
    moves = {f"d_{x}": rng.normal(size=np.shape(value)) for x, value in at.items()}
    expected = other.jvp().evaluate(**at, **moves)["d_forward_dynamics"]
    close(found.jvp().evaluate(**at, **moves)["d_forward_dynamics"], expected, 1e-8)
    back = found.vjp()
    assert back.calls
    w = rng.normal(size=m.nv)
    want = other.vjp().evaluate(**at, w_forward_dynamics=w)
    for key, g in back.evaluate(**at, w_forward_dynamics=w).items():
        close(g, want[key], 1e-8)


def test_a_snake_of_hundreds_is_shared_by_all_ways() -> None:
    """Forces and accelerations are inverse, energy equals that of the mass matrix, and derivatives agree by column."""
    m = snake(300)
    q, v, tau = m.random(0)
    kernel = bc.kernel(m, "forward_dynamics")
    assert isinstance(kernel.graph, Recursion)
    assert len(kernel.graph.cells) < 8
    a = m.forward_dynamics(q, v, tau)
    close(m.inverse_dynamics(q, v, a), tau, 1e-8)
    M = m.mass_matrix(q)
    close(m.kinetic_energy(q, v), 0.5 * v @ M @ v, 1e-9)
    close(M @ a + m.bias(q, v), tau, 1e-8 * float(np.abs(m.bias(q, v)).max()))


def test_one_coordinate_for_all_has_one_slot() -> None:
    """A chain that curls by a single coordinate is a pendulum of one freedom, however far its joints are apart."""
    m = snake(200, 200)
    assert m.nv == 1
    found = collect_shared_coordinates(m.tree)
    assert found is not None
    assert found.share[0].slots == 1
    q, v, tau = m.random(0)
    a = m.forward_dynamics(q, v, tau)
    h = 1e-5
    M = 2.0 * m.kinetic_energy(q, [1.0])
    slope = (m.kinetic_energy(q + h, v) - m.kinetic_energy(q - h, v)) / (2 * h)  # M' v^2 / 2
    weight = (m.potential_energy(q + h) - m.potential_energy(q - h)) / (2 * h)
    close(M * a, tau - slope - weight, 1e-6 * float(np.abs(weight)))


def chain(follows: dict[int, int], parents: dict[int, str], bodies: int) -> Mechanism:
    b = bc.Builder("chain")
    for i in range(bodies):
        b.body(f"l{i}", mass=1.0, com=(i + 0.5, 0, 0), inertia=(0.1, 0.2, 0.3))
        more = {"mimic": f"j{follows[i]}"} if i in follows else {}
        up = parents.get(i, f"l{i - 1}" if i else "ground")
        b.joint(f"j{i}", "revolute", up, f"l{i}", point=(i, 0, 0), axis=(0, 1, 0), **more)
    return b.build()


def test_coordinates_without_inertia_are_found_among_many() -> None:
    """Points on a line, the last two of which rotate about it by one coordinate."""
    b = bc.Builder("line")
    for i in range(MATRIX_CHECK_MAX_NV + 40):
        last = i >= MATRIX_CHECK_MAX_NV + 38
        b.body(f"l{i}", mass=1.0, com=(i + 1.0, 0, 0), inertia=(0, 0, 0))
        follows = {"mimic": f"j{i - 1}"} if i % 2 and (last or i < 20) else {}
        up, axis = f"l{i - 1}" if i else "ground", (1, 0, 0) if last else (0, 1, 0)
        b.joint(f"j{i}", "revolute", up, f"l{i}", point=(i, 0, 0), axis=axis, **follows)
    m = b.build()
    assert m.nv > MATRIX_CHECK_MAX_NV
    with pytest.raises(
        bc.ModelError, match=f'because "j{MATRIX_CHECK_MAX_NV + 38}" can move without moving any inertia'
    ):
        m.forward_dynamics(*m.random(0))


def test_wide_shared_coordinates_stay_straight_line_code() -> None:
    apart = chain({1: 0}, {1: "ground"}, 2)
    wide = chain(
        {i: i - MAX_OPEN_SLOTS - 1 for i in range(MAX_OPEN_SLOTS + 1, 2 * MAX_OPEN_SLOTS + 2)},
        {},
        2 * MAX_OPEN_SLOTS + 2,
    )
    for m in (apart, wide):
        assert collect_shared_coordinates(m.tree) is None
        assert not is_rollable(m.tree, "aba", "forward_dynamics")
        assert is_rollable(m.tree, "frame_motion", "poses")
        q, v, tau = m.random(0)
        close(m.inverse_dynamics(q, v, m.forward_dynamics(q, v, tau)), tau, 1e-8)


@pytest.mark.parametrize(
    ("quantity", "method"),
    [
        ("forward_dynamics", "aba"),
        ("inverse_dynamics", "rnea"),
        ("reactions", "reactions"),
        ("potential_energy", "kinematics"),
    ],
)
def test_with_springs_and_free_numbers(quantity: str, method: str) -> None:
    """Free parameters are gravity, masses, and the ratio of a mimic joint."""
    b = bc.Builder("sprung", gravity=(0, 0.1, bc.parameter("g", -9.0)))
    for i in range(8):
        follows: dict[str, Any] = {"mimic": (f"j{i - 1}", bc.parameter("ratio", 1.5))} if i % 2 else {}
        up = f"l{i - 1}" if i else "ground"
        b.body(f"l{i}", mass=bc.parameter("m", 1.2), com=(i + 0.5, 0.1, 0.05), inertia=(0.01, 0.02, 0.03))
        b.joint(f"j{i}", "revolute", up, f"l{i}", point=(i, 0, 0), axis=(0, 1, 0), **follows)
        if i > 2:
            b.spring(f"s{i}", f"l{i - 2}", f"l{i}", (i - 2, 0, 1), (i, 0, 0.5), stiffness=30.0, length=1.0, damping=0.1)
    m = b.build()
    inputs = {x: shape_of(x, m.tree) for x in QUANTITIES[quantity].inputs}
    found = independent_loops.graph_with_springs(m.name, m.tree, method, quantity, inputs, (), m.parameters)
    at = {**state(m, found), "p": m.parameters.nominal * np.array([1.1, 1.05, 0.9])}
    close(found.evaluate(**at)[quantity], straight(m, quantity, method).evaluate(**at)[quantity], 1e-10)
