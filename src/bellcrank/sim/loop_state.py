"""Numbers about closed loops in one state: whether it closes them, how near it is to a singular one, and in words why
a step could not be ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.loops.assembly import assembled, summary
from bellcrank.dynamics.loops.equation_analysis import Analysis
from bellcrank.dynamics.loops.numbers import Array, closed
from bellcrank.dynamics.loops.rank import Rank
from bellcrank.dynamics.loops.rows import names
from bellcrank.errors import InputError, ModelError
from bellcrank.model import Mechanism
from bellcrank.model.tree import Tree

GAP = 1e-6  # metres, or radians: a start that is open by more is a mistake
SINGULAR = 1e7  # of the condition number: a start beyond it determines no motion
STILL = 1e-13  # of the mean inertia: what moves less moves none
NEAR = 1e3  # beyond this, a failure is one of the configuration


@dataclass(frozen=True)
class Condition:
    """The condition of C, with each row against what it usually is."""

    number: float
    equation: str  # that follows from the others where the number is infinite
    joint: str  # whose element of v the loops then leave free

    @property
    def words(self) -> str:
        number = f"{self.number:.3g}" if self.number < 1e16 else "infinite"
        return f'the condition number of C is {number}, worst in loop "{self.equation}", for "{self.joint}"'


def condition(m: Mechanism, tree: Tree, rank: Rank, q: Array) -> Condition:
    C = closed(tree, q).C[list(rank.rows)] / np.array(rank.scale)[:, None]
    U, s, V = np.linalg.svd(C)
    n = rank.rank - 1  # beyond it, U has what follows from other equations, and V what the loops leave free anyway
    which = names(tree)[rank.rows[int(np.argmax(np.abs(U[:, n])))]]
    return Condition(float(s[0] / max(s[n], 1e-300)), which, m.columns[1][int(np.argmax(np.abs(V[n])))])


def started(m: Mechanism, tree: Tree, loops: Analysis, q: Array, v: Array, run: str) -> Array:
    """q with small gaps closed; an error where they are not small, or where no motion follows from the state."""
    what, now = names(tree), closed(tree, q)
    if np.abs(now.value).max(initial=0.0) > max(GAP, loops.slack):
        raise InputError(
            f'q0{run} does not close the loops of "{m.name}": {summary(what, now.value)} (m, or 1 for '
            "directions). mechanism.assemble(q0) gives the nearest configuration that does."
        )
    speed = now.C @ v
    fastest = float(np.abs(v).max(initial=0.0))
    if np.abs(speed).max(initial=0.0) > max(GAP, loops.slack * max(1.0, fastest)):
        raise InputError(
            f'v0{run} opens the loops of "{m.name}": {summary(what, speed)} (m/s, or rad/s). '
            "mechanism.assemble(q0, v0) gives the nearest velocity that does not."
        )
    if not loops.rank.rank:
        return q
    found = condition(m, tree, loops.rank, q)
    if found.number > SINGULAR:
        raise InputError(
            f'q0{run} is a singular configuration of "{m.name}": {found.words}. It can move there in more ways than '
            "elsewhere, so no motion follows from it. Start a little beside it: move a joint, and "
            "mechanism.assemble(q0, fixed=[...]) closes the loops (simulate --start NAME=VALUE does both)."
        )
    _movable(m, tree, loops.rank, q)
    return assembled(tree, q, rough=loops.rough)[0]


def sound(tree: Tree, loops: Analysis, q: Array, v: Array) -> Array:
    """Of many states at once (n, nq), those that `started` has nothing against but to close their small gaps."""
    now, rank = closed(tree, q), loops.rank
    fastest = np.maximum(1.0, np.abs(v).max(axis=1, initial=0.0))
    speed = np.abs(np.einsum("rmv,rv->rm", now.C, v)).max(axis=1, initial=0.0)
    good = np.abs(now.value).max(axis=1, initial=0.0) <= max(GAP, loops.slack)
    good &= speed <= np.maximum(GAP, loops.slack * fastest)
    if not rank.rank:
        return np.asarray(good)
    C = now.C[:, list(rank.rows)]
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(C).all(axis=(1, 2)) & good
    good &= finite
    C = np.where(finite[:, None, None], C, 0.0)
    size = np.linalg.svd(C / np.array(rank.scale)[:, None], compute_uv=False)
    good &= size[:, 0] <= SINGULAR * np.maximum(size[:, rank.rank - 1], 1e-300)
    N = np.linalg.svd(C)[2][:, rank.rank :]
    if N.shape[1]:
        rows = crba.mass_matrix(tree, list(np.moveaxis(q, -1, 0)))
        M = np.stack([np.stack(np.broadcast_arrays(*row, q[:, 0])[:-1], axis=-1) for row in rows], axis=1)
        M = np.where(np.isfinite(M), M, 0.0)
        least = np.linalg.eigvalsh(N @ M @ np.swapaxes(N, 1, 2))[:, 0]
        good &= least >= STILL * np.maximum(np.trace(M, axis1=1, axis2=2) / M.shape[1], 1e-300)
    return np.asarray(good)


def _movable(m: Mechanism, tree: Tree, rank: Rank, q: Array) -> None:
    """Every motion that the loops allow must move some inertia."""
    N = np.linalg.svd(closed(tree, q).C[list(rank.rows)])[2][rank.rank :]
    if not len(N):
        return
    M = np.array(crba.mass_matrix(tree, q.tolist()), float)
    values, vectors = np.linalg.eigh(N @ M @ N.T)
    if values[0] < STILL * max(np.trace(M) / len(M), 1e-300):
        worst = m.columns[1][int(np.argmax(np.abs(vectors[:, 0] @ N)))]
        raise ModelError(
            f'mechanism "{m.name}": the loops allow a motion, mostly of "{worst}", that moves no inertia, so no force '
            "determines its acceleration. Give the bodies there a mass and an inertia, or the joint an armature."
        )


def why_open(m: Mechanism, found: Condition, v: Array, form: str, t: float) -> str:
    """Why a step could not be ended with closed loops."""
    said = f"the loops could not be followed in the step after {t:.6g} s: {found.words}"
    if found.number < NEAR:
        k = int(np.argmax(np.abs(v)))
        return (
            f'{said}, which is no singular configuration: the step is too long for the motion ("{m.columns[1][k]}" '
            f"moves at {v[k]:.3g}). Take a smaller step, and look at gains and stiffnesses."
        )
    other = "projected" if form == "minimal" else "minimal"
    return (
        f"{said}. It is at, or passes close to, a singular configuration; what is recorded ends before it. Take a "
        f"smaller step, steps that are chosen (integrator=dopri5, tolerance=1e-8), form={other}, or another way."
    )
