"""What the loops do to a mechanism: which equations are redundant, and what mobility is left.

The rank of C is looked at in many assembled configurations. Rows that are always a combination of others are left out,
by name; the mobility is what the rest leaves, and beside it stands Gruebler's count, which knows nothing of geometry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.methods.closure.assembly import SPREAD, assembled, closes, open_ends, searched
from bellcrank.methods.closure.numbers import Array, closed, moved
from bellcrank.methods.closure.rows import names
from bellcrank.model.tree import Tree
from bellcrank.text import table

WALKERS, STEPS = 4, 3
RANK = 1e-7  # singular values below this, against the largest, count as zero


@dataclass(frozen=True, eq=False)
class Analysis:
    names: tuple[str, ...]  # of all equations
    kept: tuple[int, ...]  # those that say something new
    trivial: tuple[int, ...]  # those that hold whatever the mechanism does
    pattern: Array  # (kept, nv): where C is not always zero
    nv: int
    samples: Array  # assembled configurations, the first of them where it started
    more: int = 0  # freedoms that the mechanism has there, beyond those that it has elsewhere: it starts singular

    @property
    def redundant(self) -> tuple[str, ...]:
        """Names of the equations that follow from the others."""
        out = set(self.kept) | set(self.trivial)
        return tuple(name for k, name in enumerate(self.names) if k not in out)

    @property
    def mobility(self) -> int:
        return self.nv - len(self.kept)

    @property
    def gruebler(self) -> int:
        """Freedoms of the tree less all equations: what counting alone says."""
        return self.nv - len(self.names)

    def __str__(self) -> str:
        state = dict.fromkeys(self.kept, "kept") | dict.fromkeys(self.trivial, "holds by itself")
        rows = [(name, state.get(k, "redundant: follows from the others")) for k, name in enumerate(self.names)]
        equations = f"{len(self.kept)} of {len(self.names)} equations"
        head = f"mobility {self.mobility} (Gruebler counts {self.gruebler}), {equations}"
        if self.more:
            head += f"\nit starts where it is singular, with {self.more} more: the motion from there is not determined"
        return head + "\n" + table(("equation", ""), rows)


def analysed(tree: Tree, start: Array) -> Analysis:
    """From a configuration that the mechanism may start from, or the nearest that closes the loops."""
    what = names(tree)
    q, residual, good = searched(tree, start)
    if not good:
        raise ModelError(
            f"the loops cannot be closed: in the best of {1 + len(SPREAD)} attempts {open_ends(what, residual)}. Look "
            "at points, axes and lengths of these loops; if they do fit, say near which configuration: "
            "assemble(q_guess) finds it."
        )
    samples = _walked(tree, q)
    C = closed(tree, samples).C
    size = np.abs(C).max(axis=(0, 2), initial=0.0)
    scale = size.max(initial=0.0) or 1.0
    trivial = tuple(int(k) for k in np.flatnonzero(size < 1e-10 * scale))
    ranks = _ranks(C)
    rank = int(ranks.max(initial=0))
    kept = _independent(C[ranks == rank], rank)
    pattern = np.abs(C[:, kept]).max(axis=0) > 1e-13 * scale
    return Analysis(tuple(what), kept, trivial, pattern, tree.nv, samples, rank - int(ranks[0]))


def _walked(tree: Tree, q: Array) -> Array:
    """q, and configurations that the mechanism can reach from there: random moves that C allows, and back onto the
    loops.
    """
    rng = np.random.default_rng(0)
    found, now = [q[None]], np.repeat(q[None], WALKERS, axis=0)
    for _ in range(STEPS):
        move = _allowed(closed(tree, now).C, rng.normal(size=(WALKERS, tree.nv)))
        longest = np.maximum(np.abs(move).max(axis=1, initial=0.0, keepdims=True), 1e-300)
        move *= rng.uniform(0.2, 0.6, size=(WALKERS, 1)) / longest
        new, residual = assembled(tree, moved(tree, now, move))
        good = closes(tree, new, residual)
        now = np.where(good[:, None], new, now)
        found.append(now[good])
    return np.concatenate(found)


def _allowed(C: Array, v: Array) -> Array:
    """The part of v with C v = 0."""
    C = C[:, np.abs(C).max(axis=(0, 2), initial=0.0) > 0.0]
    N = C @ np.swapaxes(C, -1, -2)
    scale = np.maximum(np.trace(N, axis1=-2, axis2=-1), 1e-300)
    N = N + (1e-13 * scale)[:, None, None] * np.eye(N.shape[-1])  # rows may depend on each other
    return np.asarray(v - np.einsum("...mk,...m->...k", C, np.linalg.solve(N, C @ v[..., None])[..., 0]))


def _significant(s: Array) -> Array:
    """How many of the singular values are not zero."""
    return np.asarray((s > RANK * np.maximum(s[:, :1], 1e-300)).sum(axis=1))


def _ranks(C: Array) -> Array:
    """Of each configuration; fewer than the largest is singular."""
    C = C[:, np.abs(C).max(axis=(0, 2), initial=0.0) > 0.0]
    if 0 in C.shape:
        return np.zeros(len(C), int)
    return _significant(np.linalg.svd(C, compute_uv=False))


def _independent(C: Array, rank: int) -> tuple[int, ...]:
    """Rows that are independent in these configurations, none of which is singular, one after the other.

    The next row is the one of which most is new where least of it is new. Ties go to the first.
    """
    says = np.flatnonzero(np.abs(C).max(axis=(0, 2), initial=0.0) > 0.0)
    rest = np.array(C[:, says])
    norm = np.linalg.norm(rest, axis=2, keepdims=True)
    rest = np.where(norm > 1e-9, rest / np.where(norm > 0, norm, 1.0), 0.0)
    kept: list[int] = []
    for _ in range(rank):
        new: Any = np.quantile(np.linalg.norm(rest, axis=2), 0.25, axis=0)
        new[kept] = -1.0
        k = int(np.flatnonzero(new > new.max() * (1 - 1e-6))[0])
        kept.append(k)
        row = rest[:, k]
        unit = row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-300)
        rest = rest - np.einsum("smk,sk->sm", rest, unit)[..., None] * unit[:, None]
    return tuple(int(says[k]) for k in sorted(kept))
