"""MBDyn's .fem files: written, read again, and truncated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError, ReadError
from bellcrank.structures.beam import Beam

BAR = Beam(1.0, bc.Section.rectangle(0.02, 0.03), bc.Material.steel(), elements=12)


def lumped() -> Any:
    """Return a bar with lumped masses at its nodes, which the file can store without loss."""
    K, M = BAR.matrices
    diagonal = np.zeros(len(M))
    for d in range(3):
        diagonal[d::6] = M[d::6, d::6].sum(axis=1)
        diagonal[3 + d :: 6] = M.diagonal()[3 + d :: 6]
    return bc.flexible(K, np.diag(diagonal), BAR.nodes, {"eye": 0, "pin": 12}, modes=2, below=1500.0)


def swinging(structure: Any, pin: str = "pin") -> Any:
    b = bc.Builder("bar")
    b.flexible("bar", structure)
    b.joint("hinge", "revolute", "ground", "bar", axis=(0, 1, 0))
    b.body("bob", mass=0.5, com=(1.1, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("elbow", "revolute", f"bar.{pin}", "bob", point=(1, 0, 0), axis=(0, 1, 0))
    return b.build()


def test_written_structure_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bar.fem"
    structure = lumped()
    bc.write_fem(path, structure)
    again = bc.read_fem(path, {"eye": 1, "pin": 13})
    assert again.omega == pytest.approx(structure.omega, rel=1e-12)
    one, other = (swinging(s) for s in (structure, again))
    q, v, tau = one.random(3)
    signs = np.ones(one.nv)
    for k in one.tree.flexible[0].v_index:  # the sign of a mode is arbitrary
        probe = np.zeros(one.nq)
        probe[k] = 1e-3
        a, b = (m.pose(probe, "bar.pin")[:3, 3] - m.pose(np.zeros(m.nq), "bar.pin")[:3, 3] for m in (one, other))
        signs[k] = 1.0 if a @ b >= 0 else -1.0
    first = one.forward_dynamics(q, v, tau)
    second = signs * other.forward_dynamics(signs * q, signs * v, signs * tau)
    assert second == pytest.approx(first, rel=1e-7, abs=1e-7 * np.abs(first).max())


def test_truncated_file_raises(tmp_path: Path) -> None:
    path = tmp_path / "bar.fem"
    bc.write_fem(path, lumped())
    whole = path.read_text()
    for n in range(0, len(whole) - 40, len(whole) // 60):
        path.write_text(whole[:n])
        with pytest.raises(ReadError, match=r"cut short|record group 1|not a number"):
            bc.read_fem(path, {"eye": 1})


def test_errors_in_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bar.fem"
    bc.write_fem(path, lumped())
    for at, text in (({}, "no interfaces"), ({"eye": 99}, "no node")):
        with pytest.raises(ModelError, match=text):
            bc.read_fem(path, at)
    with pytest.raises(ReadError, match="No such file"):
        bc.read_fem(tmp_path / "none.fem", {"eye": 1})
