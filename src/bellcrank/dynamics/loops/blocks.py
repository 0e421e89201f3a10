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
    """What is below `least` of a matrix's largest singular value counts as zero."""
    P = np.zeros((*C.shape[:-2], C.shape[-1], C.shape[-2]))
    largest = singular_values(C).max(axis=-1, initial=0.0)
    for rows, columns, part in _parts(C):
        mine = np.linalg.svd(part, compute_uv=False)[..., 0]
        P[..., columns[:, None], rows] = np.linalg.pinv(part, rcond=least * largest / np.maximum(mine, 1e-300))
    return P


def redundancy(C: Array, rank: int) -> Array:
    """Onto the combinations of rows that vanish, of each matrix: (..., m, m). So many of its singular values count."""
    values = np.concatenate([singular_values(C), np.zeros((*C.shape[:-2], 1))], axis=-1)
    edge = (values[..., rank - 1] + values[..., rank]) / 2 if rank else np.full(C.shape[:-2], np.inf)
    P = np.zeros((*C.shape[:-2], C.shape[-2], C.shape[-2]))
    for rows, columns in blocks(C):
        if not len(columns):
            P[..., rows, rows] = 1.0
            continue
        U, s, _ = np.linalg.svd(C[..., rows[:, None], columns])
        counts = np.zeros((*C.shape[:-2], len(rows)))
        counts[..., : s.shape[-1]] = s >= edge[..., None]
        P[..., rows[:, None], rows] = np.eye(len(rows)) - (U * counts[..., None, :]) @ np.swapaxes(U, -1, -2)
    return P


def solved(C: Array, added: Array, b: Array) -> Array:
    """x with (C C^T + added 1) x = b, of each."""
    x = b / added[..., None]
    for rows, _, part in _parts(C):
        N = part @ np.swapaxes(part, -1, -2) + added[..., None, None] * np.eye(len(rows))
        x[..., rows] = np.linalg.solve(N, b[..., rows, None])[..., 0]
    return x
