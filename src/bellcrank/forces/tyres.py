"""Tyres on a road: a radial spring under the hub, and longitudinal and lateral forces from slip.

Frame a is the road (its z = 0, or a Terrain's height), frame b stands at the centre of the wheel, on the rotating body,
with y along the axle.

    z          deflection;  N = max(k z + c dz/dt, 0) where z > 0
    V_x, V_y   velocity of the hub, along the wheel's heading and across it;  O: spin rate of the wheel
    kappa      (O R - V_x) / |V_x|          longitudinal slip
    alpha      V_y / |V_x|                  tan of the slip angle;  |V_x| is never below the speed `slow`
    F_x, F_y   linear: C_k kappa, -C_a alpha; or the Magic Formula, D sin(C atan(B x - E (B x - atan(B x))))

Friction limits the combined force: (F_x/D_x)^2 + (F_y/D_y)^2 <= 1. The forces act at the lowest point of the wheel; the
trail moves F_y a little behind it, which gives the self-aligning moment.

H. B. Pacejka. Tyre and Vehicle Dynamics. Second edition, Butterworth-Heinemann, 2006: section 4.3, version 5.2.

Differences from the book: the Magic Formula is used with its equations for pure slip (4.E9 to 4.E30), with camber in
the lateral ones; combined slip follows the ellipse above and not Pacejka's weighting functions; moments come from a
constant trail and rolling resistance. There is no relaxation length: forces follow the slip at once, and below `slow`
the tyre is a damper, so that a car at rest creeps.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, ReadError, brief
from bellcrank.files import read_bytes
from bellcrank.forces.element import Between, Triple, WrenchAndRates, cross, dot, power
from bellcrank.forces.shapes import Terrain, tangent_plane_height
from bellcrank.parameters.validation import one_number
from bellcrank.scalar import Scalar, atan2, exp, fabs, maximum, sin, sqrt, tanh, where


@dataclass(frozen=True)
class Slip:
    """Deflection, slips and contact directions of a tyre, in the axes of the road."""

    z: Scalar  # deflection
    dz: Scalar
    N: Scalar
    kappa: Scalar
    alpha: Scalar
    camber: Scalar
    spin: Scalar
    arm: Triple  # from the hub to the contact point
    ahead: Triple
    across: Triple
    normal: Triple


@dataclass(frozen=True)
class Tyre(Between):
    """Base class of tyres; LinearTyre and MagicTyre implement the slip forces.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        Frame of the road, usually "ground".
    b : str
        Frame at the centre of the wheel, on the rotating body, with y along the axle.
    radius : Scalar
        Radius without load, m.
    stiffness : Scalar, default 2e5
        Vertical stiffness, N/m.
    damping : Scalar, default 500.0
        Vertical damping, N s/m.
    trail : Scalar, default 0.0
        Distance behind the contact point at which the lateral force acts, m.
    rolling_resistance : Scalar, default 0.0
        Rolling resistance as a share of the normal force.
    slow : Scalar, default 0.5
        Speed below which slip forces act like a damper, m/s.
    road : Terrain, optional
        Height of the road over frame a; level by default.
    """

    radius: Scalar  # m, without load
    stiffness: Scalar = 2e5  # N/m
    damping: Scalar = 500.0  # N s/m
    trail: Scalar = 0.0  # m
    rolling_resistance: Scalar = 0.0  # share of N
    slow: Scalar = 0.5  # m/s
    road: Terrain | None = None  # in frame a; level by default

    def __post_init__(self) -> None:
        self._check("damping", "trail", "rolling_resistance")
        self._check("radius", "stiffness", "slow", above_zero=True)
        if self.road is not None and not isinstance(self.road, Terrain):
            raise InputError(f"{self._label}: road is {brief(self.road)}; expected a Terrain, or None: level.")

    @abstractmethod
    def forces(self, slip: Slip) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Return F_x, F_y and the largest magnitude of each in N, from the `slip`."""

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return the force and moment on frame b and the state rates; see `Between.__call__`."""
        slip = self.slip(pose, velocity)
        Fx, Fy, max_x, max_y = self.forces(slip)
        a, b = Fx / maximum(max_x, 1e-9), Fy / maximum(max_y, 1e-9)
        share = 1.0 / sqrt(maximum(a * a + b * b, 1.0))
        Fx, Fy = Fx * share, Fy * share
        axes = zip(slip.ahead, slip.across, slip.normal, strict=True)
        force = [Fx * i + Fy * j + slip.N * k for i, j, k in axes]
        force_moment = cross(slip.arm, force)
        aligning_moment, drag = -self.trail * Fy, self.rolling_resistance * slip.N * self.radius * tanh(slip.spin / 0.1)
        moment = [
            m + aligning_moment * n - drag * y for m, n, y in zip(force_moment, slip.normal, slip.across, strict=True)
        ]  # fmt: skip
        return force, moment, []

    def slip(self, pose: Any, velocity: Sequence[Scalar]) -> Slip:
        """Return deflection and slips for `pose` and `velocity` as in `Between.__call__`."""
        s = [pose[k, 1] for k in range(3)]
        hub = [pose[k, 3] for k in range(3)]
        height, n = (hub[2], [0.0, 0.0, 1.0]) if self.road is None else tangent_plane_height(self.road, hub)
        tilt = dot(n, s)
        k = sqrt(maximum(1.0 - tilt * tilt, 1e-12))
        arm = [-(self.radius / k) * (a - tilt * b) for a, b in zip(n, s, strict=True)]
        z = self.radius * k - height
        contact_velocity = [a + b for a, b in zip(velocity[:3], cross(velocity[3:], arm), strict=True)]
        dz = -dot(n, contact_velocity)
        N = where(z > 0.0, maximum(self.stiffness * z + self.damping * dz, 0.0), 0.0)
        ahead = [a / k for a in cross(s, n)]
        across = cross(n, ahead)
        Vx, Vy, spin = dot(ahead, velocity), dot(across, velocity), dot(s, velocity[3:])
        speed = sqrt(Vx * Vx + self.slow * self.slow)
        rolling = self.radius - maximum(z, 0.0)
        contact_arm = [a * (rolling / self.radius) for a in arm]
        return Slip(z, dz, N, (spin * rolling - Vx) / speed, Vy / speed, tilt, spin, contact_arm, ahead, across, n)

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `pose` and `x` as in `Between.energy`."""
        z = maximum(self.slip(pose, [0.0] * 6).z, 0.0)
        return 0.5 * self.stiffness * z * z

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `pose`, `velocity` and `x` as in `Between.loss`."""
        force, moment, _ = self(t, pose, velocity, x)
        slip = self.slip(pose, velocity)
        return -power([*force, *moment], velocity) - self.stiffness * maximum(slip.z, 0.0) * slip.dz


@dataclass(frozen=True)
class LinearTyre(Tyre):
    """Tyre whose forces are proportional to slip, up to a friction limit.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        Frame of the road, usually "ground".
    b : str
        Frame at the centre of the wheel, on the rotating body, with y along the axle.
    radius : Scalar
        Radius without load, m.
    stiffness : Scalar, default 2e5
        Vertical stiffness, N/m.
    damping : Scalar, default 500.0
        Vertical damping, N s/m.
    trail : Scalar, default 0.0
        Distance behind the contact point at which the lateral force acts, m.
    rolling_resistance : Scalar, default 0.0
        Rolling resistance as a share of the normal force.
    slow : Scalar, default 0.5
        Speed below which slip forces act like a damper, m/s.
    road : Terrain, optional
        Height of the road over frame a; level by default.
    longitudinal : Scalar, default 8e4
        Longitudinal slip stiffness C_k, N.
    lateral : Scalar, default 6e4
        Cornering stiffness C_a, N/rad.
    friction : Scalar, default 1.0
        Coefficient of friction.
    """

    longitudinal: Scalar = 8e4  # N, C_k
    lateral: Scalar = 6e4  # N/rad, C_a
    friction: Scalar = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("longitudinal", "lateral", "friction")

    def forces(self, slip: Slip) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Return F_x, F_y and the largest magnitude of each in N, from the `slip`."""
        max_force = self.friction * slip.N
        has_load = where(slip.N > 0.0, 1.0, 0.0)
        return has_load * self.longitudinal * slip.kappa, -has_load * self.lateral * slip.alpha, max_force, max_force


