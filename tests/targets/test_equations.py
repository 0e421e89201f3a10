"""Printed equations agree with `evaluate` and the kernels: the text itself is run, in every language and in LaTeX."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build import equations as printed
from bellcrank.build import graphs
from bellcrank.build.paper_notation import MOTION_TERMS, TERMS, motion_graph
from bellcrank.emit.equations import c as ctext
from bellcrank.emit.equations import latex, python, sympy
from bellcrank.emit.equations import sheet as equations
from bellcrank.emit.equations.formula import Symbol, SymbolNames
from bellcrank.emit.equations.language import Language
from bellcrank.emit.equations.polynomial import Polynomial, Ring, group_angles, product_to_sum
from bellcrank.errors import InputError
from bellcrank.graph import Node, trace
from bellcrank.model import Mechanism
from bellcrank.scalar import cos, minimum, sin, sqrt, step, where
from trees import ALL, close, gripper, random_tree, trees

Array = np.ndarray[Any, Any]
needs_sympy = pytest.mark.skipif(importlib.util.find_spec("sympy") is None, reason="sympy is not installed")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def floating() -> Mechanism:
    b = bc.Builder("tumbler", gravity=(0, 0, -9.81))
    b.body("hub", mass=20.0, com=(0, 0, 0.1), inertia=(2, 3, 4, 0.1, 0.2, 0.3))
    b.joint("free", "floating", "ground", "hub")
    b.body("arm", mass=3.0, com=(0, 1.5, 0), inertia=(1, 0.1, 1))
    b.joint("hinge", "revolute", "hub", "arm", point=(0, 1, 0), axis=(1, 0, 0))
    return b.build()


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "pendulum": zoo.pendulum,
    "planar3r": zoo.planar3r,
    "excavator": zoo.excavator,
    "stanford": zoo.stanford,
    "torso": zoo.torso,
    "gripper": gripper,
    "floating": floating,
    "all joints": lambda: random_tree(4, ALL, [0, 1, 1, 3, 2, 5], armature=True, passive=True),
    "coupled": lambda: random_tree(8, ["revolute"] * 4, coupled=True, passive=True),
    "twelve": lambda: zoo.chain(12, twist="parallel"),  # indices of two digits
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def expected(m: Mechanism, seed: int = 1) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return a state, and the four blocks there, by the compiled kernels."""
    q, v, _ = m.random(seed)
    g = m.gravity_torque(q)
    return {"q": q, "v": v}, {"M": m.mass_matrix(q), "h": m.bias(q, v) - g, "g": g, "f": m.passive_torque(q, v)}


def compare(found: dict[str, Any], wanted: dict[str, Array], tolerance: float = 1e-10) -> None:
    for key, value in wanted.items():
        close(np.asarray(found[key], float).reshape(value.shape), value, tolerance)


# -- each language, run


def run_python(text: str, state: dict[str, Array]) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "printed"}
    exec(compile(text, "printed.py", "exec"), scope)
    functions = {k: f for k, f in scope.items() if getattr(f, "__module__", "") == "printed"}
    return {k: f(*(state[a] for a in f.__code__.co_varnames[: f.__code__.co_argcount])) for k, f in functions.items()}


def run_sympy(text: str, state: dict[str, Array]) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "printed"}
    exec(compile(text, "printed.py", "exec"), scope)
    values = {s: x for k in state for s, x in zip(scope[k], state[k], strict=True)}
    return {k: np.array(scope[k].subs(values).evalf().tolist(), float) for k in "Mhgf"}


RULES = [  # LaTeX to Python, in this order
    (r"\\tfrac\{(\d+)\}\{(\d+)\}", r"(\1/\2)"),
    (r"\\frac\{\\pi\}\{(\d+)\}", r"(pi/\1)"),
    (r"\\frac\{(\d+)\\,\\pi\}\{(\d+)\}", r"(\1*pi/\2)"),
    (r" \\times 10\^\{(-?\d+)\}", r"e\1"),
    (r"\\(sin|cos) (\\?\w+_\{\w+\})", r"\1(\2)"),
    (r"\\(sin|cos|min|max)\b", r"\1"),
    (r"\\mathrm\{([^}]*)\}", r"\1"),
    (r"_\{([^}]*)\}", lambda m: "_" + m[1].replace(",", "_").replace("-", "m").replace("\\_", "_")),
    (r"\^\{(\d+)\}", r"**\1"),
    (r"\\(theta|tau|pi|Psi)", r"\1"),
    (r",\\;", ","),
    (r"\\,", "*"),
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))"),
]


