"""Functions for CasADi: values, sparsities and derivatives are ours; Ipopt finds what it finds without us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.exporting.casadi_library import casadi_source
from bellcrank.exporting.export_content import export_content
from bellcrank.sim.settings import Solver
from targets.test_c99 import CC, needs_cc, read_by_others, run
from targets.test_export_c import WARNINGS

casadi = pytest.importorskip("casadi", reason="CasADi is not installed")


@needs_cc
def test_values_and_derivatives(tmp_path: Path) -> None:
    m = bc.zoo.stanford()
    path = str(bc.export(m, tmp_path / "it.so", to="casadi", functions=["forward_dynamics", "mass_matrix"]))
    q, v, tau = m.random(5)
    x = casadi.MX.sym("x", m.nv)
    f = casadi.external("forward_dynamics", path)
    assert (f.name_in(), f.name_out()) == (["q", "v", "tau"], ["forward_dynamics"])
    np.testing.assert_allclose(np.array(f(q, v, tau)).ravel(), m.forward_dynamics(q, v, tau), rtol=1e-12, atol=1e-12)
    for k, name in enumerate(("q", "v", "tau")):
        given = [q, v, tau]
        given[k] = x
        J = casadi.Function("J", [x], [casadi.jacobian(f(*given), x)])
        expected = bc.kernel(m, "forward_dynamics").derivative(name)(q, v, tau)
        np.testing.assert_allclose(
            np.array(J([q, v, tau][k])), expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max()
        )
    M = casadi.external("mass_matrix", path)  # a matrix, with zeros that are known
    np.testing.assert_allclose(np.array(M(q)), m.mass_matrix(q), rtol=1e-12, atol=1e-13)
    D = casadi.Function("D", [x], [casadi.jacobian(M(x), x)])
    expected = bc.kernel(m, "mass_matrix").derivative("q")(q).transpose(1, 0, 2).reshape(-1, m.nv)
    np.testing.assert_allclose(np.array(D(q)), expected, rtol=1e-12, atol=1e-13)
    assert D.sparsity_out(0).nnz() == np.count_nonzero(expected)


@needs_cc
def test_matrices_go_in_as_they_are(tmp_path: Path) -> None:
    def f(A: Any, b: Any, k: Any) -> Any:
        return {
            "A x b": [sum(a * x for a, x in zip(row, b, strict=True)) * k for row in A],
            "scaled": A * k,
            "k": k * k,
        }

    own = bc.compile(f, inputs={"A": (2, 3), "b": 3, "k": ()}, name="product")
    path = str(bc.export(own, tmp_path / "it.so", to="casadi"))
    g, A, b = casadi.external("product", path), np.arange(6.0).reshape(2, 3), np.array([1.0, -2.0, 0.5])
    product, scaled, square = (np.array(x) for x in g(A, b, 2.0))
    np.testing.assert_allclose(product.ravel(), 2.0 * A @ b)
    np.testing.assert_allclose(scaled, 2.0 * A)
    assert square == 4.0
    X = casadi.MX.sym("X", 2, 3)
    J = casadi.Function("J", [X], [casadi.jacobian(g(X, b, 2.0)[1], X)])
    np.testing.assert_allclose(np.array(J(A)), 2.0 * np.eye(6))
    assert J.sparsity_out(0).nnz() == 6


def crane() -> bc.System:
    """A trolley of 3 kg with a load of 1 kg on a rod of 0.8 m."""
    b = bc.Builder("crane")
    b.body("trolley", mass=3.0, com=(0, 0, 0), inertia=(0, 0, 0))
    b.joint("rail", "prismatic", "ground", "trolley", axis=(1, 0, 0))
    b.body("load", mass=1.0, com=(0, 0, -0.8), inertia=(0, 0, 0))
    b.joint("rod", "revolute", "trolley", "load", axis=(0, -1, 0))
    return bc.system(b.build(), control=lambda t, q, v, x, u: [u[0], 0.0], inputs=["force"])


def by_hand(y: Any, u: Any) -> Any:
    """Lagrange's equations of the same crane, in CasADi's own expressions."""
    M, m, length, g = 3.0, 1.0, 0.8, 9.81
    s, c, w = casadi.sin(y[1]), casadi.cos(y[1]), y[3]
    a = (u + m * length * w * w * s + m * g * s * c) / (M + m * s * s)
    return casadi.vertcat(y[2], y[3], a, -(a * c + g * s) / length)


def swing(rate: Any, steps: int = 30, seconds: float = 2.5) -> tuple[float, Any]:
    """From rest to rest a metre on, with the least force squared and no more than 5 N."""
    opti, h = casadi.Opti(), seconds / steps
    Y, U = opti.variable(4, steps + 1), opti.variable(1, steps)
    for k in range(steps):
        y, u = Y[:, k], U[:, k]
        k1 = rate(y, u)
        k2 = rate(y + h / 2 * k1, u)
        k3 = rate(y + h / 2 * k2, u)
        k4 = rate(y + h * k3, u)
        opti.subject_to(Y[:, k + 1] == y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    opti.subject_to(Y[:, 0] == 0)
    opti.subject_to(Y[:, -1] == casadi.vertcat(1, 0, 0, 0))
    opti.subject_to(opti.bounded(-5.0, U, 5.0))
    opti.minimize(h * casadi.sumsqr(U))
    options = {"hessian_approximation": "limited-memory", "print_level": 0, "tol": 1e-9, "max_iter": 500}
    opti.solver("ipopt", {"print_time": False}, options)
    found = opti.solve()
    return float(found.value(opti.f)), found.value(U)


@needs_cc
def test_ipopt_swings_a_load_from_rest_to_rest(tmp_path: Path) -> None:
    path = bc.export(crane(), tmp_path / "crane.so", to="casadi")
    f = casadi.external("rate", str(path))
    ours, forces = swing(lambda y, u: f(0.0, y, u))
    own, expected = swing(by_hand)
    assert ours == pytest.approx(own, rel=1e-7)
    np.testing.assert_allclose(forces, expected, atol=1e-4)
    assert 0.0 < np.abs(forces).max() <= 5.0 + 1e-6


@needs_cc
def test_the_source_compiles_without_a_warning(tmp_path: Path) -> None:
    assert CC is not None
    found = export_content(bc.zoo.planar3r(), ["mass_matrix", "forward_dynamics"], "", Solver())
    (tmp_path / "it.c").write_text(casadi_source(found))
    strict = [w for w in WARNINGS if w != "-Wmissing-prototypes"]
    run(tmp_path, CC, "-std=c99", "-O1", *strict, "-fPIC", "-shared", "it.c", "-o", "it.so", "-lm")
    read_by_others(tmp_path, strict, "it.c")


def test_unsupported_casadi_exports_raise(tmp_path: Path) -> None:
    cube = bc.compile(lambda x: x * 2.0, inputs={"x": (2, 2, 2)}, name="cube")
    with pytest.raises(InputError, match="matrices"):
        bc.export(cube, tmp_path / "it.so", to="casadi")
    assert not list(tmp_path.iterdir())
