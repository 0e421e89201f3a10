"""Which modes are worth keeping: those that a structure has as it will stand, on its supports and under its loads.

Modes with the reference node held and everything else free are a poor basis for a boom that turns about its pin and is
held by a cylinder half way: many are needed before it bends there as it does. So modes may be chosen for supports and
carried masses. The body's frame stays at the reference node all the same: from each such mode the rigid motion that
the reference makes in it is taken away, which costs no energy and which the joint has anyway.

    u + R theta(u),   theta(u) = -(C R)^-1 C u      R: the rigid motions, C: rows of what is supported
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.structures.beam import Array

# Of the largest singular value of C R: what is smaller supports nothing.
LOOSE = 1e-9


@dataclass(frozen=True)
class Supports:
    """M: mass with what is carried. rigid: displacements x 6. rows: displacements that are held, six."""

    M: Any
    rigid: Array
    rows: Array

    def mass(self, shapes: Array) -> Array:
        """Of these shapes, where they move on the supports."""
        theta = -np.linalg.solve(self.rigid[self.rows], shapes[self.rows])
        moved = shapes + self.rigid @ theta
        return np.asarray(moved.T @ (self.M @ moved))


def supports(
    M: Any, rigid: Array, first: Mapping[str, Mapping[int, int]], held: Mapping[str, Sequence[int]],
    loads: Mapping[str, float],
) -> Supports:  # fmt: skip
    """first: of each interface, the row of each of its directions. held: directions that are supported. loads: kg."""
    for name in (*held, *loads):
        if name not in first:
            raise ModelError(f"flexible: {unknown('interface', name, first)}")
    lost = [f"{name} {d}" for name, own in held.items() for d in own if d not in first[name]]
    if lost:
        raise ModelError(f"flexible: supports hold {', '.join(lost)}, which its directions leave out; expected 0 to 5.")
    rows = np.array([first[name][d] for name, own in held.items() for d in own], dtype=int)
    size = np.linalg.svd(rigid[rows] / np.maximum(np.abs(rigid).max(axis=0), 1e-300), compute_uv=False)
    if len(rows) != 6 or size[-1] < LOOSE * size[0]:
        raise ModelError(
            f"flexible: supports hold {len(rows)} displacements; expected six that let it move nowhere as a rigid "
            "body, such as all of one interface, or a hinge and a strut."
        )
    M = M.copy()
    for name, mass in loads.items():
        if not 0.0 <= mass < np.inf:
            raise ModelError(f'flexible: the load on "{name}" is {mass!r}; expected kilograms.')
        for d in {0, 1, 2} & set(first[name]):
            M[first[name][d], first[name][d]] += mass
    return Supports(M, rigid, rows)
