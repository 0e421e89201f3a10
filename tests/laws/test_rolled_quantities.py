"""Quantities of large mechanisms other than their dynamics, in rolled loops over link classes.

Compared with straight-line code on the same trees, and with physical laws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs, independent_loops, policy
from bellcrank.build.compile_time_forecast import strategy_forecast
from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.dynamics import METHODS, shape_of
from bellcrank.dynamics.quantities import QUANTITIES, REFERENCES
from bellcrank.dynamics.recursion.recursion_table import BODY_QUANTITIES
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.inline import inline
from bellcrank.model import Mechanism
from trees import close, few, trees

SAID = sorted((quantity, method) for method, quantity in BODY_QUANTITIES if quantity in QUANTITIES)
KINDS = [  # a quantity of each kind of result
    ("poses", "frame_motion"),
    ("reactions", "reactions"),
    ("integrate", "kinematics"),
    ("momentum", "kinematics"),
    ("jacobian", "kinematics"),
    ("momentum_matrix_rate", "centroidal"),
    ("acceleration", "frame_motion"),
]


def both(
    m: Mechanism, quantity: str, method: str, frame: str = "", reference: str = "aligned", frames: tuple[str, ...] = ()
) -> tuple[Graph, Graph]:
    """The quantity in rolled loops, for any size of mechanism, and in straight-line code."""
    row = QUANTITIES[quantity]
    frame = frame if row.option == "frame" else ""
    frames = frames if row.option == "frames" else ()
    inputs = {x: shape_of(x, m.tree, frames) for x in [*row.inputs, *(["wrench"] if frames else [])]}
    told = ({"frame": frame} if frame else {}) | ({"reference": reference} if row.referred else {})
    loops = rolled_graph(m.name, m.tree, method, quantity, inputs, frames, m.parameters, **told)
    asked = graphs.Request(quantity, method, frame, frames, reference=reference if row.referred else "aligned")
    return loops, graphs.trace_quantity(m, asked, METHODS[method])


def state(m: Mechanism, graph: Graph, batch: tuple[int, ...] = ()) -> dict[str, Any]:
    q, v, a = m.random(3, batch)
    rng = np.random.default_rng(4)
    known = {"q": q, "v": v, "a": a, "tau": a, "dv": v, "q0": q, "q1": m.random(5, batch)[0]}
    known["wrench"] = rng.normal(size=(*batch, *graph.inputs.get("wrench", ())))
    known["p"] = m.parameters.nominal * rng.uniform(0.9, 1.1, (*batch, len(m.parameters)))
    return {x: known[x] for x in graph.inputs}


@few(8)
@given(
    trees(max_bodies=7, passive=True, armature=True),
    st.integers(0, 100),
    st.lists(st.sampled_from(SAID), min_size=3, max_size=3),
    st.sampled_from(REFERENCES),
)
def test_loops_agree_with_straight_line_code(
    m: Mechanism, seed: int, said: list[tuple[str, str]], reference: str
) -> None:
    frame = f"f{seed % len(m.bodies)}"
    for quantity, method in said:
        loops, straight = both(m, quantity, method, frame, reference, (frame, m.bodies[0].name))
        at = state(m, loops, (2,))
        expected = straight.evaluate(**at)[quantity]
        close(loops.evaluate(**at)[quantity], expected)
        close(inline(loops).evaluate(**at)[quantity], expected)


@pytest.mark.parametrize("name", ["chain", "random"])
def test_rolled_quantities_agree_on_few_and_many_classes(name: str) -> None:
    """A chain of two classes, and a tree with one class per body."""
    m = bc.zoo.chain(9) if name == "chain" else bc.zoo.random_tree(5, 14, passive=True)
    for quantity, method in SAID:
        for reference in REFERENCES if QUANTITIES[quantity].referred else REFERENCES[:1]:
            loops, straight = both(m, quantity, method, m.bodies[-2].name, reference)
            at = state(m, loops)
            close(loops.evaluate(**at)[quantity], straight.evaluate(**at)[quantity])


@pytest.mark.parametrize(("quantity", "method"), KINDS)
def test_machine_code_of_each_kind_agrees(quantity: str, method: str) -> None:
    """For one state, and in lanes with a rest."""
    m = bc.zoo.tree(15, joints=["revolute", "universal"])
    loops, straight = both(m, quantity, method, m.bodies[-1].name, "local", (m.bodies[3].name,))
    kernel = compile_graph(loops)
    for batch in ((), (11,)):
        at = state(m, loops, batch)
        close(kernel(**at), straight.evaluate(**at)[quantity])


@pytest.mark.parametrize(("quantity", "method"), KINDS[:5])
def test_derivatives_both_ways_agree_with_those_of_written_out_code(quantity: str, method: str) -> None:
    m = bc.zoo.chain(5, joints=["revolute", "prismatic"], twist="general")
    loops, straight = both(m, quantity, method, m.bodies[-2].name)
    rng, at = np.random.default_rng(1), state(m, loops)
    moves = {f"d_{x}": rng.normal(size=np.shape(value)) for x, value in at.items()}
    weight = {f"w_{quantity}": rng.normal(size=straight.shapes[quantity])}
    forwards, backwards = loops.jvp(), loops.vjp()
    assert all(g.opaque for g in forwards.calls)
    assert backwards.calls
    close(
        forwards.evaluate(**at, **moves)[f"d_{quantity}"], straight.jvp().evaluate(**at, **moves)[f"d_{quantity}"], 1e-9
    )
    expected = straight.vjp().evaluate(**at, **weight)
    for key, g in backwards.evaluate(**at, **weight).items():
        close(g, expected[key], 1e-9)


# -- large mechanisms


def test_only_large_mechanisms_are_recursions() -> None:
    large, small = bc.zoo.chain(400), bc.zoo.chain(12)
    for quantity, _ in SAID:
        row = QUANTITIES[quantity]
        frame = large.bodies[-1].name if row.option == "frame" else ""
        asked = graphs.Request(quantity, frame=frame)
        little = quantity in ("pose", "com", "potential_energy", "gravity_torque")
        strategy = policy.choose(large, asked)
        assert strategy.is_rolled != little, quantity
        if strategy.is_rolled:
            assert strategy_forecast(strategy, calls=True).seconds < 2.0
        frame = small.bodies[-1].name if row.option == "frame" else ""
        asked = graphs.Request(quantity, frame=frame)
        assert not any(p.form == policy.ROLLED for p in policy.choose(small, asked).plans)


def test_laws_between_quantities_of_three_hundred_bodies() -> None:
    """Energy, momentum and reactions agree with each other by independent equations."""
    m = bc.zoo.chain(300)
    q, v, tau = m.random(0)
    a = m.forward_dynamics(q, v, tau)
    M, A = m.mass_matrix(q), m.momentum_matrix(q)
    close(m.kinetic_energy(q, v), 0.5 * v @ M @ v, 1e-10)
    close(A @ v, m.momentum(q, v), 1e-10)
    close(A @ a + m.momentum_matrix_rate(q, v) @ v, m.momentum_rate(q, v, a), 1e-10)
    mass = sum(float(b.mass) for b in m.bodies)
    close(mass * m.com_acceleration(q, v, a), m.momentum_rate(q, v, a)[:3], 1e-10)
    close(m.com_jacobian(q) @ v, m.com_velocity(q, v), 1e-10)
    held = m.reactions(q, v, tau)
    assert held.shape == (300, 6)
    close(held[0, :3] + mass * np.array(m.gravity), m.momentum_rate(q, v, a)[:3], 1e-8)
    X, h = m.poses(q), 1e-6
    rate = (m.poses(q + h * v) - m.poses(q - h * v))[:, :3, 3] / (2 * h)
    ends = np.array([m.velocity(q, v, frame=m.bodies[k].name)[:3] for k in (0, 150, 299)])
    close(rate[[0, 150, 299]], ends, 1e-6)
    close(m.pose(q, m.bodies[299].name), X[299])
    slope = (m.potential_energy(q + h * v) - m.potential_energy(q - h * v)) / (2 * h)
    close(slope, m.gravity_torque(q) @ v, 1e-6)
    assert isinstance(bc.kernel(m, "poses").graph, Recursion)


def test_matrices_by_products_are_those_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some joint velocities are not rates of coordinates; a state and a batch, by position and by name."""
    for make in (lambda: bc.zoo.chain(5, joints=["revolute", "planar", "spherical"]), lambda: bc.zoo.tree(13)):
        small, large = make(), make()
        q, v, _ = small.random(1, (2,))
        want = small.coriolis_matrix(q, v), small.mass_matrix_factors(q)
        with monkeypatch.context() as patch:
            patch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
            patch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
            patch.setattr(policy, "MAX_MATRIX_OPERATIONS", 1)
            assert "by_columns" in large.coriolis_matrix.__code__.co_name
            close(large.coriolis_matrix(q, v=v), want[0])
            close(large.mass_matrix_factors(q), want[1])
            close(large.mass_matrix_factors(q=q[0]), want[1][0])
            with pytest.raises(bc.InputError, match=r"\(q, v.*missing"):
                large.coriolis_matrix(q)


