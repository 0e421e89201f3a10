"""Closed loops of the zoo: assembled at their start, and with the right mobility."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.dynamics import crba, kinematics
from bellcrank.model import Loop, Mechanism
from bellcrank.model.parts import EQUATIONS

Array = np.ndarray[Any, Any]
# Name: coordinates of the tree, equations, true mobility.
MECHANISMS = {
    "rod_pendulum": (3, 1, 2),
    "four_bar": (3, 5, 1),
    "slider_fourbar": (4, 5, 2),
    "n_four_bar:2": (5, 10, 1),
    "n_four_bar:5": (11, 25, 1),
    "parallel_cranks": (4, 10, 1),
    "andrews": (7, 15, 1),
    "bricard": (5, 5, 1),
    "stewart": (21, 15, 6),
    "delta": (18, 15, 3),
    "double_wishbone": (5, 4, 1),
    "excavator_linkage": (12, 20, 4),
    "excavator_flexible": (15, 20, 7),
    "walking_excavator": (23, 12, 11),
}


def pose(m: Mechanism, q: Array, frame: str) -> Array:
    return np.array([[float(x) for x in row] for row in kinematics.pose(m.tree, q.tolist(), frame)])


def gaps(m: Mechanism, loop: Loop, q: Array) -> Array:
    """Return the residual of a loop, written independently from the definitions in model/parts.py."""
    a, b = pose(m, q, loop.a), pose(m, q, loop.b)
    apart = b[:3, 3] - a[:3, 3]
    if loop.kind == "distance":
        return np.array([np.linalg.norm(apart) - loop.value])
    tilt = np.cross(a[:3, 2], b[:3, 2]) if loop.kind == "revolute" else np.zeros(0)
    assert loop.kind in ("revolute", "spherical")
    return np.concatenate([apart, tilt])


def residual(m: Mechanism, q: Array) -> Array:
    return np.concatenate([gaps(m, loop, q) for loop in m.loops])


def moved(m: Mechanism, q: Array, dv: Array) -> Array:
    return np.array([float(x) for x in kinematics.integrate(m.tree, q.tolist(), dv.tolist())])


def jacobian(m: Mechanism, q: Array, h: float = 1e-6) -> Array:
    steps = np.eye(m.nv) * h
    return np.column_stack([(residual(m, moved(m, q, s)) - residual(m, moved(m, q, -s))) / (2 * h) for s in steps])


def along(m: Mechanism, q: Array, steps: int = 5) -> Array:
    """Return a later configuration: small steps in the null space, each corrected by Newton's method."""
    before = np.zeros(m.nv)
    for _ in range(steps):
        free = np.linalg.svd(jacobian(m, q))[2][-1]
        before = free = free if free @ before >= 0.0 else -free  # not back and forth
        q = moved(m, q, 0.05 * free)
        for _ in range(6):
            q = moved(m, q, -np.linalg.lstsq(jacobian(m, q), residual(m, q), rcond=1e-7)[0])
    return q


@pytest.mark.parametrize("name", MECHANISMS)
def test_zoo_loops_are_closed_with_the_expected_mobility(name: str) -> None:
    m = zoo.load(name)
    nv, equations, mobility = MECHANISMS[name]
    q, v = zoo.start(m)
    assert (m.nv, sum(EQUATIONS[loop.kind] for loop in m.loops)) == (nv, equations)
    assert np.abs(residual(m, q)).max() < 4e-15  # a few rounding errors of a metre
    assert np.abs(jacobian(m, q) @ v).max() < 1e-9
    there = along(m, q)
    assert np.linalg.norm(there - q) > 0.05
    assert np.abs(residual(m, there)).max() < 1e-11
    sizes = np.linalg.svd(jacobian(m, there), compute_uv=False)
    assert m.nv - int((sizes > 1e-6 * sizes[0]).sum()) == mobility
    assert m.report.warnings == ()


