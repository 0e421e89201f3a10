"""Random structures, written and read back, give the same body."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba
from bellcrank.structures.beam import Beam


def structure(rng: Any) -> tuple[Any, dict[str, int]]:
    """Return a bar of any size, section, material and orientation, from its matrices."""
    n, length = int(rng.integers(2, 9)), 10 ** rng.uniform(-2, 1.5)
    thick = length * 10 ** rng.uniform(-2.5, -1)
    sections = [
        bc.Section.circle(thick),
        bc.Section.rectangle(thick, 2 * thick),
        (bc.Section.box(thick, 1.5 * thick, thick / 8), bc.Section.box(thick / 2, thick, thick / 8)),
    ]
    material = bc.Material(10 ** rng.uniform(9, 11.5), rng.uniform(0, 0.45), 10 ** rng.uniform(2.5, 4))
    beam = Beam(length, sections[int(rng.integers(3))], material, n)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.linalg.det(R)
    T = np.kron(np.eye(2 * (n + 1)), R)
    K, M = (T @ A @ T.T for A in beam.matrices)
    names = {"foot": 0, "tip": n} | ({"middle": n // 2} if n > 3 else {})
    return bc.flexible(K, M, beam.nodes @ R.T + rng.normal(size=3), names, modes=int(rng.integers(1, 4))), names


def masses(s: Any, q: Any) -> Any:
    """Return the eigenvalues of its mass matrix in a bent configuration, on a hinge."""
    b = bc.Builder("swing")
    b.flexible("rod", s)
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0.3))
    m = b.build()
    return np.linalg.eigvalsh(np.array(crba.mass_matrix(m.tree, q[: m.nq].tolist()), float))


@pytest.mark.parametrize("seed", range(5))
def test_files_keep_the_body(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    s, names = structure(rng)
    bc.write_sid(tmp_path / "a.SID_FEM", s)
    again = bc.read_sid(tmp_path / "a.SID_FEM", {name: i + 1 for i, name in enumerate(names)})
    q = 1e-3 * np.ptp(s.grid) * rng.normal(size=40)
    for x in (0.0 * q, q):
        assert np.allclose(masses(again, x), masses(s, x), rtol=1e-10, atol=1e-12 * s.mass)
    assert np.allclose(again.omega, s.omega, rtol=1e-10)
    bc.write_fem(tmp_path / "a.fem", s)
    lumped = bc.read_fem(tmp_path / "a.fem", {name: i + 1 for name, i in names.items()})
    assert np.allclose(lumped.omega, s.omega, rtol=1e-10)
    assert lumped.mass == pytest.approx(s.mass, rel=1e-12)
