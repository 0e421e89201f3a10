"""Assembly: the nearest configuration and velocity that close all loops (nikravesh1989, equation 26).

The damped Newton method of Levenberg and Marquardt is used, because a guess may be far away and rows may be dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.constraint_values import (
    Array,
    ConstraintValues,
    Scales,
    damped_step,
    displace,
    ends_upright,
    evaluate_constraints,
    natural_scales,
    pseudo_inverse,
)
from bellcrank.model.tree import Tree

RESIDUAL_GOAL = 1e-12  # largest residual aimed at, relative to the natural size of its equation (constraint_values.py)
CLOSED_RESIDUAL = 1e3 * RESIDUAL_GOAL  # residual that rounding may leave in large mechanisms
EXACT_RESIDUAL = 3e-15  # residual aimed at for the rank decision, where a residual looks like a singular value
MAX_ITERATIONS = 200
MOTION_TOLERANCE = 1e-9  # singular values below this, relative to the largest, do not constrain a motion
# Singular values of C below this, relative to the largest, count as zero if loops close only roughly, as in files that
# have 1.571 for a quarter of a turn.
ROUGH_TOLERANCE = 3e-4
OPEN_FACTOR = 3.0  # loops may then stay open by this multiple of the tolerance
SLOW_PROGRESS_RATIO = 0.5  # the iteration ends if a closed loop's residual does not decrease below this fraction
LONGEST_MOVE = 0.5  # of a coordinate in one round, relative to its natural size
# Continuation along a branch: step lengths, largest number of steps, and largest motion of any coordinate in a step.
LONGEST_STEP, SHORTEST_STEP, MOST_STEPS, STRIDE = 0.1, 1e-5, 2000, 0.3
SEARCH_DISTANCES = np.geomspace(0.05, 3.0, 48)  # distances of the points tried around a guess that fails


def assemble_batch(
    tree: Tree,
    q: Array,
    free: Array | None = None,
    rough: float = 0.0,
    aimed_at: float = RESIDUAL_GOAL,
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
    rough
        Equations that are redundant within this tolerance are not solved for, and keep their residual.
    aimed_at
        Residual at which the iteration ends, relative to the natural size of each equation.
    """
    batch = q.shape[:-1]
    q = np.array(q, float).reshape(-1, q.shape[-1])
    mask = np.ones(tree.nv) if free is None else np.asarray(free, float)
    values = evaluate_constraints(tree, q)
    natural = natural_scales(tree, values.C)
    error, step_for = _residual_and_step(values, natural, mask, rough)
    damping = np.full(len(q), 1e-3)
    stalled = np.zeros(len(q), bool)
    for _ in range(MAX_ITERATIONS):
        active = (error > aimed_at) & (damping < 1e12) & ~(stalled & (error < CLOSED_RESIDUAL))
        if not active.any():
            break
        step = step_for(damping * np.minimum(1.0, error))
        longest = np.abs(step / natural.columns).max(axis=-1, initial=0.0)
        step *= np.minimum(1.0, LONGEST_MOVE / np.maximum(longest, 1e-300))[:, None]
        trial = displace(tree, q, step)
        trial_values = evaluate_constraints(tree, trial)
        new, _ = _residual_and_step(trial_values, natural, mask, rough)
        better = (new < error) & active
        stalled = ~better | (new > SLOW_PROGRESS_RATIO * error)
        q = np.where(better[:, None], trial, q)
        values = _select(better, trial_values, values)
        error, step_for = _residual_and_step(values, natural, mask, rough)
        damping = np.where(better, damping * 0.2, damping * 10.0)
    return q.reshape((*batch, q.shape[-1])), values.value.reshape((*batch, values.value.shape[-1]))


def _residual_and_step(
    values: ConstraintValues, natural: Scales, mask: Array, rough: float
) -> tuple[Array, Callable[[Array], Array]]:
    """Return the largest residual that a motion could change, and the step against it as a function of the damping."""
    if rough:
        return _rough_residual_and_step(values, natural, mask, rough)

    def step(damping: Array) -> Array:
        C = values.C * natural.rows[:, None] * mask
        says = np.flatnonzero(np.abs(C).max(axis=(0, 2)) > 0.0)  # the others hold identically, or never
        C, value = C[:, says], (values.value * natural.rows)[:, says]
        # The damping decreases with the residual: quadratic at the end, but still defined for dependent rows.
        return -damped_step(C, damping + 1e-15 * len(says), value)

    return np.abs(values.value * natural.rows).max(axis=-1, initial=0.0), step


def _rough_residual_and_step(
    values: ConstraintValues, natural: Scales, mask: Array, rough: float
) -> tuple[Array, Callable[[Array], Array]]:
    """Return the same as `_residual_and_step` from singular values, without the small ones."""
    U, s, V = np.linalg.svd(natural.scaled(values.C) * mask, full_matrices=False)
    counts = s > rough * np.maximum(s[:, :1], 1e-300)
    parts = np.where(counts, np.einsum("...mk,...m->...k", U, values.value * natural.rows), 0.0)

    def step(damping: Array) -> Array:
        inverse = np.where(counts, s / (s * s + (damping * (s * s).mean(axis=1))[:, None] + 1e-300), 0.0)
        return np.asarray(-np.einsum("...kn,...k->...n", V, inverse * parts) * natural.columns)

    return np.abs(np.einsum("...mk,...k->...m", U, parts)).max(axis=-1, initial=0.0), step


