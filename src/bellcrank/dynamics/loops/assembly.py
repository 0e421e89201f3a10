"""Assembly: the nearest configuration and velocity that close all loops (nikravesh1989, equation 26).

The damped Newton method of Levenberg and Marquardt is used, because a guess may be far away and rows may be dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.blocks import damped_step, pseudo_inverse
from bellcrank.dynamics.loops.numbers import Array, Closed, closed, moved, upright
from bellcrank.dynamics.loops.scaling import Scales, scales
from bellcrank.model.tree import Tree

AIMED_AT = 1e-12  # largest residual aimed at, relative to the natural size of its equation (scaling.py)
CLOSED = 1e3 * AIMED_AT  # residual that rounding may leave in large mechanisms
EXACT = 3e-15  # residual aimed at for the rank decision, where a residual looks like a singular value
ROUNDS = 200
ALLOWED = 1e-9  # singular values below this, relative to the largest, do not constrain a motion
# Singular values of C below this, relative to the largest, count as zero if loops close only roughly, as in files that
# have 1.571 for a quarter of a turn.
ROUGH = 3e-4
OPEN = 3.0  # loops may then stay open by this multiple of the tolerance
SLOWLY = 0.5  # the iteration ends if a closed loop's residual does not decrease below this fraction
LONGEST_MOVE = 0.5  # of a coordinate in one round, relative to its natural size
# Continuation along a branch: step lengths, largest number of steps, and largest motion of any coordinate in a step.
LONGEST_STEP, SHORTEST_STEP, MOST_STEPS, STRIDE = 0.1, 1e-5, 2000, 0.3
SPREAD = np.geomspace(0.05, 3.0, 48)  # distances of the points tried around a guess that fails


def assembled(
    tree: Tree,
    q: Array,
    free: Array | None = None,
    rounds: int = ROUNDS,
    rough: float = 0.0,
    aimed_at: float = AIMED_AT,
) -> tuple[Array, Array]:
    """Return (q, residuals) of assembled configurations.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Guesses, (..., nq).
    free
        Mask of the elements of v that may move; all if None.
    rounds
        Largest number of iterations.
    rough
        Equations that are redundant within this tolerance are not solved for, and keep their residual.
    aimed_at
        Residual at which the iteration ends, relative to the natural size of each equation.
    """
    batch = q.shape[:-1]
    q = np.array(q, float).reshape(-1, q.shape[-1])
    mask = np.ones(tree.nv) if free is None else np.asarray(free, float)
    now = closed(tree, q)
    by = scales(tree, now.C)
    error, aim = _aim(now, by, mask, rough)
    damping = np.full(len(q), 1e-3)
    stalled = np.zeros(len(q), bool)
    for _ in range(rounds):
        busy = (error > aimed_at) & (damping < 1e12) & ~(stalled & (error < CLOSED))
        if not busy.any():
            break
        step = aim(damping * np.minimum(1.0, error))
        longest = np.abs(step / by.columns).max(axis=-1, initial=0.0)
        step *= np.minimum(1.0, LONGEST_MOVE / np.maximum(longest, 1e-300))[:, None]
        trial = moved(tree, q, step)
        then = closed(tree, trial)
        new, _ = _aim(then, by, mask, rough)
        better = (new < error) & busy
        stalled = ~better | (new > SLOWLY * error)
        q = np.where(better[:, None], trial, q)
        now = _where(better, then, now)
        error, aim = _aim(now, by, mask, rough)
        damping = np.where(better, damping * 0.2, damping * 10.0)
    return q.reshape((*batch, q.shape[-1])), now.value.reshape((*batch, now.value.shape[-1]))


def _aim(now: Closed, by: Scales, mask: Array, rough: float) -> tuple[Array, Callable[[Array], Array]]:
    """Return the largest residual that a motion could change, and the step against it as a function of the damping."""
    if rough:
        return _rough_aim(now, by, mask, rough)

    def step(damping: Array) -> Array:
        C = now.C * by.rows[:, None] * mask
        says = np.flatnonzero(np.abs(C).max(axis=(0, 2)) > 0.0)  # the others hold identically, or never
        C, value = C[:, says], (now.value * by.rows)[:, says]
        # The damping decreases with the residual: quadratic at the end, but still defined for dependent rows.
        return -damped_step(C, damping + 1e-15 * len(says), value)

    return np.abs(now.value * by.rows).max(axis=-1, initial=0.0), step


def _rough_aim(now: Closed, by: Scales, mask: Array, rough: float) -> tuple[Array, Callable[[Array], Array]]:
    """Return the same as `_aim` from singular values, without the small ones."""
    U, s, V = np.linalg.svd(by.applied(now.C) * mask, full_matrices=False)
    counts = s > rough * np.maximum(s[:, :1], 1e-300)
    parts = np.where(counts, np.einsum("...mk,...m->...k", U, now.value * by.rows), 0.0)

    def step(damping: Array) -> Array:
        inverse = np.where(counts, s / (s * s + (damping * (s * s).mean(axis=1))[:, None] + 1e-300), 0.0)
        return np.asarray(-np.einsum("...kn,...k->...n", V, inverse * parts) * by.columns)

    return np.abs(np.einsum("...mk,...k->...m", U, parts)).max(axis=-1, initial=0.0), step


def _where(better: Array, new: Closed, old: Closed) -> Closed:
    return Closed(
        np.where(better[:, None], new.value, old.value),
        np.where(better[:, None, None], new.C, old.C),
        np.where(better[:, None], new.bias, old.bias),
    )


def closes(tree: Tree, q: Array, residual: Array, rough: float = 0.0) -> Array:
    """Return which configurations are assembled, with all ends upright.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Configurations.
    residual
        Their residuals.
    rough
        Tolerance of redundant equations.
    """
    shut = missed(tree, q, residual) < (OPEN * rough if rough else CLOSED)
    return np.asarray(shut & upright(tree, q))


def missed(tree: Tree, q: Array, residual: Array) -> Array:
    """Return the largest residual of each configuration, relative to the natural size of its equation.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Configurations.
    residual
        Their residuals.
    """
    rows = scales(tree, closed(tree, q).C).rows
    return np.asarray(np.abs(residual * rows).max(axis=-1, initial=0.0))


def searched(
    tree: Tree, guess: Array, free: Array | None = None, rough: float = 0.0, tries: int = 1
) -> tuple[Array, Array, bool]:
    """Return (q, residual, assembled) from the guess, or else the nearest assembly found from points around it.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    guess
        Positions, (nq,).
    free
        Mask of the elements of v that may move; all if None.
    rough
        Tolerance of redundant equations.
    tries
        Number of rounds of points around the best so far, if none before led to an assembly.
    """
    q, residual = assembled(tree, guess[None], free, rough=rough)
    if closes(tree, q, residual, rough)[0]:
        return q[0], residual[0], True
    rng, mask = np.random.default_rng(0), np.ones(tree.nv) if free is None else np.asarray(free, float)
    size = scales(tree, closed(tree, guess).C).columns * mask
    for _ in range(tries):
        around = moved(tree, np.broadcast_to(guess, (len(SPREAD), len(guess))), _scattered(rng, tree.nv) * size)
        others, left = assembled(tree, around, free, rough=rough)
        good = np.flatnonzero(closes(tree, others, left, rough))
        if len(good):
            nearest = good[np.argmin(np.linalg.norm(others[good] - guess, axis=1))]
            return others[nearest], left[nearest], True
        every, gaps = np.concatenate([q, others]), np.concatenate([residual, left])
        best = [int(np.argmin(missed(tree, every, gaps)))]
        q, residual = every[best], gaps[best]
    return q[0], residual[0], False


def _scattered(rng: np.random.Generator, nv: int) -> Array:
    return np.asarray(rng.normal(size=(len(SPREAD), nv)) * SPREAD[:, None])


def followed(tree: Tree, guess: Array, free: Array, rough: float = 0.0) -> Array | None:
    """Return a configuration with the held coordinates as in the guess, on the branch of the nearest assembly.

    The held coordinates move in short steps from their assembled values to the desired ones, along the tangent and back
    onto the loops, where the correction must be a small part of each step. None if that fails because the branch turns
    back.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    guess
        Positions, (nq,).
    free
        Mask of the elements of v that may move.
    rough
        Tolerance of redundant equations.
    """
    q, residual = assembled(tree, guess, rough=rough)
    if not closes(tree, q, residual, rough):
        return None
    length = LONGEST_STEP
    for _ in range(MOST_STEPS):
        left = _left(tree, q, guess, free)
        if left is None:
            return None
        C = closed(tree, q).C
        by = scales(tree, C)
        far = float(np.abs(left / by.columns).max(initial=0.0))
        if far < 1e-14:
            return q if closes(tree, q, closed(tree, q).value, rough) else None
        part = left * min(1.0, length / far)
        C = by.by_rows(C)
        aside = pseudo_inverse(C * free, rough or ALLOWED) @ (C @ part)
        ahead = moved(tree, q, part - aside * free)
        there, residual = assembled(tree, ahead, free, rough=rough)
        moves = float(np.abs((part - aside * free) / by.columns).max(initial=0.0))
        back = distance(tree, by, there - ahead)
        if closes(tree, there, residual, rough) and moves < STRIDE and back < max(0.2 * moves, 1e-9):
            q, length = there, min(2.0 * length, LONGEST_STEP)
        else:
            length *= 0.5
            if length < SHORTEST_STEP:
                return None
    return None


def distance(tree: Tree, by: Scales, change: Array) -> float:
    """Return the largest element of a change of q, relative to the natural size of its coordinate.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    by
        Natural sizes.
    change
        Change of q.
    """
    size = np.ones(tree.nq)
    for link in tree.links:
        size[list(link.q_index)] = by.columns[list(link.v_index)].max(initial=0.0) or 1.0
    return float(np.abs(change / size).max(initial=0.0))


def _left(tree: Tree, q: Array, guess: Array, free: Array) -> Array | None:
    """Return the remaining change of the held coordinates in the space of v; None if that is not defined."""
    out = np.zeros(tree.nv)
    for link in tree.links:
        if link.joint.mimic is None and not free[list(link.v_index)].all():
            if link.kind.nv != 1 and link.kind.name != "modal":
                return None
            own = list(link.q_index)
            out[list(link.v_index)] = guess[own] - q[own]
    return out


def consistent(tree: Tree, q: Array, v: Array, free: Array | None = None, rough: float = 0.0) -> Array:
    """Return the nearest velocity with C v = 0, changing only the free elements.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    free
        Mask of the elements of v that may change; all if None.
    rough
        Tolerance of redundant equations.
    """
    mask = np.ones(tree.nv) if free is None else np.asarray(free, float)
    C = closed(tree, q).C
    C = scales(tree, C).by_rows(C)
    gap = np.einsum("...mk,...k->...m", C, v)
    change = np.einsum("...km,...m->...k", pseudo_inverse(C * mask, rough or ALLOWED), gap)
    return np.asarray(v - change * mask)


def summary(names: list[str], value: Array, size: Array | float = 1.0, largest: int = 4) -> str:
    """Format the largest residuals by equation, the worst first.

    Parameters
    ----------
    names
        Names of the equations.
    value
        Residuals.
    size
        One over the natural size of each equation.
    largest
        Largest number of equations listed.
    """
    order: Any = np.argsort(-np.abs(value * size))[:largest]
    worst = np.abs(value * size) > AIMED_AT
    return ", ".join(f"{names[k]} {value[k]:.3g}" for k in order if worst[k])


def open_ends(names: list[str], residual: Array, size: Array | float = 1.0) -> str:
    """Describe which equations are not satisfied.

    Parameters
    ----------
    names
        Names of the equations.
    residual
        Residuals.
    size
        One over the natural size of each equation.
    """
    found = summary(names, residual, size)
    return f"these equations are not satisfied: {found} (m, or 1 for directions)" if found else "an end is upside down"
