"""Finite-element beams: closed forms, order of convergence, and errors for invalid input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bellcrank.errors import ModelError
from bellcrank.structures.beam import Beam
from bellcrank.structures.modes import beam_modes
from bellcrank.structures.reduction import check_units, frequencies, reduce_structure
from bellcrank.structures.section import Material, Profile, Section

SLENDER = Profile(EA=1e7, GAy=1e7, GAz=1e7, GJ=1e3, EIy=3e3, EIz=2e3, rhoA=4.0, rhoIy=1e-3, rhoIz=1e-3)
PLANE = (1, 5)  # displacements in the xy plane: v, and the rotation about z


def root(f: Any, x: float) -> float:
    """Return the root of f near x, by Newton's method with differences."""
    for _ in range(50):
        x -= f(x) / ((f(x + 1e-7) - f(x - 1e-7)) / 2e-7)
    return float(x)


CLAMPED = [root(lambda x: math.cos(x) + 1 / math.cosh(x), x) for x in (1.9, 4.7, 7.85, 11.0, 14.1)]
FREE = [root(lambda x: math.cos(x) - 1 / math.cosh(x), x) for x in (4.7, 7.85, 11.0, 14.1, 17.3)]
PINNED = [n * math.pi for n in range(1, 6)]
SUPPORTS = {"cantilever": (CLAMPED, [0, 1], 0), "free": (FREE, [], 2), "pinned": (PINNED, [0, -2], 0)}


def bending(beam: Beam, held: list[int]) -> Any:
    """Return the frequencies in the xy plane; held: which displacements are fixed, two a node."""
    K, M = beam.matrices
    own = [6 * node + d for node in range(beam.elements + 1) for d in PLANE]
    n = len(own)
    return frequencies(K[np.ix_(own, own)], M[np.ix_(own, own)], [k % n for k in held])


@pytest.mark.parametrize("support", SUPPORTS)
def test_five_frequencies(support: str) -> None:
    roots, held, rigid = SUPPORTS[support]
    L, p = 2.5, SLENDER
    wanted = np.array(roots) ** 2 / L**2 * math.sqrt(p.EIz / p.rhoA)
    error = {}
    for elements in (20, 40, 120):
        found = bending(Beam(L, p, elements=elements, theory="euler"), held)[rigid : rigid + 5]
        error[elements] = np.abs(found / wanted - 1)
    assert error[120].max() < 1e-6
    assert np.all(np.abs(np.log2(error[20] / error[40])[2:] - 4) < 0.1)  # fourth order, above rounding


def test_bending_along_z_stretch_and_twist() -> None:
    L, p = 2.5, SLENDER
    K, M = Beam(L, p, elements=80, theory="euler").matrices

    def first(*directions: int) -> float:
        own = [6 * node + d for node in range(81) for d in directions]
        held = range(len(directions))
        return float(frequencies(K[np.ix_(own, own)], M[np.ix_(own, own)], held)[0])

    assert first(2, 4) == pytest.approx(CLAMPED[0] ** 2 / L**2 * math.sqrt(p.EIy / p.rhoA), rel=1e-7)
    assert first(0) == pytest.approx(math.pi / 2 / L * math.sqrt(p.EA / p.rhoA), rel=5e-5)
    assert first(3) == pytest.approx(math.pi / 2 / L * math.sqrt(p.GJ / (p.rhoIy + p.rhoIz)), rel=5e-5)


def test_a_pinned_beam_with_shear() -> None:
    """The frequencies are those of S. P. Timoshenko's equation of 1921 with v = sin(n pi x/L).

    The equation is quadratic in omega^2.
    """
    L = 1.0
    p = Profile.of(Section.rectangle(0.1, 0.08), Material.steel())
    wanted = []
    for k in (math.pi / L, 2 * math.pi / L):
        a = p.rhoA * p.rhoIz / p.GAy
        b = p.rhoA + k**2 * (p.rhoIz + p.EIz * p.rhoA / p.GAy)
        wanted.append(math.sqrt((b - math.sqrt(b**2 - 4 * a * p.EIz * k**4)) / (2 * a)))
    coarse, fine = (bending(Beam(L, p, elements=n), [0, -2])[:2] for n in (40, 80))
    assert np.log2((coarse - wanted) / (fine - wanted)) == pytest.approx([2, 2], abs=0.02)  # second order
    assert (4 * fine - coarse) / 3 == pytest.approx(wanted, rel=1e-6)


def test_a_tapered_cantilever_under_a_load_at_its_end() -> None:
    """The deflection of a beam whose height halves along its length is the integral of (L - x)^2 / EI."""
    L, F, material = 2.0, 10.0, Material.steel()
    beam = Beam(L, (Section.rectangle(0.05, 0.1), Section.rectangle(0.05, 0.05)), material, 60, "euler")
    K, _ = beam.matrices
    load = np.zeros(len(K))
    load[-4] = F
    found = np.linalg.solve(K[6:, 6:], load[6:])[-4]
    x = np.linspace(0, L, 200_001)
    I = 0.05 * (0.1 - 0.05 * x / L) ** 3 / 12
    assert found == pytest.approx(np.trapezoid(F * (L - x) ** 2 / (material.E * I), x), rel=1e-5)


