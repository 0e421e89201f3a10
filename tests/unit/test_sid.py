"""Wallrapp's standard input data: a written body is read back unchanged, and a truncated file raises an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import rnea
from bellcrank.errors import ModelError, ReadError
from bellcrank.structures.beam import Beam
from bellcrank.structures.modes import beam_modes
from bellcrank.structures.sid_text import block_lines

TAPER = (bc.Section.box(0.08, 0.12, 0.006), bc.Section.box(0.05, 0.06, 0.006))


def structure() -> Any:
    """Return a structure with bending in both planes, twist, stretch, and second-order effects of bending."""
    beam = Beam(2.0, TAPER, bc.Material.steel(), 6)
    motions = ("stretch", "twist", "bend_y", "bend_z")
    return beam_modes(beam, motions, {"half": 0.5, "end": 1.0}, 2, True, np.inf)


def mechanism(given: Any) -> Any:
    b = bc.Builder("m")
    b.flexible("arm", given, rotation=[[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    b.joint("base", "floating", "ground", "arm")
    b.body("tool", 3.0, (0.1, 2.1, 0), (0.1, 0.1, 0.1))
    b.joint("wrist", "revolute", "arm.end", "tool", point=(0, 2, 0), axis=(0, 1, 0))
    return b.build()


def test_body_survives_a_round_trip(tmp_path: Path) -> None:
    given = structure()
    bc.write_sid(tmp_path / "arm.SID_FEM", given)
    back = bc.read_sid(tmp_path / "arm.SID_FEM", {"half": 1, "end": 2})
    assert back.omega == pytest.approx(given.omega, rel=1e-12)
    assert back.reduction.effective == pytest.approx(given.reduction.effective, rel=1e-9, abs=1e-12)
    first, second = mechanism(given), mechanism(back)
    for seed in range(3):
        q, v, a = first.random(seed)
        q[list(first.tree.flexible[0].q_index)] *= 10
        needed = [np.array(rnea.inverse_dynamics(m.tree, q.tolist(), v.tolist(), a.tolist())) for m in (first, second)]
        assert needed[1] == pytest.approx(needed[0], rel=1e-10, abs=1e-10 * np.abs(needed[0]).max())


def test_damping_comes_along(tmp_path: Path) -> None:
    bc.write_sid(tmp_path / "arm.SID_FEM", structure(), damping=0.02)
    m = mechanism(bc.read_sid(tmp_path / "arm.SID_FEM", {"half": 1, "end": 2}))
    body = m.flexible[0]
    inertia = np.einsum("kkii->k", np.array(body.D))
    assert np.array(body.damping) == pytest.approx(0.04 * np.sqrt(np.array(body.stiffness) * inertia), rel=1e-12)


def two_modes(Me: Any, Ke: Any, De: Any) -> str:
    """Return two particles of 1 kg, at x = 1 and 2, that move along y and z with two modes.

    The format is that of another program.
    """
    r, P = np.array([[1.0, 0, 0], [2.0, 0, 0]]), np.array([[[0, 1.0, 0], [0, 0, 0.5]], [[0, 0.2, 0], [0, 0, 1.0]]])
    zero, J = np.zeros((2, 2, 2)), np.array([[0.0], [5], [5], [0], [0], [0]])
    lines = ["1 2 : title", "part", "new modal =", "refmod", "mass = 2.0D+00", "nelastq = 2", "end refmod", "frame"]
    lines += ["new node = 77", *block_lines("origin", r[1][:, None], P[:, 1].T[:, :, None], 2)]
    lines += [
        *block_lines("phi", P[:, 1].T, np.zeros((3, 2, 2)), 2),
        *block_lines("psi", np.zeros((3, 2)), np.zeros((3, 2, 2)), 2),
    ]
    lines += ["end node", "end frame"]
    B = np.einsum("ni,knj->kij", r, P)
    Gr = np.hstack([2 * (np.trace(b) * np.eye(3) - b.T) for b in B])
    Cr = np.einsum("kni->ki", np.cross(r, P))
    for name, m0, m1 in (
        ("mdCM", np.array([[3.0], [0], [0]]), np.zeros((3, 2, 1))), ("J", J, np.zeros((6, 2, 1))),
        ("Ct", P.sum(axis=1), np.zeros((2, 2, 3))), ("Cr", Cr, np.zeros((2, 2, 3))), ("Me", Me, zero),
        ("Gr", Gr, np.zeros((3, 2, 6))), ("Oe", np.zeros((2, 6)), np.zeros((2, 2, 6))),
        ("ksigma", np.zeros((2, 2)), zero), ("Ke", Ke, zero), ("De", De, zero),
    ):  # fmt: skip
        lines += block_lines(name, m0, m1, 2)
    return "\n".join([*lines, "end modal", "end part", ""])


ME, KE = np.array([[1.04, 0.1], [0.1, 1.25]]), np.array([[5e3, -1e3], [-1e3, 4e3]])


def test_coupled_modes_are_diagonalised(tmp_path: Path) -> None:
    path = tmp_path / "two.SID_FEM"
    path.write_text(two_modes(ME, KE, 0.001 * KE))
    found = bc.read_sid(path, {"tip": 77})
    assert np.sort(found.omega**2) == pytest.approx(np.sort(np.linalg.eigvals(np.linalg.solve(ME, KE))), rel=1e-12)
    assert found.damping == pytest.approx(0.001 * found.omega**2, rel=1e-12)
    # The static deflection of the tip under a force there does not depend on the modes.
    shift = found.nodes["tip"][0]
    P = np.array([[0, 0, 0.5], [0, 0, 1.0]])
    assert shift.T @ np.diag(1 / found.omega**2) @ shift == pytest.approx(P.T @ np.linalg.solve(KE, P), rel=1e-12)
    assert found.com == pytest.approx([1.5, 0, 0])
    assert found.inertia == pytest.approx(np.diag([0, 5, 5]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("end Ke", "", "end Ke"),
        ("nelastq = 2", "nelastq = 3", "expected 3 x 1 with 3|with 3"),
        ("mass = 2.0D+00", "mass = -2", "more than 0"),
        ("mass = 2.0D+00", "mass = two", "not a number"),
        ("mass = 2.0D+00", "mass = 1e999", "not finite"),
        ("new node = 77", "new node = 78", "has no node"),
        ("m0(  1,  1)", "m0(  9,  1)", "outside"),
        ("  mdCM\n", "  mdXX\n", "mdCM|mdXX"),
    ],
)
def test_files_that_cannot_be(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "two.SID_FEM"
    text = two_modes(ME, KE, np.zeros((2, 2)))
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises((ReadError, ModelError), match=words):
        bc.read_sid(path, {"tip": 77})


def test_truncated_or_foreign_files_raise(tmp_path: Path) -> None:
    path, text = tmp_path / "two.SID_FEM", two_modes(ME, KE, np.zeros((2, 2)))
    lines = text.splitlines()
    for n in range(0, len(lines) - 1, 9):
        path.write_text("\n".join(lines[:n]))
        with pytest.raises(ReadError, match=r"cut short|has no"):
            bc.read_sid(path, {"tip": 77})
    path.write_text(two_modes(ME, KE, np.array([[1.0, 0], [0, 0]])))
    with pytest.raises(ReadError, match="couples modes"):
        bc.read_sid(path, {"tip": 77})
    path.write_text(two_modes(ME, 0 * KE, np.zeros((2, 2))))
    with pytest.raises(ReadError, match="no stiffness"):
        bc.read_sid(path, {"tip": 77})
    with pytest.raises(ReadError, match="No such file"):
        bc.read_sid(tmp_path / "none", {"tip": 77})
    bc.write_sid(path, structure())
    found = bc.read_sid(path, {"a": 1})
    with pytest.raises(ModelError, match="no masses of its nodes"):
        bc.write_fem(tmp_path / "x.fem", found)
