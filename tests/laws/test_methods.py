"""Every method in the table equals rnea, crba and aba on random trees of every kind that it claims to cover.

The methods run on plain floats. Methods that use regrouped bodies get them here, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, QUANTITIES, Method, aba, applicable_methods, candidates, crba, kinematics, rnea
from bellcrank.dynamics.historical import absolute_coordinates
from bellcrank.dynamics.historical.cut_joints import constraints, drive_forces, total_joint_forces, world_reactions
from bellcrank.dynamics.historical.free_bodies import place_bodies
from bellcrank.dynamics.method_table import estimate
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.cpu.costs import Costs
from bellcrank.model import Mechanism, Tree, regrouped
from bellcrank.spatial.vector import IDENTITY, ZERO
from trees import close, few, momentum_rates, random_tree, state, trees

TOLERANCE = 1e-10
seeds = st.integers(0, 1000)
everything = st.one_of(
    trees(armature=st.booleans(), passive=st.booleans()),
    trees(base="floating", armature=st.booleans(), passive=st.booleans()),
    trees(kinds=("revolute", "prismatic"), max_bodies=8),
    trees(kinds=("revolute", "prismatic", "helical", "spherical"), armature=st.booleans(), coupled=True),
)


def forward_dynamics(tree: Tree, *x: Any) -> Any:
    return (crba if tree.coupled else aba).forward_dynamics(tree, *x)


def coriolis(tree: Tree, q: Any, v: Any) -> Any:
    return np.subtract(rnea.bias(tree, q, v), rnea.gravity_torque(tree, q))


def factors(tree: Tree, q: Any) -> Any:
    """U D U^T = M by plain elimination from the last row up: D on the diagonal, U above it."""
    M = np.array(crba.mass_matrix(tree, q), dtype=float)
    n = len(M)
    out = np.zeros((n, n))
    for k in reversed(range(n)):
        out[k, k] = M[k, k]
        out[:k, k] = M[:k, k] / M[k, k]
        M[:k, :k] -= np.outer(out[:k, k], M[:k, k])
    return out


def origin(tree: Tree, q: Any, frame: str) -> Any:
    return np.array(kinematics.pose(tree, q, frame), dtype=float)[:3, 3]


def reactions(tree: Tree, q: Any, v: Any, tau: Any, frames: Any = (), wrench: Any = ()) -> Any:
    """Joint reactions from the rate of every body's momentum about the world's origin, by the graph's own derivative.

    A joint transmits that rate, minus gravity and wrenches, for its body and for all bodies that it carries.
    """
    a = forward_dynamics(tree, q, v, tau, frames, wrench)
    R_WG, _ = tree.ground.pose(IDENTITY, ZERO)
    g = R_WG @ tree.gravity
    carried = momentum_rates(tree, q, v, a)
    for i, (link, (R, p)) in enumerate(zip(tree.links, kinematics.poses(tree, q))):
        h = p * link.inertia.m + R @ link.inertia.h
        carried[i] -= np.array([*(g * link.inertia.m), *h.cross(g)], dtype=float)
    for name, w in zip(frames, wrench):
        carried[tree.frames[name][0]] -= [*w[:3], *(np.cross(origin(tree, q, name), w[:3]) + w[3:])]
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            carried[link.parent] += carried[i]
    for i, link in enumerate(tree.links):  # about the body's own frame instead of the world's origin
        carried[i, 3:] -= np.cross(origin(tree, q, link.name), carried[i, :3])
    return carried


REFERENCE = {
    "forward_dynamics": forward_dynamics,
    "inverse_dynamics": rnea.inverse_dynamics,
    "mass_matrix": crba.mass_matrix,
    "bias": rnea.bias,
    "gravity_torque": rnea.gravity_torque,
    "coriolis_torque": coriolis,
    "inverse_mass_matrix": lambda tree, q: np.linalg.inv(np.array(crba.mass_matrix(tree, q), dtype=float)),
    "mass_matrix_factors": factors,
    "reactions": reactions,
}
PAIRS = [(m, name) for m in METHODS.values() for name in m.solves if name in REFERENCE]
PUSHED = [(m, name) for m, name in PAIRS if name in ("forward_dynamics", "reactions")]


def compared(by: Method, name: str, m: Mechanism, *inputs: Any) -> None:
    assume(by.applies(m.tree, name))
    tree = regrouped(m.tree) if by.regrouped and QUANTITIES[name].regrouped else m.tree
    close(by.function(name)(tree, *inputs), REFERENCE[name](m.tree, *inputs), TOLERANCE)


@pytest.mark.parametrize(("by", "name"), PAIRS, ids=[f"{m.name}-{name}" for m, name in PAIRS])
@few(40)
@given(m=everything, seed=seeds)
def test_agrees_with_the_reference(by: Method, name: str, m: Mechanism, seed: int) -> None:
    q, v, a = state(m, seed)
    compared(by, name, m, *[{"q": q, "v": v}.get(x, a) for x in QUANTITIES[name].inputs])


@pytest.mark.parametrize(("by", "name"), PUSHED, ids=[f"{m.name}-{name}" for m, name in PUSHED])
@few(15)
@given(m=everything, seed=seeds)
def test_wrenches_have_equal_effect_in_all_methods(by: Method, name: str, m: Mechanism, seed: int) -> None:
    wrench = np.random.default_rng(seed).normal(size=(2, 6)).tolist()
    compared(by, name, m, *state(m, seed), [f"f{len(m.bodies) - 1}", "f0"], wrench)


# Approximate costs of a processor with wide vectors, independent of the machine.
WEIGHTS = Costs(0.015, 0.26, 0.88, 10.0, 0.04, 0.09, 0.1, 2.2)


@few(20)
@given(m=everything, seed=seeds)
def test_multipliers_are_the_joint_reactions(m: Mechanism, seed: int) -> None:
    assume(METHODS["absolute"].applies(m.tree, "multipliers"))
    q, v, tau = state(m, seed)
    lam = absolute_coordinates.multipliers(m.tree, q, v, tau)
    bodies = place_bodies(m.tree, q, v)
    D, W = constraints(m.tree, q, bodies)
    rotors = sum(len(link.v_index) for link in m.tree.links if link.armature)
    assert len(lam) == len(D) == 6 * len(m.bodies) - m.nv + rotors
    passes = total_joint_forces(m.tree, D, lam, drive_forces(m.tree, q, v, tau, W))
    close(world_reactions(m.tree, bodies, passes), reactions(m.tree, q, v, tau), TOLERANCE)


@few(25)
@given(m=everything, name=st.sampled_from(["forward_dynamics", "mass_matrix", "bias", "inverse_mass_matrix"]))
@example(random_tree(0, ["revolute", "prismatic", "prismatic"], [], rooted=False), "mass_matrix")
def test_auto_misses_nothing_worth_while(m: Mechanism, name: str) -> None:
    """The methods that auto traces contain one within 10 % of the cheapest of all, by predicted cost."""
    request = Request(name)
    every = {
        by.name: WEIGHTS.predicted(graphs.trace_quantity(m, request, by)) for by in applicable_methods(name, m.tree)
    }
    tried = [by.name for by in candidates(name, m.tree)]
    assert min(every[by] for by in tried) <= 1.1 * min(every.values())


@pytest.mark.parametrize("bodies", [5, 10])
def test_estimated_work_of_derivatives_is_near_the_count(bodies: int) -> None:
    """`auto` compares these estimates, also of methods whose derivatives are tangents of their graphs."""
    m = bc.zoo.chain(bodies, twist="general")
    for name in ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"):
        for by in applicable_methods(name, m.tree):
            counted = graphs.graph(m, name, by.name).count().arithmetic
            assert 0.5 < estimate(by.name, name, m.tree) / counted < 2.0, (name, by.name)
