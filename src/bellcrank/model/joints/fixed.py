"""The fixed joint, which has no motion.

`mechanism_of` merges the two bodies of a fixed joint, so no tree contains this type. It provides nq, nv and coordinates
for the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import Kind
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, Transform


class Fixed(Kind):
    """No motion: nq and nv are 0."""

    name, nq, nv, has_axis = "fixed", 0, 0, False
    coordinates = ()

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        return IDENTITY_TRANSFORM

    def unfelt(self, inertia: Inertia) -> Inertia:
        """Return the part of a child's `inertia` that the joint's motion cannot change."""
        return inertia
