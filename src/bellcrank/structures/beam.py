"""Straight beams as finite elements: two nodes, six displacements per node, consistent mass.

The displacements of a node are u v w along x y z, then rotations about x y z. The shape functions are those of a beam
with shear (J. S. Przemieniecki, Theory of Matrix Structural Analysis, 1968, chapter 5): exact under loads at the nodes,
with no locking; without shear they are Hermite's cubics. Stiffness, mass and, in modes.py, the integrals of a modal
body use the same functions at the same Gauss points, so that they agree to the last digit.

Implausible units give a warning and are not refused: such a beam can be computed, and may be intended. Every bound lies
outside of everything real, so that a warning nearly always means MPa for Pa, g/cm^3 for kg/m^3, or millimetres.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, brief, unknown, warn
from bellcrank.scalar import is_whole
from bellcrank.structures.section import Material, Profile, Section, check_material

Array = np.ndarray[Any, Any]
THEORIES = ("timoshenko", "euler")
MAX_ELEMENTS = 2000  # limit, as matrices are dense
MIN_LENGTH, MAX_LENGTH = 1e-9, 1e9  # m; beyond these limits stiffnesses overflow
# m/s, sqrt(E / density): soft rubber has 20, rubber 100, steel 5200, beryllium 13000, diamond 18000.
SLOWEST_WAVE, FASTEST_WAVE = 15.0, 30_000.0
MIN_WAVE, MAX_WAVE = 1e-9, 1e12  # m/s; outside of these the computation fails
MAX_MASS_PER_LENGTH = 1e6  # kg/m; the largest ships with all they carry
MAX_DEPTH_RATIO = 10.0  # depth of a section over the length of the beam
# Four points integrate products of two cubics and a linear taper exactly.
GAUSS_POINTS = np.polynomial.legendre.leggauss(4)
Sections = Section | Profile | tuple[Section, Section] | Callable[[float], Section | Profile]


@dataclass(frozen=True)
class Station:
    """A slice of a beam at a Gauss point, of `length` metres, with the shape functions of its element there."""

    element: int
    x: float  # along the beam
    length: float
    profile: Profile
    shift: Array  # 3 x 12: displacement
    turn: Array  # 3 x 12: rotation
    strain: Array  # 6 x 12: stretch, shear along y and z, twist, curvature about y and z


@dataclass(frozen=True)
class Beam:
    """A straight beam along x from the origin.

    Parameters
    ----------
    length : float
        Length, m.
    section : Section, pair of Section, callable or Profile
        One Section; two, for a taper from start to end; a function of 0..1 along the beam; or a Profile, which needs no
        material.
    material : Material, optional
        Material of the section.
    elements : int
        Number of finite elements.
    theory : {"timoshenko", "euler"}
        "timoshenko" includes shear and the rotational inertia of slices; "euler" neither.
    """

    length: float
    section: Sections
    material: Material | None = None
    elements: int = 20
    theory: str = "timoshenko"

    def __post_init__(self) -> None:
        if not isinstance(self.length, (int, float)) or not 0.0 < self.length < np.inf:
            raise ModelError(f"beam: length is {self.length!r}; expected a positive number of metres.")
        if not MIN_LENGTH < self.length < MAX_LENGTH:
            raise ModelError(f"beam: length is {self.length:g} m; expected metres, {MIN_LENGTH:g} to {MAX_LENGTH:g}.")
        if not is_whole(self.elements) or not 1 <= self.elements <= MAX_ELEMENTS:
            raise ModelError(f"beam: elements is {self.elements!r}; expected a whole number, 1 to {MAX_ELEMENTS}.")
        if self.material is not None:
            check_material("beam", self.material)
        if isinstance(self.section, tuple) and [isinstance(s, Section) for s in self.section] != [True, True]:
            raise ModelError(f"beam: section is {brief(self.section)}; expected a Section, or two of them for a taper.")
        if not isinstance(self.theory, str) or self.theory not in THEORIES:
            raise ModelError(f"beam: {unknown('theory', self.theory, THEORIES)}")
        _warn_implausible(self)

    def at(self, s: float) -> Section | Profile:
        """Return the section at the part `s` of the length."""
        given = self.section
        if isinstance(given, tuple):
            section: Any = given[0].towards(given[1], s)
        else:
            section = _section_at(given, s) if callable(given) else given
        if not isinstance(section, (Section, Profile)):
            raise ModelError(f"beam: section is {section!r}; expected a Section, two of them, a function or a Profile.")
        return section

    def profile(self, s: float) -> Profile:
        """Return stiffness and inertia per metre at the part `s` of the length."""
        section = self.at(s)
        if isinstance(section, Profile):
            return section
        if self.material is None:
            raise ModelError(
                "beam: no material. Give one, such as Material.steel(), or a Profile instead of a section."
            )
        return Profile.of(section, self.material)

    @property
    def nodes(self) -> Array:
        """Positions of the nodes, (elements + 1) x 3, m."""
        x = np.linspace(0.0, self.length, self.elements + 1)
        return np.column_stack([x, np.zeros_like(x), np.zeros_like(x)])

    @cached_property
    def stations(self) -> tuple[Station, ...]:
        """Gauss points of all elements."""
        return tuple(station for e in range(self.elements) for station in self._stations(e))

    def _stations(self, e: int) -> Iterator[Station]:
        h = self.length / self.elements
        for node, weight in zip(*GAUSS_POINTS, strict=True):
            s = (node + 1) / 2
            x = (e + s) * h
            yield Station(e, x, weight * h / 2, self.profile(x / self.length), *self.functions(e, s))

    def functions(self, e: int, s: float) -> tuple[Array, Array, Array]:
        """Return shift, turn and strain, as in a Station, at the part `s` of element `e`."""
        h = self.length / self.elements
        middle = self.profile((e + 0.5) / self.elements)
        slender = self.theory == "euler"
        phi_y = 0.0 if slender else 12 * middle.EIz / (middle.GAy * h**2)  # of bending along y
        phi_z = 0.0 if slender else 12 * middle.EIy / (middle.GAz * h**2)
        return _shape_functions(s, h, phi_y, phi_z)

    def stiffness(self, e: int) -> Array:
        """Return the stiffness matrix of element `e`, 12 x 12."""
        K = np.zeros((12, 12))
        for s in self._stations(e):
            K += s.length * s.strain.T * self._strain_stiffness(s.profile) @ s.strain
        return K

    def _strain_stiffness(self, p: Profile) -> list[float]:
        """Return the stiffnesses that belong to the strains of a Station."""
        shear = (0.0, 0.0) if self.theory == "euler" else (p.GAy, p.GAz)  # in Euler's theory there is no shear strain
        return [p.EA, *shear, p.GJ, p.EIy, p.EIz]

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Stiffness K and consistent mass M of the whole beam, six rows per node."""
        n = 6 * (self.elements + 1)
        K, M = np.zeros((n, n)), np.zeros((n, n))
        for s in self.stations:
            rows = slice(6 * s.element, 6 * s.element + 12)
            p = s.profile
            K[rows, rows] += s.length * s.strain.T * self._strain_stiffness(p) @ s.strain
            M[rows, rows] += s.length * (p.rhoA * s.shift.T @ s.shift + s.turn.T * self.slice_inertia(p) @ s.turn)
        return K, M

    def slice_inertia(self, p: Profile) -> Array:
        """Return the moments of inertia of a slice of profile `p` about x, y and z, per metre."""
        across = (0.0, 0.0) if self.theory == "euler" else (p.rhoIy, p.rhoIz)
        return np.array([p.rhoIy + p.rhoIz, *across])


