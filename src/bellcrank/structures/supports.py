"""Choice of modes for a structure on its supports and under its loads.

Modes with the reference node held and everything else free are a poor basis for a boom that rotates about its pin and
is held by a cylinder half way: many are needed before it bends there as in reality. So modes may be chosen for supports
and carried masses. The body's frame stays at the reference node all the same: the rigid motion of the reference is
removed from each such mode, which costs no energy and which the joint provides anyway.

    u + R theta(u),   theta(u) = -(C R)^-1 C u      R: the rigid motions, C: rows of the supported displacements
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.structures.beam import Array

# Part of the largest singular value of C R; a smaller one supports nothing.
LOOSE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Supports:
    """Supported structure: M, mass with carried loads; rigid, displacements x 6; rows, the six displacements held."""

    M: Any
    rigid: Array
    rows: Array

    def mass(self, shapes: Array) -> Array:
        """Return the mass matrix of these `shapes` as they move on the supports."""
        theta = -np.linalg.solve(self.rigid[self.rows], shapes[self.rows])
        moved = shapes + self.rigid @ theta
        return np.asarray(moved.T @ (self.M @ moved))


def checked_supports(
    M: Any, rigid: Array, first: Mapping[str, Mapping[int, int]], held: Mapping[str, Sequence[int]],
    loads: Mapping[str, float],
) -> Supports:  # fmt: skip
    """Check supports and loads of a structure.

    Parameters
    ----------
    M
        Mass matrix.
    rigid
        Rigid motions, displacements x 6.
    first
        Row of each direction of each interface.
    held
        Supported directions of each interface.
    loads
        Carried mass of each interface, kg.
    """
    for name in (*held, *loads):
        if name not in first:
            raise ModelError(f"flexible: {unknown('interface', name, first)}")
    missing = [f"{name} {d}" for name, directions in held.items() for d in directions if d not in first[name]]
    if missing:
        raise ModelError(f"flexible: supports hold {', '.join(missing)}, excluded by directions; expected 0 to 5.")
    rows = np.array([first[name][d] for name, directions in held.items() for d in directions], dtype=int)
    size = np.linalg.svd(rigid[rows] / np.maximum(np.abs(rigid).max(axis=0), 1e-300), compute_uv=False)
    if len(rows) != 6 or size[-1] < LOOSE_TOLERANCE * size[0]:
        raise ModelError(
            f"flexible: supports hold {len(rows)} displacements; expected six that prevent every rigid motion, such "
            "as all of one interface, or a hinge and a strut."
        )
    M = M.copy()
    for name, mass in loads.items():
        if not 0.0 <= mass < np.inf:
            raise ModelError(f'flexible: the load on "{name}" is {mass!r}; expected kilograms.')
        for d in {0, 1, 2} & set(first[name]):
            M[first[name][d], first[name][d]] += mass
    return Supports(M, rigid, rows)