def _select(better: Array, new: ConstraintValues, old: ConstraintValues) -> ConstraintValues:
    return ConstraintValues(
        np.where(better[:, None], new.value, old.value),
        np.where(better[:, None, None], new.C, old.C),
        np.where(better[:, None], new.bias, old.bias),
    )


def is_assembled(tree: Tree, q: Array, residual: Array, rough: float = 0.0) -> Array:
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
    shut = relative_residual(tree, q, residual) < (OPEN_FACTOR * rough if rough else CLOSED_RESIDUAL)
    return np.asarray(shut & ends_upright(tree, q))


def relative_residual(tree: Tree, q: Array, residual: Array) -> Array:
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
    rows = natural_scales(tree, evaluate_constraints(tree, q).C).rows
    return np.asarray(np.abs(residual * rows).max(axis=-1, initial=0.0))


def search_assembly(
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
    q, residual = assemble_batch(tree, guess[None], free, rough=rough)
    if is_assembled(tree, q, residual, rough)[0]:
        return q[0], residual[0], True
    rng, mask = np.random.default_rng(0), np.ones(tree.nv) if free is None else np.asarray(free, float)
    size = natural_scales(tree, evaluate_constraints(tree, guess).C).columns * mask
    for _ in range(tries):
        offsets = rng.normal(size=(len(SEARCH_DISTANCES), tree.nv)) * SEARCH_DISTANCES[:, None] * size
        around = displace(tree, np.broadcast_to(guess, (len(SEARCH_DISTANCES), len(guess))), offsets)
        others, other_residuals = assemble_batch(tree, around, free, rough=rough)
        good = np.flatnonzero(is_assembled(tree, others, other_residuals, rough))
        if len(good):
            nearest = good[np.argmin(np.linalg.norm(others[good] - guess, axis=1))]
            return others[nearest], other_residuals[nearest], True
        every, gaps = np.concatenate([q, others]), np.concatenate([residual, other_residuals])
        best = [int(np.argmin(relative_residual(tree, every, gaps)))]
        q, residual = every[best], gaps[best]
    return q[0], residual[0], False


def follow_branch(tree: Tree, guess: Array, free: Array, rough: float = 0.0) -> Array | None:
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
    q, residual = assemble_batch(tree, guess, rough=rough)
    if not is_assembled(tree, q, residual, rough):
        return None
    length = LONGEST_STEP
    for _ in range(MOST_STEPS):
        remaining = _remaining_change(tree, q, guess, free)
        if remaining is None:
            return None
        C = evaluate_constraints(tree, q).C
        natural = natural_scales(tree, C)
        largest_remaining = float(np.abs(remaining / natural.columns).max(initial=0.0))
        if largest_remaining < 1e-14:
            return q if is_assembled(tree, q, evaluate_constraints(tree, q).value, rough) else None
        part = remaining * min(1.0, length / largest_remaining)
        C = natural.scale_rows(C)
        tangent_correction = pseudo_inverse(C * free, rough or MOTION_TOLERANCE) @ (C @ part)
        predicted = displace(tree, q, part - tangent_correction * free)
        corrected, residual = assemble_batch(tree, predicted, free, rough=rough)
        moves = float(np.abs((part - tangent_correction * free) / natural.columns).max(initial=0.0))
        back = relative_change(tree, natural, corrected - predicted)
        if is_assembled(tree, corrected, residual, rough) and moves < STRIDE and back < max(0.2 * moves, 1e-9):
            q, length = corrected, min(2.0 * length, LONGEST_STEP)
        else:
            length *= 0.5
            if length < SHORTEST_STEP:
                return None
    return None


def relative_change(tree: Tree, natural: Scales, change: Array) -> float:
    """Return the largest element of a change of q, relative to the natural size of its coordinate.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    natural
        Natural sizes.
    change
        Change of q.
    """
    size = np.ones(tree.nq)
    for link in tree.links:
        size[list(link.q_index)] = natural.columns[list(link.v_index)].max(initial=0.0) or 1.0
    return float(np.abs(change / size).max(initial=0.0))


def _remaining_change(tree: Tree, q: Array, guess: Array, free: Array) -> Array | None:
    """Return the remaining change of the held coordinates in the space of v; None if that is not defined."""
    out = np.zeros(tree.nv)
    for link in tree.links:
        if link.joint.mimic is None and not free[list(link.v_index)].all():
            if link.kind.nv != 1 and link.kind.name != "modal":
                return None
            indices = list(link.q_index)
            out[list(link.v_index)] = guess[indices] - q[indices]
    return out


def consistent_velocity(tree: Tree, q: Array, v: Array, free: Array | None = None, rough: float = 0.0) -> Array:
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
    C = evaluate_constraints(tree, q).C
    C = natural_scales(tree, C).scale_rows(C)
    gap = np.einsum("...mk,...k->...m", C, v)
    change = np.einsum("...km,...m->...k", pseudo_inverse(C * mask, rough or MOTION_TOLERANCE), gap)
    return np.asarray(v - change * mask)


def residual_summary(names: list[str], value: Array, size: Array | float = 1.0, largest: int = 4) -> str:
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
    worst = np.abs(value * size) > RESIDUAL_GOAL
    return ", ".join(f"{names[k]} {value[k]:.3g}" for k in order if worst[k])


def describe_residual(names: list[str], residual: Array, size: Array | float = 1.0) -> str:
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
    summary = residual_summary(names, residual, size)
    return (
        f"these equations are not satisfied: {summary} (m, or 1 for directions)" if summary else "an end is upside down"
    )
