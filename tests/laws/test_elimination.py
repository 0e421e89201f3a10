"""Linear systems as rolled loops (graph/linear_solve.py), and implicit steps with them, equal straight-line code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.actuators import DCMotor
from bellcrank.errors import InputError
from bellcrank.graph import Graph, loop_graph, trace
from bellcrank.graph.linear_solve import LinearSystem, LUFactors, Substitution
from bellcrank.model import Mechanism
from bellcrank.sim.program import tree_dynamics
from bellcrank.sim.run.simulator import Simulator
from loop_statements import evaluated
from targets.test_c99 import compiled, needs_cc
from trees import close, few, random_tree, trees


def matrix_map(n: int) -> Graph:
    """Return the map (A, x) -> A x."""

    def mapped(A: Any, x: Any) -> dict[str, Any]:
        return {"b": [sum((a * z for a, z in zip(row[1:], x[1:], strict=True)), row[0] * x[0]) for row in A]}

    return trace("map", mapped, {"A": (n, n), "x": (n,)})


def solving(n: int) -> Graph:
    factors, solution = LUFactors("factors", matrix_map(n), "x"), Substitution("solution", n)

    def solved(A: Any, b: Any) -> dict[str, Any]:
        return {"x": solution.call(**factors.call(A=A), b=b)["x"]}

    return trace("solved", solved, {"A": (n, n), "b": (n,)})


def system(n: int, seed: int, batch: tuple[int, ...] = ()) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*batch, n, n)) + 3.0 * n * np.eye(n), rng.normal(size=(*batch, n))


@few(10)
@given(st.integers(1, 19), st.integers(0, 99))
def test_elimination_solves_linear_systems(n: int, seed: int) -> None:
    """The solution equals numpy's and the straight-line one; the number of operations equals the count."""
    A, b = system(n, seed, (3,))
    graph = solving(n)
    found = graph.evaluate(A=A, b=b)["x"]
    close(found, np.linalg.solve(A, b[..., None])[..., 0], 1e-12)
    for g in graph.calls:
        if isinstance(g, LinearSystem):
            values = {"A": A} if isinstance(g, LUFactors) else {"rows": A, "reciprocal": b, "b": b}
            for name, array in g.evaluate(**values).items():
                close(array, g.written.evaluate(**values)[name], 1e-9)
    factors, solution = (next(g for g in graph.calls if isinstance(g, kind)) for kind in (LUFactors, Substitution))
    own = {k: c - n * factors.linear_map.count()[k] for k, c in factors.count().by_kind.items()}
    assert own == dict(factors.written.count().by_kind)
    assert solution.count().by_kind == solution.written.count().by_kind
    assert solution.work() == solution.written.work()
    assert solution.span() == solution.written.span()
    assert factors.work() - n * factors.linear_map.work() == factors.written.work()
    assert factors.span() - factors.linear_map.span() == factors.written.span()


@pytest.mark.parametrize("n", [1, 2, 9, 30])
def test_machine_code_agrees(n: int) -> None:
    """For one state and in lanes, and for the derivatives of the solution."""
    k = bc.compile(solving(n))
    A, b = system(n, n, (37,))
    want = np.linalg.solve(A, b[..., None])[..., 0]
    close(k(A[0], b[0]), want[0], 1e-12)
    close(k(A, b), want, 1e-12)


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_c_agrees(tmp_path: Path, dtype: str) -> None:
    A, b = system(12, 1)
    found = compiled(solving(12), tmp_path, dtype)(A=A, b=b)
    close(found["x"], np.linalg.solve(A, b), 1e-12 if dtype == "float64" else 1e-5)


def test_derivatives_are_those_of_the_solution() -> None:
    A, b = system(5, 2)
    graph, rng = solving(5), np.random.default_rng(0)
    dA, db, w = rng.normal(size=(5, 5)), rng.normal(size=5), rng.normal(size=5)
    x, inverse = np.linalg.solve(A, b), np.linalg.inv(A)
    close(graph.jvp().evaluate(A=A, b=b, d_A=dA, d_b=db)["d_x"], inverse @ (db - dA @ x), 1e-12)
    back = graph.vjp().evaluate(A=A, b=b, w_x=w)
    close(back["g_b"], inverse.T @ w, 1e-12)
    close(back["g_A"], -np.outer(inverse.T @ w, x), 1e-12)


def test_oversized_system_raises_when_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_graph, "MAX_WRITTEN_OPERATIONS", 100)
    with pytest.raises(InputError, match=r"has 9 equations.*one by one"):
        _ = LUFactors("factors", matrix_map(9), "x").nodes


@pytest.mark.parametrize("n", [1, 2, 9])
def test_loops_do_the_same(n: int) -> None:
    """The statements that targets print, executed one by one, give the same numbers."""
    A, b = system(n, 3)
    factors, solution = solving(n).calls[-2:]
    found = evaluated(factors, factors.loops(), A=A)
    for name, array in factors.written.evaluate(A=A).items():
        close(found[name], array, 1e-14)
    given = {**found, "b": b}
    close(evaluated(solution, solution.loops(), **given)["x"], np.linalg.solve(A, b), 1e-12)


# -- implicit steps


def stepped(s: Any, integrator: str, **more: Any) -> Any:
    m = s.mechanism if isinstance(s, bc.System) else s
    q, v, _ = m.random(4)
    return bc.simulate(s, 2e-3, q, v, step=1e-3, integrator=integrator, **more)


