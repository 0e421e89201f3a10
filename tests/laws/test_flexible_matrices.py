"""Flexible bodies from matrices: against known beams and particles, from files, and with invalid data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError, ReadError
from bellcrank.structures.beam import Beam
from bellcrank.structures.matrices import _interface_map
from bending import at_rest

STEEL, BAR, LENGTH = bc.Material.steel(), bc.Section.rectangle(0.05, 0.1), 2.0


def beam() -> tuple[Any, Any, Any]:
    made = Beam(LENGTH, BAR, STEEL, elements=10)
    return *made.matrices, made.nodes


def hinged(structure: Any = None, **placed: Any) -> Any:
    """A bar on a hinge with a bob, from matrices or from its description."""
    b = bc.Builder("hinged")
    if structure is None:
        b.beam("bar", length=LENGTH, section=BAR, material=STEEL, elements=10, modes=4)
    else:
        b.flexible("bar", structure, **placed)
    b.joint("hinge", "revolute", "ground", "bar", axis=(0, 1, 0))
    b.body("bob", mass=5.0, com=(2.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("bob", "fixed", "bar.end", "bob", point=(LENGTH, 0, 0))
    return b.build()


def test_a_beams_matrices_are_the_beam() -> None:
    m, known = hinged(bc.flexible(*beam(), {"start": 0, "end": 10}, modes=4)), hinged()
    assert m.nv == known.nv == 1 + 6 + 4
    assert m.com(m.neutral()) == pytest.approx(known.com(known.neutral()), rel=1e-12)
    spectra = []
    for one in (m, known):
        stiffness = np.diag([0.0, *one.flexible[0].stiffness])
        spectra.append(np.sort(np.linalg.eigvals(np.linalg.solve(one.mass_matrix(one.neutral()), stiffness)).real))
    assert spectra[0][1:6] == pytest.approx(spectra[1][1:6], rel=1e-3)
    assert m.mass_matrix(m.neutral())[0, 0] == pytest.approx(known.mass_matrix(known.neutral())[0, 0], rel=1e-12)


def test_load_gives_equal_deflection() -> None:
    ends = []
    for structure in (bc.flexible(*beam(), {"start": 0, "end": 10}, modes=4), None):
        b = bc.Builder("clamped")
        if structure is None:
            b.beam("bar", length=LENGTH, section=BAR, material=STEEL, elements=10, modes=4)
        else:
            b.flexible("bar", structure)
        b.joint("root", "fixed", "ground", "bar")
        m = b.build()
        ends.append(m.pose(at_rest(m, "bar.end", (0, 3.0, -20.0)), frame="bar.end")[:3, 3])
    assert ends[0][1:] == pytest.approx(ends[1][1:], rel=1e-6)


def network(seed: int = 0) -> tuple[Any, Any, Any]:
    """Particles connected pairwise by springs, with their positions."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-1, 1, (9, 3))
    K = np.zeros((27, 27))
    for i in range(9):
        for j in range(i):
            d = (places[i] - places[j]) / np.linalg.norm(places[i] - places[j])
            row = np.zeros(27)
            row[3 * i : 3 * i + 3], row[3 * j : 3 * j + 3] = d, -d
            K += 1e5 * np.outer(row, row)
    return K, np.diag(np.repeat(rng.uniform(1, 2, 9), 3)), places


def test_particles_have_the_energy_and_momentum_of_the_body() -> None:
    K, M, places = network()
    plates = {"a": [0, 1, 2], "b": [3, 4, 5]}
    structure = bc.flexible(K, M, places, plates, modes=5)
    rotation = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    b = bc.Builder("particles", gravity=(0, 0, 0))
    b.flexible("body", structure, point=(0.3, 0.2, 0.1), rotation=rotation)
    b.joint("base", "floating", "ground", "body", point=(0.5, 0, 0))
    m = b.build()
    q, v, _ = m.random(4)
    # at the particles' positions, for any modal coordinates: the shapes of the structure, scaled like its nodes
    shapes = particles(structure, places, plates)
    n, dn = q[7:], v[6:]
    X, V = m.pose(q, frame="body"), m.velocity(q, v, frame="body")
    local = (places + np.einsum("pik,k->pi", shapes, n)) @ rotation.T + [0.3, 0.2, 0.1] - np.array([0.5, 0, 0])
    rate = np.einsum("pik,k->pi", shapes, dn) @ rotation.T
    speed = V[:3] + np.cross(V[3:], local @ X[:3, :3].T) + rate @ X[:3, :3].T
    mass = np.diag(M)[::3]
    assert m.kinetic_energy(q, v) == pytest.approx(0.5 * np.sum(mass * np.sum(speed**2, axis=1)), rel=1e-12)
    assert m.momentum(q, v)[:3] == pytest.approx(mass @ speed, rel=1e-12)
    at = local @ X[:3, :3].T
    spin = np.sum(np.cross(at - mass @ at / mass.sum(), mass[:, None] * speed), axis=0)
    assert m.momentum(q, v)[3:] == pytest.approx(spin, rel=1e-10, abs=1e-12)
    run = bc.simulate(m, 0.02, q0=q, v0=v, step=2e-6, every=1e-3)
    assert run.residuals()["energy"] < 1e-9


def particles(structure: Any, places: Any, plates: Any) -> Any:
    """Shapes of all particles (particle, direction, mode), scaled like the interfaces."""
    T = _interface_map(places, {k: tuple(x) for k, x in plates.items()}, 3)
    ends = np.hstack([np.hstack(structure.nodes[k][:2]) for k in plates]).T  # six rows per interface, modes in columns
    own = structure.reduction.shapes
    scale = np.linalg.norm(ends, axis=0) / np.linalg.norm(own[: len(ends)], axis=0)
    return (T @ (own * scale)).reshape(len(places), 3, -1)


