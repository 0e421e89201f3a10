"""Numbers about closed loops in one state: whether it closes them, how near it is to a singular one, and in words why
a step could not be ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.loops.assembly import assembled, summary
from bellcrank.dynamics.loops.equation_analysis import Analysis
from bellcrank.dynamics.loops.numbers import Array, Closed, closed
from bellcrank.dynamics.loops.rank import Rank
from bellcrank.dynamics.loops.rows import names
from bellcrank.errors import InputError, ModelError
from bellcrank.model import Mechanism
from bellcrank.model.tree import Tree

GAP = 1e-6  # against the natural size of an equation (scaling.py): a start that is open by more is a mistake
SINGULAR = 1e7  # of the condition number, against what is usual: a start beyond it determines no motion
COMMON = 0.1  # smallest singular values are about so large, or larger, in small linkages
STILL = 1e-15  # for each coordinate, of the mass matrix with a unit diagonal: what moves less moves no inertia
NEAR = 1e3  # of the condition number, against what is usual: beyond this, a failure is one of the configuration


@dataclass(frozen=True)
class Condition:
    """The condition of C in natural sizes, with each row against what it usually is."""

    number: float
    equation: str  # that follows from the others where the number is infinite
    joint: str  # whose element of v the loops then leave free
    usual: float = 1.0  # what the number is in most configurations

    @property
    def near(self) -> bool:
        """Whether it is near a singular configuration."""
        return self.number > NEAR * self.usual

    @property
    def singular(self) -> bool:
        return self.number > SINGULAR * self.usual

    @property
    def words(self) -> str:
        number = f"{self.number:.3g}" if self.number < 1e16 else "infinite"
        return f'the condition number of C is {number}, worst in loop "{self.equation}", for "{self.joint}"'


def condition(m: Mechanism, tree: Tree, loops: Analysis, q: Array) -> Condition:
    rank = loops.rank
    U, s, V = np.linalg.svd(natural(tree, rank, closed(tree, q).C))
    n = rank.rank - 1  # beyond it, U has what follows from other equations, and V what the loops leave free anyway
    which = names(tree)[rank.rows[int(np.argmax(np.abs(U[:, n])))]]
    joint = m.columns[1][int(np.argmax(np.abs(V[n])))]
    return Condition(float(s[0] / max(s[n], 1e-300)), which, joint, usual_condition(loops))


def usual_condition(loops: Analysis) -> float:
    """The condition number that C has in most configurations; 1 where it is small."""
    return max(1.0, COMMON / max(loops.gap[0], 1e-300))


def natural(tree: Tree, rank: Rank, C: Array) -> Array:
    """The equations that say something, by the natural sizes of coordinates, each row against what it usually is."""
    return np.asarray(C[..., list(rank.rows), :] * rank.natural(tree.nv) / np.array(rank.scale)[:, None])


def started(m: Mechanism, tree: Tree, loops: Analysis, q: Array, v: Array, run: str) -> Array:
    """q with small gaps closed; an error where they are not small, or where no motion follows from the state."""
    what, now = names(tree), closed(tree, q)
    gap, speed, fastest = _gaps(loops, now, v)
    if gap > max(GAP, loops.slack):
        raise InputError(
            f'q0{run} does not close the loops of "{m.name}": {summary(what, now.value, loops.scales.rows)} (m, or '
            "1 for directions). mechanism.assemble(q0) gives the nearest configuration that does."
        )
    if speed > max(GAP, loops.slack * max(1.0, float(fastest))):
        raise InputError(
            f'v0{run} opens the loops of "{m.name}": {summary(what, now.C @ v, loops.scales.rows)} (m/s, or rad/s). '
            "mechanism.assemble(q0, v0) gives the nearest velocity that does not."
        )
    if not loops.rank.rank:
        return q
    found = condition(m, tree, loops, q)
    if found.singular:
        raise InputError(
            f'q0{run} is a singular configuration of "{m.name}": {found.words}. It can move there in more ways than '
            "elsewhere, so no motion follows from it. Start a little beside it: move a joint, and "
            "mechanism.assemble(q0, fixed=[...]) closes the loops (simulate --start NAME=VALUE does both)."
        )
    _movable(m, tree, loops.rank, q)
    return assembled(tree, q, rough=loops.rough)[0]


def _gaps(loops: Analysis, now: Closed, v: Array) -> tuple[Array, Array, Array]:
    """How far loops are open, how fast they open, and the fastest coordinate, all against natural sizes."""
    gap = np.abs(now.value * loops.scales.rows).max(axis=-1, initial=0.0)
    speed = np.abs(np.einsum("...mk,...k->...m", now.C, v) * loops.scales.rows).max(axis=-1, initial=0.0)
    return np.asarray(gap), np.asarray(speed), np.asarray(np.abs(v / loops.scales.columns).max(axis=-1, initial=0.0))


def sound(tree: Tree, loops: Analysis, q: Array, v: Array) -> Array:
    """Of many states at once (n, nq), those that `started` has nothing against but to close their small gaps."""
    now, rank = closed(tree, q), loops.rank
    gap, speed, fastest = _gaps(loops, now, v)
    good = (gap <= max(GAP, loops.slack)) & (speed <= np.maximum(GAP, loops.slack * np.maximum(1.0, fastest)))
    if not rank.rank:
        return np.asarray(good)
    C = natural(tree, rank, now.C)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(C).all(axis=(1, 2)) & good
    good &= finite
    C = np.where(finite[:, None, None], C, 0.0)
    size = np.linalg.svd(C, compute_uv=False)
    good &= size[:, 0] <= SINGULAR * usual_condition(loops) * np.maximum(size[:, rank.rank - 1], 1e-300)
    rows = crba.mass_matrix(tree, list(np.moveaxis(q, -1, 0)))
    M = np.stack([np.stack(np.broadcast_arrays(*row, q[:, 0])[:-1], axis=-1) for row in rows], axis=1)
    C = C / rank.natural(tree.nv)
    good &= _inertia(C, np.where(np.isfinite(M), M, 0.0), rank)[0][..., :1].min(axis=-1, initial=1.0) >= STILL * tree.nv
    return np.asarray(good)


def _movable(m: Mechanism, tree: Tree, rank: Rank, q: Array) -> None:
    """Every motion that the loops allow must move some inertia."""
    C = natural(tree, rank, closed(tree, q).C) / rank.natural(tree.nv)
    values, motions = _inertia(C, np.array(crba.mass_matrix(tree, q.tolist()), float), rank)
    if len(values) and values[0] < STILL * tree.nv:
        worst = m.columns[1][int(np.argmax(np.abs(motions[:, 0])))]
        raise ModelError(
            f'mechanism "{m.name}": the loops allow a motion, mostly of "{worst}", that moves no inertia, so no force '
            "determines its acceleration. Give the bodies there a mass and an inertia, or the joint an armature."
        )


def _inertia(C: Array, M: Array, rank: Rank) -> tuple[Array, Array]:
    """The inertia of what the loops allow, the least first, and the motions as columns.

    Each coordinate is measured so that its own inertia is 1, whatever its unit, its size and the masses that it moves.
    """
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    size = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 1.0)
    rows = C * size[..., None, :]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
    N = np.swapaxes(np.linalg.svd(rows)[2][..., rank.rank :, :], -1, -2)
    values, vectors = np.linalg.eigh(np.swapaxes(N, -1, -2) @ (M * size[..., None, :] * size[..., :, None]) @ N)
    return values, N @ vectors


def why_open(m: Mechanism, found: Condition, v: Array, form: str, t: float) -> str:
    """Why a step could not be ended with closed loops."""
    said = f"the loops could not be followed in the step after {t:.6g} s: {found.words}"
    if not found.near:
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
