"""No motion at all. `mechanism_of` lumps the two bodies of a fixed joint into one, so no tree has this kind in it.

It is the table's row for the name: what may be asked of any joint type (nq, nv, coordinates) has an answer here too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model.kind import Kind
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import STILL, Transform
from bellcrank.spatial.vector import Motion


class Fixed(Kind):
    name, nq, nv, has_axis = "fixed", 0, 0, False
    coordinates = ()

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return STILL

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        return []

    def unfelt(self, inertia: Inertia) -> Inertia:
        return inertia