def run_latex(text: str, state: dict[str, Array]) -> dict[str, Any]:
    """Run only the printed equations: the contents of every align*, line by line, turned into assignments."""
    scope: dict[str, Any] = {"sin": np.sin, "cos": np.cos, "min": min, "max": max, "pi": np.pi}
    for key, x in state.items():
        scope |= {f"{key}_{i + 1}": value for i, value in enumerate(x)}
    inside = "\\\\".join(re.findall(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", text, re.DOTALL))
    assert "\\left" not in inside
    for rule, by in RULES:
        inside = re.sub(rule, by, inside)
    inside = re.sub(r"\\\\\s*&\\quad", " ", inside)
    for line in inside.split("\\\\"):
        cells = [cell.strip() for cell in line.split("&")]
        for name, value in itertools.pairwise(cells):
            if value.startswith("=") and "ji" not in name:
                for each in name.split(" = "):
                    assert re.fullmatch(r"\w+", each), line
                    scope[each] = eval(value[1:], {}, scope)
    return scope


def gathered(scope: dict[str, Any], key: str, shape: tuple[int, ...]) -> Array:
    """Return M from M_11, M_12, ...; a block that is not printed is zero."""
    out = np.zeros(shape)
    for index in np.ndindex(*shape):
        both = [tuple(str(i + 1) for i in index), tuple(str(i + 1) for i in index[::-1])]
        names = [str(Symbol(key, tokens)) for tokens in both]
        out[index] = next((scope[n] for n in names if n in scope), 0.0)
    return out


@every_mechanism
def test_python(name: str) -> None:
    m = MECHANISMS[name]()
    state, wanted = expected(m)
    compare(run_python(bc.equations(m, "python"), state), wanted)


@needs_sympy
@pytest.mark.parametrize("name", [n for n in MECHANISMS if n not in ("twelve", "all joints")])
def test_sympy(name: str) -> None:
    m = MECHANISMS[name]()
    state, wanted = expected(m)
    compare(run_sympy(bc.equations(m, "sympy"), state), wanted)


@needs_sympy
@pytest.mark.parametrize("name", ["twelve", "all joints"])
def test_sympy_on_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SymPy code runs on numbers: substituting into the expressions would take minutes."""
    import sympy as sp

    m = MECHANISMS[name]()
    state, wanted = expected(m)
    given_ = {f"{key}_{i + 1}": sp.Float(x) for key in state for i, x in enumerate(state[key])}
    monkeypatch.setattr(sp, "symbols", lambda names, real: tuple(given_[n] for n in names.split()))
    compare(run_sympy(bc.equations(m, "sympy"), {}), wanted)


@every_mechanism
@pytest.mark.parametrize("digits", [0, 13])
def test_latex(name: str, digits: int) -> None:
    m = MECHANISMS[name]()
    state, wanted = expected(m)
    scope = run_latex(bc.equations(m, "latex", digits=digits), state)
    found = {key: gathered(scope, key, x.shape) for key, x in wanted.items()}
    compare(found, wanted, 1e-10 if digits or name in ("pendulum", "planar3r") else 2e-4)


@needs_cc
@every_mechanism
def test_c(name: str, tmp_path: Path) -> None:
    m = MECHANISMS[name]()
    state, wanted = expected(m)
    file = tmp_path / "printed.c"
    file.write_text(bc.equations(m, "c"))
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-fPIC", "-shared"]
    subprocess.run(["cc", *strict, file, "-o", file.with_suffix(".so"), "-lm"], check=True)
    library = ctypes.CDLL(str(file.with_suffix(".so")))
    found = {}
    for key in MOTION_TERMS:
        found[key] = np.zeros(wanted[key].shape)
        arrays = [*(np.ascontiguousarray(state[k]) for k in TERMS[key].inputs), found[key]]
        function = library[f"{m.name}_{key}"]
        function.restype = None
        function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
    compare(found, wanted)


QUANTITIES = ["forward_dynamics", "inverse_dynamics", "bias", "kinetic_energy", "potential_energy", "com", "integrate"]


@pytest.mark.parametrize("name", ["pendulum", "planar3r", "excavator", "floating"])
@pytest.mark.parametrize("quantity", [*QUANTITIES, "pose", "jacobian"])
def test_one_quantity(name: str, quantity: str) -> None:
    m = MECHANISMS[name]()
    q, v, tau = m.random(5)
    frame = list(m.frames)[-1] if quantity in ("pose", "jacobian") else ""
    state = {"q": q, "v": v, "tau": tau, "a": tau, "dv": v}
    g = graphs.graph(m, quantity, frame=frame)
    wanted = g.evaluate(**{key: state[key] for key in g.inputs})
    compare(run_python(bc.equations(m, "python", quantity, frame), state), wanted)


# -- readability of the text


def test_planar3r_is_the_textbook() -> None:
    text = bc.equations(zoo.planar3r(), "latex")
    for line in (
        r"M_{11} &= 4 + 3\,c_{2} + c_{3} + c_{23} \\",
        r"M_{12} &= \tfrac{5}{3} + 1.5\,c_{2} + c_{3} + 0.5\,c_{23} \\",
        r"M_{33} &= \tfrac{1}{3} \\",
        r"b_{112} &= 3\,s_{2} + s_{23} \\",
        r"g_{1} &= 24.525\,c_{1} + 14.715\,c_{12} + 4.905\,c_{123} \\",
        r"M(q)\,a + h(q, v) + g(q) = \tau",
    ):
        assert f"  {line}\n" in text
    assert "f_" not in text  # without friction there is no mention of it
    assert len(text.splitlines()) < 50
    assert max(map(len, text.splitlines())) < 120


def test_unreadable_equations_are_summarised() -> None:
    for name in ("pendulum", "planar3r", "excavator", "torso"):
        assert "in steps" not in bc.equations(MECHANISMS[name](), "python")
    text = bc.equations(zoo.stanford(), "python")
    assert '"""Coriolis and centrifugal forces; written in steps, because one entry alone would have' in text
    assert re.search(r"^    A_link4_1 = ", text, re.MULTILINE)  # after the step of the method
    assert "in steps" not in bc.equations(zoo.stanford(), "python", terms=200)
    assert bc.equations(zoo.planar3r(), "latex", terms=0).count("in steps") == 3
    assert "not a polynomial (div)" in bc.equations(zoo.planar3r(), "latex", "forward_dynamics")


def test_numbers_are_those_a_person_writes() -> None:
    spell = Language(6)
    given_ = [3.0, 0.1 + 0.2, 5 / 3, 24.525, 1234567.0, 0.123456789, 1.5e-7, 2 / 7]
    assert [spell.number(x) for x in given_] == ["3", "0.3", "5/3", "24.525", "1234567", "0.123457", "1.5e-07", "2/7"]
    assert Language(13).number(0.123456789) == "0.123456789"


def test_names_do_not_meet() -> None:
    """No name of a body shadows an input, an entry or another name."""
    b = bc.Builder("q_1")
    bodies = ["ground", "11", "lambda", "größe 1", "größe_1", "x]; import os"]
    for i, (parent, body) in enumerate(itertools.pairwise(bodies)):
        b.body(body, mass=1.0, com=(i + 0.5, 0.1, 0.2), inertia=(0.1, 0.2, 0.3))
        b.joint(f'"""{i}\\', "revolute", parent, body, axis=(0, 0, 1) if i % 2 else (0, 1, 0))
    m = b.build()
    state, wanted = expected(m)
    for terms in (0, 60):
        compare(run_python(bc.equations(m, "python", terms=terms), state), wanted)
        scope = run_latex(bc.equations(m, "latex", terms=terms, digits=13), state)
        compare({key: gathered(scope, key, x.shape) for key, x in wanted.items()}, wanted)
    names = SymbolNames({"F_1"})
    assert [str(names.fresh(Symbol("F", ("1",)))) for _ in range(3)] == ["F_11", "F_12", "F_13"]


def test_bad_input() -> None:
    m = zoo.pendulum()
    for options, words in (
        ({"target": "word"}, 'no target "word"'),
        ({"digits": 40}, "from 1 to 17"),
        ({"terms": -1}, "at least 0"),
        ({"quantity": "speed"}, 'no quantity "speed"'),
        ({"quantity": "pose"}, "needs a frame"),
    ):
        with pytest.raises(InputError, match=words):
            bc.equations(m, **options)  # type: ignore[arg-type]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
@pytest.mark.parametrize("name", ["planar3r", "gripper", "all joints"])
def test_latex_compiles(name: str, tmp_path: Path) -> None:
    m = MECHANISMS[name]()
    (tmp_path / "x.tex").write_text(printed.equation_text(m, motion_graph(m), standalone=True))
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"], cwd=tmp_path, check=True)


# -- a polynomial has the value of the graph in every form


def value(ring: Ring, polynomial: Polynomial, inputs: dict[str, Array]) -> float:
    """Return the value term by term, by the definition of a monomial."""

    def generator(g: int) -> float:
        found = ring.generators[g]
        if found.op == "input":
            return float(inputs[found.name][found.flat])
        args = [value(ring, dict(a), inputs) for a in found.args]
        return float({"sin": np.sin, "cos": np.cos, "minimum": min, "maximum": max}[found.op](*args))

    return sum(x * np.prod([generator(g) ** n for g, n in ring.powers(m)]) for m, x in polynomial.items())


@settings(max_examples=30, deadline=None)
@given(trees(max_bodies=3, passive=True, coupled=True))
def test_polynomial_walk_equals_evaluate(m: Mechanism) -> None:
    graph = motion_graph(m)
    q, v, _ = m.random(2)
    ring = Ring()
    values, wanted = ring.node_polynomials(graph), graph.evaluate(q=q, v=v)
    for key, array in graph.outputs.items():
        for x, y in zip(array.flat, wanted[key].flat, strict=True):
            polynomial = values[x.serial] if isinstance(x, Node) else {0: x}
            if polynomial is not None:
                assert abs(value(ring, polynomial, {"q": q, "v": v}) - y) <= 1e-10 * max(1.0, np.abs(wanted[key]).max())


@settings(max_examples=20, deadline=None)
@given(trees(max_bodies=3, passive=True, coupled=True), st.integers(0, 60))
def test_printed_equals_evaluate(m: Mechanism, terms: int) -> None:
    graph = motion_graph(m)
    q, v, _ = m.random(3)
    compare(run_python(bc.equations(m, "python", terms=terms), {"q": q, "v": v}), graph.evaluate(q=q, v=v))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.floats(-2, 2)), max_size=6))
