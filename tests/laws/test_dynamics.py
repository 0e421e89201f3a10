"""Relations between inverse dynamics, forward dynamics and the mass matrix on random trees of all joints.

All tests run on plain floats with the functions that are traced. Tolerances: these mass matrices have condition numbers
below 1e4 (checked by a test), so results of M^-1 keep eleven digits and the others thirteen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bellcrank.dynamics import aba, crba, kinematics, rnea
from bellcrank.graph import trace
from bellcrank.model import Mechanism, regrouped
from bellcrank.spatial.vector import Vec
from trees import ALL, close, few, momentum_rates, random_tree, state, trees

seeds = st.integers(0, 1000)
any_tree = trees(armature=st.booleans(), passive=st.booleans())
with_couplings = trees(
    kinds=("revolute", "prismatic", "helical", "spherical"), armature=st.booleans(), passive=st.booleans(), coupled=True
)
floating = trees(base="floating", armature=st.booleans(), passive=st.booleans())
everything = st.one_of(any_tree, with_couplings, floating)


INVERSE = 1e-11  # tolerance of results that contain M^-1


@given(everything, seeds)
def test_forward_dynamics_undoes_inverse_dynamics(m: Mechanism, seed: int) -> None:
    q, v, a = state(m, seed)
    tau = rnea.inverse_dynamics(m.tree, q, v, a)
    for method in [crba] if m.tree.coupled else [crba, aba]:
        close(method.forward_dynamics(m.tree, q, v, tau), a, INVERSE)


@given(any_tree, seeds)
def test_both_forward_dynamics_agree(m: Mechanism, seed: int) -> None:
    q, v, tau = state(m, seed)
    close(aba.forward_dynamics(m.tree, q, v, tau), crba.forward_dynamics(m.tree, q, v, tau), INVERSE)


@given(everything, seeds)
def test_mass_matrix_is_the_columns_of_inverse_dynamics(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    bias = np.array(rnea.bias(m.tree, q, v))
    columns = [np.array(rnea.rigid_forces(m.tree, q, v, e.tolist())) - bias for e in np.eye(m.nv)]
    close(crba.mass_matrix(m.tree, q), np.transpose(columns), 1e-12)


@given(everything, seeds)
def test_mass_matrix_is_symmetric_positive_definite(m: Mechanism, seed: int) -> None:
    q, _, _ = state(m, seed)
    M = np.array(crba.mass_matrix(m.tree, q))
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0
    assert np.linalg.cond(M) < 1e4


@given(everything, seeds)
def test_kinetic_energy_is_half_v_M_v(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    close(kinematics.kinetic_energy(m.tree, q, v), 0.5 * np.array(v) @ np.array(crba.mass_matrix(m.tree, q)) @ v, 1e-13)


@given(everything, seeds)
def test_solve_inverts_the_mass_matrix(m: Mechanism, seed: int) -> None:
    q, v, _ = state(m, seed)
    M = np.array(crba.mass_matrix(m.tree, q))
    close(M @ crba.solve(crba.mass_matrix_triangle(m.tree, q), v, [""] * m.nv), v, INVERSE)


@given(everything, seeds)
def test_regrouping_keeps_joint_forces(m: Mechanism, seed: int) -> None:
    q, v, a = state(m, seed)
    other = regrouped(m.tree)
    close(crba.mass_matrix(other, q), crba.mass_matrix(m.tree, q), 1e-13)
    close(rnea.inverse_dynamics(other, q, v, a), rnea.inverse_dynamics(m.tree, q, v, a), 1e-12)
    close(rnea.gravity_torque(other, q), rnea.gravity_torque(m.tree, q), 1e-12)
    close(kinematics.kinetic_energy(other, q, v), kinematics.kinetic_energy(m.tree, q, v), 1e-13)
    assume(not m.tree.coupled)
    close(aba.forward_dynamics(other, q, v, a), aba.forward_dynamics(m.tree, q, v, a), INVERSE)


@given(everything, seeds)
def test_bias_and_gravity_do_the_work_of_the_momentum_rates(m: Mechanism, seed: int) -> None:
    """D'Alembert: the power of a joint force equals that of all momentum rates, less gravity, on the joint's motion."""
    q, v, _ = state(m, seed)
    zero = [0.0] * m.nv
    close(rnea.bias(m.tree, q, v), force_by_momenta(m, q, v), 1e-11)
    close(rnea.gravity_torque(m.tree, q), force_by_momenta(m, q, zero), 1e-11)
    # Coriolis and centrifugal forces are quadratic in the velocities.
    g = np.array(rnea.gravity_torque(m.tree, q))
    close(np.array(rnea.bias(m.tree, q, [2 * x for x in v])) - g, 4 * (np.array(rnea.bias(m.tree, q, v)) - g), 1e-12)


def force_by_momenta(m: Mechanism, q: Any, v: Any) -> Any:
    """Return the joint forces at zero accelerations from the momentum rates of the bodies."""
    rates = np.array(momentum_rates(m.tree, q, v, [0.0] * m.nv), float).reshape(-1, 6)
    poses = kinematics.poses(m.tree, q)
    for link, rate, (R, p) in zip(m.tree.links, rates, poses, strict=True):
        weight = Vec(*m.gravity) * link.inertia.m
        rate -= [*weight, *(p * link.inertia.m + R @ link.inertia.h).cross(Vec(*m.gravity))]
    forces = np.zeros(m.nv)
    for k, unit in enumerate(np.eye(m.nv).tolist()):
        for rate, V, (R, p) in zip(rates, kinematics.velocities(m.tree, q, unit), poses, strict=True):
            spin = R @ V.ang
            forces[k] += rate @ [*(R @ V.lin - spin.cross(p)), *spin]
    return forces


@given(everything, seeds)
def test_a_wrench_acts_through_the_jacobian(m: Mechanism, seed: int) -> None:
    q, v, a = state(m, seed)
    rng = np.random.default_rng(seed)
    frames = [f"f{i}" for i in rng.choice(len(m.bodies), size=min(2, len(m.bodies)), replace=False)]
    wrench = rng.uniform(-1, 1, (len(frames), 6))
    pulled = sum(np.array(kinematics.jacobian(m.tree, q, f)).T @ w for f, w in zip(frames, wrench))
    free = np.array(rnea.inverse_dynamics(m.tree, q, v, a))
    close(rnea.inverse_dynamics(m.tree, q, v, a, frames, wrench.tolist()), free - pulled, 1e-12)
    for method in [crba] if m.tree.coupled else [crba, aba]:
        given_by_joints = method.forward_dynamics(m.tree, q, v, (np.array(a) + pulled).tolist())
        by_wrench = method.forward_dynamics(m.tree, q, v, a, frames, wrench.tolist())
        close(by_wrench, given_by_joints, INVERSE)


@few(40)
@given(everything, seeds)
def test_floats_arrays_and_graphs_are_one_computation(m: Mechanism, seed: int) -> None:
    """One function gives equal results on floats, on numpy arrays with a batch, and on evaluated symbols."""
    Q, V, A = m.random(seed, (3,))
    for function, inputs in (
        (crba.forward_dynamics, {"q": Q, "v": V, "tau": A}),
        (rnea.inverse_dynamics, {"q": Q, "v": V, "a": A}),
        (kinematics.momentum, {"q": Q, "v": V}),
        (kinematics.integrate, {"q": Q, "dv": V}),
    ):
        one_by_one = [function(m.tree, *(x[i].tolist() for x in inputs.values())) for i in range(3)]
        columns = function(m.tree, *([x[:, k] for k in range(x.shape[1])] for x in inputs.values()))
        shapes = {name: x.shape[1:] for name, x in inputs.items()}
        g = trace("law", lambda f=function, **x: {"y": f(m.tree, *x.values())}, shapes)
        close(np.stack(np.broadcast_arrays(*columns), axis=-1), one_by_one, INVERSE)
        close(g.evaluate(**inputs)["y"], one_by_one, INVERSE)


@pytest.mark.parametrize("kind", ALL)
def test_a_wrench_on_the_ground_does_nothing(kind: str) -> None:
    m = random_tree(1, [kind, "revolute"])
    q, v, a = state(m)
    close(rnea.inverse_dynamics(m.tree, q, v, a, ["ground"], [[1.0] * 6]), rnea.inverse_dynamics(m.tree, q, v, a), 0.0)
