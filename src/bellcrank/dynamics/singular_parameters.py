"""Detection of values of free parameters that make the mass matrix singular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.singular_mass import (
    CLEAR_PIVOT_RATIO,
    MATRIX_CHECK_MAX_NV,
    SINGULAR_EIGENVALUE,
    check_mass_matrix,
)
from bellcrank.errors import InputError, ModelError
from bellcrank.model.mechanism import Mechanism
from bellcrank.parameters import Free, evaluate, replace_free

Array = np.ndarray[Any, Any]
MOST_EXACT_CHECKS = 20  # values of parameters that are checked exactly: those with the smallest pivots
MATRIX_NUMBERS = 1_000_000  # numbers in the mass matrices that are computed at once for values of parameters
MOST_LISTED_PARAMETERS = 6


def check_parameter_values(mechanism: Mechanism, names: Sequence[str], p: Array, where: str) -> None:
    """Raise an InputError if values of free parameters make the mass matrix singular.

    Parameters
    ----------
    mechanism
        Mechanism, whose parameters may be among others.
    names
        Names of the parameters.
    p
        Their values, (..., len(names)).
    where
        Start of the message.
    """
    own = [names.index(name) for name in mechanism.parameters]
    if not own:
        return
    values = np.unique(p.reshape(-1, len(names))[:, own], axis=0)
    large = mechanism.nv > MATRIX_CHECK_MAX_NV
    rows = values[:MOST_EXACT_CHECKS] if large else values[_doubtful_rows(mechanism, values)]
    for row in rows:
        given = dict(zip(mechanism.parameters, row.tolist(), strict=True))
        try:
            check_mass_matrix(mechanism.at(given))
        except InputError:
            raise
        except ModelError as error:
            listed = ", ".join(f"{name} = {x:g}" for name, x in list(given.items())[:MOST_LISTED_PARAMETERS])
            raise InputError(f"{where}: with the parameters {listed}: {error}") from None


def _doubtful_rows(mechanism: Mechanism, values: Array) -> Array:
    """Return the indices of the `values` with the smallest pivots of the mass matrix, if these are small at all."""
    names, q, smallest = list(mechanism.parameters), mechanism.random(seed=0)[0].tolist(), np.zeros(len(values))
    chunk = max(1, MATRIX_NUMBERS // max(1, mechanism.nv**2))
    for begin in range(0, len(values), chunk):
        part, evaluated = values[begin : begin + chunk], dict[Any, Any]()

        def number(x: Free, part: Array = part, evaluated: dict[Any, Any] = evaluated) -> Any:
            return evaluate(x, lambda leaf: part[:, names.index(leaf.args[0])], evaluated)

        with np.errstate(all="ignore"):
            elements = crba.mass_matrix(replace_free(mechanism.tree, number), q)
            if not any(isinstance(x, np.ndarray) and x.ndim for row in elements for x in row):
                return np.zeros(0, int)  # the mass matrix does not depend on the parameters
            M = np.stack([np.stack([np.broadcast_to(x, len(part)) for x in row], axis=-1) for row in elements], axis=-2)
            diagonal = np.diagonal(M, axis1=-2, axis2=-1)
            scale = 1.0 / np.sqrt(diagonal)
            scaled = M * scale[:, :, None] * scale[:, None, :]
            some_zero = diagonal.min(axis=-1) <= CLEAR_PIVOT_RATIO * SINGULAR_EIGENVALUE * diagonal.max(axis=-1)
            bad = some_zero | ~np.isfinite(scaled).all(axis=(-2, -1))
            scaled[bad] = np.eye(mechanism.nv)
            smallest[begin : begin + chunk] = np.where(bad, 0.0, _smallest_pivots(scaled))
    small = np.flatnonzero(smallest < CLEAR_PIVOT_RATIO)
    return np.asarray(small[np.argsort(smallest[small], kind="stable")][:MOST_EXACT_CHECKS])


def _smallest_pivots(M: Array) -> Array:
    """Return the smallest pivot in the Cholesky factorisation of each matrix, or a bound below it."""
    try:
        factors = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:  # one of them is not positive definite
        return np.asarray(np.linalg.eigvalsh(M)[..., 0])
    return np.asarray(np.diagonal(factors, axis1=-2, axis2=-1).min(axis=-1) ** 2)
