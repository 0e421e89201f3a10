"""Denavit-Hartenberg tables agree with the matrix products that they stand for, and with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.formats import DhRow, from_dh, from_saha, from_wong, read
from bellcrank.model import Mechanism
from bellcrank.zoo import data, puma600

Array = np.ndarray[Any, Any]
TABLE = Path(__file__).parent / "data/arm_modified.toml"

ROWS = [
    DhRow("R", 0.2, 0.3, 0.1, 0.5, 4.0, (0.01, 0.02, -0.1), (0.05, 0.04, 0.03, 0.001, 0.002, 0.003)),
    DhRow("P", -0.4, 0.2, 0.3, -1.1, 3.0, (0.2, 0.01, 0.02), (0.01, 0.08, 0.08)),
    DhRow("R", 1.0, -0.1, 0.2, math.pi / 2, 2.0, (0.1, 0.0, 0.05), (0.02, 0.03, 0.04)),
    DhRow("R", 0.0, 0.4, 0.0, 0.7, 1.0, (0.0, 0.05, 0.0), (0.01, 0.01, 0.01)),
]


def numbers(rows: Sequence[Any]) -> Array:
    return np.array([[float(x) for x in row] for row in rows])


def Rz_Tz(theta: float, d: float) -> Array:
    c, s = math.cos(theta), math.sin(theta)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])


def Rx_Tx(alpha: float, a: float) -> Array:
    c, s = math.cos(alpha), math.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def textbook(rows: Sequence[DhRow], q: Sequence[float], convention: str) -> list[Array]:
    """Return the link frames by the matrix products of the textbooks."""
    X, found = np.eye(4), []
    for row, x in zip(rows, q, strict=True):
        joint = Rz_Tz(row.theta + (x if row.joint == "R" else 0), row.d + (x if row.joint == "P" else 0))
        twist = Rx_Tx(row.alpha, row.a)
        X = X @ joint @ twist if convention == "classic" else X @ twist @ joint
        found.append(X)
    return found


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_link_frames_are_the_textbooks(convention: str) -> None:
    m = from_dh("arm", ROWS, convention)
    q = [0.3, -0.2, 0.8, -1.1]
    for i, X in enumerate(textbook(ROWS, q, convention), 1):
        np.testing.assert_allclose(numbers(kinematics.pose(m.tree, q, f"link{i}")), X, atol=1e-14)


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_mass_matrix_is_that_of_the_energy(convention: str) -> None:
    """M is that of the kinetic energy, from finite differences of the textbook frames."""
    m = from_dh("arm", ROWS, convention)
    q, h = np.array([0.3, -0.2, 0.8, -1.1]), 1e-6
    M = np.zeros((4, 4))
    now = textbook(ROWS, q.tolist(), convention)
    for i, row in enumerate(ROWS):
        xx, yy, zz, xy, xz, yz = (*row.inertia, 0, 0, 0)[:6]
        I, com, Jv, Jw = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), [*row.com, 1], [], []
        for k in range(4):
            up, down = (textbook(ROWS, (q + s * h * np.eye(4)[k]).tolist(), convention)[i] for s in (1, -1))
            rate = (up - down) / (2 * h)
            spin = now[i][:3, :3].T @ rate[:3, :3]
            Jv.append((rate @ com)[:3])
            Jw.append([spin[2, 1], spin[0, 2], spin[1, 0]])
        A, B = np.array(Jv), np.array(Jw)
        M += float(row.mass or 0) * A @ A.T + B @ I @ B.T
    np.testing.assert_allclose(numbers(crba.mass_matrix(m.tree, q.tolist())), M, atol=1e-8)


def test_gravity_torque_is_the_slope_of_the_potential() -> None:
    m = from_dh("arm", ROWS, "classic")
    q, h = np.array([0.3, -0.2, 0.8, -1.1]), 1e-6

    def potential(x: Array) -> float:
        frames = textbook(ROWS, x.tolist(), "classic")
        return sum(9.81 * float(r.mass or 0) * (X @ [*r.com, 1])[2] for r, X in zip(ROWS, frames, strict=True))

    slope = [(potential(q + h * e) - potential(q - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(rnea.rigid_forces(m.tree, q.tolist(), [0.0] * 4, [0.0] * 4), slope, atol=1e-7)


def test_right_angles_are_exact() -> None:
    m = from_dh("arm", [DhRow(alpha=90, theta=180, mass=1.0)], degrees=True)
    assert m.joints[0].rotation == ((-1, 0, 0), (0, 0, -1), (0, -1, 0))
    m = from_dh("arm", [DhRow(alpha=1.570796325, mass=1.0)])
    assert m.joints[0].rotation == ((1, 0, 0), (0, 0, -1), (0, 1, 0))
    assert any("taken as pi/2" in line.outcome for line in m.report.lines)


def test_table_file() -> None:
    m = read(TABLE)
    assert (m.name, [j.name for j in m.joints]) == ("arm", ["shoulder", "joint2", "joint3"])
    assert [j.kind for j in m.joints] == ["revolute", "revolute", "prismatic"]
    assert (m.joints[0].damping, m.joints[0].limits.lower, m.joints[1].armature) == (0.4, -2.0, 0.1)
    q = [0.1, 0.2, 0.3]
    rows = [
        DhRow("R", 0, 0.3),
        DhRow("R", math.radians(30), 0.12, 0.05, -math.pi / 2),
        DhRow("P", math.pi / 2, 0.25, 0.4, math.pi / 2),
    ]
    np.testing.assert_allclose(
        numbers(kinematics.pose(m.tree, q, "link3")), textbook(rows, q, "modified")[2], atol=1e-15
    )
    assert [b.mass for b in read(TABLE, lock=["joint3"]).bodies] == [4.0, 4.5]


def test_classic_and_modified_tables_of_one_arm() -> None:
    """Classic and modified tables of one arm agree.

    The classic frame of link i is the modified one before joint i + 1: shift the columns, turn the inertias.
    """
    modified = [DhRow("R", 0.2, 0.3, 0.0, 0.0), DhRow("P", 0.5, 0.1, 0.05, -1.2), DhRow("R", 0.1, 0.12, 0.4, 0.6)]
    bodies = [
        (4.0, (0.01, 0.02, -0.1), np.diag([0.05, 0.04, 0.03])),
        (3.0, (0.2, 0.0, 0.1), np.diag([0.01, 0.08, 0.08])),
        (1.0, (0.1, 0.1, 0.1), np.diag([0.02, 0.02, 0.01])),
    ]
    first, second = [], []
    for i, (row, (mass, com, I)) in enumerate(zip(modified, bodies, strict=True)):
        first.append(DhRow(row.joint, row.theta, row.d, row.a, row.alpha, mass, com, I))
        after = modified[i + 1] if i < 2 else DhRow()
        X = np.linalg.inv(Rx_Tx(after.alpha, after.a))
        R = X[:3, :3]
        second.append(DhRow(row.joint, row.theta, row.d, after.a, after.alpha, mass, (X @ [*com, 1])[:3], R @ I @ R.T))
    one, two = from_dh("arm", first, "modified"), from_dh("arm", second, "classic")
    q, v, a = [0.3, -0.2, 0.8], [0.5, 0.1, -0.7], [1.0, -1.0, 0.5]
    np.testing.assert_allclose(rnea.rigid_forces(one.tree, q, v, a), rnea.rigid_forces(two.tree, q, v, a), atol=1e-12)


def test_wongs_hinges_agree_with_his_denavit_hartenberg_table() -> None:
    """Wong's hinges agree with his Denavit-Hartenberg table, so the convention is read correctly.

    Eq 3.40: l[i] = k[i] + [a, b sin(alpha), -b cos(alpha)] of the next joint.
    """
    puma = data("puma600")
    for i in range(5):
        alpha, a, b = math.radians(puma["alpha_deg"][i + 1]), puma["a"][i + 1], puma["b"][i + 1]
        expected = np.add(puma["k"][i], [a, b * math.sin(alpha), -b * math.cos(alpha)])
        np.testing.assert_allclose(puma["l"][i], expected, atol=1e-12)


def test_wong_is_the_modified_convention() -> None:
    """Wong's convention is the modified one with the opposite sign of b: d = -b."""
    puma = data("puma600")
    alpha = [math.radians(x) for x in puma["alpha_deg"]]
    wong = from_wong("puma", alpha=alpha, mass=puma["mass"], k=puma["k"], l=puma["l"], inertia=puma["inertia"])
    rows = [
        DhRow("R", 0.0, -b, a, twist, mass, np.negative(k), inertia)
        for b, a, twist, mass, k, inertia in zip(
            puma["b"], puma["a"], alpha, puma["mass"], puma["k"], puma["inertia"], strict=True
        )
    ]
    same_dynamics(wong, from_dh("puma", rows))


