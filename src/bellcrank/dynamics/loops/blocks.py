"""Matrices of loops that have nothing to do with each other: what is cubic is done for each of their blocks.

C is (..., m, n). Rows that share a column are of one block, directly or through others; columns without any row are of
none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def blocks(C: Array) -> list[tuple[Array, Array]]:
    """Rows and columns of each; a row of zeros is a block of its own, without columns."""
    pattern = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0) > 0.0
    mark = list(range(len(pattern)))

    def top(k: int) -> int:
        while mark[k] != k:
            mark[k] = mark[mark[k]]
            k = mark[k]
        return k

    for column in pattern.T:
        rows = np.flatnonzero(column)
        for k in rows[1:]:
            mark[top(int(k))] = top(int(rows[0]))
    found: dict[int, list[int]] = {}
    for k in range(len(pattern)):
        found.setdefault(top(k), []).append(k)
    return [(np.array(rows), np.flatnonzero(pattern[rows].any(axis=0))) for rows in found.values()]


def _parts(C: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Rows, columns and the matrix of each block that is not zero."""
    for rows, columns in blocks(C):
        if len(columns):
            yield rows, columns, C[..., rows[:, None], columns]


def singular_values(C: Array) -> Array:
    """Those of each matrix, the largest first, as many as it is wide or high."""
    most = min(C.shape[-2:])
    found = [np.linalg.svd(part, compute_uv=False) for _, _, part in _parts(C)]
    every = np.concatenate([*found, np.zeros((*C.shape[:-2], most))], axis=-1)
    return np.asarray(-np.sort(-every, axis=-1)[..., :most])


def pseudo_inverse(C: Array, least: float) -> Array:
    """What is below `least` of a block's largest singular value counts as zero."""
    P = np.zeros((*C.shape[:-2], C.shape[-1], C.shape[-2]))
    for rows, columns, part in _parts(C):
        P[..., columns[:, None], rows] = np.linalg.pinv(part, rcond=least)
    return P


def redundancy(C: Array, rank: int) -> Array:
    """Projections onto the combinations of rows that vanish, of matrices of this rank: (..., m, m)."""
    U = np.linalg.svd(C)[0][..., :rank]
    return np.asarray(np.eye(C.shape[-2]) - U @ np.swapaxes(U, -1, -2))


def damped_step(C: Array, damping: Array, b: Array) -> Array:
    """C^T (C C^T + damping 1)^-1 b, of each; the damping is against the mean of the diagonal, block by block."""
    x = np.zeros((*C.shape[:-2], C.shape[-1]))
    for rows, columns, part in _parts(C):
        N = part @ np.swapaxes(part, -1, -2)
        size = np.maximum(np.trace(N, axis1=-2, axis2=-1) / len(rows), 1e-300)
        N += (damping * size)[..., None, None] * np.eye(len(rows))
        multipliers = np.linalg.solve(N, b[..., rows, None])[..., 0]
        x[..., columns] = np.einsum("...mk,...m->...k", part, multipliers)
    return x
