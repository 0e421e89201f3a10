"""Each joint type on its own: the motion subspace is the derivative of the pose, the bias that of the subspace, etc."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics.tree_sweeps import subspace_motion
from bellcrank.errors import ModelError
from bellcrank.graph import trace
from bellcrank.model import Body, Frame, Joint, mechanism_of
from bellcrank.model.joints import KINDS, Kind
from bellcrank.model.parts import matrix
from bellcrank.model.quaternion import quaternion_product, quaternion_rate, rotation_matrix
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, ZERO, SymMat, Vec
from trees import Array, close

# Offsets that fold (quarter turns), and general ones.
VARIANTS = [(name, angle0) for name in KINDS for angle0 in ((0.0, np.pi / 2, 0.3) if KINDS[name].has_axis else (0.0,))]


def make(name: str, angle0: float = 0.0) -> Kind:
    offsets = {"angle0": angle0, "distance0": 0.2} if KINDS[name].has_axis else {}
    return KINDS[name](**offsets, **({"pitch": 0.3} if name == "helical" else {}))


def state(kind: Kind, seed: int = 0) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng(seed)
    q, v, w = rng.uniform(-1, 1, kind.nq), rng.uniform(-1, 1, kind.nv), rng.uniform(-1, 1, kind.nv)
    if kind.nq > kind.nv:
        q[-4:] /= np.linalg.norm(q[-4:])
    return q.tolist(), v.tolist(), w.tolist()


def four(t: Transform) -> list[list[Any]]:
    R, p = t.pose(IDENTITY, ZERO)
    return [*([*row, x] for row, x in zip(R.rows, p)), [0.0, 0.0, 0.0, 1.0]]


def derivative(f: Any, x: list[float], direction: list[float]) -> Array:
    """Return d f(x + t direction)/dt at 0, by differentiating the graph."""
    if not x:
        return np.zeros_like(np.array(f(x), float))
    g = trace("f", lambda t: {"y": f([a + t * d for a, d in zip(x, direction)])}, {"t": ()})
    return g.jacobian("y", "t").evaluate(t=0.0)["dy_dt"]


@pytest.mark.parametrize("name", KINDS)
def test_forces_that_work_and_forces_that_do_not(name: str) -> None:
    kind = make(name)
    q, _, _ = state(kind)
    S, (W, T) = kind.subspace(q), kind.forces(q)
    power = [[s.dot(f) for f in (*W, *T)] for s in S]
    close(np.reshape(power, (kind.nv, 6)), np.eye(kind.nv, 6), 1e-15)
    assert np.linalg.matrix_rank(np.array([[*f.ang, *f.lin] for f in (*W, *T)], float)) == 6


@pytest.mark.parametrize(("name", "angle0"), VARIANTS)
def test_subspace_is_the_derivative_of_the_pose(name: str, angle0: float) -> None:
    kind = make(name, angle0)
    q, v, _ = state(kind)
    X = np.array(four(kind.transform(q)), float)
    X_dot = derivative(lambda x: four(kind.transform(x)), q, kind.rate(q, v))
    twist = np.linalg.inv(X) @ X_dot  # velocity of F relative to G, in axes of F
    V = subspace_motion(kind.subspace(q), v)
    close([twist[2, 1], twist[0, 2], twist[1, 0]], list(V.ang), 1e-14)
    close(twist[:3, 3], list(V.lin), 1e-14)
    close(twist[:3, :3] + twist[:3, :3].T, np.zeros((3, 3)), 1e-14)


@pytest.mark.parametrize(("name", "angle0"), VARIANTS)
def test_bias_is_the_change_of_the_subspace(name: str, angle0: float) -> None:
    kind = make(name, angle0)
    q, v, _ = state(kind)

    def S_v(x: list[Any]) -> list[Any]:
        m = subspace_motion(kind.subspace(x), v)
        return [*m.ang, *m.lin]

    c = kind.bias(q, v)
    close([*c.ang, *c.lin], derivative(S_v, q, kind.rate(q, v)), 1e-14)


@pytest.mark.parametrize("name", KINDS)
def test_neutral_is_no_motion(name: str) -> None:
    kind = KINDS[name]()
    close(four(kind.transform(kind.neutral())), np.eye(4), 0)
    assert len(kind.neutral()) == kind.nq == len(kind.coordinates)
    assert len(kind.subspace(kind.neutral())) == kind.nv


@pytest.mark.parametrize("name", KINDS)
def test_subspace_columns_are_independent(name: str) -> None:
    kind = make(name)
    q, _, _ = state(kind)
    S = np.array([[*s.ang, *s.lin] for s in kind.subspace(q)]).reshape(kind.nv, 6)
    assert np.linalg.matrix_rank(S) == kind.nv


@pytest.mark.parametrize("name", KINDS)
def test_integrate_begins_along_rate(name: str) -> None:
    kind = make(name)
    q, v, _ = state(kind)
    zero = [0.0] * kind.nv
    close(kind.integrate(q, zero), q, 1e-15)
    close(derivative(lambda dv: kind.integrate(q, dv), zero, v), kind.rate(q, v), 1e-14)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [0.0, 1e-9, 9e-5, 1.1e-4, 1e-2, 1.0, 3.0])
def test_integrate_is_the_motion_under_a_constant_velocity(name: str, size: float) -> None:
    """Integrating twice over half a step gives the whole step (a one-parameter group).

    The sizes cross the switch to the series near zero.
    """
    kind = make(name)
    q, v, _ = state(kind)
    dv = [size * x for x in v]
    half = [0.5 * x for x in dv]
    whole = kind.integrate(q, dv)
    close(kind.integrate(kind.integrate(q, half), half), whole, 2e-15 * (1 + size))
    close(kind.integrate(whole, [-x for x in dv]), q, 2e-15 * (1 + size))
    if name in ("spherical", "floating"):
        close(np.linalg.norm(whole[-4:]), 1.0, 4e-16)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.06, 0.07, 1.0, 1.7])
def test_difference_is_integrate_undone(name: str, size: float) -> None:
    """`difference` inverts `integrate`.

    The sizes cross the switch to the series near zero and reach almost half a turn.
    """
    kind = make(name)
    q, v, _ = state(kind)
    dv = [size * x for x in v]
    there = kind.integrate(q, dv)
    close(kind.difference(q, there), dv, 4e-15)
    close(kind.difference(there, q), [-x for x in dv], 4e-15)
    if name in ("spherical", "floating"):  # a quaternion and its negative are the same rotation
        close(kind.difference(q, [*there[:-4], *(-x for x in there[-4:])]), dv, 4e-15)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", [0.0, 1e-6, 0.06, 0.07, 1.7])
def test_derivative_of_difference_undoes_integrate(name: str, size: float) -> None:
    """The derivative of `difference` is nearly as accurate as its value, on both sides of the switch to the series."""
    kind = make(name)
    q, v, w = state(kind)
    dv = [size * x for x in v]
    found = derivative(lambda x: kind.difference(q, kind.integrate(q, x)), dv, w)
    close(found, w, 1e-13)


def test_half_a_turn_is_the_farthest() -> None:
    kind = make("spherical")
    q, _, _ = state(kind)
    there = kind.integrate(q, [3.5, 0.0, 0.0])  # the shorter way round
    close(kind.difference(q, there), [3.5 - 2 * np.pi, 0.0, 0.0], 1e-15)
    close(kind.difference(q, kind.integrate(q, [0.0, 3.14159, 0.0])), [0.0, 3.14159, 0.0], 1e-15)


@pytest.mark.parametrize(("name", "angle0"), VARIANTS)
def test_subspace_rate_is_the_change_of_each_column(name: str, angle0: float) -> None:
    kind = make(name, angle0)
    q, v, _ = state(kind)
    columns = [[*m.ang, *m.lin] for m in kind.subspace_rate(q, v)]
    found = derivative(lambda x: [[*m.ang, *m.lin] for m in kind.subspace(x)], q, kind.rate(q, v))
    close(np.reshape(columns, (kind.nv, 6)), np.reshape(found, (kind.nv, 6)), 1e-14)


@pytest.mark.parametrize("name", KINDS)
def test_integrate_against_small_steps(name: str) -> None:
    """`integrate` agrees with small Runge-Kutta steps of dq/dt = rate(q, v) with constant v."""
    kind = make(name)
    x, v, _ = state(kind)
    q, n = np.array(x), 50

    def rate(y: Array) -> Array:
        return np.array(kind.rate(y.tolist(), v), float).reshape(q.shape)

    for _ in range(n):
        h = 1.0 / n
        k1 = rate(q)
        k2 = rate(q + h / 2 * k1)
        k3 = rate(q + h / 2 * k2)
        q = q + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(q + h * k3))
    close(kind.integrate(x, v), q, 1e-9)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.nq == kind.nv])
def test_forces_on_coordinates_have_the_power_of_forces_on_velocities(name: str) -> None:
    kind = make(name)
    q, v, f = state(kind)
    close(np.dot(kind.felt(q, f), v), np.dot(f, kind.rate(q, v)), 1e-15)


@pytest.mark.parametrize(("name", "angle0"), VARIANTS)
def test_unfelt_inertia_is_constant_in_the_parent(name: str, angle0: float) -> None:
    """Inertia that no motion of the joint changes, seen from the parent, may be moved to the parent."""
    kind = make(name, angle0)
    given = kind.unfelt(Inertia(1.5, Vec(0.1, 0.2, 0.3), SymMat(1.0, 1.2, 1.4, 0.1, 0.2, 0.3)))

    def seen(q: list[float]) -> list[float]:
        i = kind.transform(q).inertia(given)
        return [i.m, *i.h, *(x for row in i.I.rows for x in row)]

    q, _, _ = state(kind)
    if name != "fixed":
        close(seen(q), seen(kind.neutral()), 1e-14)


def test_quaternions() -> None:
    rng = np.random.default_rng(0)
    a, b = (x / np.linalg.norm(x) for x in rng.normal(size=(2, 4)))

    def R(q: Any) -> Array:
        return np.array([list(row) for row in rotation_matrix(q).rows], float)

    close(R(a) @ R(a).T, np.eye(3), 1e-15)
    close(np.linalg.det(R(a)), 1.0, 1e-15)
    close(R(quaternion_product(a.tolist(), b.tolist())), R(a) @ R(b), 1e-15)
    close(R(-a), R(a), 0)
    c, s = np.cos(0.4), np.sin(0.4)
    close(R([np.sin(0.2), 0.0, 0.0, np.cos(0.2)]), [[1, 0, 0], [0, c, -s], [0, s, c]], 1e-15)
    close(np.dot(quaternion_rate(a.tolist(), Vec(0.1, 0.2, 0.3)), a), 0.0, 1e-16)  # the length stays constant


@pytest.mark.parametrize("rotation", [2.0 * np.eye(3), -np.eye(3), np.diag([1.0, 1.0, -1.0]), np.zeros((3, 3))])
def test_only_rotations_are_rotations(rotation: Array) -> None:
    """A mirror image is refused as a rotation, although its rows are orthonormal."""
    body, R = Body("b", 1.0), matrix(rotation)
    with pytest.raises(ModelError, match=r'joint "j": rotation .* right-handed'):
        mechanism_of("m", [body], [Joint("j", "revolute", "ground", "b", R)])
    with pytest.raises(ModelError, match=r'frame "f": rotation .* right-handed'):
        mechanism_of("m", [body], [Joint("j", "revolute", "ground", "b")], [Frame("f", "b", R)])