def _section_at(section: Callable[[float], Any], s: float) -> Any:
    try:
        return section(s)
    except Exception as error:
        raise ModelError(
            f"beam: section({s:g}) failed: {type(error).__name__}: {error}. Expected a function of the part of the "
            "length, 0 to 1, that returns a Section or a Profile."
        ) from error


def _shape_functions(s: float, h: float, phi_y: float, phi_z: float) -> tuple[Array, Array, Array]:
    """Return shift, turn and strain at the part s of an element of length h."""
    shift, turn, strain = np.zeros((3, 12)), np.zeros((3, 12)), np.zeros((6, 12))
    shift[0, [0, 6]] = turn[0, [3, 9]] = 1 - s, s
    strain[0, [0, 6]] = strain[3, [3, 9]] = -1 / h, 1 / h
    # Bending along y is (v, turn about z); along z it is (w, turn about -y).
    for across, about, sign, phi in ((1, 2, 1.0, phi_y), (2, 1, -1.0, phi_z)):
        columns = [across, 3 + about, 6 + across, 9 + about]
        signs = np.array([1.0, sign, 1.0, sign])
        N, slope, theta, curvature = _bending(s, h, phi)
        shift[across, columns] = N * signs
        turn[about, columns] = theta * signs * sign
        strain[across, columns] = (slope - theta) * signs
        strain[3 + about, columns] = curvature * signs * sign
    return shift, turn, strain


