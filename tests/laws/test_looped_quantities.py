"""Every quantity of mechanisms with closed loops, by every method that covers trees, is correct.

The dynamics themselves (forward and inverse, loop forces, reactions) are in test_looped_dynamics.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_looped_dynamics import DRIVES, everything, in_motion, moving, reference

from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, QUANTITIES, Method, applicable_methods, crba, rnea
from bellcrank.dynamics.historical.cut_joints import constraints, drive_forces, total_joint_forces, world_reactions
from bellcrank.dynamics.historical.free_bodies import place_bodies
from bellcrank.dynamics.loops.constrained_dynamics import lagrange
from bellcrank.dynamics.loops.loop_layer import LoopLayer, joint_forces
from bellcrank.dynamics.quantities import Request
from bellcrank.model import Mechanism, regrouped
from loops import Closed, at_random, looped
from trees import close, few

TOLERANCE = 1e-9
ABOUT_LOOPS = ("closure", "closure_jacobian", "closure_bias", "loop_forces")
seeds = st.integers(0, 1000)


def mass(m: Mechanism, q: Any) -> Any:
    return np.array(crba.mass_matrix(replace(m.tree, loops=()), q), dtype=float)


def force(name: str, m: Mechanism, *given: Any) -> Any:
    return np.array(getattr(rnea, name)(replace(m.tree, loops=()), *given), dtype=float)


# Tree terms of M a + bias = tau + C^T lam, by rnea and crba, which do not include loops.
TERMS = {
    "mass_matrix": mass,
    "inverse_mass_matrix": lambda m, q: np.linalg.inv(mass(m, q)),
    "mass_matrix_factors": mass,
    "bias": lambda m, *x: force("bias", m, *x),
    "gravity_torque": lambda m, *x: force("gravity_torque", m, *x),
    "coriolis_torque": lambda m, q, v: force("bias", m, q, v) - force("gravity_torque", m, q),
}
PAIRS = [(m, name) for m in METHODS.values() for name in m.solves if name in TERMS]


def multiplied(found: Any) -> Any:
    """Return U D U^T from the result of mass_matrix_factors."""
    D = np.diag(np.diag(found))
    U = np.triu(found, 1) + np.eye(len(found))
    return U @ D @ U.T


@few(100)
@at_random
@given(everything)
def test_every_method_that_claims_a_tree_claims_its_loops(case: Closed) -> None:
    tree = case[0].tree
    assume(tree.loops)
    for name in QUANTITIES:
        if name not in ABOUT_LOOPS and not QUANTITIES[name].differentiates:  # the recursion applies to trees only
            claims = [m.name for m in applicable_methods(name, replace(tree, loops=()))]
            assert [m.name for m in applicable_methods(name, tree)] == claims
    assert [m.name for m in applicable_methods("loop_forces", tree)] == [
        m.name for m in applicable_methods("forward_dynamics", tree)
    ]


@pytest.mark.parametrize(("by", "name"), PAIRS, ids=[f"{m.name}-{name}" for m, name in PAIRS])
@few(15)
@at_random
@given(case=everything, seed=seeds)
def test_terms_are_those_of_the_tree(by: Method, name: str, case: Closed, seed: int) -> None:
    m, q = case
    assume(m.loops and by.applies(m.tree, name))
    v = np.random.default_rng(seed).normal(size=m.nv).tolist()
    given_ = [{"q": q, "v": v}[x] for x in QUANTITIES[name].inputs]
    tree = regrouped(m.tree) if by.regrouped and QUANTITIES[name].regrouped else m.tree
    found = np.array(LoopLayer(by, ()).function(name)(tree, *given_), dtype=float)
    close(multiplied(found) if name == "mass_matrix_factors" else found, TERMS[name](m, *given_), TOLERANCE)


def bears(m: Mechanism, rank: Any, now: Any, **pushed: Any) -> None:
    """Multipliers and axial forces together equal the reactions, also with wrenches on bodies."""
    q, v, tau = now
    by = METHODS["absolute"]
    lam = np.array(LoopLayer(by, rank).function("multipliers")(m.tree, *now, **pushed), dtype=float)
    tree = replace(m.tree, loops=(), springs=())
    bodies = place_bodies(tree, q, v)
    D, W = constraints(tree, q, bodies)
    assert len(lam) == len(D)
    closing = lagrange(m.tree, by.function("forward_dynamics"), rank, q, v, tau, **pushed)[1].values
    driven = [a + b for a, b in zip(tau, joint_forces(m.tree, rank, closing, q))]
    passes = total_joint_forces(tree, D, lam.tolist(), drive_forces(tree, q, v, driven, W))
    borne = np.array(world_reactions(tree, bodies, passes), dtype=float)
    by_bodies = LoopLayer(METHODS["reactions"], rank).function("reactions")
    expected = np.array(by_bodies(m.tree, *now, **pushed), dtype=float)
    close(borne, expected, TOLERANCE * max(1.0, np.abs(expected).max()))


@few(30)
@at_random
@given(everything, seeds)
def test_multipliers_are_the_joint_reactions(case: Closed, seed: int) -> None:
    assume(METHODS["absolute"].applies(case[0].tree, "multipliers"))
    bears(*in_motion(case, seed))


@few(10)
@at_random
@given(looped(max_bodies=3, most=2, springs=1), seeds)
def test_wrenches_go_through_to_the_multipliers(case: Closed, seed: int) -> None:
    """A wrench on a body affects the multipliers as it does the reactions, which have an independent test."""
    assume(METHODS["absolute"].applies(case[0].tree, "multipliers"))
    m, rank, now = in_motion(case, seed)
    w = [np.random.default_rng(seed).normal(size=6).tolist()]
    ends = [m.frames[end].body for loop in m.loops if loop.b for end in (loop.b, loop.a)]
    frames = [next((body for body in ends if body != "ground"), m.bodies[-1].name)]  # a body that a loop constrains
    bears(m, rank, now, frames=frames, wrench=w)


MASSIVE = ("stewart", "delta", "double_wishbone", "slider_fourbar", "andrews")  # without infinitely thin rods


@pytest.mark.parametrize("name", MASSIVE)
def test_multipliers_on_the_zoo(name: str) -> None:
    bears(*moving(name))


@pytest.mark.parametrize("name", ["four_bar", "double_wishbone", "slider_fourbar"])
def test_every_quantity_by_every_method_has_a_graph(name: str) -> None:
    """Through the public interface, all methods of each quantity agree."""
    m, _, (q, v, tau) = moving(name)
    a = reference(m, q, v, tau).tolist()
    values = {"q": q, "v": v, "tau": tau, "a": a, "dv": v, "q0": q, "q1": q}
    seen = 0
    for row in QUANTITIES.values():
        first = None
        for by in applicable_methods(row.name, m.tree):
            request = Request(
                row.name,
                by.name,
                frame=m.bodies[-1].name if row.option == "frame" else "",
                actuated=tuple(DRIVES[name]) if row.driven else (),
            )
            g = graphs.choose_graph(m, request)[1]
            found = g.evaluate(**{key: values[key] for key in row.inputs})[row.name]
            assert np.isfinite(found).all()
            first = found if first is None else first
            close(found, first, TOLERANCE * max(1.0, np.abs(first).max(initial=0.0)))
            seen += 1
    assert seen > 2 * len(QUANTITIES)
    assert zoo.load(name).loops