def test_quantities_affected_by_loops_or_springs_raise() -> None:
    """Quantities that loops and springs do not affect are shared; for the others an error is raised.

    Examples are poses of a ring, and reactions of bodies that springs pull.
    """
    ring = bc.zoo.ring(100)
    q = ring.random(0)[0]
    assert isinstance(bc.kernel(ring, "poses").graph, Recursion)
    close(ring.poses(q), METHODS["frame_motion"].function("poses")(ring.tree, q.tolist()))
    assert policy.plan(ring, graphs.Request("reactions"), METHODS["reactions"]).form == policy.STRAIGHT
    b = bc.Builder("sprung")
    for i in range(60):
        b.body(f"l{i}", mass=1.0, com=(i + 0.5, 0.25, 0), inertia=(0.01, 0.02, 0.03))
        b.joint(f"j{i}", "revolute", f"l{i - 1}" if i else "ground", f"l{i}", point=(i, 0, 0), axis=(0, 1, 0))
        if i > 1:
            b.spring(f"s{i}", f"l{i - 2}", f"l{i}", (i - 2, 0, 1), (i, 0, 0.5), stiffness=30.0, length=1.0, damping=0.1)
    m = b.build()
    q, v, tau = m.random(2)
    for quantity, method in (
        ("reactions", "reactions"),
        ("passive_torque", "kinematics"),
        ("potential_energy", "kinematics"),
    ):
        inputs = {x: shape_of(x, m.tree) for x in QUANTITIES[quantity].inputs}
        loops = independent_loops.graph_with_springs(m.name, m.tree, method, quantity, inputs, (), m.parameters)
        assert any(g.opaque for g in loops.calls)
        plan = policy.plan(m, graphs.Request(quantity), METHODS[method])
        straight = graphs.with_layer(m, graphs.Request(quantity), plan).function(quantity)
        at = {"q": q, "v": v, "tau": tau}
        expected = straight(m.tree, *(at[x].tolist() for x in inputs))
        close(loops.evaluate(**{x: at[x] for x in inputs})[quantity], expected, 1e-9)


