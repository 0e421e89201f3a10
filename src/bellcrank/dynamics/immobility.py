"""Whether forces determine accelerations: a mass matrix that is singular by construction is a mistake of the model.

A point mass on a ball joint can spin about the line to it without moving anything. Rounding would make the pivot 1e-17
instead of zero, and the accelerations a confident 1e16; so M is looked at, once, in numbers, before a kernel is made.
"""

from __future__ import annotations

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.errors import ModelError
from bellcrank.model.mechanism import Mechanism

# Of the matrix scaled to a unit diagonal; mechanisms that move have 1e-9 and more.
SINGULAR = 1e-13


def check(mechanism: Mechanism) -> None:
    """Raises ModelError with the joints that move nothing, alone or together."""
    mechanism = mechanism.at() if mechanism.parameters else mechanism  # free numbers are judged by nominal values
    if not mechanism.nv:
        return
    q, _, _ = mechanism.random(seed=0)
    M = np.array(crba.mass_matrix(mechanism.tree, q.tolist()), dtype=float)
    diagonal = np.diag(M)
    scale = np.sqrt(np.where(diagonal > SINGULAR * 1e-2 * diagonal.max(initial=0.0), diagonal, np.inf))
    if np.isinf(scale).any():
        motion = np.isinf(scale).astype(float)
    else:
        values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
        if values[0] > SINGULAR:
            return
        motion = np.abs(vectors[:, 0])
    names = dict.fromkeys(name.partition(".")[0] for name, x in zip(mechanism.columns[1], motion) if x > 1e-3)
    listed = ", ".join(f'"{name}"' for name in names)
    raise ModelError(
        f'mechanism "{mechanism.name}": no force determines the accelerations, because {listed} can move '
        f"{'together ' if len(names) > 1 else ''}without moving any inertia (the mass matrix is singular). Give the "
        "bodies there a mass and an inertia, give the joints an armature, or lock them."
    )