def test_sahas_puma_is_wongs_but_for_two_numbers() -> None:
    """Saha's PUMA equals Wong's except for two numbers: m_2 = 15.761 and r_3x = -0.02.

    They are misprints or noise: with Wong's values all mass matrices agree to rounding.
    """
    theirs, ours, wong = data("puma600"), data("puma_saha"), puma600()

    def saha(**changed: Any) -> Mechanism:
        given = {key: (ours | changed)[key] for key in ("a", "b", "mass", "r", "inertia", "joints")}
        return from_saha("puma", alpha=[math.radians(x) for x in ours["alpha_deg"]], **given)

    r = [list(x) for x in ours["r"]]
    assert r[2][0] == -0.02
    assert [x for x, y in zip(ours["mass"], theirs["mass"], strict=True) if x != y] == [15.761]
    r[2][0] = 0.02
    same_dynamics(wong, saha(mass=theirs["mass"], r=r))
    with pytest.raises(AssertionError):
        same_dynamics(wong, saha(mass=theirs["mass"]))
    with pytest.raises(AssertionError):
        same_dynamics(wong, saha(r=r))


def test_wongs_trees() -> None:
    """A parent list and hinges by pair give the frames of the torso at the joints of a person."""
    torso = data("torso")
    pairs = {(int(k[0]), int(k[2])): v for k, v in torso["l"].items()}
    m = from_wong("torso", alpha=np.radians(torso["alpha_deg"]).tolist(), mass=torso["mass"], k=torso["k"], l=pairs,
                  inertia=[[1, 1, 1]] * 6, parent=torso["parent"], names=torso["names"])  # fmt: skip
    assert m.parent == (-1, 0, 0, 2, 0, 4)

    def at(frame: str) -> Array:
        return numbers(kinematics.pose(m.tree, [0.0] * 6, frame))[:3, 3]

    np.testing.assert_allclose(at("head"), (0, 0, 0.42 + 0.242), atol=1e-15)
    for side, arm in ((0.15, "A"), (-0.15, "B")):  # arms are attached at the shoulders
        np.testing.assert_allclose(at(f"upper arm {arm}"), (side, 0, 0.57), atol=1e-15)
        np.testing.assert_allclose(at(f"lower arm {arm}"), (side, 0, 0.57 - 0.45), atol=1e-15)


def same_dynamics(one: Mechanism, two: Mechanism) -> None:
    for seed in range(3):
        q, v, a = (x.tolist() for x in one.random(seed))
        np.testing.assert_allclose(
            numbers(crba.mass_matrix(one.tree, q)), numbers(crba.mass_matrix(two.tree, q)), atol=1e-13
        )
        np.testing.assert_allclose(
            rnea.rigid_forces(one.tree, q, v, a), rnea.rigid_forces(two.tree, q, v, a), atol=1e-11
        )
