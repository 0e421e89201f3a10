"""Energy and momentum: each quantity by two independent routes, one of them through the graph's own derivatives.

A quantity is traced and differentiated as a graph and compared with another method on plain floats. The chain rule
along a motion is d/dt f(q) = (df/dq) rate(q, v), which also holds for quaternions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.errors import ModelError
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, mechanism_of
from trees import HOLONOMIC, Array, close, few, state, trees

seeds = st.integers(0, 1000)
mixed = trees(max_bodies=5, armature=st.booleans(), passive=st.booleans())
coupled = trees(kinds=("revolute", "prismatic", "helical"), armature=st.booleans(), passive=st.booleans(), coupled=True)
floating = trees(base="floating", max_bodies=4, armature=st.booleans(), passive=st.booleans())
everything = st.one_of(mixed, coupled, floating)


def graph(m: Mechanism, function: Callable[..., Any], *inputs: str, **options: Any) -> Graph:
    shapes = {name: (m.nq if name == "q" else m.nv,) for name in inputs}
    return trace("law", lambda **x: {"y": function(m.tree, *x.values(), **options)}, shapes)


def gradient(g: Graph, wrt: str, **values: Sequence[float]) -> Array:
    return g.jacobian("y", wrt).evaluate(**values)[f"dy_d{wrt}"]


@given(everything, seeds)
def test_gravity_torque_is_the_gradient_of_potential_energy(m: Mechanism, seed: int) -> None:
    m = m.frictionless()  # springs have a potential of their own; see below
    q, v, _ = state(m, seed)
    fall = gradient(graph(m, kinematics.potential_energy, "q"), "q", q=q) @ kinematics.rate(m.tree, q, v)
    close(np.dot(rnea.gravity_torque(m.tree, q), v), fall, 1e-12)


@given(everything, seeds)
def test_springs_are_the_gradient_of_their_energy(m: Mechanism, seed: int) -> None:
    m = replace(m, gravity=(0.0, 0.0, 0.0), joints=tuple(replace(j, damping=0.0, friction=0.0) for j in m.joints))
    q, v, _ = state(m, seed)
    stored = gradient(graph(m, kinematics.potential_energy, "q"), "q", q=q) @ kinematics.rate(m.tree, q, v)
    close(np.dot(kinematics.passive_torque(m.tree, q, v), v), -stored, 1e-12)


@given(everything, seeds)
def test_damping_and_friction_only_take_energy(m: Mechanism, seed: int) -> None:
    m = replace(m, joints=tuple(replace(j, stiffness=0.0) for j in m.joints))
    q, v, _ = state(m, seed)
    torque = np.array(kinematics.passive_torque(m.tree, q, v), float)
    # an armature's gyroscopic torque has no power but for rounding
    assert np.dot(torque, v) <= 1e-14 * np.linalg.norm(torque) * np.linalg.norm(v)


@few(50)
@given(everything, seeds)
def test_power_balance(m: Mechanism, seed: int) -> None:
    """The power of the joints, friction and springs included, equals the rate of kinetic and potential energy."""
    q, v, a = state(m, seed)
    tau = np.array(rnea.inverse_dynamics(m.tree, q, v, a)) + kinematics.passive_torque(m.tree, q, v)
    rate = kinematics.rate(m.tree, q, v)
    T, U = graph(m, kinematics.kinetic_energy, "q", "v"), graph(m.frictionless(), kinematics.potential_energy, "q")
    taken = gradient(T, "q", q=q, v=v) @ rate + gradient(T, "v", q=q, v=v) @ a + gradient(U, "q", q=q) @ rate
    close(tau @ v, taken, 1e-12)


@few(40)
@given(st.one_of(trees(kinds=HOLONOMIC, max_bodies=4, armature=True), coupled), seeds)
def test_inverse_dynamics_is_lagranges_equation(m: Mechanism, seed: int) -> None:
    """d/dt dT/dv - dT/dq + dU/dq gives the complete bias force, not only its power, from energies alone."""
    m = m.frictionless()
    q, v, a = state(m, seed)
    T = graph(m, kinematics.kinetic_energy, "q", "v")
    p = T.jacobian("y", "v")  # dT/dv, again a graph
    at = {"q": q, "v": v}
    d_p = (
        p.jacobian("dy_dv", "q").evaluate(**at)["ddy_dv_dq"] @ v
        + p.jacobian("dy_dv", "v").evaluate(**at)["ddy_dv_dv"] @ a
    )
    lagrange = d_p - gradient(T, "q", **at) + gradient(graph(m, kinematics.potential_energy, "q"), "q", q=q)
    close(rnea.inverse_dynamics(m.tree, q, v, a), lagrange, 1e-12)


@given(everything, seeds)
def test_momentum_is_mass_times_the_velocity_of_the_centre_of_mass(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    mass = sum(b.mass for b in m.bodies)
    drift = gradient(graph(m, kinematics.com, "q"), "q", q=q) @ kinematics.rate(m.tree, q, v)
    close(kinematics.momentum(m.tree, q, v)[:3], mass * drift, 1e-12)


@given(everything, seeds)
def test_momentum_and_energy_of_single_bodies_add_up(m: Mechanism, seed: int) -> None:
    """Compare with the textbook sums over bodies, from poses, velocities and inertias of the user's frames."""
    q, v, _ = state(m, seed)
    P, L, U, T, centre = np.zeros(3), np.zeros(3), 0.0, 0.0, np.zeros(3)
    for b in m.bodies:
        X = np.array(kinematics.pose(m.tree, q, b.name))
        V = np.array(kinematics.velocity(m.tree, q, v, b.name))
        R, arm = X[:3, :3], X[:3, :3] @ b.com
        c, c_dot, w = X[:3, 3] + arm, V[:3] + np.cross(V[3:], arm), V[3:]
        I = R @ np.array(b.inertia) @ R.T
        P, L, centre = P + b.mass * c_dot, L + I @ w + np.cross(c, b.mass * c_dot), centre + b.mass * c
        T, U = T + 0.5 * (b.mass * c_dot @ c_dot + w @ I @ w), U - b.mass * np.dot(m.gravity, c)
    mass = sum(b.mass for b in m.bodies)
    close(kinematics.com(m.tree, q), centre / mass, 1e-13)
    close(kinematics.momentum(m.tree, q, v), [*P, *(L - np.cross(centre / mass, P))], 1e-12)
    rotors = sum(0.5 * link.armature * v[k] ** 2 for link in m.tree.links for k in link.v_index)
    close(kinematics.kinetic_energy(m.tree, q, v), T + rotors, 1e-13)
    close(kinematics.potential_energy(m.frictionless().tree, q), U, 1e-12)