REQUIRED_COEFFICIENTS = (
    *("FNOMIN", "UNLOADED_RADIUS", "VERTICAL_STIFFNESS"),
    *("PCX1", "PDX1", "PKX1", "PCY1", "PDY1", "PKY1", "PKY2"),
)  # fmt: skip


@dataclass(frozen=True)
class MagicTyre(Tyre):
    """Tyre with Pacejka's Magic Formula, version 5.2, for pure slip.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        Frame of the road, usually "ground".
    b : str
        Frame at the centre of the wheel, on the rotating body, with y along the axle.
    radius : Scalar
        Radius without load, m.
    stiffness : Scalar, default 2e5
        Vertical stiffness, N/m.
    damping : Scalar, default 500.0
        Vertical damping, N s/m.
    trail : Scalar, default 0.0
        Distance behind the contact point at which the lateral force acts, m.
    rolling_resistance : Scalar, default 0.0
        Rolling resistance as a share of the normal force.
    slow : Scalar, default 0.5
        Speed below which slip forces act like a damper, m/s.
    road : Terrain, optional
        Height of the road over frame a; level by default.
    coefficients : mapping of str to float
        Coefficients by the names used in property files (PCX1, PDY1, ...); missing ones are 0.
    """

    coefficients: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.coefficients, Mapping):
            raise InputError(f"{self._label}: coefficients is {brief(self.coefficients)}; expected numbers by name.")
        required = REQUIRED_COEFFICIENTS[:1] + REQUIRED_COEFFICIENTS[3:]
        missing = [name for name in required if name not in self.coefficients]
        if missing:
            raise InputError(f"{self._label}: coefficients has no {', '.join(missing)}; read_tyre(file) reads them.")
        for name, x in self.coefficients.items():
            one_number(f"{self._label}: coefficients", str(name), x)
        for name in ("FNOMIN", "PCX1", "PCY1", "PKY2"):  # the formula divides by these or scales with them
            if self[name] == 0.0 or (name == "FNOMIN" and self[name] < 0.0):
                expected = "a load above zero, in N" if name == "FNOMIN" else "a number that is not zero"
                raise InputError(f"{self._label}: the coefficient {name} is {self[name]:g}; expected {expected}.")

    def __getitem__(self, name: str) -> float:
        return float(self.coefficients.get(name, 0.0))

    def forces(self, slip: Slip) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Return F_x, F_y and the largest magnitude of each in N, from the `slip`."""
        c, Fz = self, slip.N
        d = (Fz - c["FNOMIN"]) / c["FNOMIN"]
        mu_x = c["PDX1"] + c["PDX2"] * d
        K = Fz * (c["PKX1"] + c["PKX2"] * d) * exp(c["PKX3"] * d)
        kappa = slip.kappa + c["PHX1"] + c["PHX2"] * d
        E = (c["PEX1"] + c["PEX2"] * d + c["PEX3"] * d * d) * (1.0 - c["PEX4"] * where(kappa > 0.0, 1.0, -1.0))
        Fx = magic_formula(kappa, K, c["PCX1"], mu_x * Fz, E) + Fz * (c["PVX1"] + c["PVX2"] * d)
        g = slip.camber
        mu_y = fabs((c["PDY1"] + c["PDY2"] * d) * (1.0 - c["PDY3"] * g * g))  # either sign occurs in files
        load = 2.0 * atan2(Fz, c["PKY2"] * c["FNOMIN"])
        K = -fabs(c["PKY1"]) * c["FNOMIN"] * sin(load) * (1.0 - c["PKY3"] * fabs(g))
        alpha = atan2(slip.alpha, 1.0) + c["PHY1"] + c["PHY2"] * d + c["PHY3"] * g
        E = (c["PEY1"] + c["PEY2"] * d) * (1.0 - (c["PEY3"] + c["PEY4"] * g) * where(alpha > 0.0, 1.0, -1.0))
        Fy = magic_formula(alpha, K, c["PCY1"], mu_y * Fz, E)
        Fy = Fy + Fz * (c["PVY1"] + c["PVY2"] * d + (c["PVY3"] + c["PVY4"] * d) * g)
        return Fx, Fy, fabs(mu_x) * Fz, mu_y * Fz


def magic_formula(x: Scalar, K: Scalar, C: Scalar, D: Scalar, E: Scalar) -> Scalar:
    """Return D sin(C atan(B x - E (B x - atan(B x)))), with B from the slope K = B C D at the origin.

    Parameters
    ----------
    x
        Slip.
    K
        Slope at the origin.
    C
        Shape factor.
    D
        Peak value, N; the result is 0 where D is not positive.
    E
        Curvature factor.
    """
    loaded = where(D > 1e-9, D, 1e-9)
    u = where(D > 1e-9, K / (C * loaded), 0.0) * x
    return D * sin(C * atan2(u - E * (u - atan2(u, 1.0)), 1.0))


@explain_argument_errors
def read_tyre(path: str | Path, name: str, a: str, b: str, **numbers: Any) -> MagicTyre:
    """Read a Magic Formula tyre from a property file (.tir).

    The file has lines `NAME = value`, with comments after $ or !.

    Parameters
    ----------
    path : str or Path
        Tyre property file.
    name : str
        Name of the element.
    a : str
        Frame of the road.
    b : str
        Frame at the centre of the wheel, with y along the axle.
    **numbers
        Numbers of `MagicTyre` that replace those of the file.

    Returns
    -------
    MagicTyre
        Tyre with the file's coefficients.

    Raises
    ------
    ReadError
        If a value is not a number or a required coefficient is missing.
    """
    _, _, raw = read_bytes(path, "tyre file")
    text = raw.decode("utf-8", errors="replace")
    coefficients: dict[str, float] = {}
    for line in text.splitlines():
        match = re.match(r"\s*([A-Z][A-Z0-9_]*)\s*=\s*([-+0-9.eEdD]+)\s*(?:[$!].*)?$", line)
        if match:
            try:
                coefficients[match[1]] = float(match[2].replace("D", "e").replace("d", "e"))
            except ValueError:
                raise ReadError(f'{path}: {match[1]} is "{match[2]}"; expected a number.') from None
    missing = [key for key in REQUIRED_COEFFICIENTS if key not in coefficients]
    if missing:
        raise ReadError(f"{path}: no {', '.join(missing)}; expected a tyre property file of the Magic Formula 5.2.")
    file_numbers = {
        "radius": coefficients["UNLOADED_RADIUS"],
        "stiffness": coefficients["VERTICAL_STIFFNESS"],
        "damping": coefficients.get("VERTICAL_DAMPING", 50.0),
        "rolling_resistance": coefficients.get("QSY1", 0.0),
    }
    return MagicTyre(name, a, b, **(file_numbers | numbers), coefficients=coefficients)