def test_waves_are_the_products(terms: list[tuple[int, int, int, float]]) -> None:
    """Any grouping of the angles of a random trigonometric polynomial has its value; the chosen one is not longer."""

    def body(q: Any) -> dict[str, Any]:
        total = 0.5 * cos(q[0]) * cos(q[1]) - sin(q[0]) * sin(q[1]) * 0.5 + cos(q[2])
        for i, j, k, x in terms:
            total = total + x * cos(q[0]) ** (i + 1) * sin(q[1]) ** (j + 1) * (sin(q[2]) + q[1]) ** (k + 1)
        return {"y": [total]}

    graph = trace("waves", body, {"q": (3,)})
    ring, q = Ring(), np.array([0.3, -1.1, 2.2])
    (polynomial,) = (ring.node_polynomials(graph)[x.serial] for x in graph.outputs["y"])
    assert polynomial is not None
    best = group_angles(ring, [polynomial])
    for groups in ((), ((0,),), ((0, 1),), ((0, 1, 2),), ((0,), (1, 2)), best):
        found = product_to_sum(ring, groups, polynomial)
        total = 0.0
        for (monomial, waves), x in found.items():
            angles = [(op, sum(k * q[a] for a, k in ks)) for op, ks in waves]
            x *= float(np.prod([np.sin(a) if op == "sin" else np.cos(a) for op, a in angles]))
            total += value(ring, {monomial: x}, {"q": q})
        assert abs(total - graph.evaluate(q=q)["y"][0]) < 1e-10 * max(1.0, sum(map(abs, polynomial.values())))
    assert len(product_to_sum(ring, best, polynomial)) <= len(polynomial)


