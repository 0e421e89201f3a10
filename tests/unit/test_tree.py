"""Internal frames do not affect the result: the mass matrix equals that of the user's frames, to the last digits.

The reference here is written in the world frame from bodies and joints alone; it shares no code with the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba, kinematics

Array = np.ndarray[Any, Any]


def cross(a: Array) -> Array:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def mass_matrix(m: bc.Mechanism, q: Array) -> Array:
    """Return the sum of m Jc^T Jc + Jw^T I Jw for a mechanism of revolute joints."""
    place = {m.ground: (np.eye(3), np.zeros(3), np.zeros((3, m.nv)), np.zeros((3, m.nv)))}
    M = np.zeros((m.nv, m.nv))
    for i, (b, j) in enumerate(zip(m.bodies, m.joints, strict=True)):
        R0, p0, w0, v0 = place[j.parent]
        a = np.array(j.axis)
        turn = np.eye(3) + np.sin(q[i]) * cross(a) + (1 - np.cos(q[i])) * cross(a) @ cross(a)
        R, p = R0 @ np.array(j.rotation) @ turn, p0 + R0 @ np.array(j.point)
        w, v = w0.copy(), v0 - cross(p - p0) @ w0
        w[:, i] += R @ a
        place[b.name] = (R, p, w, v)
        Jc = v - cross(R @ np.array(b.com)) @ w
        M += b.mass * Jc.T @ Jc + w.T @ (R @ np.array(b.inertia) @ R.T) @ w
    return M


def some_axes(seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=3)
    a /= np.linalg.norm(a)
    n = np.cross(a, rng.normal(size=3))
    n /= np.linalg.norm(n)
    return a, n, np.cross(a, n)


def body(b: bc.Builder, name: str, com: Array) -> None:
    b.body(name, mass=1.0, com=tuple(com), inertia=(0.1, 0.2, 0.15))


def centre_near_axis(seed: int, gap: float, length: float) -> bc.Mechanism:
    """Return a tree whose last body has its centre of mass far along its oblique axis, and very close to it."""
    a, n, n2 = some_axes(seed)
    p = np.array([0.3, 0.2, 0.1])
    b = bc.Builder("near")
    body(b, "first", np.array([0.1, 0.2, 0.3]))
    b.joint("j0", "revolute", "ground", "first", axis=tuple(np.roll(a, 1)))
    body(b, "last", p + length * a + gap * (n + 0.7 * n2))
    b.joint("j1", "revolute", "first", "last", point=tuple(p), axis=tuple(a))
    return b.build()


def almost_coaxial(seed: int, gap: float, length: float) -> bc.Mechanism:
    """Return two oblique axes that differ by a tiny distance, as in a file with eight digits."""
    a, n, _ = some_axes(seed)
    p0 = np.array([0.1, 0.1, 0.1])
    p = p0 + length * a + gap * n
    b = bc.Builder("coaxial")
    body(b, "first", np.array([0.1, 0.2, 0.3]))
    b.joint("j0", "revolute", "ground", "first", point=tuple(p0), axis=tuple(a))
    body(b, "middle", p + np.array([0.3, 0.2, 0.1]))
    b.joint("j1", "revolute", "first", "middle", point=tuple(p), axis=tuple(a))
    body(b, "last", p + np.array([0.3, 0.2, 0.5]))
    b.joint("j2", "revolute", "middle", "last", point=tuple(p + 0.1), axis=(0, 0, 1))
    return b.build()


@pytest.mark.parametrize("make", [centre_near_axis, almost_coaxial])
@pytest.mark.parametrize(("gap", "length"), [(1e-3, 0.5), (1e-6, 0.5), (1e-8, 0.5), (2e-9, 5.0), (0.0, 0.5)])
def test_close_lines_do_not_bend_the_frames(make: Any, gap: float, length: float) -> None:
    for seed in range(10):
        m = make(seed, gap, length)
        q, _, _ = m.random(seed)
        exact = mass_matrix(m, q)
        assert np.abs(np.array(crba.mass_matrix(m.tree, q.tolist())) - exact).max() <= 1e-13 * np.abs(exact).max()
        R = np.array(kinematics.pose(m.tree, q.tolist(), m.bodies[-1].name))[:3, :3]
        assert np.abs(R @ R.T - np.eye(3)).max() < 1e-14


def test_a_mechanism_far_from_the_origin_keeps_its_small_offsets() -> None:
    def at(x: float) -> bc.Mechanism:
        b = bc.Builder("far")
        for i, y in enumerate((0.0, 0.3)):
            body(b, f"b{i}", np.array([x, y + 2e-6, 0.1]))
            b.joint(f"j{i}", "revolute", f"b{i - 1}" if i else "ground", f"b{i}", point=(x, y, 0.0), axis=(1, 0, 0))
        return b.build()

    q, v, _ = at(0.0).random(1)
    assert np.allclose(at(4e6).bias(q, v), at(0.0).bias(q, v), rtol=1e-9, atol=0.0)
