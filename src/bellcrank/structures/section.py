"""Cross-sections and materials of beams, and their stiffness and inertia per metre.

A beam is along x; its section lies in y and z. Iy is about y (the integral of z^2: bending in the plane of x and z), Iz
about z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import ModelError, brief, unknown
from bellcrank.scalar import is_real


@dataclass(frozen=True)
class Material:
    """Isotropic material.

    Parameters
    ----------
    E : float
        Young's modulus, Pa.
    nu : float
        Poisson's ratio, above -1 and at most 0.5.
    density : float
        Density, kg/m^3.
    """

    E: float
    nu: float
    density: float

    def __post_init__(self) -> None:
        for what in ("E", "density"):  # as Python floats, because numpy integers overflow silently
            object.__setattr__(self, what, _positive("material", what, getattr(self, what)))
        if not is_real(self.nu) or not -1.0 < self.nu <= 0.5:
            raise ModelError(f"material: nu is {brief(self.nu)}; expected Poisson's ratio, above -1 and at most 0.5.")
        object.__setattr__(self, "nu", float(self.nu))

    @property
    def G(self) -> float:
        """Shear modulus, Pa."""
        return self.E / (2.0 * (1.0 + self.nu))

    @classmethod
    def steel(cls) -> Material:
        """Return steel.

        Returns
        -------
        Material
            210 GPa, 0.3, 7850 kg/m^3.
        """
        return cls(2.1e11, 0.3, 7850.0)

    @classmethod
    def aluminium(cls) -> Material:
        """Return aluminium.

        Returns
        -------
        Material
            70 GPa, 0.33, 2700 kg/m^3.
        """
        return cls(7.0e10, 0.33, 2700.0)


def check_material(where: str, material: object) -> None:
    """Raise a ModelError that begins with `where` unless `material` is a Material."""
    if not isinstance(material, Material):
        raise ModelError(f"{where}: material is {brief(material)}; expected a Material, such as Material.steel().")


@dataclass(frozen=True)
class SectionNumbers:
    """Properties of a cross-section.

    They are area (m^2), second moments about y and z (m^4), torsion constant J (m^4), and the shear factors along y
    and z.
    """

    area: float
    Iy: float
    Iz: float
    J: float
    ky: float = 5 / 6
    kz: float = 5 / 6


def _rectangle(width: float, height: float) -> SectionNumbers:
    a, b = max(width, height) / 2, min(width, height) / 2
    # Saint-Venant's series; even for a square its tenth term is below double precision
    series = sum(math.tanh((2 * n + 1) * math.pi * a / (2 * b)) / (2 * n + 1) ** 5 for n in range(200))
    J = 16 / 3 * a * b**3 * (1 - 192 / math.pi**5 * (b / a) * series)
    return SectionNumbers(width * height, width * height**3 / 12, height * width**3 / 12, J)


def _circle(diameter: float) -> SectionNumbers:
    I = math.pi * diameter**4 / 64
    return SectionNumbers(math.pi * diameter**2 / 4, I, I, 2 * I, 0.9, 0.9)


def _tube(diameter: float, wall: float) -> SectionNumbers:
    inner = diameter - 2 * wall
    if inner < 0.0:
        raise ModelError(f"section: a tube of {diameter:g} m has no wall of {wall:g} m; expected at most half of it.")
    I = math.pi * (diameter**4 - inner**4) / 64
    return SectionNumbers(math.pi * (diameter**2 - inner**2) / 4, I, I, 2 * I, 0.5, 0.5)


def _box(width: float, height: float, wall: float) -> SectionNumbers:
    w, h = width - 2 * wall, height - 2 * wall
    if min(w, h) <= 0.0:
        raise ModelError(
            f"section: a box of {width:g} x {height:g} m has no wall of {wall:g} m; expected a thinner one."
        )
    area, middle = width * height - w * h, (width - wall) * (height - wall)
    J = 4 * middle**2 * wall / (2 * (width + height - 2 * wall))  # Bredt
    Iy, Iz = (width * height**3 - w * h**3) / 12, (height * width**3 - h * w**3) / 12
    return SectionNumbers(area, Iy, Iz, J, 2 * (width - wall) * wall / area, 2 * (height - wall) * wall / area)


SHAPES: dict[str, Callable[..., SectionNumbers]] = {
    "rectangle": _rectangle,
    "circle": _circle,
    "tube": _tube,
    "box": _box,
    "general": SectionNumbers,
}


@explain_methods("towards")
@dataclass(frozen=True)
class Section:
    """A cross-section of a known shape: Section.rectangle(width, height), .circle, .tube, .box or .general.

    Parameters
    ----------
    shape : {"rectangle", "circle", "tube", "box", "general"}
        Name of the shape.
    dimensions : tuple of float
        Arguments of the method with that name, as in Section.tube(diameter, wall); width is along y, height along z.
    """

    shape: str
    dimensions: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.shape, str) or self.shape not in SHAPES:
            raise ModelError(f"section: {unknown('shape', self.shape, SHAPES)}")
        where = f"section ({self.shape})"
        if not isinstance(self.dimensions, tuple | list):
            raise ModelError(f"{where}: its dimensions are {brief(self.dimensions)}; expected a tuple of lengths.")
        sizes = tuple(_positive(where, "a dimension", size) for size in self.dimensions)
        object.__setattr__(self, "dimensions", sizes)
        try:
            numbers = astuple(self.numbers)
        except (TypeError, ArithmeticError):
            raise ModelError(
                f"{where}: no such section has the dimensions {self.dimensions}; see Section.{self.shape}."
            ) from None
        for size in numbers:
            _positive(where, "what follows from its dimensions", size)

    @classmethod
    def rectangle(cls, width: float, height: float) -> Section:
        """Return a solid rectangle.

        Parameters
        ----------
        width, height : float
            Lengths along y and z, m.

        Returns
        -------
        Section
            The section.
        """
        return cls("rectangle", (width, height))

    @classmethod
    def circle(cls, diameter: float) -> Section:
        """Return a round bar.

        Parameters
        ----------
        diameter : float
            Diameter, m.

        Returns
        -------
        Section
            The section.
        """
        return cls("circle", (diameter,))

    @classmethod
    def tube(cls, diameter: float, wall: float) -> Section:
        """Return a round tube.

        Parameters
        ----------
        diameter : float
            Outer diameter, m.
        wall : float
            Thickness of the wall, m, at most half the diameter.

        Returns
        -------
        Section
            The section.
        """
        return cls("tube", (diameter, wall))

    @classmethod
    def box(cls, width: float, height: float, wall: float) -> Section:
        """Return a hollow rectangle.

        Parameters
        ----------
        width, height : float
            Outer lengths along y and z, m.
        wall : float
            Thickness of the walls, m.

        Returns
        -------
        Section
            The section.
        """
        return cls("box", (width, height, wall))

    @classmethod
    def general(cls, area: float, Iy: float, Iz: float, J: float, ky: float = 5 / 6, kz: float = 5 / 6) -> Section:
        """Return a section of any shape.

        Parameters
        ----------
        area : float
            m^2.
        Iy, Iz : float
            Second moments about y and z, m^4.
        J : float
            Torsion constant, m^4.
        ky, kz : float
            Shear factors along y and z.

        Returns
        -------
        Section
            The section.
        """
        return cls("general", (area, Iy, Iz, J, ky, kz))

    @property
    def numbers(self) -> SectionNumbers:
        """Area, second moments, torsion constant and shear factors."""
        return SHAPES[self.shape](*self.dimensions)

    def towards(self, other: Section, s: float) -> Section:
        """Return a section between this one and another; dimensions change linearly.

        Parameters
        ----------
        other : Section
            Section of the same shape.
        s : float
            Part of the way to it, from 0 to 1.

        Returns
        -------
        Section
            The section there.
        """
        if not isinstance(other, Section):
            raise ModelError(f"section: a beam cannot taper from a {self.shape} to {brief(other)}; expected a Section.")
        if self.shape != other.shape:
            raise ModelError(f"section: a beam cannot taper from a {self.shape} to a {other.shape}. Use one shape.")
        pairs = zip(self.dimensions, other.dimensions, strict=True)
        return Section(self.shape, tuple(a + (b - a) * s for a, b in pairs))


@explain_methods("__init__")
@dataclass(frozen=True)
class Profile:
    """Stiffness and inertia of a beam per metre of its length.

    Parameters
    ----------
    EA : float
        Axial stiffness, N.
    GAy, GAz : float
        Shear stiffness along y and z, with the shear factors, N.
    GJ : float
        Torsional stiffness, N m^2.
    EIy, EIz : float
        Bending stiffness about y and z, N m^2.
    rhoA : float
        Mass, kg/m.
    rhoIy, rhoIz : float
        Rotary inertia about y and z, kg m.
    """

    EA: float
    GAy: float
    GAz: float
    GJ: float
    EIy: float
    EIz: float
    rhoA: float
    rhoIy: float
    rhoIz: float

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.name in ("rhoIy", "rhoIz") and getattr(self, f.name) == 0.0:
                continue  # slices without extent
            object.__setattr__(self, f.name, _positive("profile", f.name, getattr(self, f.name)))

    @classmethod
    def of(cls, section: Section, material: Material) -> Profile:
        """Return the profile of a section of one material.

        Parameters
        ----------
        section : Section
            The cross-section.
        material : Material
            The material.

        Returns
        -------
        Profile
            Its stiffness and inertia per metre.
        """
        n, E, G, rho = section.numbers, material.E, material.G, material.density
        stiffness = E * n.area, G * n.area * n.ky, G * n.area * n.kz, G * n.J, E * n.Iy, E * n.Iz
        return cls(*stiffness, rho * n.area, rho * n.Iy, rho * n.Iz)


def _positive(where: str, what: str, value: object) -> float:
    try:
        x = float(value) if is_real(value) else math.nan
    except OverflowError:
        x = math.inf
    if not 0.0 < x < math.inf:
        raise ModelError(f"{where}: {what} is {brief(value)}; expected a positive number in SI units.")
    return x