def test_position_of_the_body_does_not_matter() -> None:
    structure = bc.flexible(*beam(), {"start": 0, "end": 10}, modes=2)
    m = hinged(structure)
    q, v, tau = m.random(2)
    assert m.inverse_dynamics(q, v, m.forward_dynamics(q, v, tau)) == pytest.approx(tau, abs=1e-6)


@pytest.mark.parametrize("layout", ["coordinate general", "coordinate symmetric", "array general", "array symmetric"])
def test_matrices_from_files(tmp_path: Path, layout: str) -> None:
    A = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -0.5], [0.0, -0.5, 3.0]])
    form, symmetry = layout.split()
    lower = symmetry == "symmetric"
    pairs = [(i, j) for j in range(3) for i in range(3) if not lower or i >= j]
    if form == "coordinate":
        pairs = [p for p in pairs if A[p]]
        rows = [f"3 3 {len(pairs)}", *(f"{i + 1} {j + 1} {A[i, j]}" for i, j in pairs)]
    else:
        rows = ["3 3", *(str(A[p]) for p in pairs)]
    path = tmp_path / "a.mtx"
    path.write_text("\n".join([f"%%MatrixMarket matrix {form} real {symmetry}", "% a comment", *rows, ""]))
    assert np.array_equal(bc.read_matrix(path), A)
    path.write_text(path.read_text()[:-2])  # cut inside its last number, which is then another number
    with pytest.raises(ReadError, match="cut short"):
        bc.read_matrix(path)
    path.write_text("\n".join([f"%%MatrixMarket matrix {form} real {symmetry}", *rows[:-1]]))
    with pytest.raises(ReadError, match="cut short"):
        bc.read_matrix(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begins with"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 0", "complex"),
        ("%%MatrixMarket matrix coordinate real general\n", "no sizes"),
        ("%%MatrixMarket matrix coordinate real general\n1 1 1\n2 1 3.0", "outside"),
        ("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 x", "not a number"),
        ("%%MatrixMarket matrix coordinate real general\n1000000 1000000 0", "too large"),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(ReadError, match=words):
        bc.read_matrix(tmp_path / "a.mtx")


def test_sparse_matrices() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for K, M, nodes, interfaces in ((*beam(), {"start": 0, "end": 10}), (*network(), {"a": [0, 1, 2], "b": [3, 4, 5]})):
        dense = bc.flexible(K, M, nodes, interfaces, modes=4)
        found = bc.flexible(sparse.csr_matrix(K), sparse.csc_matrix(M), nodes, interfaces, modes=4)
        assert found.omega == pytest.approx(dense.omega, rel=1e-7)
        assert found.reduction.residual == pytest.approx(dense.reduction.residual, rel=1e-3, abs=1e-6)
        assert np.abs(found.A) == pytest.approx(np.abs(dense.A), rel=1e-4, abs=1e-6)


def test_invalid_sparse_matrices_raise() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    K, M, nodes = beam()
    for change, words in ((sparse.csr_matrix(np.triu(K)), "symmetric"), (sparse.csr_matrix(K.shape), "not connected")):
        with pytest.raises(ModelError, match=words):
            bc.flexible(change, sparse.csr_matrix(M), nodes, {"start": 0, "end": 10})


def softly(share: float, at: int = 62) -> Any:
    """A beam whose end is held by a fraction of its transverse stiffness, which is far below the axial one."""
    K = beam()[0]
    K[62, at] += share * K[62, 62]
    return K


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": np.zeros((3, 2))}, "nodes has the shape"),
        ({"nodes": np.zeros((5, 3))}, "rows per node"),
        ({"interfaces": {}}, "no interfaces"),
        ({"interfaces": {"start": 0, "end": 11}}, 'interface "end" is at 11'),
        ({"interfaces": {"start": 0, "end": [0, 1]}}, "share a node"),
        ({"modes": 1000}, "modes is 1000"),
        ({"below": 0.1}, "lowest frequency"),
        ({"K": np.zeros((66, 66))}, "not connected"),
        ({"K": beam()[0] + np.diag([1e6] + [0.0] * 65)}, r"to the ground: a rigid motion \(translation along x\)"),
        (
            {"K": beam()[0] + np.diag([0.0] * 63 + [1e6] + [0.0] * 2)},
            r"to the ground: a rigid motion \(rotation about x\)",
        ),
        ({"K": softly(1e-3)}, r"rigid motion \(translation along z\) .* at node 10"),
        ({"K": softly(-1e-3)}, "indefinite|to the ground"),
        ({"K": softly(1e-3, 50)}, "not symmetric"),
        ({"K": 1e15 * beam()[0]}, r"Hz, which nothing of 2 m has \(steel: 2.5e\+03 Hz"),
    ],
)
def test_structures_that_cannot_be(change: Any, words: str) -> None:
    K, M, nodes = beam()
    given = {"K": K, "M": M, "nodes": nodes, "interfaces": {"start": 0, "end": 10}} | change
    with pytest.raises(ModelError, match=words):
        bc.flexible(**given)


def test_rotation_of_a_solid_needs_three_nodes() -> None:
    K, M, places = network()
    with pytest.raises(ModelError, match="three or more"):
        bc.flexible(K, M, places, {"a": [0, 1], "b": [3, 4, 5]})


def test_a_structure_is_needed() -> None:
    with pytest.raises(ModelError, match="not a structure"):
        bc.Builder("b").flexible("bar", 3)  # type: ignore[arg-type]
