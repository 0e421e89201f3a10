"""Printed equations of closed loops (nikravesh1989, 2.2 to 2.4): the text is run and agrees with the kernels.

The independent route is the layer on the tree methods, which computes accelerations with multipliers (14).
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from test_equations import compare, gathered, needs_cc, needs_sympy, run_latex, run_python

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build import graphs, paper_notation
from bellcrank.build.paper_notation import CLOSED_TERMS, TERMS, term_graph
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from loops import at_random, looped
from trees import random_tree

Array = np.ndarray[Any, Any]


def geared() -> Mechanism:
    """A gear beside a four-bar: one loop without division, and two loops that are solved apart."""
    b = bc.Builder("geared", gravity=(0, 0, -9.81))
    for name in ("sun", "planet"):
        b.body(name, mass=2.0, com=(0.1, 0, 0.05), inertia=(0.1, 0.2, 0.3))
        b.joint(f"{name}.axle", "revolute", "ground", name, point=(0, float(name == "sun"), 0), axis=(0, 0, 1))
    b.close("teeth", "gear", joints=("sun.axle", "planet.axle"), ratio=-2.5)
    return b.build()


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "four_bar": zoo.four_bar,
    "slider_fourbar": lambda: zoo.slider_fourbar(forces=True),
    "n_four_bar": lambda: zoo.n_four_bar(2),
    "bricard": zoo.bricard,
    "geared": geared,
}


def moving_state(m: Mechanism, seed: int = 0, independent: tuple[str, ...] = ()) -> dict[str, Array]:
    """Return positions and velocities that close the loops, and forces; parameters are nominal."""
    rng = np.random.default_rng(seed)
    q = m.assemble(m.assemble()[0] + 0.2 * rng.normal(size=m.nq))[0] if m.nq == m.nv else m.assemble()[0]
    E = term_graph(m, ["E"], independent).evaluate(q=q, **_nominal(m))["E"]
    state = {"q": q, "v": E @ rng.normal(size=E.shape[1]), "tau": rng.normal(size=m.nv)}
    return state | _nominal(m)


def _nominal(m: Mechanism) -> dict[str, Array]:
    return {"p": m.parameters.nominal} if m.parameters else {}


def check(m: Mechanism, terms: dict[str, Any], state: dict[str, Array], tolerance: float = 1e-9) -> None:
    """Compare every term with what it must be by the kernels of the mechanism."""
    q, v, tau, p = state["q"], state["v"], state["tau"], [state[k] for k in ("p",) if k in state]
    a = m.forward_dynamics(q, v, tau, *p)
    shape = (m.nv - m.loop_analysis.mobility, m.nv)
    C, E = (np.reshape(terms[k], s) for k, s in (("C", shape), ("E", (m.nv, m.loop_analysis.mobility))))
    every = m.closure_jacobian(q, *p)
    sizes = [np.abs(C).max(), np.abs(E).max(), np.abs(a).max(), 1.0]
    assert np.abs(terms["Psi"]).max(initial=0.0) < tolerance
    assert np.abs(every @ E).max() < tolerance * max(sizes)  # all rows, also the redundant ones
    assert np.linalg.matrix_rank(np.vstack([C, every]), 1e-7) == len(C)
    assert np.abs(C @ a + np.reshape(terms["Cv"], -1)).max() < tolerance * max(sizes)
    reduced = np.linalg.solve(np.reshape(terms["Mr"], (E.shape[1],) * 2), np.reshape(terms["fr"], -1))
    assert np.abs(E @ reduced + np.reshape(terms["Ev"], -1) - a).max() < tolerance * max(sizes)  # 18, 19


@pytest.mark.parametrize("name", MECHANISMS)
def test_graphs_evaluate_to_the_accelerations_of_the_multipliers(name: str) -> None:
    m = MECHANISMS[name]()
    for seed in range(3):
        state = moving_state(m, seed)
        check(m, term_graph(m, CLOSED_TERMS).evaluate(**state), state)


@at_random
@settings(max_examples=6, deadline=None)
@given(looped(most=2, max_bodies=3))
def test_random_loops_have_minimal_equations(drawn: Any) -> None:
    m, q = drawn[0], np.array(drawn[1])
    assume(m.loops and m.loop_analysis.mobility and m.loop_analysis.kept and not m.loop_analysis.more)
    graph = term_graph(m, CLOSED_TERMS)
    E = graph.evaluate(q=q, v=np.zeros(m.nv), tau=np.zeros(m.nv))["E"]
    assume(np.abs(E).max() < 50)  # near a singular configuration digits are lost
    rng = np.random.default_rng(1)
    state = {"q": q, "v": E @ rng.normal(size=E.shape[1]), "tau": rng.normal(size=m.nv)}
    a = graphs.graph(m, "forward_dynamics", method="crba").evaluate(**state)["forward_dynamics"]
    assume(np.isfinite(a).all())
    found = graph.evaluate(**state)
    lifted = E @ np.linalg.solve(found["Mr"], found["fr"]) + found["Ev"]
    assert np.abs(lifted - a).max() < 1e-6 * max(1.0, np.abs(a).max())


# -- text


@pytest.mark.parametrize("name", MECHANISMS)
def test_python(name: str) -> None:
    m = MECHANISMS[name]()
    state = moving_state(m)
    check(m, run_python(bc.equations(m, "python"), state), state, 1e-8)


@pytest.mark.parametrize("name", ["four_bar", "slider_fourbar", "n_four_bar", "geared"])
def test_latex(name: str) -> None:
    m = zoo.slider_fourbar() if name == "slider_fourbar" else MECHANISMS[name]()
    state = moving_state(m)
    scope = run_latex(bc.equations(m, "latex", digits=13), state)
    shapes = {key: array.shape for key, array in term_graph(m, CLOSED_TERMS).outputs.items()}
    check(m, {key: gathered(scope, key, shape) for key, shape in shapes.items()}, state, 1e-8)


@needs_sympy
@pytest.mark.parametrize("name", ["four_bar", "geared"])
def test_sympy(name: str) -> None:
    m = MECHANISMS[name]()
    state = moving_state(m)
    scope: dict[str, Any] = {"__name__": "printed"}
    exec(compile(bc.equations(m, "sympy"), "printed.py", "exec"), scope)
    values = {s: x for k in state for s, x in zip(scope[k], state[k], strict=True)}
    check(m, {k: np.array(scope[k].subs(values).evalf().tolist(), float) for k in CLOSED_TERMS}, state, 1e-8)


@needs_cc
def test_c(tmp_path: Path) -> None:
    m = zoo.slider_fourbar(forces=True)
    state, graph, file = moving_state(m), term_graph(m, CLOSED_TERMS), tmp_path / "printed.c"
    file.write_text(bc.equations(m, "c"))
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-fPIC", "-shared"]
    subprocess.run(["cc", *strict, file, "-o", file.with_suffix(".so"), "-lm"], check=True)
    library = ctypes.CDLL(str(file.with_suffix(".so")))
    found = {key: np.zeros(array.shape) for key, array in graph.outputs.items()}
    for key, out in found.items():
        arrays = [*(np.ascontiguousarray(state[k]) for k in TERMS[key].inputs), out]
        library[f"{m.name}_{key}"](*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    check(m, found, state)


def test_paper_example_has_the_paper_matrices() -> None:
    """Section 3, (a), (b) and E, in the configuration of the print, whose joint 2 is independent."""
    m, q = zoo.slider_fourbar(), np.zeros(4)
    found = term_graph(m, ["C", "E"], ["T1", "R2"]).evaluate(q=q)
    assert np.abs(np.abs(found["C"]) - np.sqrt(2) * np.array([[0, 0, 1, 1], [0, 1, 1, 0]])).max() < 1e-12
    assert np.abs(found["E"] - [[1, 0], [0, 1], [0, -1], [0, 1]]).max() < 1e-12
    text = bc.equations(m, "latex", "E", independent=("T1", "R2"))
    assert r"E_{32} &= \frac{C_{14}\,C_{22} - C_{12}\,C_{24}}{\mathrm{det}}" in text  # e_1 of the print


def test_velocity_transformation_gives_the_mass_matrix() -> None:
    """Mbar = B^T M B (9) with the bodies' own inertias in world axes, and G B = H (27)."""
    m = random_tree(5, ["revolute", "prismatic", "spherical", "universal", "floating"], [0, 1, 1, 2, 0])
    q = m.random(2)[0]
    B, G, H = (term_graph(m, [name]).evaluate(q=q)[name] for name in "BGH")
    assert np.abs(G @ B - H).max() < 1e-12
    assert np.abs(G - np.eye(len(G))).max() > 0.1
    total = np.zeros((m.nv, m.nv))
    for i, body in enumerate(m.bodies):
        R = m.pose(q, body.name)[:3, :3]
        block = B[6 * i : 6 * i + 6]
        total += body.mass * block[:3].T @ block[:3] + block[3:].T @ R @ np.array(body.inertia) @ R.T @ block[3:]
    assert np.abs(total - m.mass_matrix(q)).max() < 1e-10 * np.abs(total).max()
    v = m.random(3)[1]
    assert np.abs((B @ v)[3:6] - m.velocity(q, v, m.bodies[0].name)[3:]).max() < 1e-12