def _bending(s: float, h: float, phi: float) -> tuple[Array, Array, Array, Array]:
    """Return displacement, its slope, rotation and curvature as functions of (displacement, rotation) at both ends."""
    N = [1 - 3 * s**2 + 2 * s**3 + phi * (1 - s), h * (s - 2 * s**2 + s**3 + phi / 2 * (s - s**2))]
    N += [3 * s**2 - 2 * s**3 + phi * s, h * (-(s**2) + s**3 + phi / 2 * (s**2 - s))]
    slope = [(-6 * s + 6 * s**2 - phi) / h, 1 - 4 * s + 3 * s**2 + phi / 2 * (1 - 2 * s)]
    slope += [(6 * s - 6 * s**2 + phi) / h, -2 * s + 3 * s**2 + phi / 2 * (2 * s - 1)]
    theta = [(-6 * s + 6 * s**2) / h, 1 - 4 * s + 3 * s**2 + phi * (1 - s)]
    theta += [(6 * s - 6 * s**2) / h, 3 * s**2 - 2 * s + phi * s]
    curvature = [(12 * s - 6) / h**2, (6 * s - 4 - phi) / h, (6 - 12 * s) / h**2, (6 * s - 2 + phi) / h]
    a, b, c, d = (np.array(x) / (1 + phi) for x in (N, slope, theta, curvature))
    return a, b, c, d


def _warn_implausible(beam: Beam) -> None:
    """Warn if a material, a section or a length of `beam` is implausible; raise an error if nothing can be computed."""
    for p in (beam.profile(0.0), beam.profile(1.0)):
        if _warn_wave_speed(p) or _warn_section(p, beam.length):
            return  # one warning is enough


def _warn_wave_speed(p: Profile) -> bool:
    speed = math.sqrt(p.EA) / math.sqrt(p.rhoA)  # separate roots: the ratio may overflow
    if SLOWEST_WAVE <= speed <= FASTEST_WAVE:
        return False
    text = (
        f"beam: sound would run through it at {speed:.3g} m/s, the root of E / density (EA / rhoA); real materials "
        f"have {SLOWEST_WAVE:g} (rubber) to {FASTEST_WAVE:g} m/s, and steel 5200"
    )
    if not MIN_WAVE < speed < MAX_WAVE:
        raise ModelError(f"{text}. Nothing can be computed with that: check the units of both, Pa and kg/m^3.")
    maybe = "is E in MPa or GPa? 210 GPa are 2.1e11 Pa." if speed < SLOWEST_WAVE else "is density in g/cm^3 or tonnes?"
    warn(f"{text}. Expected Pa and kg/m^3: {maybe}")
    return True


def _warn_section(p: Profile, length: float) -> bool:
    depth = math.sqrt(12.0 * max(p.EIy / p.EA, p.EIz / p.EA))  # of a rectangle with the same radius of gyration
    what = ""
    if p.rhoA > MAX_MASS_PER_LENGTH:
        what = f"a metre of it weighs {p.rhoA:.3g} kg, more than a metre of the largest ship"
    elif depth > MAX_DEPTH_RATIO * length:
        what = f"it is about {depth:.3g} m deep and {length:.3g} m long, which is no beam"
    if what:
        warn(f"beam: {what}. Expected metres, for the section as for the length: is one of them in millimetres?")
    return bool(what)