def test_rounding_cancels() -> None:
    """Terms that are exactly zero vanish: there is no 1e-17 cos q."""
    third = 1 / 3
    graph = trace("zero", lambda q: {"y": [(q[0] * 0.1) * 3.0 - q[0] * 0.3 + (cos(q[1]) * third) * 3.0]}, {"q": (2,)})
    ring = Ring()
    (polynomial,) = (ring.node_polynomials(graph)[x.serial] for x in graph.outputs["y"])
    assert polynomial is not None
    assert list(polynomial.values()) == [1.0]


def test_angles_of_any_kind() -> None:
    """Angles may be sums, multiples, shifts, constants, and contain other sines."""

    def body(q: Any) -> dict[str, Any]:
        total = q[0] + q[1]
        nothing = total - q[1] - q[0]  # zero, which folding does not detect
        return {"y": [sin(total) * cos(total) + cos(q[0] * 2.0 + 0.3), cos(q[0] * cos(q[1])) * sin(q[0]), cos(nothing)]}

    graph = trace("any", body, {"q": (2,)})
    page = equations.build_sheet(graph, "any", "any", {"y": ("anything", ("q",))})
    q = np.array([0.3, 0.7])
    text = python.source(page)
    compare(run_python(text, {"q": q}), graph.evaluate(q=q))
    assert "y_3 = 1\n" in text
    scope = run_latex(latex.source(page, 13), {"q": q})
    close(gathered(scope, "y", (3,)), graph.evaluate(q=q)["y"])


def test_every_operation_in_steps() -> None:
    """Roots, divisions and selections have a spelling in every language."""

    def body(q: Any) -> dict[str, Any]:
        step("root")
        r = sqrt(q[0] * q[0] + 1.0)
        return {"y": [where(q[0] < q[1], r / q[1], -(r / (q[1] + r))), minimum(r, 2.0) / r, abs(q[1]) * r]}

    graph = trace("any", body, {"q": (2,)})
    page = equations.build_sheet(graph, "any", "any", {"y": ("anything", ("q",))})
    for q in (np.array([0.3, 0.7]), np.array([0.7, -0.3])):
        compare(run_python(python.source(page), {"q": q}), graph.evaluate(q=q))
    assert r"\begin{cases}" in latex.source(page)
    assert "Piecewise((" in sympy.source(page)
    assert "fmin(" in ctext.source(page)
