"""The closure equations in numbers, for as many configurations at once as there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.methods import kinematics
from bellcrank.methods.closure.rows import equations
from bellcrank.model.tree import Tree

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Closed:
    value: Array  # (..., m)
    C: Array  # (..., m, nv)
    bias: Array  # (..., m)


def closed(tree: Tree, q: Array, v: Array | None = None) -> Closed:
    """Values, Jacobian and bias at q of shape (..., nq)."""
    q = np.asarray(q, float)
    batch = q.shape[:-1]
    v = np.zeros((*batch, tree.nv)) if v is None else np.broadcast_to(v, (*batch, tree.nv))
    found = equations(tree, list(np.moveaxis(q, -1, 0)), list(np.moveaxis(v, -1, 0)))
    m = len(found)
    value, bias, C = np.zeros((*batch, m)), np.zeros((*batch, m)), np.zeros((*batch, m, tree.nv))
    for k, e in enumerate(found):
        value[..., k], bias[..., k] = e.value, e.bias
        for j, x in e.row.items():
            C[..., k, j] = x
    return Closed(value, C, bias)


def moved(tree: Tree, q: Array, displacement: Array) -> Array:
    """q after a displacement in the space of v."""
    new = kinematics.integrate(tree, list(np.moveaxis(q, -1, 0)), list(np.moveaxis(displacement, -1, 0)))
    return np.stack(np.broadcast_arrays(*new), axis=-1) if new else np.array(q)