def weighing(seed: int) -> Mechanism:
    """Gravity is free, and so is one mass that all bodies share; two classes are on the ground."""
    b = bc.Builder("weighs", gravity=(0.3, bc.parameter("gy", 0.5), bc.parameter("gz", -9.8)))
    for i in range(8):
        axis = (0, 1, 0) if i % 4 else (0.3, 0.1 * (seed + i), 0.7)
        b.body(f"l{i}", mass=bc.parameter("m", 1.3), com=(i + 0.5, 0.25, 0), inertia=(0.01, 0.02, 0.03))
        b.joint(f"j{i}", "revolute", f"l{i - 1}" if i % 4 else "ground", f"l{i}", point=(i, 0, 0), axis=axis)
    return b.build()


@pytest.mark.parametrize("seed", [0, 1])
def test_gravity_may_be_free(seed: int) -> None:
    """Forward dynamics, reactions and energies depend on it, the other quantities do not."""
    m = weighing(seed)
    for quantity, method in SAID:
        loops, straight = both(m, quantity, method, "l6", "local", ("l1",))
        at = state(m, loops, (2,))
        close(loops.evaluate(**at)[quantity], straight.evaluate(**at)[quantity])


def test_free_gravity_of_a_large_mechanism() -> None:
    """The weight of 200 bodies is proportional to it."""
    m = bc.zoo.chain(200, twist="general").free("gravity.z")
    q, v, tau = m.random(1)
    assert any(g.opaque for g in bc.kernel(m, "forward_dynamics").graph.calls)
    a = [m.forward_dynamics(q, v, tau, parameters={"gravity.z": g}) for g in (0.0, -1.0, -9.81)]
    close(a[2] - a[0], 9.81 * (a[1] - a[0]), 1e-9)
    close(a[2], bc.zoo.chain(200, twist="general").forward_dynamics(q, v, tau), 1e-9)
