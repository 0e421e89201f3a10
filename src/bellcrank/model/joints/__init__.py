"""The table of joint types (Wong 1991, table 6.1, and more)."""

from bellcrank.model.joints.modal import JointTypes
from bellcrank.model.kind import (
    Cylindrical,
    Fixed,
    Floating,
    Helical,
    Kind,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

_TYPES = (Fixed, Revolute, Prismatic, Helical, Cylindrical, Universal, Spherical, Planar, Floating)
KINDS: dict[str, type[Kind]] = JointTypes({kind.name: kind for kind in _TYPES})

SHIPPED = dict(KINDS)  # the table without user extensions

__all__ = ["KINDS", "SHIPPED", "Kind"]
