"""Relations between rates, matrices and reference frames of frames and of the whole mechanism, on random trees.

Rates are compared with derivatives of the graphs of the quantities, so no accuracy is lost to differences.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import centroidal, coriolis, crba, frame_motion, kinematics, rnea
from bellcrank.dynamics.quantities import REFERENCES
from bellcrank.graph import trace
from bellcrank.model import Mechanism, regrouped
from trees import Array, close, few, random_tree, state, trees

seeds = st.integers(0, 1000)
references = st.sampled_from(REFERENCES)
with_couplings = trees(kinds=("revolute", "prismatic", "helical", "spherical"), coupled=True)
everything = st.one_of(trees(armature=st.booleans()), with_couplings, trees(base="floating"))


def change(m: Mechanism, f: Callable[..., Any], q: list[float], v: list[float], a: list[float] | None = None) -> Array:
    """d f(q) / dt while q moves with v; of f(q, v), v moves with a, too."""
    dq = kinematics.rate(m.tree, q, v)

    def along(t: Any) -> dict[str, Any]:
        there = [x + t * d for x, d in zip(q, dq)]
        return {"y": f(there) if a is None else f(there, [x + t * d for x, d in zip(v, a)])}

    return trace("f", along, {"t": ()}).jacobian("y", "t").evaluate(t=0.0)["dy_dt"]


def last_frame(m: Mechanism) -> str:
    return f"f{len(m.bodies) - 1}"


@few(40)
@given(everything, references, seeds)
def test_motion_of_a_frame(m: Mechanism, seen: str, seed: int) -> None:
    """The velocity is jacobian v; its derivative is the acceleration in the same kind of reference frame."""
    tree, frame, (q, v, a) = m.tree, last_frame(m), state(m, seed)
    J = np.array(kinematics.jacobian(tree, q, frame, seen), float)
    dJ = np.array(frame_motion.jacobian_rate(tree, q, v, frame, seen), float)
    close(J @ v, kinematics.velocity(tree, q, v, frame, seen), 1e-13)
    close(dJ, change(m, lambda x: kinematics.jacobian(tree, x, frame, seen), q, v), 1e-12)
    rate = frame_motion.acceleration if seen == "aligned" else frame_motion.spatial_acceleration
    close(rate(tree, q, v, a, frame, seen), J @ a + dJ @ v, 1e-12)
    close(
        rate(tree, q, v, a, frame, seen),
        change(m, lambda x, u: kinematics.velocity(tree, x, u, frame, seen), q, v, a),
        1e-12,
    )


@few(30)
@given(everything, seeds)
def test_references_show_the_same_motion(m: Mechanism, seed: int) -> None:
    tree, frame, (q, v, a) = m.tree, last_frame(m), state(m, seed)
    X = np.array(kinematics.pose(tree, q, frame), float)
    R, p = X[:3, :3], X[:3, 3]
    local, aligned, world = (np.array(kinematics.velocity(tree, q, v, frame, x)) for x in ("local", "aligned", "world"))
    close(np.kron(np.eye(2), R) @ local, aligned, 1e-13)
    close([*(aligned[:3] - np.cross(aligned[3:], p)), *aligned[3:]], world, 1e-13)
    for f in (frame_motion.acceleration, frame_motion.spatial_acceleration):
        close(np.kron(np.eye(2), R) @ f(tree, q, v, a, frame, "local"), f(tree, q, v, a, frame, "aligned"), 1e-12)
    for seen in REFERENCES:
        V = kinematics.velocity(tree, q, v, frame, seen)
        by = np.subtract(
            frame_motion.acceleration(tree, q, v, a, frame, seen),
            frame_motion.spatial_acceleration(tree, q, v, a, frame, seen),
        )
        close(by, [*np.cross(V[3:], V[:3]), 0.0, 0.0, 0.0], 1e-12)


@few(40)
@given(everything, seeds)
def test_the_coriolis_matrix(m: Mechanism, seed: int) -> None:
    """C v are the Coriolis forces, C + C^T is the rate of M, and regrouping has no effect."""
    q, v, _ = state(m, seed)
    C = np.array(coriolis.coriolis_matrix(m.tree, q, v), float)
    close(C @ v, rnea.coriolis_torque(m.tree, q, v), 1e-12)
    close(C + C.T, change(m, lambda x: crba.mass_matrix(m.tree, x), q, v), 1e-12)
    close(coriolis.coriolis_matrix(regrouped(m.tree), q, v), C, 1e-12)


@few(40)
@given(everything, seeds)
def test_motion_of_the_centre_of_mass(m: Mechanism, seed: int) -> None:
    tree, (q, v, a) = m.tree, state(m, seed)
    A = np.array(centroidal.momentum_matrix(tree, q), float)
    dA = np.array(centroidal.momentum_matrix_rate(tree, q, v), float)
    J = np.array(centroidal.com_jacobian(tree, q), float)
    mass = sum(b.mass for b in m.bodies)
    close(A @ v, kinematics.momentum(tree, q, v), 1e-12)
    close(dA, change(m, lambda x: centroidal.momentum_matrix(tree, x), q, v), 1e-12)
    close(A @ a + dA @ v, centroidal.momentum_rate(tree, q, v, a), 1e-12)
    close(mass * J, A[:3], 1e-13)
    close(J @ v, centroidal.com_velocity(tree, q, v), 1e-13)
    close(J @ v, change(m, lambda x: kinematics.com(tree, x), q, v), 1e-12)
    close(
        mass * np.array(centroidal.com_acceleration(tree, q, v, a)), centroidal.momentum_rate(tree, q, v, a)[:3], 1e-13
    )


@few(30)
@given(trees(base="floating"), seeds)
def test_floating_mechanism_falls_freely(m: Mechanism, seed: int) -> None:
    """Under joint torques alone, the centre of mass falls freely and the angular momentum is constant."""
    q, v, tau = state(m, seed)
    tau[:6] = [0.0] * 6
    a = crba.forward_dynamics(m.tree, q, v, tau)
    scale = max(1.0, np.abs(a).max())
    close(centroidal.com_acceleration(m.tree, q, v, a), m.gravity, 1e-11 * scale)
    close(centroidal.momentum_rate(m.tree, q, v, a)[3:], np.zeros(3), 1e-10 * scale)


@few(40)
@given(everything, seeds)
def test_differences_lead_there(m: Mechanism, seed: int) -> None:
    """Between any two configurations; and the difference in the opposite direction is the negative one."""
    q0, q1 = m.random(seed)[0].tolist(), m.random(seed + 1)[0].tolist()
    dv = kinematics.difference(m.tree, q0, q1)
    there = kinematics.integrate(m.tree, q0, dv)
    close(frame_motion.poses(m.tree, there), [kinematics.pose(m.tree, q1, b.name) for b in m.bodies], 1e-12)
    close(kinematics.difference(m.tree, q1, q0), [-x for x in dv], 1e-12)


# -- the public interface


def test_references_of_a_mechanism() -> None:
    arm = bc.zoo.puma600()
    q, v, a = arm.random(0, (5,))
    tool = arm.bodies[-1].name
    assert np.array_equal(arm.jacobian(q, tool), arm.jacobian(q, tool, reference="aligned"))
    for seen in REFERENCES:
        J = bc.kernel(arm, "jacobian", frame=tool, reference=seen)(q)
        assert np.array_equal(J, arm.jacobian(q, frame=tool, reference=seen))
        close(np.einsum("nij,nj->ni", J, v), arm.velocity(q, v, tool, reference=seen), 1e-13)
        assert arm.acceleration(q, v, a, tool, reference=seen).shape == (5, 6)
    assert "reference='aligned'" in str(inspect.signature(arm.jacobian))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "jacobian",
            {"frame": "link6", "reference": "wrold"},
            'jacobian: There is no reference "wrold". Did you mean "world"?',
        ),
        ("pose", {"frame": "link6", "reference": "local"}, 'pose takes no reference; got "local". velocity, '),
        ("mass_matrix", {"reference": "world"}, 'mass_matrix takes no reference; got "world"'),
        ("acceleration", {}, "acceleration needs a frame"),
        ("poses", {"frame": "link6"}, "poses takes no frame"),
    ],
)
def test_invalid_requests_raise(name: str, options: dict[str, str], words: str) -> None:
    arm = bc.zoo.puma600()
    with pytest.raises(bc.InputError) as error:
        bc.kernel(arm, name, **{k: arm.bodies[-1].name if k == "frame" else x for k, x in options.items()})  # type: ignore[arg-type]
    assert words in str(error.value)


def test_ground_has_no_motion() -> None:
    arm = bc.zoo.puma600()
    q, v, a = arm.random(0)
    for seen in REFERENCES:
        for found in (
            arm.velocity(q, v, "ground", reference=seen),
            arm.acceleration(q, v, a, "ground", reference=seen),
            arm.spatial_acceleration(q, v, a, "ground", reference=seen),
            arm.jacobian(q, "ground", reference=seen),
            arm.jacobian_rate(q, v, "ground", reference=seen),
        ):
            assert not found.any()


@pytest.mark.parametrize("name", ["com", "com_jacobian", "com_velocity", "com_acceleration", "momentum_matrix"])
def test_massless_mechanism_has_no_centre_of_mass(name: str) -> None:
    m = random_tree(1, ["revolute"])
    light = replace(m, bodies=(replace(m.bodies[0], mass=0.0),))
    for by in ("auto", "centroidal"):
        with pytest.raises(bc.ModelError, match="no centre of mass"):
            graphs.graph(light, name, by)
