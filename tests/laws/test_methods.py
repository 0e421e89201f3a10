"""Every method in the table against rnea, crba and aba, on random trees of every kind that it claims to cover.

The methods run on plain floats. A method that is given regrouped bodies in earnest is given them here too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bellcrank.methods import METHODS, QUANTITIES, Method, aba, crba, rnea
from bellcrank.model import Mechanism, Tree, regrouped
from trees import close, state, trees

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


def factors(tree: Tree, q: Any) -> Any:
    """U D U^T = M by plain elimination, from the last row up: D on the diagonal, U above it."""
    M = np.array(crba.mass_matrix(tree, q), dtype=float)
    n = len(M)
    out = np.zeros((n, n))
    for k in reversed(range(n)):
        out[k, k] = M[k, k]
        out[:k, k] = M[:k, k] / M[k, k]
        M[:k, :k] -= np.outer(out[:k, k], M[:k, k])
    return out


REFERENCE = {
    "forward_dynamics": forward_dynamics,
    "inverse_dynamics": rnea.inverse_dynamics,
    "mass_matrix": crba.mass_matrix,
    "bias": rnea.bias,
    "gravity_torque": rnea.gravity_torque,
    "inverse_mass_matrix": lambda tree, q: np.linalg.inv(np.array(crba.mass_matrix(tree, q), dtype=float)),
    "mass_matrix_factors": factors,
}
PAIRS = [(m, name) for m in METHODS.values() for name in m.solves if name in REFERENCE]


@pytest.mark.parametrize(("by", "name"), PAIRS, ids=[f"{m.name}-{name}" for m, name in PAIRS])
@settings(max_examples=40)
@given(m=everything, seed=seeds)
def test_agrees_with_the_reference(by: Method, name: str, m: Mechanism, seed: int) -> None:
    assume(by.applies(m.tree))
    q, v, a = state(m, seed)
    inputs = [{"q": q, "v": v}.get(x, a) for x in QUANTITIES[name].inputs]
    tree = regrouped(m.tree) if by.regrouped and QUANTITIES[name].regrouped else m.tree
    close(by.function(name)(tree, *inputs), REFERENCE[name](m.tree, *inputs), TOLERANCE)


PUSHED = [m for m in METHODS.values() if "forward_dynamics" in m.solves]


@pytest.mark.parametrize("by", PUSHED, ids=[m.name for m in PUSHED])
@settings(max_examples=15)
@given(m=everything, seed=seeds)
def test_wrenches_are_felt_alike(by: Method, m: Mechanism, seed: int) -> None:
    assume(by.applies(m.tree))
    q, v, tau = state(m, seed)
    frames = [f"f{len(m.bodies) - 1}", "f0"]
    wrench = np.random.default_rng(seed).normal(size=(2, 6)).tolist()
    tree = regrouped(m.tree) if by.regrouped else m.tree
    ours = by.function("forward_dynamics")(tree, q, v, tau, frames, wrench)
    close(ours, forward_dynamics(m.tree, q, v, tau, frames, wrench), TOLERANCE)