def test_free_parameters_print_by_name() -> None:
    m = zoo.four_bar().free("crank.mass", "B.point.x", "gravity.z")
    state = moving_state(m)
    text = bc.equations(m, "python")
    assert "p: 1 B.point.x (l_2x), 2 crank.mass (m_1), 3 gravity.z (g_z)" in text
    assert not re.search(r"\bp_\d", text)
    check(m, run_python(text, state), state, 1e-8)
    tree = zoo.planar3r().free("link1.mass")
    assert r"0.25\,m_{1}" in bc.equations(tree, "latex", "mass_matrix")
    own = bc.Builder("own")
    own.body("rod", mass=bc.parameter("M_11", 1.5), com=(0, 0, -0.5), inertia=(bc.parameter("l2", 0.2), 0.2, 0.1))
    own.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0))
    named = own.build()
    q, v, _ = named.random(1)
    found = run_python(bc.equations(named, "python"), {"q": q, "v": v, "p": named.parameters.nominal})
    compare({"M": found["M"]}, {"M": named.mass_matrix(q)})
    assert "M_11 (M_11_1), 2 l2 (l_2)" in bc.equations(named, "python")  # a user's name does not meet an entry


def test_bad_requests_are_explained() -> None:
    with pytest.raises(InputError, match="no closed loops"):
        bc.equations(zoo.planar3r(), "latex", "E")
    with pytest.raises(InputError, match="expected 1 different"):
        bc.equations(zoo.four_bar(), "latex", independent=("A", "B"))
    with pytest.raises(InputError, match="can still move"):
        bc.equations(zoo.slider_fourbar(), "latex", independent=("R2", "R3"))
    assert paper_notation.independent_names(zoo.four_bar()) == ["A"]