def test_andrews_is_the_one_of_the_literature() -> None:
    """Andrews' mechanism has the joint angles, constraints and mass matrix of the literature."""
    m, g = zoo.andrews(), zoo.data("andrews")
    rng = np.random.default_rng(1)
    names = list(g["q0"])
    at = [m.columns[0].index(name) for name in names]
    x = rng.uniform(-1, 1, 7)
    q = np.zeros(7)
    q[at] = x
    be, th, ga, ph, de, om, ep = x
    c, s = np.cos, np.sin
    printed = [
        g["rr"] * c(be) - g["d"] * c(be + th) - g["ss"] * s(ga) - g["xb"],
        g["rr"] * s(be) - g["d"] * s(be + th) + g["ss"] * c(ga) - g["yb"],
        g["rr"] * c(be) - g["d"] * c(be + th) - g["e"] * s(ph + de) - g["zt"] * c(de) - g["xa"],
        g["rr"] * s(be) - g["d"] * s(be + th) + g["e"] * c(ph + de) - g["zt"] * s(de) - g["ya"],
        g["rr"] * c(be) - g["d"] * c(be + th) - g["zf"] * c(om + ep) - g["u"] * s(ep) - g["xa"],
        g["rr"] * s(be) - g["d"] * s(be + th) - g["zf"] * s(om + ep) + g["u"] * c(ep) - g["ya"],
    ]
    ours = np.concatenate([-gaps(m, loop, q)[:2] for loop in m.loops])
    np.testing.assert_allclose(ours, printed, atol=1e-16)

    m1, m2, m3, m4, m5, m6, m7 = g["m"]
    I1, I2, I3, I4, I5, I6, I7 = g["I"]
    a, f = g["e"] - g["ea"], g["zf"] - g["fa"]
    M = np.zeros((7, 7))
    M[0, 0] = m1 * g["ra"] ** 2 + m2 * (g["rr"] ** 2 - 2 * g["da"] * g["rr"] * c(th) + g["da"] ** 2) + I1 + I2
    M[1, 0] = m2 * (g["da"] ** 2 - g["da"] * g["rr"] * c(th)) + I2
    M[1, 1] = m2 * g["da"] ** 2 + I2
    M[2, 2] = m3 * (g["sa"] ** 2 + g["sb"] ** 2) + I3
    M[3, 3] = m4 * a**2 + I4
    M[4, 3] = m4 * (a**2 + g["zt"] * a * s(ph)) + I4
    M[4, 4] = m4 * (g["zt"] ** 2 + 2 * g["zt"] * a * s(ph) + a**2) + m5 * (g["ta"] ** 2 + g["tb"] ** 2) + I4 + I5
    M[5, 5] = m6 * f**2 + I6
    M[6, 5] = m6 * (f**2 - g["u"] * f * s(om)) + I6
    M[6, 6] = m6 * (f**2 - 2 * g["u"] * f * s(om) + g["u"] ** 2) + m7 * (g["ua"] ** 2 + g["ub"] ** 2) + I6 + I7
    M = M + np.tril(M, -1).T
    found = np.array([[float(x) for x in row] for row in crba.mass_matrix(m.tree, q.tolist())])[np.ix_(at, at)]
    np.testing.assert_allclose(found, M, atol=1e-19)

    spring = m.springs[0]
    D = pose(m, q, spring.a)[:2, 3]
    np.testing.assert_allclose(
        D,
        [g["sd"] * c(ga) + g["sc"] * s(ga) + g["xb"], g["sd"] * s(ga) - g["sc"] * c(ga) + g["yb"]],
        atol=1e-16,
    )
    assert (spring.stiffness, spring.length, spring.damping) == (g["c0"], g["l0"], 0.0)
    np.testing.assert_allclose(pose(m, q, spring.b)[:2, 3], [g["xc"], g["yc"]], atol=1e-16)


def test_the_top_of_the_first_rod() -> None:
    m = zoo.n_four_bar(3)
    q, v = zoo.start(m)
    np.testing.assert_allclose(pose(m, q, "B0")[:3, 3], [0, 1, 0], atol=1e-15)
    later = pose(m, moved(m, q, 1e-6 * v), "B0")[:3, 3]
    np.testing.assert_allclose((later - [0, 1, 0]) / 1e-6, [1, 0, 0], atol=1e-5)


def test_the_four_bar_on_a_slide_with_and_without_its_loop() -> None:
    closed, opened = zoo.slider_fourbar(), zoo.slider_fourbar(closed=False)
    assert [loop.name for loop in closed.loops] == ["R5"]
    assert (opened.loops, closed.springs) == ((), ())
    assert [s.name for s in zoo.slider_fourbar(forces=True).springs] == ["along", "across"]
    assert closed.joints == opened.joints


def test_the_suspension_stands_about_where_its_spring_carries_it() -> None:
    """The spring force of the suspension at q = 0 is plausible: one to twenty times the weight of the wheel."""
    m = zoo.double_wishbone()
    q, _ = zoo.start(m)
    s = m.springs[0]
    length = np.linalg.norm(pose(m, q, s.a)[:3, 3] - pose(m, q, s.b)[:3, 3])
    assert 1 < s.stiffness * (s.length - length) / (9.81 * 43) < 20