@few(40)
@given(trees(base="floating", max_bodies=4, gravity=st.booleans()), seeds)
def test_only_gravity_changes_the_momentum_of_a_free_mechanism(m: Mechanism, seed: int) -> None:
    """Internal forces (all but those on the base) change neither linear nor angular momentum about the mass centre."""
    q, v, tau = state(m, seed)
    a = crba.forward_dynamics(m.tree, q, v, [0.0] * 6 + tau[6:])
    h = graph(m, kinematics.momentum, "q", "v")
    change = gradient(h, "q", q=q, v=v) @ kinematics.rate(m.tree, q, v) + gradient(h, "v", q=q, v=v) @ a
    close(change, [*(sum(b.mass for b in m.bodies) * np.array(m.gravity)), 0.0, 0.0, 0.0], 1e-11)


@given(everything, seeds)
def test_velocity_is_the_derivative_of_the_pose(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    frame = f"f{seed % len(m.bodies)}"
    X = np.array(kinematics.pose(m.tree, q, frame))
    X_dot = gradient(graph(m, kinematics.pose, "q", frame=frame), "q", q=q) @ kinematics.rate(m.tree, q, v)
    W = X_dot[:3, :3] @ X[:3, :3].T  # the cross matrix of the angular velocity
    close(W, -W.T, 1e-13)
    close(kinematics.velocity(m.tree, q, v, frame), [*X_dot[:3, 3], W[2, 1], W[0, 2], W[1, 0]], 1e-12)


@given(everything, seeds)
def test_jacobian_times_v_is_velocity(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    for frame in ("ground", f"f{seed % len(m.bodies)}", m.bodies[-1].name):
        J = np.array(kinematics.jacobian(m.tree, q, frame))
        close(J @ v, kinematics.velocity(m.tree, q, v, frame), 1e-13)
        close(gradient(graph(m, kinematics.velocity, "q", "v", frame=frame), "v", q=q, v=v), J, 1e-13)


@given(everything, seeds)
def test_integrate_starts_along_rate_and_stays_on_the_manifold(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    g = graph(m, kinematics.integrate, "q", "v")
    close(g.evaluate(q=q, v=[0.0] * m.nv)["y"], q, 1e-15)
    close(gradient(g, "v", q=q, v=[0.0] * m.nv) @ v, kinematics.rate(m.tree, q, v), 1e-13)
    moved = np.array(kinematics.integrate(m.tree, q, v))
    for link in m.tree.links:
        if link.kind.nq > link.kind.nv:
            close(np.linalg.norm(moved[list(link.q_index[-4:])]), 1.0, 1e-15)
    # Half a step twice is a whole step: the velocity is constant in the body.
    assume(not m.tree.coupled)
    half = [0.5 * x for x in v]
    close(kinematics.integrate(m.tree, kinematics.integrate(m.tree, q, half), half), moved, 1e-13)


@few(8)
@given(trees(max_bodies=4), trees(max_bodies=2), seeds)
def test_no_distance_makes_an_energy_negative(m: Mechanism, held: Mechanism, seed: int) -> None:
    """Parts 1e49 m away along a joint axis left it an inertia of rounding error, sometimes below zero."""
    looked = 0
    for power in range(1, 49):
        far = tuple(10.0**power * x for x in (m.joints[-1].axis if seed % 3 else np.roll((0.0, 1.0, 0.3), seed % 7)))
        end = replace(m.joints[-1], name="end", kind="revolute", parent=m.joints[-1].child, child="b9", point=far,
                      rotation=held.joints[-1].rotation, axis=held.joints[-1].axis, second_axis=None)  # fmt: skip
        last = replace(held.bodies[-1], name="b9")
        try:
            moved = mechanism_of(m.name, [*m.bodies, last], [*m.joints, end], ground=m.ground)
        except ModelError as error:
            assert "only rounding error is left" in str(error)  # noqa: PT017
            assert power > 2
            continue
        looked += 1
        M = np.array(crba.mass_matrix(moved.tree, state(moved, seed)[0]), dtype=float).reshape(moved.nv, moved.nv)
        scale = np.sqrt(np.diag(M))
        assert np.linalg.eigvalsh(M / np.outer(scale, scale))[0] > -1e-3
    assert looked > 1
