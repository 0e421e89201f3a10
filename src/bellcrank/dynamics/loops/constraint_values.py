"""Numerical evaluation of the loop equations, for batches of configurations, and the natural sizes of equations.

Natural sizes make decisions independent of units and dimensions. An equation between lengths is scaled by the largest
lever of its own loop, one between directions by 1. A rotational coordinate has the natural size 1 rad, a sliding one
the smallest lever among its loops. With this scaling, C of a watch inside a crane has the same singular values as C of
the watch alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.dynamics.loops.constraint_equations import (
    coordinate_equations,
    end_cosines,
    equation_families,
    loop_equations,
)
from bellcrank.model.tree import Tree
from bellcrank.scalar import is_zero

Array = np.ndarray[Any, Any]
# Levers and elements of C below this, relative to the largest of their loop, are rounding.
NEGLIGIBLE_RATIO = 1e-12
ROUNDING_ELEMENT = 1e-15  # elements of C in natural sizes that are smaller are zero


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


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors that make C dimensionless: rows[:, None] * C * columns."""

    rows: Array  # (m,): one over the natural size of each equation
    columns: Array  # (nv,): natural size of each element of v

    def scaled(self, C: Array) -> Array:
        """Return `C` in natural sizes, without rounding errors."""
        return self._without_rounding(C, C * self.rows[:, None] * self.columns)

    def scale_rows(self, C: Array) -> Array:
        """Return `C` with rows in natural sizes and columns as they are, without rounding errors."""
        return self._without_rounding(C, C * self.rows[:, None])

    def _without_rounding(self, C: Array, scaled: Array) -> Array:
        largest = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0) * self.rows[:, None] * self.columns
        return np.where(largest < ROUNDING_ELEMENT, 0.0, scaled)


def natural_scales(tree: Tree, C: Array) -> Scales:
    """Return natural sizes for `tree`, from `C` in one or more configurations (..., m, nv)."""
    size = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0)
    turning, rows = rotational_columns(tree), np.ones(C.shape[-2])
    columns = np.where(turning, 1.0, np.inf)
    family_levers = _levers(tree, size, turning)
    longest = max((lever for _, lever in family_levers), default=0.0)
    # Equations without rotations come last, because they need the sizes of slides.
    for family, lever in sorted(family_levers, key=lambda x: x[1] == 0.0):
        natural_length = lever or _slide_size(size[family], columns) or longest or 1.0
        rows[family] = 1.0 / natural_length
        moves = size[family].max(axis=0, initial=0.0) > NEGLIGIBLE_RATIO * size[family].max(initial=0.0)
        columns = np.where(moves & ~turning, np.minimum(columns, natural_length), columns)
    return Scales(rows, np.where(np.isfinite(columns), columns, longest or 1.0))


def rotational_columns(tree: Tree) -> Array:
    """Return a mask of the elements of v that rotate a body of `tree`."""
    turning, still = np.zeros(tree.nv, bool), [0.0] * tree.nq
    for link in tree.links:
        if link.kind.name != "modal":
            for s, k in zip(link.subspace(still), link.v_index, strict=True):
                turning[k] |= not all(is_zero(x) for x in s.ang)
    return turning


def _levers(tree: Tree, size: Array, turning: Array) -> list[tuple[list[int], float]]:
    """Return the equations with a unit, by loop, and their largest change for a rotation by 1 rad; else 0."""
    coupled, family_levers = coordinate_equations(tree), []
    for family, is_length in equation_families(tree):
        if is_length or family[0] in coupled:
            family_levers.append((family, float(size[family][:, turning].max(initial=0.0))))
    longest = max((lever for _, lever in family_levers), default=0.0)
    return [(family, lever if lever > NEGLIGIBLE_RATIO * longest else 0.0) for family, lever in family_levers]


def _slide_size(size: Array, columns: Array) -> float:
    """Return the size of equations without rotations, by the natural sizes of coordinates in other loops."""
    known = np.isfinite(columns)
    return float((size[:, known] * columns[known]).max(initial=0.0))
