"""Wrenches on frames and free parameters of large mechanisms, in rolled loops over link classes.

Compared with straight-line code on the same trees, and with physical laws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs, policy
from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.dynamics import METHODS, shape_of
from bellcrank.dynamics.quantities import QUANTITIES, Request
from bellcrank.graph import Graph, Recursion
from bellcrank.model import Mechanism
from trees import close, few, random_tree, trees

BY = {"forward_dynamics": "aba", "inverse_dynamics": "rnea"}


def made(m: Mechanism, quantity: str, frames: tuple[str, ...] = ()) -> Graph:
    """Use rolled loops for a mechanism of any size."""
    names = [*QUANTITIES[quantity].inputs, *(["wrench"] if frames else [])]
    inputs = {x: shape_of(x, m.tree, frames) for x in names}
    return rolled_graph(m.name, m.tree, BY[quantity], quantity, inputs, frames, m.parameters)


def straight(m: Mechanism, quantity: str, frames: tuple[str, ...] = ()) -> Graph:
    return graphs.trace_quantity(m, Request(quantity, BY[quantity], wrenches=frames), METHODS[BY[quantity]])


def state(m: Mechanism, quantity: str, frames: tuple[str, ...] = (), batch: tuple[int, ...] = ()) -> dict[str, Any]:
    q, v, a = m.random(3, batch)
    found = dict(zip(QUANTITIES[quantity].inputs, (q, v, a), strict=True))
    rng = np.random.default_rng(4)
    if frames:
        found["wrench"] = rng.normal(size=(*batch, len(frames), 6))
    if m.parameters:
        found["p"] = m.parameters.nominal * rng.uniform(0.9, 1.1, (*batch, len(m.parameters)))
    return found


def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every mechanism as a large one."""
    monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
    monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    monkeypatch.setattr(policy, "MAX_MATRIX_OPERATIONS", 1)


@few(8)
@given(trees(max_bodies=7, passive=True), st.integers(0, 100), st.sampled_from(sorted(BY)))
def test_wrenches_agree_with_straight_line_code(m: Mechanism, seed: int, quantity: str) -> None:
    """On any frames, several per body, and on frames of the ground."""
    rng = np.random.default_rng(seed)
    frames = tuple(rng.choice(list(m.frames), size=min(len(m.frames), 4), replace=False).tolist())
    r, at = made(m, quantity, frames), state(m, quantity, frames, (2,))
    expected = straight(m, quantity, frames).evaluate(**at)[quantity]
    close(r.evaluate(**at)[quantity], expected)
    close(r.written.evaluate(**at)[quantity], expected)


def test_wrenches_in_machine_code() -> None:
    """On every body and on a few, for one state and in lanes."""
    m = bc.zoo.chain(12, twist="general")
    for frames in (tuple(b.name for b in m.bodies), (m.bodies[4].name, m.bodies[9].name)):
        r = made(m, "forward_dynamics", frames)
        kernel = compile_graph(r)
        for batch in ((), (5,)):
            at = state(m, "forward_dynamics", frames, batch)
            close(kernel(**at), r.evaluate(**at)["forward_dynamics"])


def test_weight_as_wrenches_is_gravity() -> None:
    """Forces on 200 centres of mass that compensate gravity leave the forces without gravity."""
    m = bc.zoo.chain(200)
    q, v, a = m.random(0)
    poses = np.array(METHODS["frame_motion"].function("poses")(m.tree, q.tolist()), float)
    lifts = {}
    for body, X in zip(m.bodies, poses, strict=True):
        f = body.mass * np.array([0.0, 0.0, 9.81])
        lifts[body.name] = [*f, *np.cross(X[:3, :3] @ np.array(body.com), f)]
    lifted = m.inverse_dynamics(q, v, a, wrenches=lifts)
    assert isinstance(bc.kernel(m, "inverse_dynamics", wrenches=[b.name for b in m.bodies]).graph, Recursion)
    expected = m.inverse_dynamics(q, v, a) - m.gravity_torque(q)
    assert np.abs(lifted - expected).max() <= 1e-9 * np.abs(expected).max()


def numbered(seed: int, kinds: list[str], parents: list[int], share: float) -> Mechanism:
    """A tree with some free parameters."""
    m = random_tree(seed, kinds, parents, passive=True, armature=True)
    rng = np.random.default_rng(seed)
    names = [f"{b.name}.{what}" for b in m.bodies for what in ("mass", "com", "inertia.xx")]
    names += [f"{j.name}.{what}" for j in m.joints for what in ("point.x", "damping")]
    turning = [j for j in m.joints if j.kind != "spherical"]
    names += [f"{j.name}.axis.y" for j in turning if abs(j.axis[0]) + abs(j.axis[2]) > 0.1]  # alone it rotates nothing
    names += [f"{f}.point.z" for f in m.frames if f.startswith("f")]
    return m.free(*[name for name in names if rng.random() < share] or names[:1])


