"""A bar of tetrahedra equals the corresponding beam, and invalid meshes raise errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba
from bellcrank.structures.beam import Beam
from bellcrank.structures.reduction import frequencies

skfem = pytest.importorskip("skfem", reason="scikit-fem is not installed: the extra flexible")
STEEL = bc.Material.steel()
L, W, H = 1.0, 0.04, 0.06
ENDS = {"root": lambda p: p[:, 0] < 1e-9, "tip": lambda p: p[:, 0] > L - 1e-9}


def mesh(along: int = 20, across: int = 2) -> Any:
    sides = (np.linspace(-a / 2, a / 2, across + 1) for a in (W, H))
    return skfem.MeshTet.init_tensor(np.linspace(0, L, along + 1), *sides)


@cache
def bar() -> Any:
    return bc.solid(mesh(), STEEL, ENDS, modes=6)


def test_solid_has_mass_and_frequencies_of_the_beam() -> None:
    found, beam = bar(), Beam(L, bc.Section.rectangle(W, H), STEEL, 40)
    assert found.mass == pytest.approx(STEEL.density * L * W * H, rel=1e-12)
    assert found.com == pytest.approx([L / 2, 0, 0], abs=1e-12)
    assert found.inertia[1, 1] == pytest.approx(found.mass * (L**2 / 3 + H**2 / 12), rel=1e-12)
    wanted = frequencies(*beam.matrices, range(6))[:4]
    assert found.omega[:4] == pytest.approx(wanted, rel=0.01)


def test_points_and_cells_are_a_mesh_too() -> None:
    made = mesh(4, 1)
    found = bc.solid((made.p.T, made.t.T), STEEL, ENDS, modes=2)
    assert found.omega == pytest.approx(bc.solid(made, STEEL, ENDS, modes=2).omega, rel=1e-9)
    assert found.omega[0] > bar().omega[0]  # fewer modes are stiffer


def test_solid_can_be_used_as_any_body() -> None:
    b = bc.Builder("bar")
    b.flexible("bar", bar(), damping=0.01)
    b.joint("swing", "revolute", "ground", "bar", axis=(0, 1, 0))
    b.body("load", 2.0, (L, 0, -0.1), (0.01, 0.01, 0.01))
    b.joint("pin", "revolute", "bar.tip", "load", point=(L, 0, 0), axis=(0, 1, 0))
    m = b.build()
    M = np.array(crba.mass_matrix(m.tree, m.neutral().tolist()), float)
    assert M[0, 0] == pytest.approx(bar().inertia[1, 1] + 0.01 + 2.0 * (L**2 + 0.01), rel=1e-9)
    assert np.linalg.eigvalsh(M)[0] > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mesh": 5}, "mesh is 5"),
        ({"mesh": (np.zeros((4, 3)), [[0, 1, 2, 9]])}, "mesh is"),
        ({"mesh": (np.zeros((4, 3)), [[0, 1, 2, 3]])}, "flat"),
        ({"mesh": (np.eye(5, 3), [[0, 1, 2, 3]])}, "belong to no tetrahedron"),
        ({"material": 5}, "material is 5"),
        ({"interfaces": {}}, "interfaces is"),
        ({"interfaces": {"root": lambda p: p[:, 0] > 2}}, "no nodes"),
        ({"interfaces": {"root": lambda p: p[:, 0]}}, "true if it"),
        ({"interfaces": {"root": lambda p: 1 / 0}}, "ZeroDivisionError"),
        ({"interfaces": {"root": [0, 10**6]}}, "expected nodes"),
    ],
)
def test_meshes_that_cannot_be(change: Any, words: str) -> None:
    given: dict[str, Any] = {"mesh": mesh(2, 1), "material": STEEL, "interfaces": ENDS} | change
    with pytest.raises(bc.ModelError, match=words):
        bc.solid(**given)


def test_surface_is_closed_with_outward_normals() -> None:
    """The enclosed volume, by the theorem of Gauss, is positive."""
    found = bar()
    a, b, c = (found.grid[found.cells[:, k]] for k in range(3))
    assert np.einsum("ni,ni->", np.cross(a, b), c) / 6 == pytest.approx(L * W * H, rel=1e-12)
