"""The table of joint types (Wong 1991, table 6.1, and more), with one module for each type."""

from bellcrank.model.joints.cylindrical import Cylindrical
from bellcrank.model.joints.fixed import Fixed
from bellcrank.model.joints.floating import Floating
from bellcrank.model.joints.helical import Helical
from bellcrank.model.joints.modal import JointTypes
from bellcrank.model.joints.planar import Planar
from bellcrank.model.joints.prismatic import Prismatic
from bellcrank.model.joints.revolute import Revolute
from bellcrank.model.joints.spherical import Spherical
from bellcrank.model.joints.universal import Universal
from bellcrank.model.kind import Kind

_TYPES = (Fixed, Revolute, Prismatic, Helical, Cylindrical, Universal, Spherical, Planar, Floating)
KINDS: dict[str, type[Kind]] = JointTypes({kind.name: kind for kind in _TYPES})

SHIPPED = dict(KINDS)  # the table without user extensions

__all__ = ["KINDS", "SHIPPED", "Kind"]
