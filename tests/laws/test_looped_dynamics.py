"""Dynamics with closed loops: every method equals a least-squares solution of the complete equations.

Loop forces are checked against momentum and power, drive forces against the motion that they cause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import zoo
from bellcrank.dynamics import METHODS, Method, applicable_methods, crba, kinematics, rnea
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints as numbers
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.errors import InputError
from bellcrank.model import Mechanism, regrouped
from loops import Closed, at_random, looped, pose
from trees import close, few, momentum_rates, state

TOLERANCE = 1e-9
DRIVES = {
    "four_bar": ["A"],
    "bricard": ["R1"],
    "stewart": [f"P{i}" for i in range(1, 7)],
    "delta": [f"shoulder{i}" for i in range(1, 4)],
    "double_wishbone": ["lower_pivot"],
    "slider_fourbar": ["T1", "R2"],
    "andrews": ["beta"],
    "parallel_cranks": ["A0"],
}
seeds = st.integers(0, 1000)
everything = st.one_of(
    looped(max_bodies=4, most=2, springs=1, armature=st.booleans(), passive=st.booleans()),
    looped(max_bodies=4, most=2, base="floating"),
    looped(kinds=("gear", "rack", "distance", "revolute"), max_bodies=5, most=3, coupled=True),
)


State = tuple[list[float], list[float], list[float]]  # q, v, tau
Moving = tuple[Mechanism, LoopRank, State]  # a mechanism with its loop equations


def moving(name: str) -> Moving:
    """A mechanism of the zoo in a reachable configuration, with a velocity in the null space."""
    m = getattr(zoo, name)()
    q = analysis(m).samples[3]
    v = consistent_velocity(m.tree, q, m.random(1)[1])
    return m, analysis(m).rank, (q.tolist(), v.tolist(), m.random(2)[2].tolist())


def in_motion(case: Closed, seed: int) -> Moving:
    """Random cases, without singular and nearly singular configurations."""
    m, q = case
    _, v, tau = state(m, seed)
    assume(m.loops)
    rank = analysis(m, np.array(q)).rank
    C = numbers(m.tree, np.array(q)).C[list(rank.rows)]
    s = np.linalg.svd(C, compute_uv=False)
    assume(len(s) == 0 or s[-1] > 1e-3 * s[0])
    return m, rank, (q, consistent_velocity(m.tree, np.array(q), np.array(v)).tolist(), tau)


def reference(m: Mechanism, q: Any, v: Any, tau: Any) -> Any:
    """M a = Q + C^T lam with C a = -bias, with all loop equations, redundant ones included."""
    M = np.array(crba.mass_matrix(m.tree, q), dtype=float)
    Q = np.array(tau) - np.array(rnea.inverse_dynamics(m.tree, q, v, [0.0] * m.nv), dtype=float)
    found = numbers(m.tree, np.array(q), np.array(v))
    root = np.linalg.inv(np.linalg.cholesky(M))
    free = root @ Q
    D = found.C @ root.T
    return root.T @ (free + np.linalg.lstsq(D, -found.bias - D @ free, rcond=1e-9)[0])


def by_layer(by: Method, name: str, m: Mechanism, rank: Any, *given: Any) -> Any:
    whole = name in ("reactions", "multipliers") or not by.regrouped
    tree = m.tree if whole else regrouped(m.tree)
    return np.array(LoopLayer(by, rank).function(name)(tree, *given), dtype=float)


def all_agree(m: Mechanism, rank: Any, now: State) -> None:
    (q, v, _), a = now, reference(m, *now)
    for by in applicable_methods("forward_dynamics", m.tree):
        close(by_layer(by, "forward_dynamics", m, rank, *now), a, TOLERANCE)
    forces = [by_layer(by, "loop_forces", m, rank, *now) for by in applicable_methods("loop_forces", m.tree)]
    for f in forces:
        close(f, forces[0], TOLERANCE)
    close(works(m, q, v, forces[0]), 0.0, TOLERANCE * max(1.0, np.abs(forces[0]).max()))
    passed = [by_layer(by, "reactions", m, rank, *now) for by in applicable_methods("reactions", m.tree)]
    for r in passed:
        close(missing(m, q, v, a, forces[0], r), np.zeros((len(m.bodies), 6)), TOLERANCE * max(1.0, np.abs(r).max()))
        close(r, passed[0], TOLERANCE)


def works(m: Mechanism, q: Any, v: Any, forces: Any) -> float:
    """Power of the loops, which must be zero; without gears, which do not act between frames."""
    total = 0.0
    for loop, f in zip(m.loops, forces):
        if not loop.joints:
            Va, Vb = (np.array(kinematics.velocity(m.tree, q, v, x), dtype=float) for x in (loop.a, loop.b))
            lever = pose(m, q, loop.b)[:3, 3] - pose(m, q, loop.a)[:3, 3]
            total += f[:3] @ (Vb[:3] - Va[:3] - np.cross(Va[3:], lever)) + f[3:] @ (Vb[3:] - Va[3:])
    return total


def missing(m: Mechanism, q: Any, v: Any, a: Any, forces: Any, reactions: Any) -> Any:
    """Rate of each body's momentum minus all forces on it: reactions, loops, springs and weight.

    In world axes about the world's origin.
    """
    tree = m.tree
    left = momentum_rates(tree, q, v, a)
    index = {b.name: i for i, b in enumerate(m.bodies)}

    def act(body: str, point: Any, f: Any) -> None:
        if body in index:
            left[index[body]] -= [*f[:3], *(f[3:] + np.cross(point, f[:3]))]

    for b, j, f in zip(m.bodies, m.joints, reactions):
        at = pose(m, q, b.name)
        act(b.name, at[:3, 3], f)
        act(j.parent, at[:3, 3], -f)
        weight = b.mass * np.array(m.gravity)
        act(b.name, (at @ [*b.com, 1.0])[:3], np.array([*weight, 0.0, 0.0, 0.0]))
    for loop, f in zip(m.loops, forces):
        if not loop.joints:
            at = pose(m, q, loop.b)[:3, 3]
            act(m.frames[loop.b].body, at, f)
            act(m.frames[loop.a].body, at, -f)
    for s in m.springs:
        A, B = (pose(m, q, f)[:3, 3] for f in (s.a, s.b))
        rates = [np.array(kinematics.velocity(tree, q, v, f), dtype=float)[:3] for f in (s.a, s.b)]
        L = np.linalg.norm(B - A)
        n = (B - A) / L
        pull = n * (s.stiffness * (L - s.length) + s.damping * n @ (rates[1] - rates[0]))
        act(m.frames[s.a].body, A, np.array([*pull, 0.0, 0.0, 0.0]))
        act(m.frames[s.b].body, B, np.array([*-pull, 0.0, 0.0, 0.0]))
    return left


@pytest.mark.parametrize("name", DRIVES)
def test_all_methods_agree_on_the_zoo(name: str) -> None:
    all_agree(*moving(name))


@at_random
@few(40)
@given(everything, seeds)
def test_all_methods_agree_on_random_loops(case: Closed, seed: int) -> None:
    all_agree(*in_motion(case, seed))


@pytest.mark.parametrize("name", DRIVES)
def test_inverse_dynamics_of_drives_gives_the_motion(name: str) -> None:
    m, _, (q, v, tau) = moving(name)
    a = reference(m, q, v, tau)
    u = bc.kernel(m, "inverse_dynamics", actuated=DRIVES[name])(q, v, a)
    driven = [k for k, column in enumerate(m.columns[1]) if column in DRIVES[name]]
    assert not np.delete(u, driven).any()
    close(reference(m, q, v, u), a, TOLERANCE)
    # the two force vectors have equal power on the motion; workless differences have no effect
    close(np.dot(u, v), np.dot(tau, v), TOLERANCE * max(1.0, np.abs(u).max()))


@pytest.mark.parametrize("name", ["four_bar", "bricard", "double_wishbone", "andrews"])
def test_kernels_are_the_layer(name: str) -> None:
    m, rank, (q, v, tau) = moving(name)
    by = METHODS["crba"]
    close(m.forward_dynamics(q, v, tau), reference(m, q, v, tau), TOLERANCE)
    close(m.loop_forces(q, v, tau), by_layer(by, "loop_forces", m, rank, q, v, tau), TOLERANCE)
    close(m.reactions(q, v, tau), by_layer(METHODS["reactions"], "reactions", m, rank, q, v, tau), TOLERANCE)
    found = numbers(m.tree, np.array(q), np.array(v))
    close(m.closure(q), found.value)
    close(m.closure_jacobian(q), found.C)
    close(m.closure_bias(q, v), found.bias)


def test_wrenches_act_through_loops() -> None:
    """A wrench on a frame equals the force J^T w on the coordinates, with or without loops."""
    m, _, (q, v, tau) = moving("four_bar")
    w = [1.0, -2.0, 0.5, 0.3, 0.2, -0.7]
    felt = np.array(kinematics.jacobian(m.tree, q, "coupler"), dtype=float).T @ w
    a = m.forward_dynamics(q, v, tau, wrenches={"coupler": w})
    close(a, reference(m, q, v, tau + felt), TOLERANCE)
    close(m.loop_forces(q, v, tau, wrenches={"coupler": w}), m.loop_forces(q, v, tau + felt), TOLERANCE)
    u = m.inverse_dynamics(q, v, a, actuated=["A"], wrenches={"coupler": w})
    close(reference(m, q, v, u + felt), a, TOLERANCE)


def test_order_of_loop_ends_does_not_matter() -> None:
    m, _, (q, v, tau) = moving("delta")
    turned = replace(m, loops=tuple(replace(x, a=x.b, b=x.a) for x in m.loops))
    close(bc.kernel(turned, "forward_dynamics", "crba")(q, v, tau), reference(m, q, v, tau), TOLERANCE)


@pytest.mark.parametrize(
    ("actuated", "says"),
    [
        ([], "actuated=[...] with 1 freedom in total. Its joints are: A, B, D"),
        (["A", "B"], "A, B drive 2 coordinates, but the mechanism has 1 freedom: it would be over-actuated"),
        (["X"], 'There is no joint "X"'),
        (["C"], '"C" closes a loop and has no coordinate. Actuate another joint'),
        (["A", "A"], "twice"),
        ("A", 'expected a list of joints, as in actuated=["crank"]'),
    ],
)
def test_drives_that_do_not_fit(actuated: Any, says: str) -> None:
    m, _, (q, v, a) = moving("four_bar")
    with pytest.raises(InputError) as error:
        m.inverse_dynamics(q, v, a, actuated=actuated)
    assert says in str(error.value)


def test_insufficient_drives_raise() -> None:
    m, _, (q, v, a) = moving("slider_fourbar")
    with pytest.raises(InputError, match=r"T1 drive 1 coordinates, but the mechanism has 2 freedoms.*under-actuated"):
        m.inverse_dynamics(q, v, a, actuated=["T1"])
    with pytest.raises(InputError, match=r"R2, R3 cannot drive it: with these locked T1 can still move"):
        m.inverse_dynamics(q, v, a, actuated=["R2", "R3"])


def test_quantities_of_loops_need_loops() -> None:
    m = zoo.pendulum()
    with pytest.raises(InputError, match=r'loop_forces needs loops, but mechanism "pendulum" has none'):
        m.loop_forces  # noqa: B018
    with pytest.raises(
        InputError, match=r'no method computes multipliers of mechanism "four_bar": absolute covers trees, m'
    ):
        bc.zoo.four_bar().multipliers([0.0] * 3, [0.0] * 3, [0.0] * 3)
    with pytest.raises(InputError, match="closure needs loops"):
        bc.kernel(m, "closure", "closure")
    with pytest.raises(InputError, match='"pendulum" has no loops'):
        bc.kernel(m, "inverse_dynamics", actuated=["swing"])


def test_every_quantity_respects_the_loops() -> None:
    m = zoo.four_bar()
    assert "Mr(q) a_i = fr(q, v, tau)" in bc.equations(m, "python")
    with pytest.raises(InputError, match="has loops, and this controller drives every joint"):
        bc.control.InverseDynamics(m, lambda t: ([t] * 3, [1.0] * 3, [0.0] * 3))
