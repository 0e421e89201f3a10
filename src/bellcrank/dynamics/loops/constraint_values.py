"""Numerical evaluation of the loop equations, for batches of configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.dynamics.loops.constraint_equations import end_cosines, loop_equations
from bellcrank.model.tree import Tree

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ConstraintValues:
    """Values, Jacobian and bias of the loop equations."""

    value: Array  # (..., m)
    C: Array  # (..., m, nv)
    bias: Array  # (..., m)


def evaluate_constraints(tree: Tree, q: Array, v: Array | None = None) -> ConstraintValues:
    """Return values, Jacobian and bias.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, (..., nq).
    v
        Velocities, (..., nv), or None for rest.
    """
    q = np.asarray(q, float)
    batch = q.shape[:-1]
    if batch and q.size == tree.nq:  # evaluate a batch of one with plain numbers, which takes a fifth of the time
        one = evaluate_constraints(
            tree, q.reshape(-1), None if v is None else np.broadcast_to(v, (*batch, tree.nv)).reshape(-1)
        )
        return ConstraintValues(*(x.reshape(*batch, *x.shape) for x in (one.value, one.C, one.bias)))
    rates = None if v is None else list(np.moveaxis(np.broadcast_to(v, (*batch, tree.nv)), -1, 0))
    equations_found = loop_equations(tree, _elements(q), rates)
    m = len(equations_found)
    value, bias, C = np.zeros((*batch, m)), np.zeros((*batch, m)), np.zeros((*batch, m, tree.nv))
    for k, e in enumerate(equations_found):
        value[..., k], bias[..., k] = e.value, e.bias
        for j, x in e.row.items():
            C[..., k, j] = x
    return ConstraintValues(value, C, bias)


def displace(tree: Tree, q: Array, displacement: Array) -> Array:
    """Return q after a displacement in the space of v.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, (..., nq).
    displacement
        (..., nv).
    """
    new = kinematics.integrate(tree, _elements(q), _elements(displacement))
    return np.stack(np.broadcast_arrays(*new), axis=-1) if new else np.array(q)


def ends_upright(tree: Tree, q: Array) -> Array:
    """Return a mask of the configurations `q` of `tree` in which no end of a loop is upside down."""
    upright = np.ones(q.shape[:-1], bool)
    for x in end_cosines(tree, _elements(np.asarray(q, float))):
        upright &= np.asarray(x) > 0.0
    return upright


def _elements(x: Array) -> list[Array]:
    return list(np.moveaxis(x, -1, 0))
