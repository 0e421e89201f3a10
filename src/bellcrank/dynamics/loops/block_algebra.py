"""Block-wise linear algebra for independent loops: cubic operations are done for each block.

C is (..., m, n). Rows that share a column are in one block, directly or through others; columns without any row are in
none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def independent_blocks(C: Array) -> list[tuple[Array, Array]]:
    """Return rows and columns of each block of `C`; a row of zeros is a block of its own, without columns."""
    pattern = np.abs(C).max(axis=tuple(range(C.ndim - 2)), initial=0.0) > 0.0
    mark = list(range(len(pattern)))

    def top(k: int) -> int:
        """Return the representative of the block of row `k`."""
        while mark[k] != k:
            mark[k] = mark[mark[k]]
            k = mark[k]
        return k

    for column in pattern.T:
        rows = np.flatnonzero(column)
        for k in rows[1:]:
            mark[top(int(k))] = top(int(rows[0]))
    blocks: dict[int, list[int]] = {}
    for k in range(len(pattern)):
        blocks.setdefault(top(k), []).append(k)
    return [(np.array(rows), np.flatnonzero(pattern[rows].any(axis=0))) for rows in blocks.values()]


def _nonzero_blocks(C: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows, columns and the matrix of each block that is not zero."""
    for rows, columns in independent_blocks(C):
        if len(columns):
            yield rows, columns, C[..., rows[:, None], columns]


def singular_values(C: Array) -> Array:
    """Return the singular values of each matrix in `C`, in descending order, min(m, n) of them."""
    most = min(C.shape[-2:])
    values = [np.linalg.svd(part, compute_uv=False) for _, _, part in _nonzero_blocks(C)]
    every = np.concatenate([*values, np.zeros((*C.shape[:-2], most))], axis=-1)
    return np.asarray(-np.sort(-every, axis=-1)[..., :most])


def pseudo_inverse(C: Array, least: float) -> Array:
    """Return the pseudo-inverse of `C`; singular values below `least` times a block's largest count as zero."""
    P = np.zeros((*C.shape[:-2], C.shape[-1], C.shape[-2]))
    for rows, columns, part in _nonzero_blocks(C):
        P[..., columns[:, None], rows] = np.linalg.pinv(part, rcond=least)
    return P


def redundancy(C: Array, rank: int) -> Array:
    """Return projections onto the vanishing combinations of the rows of `C`, which has this `rank`: (..., m, m)."""
    U = np.linalg.svd(C)[0][..., :rank]
    return np.asarray(np.eye(C.shape[-2]) - U @ np.swapaxes(U, -1, -2))


def damped_step(C: Array, damping: Array, b: Array) -> Array:
    """Return C^T (C C^T + damping 1)^-1 b for each matrix.

    Parameters
    ----------
    C
        Matrices, (..., m, n).
    damping
        Relative to the mean of the diagonal of C C^T, block by block.
    b
        Right-hand sides, (..., m).
    """
    x = np.zeros((*C.shape[:-2], C.shape[-1]))
    for rows, columns, part in _nonzero_blocks(C):
        N = part @ np.swapaxes(part, -1, -2)
        size = np.maximum(np.trace(N, axis1=-2, axis2=-1) / len(rows), 1e-300)
        N += (damping * size)[..., None, None] * np.eye(len(rows))
        multipliers = np.linalg.solve(N, b[..., rows, None])[..., 0]
        x[..., columns] = np.einsum("...mk,...m->...k", part, multipliers)
    return x