@few(8)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from(["revolute", "prismatic", "spherical", "universal", "helical"]), min_size=1, max_size=6),
    st.lists(st.integers(0, 100), max_size=6),
    st.sampled_from([0.1, 0.6]),
    st.sampled_from(sorted(BY)),
)
def test_free_numbers_agree_with_straight_line_code(
    seed: int, kinds: list[str], parents: list[int], share: float, quantity: str
) -> None:
    m = numbered(seed, kinds, parents, share)
    frames = tuple(list(m.frames)[-2:])
    r, at = made(m, quantity, frames), state(m, quantity, frames, (2,))
    assert [g.opaque for g in r.calls] == [True]
    close(r.evaluate(**at)[quantity], straight(m, quantity, frames).evaluate(**at)[quantity])


def comb(mass: Any, bodies: int = 5) -> Mechanism:
    b = bc.Builder("comb")
    for i in range(bodies):
        b.body(f"l{i}", mass=mass, com=(i + 0.5, 0.25, 0), inertia=(0.01, 0.02, 0.03))
        b.joint(f"j{i}", "revolute", f"l{i - 1}" if i else "ground", f"l{i}", point=(i, 0, 0), axis=(0, 1, 0))
    return b.build()


def test_one_free_number_that_all_bodies_have_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels take it like those of small mechanisms: by nominal value, by name, or as p."""
    free = bc.parameter("m", 1.3)
    sizes = [made(comb(free, n), "forward_dynamics").calls[0].inputs["numbers"] for n in (5, 40)]
    assert sizes[0] == sizes[1]
    m = comb(free)
    q, v, tau = m.random(1, (3,))
    want = {x: comb(x).forward_dynamics(q, v, tau) for x in (1.3, 2.0)}
    large(monkeypatch)
    k = bc.kernel(m, "forward_dynamics", method="aba")
    assert [g.opaque for g in k.graph.calls] == [True]
    close(m.forward_dynamics(q, v, tau, parameters={"m": 2.0}), want[2.0])
    close(k(q, v, tau, [2.0]), want[2.0])
    close(k(q, v, tau), want[1.3])


def test_derivatives_and_matrices_with_wrenches_and_free_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Column by column, the result equals straight-line derivatives."""
    small, many = comb(bc.parameter("m", 1.3), 3), comb(bc.parameter("m", 1.3), 3)
    q, v, a = small.random(1, (2,))
    told: dict[str, Any] = {"wrenches": {"l1": np.arange(6.0), "l2": np.ones((2, 6))}, "parameters": {"m": 1.7}}
    want = *small.inverse_dynamics_derivatives(q, v, a, **told), small.mass_matrix(q, parameters={"m": 1.7})
    large(monkeypatch)
    found = *many.inverse_dynamics_derivatives(q, v, a, **told), many.mass_matrix(q, parameters={"m": 1.7})
    assert "by_columns" in many.inverse_dynamics_derivatives.__code__.co_name
    for one, other in zip(found, want, strict=True):
        close(one, other, 1e-9)
    close(many.mass_matrix(q[0], p=[1.7]), want[-1][0], 1e-9)
    with pytest.raises(bc.InputError, match='give "p" or "parameters", not both'):
        many.mass_matrix(q, p=[1.7], parameters={"m": 1.7})
    with pytest.raises(bc.InputError, match="expected"):
        many.inverse_dynamics_derivatives(q, v, a, wrenches=3)


def test_sensitivities_of_a_large_mechanism_are_those_of_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sensitivities to a free parameter and to the start: the same run with a straight-line rate and with loops."""
    runs = []
    for _ in range(2):
        m = comb(bc.parameter("m", 1.3), 3)
        runs.append(bc.simulate(m, seconds=0.02, step=5e-3, sensitivities=["m", "j0.q"], q0=m.random(0)[0]))
        large(monkeypatch)
    for column in ("j2.q", "d(j2.q)/d(m)", "d(j2.v)/d(j0.q)", "d(j1.a)/d(m)"):
        close(runs[1][column], runs[0][column], 1e-9)
        assert np.abs(runs[0][column]).max() > 0.0
