"""Directional derivatives of large mechanisms are recursions that equal straight-line code and differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs, policy
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.dynamics import shape_of
from bellcrank.dynamics.quantities import Request
from bellcrank.graph import Recursion
from bellcrank.graph.inline import inline
from bellcrank.graph.recursion_derivatives import tangent
from bellcrank.model import Mechanism
from bellcrank.sim.run.simulator import Simulator

TREES: dict[str, Callable[[], Mechanism]] = {
    "chain": lambda: bc.zoo.chain(9),
    "general": lambda: bc.zoo.chain(5, joints=["revolute", "spherical", "prismatic"], twist="general"),
    "tree": lambda: bc.zoo.tree(15),
    "random": lambda: bc.zoo.random_tree(7, 10, passive=True),
}


def recursion(m: Mechanism, method: str, quantity: str, names: tuple[str, ...]) -> Recursion:
    return rolled_graph(f"{m.name}.{quantity}", m.tree, method, quantity, {x: shape_of(x, m.tree) for x in names})


@pytest.mark.parametrize("name", TREES)
def test_tangent_equals_the_derivative_of_written_out_code(name: str) -> None:
    m = TREES[name]()
    r = recursion(m, "aba", "forward_dynamics", ("q", "v", "tau"))
    rng = np.random.default_rng(1)
    q, v, tau = m.random(3)
    at = {"q": q, "v": v, "tau": tau}
    moves = {f"d_{x}": rng.normal(size=len(value)) for x, value in at.items()}
    found = r.jvp()
    assert [g.opaque for g in found.calls] == [True, True]
    got = found.evaluate(**at, **moves)
    want = r.written.jvp().evaluate(**at, **moves)
    for key in ("forward_dynamics", "d_forward_dynamics"):
        assert np.abs(got[key] - want[key]).max() < 1e-9 * np.abs(want[key]).max()


def test_only_some_inputs_move_and_machine_code_agrees() -> None:
    m = bc.zoo.chain(9)
    r = recursion(m, "rnea", "bias", ("q", "v"))
    q, v, _ = m.random(0)
    d_v = np.linspace(-1.0, 1.0, 9)
    kernel = bc.compile(tangent(r, ["v"]))
    step = 1e-6
    ahead, behind = (r.evaluate(q=q, v=v + h * d_v)["bias"] for h in (step, -step))
    want = (ahead - behind) / (2 * step)
    assert np.abs(kernel(q, v, d_v) - want).max() < 1e-7 * np.abs(want).max()
    both = bc.compile(r.jvp(["v"]))
    assert both.graph.calls
    y, d_y = (both(q, v, d_v)[key] for key in ("bias", "d_bias"))
    assert np.abs(d_y - want).max() < 1e-7 * np.abs(want).max()
    assert np.abs(y - r.evaluate(q=q, v=v)["bias"]).max() < 1e-9 * np.abs(y).max()


def test_derivatives_of_a_large_mechanism_come_column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a state and for a batch, the result equals the straight-line derivative."""
    for name in ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"):
        small, large = bc.zoo.chain(6), bc.zoo.chain(6)
        given = small.random(3, (2,))
        want = getattr(small, name)(*given)
        with monkeypatch.context() as m:
            m.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
            m.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
            found = getattr(large, name)(*given)
            assert "by_columns" in getattr(large, name).__code__.co_name
            with pytest.raises(bc.InputError, match=r"\(q, v.*missing"):
                getattr(large, name)(given[0])
        assert found._fields == want._fields
        for a, b in zip(found, want, strict=True):
            assert a.shape == b.shape
            assert np.abs(a - b).max() < 1e-9 * np.abs(b).max()


def test_a_chain_of_a_thousand_has_one_in_seconds() -> None:
    """Each link class is differentiated once.

    The graph of the derivative has no more parts than for a hundred bodies.
    """
    parts = []
    for n in (100, 1000):
        graph = graphs.trace_quantity(bc.zoo.chain(n), Request("forward_dynamics"), bc.dynamics.METHODS["aba"])
        assert isinstance(graph, Recursion)
        parts.append(tangent(graph, ["q"]))
    assert [c.graph.size for c in parts[0].cells] == [c.graph.size for c in parts[1].cells]
    assert parts[1].count().arithmetic < 10.5 * parts[0].count().arithmetic


def test_sensitivities_of_a_run_go_through_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sensitivities to the start are equal for a straight-line rate and for one that calls a recursion.

    The jvp of the latter contains calls, too.
    """
    runs = []
    for _ in range(2):
        m = bc.zoo.chain(3, twist="general")
        runs.append(bc.simulate(m, seconds=0.02, step=5e-3, sensitivities=["joint2.q"], q0=m.random(0)[0]))
        monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
        monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    for column in ("joint3.q", "d(joint3.q)/d(joint2.q)", "d(joint2.a)/d(joint2.q)"):
        assert np.abs(runs[1][column] - runs[0][column]).max() < 1e-9 * np.abs(runs[0][column]).max()
    f = Simulator(bc.system(m), "rk4").dynamics.f
    rng = np.random.default_rng(2)
    at = {"t": 0.0, "y": rng.normal(size=6), "d_y": rng.normal(size=6)}
    found = f.jvp(["y"])
    assert all(g.opaque for g in found.calls)
    want = inline(f).jvp(["y"]).evaluate(**at)
    for key, y in found.evaluate(**at).items():
        assert np.abs(y - want[key]).max() < 1e-9 * np.abs(want[key]).max()


def test_implicit_steps_go_through_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jacobians by tangents of the recursion, column by column, give the same run as a straight-line rate."""
    runs = []
    for _ in range(2):
        m = bc.zoo.chain(2, twist="general")
        runs.append(bc.simulate(m, seconds=0.02, step=5e-3, q0=m.random(0)[0], integrator="rodas4"))
        monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
        monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    assert np.abs(runs[1].q - runs[0].q).max() < 1e-10


def test_a_tangent_has_a_tangent() -> None:
    """All inputs vary, also the rates of others: their names remain distinct."""
    m, rng = bc.zoo.chain(6), np.random.default_rng(2)
    r = tangent(recursion(m, "aba", "forward_dynamics", ("q", "v", "tau")), ["q", "v", "tau"])
    second = tangent(r, list(r.inputs))
    at = {x: rng.normal(size=6) for x in r.inputs}
    along = {x: rng.normal(size=6) for x in r.inputs}
    step = 1e-6
    ahead, behind = (
        r.evaluate(**{x: at[x] + h * along[x] for x in at})["d_forward_dynamics"] for h in (step, -step)
    )  # fmt: skip
    want = (ahead - behind) / (2 * step)
    got = second.evaluate(**dict(zip(second.inputs, [*at.values(), *along.values()], strict=True)))
    assert np.abs(got["d_d_forward_dynamics"] - want).max() < 1e-7 * np.abs(want).max()


def test_sensitivities_of_implicit_steps_of_many_bodies() -> None:
    m = bc.zoo.chain(66)
    q, given = 0.1 * m.random(1)[0], {"step": 1e-3, "integrator": "rodas4"}
    run = bc.simulate(m, 3e-3, q, sensitivities=["joint1.q"], **given)
    unit, h = np.eye(66)[0], 1e-5
    ahead, behind = (bc.simulate(m, 3e-3, q + s * h * unit, **given)["joint2.v"][-1] for s in (1, -1))
    assert abs(run["d(joint2.v)/d(joint1.q)"][-1] - (ahead - behind) / (2 * h)) < 1e-6