def test_steps_of_bodies_that_bend(monkeypatch: pytest.MonkeyPatch) -> None:
    b = bc.Builder("bent")
    b.beam("arm", length=2.0, section=bc.Section.box(0.1, 0.1, 0.004), material=bc.Material.steel(), modes=2)
    b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    m, runs = b.build(), list[Any]()
    for many in (10**9, 1):
        monkeypatch.setattr(tree_dynamics, "OPERATOR_FROM_STATES", many)
        runs.append(stepped(m, "rodas4"))
    close(runs[1].q, runs[0].q, 1e-10)


@few(3)
@given(trees(max_bodies=3), st.sampled_from(["rodas4", "midpoint"]))
@example(random_tree(0, ["prismatic", "floating"], []), "rodas4")  # an element of x stays constant in it
def test_steps_of_any_tree_are_those_written_out(m: Mechanism, integrator: str) -> None:
    """Trees with any joints, also quaternions, in single runs and in lanes."""
    want = stepped(m, integrator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_dynamics, "OPERATOR_FROM_STATES", 1)
        found = stepped(m, integrator)
        side = bc.simulate(m, 2e-3, [m.random(4)[0]] * 5, [m.random(4)[1]] * 5, step=1e-3, integrator=integrator)
    close(found.q, want.q, 1e-10)
    close(found.v, want.v, 1e-10)
    close(side.q[3], want.q, 1e-10)


def driven() -> bc.System:
    """A system with additional states, inputs and a free parameter."""
    m = bc.zoo.chain(4, twist="general").free("link2.mass")
    motors = [DCMotor(f"joint{i}", 1.0, 0.5, 0.05, 0.01) for i in (1, 3)]
    return bc.system(m, motors, lambda t, q, v, x, u: [u["a"] * t - q[0], -v[2]], inputs={"a": 3.0})


@pytest.mark.parametrize("integrator", ["rodas4", "midpoint"])
def test_further_states_inputs_and_free_numbers(monkeypatch: pytest.MonkeyPatch, integrator: str) -> None:
    runs = []
    for many in (10**9, 1):
        monkeypatch.setattr(tree_dynamics, "OPERATOR_FROM_STATES", many)
        runs.append(
            stepped(driven(), integrator, parameters={"link2.mass": 1.7}, sensitivities=["link2.mass", "joint1.q"])
        )
    close(runs[1].q, runs[0].q, 1e-10)
    close(runs[1].x, runs[0].x, 1e-10)
    for of in ("joint2.q", "joint4.v"):
        for wrt in ("link2.mass", "joint1.q"):
            close(runs[1][f"d({of})/d({wrt})"], runs[0][f"d({of})/d({wrt})"], 1e-9)


def test_gradient_through_an_elimination(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for many in (10**9, 1):
        monkeypatch.setattr(tree_dynamics, "OPERATOR_FROM_STATES", many)
        m = bc.zoo.chain(2).free("link2.mass")
        found.append(bc.gradient(m, 4e-3, [0.3, 0.2], step=1e-3, final="joint1.v", integrator="midpoint"))
    close(found[1].parameters["link2.mass"], found[0].parameters["link2.mass"], 1e-10)
    close(found[1].q0, found[0].q0, 1e-10)


def test_a_long_chain_steps_as_exactly_as_by_an_explicit_method() -> None:
    m = bc.zoo.chain(70)
    q = 0.1 * m.random(1)[0]
    s = Simulator(m, "rodas4")
    run = s.run(0.02, q, step=1e-3)
    fine = bc.simulate(m, 0.02, q, integrator="dopri5", tolerance=1e-11)
    close(run.q[-1], fine.q[-1], 1e-7)
    tick = s.program(None).tick
    assert sum(isinstance(g, LinearSystem) for g in tick.calls) == 2


@pytest.mark.parametrize(("integrator", "share"), [("rodas4", 0.25), ("midpoint", 0.5)])
def test_zero_pivot_ends_the_run_with_a_message(monkeypatch: pytest.MonkeyPatch, integrator: str, share: float) -> None:
    """1 - g df/dv is zero if a velocity feeds back on itself at the rate 1/g; with less feedback the run succeeds."""
    monkeypatch.setattr(tree_dynamics, "OPERATOR_FROM_STATES", 1)
    b, h = bc.Builder("slides"), 2.0**-6
    for i in range(2):
        b.body(f"l{i}", mass=1.0, inertia=(1, 1, 1))
        b.joint(f"j{i}", "prismatic", "ground", f"l{i}", axis=(1, 0, 0))
    m = b.build()
    runs = []
    for part in (1.0, 0.75):
        rate = part / (share * h)
        s = bc.system(m, everywhere=lambda place, velocity, mass, rate=rate: [rate * mass * velocity[0], 0.0, 0.0])
        runs.append(bc.simulate(s, h, [0.0, 0.0], [1.0, 2.0], step=h, integrator=integrator))
    assert "not finite" in str(runs[0])
    assert "j1.v" in str(runs[0])
    assert "a stiff integrator" not in str(runs[0])
    assert len(runs[0].t) == 1
    assert np.isfinite(runs[1].v).all()
    close(runs[1].v[-1][1], 2.0 * runs[1].v[-1][0], 1e-12)