def test_a_load_at_the_end_is_exact_with_one_element() -> None:
    L, F, p = 2.0, 10.0, Profile.of(Section.box(0.2, 0.3, 0.01), Material.steel())
    K, _ = Beam(L, p, elements=1).matrices
    load = np.array([0, F, 0, 0, 0, 0])
    assert np.linalg.solve(K[6:, 6:], load)[1] == pytest.approx(F * L**3 / (3 * p.EIz) + F * L / p.GAy, rel=1e-12)


def test_sections() -> None:
    assert pytest.approx(0.1405770, rel=1e-6) == Section.rectangle(1.0, 1.0).numbers.J
    assert pytest.approx((1 - 0.630249 / 10) / 3 * 10, rel=1e-6) == Section.rectangle(10.0, 1.0).numbers.J
    thick = Section.tube(0.2, 0.1).numbers
    assert thick.Iy == pytest.approx(Section.circle(0.2).numbers.Iy)
    assert Section.box(0.2, 0.1, 0.001).numbers.Iy == pytest.approx((0.2 * 0.1**3 - 0.198 * 0.098**3) / 12)
    half = Section.rectangle(0.25, 0.1).towards(Section.rectangle(0.125, 0.1), 0.5)
    assert half == Section.rectangle(0.1875, 0.1)


def test_a_reduction_keeps_statics_at_its_interface_and_the_low_frequencies() -> None:
    beam = Beam(2.0, Profile.of(Section.rectangle(0.05, 0.1), Material.steel()), elements=20)
    K, M = beam.matrices
    end = range(len(K) - 6, len(K))
    rigid = np.tile(np.eye(3, 6), beam.elements + 1).T
    found = reduce_structure(K, M, range(6), end, 8, rigid)
    whole = frequencies(K, M, range(6))
    assert found.omega[:4] == pytest.approx(whole[:4], rel=1e-3)
    load = np.zeros(len(K))
    load[-6:] = 1.0, 2.0, 3.0, 4.0, 5.0, 6.0
    exact = np.linalg.solve(K[6:, 6:], load[6:])[-6:]
    shapes = found.shapes
    assert (shapes @ ((shapes.T @ load) / found.omega**2))[-6:] == pytest.approx(exact, rel=1e-8)
    assert shapes.T @ M @ shapes == pytest.approx(np.eye(14), abs=1e-10)
    assert found.residual[0] < 5e-3 < 0.1 < found.residual[-1]
    total = found.effective.sum(0)
    assert np.all((total > 0.7) & (total < 1.0))
    assert "Hz" in str(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda K, M: (-K, M), "indefinite"),
        (lambda K, M: (np.triu(K), M), "not symmetric"),
        (lambda K, M: (K, np.zeros_like(M)), "not positive definite"),
        (lambda K, M: (K * 1e30, M), "units"),
        (lambda K, M: (K * np.nan, M), "not finite"),
        (lambda K, M: (K[:, :-1], M), "expected a square"),
        (lambda K, M: (np.diag([*[0.0] * 12, *np.diag(K)[12:]]), M), "not connected"),
    ],
)
def test_matrices_that_cannot_be(change: Any, words: str) -> None:
    K, M = Beam(1.0, SLENDER, elements=3).matrices
    with pytest.raises(ModelError, match=words):
        check_units(reduce_structure(*change(K, M), range(6), range(18, 24), 3).omega, 1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Beam(-1.0, SLENDER), "length is -1.0"),
        (lambda: Beam(1.0, SLENDER, elements=0), "elements is 0"),
        (lambda: Beam(1.0, SLENDER, theory="string"), 'no theory "string"|unknown|string'),
        (lambda: Beam(1.0, Section.circle(0.1)), "no material"),
        (lambda: Beam(1.0, "circle", Material.steel()), "expected a Section"),  # type: ignore[arg-type]
        (lambda: Section.circle(-0.1), "positive"),
        (lambda: Section("star", (1.0,)), "star"),
        (lambda: Section.tube(0.1, 0.06).numbers, "wall"),
        (lambda: Section.box(0.1, 0.1, 0.05).numbers, "wall"),
        (lambda: Section.circle(0.1).towards(Section.rectangle(0.1, 0.1), 0.5), "one shape"),
        (lambda: Material(2e11, 0.7, 7850.0), "Poisson"),
        (lambda: Material(0.0, 0.3, 7850.0), "positive"),
    ],
)
def test_beams_that_cannot_be(make: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        make()


def test_one_element_has_no_modes_of_its_own() -> None:
    """One element has no modes of its own, because nothing between its ends can move."""
    beam = Beam(1.0, Section.circle(0.02), Material.steel(), 1)
    for motions in (("bend_z",), ("stretch", "bend_y", "bend_z", "twist")):
        made = beam_modes(beam, motions, {"end": 1.0}, 0, True, np.inf)
        assert len(made.omega) > 0
        with pytest.raises(ModelError, match="modes is 2; its 1 elements have 0"):
            beam_modes(beam, motions, {"end": 1.0}, 2, True, np.inf)
