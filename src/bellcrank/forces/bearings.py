"""Dry friction of bearings, in proportion to the force that the joint itself transmits (Wong 1991, section 6.4.4).

A bearing carries the constraint force of its joint on pads. Every pad k has a normal force N_k, which is the length of
a linear map of the joint's force F and moment M, and a sliding velocity w_k, a linear map of the joint's velocities u:

    N_k = |A_k [F, M]|,   w_k = B_k u,   friction of the joint = -sum of mu N_k B_k^T w_k / max(|w_k|, slow)

Its power is -sum of mu N_k |w_k|^2 / max(|w_k|, slow), which is never positive. Below the sliding speed `slow` friction
acts like a damper: at rest it is zero, and a joint that sticks creeps. F and M are about the origin of the child's body
frame, z is the axis of the joint, r is `radius`, R `thrust_radius`, L `span`, and xy the part across the axis:

    revolute      |F_xy/2 + M x z/L|, |F_xy/2 - M x z/L|  slide by r w: two journals, L apart; |F_z| by R w: a collar
    prismatic     the same two forces slide by the speed: shoes of a slider;  |M_z|/r by the speed: its key
    cylindrical   the same two forces slide by (r w, speed)
    spherical     |F| slides by r (wx, wy, wz): a ball in a socket
    planar        |F_z| slides by (vx, vy, r w)

With L = 0 there is one journal or shoe with |F_xy|, and M causes no friction. The law of the planar joint is the
ellipsoidal limit surface of R. D. Howe and M. R. Cutkosky, Practical force-motion models for sliding manipulation,
International Journal of Robotics Research 15(6), 557-572, 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.actuators.actuator import is_known
from bellcrank.errors import InputError, brief
from bellcrank.forces.element import Element
from bellcrank.scalar import Scalar, is_zero

Row = tuple[Scalar, ...]
FZ: Row = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
# Numbers of each kind of joint: those that its law uses, and those of which one must be positive.
NUMBERS = {
    "revolute": (("radius", "thrust_radius", "span"), ("radius", "thrust_radius")),
    "prismatic": (("radius", "span"), ()),
    "cylindrical": (("radius", "span"), ("radius",)),
    "spherical": (("radius",), ("radius",)),
    "planar": (("radius",), ()),
}


@dataclass(frozen=True)
class Pad:
    """Place where a bearing carries load and slides."""

    load: tuple[Row, ...]  # A: the normal force is the length of A [Fx, Fy, Fz, Mx, My, Mz]
    slide: tuple[Row, ...]  # B: the sliding velocity is B u, m/s


@dataclass(frozen=True)
class BearingFriction(Element):
    """Dry friction in a joint, in proportion to the force that the joint transmits; for `elements=` of `bc.system`.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its columns.
    joint : str
        Name of a revolute, prismatic, cylindrical, spherical or planar joint, or of a loop of one of these types.
    coefficient : Scalar
        Coefficient of friction.
    radius : Scalar, default 0.0
        Radius at which the bearing slides when the joint turns, m; of a prismatic joint: distance of the key from the
        axis.
    thrust_radius : Scalar, default 0.0
        Mean radius of the collar that carries the axial force of a revolute joint, m; 0: without friction.
    span : Scalar, default 0.0
        Distance along the axis between the two journals or shoes that carry the joint, m; 0: one, which transmits
        moments without friction.
    slow : Scalar, default 1e-3
        Sliding speed below which friction acts like a damper, m/s.
    """

    joint: str
    coefficient: Scalar
    radius: Scalar = 0.0  # m
    thrust_radius: Scalar = 0.0  # m
    span: Scalar = 0.0  # m
    slow: Scalar = 1e-3  # m/s

    def __post_init__(self) -> None:
        self._check("coefficient", "radius", "thrust_radius", "span")
        self._check("slow", above_zero=True)

    def check_kind(self, kind: str) -> None:
        """Raise an InputError if the bearing cannot be that of a joint of this `kind`.

        Parameters
        ----------
        kind : str
            Kind of the joint.
        """
        if kind not in NUMBERS:
            raise InputError(
                f'{self._label}: "{self.joint}" is a {kind} joint; expected one of {", ".join(NUMBERS)}. Other joints '
                "have friction of a fixed size: friction= of the joint."
            )
        used, needed = NUMBERS[kind]
        for name in ("radius", "thrust_radius", "span"):
            if name not in used and not _is_absent(getattr(self, name)):
                raise InputError(
                    f"{self._label}: {name} is {brief(getattr(self, name))}, but a {kind} joint has no {name}; it "
                    f"has {', '.join(used)}."
                )
        if needed and all(_is_absent(getattr(self, name)) for name in needed):
            raise InputError(
                f"{self._label}: {' and '.join(needed)} {'is' if len(needed) == 1 else 'are'} 0, so that nothing "
                f"slides in the {kind} joint; expected a length in m."
            )

    def pads(self, kind: str) -> list[Pad]:
        """Return the pads of a bearing.

        Parameters
        ----------
        kind : str
            Kind of the joint, one of `NUMBERS`.

        Returns
        -------
        list of Pad
            Its pads.
        """
        r = self.radius
        if kind == "spherical":
            axes = [tuple(1.0 if i == k else 0.0 for i in range(6)) for k in range(3)]
            return [Pad(tuple(axes), tuple(tuple(r if i == k else 0.0 for i in range(3)) for k in range(3)))]
        if kind == "planar":
            spin: tuple[Row, ...] = () if _is_absent(r) else ((0.0, 0.0, r),)
            return [Pad((FZ,), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), *spin))]
        slides: dict[str, tuple[Row, ...]] = {
            "revolute": ((r,),), "prismatic": ((1.0,),), "cylindrical": ((r, 0.0), (0.0, 1.0))
        }  # fmt: skip
        pads = [Pad(load, slides[kind]) for load in self._radial_loads()]
        if kind == "revolute" and _is_absent(r):
            pads = []
        if kind == "revolute" and not _is_absent(self.thrust_radius):
            pads.append(Pad((FZ,), ((self.thrust_radius,),)))
        if kind == "prismatic" and not _is_absent(r):
            pads.append(Pad(((0.0, 0.0, 0.0, 0.0, 0.0, 1.0 / r),), slides[kind]))
        return pads

    def _radial_loads(self) -> list[tuple[Row, ...]]:
        """Return the maps from force and moment to the force across the axis on each journal or shoe."""
        if _is_absent(self.span):
            return [((1.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0, 0.0, 0.0))]
        arm = 1.0 / self.span  # M x z = (My, -Mx)
        return [
            ((0.5, 0.0, 0.0, 0.0, k * arm, 0.0), (0.0, 0.5, 0.0, -k * arm, 0.0, 0.0)) for k in (1.0, -1.0)
        ]  # fmt: skip


def _is_absent(x: Scalar) -> bool:
    """Return whether `x` is known to be zero."""
    return is_known(x) and not x


def product(row: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
    """Return the product of `row` and `x`, without the terms that are zero."""
    total: Scalar = 0.0
    for a, b in zip(row, x, strict=True):
        if not (is_zero(a) or is_zero(b)):
            total = total + a * b
    return total
