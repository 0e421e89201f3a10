"""Loop equations: values against poses, constraint Jacobian against derivatives, forces against both; and springs.

Derivatives are the graph's own, along q + t dq/dt: exact, and correct to first order on the manifold of q.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank import Builder
from bellcrank.dynamics import kinematics
from bellcrank.dynamics.frame_pairs import common_body
from bellcrank.dynamics.loops.constraint_equations import equation_names, loop_equations
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints as numbers
from bellcrank.graph import trace
from bellcrank.model import Loop, Mechanism
from bellcrank.model.parts import EQUATIONS
from loops import FRAMED, Closed, closed, looped, pose
from trees import close, few, random_tree, state

seeds = st.integers(0, 1000)
everything = st.one_of(
    looped(max_bodies=5),
    looped(max_bodies=5, base="floating"),
    looped(max_bodies=5, coupled=True),
)


def along(m: Mechanism, q: Any, v: Any, f: Any) -> Any:
    """Return d/dt of f(q, v) along the motion with constant v."""
    rate = kinematics.rate(m.tree, q, v)
    g = trace("along", lambda t: {"f": f([a + b * t for a, b in zip(q, rate)], v)}, {"t": ()})
    return g.jacobian("f", "t").evaluate(t=0.0)["df_dt"]


def values(m: Mechanism, q: Any, v: Any) -> list[Any]:
    return [e.value for e in loop_equations(m.tree, q, v)]


def matrix_C(m: Mechanism, q: Any) -> Any:
    return numbers(m.tree, np.array(q)).C


@few(100)
@given(everything, seeds)
def test_rows_are_derivatives_of_the_values(case: Closed, seed: int) -> None:
    m, q = case[0], state(case[0], seed)[0]
    C = matrix_C(m, q)
    assert C.shape == (sum(EQUATIONS[loop.kind] for loop in m.loops), m.nv) == (len(equation_names(m.tree)), m.nv)
    for k, e in enumerate(np.eye(m.nv)):
        close(C[:, k], along(m, q, e.tolist(), lambda x, u: values(m, x, u)))


@few(100)
@given(everything, seeds)
def test_rate_and_bias_are_first_and_second_derivatives(case: Closed, seed: int) -> None:
    m, (q, v, _) = case[0], state(case[0], seed)
    found = loop_equations(m.tree, q, v)
    close([e.rate for e in found], matrix_C(m, q) @ v)
    close([e.rate for e in found], along(m, q, v, lambda x, u: values(m, x, u)))
    close([e.bias for e in found], along(m, q, v, lambda x, u: [e.rate for e in loop_equations(m.tree, x, u)]))


MOVING: dict[str, Callable[[Builder], object]] = {
    "ball": lambda b: b.rolling("c", "b", 0.2, (0.1, 0.2, 0.3), on="a"),
    "wheel": lambda b: b.rolling("c", "b", 0.2, (0.1, 0.2, 0.3), on="a", axle=(0.6, 0.8, 0.0)),
    "knife edge": lambda b: b.knife_edge("c", "b", (0.1, 0.2, 0.3), along=(1, 0, 0), on="a"),
    "surface": lambda b: b.on_surface("c", "b", (0.1, 0.2, 0.3), lambda x, y, z: x * y - z * z * z, on="a"),
    "curve": lambda b: b.on_curve("c", "b", (0, 0, 0), (lambda x, y, z: z - x * y, lambda x, y, z: y * y), on="a"),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", MOVING)
def test_bias_of_rolling_and_gliding_on_a_moving_body(kind: str, seed: int) -> None:
    """Both ends move, so that the axes of the plane turn as well."""
    b = Builder("moving")
    for name in "ab":
        b.body(name, mass=1.0, inertia=(0.1, 0.2, 0.25))
        b.joint(f"free_{name}", "floating", "ground", name)
    MOVING[kind](b)
    m = b.build()
    q, v, _ = state(m, seed)
    equations = loop_equations(m.tree, q, v)
    close([e.rate for e in equations], matrix_C(m, q) @ v)
    close([e.bias for e in equations], along(m, q, v, lambda x, u: [e.rate for e in loop_equations(m.tree, x, u)]))
    rates = along(m, q, v, lambda x, u: values(m, x, u))
    holonomic = [k for k, e in enumerate(equations) if e.value != 0.0]
    close([equations[k].rate for k in holonomic], rates[holonomic])
    assert bool(holonomic) == (kind != "knife edge")


def expected(m: Mechanism, loop: Loop, q: Any) -> list[float]:
    """Return the equations of a loop from the world poses of its two frames."""
    if loop.joints:
        first, second = (next(x for x in m.tree.links if x.joint.name == name) for name in loop.joints)
        return [second.coordinates(q)[0] - loop.value * first.coordinates(q)[0] - loop.offset]
    A, B = pose(m, q, loop.a), pose(m, q, loop.b)
    on = common_body(m.tree, loop.a, loop.b)
    common = pose(m, q, m.bodies[on].name)[:3, :3] if on >= 0 else np.eye(3)
    d = B[:3, 3] - A[:3, 3]
    meet, in_a, cosines = common.T @ d, A[:3, :3].T @ d, A[:3, :3].T @ B[:3, :3]
    parallel, twist = [cosines[2, 0], cosines[2, 1]], [cosines[0, 1]]
    return {
        "spherical": [*meet],
        "universal": [*meet, cosines[2, 0]],
        "revolute": [*meet, *parallel],
        "fixed": [*meet, *parallel, *twist],
        "cylindrical": [*in_a[:2], *parallel],
        "prismatic": [*in_a[:2], *parallel, *twist],
        "planar": [in_a[2], *parallel],
        "point_on_line": [*in_a[:2]],
        "distance": [(d @ d - loop.value**2) / (2 * (loop.value or 1.0))],
    }[loop.kind]


@few(100)
@given(everything, seeds)
def test_values_are_those_of_the_poses(case: Closed, seed: int) -> None:
    """Values hold for any frames inside the bodies, and are zero where the loops were closed."""
    m, q_closed = case
    q = state(m, seed)[0]
    close(values(m, q, [0.0] * m.nv), [x for loop in m.loops for x in expected(m, loop, q)])
    close(values(m, q_closed, [0.0] * m.nv), np.zeros(len(equation_names(m.tree))))


@few(60)
@given(everything, seeds)
def test_the_force_of_a_multiplier_does_its_work(case: Closed, seed: int) -> None:
    """Force and moment on end b, and their opposites on end a at the same point, have the power C v of the equation."""
    m, q = case
    v = state(m, seed)[1]
    found = iter(loop_equations(m.tree, q, v))
    for loop in m.loops:
        for _ in range(EQUATIONS[loop.kind]):
            e = next(found)
            if loop.joints:
                continue
            on = common_body(m.tree, loop.a, loop.b)
            R = pose(m, q, m.bodies[on].name)[:3, :3] if on >= 0 else np.eye(3)
            force, moment = (R @ np.array([*x], dtype=float) for x in e.force)
            (Va, Vb), p = (
                [np.array(kinematics.velocity(m.tree, q, v, f), dtype=float) for f in (loop.a, loop.b)],
                pose(m, q, loop.b)[:3, 3] - pose(m, q, loop.a)[:3, 3],
            )
            power = force @ (Vb[:3] - Va[:3] - np.cross(Va[3:], p)) + moment @ (Vb[3:] - Va[3:])
            close(power, sum(x * v[k] for k, x in e.row.items()))


@pytest.mark.parametrize("kind", FRAMED)
def test_every_closure_kind_is_tested(kind: str) -> None:
    """The equations of each kind have full rank between two free bodies: none is redundant."""
    m, q = closed(random_tree(3, ["floating", "floating"], [0, 0]), 5, [kind])
    C = matrix_C(m, q)
    assert len(C) == EQUATIONS[kind] == np.linalg.matrix_rank(C, tol=1e-3)


sprung = st.one_of(
    looped(max_bodies=5, springs=3),
    looped(max_bodies=4, springs=3, base="floating"),
    looped(max_bodies=5, springs=3, coupled=True),
)


@few(60)
@given(sprung, seeds)
def test_springs_pull_towards_less_energy_and_dampers_take_it(case: Closed, seed: int) -> None:
    m, (q, v, _) = case[0], state(case[0], seed)
    tau = np.array(kinematics.passive_torque(m.tree, q, [0.0] * m.nv), dtype=float)
    bare, energy = m.frictionless().tree, kinematics.potential_energy
    for k, e in enumerate(np.eye(m.nv)):
        slope = along(m, q, e.tolist(), lambda x, u: [energy(m.tree, x) - energy(bare, x)])
        close(tau[k], -slope[0])
    moving = np.array(kinematics.passive_torque(m.tree, q, v), dtype=float)
    assert (moving - tau) @ v <= 1e-12


def test_a_spring_of_no_length_is_smooth_where_its_ends_meet() -> None:
    b = Builder("tied", gravity=(0, 0, 0))
    b.body("ball", mass=1, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("free", "floating", "ground", "ball")
    b.spring("tie", "ground", "ball", (0, 0, 0), (0, 0, 0), stiffness=7.0)
    m = b.build()
    close(kinematics.passive_torque(m.tree, m.neutral().tolist(), [0.0] * 6), np.zeros(6))
    q = m.neutral()
    q[0] = 0.5
    close(kinematics.passive_torque(m.tree, q.tolist(), [0.0] * 6), [-3.5, 0, 0, 0, 0, 0])
    assert kinematics.potential_energy(m.tree, q.tolist()) == pytest.approx(7 * 0.25 / 2)
