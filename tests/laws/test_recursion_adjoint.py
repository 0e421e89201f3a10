"""Adjoints of large mechanisms are recursions that equal straight-line code and forward derivatives.

The gradient of a run passes through them, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import policy
from bellcrank.build.differentiable_function import differentiable_function
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.build.segmented_recursion import finest_segmented_graph
from bellcrank.dynamics import shape_of
from bellcrank.dynamics.quantities import QUANTITIES
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.inline import inline
from bellcrank.model import Mechanism
from trees import close, few, random_tree, trees

BY = {"forward_dynamics": "aba", "inverse_dynamics": "rnea", "gravity_torque": "rnea"}


def recursion(m: Mechanism, quantity: str, frames: tuple[str, ...] = ()) -> Graph:
    names = [*QUANTITIES[quantity].inputs, *(["wrench"] if frames else [])]
    inputs = {x: shape_of(x, m.tree, frames) for x in names}
    return rolled_graph(m.name, m.tree, BY[quantity], quantity, inputs, frames, m.parameters)


def state(m: Mechanism, g: Graph) -> dict[str, Any]:
    q, v, a = m.random(3)
    known = {"q": q, "v": v, "a": a, "tau": a, "p": m.parameters.nominal}
    rng = np.random.default_rng(1)
    return {x: known[x] if x in known else rng.normal(size=shape) for x, shape in g.inputs.items()}


def weights(g: Graph) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {f"w_{y}": rng.normal(size=shape) for y, shape in g.shapes.items()}


@few(8)
@given(trees(max_bodies=6, passive=True, armature=True), st.sampled_from(sorted(BY)))
def test_along_and_against_agree(m: Mechanism, quantity: str) -> None:
    """w (J d) = (w J) d for the forward and the reverse recursion, and w J equals the vjp of straight-line code."""
    r = recursion(m, quantity, tuple(m.frames)[:2] if quantity != "gravity_torque" else ())
    assert isinstance(r, Recursion)
    back = r.vjp()
    assert [type(g) for g in back.calls] == [Recursion]
    at, w = state(m, r), weights(r)
    found = back.evaluate(**at, **w)
    rng = np.random.default_rng(3)
    moves = {f"d_{x}": rng.normal(size=shape) for x, shape in r.inputs.items()}
    along = r.jvp().evaluate(**at, **moves)[f"d_{quantity}"]
    sums = [(w[f"w_{quantity}"] * along).sum(), sum((found[f"g_{x}"] * moves[f"d_{x}"]).sum() for x in r.inputs)]
    scale = sum(np.abs(found[f"g_{x}"] * moves[f"d_{x}"]).sum() for x in r.inputs)
    assert abs(sums[0] - sums[1]) <= 1e-9 * scale
    for key, want in r.written.vjp().evaluate(**at, **w).items():
        close(found[key], want, 1e-9)


def test_machine_code_of_branches_and_free_numbers() -> None:
    """A parent sums over its children; the gradient by a shared parameter is the sum over all its bodies."""
    m = bc.zoo.tree(15)
    m = m.free(*(f"{b.name}.mass" for b in m.bodies[:3]), f"{m.joints[4].name}.point.x")
    g = recursion(m, "forward_dynamics")
    back, at, w = g.vjp(), state(m, g), weights(g)
    want = inline(g).vjp().evaluate(**at, **w)
    found = bc.compile(back)(**at, **w)
    for key in ("g_q", "g_v", "g_tau", "g_p"):
        close(found[key], want[key], 1e-9)
        assert np.abs(want[key]).max() > 0.0


def test_adjoint_of_selected_inputs() -> None:
    m = bc.zoo.chain(7)
    r = recursion(m, "inverse_dynamics")
    at, w = state(m, r), weights(r)
    found = r.vjp(["v"]).evaluate(**at, **w)
    assert list(found) == ["g_v"]
    close(found["g_v"], r.written.vjp().evaluate(**at, **w)["g_v"], 1e-9)


def test_joins_of_segments_are_written_out() -> None:
    """A join treats its two children differently, so it has no direct reverse pass."""
    m = bc.zoo.chain(9)
    r = finest_segmented_graph(m.name, m.tree, {x: shape_of(x, m.tree) for x in ("q", "v", "tau")})
    assert r is not None
    at, w = state(m, r), weights(r)
    back = r.vjp()
    assert not back.calls
    close(back.evaluate(**at, **w)["g_q"], recursion(m, "forward_dynamics").vjp().evaluate(**at, **w)["g_q"], 1e-9)


def test_the_gradient_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient by the start and by a free parameter equals that through straight-line code."""
    found = []
    for _ in range(2):
        m = bc.zoo.chain(3, twist="general").free("link2.mass")
        found.append(
            bc.gradient(m, 0.02, m.random(0)[0], m.random(0)[1], step=5e-3, final=lambda t, q, v, x, u: q[0] * v[2])
        )
        monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
        monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    small, large = found
    close(large.q0, small.q0, 1e-9)
    close(large.v0, small.v0, 1e-9)
    close(large.parameters["link2.mass"], small.parameters["link2.mass"], 1e-9)


def test_second_derivatives() -> None:
    """Reverse mode through a tangent, for a tree with branches: a Hessian times a vector."""
    m = bc.zoo.tree(7)
    r = recursion(m, "gravity_torque")
    both = r.jvp()
    at = {**state(m, both), **weights(both)}
    back = both.vjp(["q"])
    assert {g.opaque for g in back.calls if not g.name.endswith("vjp")} == {True}
    assert isinstance(r, Recursion)
    close(back.evaluate(**at)["g_q"], r.written.jvp().vjp(["q"]).evaluate(**at)["g_q"], 1e-9)


def test_machine_code_of_second_derivatives_with_friction() -> None:
    """Friction compares velocities; the results are kept from one loop over the bodies to the next."""
    m = random_tree(3, ("revolute", "prismatic", "revolute"), passive=True)
    both = recursion(m, "forward_dynamics").jvp()
    at = {**state(m, both), **weights(both)}
    back = both.vjp()
    want = recursion(m, "forward_dynamics").written.jvp().vjp().evaluate(**at)
    found = bc.compile(back)(**at)
    for key in ("g_q", "g_v", "g_tau", "g_d_q", "g_d_v", "g_d_tau"):
        close(found[key], want[key], 1e-9)


def test_other_peoples_differentiation_gets_loops() -> None:
    """Derivatives for JAX and PyTorch of 200 bodies need no straight-line code."""
    m = bc.zoo.chain(200)
    own = differentiable_function(bc.kernel(m, "inverse_dynamics"))
    back = own.cotangent((0, 2))
    assert own.output_shapes == [(200,)]
    assert [g.opaque for g in back.graph.calls] == [True, False]
    q, v, a = m.random(0)
    g_a = back.kernel(q, v, a, np.ones(200))["out1"]
    close(g_a, m.inverse_dynamics(q, 0 * v, np.ones(200)) - m.gravity_torque(q), 1e-9)  # M is symmetric
    assert "written" not in own.graph.__dict__
