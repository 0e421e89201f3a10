"""Derivatives of the dynamics by the recursion equal those by tangents of the graph and by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
import tables
from bellcrank.build import graphs
from bellcrank.dynamics import derivatives, kinematics
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.model.kind import Universal
from trees import few, trees

Array = np.ndarray[Any, Any]
OF = {"forward_dynamics_derivatives": "crba", "inverse_dynamics_derivatives": "rnea"}


def evaluated(m: Mechanism, name: str, method: str, state: tuple[Array, ...], frames: tuple[str, ...] = ()) -> Array:
    graph = graphs.graph(m, name, method, wrenches=frames)
    return np.asarray(graph.evaluate(**dict(zip(graph.inputs, state, strict=False)))[next(iter(graph.outputs))])


@few(30)
@given(trees(), st.sampled_from(list(OF)), st.integers(0, 1000))
def test_the_recursion_is_the_tangents(m: Mechanism, name: str, seed: int) -> None:
    if not derivatives.covered(m.tree):
        return
    state = m.random(seed)
    ours, theirs = (evaluated(m, name, by, state) for by in ("derivatives", OF[name]))
    scale = max(1.0, np.abs(theirs).max())
    assert np.abs(ours - theirs).max() < 1e-9 * scale


def test_derivatives_of_a_mimic_joint_with_damping_friction_and_a_spring() -> None:
    b = bc.Builder("fingers")
    passive = {"damping": 0.7, "friction": 0.4, "friction_speed": 2.0, "stiffness": 3.0}
    for k, parent in enumerate(("ground", "finger0")):
        b.body(f"finger{k}", mass=1.0 + k, com=(0.3 + k, 0.1, 0), inertia=(0.1, 0.2, 0.3))
        mimic = {"mimic": ("joint0", -1.7)} if k else {}
        b.joint(f"joint{k}", "revolute", parent, f"finger{k}", point=(k, 0, 0), axis=(0, 0.6, 0.8), **passive, **mimic)
    m = b.build()
    state = m.random(1)
    ours, theirs = (evaluated(m, "inverse_dynamics_derivatives", by, state) for by in ("derivatives", "rnea"))
    assert np.abs(ours - theirs).max() < 1e-12 * np.abs(theirs).max()


@few(20)
@given(trees(), st.sampled_from(list(OF)), st.integers(0, 1000))
def test_derivatives_with_external_wrenches(m: Mechanism, name: str, seed: int) -> None:
    """Derivatives agree with wrenches on two frames, which do not rotate with their bodies."""
    if not derivatives.covered(m.tree):
        return
    rng, frames = np.random.default_rng(seed), list(m.frames)
    pushed = tuple(sorted({frames[-1], frames[seed % len(frames)]}))
    state = (*m.random(seed), rng.normal(size=(len(pushed), 6)) * 10.0)
    ours, theirs = (evaluated(m, name, by, state, pushed) for by in ("derivatives", OF[name]))
    scale = max(1.0, np.abs(theirs).max())
    assert np.abs(ours - theirs).max() < 1e-9 * scale


def test_a_push_by_its_name() -> None:
    m = bc.zoo.puma600()
    (q, v, tau), frame = m.random(1), list(m.frames)[-1]
    push, h = {frame: [10.0, -20.0, 30.0, 1.0, 2.0, 3.0]}, 1e-6
    found = m.forward_dynamics_derivatives(q, v, tau, wrenches=push)
    e = h * np.eye(m.nv)[2]
    sides = [m.forward_dynamics(q + x, v, tau, wrenches=push) for x in (e, -e)]
    np.testing.assert_allclose(found.dq[:, 2], (sides[0] - sides[1]) / (2.0 * h), rtol=1e-6, atol=1e-6)


class Cardan(Universal):
    """A user-defined joint with rotating axes that is not declared as two revolute joints."""

    name = "cardan"


def test_custom_joints_with_rotating_axes_use_tangents() -> None:
    """The recursion does not support such joints and reports that; auto uses tangents."""
    with tables.restored():
        bc.register("joint", "cardan", Cardan)
        both = []
        for kind in ("cardan", "universal"):
            b = bc.Builder("shaft")
            b.body("cross", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(1, 2, 3))
            b.joint(
                "u", kind, "ground", "cross", axis=(0, 0, 1), second_axis=(1, 0, 0) if kind == "universal" else None
            )
            b.body("end", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(1, 2, 3))
            b.joint("hinge", "revolute", "cross", "end", axis=(0, 1, 0))
            both.append(b.build())
        q, v, tau = both[0].random(0)
        ours, theirs = (m.forward_dynamics_derivatives(q, v, tau) for m in both)
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
        np.testing.assert_allclose(both[0].coriolis_matrix(q, v), both[1].coriolis_matrix(q, v), atol=1e-14)
        with pytest.raises(InputError, match="custom joints whose axes rotate"):
            bc.kernel(both[0], "forward_dynamics_derivatives", method="derivatives")


@pytest.mark.parametrize("name", ["excavator", "torso", "stanford", "puma600"])
def test_derivatives_equal_finite_differences(name: str) -> None:
    m = bc.zoo.load(name)
    q, v, tau = m.random(3)
    found, h = m.forward_dynamics_derivatives(q, v, tau), 1e-6

    def change(k: int, what: int) -> Array:
        sides = []
        for sign in (h, -h):
            moved = [q, v, tau]
            e = sign * np.eye(m.nv)[k]
            moved[what] = np.array(kinematics.integrate(m.tree, list(q), list(e))) if what == 0 else moved[what] + e
            sides.append(m.forward_dynamics(*moved))
        return np.asarray(sides[0] - sides[1]) / (2.0 * h)

    for what, D in enumerate(found):
        want = np.stack([change(k, what) for k in range(m.nv)], axis=-1)
        np.testing.assert_allclose(D, want, atol=1e-7 * max(1.0, np.abs(want).max()))


@few(20)
@given(trees(), st.integers(0, 1000))
def test_one_is_the_inverse_of_the_other(m: Mechanism, seed: int) -> None:
    """M (da/dq) = -dtau/dq at the accelerations of the given forces, and dtau/da = M."""
    if not derivatives.covered(m.tree):
        return
    q, v, tau = m.random(seed)
    a = evaluated(m, "forward_dynamics", "crba", (q, v, tau))
    fd = evaluated(m, "forward_dynamics_derivatives", "derivatives", (q, v, tau))
    d = evaluated(m, "inverse_dynamics_derivatives", "derivatives", (q, v, a))
    scale = max(1.0, np.abs(d).max())
    np.testing.assert_allclose(d[2] @ fd[0], -d[0], atol=1e-8 * scale)
    np.testing.assert_allclose(d[2] @ fd[1], -d[1], atol=1e-8 * scale)
    np.testing.assert_allclose(d[2] @ fd[2], np.eye(m.nv), atol=1e-8)
    np.testing.assert_allclose(d[2], d[2].T, atol=1e-12 * scale)


@pytest.mark.parametrize("name", ["four_bar", "double_wishbone", "parallel_cranks"])
def test_loop_derivatives_along_feasible_motions(name: str) -> None:
    """The derivative along a velocity that keeps the loops closed is that of the closed motion."""
    m = bc.zoo.load(name)
    q = bc.zoo.start(m)[0]
    C = m.closure_jacobian(q)
    _, s, V = np.linalg.svd(C)
    v = V[int((s > 1e-9).sum())]
    tau = np.linspace(0.5, 1.0, m.nv)
    found, h = m.forward_dynamics_derivatives(q, 0.0 * v, tau), 1e-5
    moved = [m.assemble(np.array(kinematics.integrate(m.tree, list(q), list(x * v))))[0] for x in (h, -h)]
    a, b = (m.forward_dynamics(x, 0.0 * v, tau) for x in moved)
    np.testing.assert_allclose(found.dq @ v, (a - b) / (2.0 * h), atol=1e-5 * max(1.0, np.abs(found.dq).max()))


def test_batches_methods_and_names() -> None:
    m = bc.zoo.excavator()
    Q, V, T = m.random(0, (7, 3))
    found = m.forward_dynamics_derivatives(Q, V, T)
    dq, dv, dtau = found
    assert dq.shape == dv.shape == dtau.shape == (7, 3, 4, 4)
    np.testing.assert_array_equal(found.dtau[2, 1], m.forward_dynamics_derivatives(Q[2, 1], V[2, 1], T[2, 1]).dtau)
    np.testing.assert_allclose(dtau, m.inverse_mass_matrix(Q), rtol=1e-12)
    for by in ("derivatives", "crba", "aba", "denoc"):
        k = bc.kernel(m, "forward_dynamics_derivatives", method=by)
        np.testing.assert_allclose(k(Q, V, T), np.stack(found, axis=-3), rtol=1e-9, atol=1e-9)
    with pytest.raises(InputError, match="cannot compute"):
        bc.kernel(m, "forward_dynamics_derivatives", method="rnea")


def test_inapplicable_method_states_the_reason() -> None:
    """The error states that articulated bodies do not support coupled joints, not that they solve another quantity."""
    b = bc.Builder("gripper")
    b.body("left", mass=1.0, inertia=(1, 1, 1))
    b.joint("left", "prismatic", "ground", "left", axis=(1, 0, 0))
    b.body("right", mass=1.0, inertia=(1, 1, 1))
    b.joint("right", "prismatic", "ground", "right", axis=(1, 0, 0), mimic=("left", -1.0))
    m = b.build()
    for method in ("aba", "rnea"):
        with pytest.raises(InputError, match="cannot compute") as caught:
            bc.kernel(m, "forward_dynamics_derivatives", method=method)
        assert ("it solves" in str(caught.value)) == (method == "rnea")
        assert ("mimic joints are not supported" in str(caught.value)) == (method == "aba")


def test_friction_is_that_of_the_branch() -> None:
    """Derivatives include friction inside its linear range, and not beyond it."""
    b = bc.Builder("rod")
    b.body("rod", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0.0, 1.0, 0.0), friction=2.0, friction_speed=0.1, damping=0.5)
    m = b.build()
    slow, fast = (m.inverse_dynamics_derivatives([0.3], [v], [0.0]).dv[0, 0] for v in (0.05, 0.5))
    assert slow - fast == pytest.approx(20.0)
    assert fast == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(3))
def test_floating_base_pose_changes_only_the_root_acceleration(seed: int) -> None:
    """In a floating tree only the root's acceleration changes with its pose and its velocity, as tangents confirm."""
    some = (bc.zoo.random_tree(100 * seed + k, n=6, armature=False) for k in range(100))
    m = next(m for m in some if m.tree.links[0].kind.name == "floating" and derivatives.covered(m.tree))
    state = m.random(seed)
    ours, theirs = (evaluated(m, "forward_dynamics_derivatives", by, state) for by in ("derivatives", "crba"))
    assert np.abs(ours - theirs).max() < 1e-9 * max(1.0, np.abs(theirs).max())
    assert not ours[0][:, :3].any()
    assert not ours[0][3:, 3:6].any()
    assert not ours[1][3:, :3].any()
