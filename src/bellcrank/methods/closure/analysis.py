"""What the loops do to a mechanism: which equations are redundant, and what mobility is left.

The rank of C is looked at in many assembled configurations. Rows that are always a combination of others are left out,
by name; the mobility is what the rest leaves, and beside it stands Gruebler's count, which knows nothing of geometry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.methods.closure.assembly import CLOSE, assembled, summary
from bellcrank.methods.closure.numbers import Array, closed, moved
from bellcrank.methods.closure.rows import names
from bellcrank.model.tree import Tree
from bellcrank.text import table

SAMPLES = 12
RANK = 1e-7  # singular values below this, against the largest, count as zero


@dataclass(frozen=True, eq=False)
class Analysis:
    names: tuple[str, ...]  # of all equations
    kept: tuple[int, ...]  # those that say something new
    trivial: tuple[int, ...]  # those that hold whatever the mechanism does
    pattern: Array  # (kept, nv): where C is not always zero
    nv: int
    samples: Array  # assembled configurations

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
        return head + "\n" + table(("equation", ""), rows)


def analysed(tree: Tree, start: Array, random: Array) -> Analysis:
    """From a configuration that the mechanism may start from, or, if that cannot be closed, from random ones."""
    what = names(tree)
    q, residual = assembled(tree, start[None])
    if not _closes(residual)[0]:
        more, left = assembled(tree, random)
        q, residual = np.concatenate([q, more]), np.concatenate([residual, left])
    good = _closes(residual)
    if not good.any():
        least = int(np.argmin(np.abs(residual).max(axis=-1)))
        raise ModelError(
            f"the loops cannot be closed: in the best of {len(q)} attempts these equations are not met: "
            f"{summary(what, residual[least])} (m, or 1 for directions). Look at points, axes "
            "and lengths of these loops."
        )
    q = _walked(tree, q[good][0])
    C = closed(tree, q).C
    size = np.abs(C).max(axis=(0, 2), initial=0.0)
    scale = size.max(initial=0.0) or 1.0
    trivial = tuple(int(k) for k in np.flatnonzero(size < 1e-10 * scale))
    kept = _independent(C, _rank(C))
    return Analysis(tuple(what), kept, trivial, np.abs(C[:, kept]).max(axis=0) > 1e-13 * scale, tree.nv, q)


def _closes(residual: Array) -> Array:
    return np.asarray(np.abs(residual).max(axis=-1, initial=0.0) < 1e3 * CLOSE)


def _walked(tree: Tree, q: Array) -> Array:
    """Configurations that the mechanism can reach from q: random moves that C allows, and back onto the loops."""
    rng = np.random.default_rng(0)
    found = [q]
    for k in range(SAMPLES - 1):
        C = closed(tree, found[-1]).C
        _, s, V = np.linalg.svd(C)
        rank = int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())
        move = rng.normal(size=tree.nv - rank) @ V[rank:]
        move *= (0.2 + 0.4 * rng.random()) / max(np.abs(move).max(initial=0.0), 1e-300)
        new, residual = assembled(tree, moved(tree, found[-1], move)[None])
        if _closes(residual)[0]:
            found.append(new[0])
        elif k > 2 * SAMPLES:
            break
    return np.array(found)


def _rank(C: Array) -> int:
    """The largest that any configuration has: others are singular."""
    if not C.shape[1]:
        return 0
    s = np.linalg.svd(C, compute_uv=False)
    return int((s > RANK * np.maximum(s[:, :1], 1e-300)).sum(axis=1).max())


def _independent(C: Array, rank: int) -> tuple[int, ...]:
    """Rows that are independent in every configuration that is not singular, one after the other.

    The next row is the one of which most is new where least of it is new. Ties go to the first.
    """
    s = np.linalg.svd(C, compute_uv=False)
    regular = (s > RANK * np.maximum(s[:, :1], 1e-300)).sum(axis=1) == rank
    rest = np.array(C[regular])
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
    return tuple(sorted(kept))
