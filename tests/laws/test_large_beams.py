"""Beams as chains of rigid pieces: large deflections at rest and in motion, against references and other methods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError
from bending import SPUN, SPUN_LENGTH, at_rest

PRINCETON = {"length": 0.508, "force": 8.896, "E": 71.7e9, "nu": 0.31, "width": 12.3777e-3, "height": 3.2024e-3}


def clamped(**beam: Any) -> Any:
    b = bc.Builder("clamped", gravity=(0, 0, 0))
    b.beam("beam", large=True, **beam)
    b.joint("root", "fixed", "ground", "beam")
    return b.build()


def moved(m: Any, force: Any) -> Any:
    """Displacement of the end under a force."""
    q = at_rest(m, "beam.end", force)
    return (m.pose(q, frame="beam.end") - m.pose(m.neutral(), frame="beam.end"))[:3, 3]


def test_a_thick_cantilever_with_stretch_and_shear() -> None:
    h, material = 0.5, bc.Material(2.07e11, 0.3, 7850.0)
    m = clamped(
        length=2.0, section=bc.Section.rectangle(h, 0.1), material=material, motions=("stretch", "shear_y", "bend_z")
    )
    assert moved(m, (0, 5e8 * h**3, 0)) == pytest.approx([-0.15097103, 0.71056837, 0.0], rel=2e-3)


def princeton(degrees: float, elements: int, torsion: float) -> tuple[Any, Any]:
    """Displacement of the end, by a chain of pieces and by a rod."""
    p = PRINCETON
    Iy, Iz = p["width"] * p["height"] ** 3 / 12, p["height"] * p["width"] ** 3 / 12
    section = bc.Section.general(p["width"] * p["height"], Iy, Iz, torsion)
    material = bc.Material(p["E"], p["nu"], 2700.0)
    motions = ("twist", "bend_y", "bend_z")
    m = clamped(length=p["length"], section=section, material=material, elements=elements, motions=motions)
    angle = math.radians(degrees)
    force = p["force"] * np.array([0.0, math.cos(angle), math.sin(angle)])
    stiffness = np.array([material.G * torsion, p["E"] * Iy, p["E"] * Iz])
    return moved(m, force), rod(p["length"], stiffness, force)


def cells_torsion(width: float, height: float) -> float:
    """Torsion constant of a rectangle of 2 x 2 cells with quadratic warping, the default division of ANSYS.

    Warping is odd in y and in z, so on a quarter it consists of yz, y^2 z, y z^2 and y^2 z^2, each with a factor.
    """
    x, w = np.polynomial.legendre.leggauss(3)
    y, z = (v.ravel() for v in np.meshgrid((x + 1) * width / 4, (x + 1) * height / 4, indexing="ij"))
    area = np.outer(w * width / 4, w * height / 4).ravel()
    slopes = np.array([[i * y ** (i - 1) * z**j, j * y**i * z ** (j - 1)] for i in (1, 2) for j in (1, 2)])
    plain = np.array([-z, y])
    K = np.einsum("ikn,jkn,n->ij", slopes, slopes, area)
    f = np.einsum("ikn,kn,n->i", slopes, plain, area)
    return float(4 * (np.einsum("kn,kn,n->", plain, plain, area) - f @ np.linalg.solve(K, f)))


def rod(length: float, stiffness: Any, force: Any, steps: int = 50) -> Any:
    """Displacement of the end of an inextensible rod, by shooting: R' = R [k], k = R^T M / stiffness, M' = -t x F."""

    def rate(y: Any) -> Any:
        R, M = y[3:12].reshape(3, 3), y[12:]
        x, y_, z = R.T @ M / stiffness
        turn = np.array([[0, -z, y_], [z, 0, -x], [-y_, x, 0]])
        return np.concatenate([R[:, 0], (R @ turn).ravel(), -np.cross(R[:, 0], force)])

    def end(M: Any) -> Any:
        y, h = np.concatenate([np.zeros(3), np.eye(3).ravel(), M]), length / steps
        for _ in range(steps):
            a = rate(y)
            b = rate(y + h / 2 * a)
            c = rate(y + h / 2 * b)
            y = y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c))
        return y

    M = np.cross([0.95 * length, 0, 0], force)
    for _ in range(6):
        e = 1e-6
        J = np.transpose([(end(M + e * d)[12:] - end(M - e * d)[12:]) / (2 * e) for d in np.eye(3)])
        M = M - np.linalg.solve(J, end(M)[12:])
    return end(M)[:3] - [length, 0.0, 0.0]


# Displacements of the end, y and z, by ANSYS beam elements (Obrezkov, Mikkola, Matikainen 2022), by the load's angle.
PUBLISHED = {
    15.0: (1.061328706e-2, 4.208232124e-2),
    45.0: (8.837226265e-3, 0.108987937),
    75.0: (3.538889001e-3, 0.142194370),
    90.0: (0.0, 0.146245978),
}


@pytest.mark.parametrize("degrees", PUBLISHED)
def test_princetons_beam_as_published(degrees: float) -> None:
    """With the torsion constant of those elements, that of 2 x 2 cells, 9.6 % above 0.198 (Iyy + Izz)."""
    found, wanted = princeton(degrees, 32, cells_torsion(PRINCETON["width"], PRINCETON["height"]))
    assert wanted[1:] == pytest.approx(PUBLISHED[degrees], rel=5e-4, abs=1e-9)
    assert found[1:] == pytest.approx(PUBLISHED[degrees], rel=5e-3, abs=1e-9)


@pytest.mark.parametrize("elements", [12, 24])
def test_princetons_beam_bent_both_ways_and_twisted(elements: int) -> None:
    """With 0.198 (Iyy + Izz), as in other programs; Exudyn gives 0.00895 and 0.10897 with 16 elements."""
    w, h = PRINCETON["width"], PRINCETON["height"]
    found, wanted = princeton(45.0, elements, 0.198 * w * h * (w * w + h * h) / 12)
    assert wanted[1:] == pytest.approx([0.0089763, 0.10911], rel=1e-4)
    assert found == pytest.approx(wanted, rel=5e-3 * (24 / elements) ** 2)


def test_torsion_of_the_beam_of_princeton() -> None:
    """With the exact constant of a rectangle, 6 % above the one and 3 % below the other."""
    w, h = PRINCETON["width"], PRINCETON["height"]
    exact = bc.Section.rectangle(w, h).numbers.J
    assert exact == pytest.approx(1.1341e-10, rel=1e-3)
    assert cells_torsion(w, h) / exact == pytest.approx(1.0333, abs=1e-3)
    assert 0.198 * w * h * (w * w + h * h) / 12 / exact == pytest.approx(0.9427, abs=1e-3)


def test_spin_up() -> None:
    """A flywheel of 1e12 kg m^2 prescribes the rotation of the base. References: linear with centrifugal stiffening."""
    b = bc.Builder("spun", gravity=(0, 0, 0))
    b.beam("beam", length=SPUN_LENGTH, section=SPUN, motions=("bend_z",), theory="euler", large=True)
    b.joint("base", "revolute", "ground", "beam", armature=1e12)
    m = b.build()

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return {"base": 1e12 * 0.4 * (1 - bc.cos(2 * math.pi / 15 * t))}

    run = bc.simulate(bc.system(m, control=control), 15.0, step=2.5e-4, every=0.01)
    X, angle = m.pose(run.q, frame="beam.end"), run["base.q"]
    across = np.cos(angle) * X[:, 1, 3] - np.sin(angle) * X[:, 0, 3]
    assert angle[-1] == pytest.approx(45.0, abs=1e-6)
    assert across.min() == pytest.approx(-0.574373, abs=2e-3)
    assert run.t[across.argmin()] == pytest.approx(6.76, abs=0.02)
    assert across[500] == pytest.approx(-0.468782, abs=2e-3)
    assert across[1000] == pytest.approx(-0.362849, abs=2e-3)


def test_a_spinning_beam_stretches() -> None:
    b = bc.Builder("spun", gravity=(0, 0, 0))
    b.beam("beam", length=SPUN_LENGTH, section=SPUN, motions=("stretch",), theory="euler", large=True)
    b.joint("base", "revolute", "ground", "beam")
    m = b.build()
    q, v = m.neutral(), np.zeros(m.nv)
    v[0] = 6.0

    def balance(q: Any) -> Any:
        return m.inverse_dynamics(q, v, np.zeros(m.nv))[1:]

    for _ in range(5):
        J = np.transpose([(balance(q + 1e-6 * d) - balance(q - 1e-6 * d)) / 2e-6 for d in np.eye(m.nv)[1:]])
        q[1:] -= np.linalg.solve(J, balance(q))
    assert q[1:].sum() == pytest.approx(5.14317e-4, rel=2e-3)


def test_energy_stays_and_damping_takes_it() -> None:
    q0 = {"beam.1.bend_z": 0.1, "beam.2.twist": 0.2}
    beam = {"length": 1.0, "section": bc.Section.circle(0.02), "material": bc.Material.steel(), "elements": 3}
    beam["motions"] = ("twist", "bend_y", "bend_z")
    run = bc.simulate(clamped(**beam), 0.01, q0=q0, step=1e-6, every=1e-3)
    assert run.residuals()["energy"] < 1e-8
    damped = bc.simulate(clamped(**beam, rayleigh=(0.0, 1e-3)), 0.01, q0=q0, step=1e-6, every=1e-3)
    assert np.abs(damped.q[-1]).max() < 0.5 * np.abs(run.q[-1]).max()


def test_a_step_that_its_stiffest_joints_do_not_allow() -> None:
    m = clamped(
        length=1.0, section=bc.Section.circle(0.02), material=bc.Material.steel(), elements=4, motions=("bend_y",)
    )
    with pytest.raises(bc.InputError, match=r'body "beam" has a mode of .* Hz.*step=.*rodas4.*fewer motions'):
        bc.simulate(m, 0.1, step=1e-3)


def test_drives_steppers_and_gradients_reject_the_same_step() -> None:
    bar = {"length": 1.0, "section": bc.Section.circle(0.02), "material": bc.Material.steel(), "elements": 4}
    m = clamped(**bar, motions=("bend_y",))
    with pytest.raises(bc.InputError, match=r'"beam" has a mode of .* Hz.*rate=\d+ or more, or integrator=rodas4'):
        bc.Drive(m, rate=1000.0)
    with pytest.raises(bc.InputError, match=r'"beam" has a mode of .* Hz.*step=.*rodas4'):
        bc.stepper(m, every=0.01, step=1e-3)
    with pytest.raises(bc.InputError, match=r'"beam" has a mode of .* Hz.*step=.*rodas4'):
        bc.gradient(m, 0.01, final=lambda y: y[0], step=1e-3)


def test_beam_mass_and_node_positions_are_exact() -> None:
    b = bc.Builder("slanted")
    taper = (bc.Section.tube(0.2, 0.01), bc.Section.tube(0.1, 0.01))
    b.beam(
        *("mast",), length=3.0, section=taper, material=bc.Material.steel(), start=(1, 2, 3), axis=(0, 3, 4),
        side=(1, 0, 0), elements=5, nodes={"end": 1.0, "stay": 0.5}, large=True,
    )  # fmt: skip
    b.joint("foot", "spherical", "ground", "mast", point=(1, 2, 3))
    m = b.build()
    area = math.pi * (0.01 * (0.2 + 0.1) / 2 - 0.01**2)
    assert sum(body.mass for body in m.bodies) == pytest.approx(7850.0 * area * 3.0)
    q = m.neutral()
    assert m.pose(q, frame="mast.stay")[:3, 3] == pytest.approx([1, 2.9, 4.2])
    assert m.pose(q, frame="mast.end")[:3, 3] == pytest.approx([1, 3.8, 5.4])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axis": (0, 0, 0)}, "axis is"),
        ({"side": (2, 0, 0)}, "side is"),
        ({"motions": ("wobble",)}, "wobble"),
        ({"motions": ()}, "no motions"),
        ({"nodes": {"tip": 1.5}}, 'node "tip" is at 1.5'),
        ({"rayleigh": (1.0, 0.0)}, "damped by beta"),
        ({"length": 0.0}, "length"),
    ],
)
def test_beams_that_cannot_be(change: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        clamped(**{"length": 1.0, "section": bc.Section.circle(0.1), "material": bc.Material.steel()} | change)
