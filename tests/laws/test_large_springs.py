"""Springs between bodies of large mechanisms, in rolled loops over bodies and springs, equal straight-line code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs, independent_loops, policy
from bellcrank.dynamics import METHODS, shape_of
from bellcrank.dynamics.quantities import QUANTITIES, Request
from bellcrank.graph import Graph
from bellcrank.model import Mechanism, Spring
from trees import close, few, trees

BY = {"forward_dynamics": "aba", "inverse_dynamics": "rnea"}


def sprung(m: Mechanism, seed: int, free: bool) -> Mechanism:
    """Springs between any frames and the ground, some of them without length or damping, and some identical."""
    rng = np.random.default_rng(seed)
    frames = [f for f in m.frames if f.startswith("f")]
    found = []
    for k in range(int(rng.integers(1, 5))):
        a, b = rng.choice([*frames, "ground"], size=2, replace=False) if len(frames) > 1 else (frames[0], "ground")
        stiffness: Any = 3.0 if k % 2 else float(rng.uniform(1.0, 9.0))
        law = (float(rng.choice([0.0, 0.3, 1.0])), float(rng.choice([0.0, 0.7])))
        stiffness = bc.parameter(f"k{k}", stiffness) if free and k < 2 else stiffness  # link classes use this name, too
        found.append(Spring(f"s{k}", str(a), str(b), stiffness, *law))
    return replace(m, springs=tuple(found))


def in_loops(m: Mechanism, quantity: str, frames: tuple[str, ...] = ()) -> Graph:
    """Use rolled loops for a mechanism of any size."""
    names = [*QUANTITIES[quantity].inputs, *(["wrench"] if frames else [])]
    inputs = {x: shape_of(x, m.tree, frames) for x in names}
    return independent_loops.graph_with_springs(m.name, m.tree, BY[quantity], quantity, inputs, frames, m.parameters)


def state(m: Mechanism, g: Graph) -> dict[str, Any]:
    q, v, a = m.random(3)
    known = {"q": q, "v": v, "a": a, "tau": a, "p": 1.1 * m.parameters.nominal}
    rng = np.random.default_rng(1)
    return {x: known[x] if x in known else rng.normal(size=shape) for x, shape in g.inputs.items()}


@few(8)
@given(
    trees(max_bodies=6, passive=True), st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from(sorted(BY))
)
def test_springs_agree_with_straight_line_code(
    m: Mechanism, seed: int, free: bool, pushed: bool, quantity: str
) -> None:
    m = sprung(m, seed, free)
    frames = tuple(m.frames)[-1:] if pushed else ()
    loops = in_loops(m, quantity, frames)
    straight = graphs.trace_quantity(m, Request(quantity, BY[quantity], wrenches=frames), METHODS[BY[quantity]])
    at = state(m, straight)
    close(loops.evaluate(**at)[quantity], straight.evaluate(**at)[quantity])


def comb(n: int) -> Mechanism:
    """Links in a row, a spring from each to the second next, and one from the ground to the last."""
    b = bc.Builder("comb")
    for i in range(n):
        b.body(f"l{i}", mass=1.0, com=(i + 0.5, 0.25, 0), inertia=(0.01, 0.02, 0.03))
        b.joint(f"j{i}", "revolute", f"l{i - 1}" if i else "ground", f"l{i}", point=(i, 0, 0), axis=(0, i % 2, 1))
    for i in range(n - 2):
        b.spring(
            f"s{i}", f"l{i}", f"l{i + 2}", (i, 0, 0.1), (i + 2, 0, 0.2), stiffness=3.0 + i, length=1.5, damping=0.1
        )
    b.spring("far", "ground", f"l{n - 1}", (0, 1, 1), (n, 0, 0), stiffness=2.0)
    return b.build()


def test_runs_are_those_of_straight_line_code(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for _ in range(2):
        m = comb(3)
        runs.append(bc.simulate(m, seconds=0.02, step=5e-3, q0=m.random(0)[0]))
        monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
        monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    close(runs[1].q, runs[0].q)
    close(runs[1].v, runs[0].v)


def test_along_and_against_agree() -> None:
    """Derivatives pass through the loops over springs: w (J d) = (w J) d, and J d equals the displacement."""
    m = comb(6)
    g = in_loops(m, "forward_dynamics")
    at, rng = state(m, g), np.random.default_rng(2)
    w, d = rng.normal(size=6), rng.normal(size=6)
    back = g.vjp(["q"]).evaluate(**at, w_forward_dynamics=w)["g_q"]
    along = g.jvp(["q"]).evaluate(**at, d_q=d)["d_forward_dynamics"]
    assert abs(back @ d - w @ along) <= 1e-9 * np.abs(w * along).sum()
    ahead, behind = (g.evaluate(**at | {"q": at["q"] + h * d})["forward_dynamics"] for h in (1e-6, -1e-6))
    assert np.abs((ahead - behind) / 2e-6 - along).max() <= 1e-6 * np.abs(along).max()


def test_code_does_not_grow_with_springs() -> None:
    """40 bodies and 39 springs have no more kinds of parts than 12 bodies; springs with other numbers are one kind."""
    kinds = [[len(r.cells) for r in in_loops(comb(n), "inverse_dynamics").calls] for n in (12, 40)]
    assert kinds[0] == kinds[1]
    assert kinds[0][1] == 2  # with and without length


@pytest.mark.parametrize("quantity", ["potential_energy", "forward_dynamics"])
def test_ends_on_the_ground_beside_free_numbers(quantity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ground frame is constant and not an output of a body, so its position is not read from the recursion."""
    m = comb(4).free("l1.mass")
    q, v, tau = m.random(2)
    at = [q] if quantity == "potential_energy" else [q, v, tau]
    straight = bc.kernel(m, quantity)(*at, [1.3])
    monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 1)
    monkeypatch.setattr(policy, "MAX_STRAIGHT_NUMBERS", 1)
    monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    close(bc.kernel(comb(4).free("l1.mass"), quantity)(*at, [1.3]), straight)
