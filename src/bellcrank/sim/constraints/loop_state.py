"""Closed loops in one state: closure, distance from singular configurations, and reasons for failed steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.loops.assembly import assemble_batch, residual_summary
from bellcrank.dynamics.loops.constraint_equations import equation_names
from bellcrank.dynamics.loops.constraint_values import Array, ConstraintValues, evaluate_constraints
from bellcrank.dynamics.loops.equation_analysis import Analysis
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.errors import InputError, ModelError
from bellcrank.model import Mechanism
from bellcrank.model.tree import Tree

MAX_START_GAP = 1e-6  # largest gap of a start, relative to the natural size of an equation (constraint_values.py)
SINGULAR_RATIO = 1e7  # condition number, relative to the usual one, above which a start determines no motion
USUAL_SINGULAR_VALUE = 0.1  # typical lower bound of the smallest singular values of small linkages
# For each coordinate, smallest eigenvalue of the mass matrix with a unit diagonal that counts as inertia.
MIN_INERTIA = 1e-15
# Condition number, relative to the usual one, above which a failure is due to the configuration.
NEAR_SINGULAR_RATIO = 1e3


@dataclass(frozen=True)
class JacobianCondition:
    """Condition number of the constraint Jacobian C in natural sizes, each row relative to its usual size."""

    number: float
    equation: str  # the equation that follows from the others where the number is infinite
    joint: str  # the joint whose element of v the loops then leave free
    usual: float = 1.0  # the number in most configurations

    @property
    def near(self) -> bool:
        """True near a singular configuration."""
        return self.number > NEAR_SINGULAR_RATIO * self.usual

    @property
    def singular(self) -> bool:
        """True so near a singular configuration that no motion follows from the state."""
        return self.number > SINGULAR_RATIO * self.usual

    @property
    def words(self) -> str:
        """The number, with the equation and the joint that make it large."""
        number = f"{self.number:.3g}" if self.number < 1e16 else "infinite"
        return f'the condition number of C is {number}, worst in loop "{self.equation}", for "{self.joint}"'


def jacobian_condition(m: Mechanism, tree: Tree, loops: Analysis, q: Array) -> JacobianCondition:
    """Return the condition of the constraint Jacobian.

    Parameters
    ----------
    m
        The mechanism.
    tree
        Its tree with the values of free parameters.
    loops
        Analysis of its loops.
    q
        Positions.
    """
    rank = loops.rank
    U, s, V = np.linalg.svd(scaled_jacobian(tree, rank, evaluate_constraints(tree, q).C))
    n = rank.rank - 1  # later columns of U belong to redundant constraints, later rows of V to degrees of freedom
    equation = equation_names(tree)[rank.rows[int(np.argmax(np.abs(U[:, n])))]]
    joint = m.columns[1][int(np.argmax(np.abs(V[n])))]
    return JacobianCondition(float(s[0] / max(s[n], 1e-300)), equation, joint, usual_condition(loops))


def usual_condition(loops: Analysis) -> float:
    """Return the condition number of C in most configurations, from the analysis `loops`; at least 1."""
    return max(1.0, USUAL_SINGULAR_VALUE / max(loops.gap[0], 1e-300))


def scaled_jacobian(tree: Tree, rank: LoopRank, C: Array) -> Array:
    """Return the relevant rows of the constraint Jacobian in natural sizes of coordinates and rows.

    Parameters
    ----------
    tree
        The tree.
    rank
        Rank analysis of the loop equations.
    C
        Constraint Jacobian, (..., equations, nv).
    """
    return np.asarray(C[..., list(rank.rows), :] * rank.natural(tree.nv) / np.array(rank.scale)[:, None])


def checked_starts(m: Mechanism, tree: Tree, loops: Analysis, q: Array, v: Array, names: Sequence[str]) -> Array:
    """Return q with small gaps closed, or raise an error if gaps are large or no motion follows from a state.

    Parameters
    ----------
    m
        The mechanism.
    tree
        Its tree with the values of free parameters.
    loops
        Analysis of its loops.
    q, v
        Positions (n, nq) and velocities (n, nv).
    names
        Names of the states in an error; empty for a single one.
    """
    faulty = np.flatnonzero(~acceptable_starts(tree, loops, q, v))
    if len(faulty):
        k = int(faulty[0])
        _raise_start_error(m, tree, loops, q[k], v[k], names[k])
    if not loops.rank.rank:
        return q
    rough = loops.zero_threshold
    if len(q) == 1:
        return assemble_batch(tree, q[0], rough=rough)[0][None]
    return assemble_batch(tree, q, rough=rough)[0]


def _raise_start_error(m: Mechanism, tree: Tree, loops: Analysis, q: Array, v: Array, run: str) -> None:
    """Raise the error about one state that `acceptable_starts` does not accept; `run` names it."""
    row_names, equations = equation_names(tree), evaluate_constraints(tree, q)
    gap, speed, fastest = gaps(loops, equations, v)
    if gap > max(MAX_START_GAP, loops.contradiction_gap):
        raise InputError(
            f'q0{run} does not close the loops of "{m.name}": '
            f"{residual_summary(row_names, equations.value, loops.scales.rows)} (m, or 1 for directions). "
            "mechanism.assemble(q0) gives the nearest configuration that does."
        )
    if speed > max(MAX_START_GAP, loops.contradiction_gap * max(1.0, float(fastest))):
        raise InputError(
            f'v0{run} opens the loops of "{m.name}": {residual_summary(row_names, equations.C @ v, loops.scales.rows)} '
            "(m/s, or rad/s). mechanism.assemble(q0, v0) gives the nearest velocity that does not."
        )
    jacobian_state = jacobian_condition(m, tree, loops, q)
    if jacobian_state.singular:
        raise InputError(
            f'q0{run} is a singular configuration of "{m.name}": {jacobian_state.words}. It can move there in more '
            "ways than elsewhere, so its motion is not determined. Start slightly away from it: move a joint, and "
            "mechanism.assemble(q0, fixed=[...]) closes the loops (simulate --start NAME=VALUE does both)."
        )
    C = scaled_jacobian(tree, loops.rank, equations.C) / loops.rank.natural(tree.nv)
    _, motions = _motion_inertias(C, np.array(crba.mass_matrix(tree, q.tolist()), float), loops.rank)
    worst = m.columns[1][int(np.argmax(np.abs(motions[:, 0])))]
    raise ModelError(
        f'mechanism "{m.name}": the loops allow a motion, mostly of "{worst}", that moves no inertia, so no force '
        "determines its acceleration. Give the bodies there a mass and an inertia, or the joint an armature."
    )


def gaps(loops: Analysis, values: ConstraintValues, v: Array) -> tuple[Array, Array, Array]:
    """Return the largest gap, the largest speed of a gap, and the largest velocity, all in natural sizes.

    Parameters
    ----------
    loops
        Analysis of the loops.
    values
        Values and Jacobians of the equations.
    v
        Velocities.
    """
    gap = np.abs(values.value * loops.scales.rows).max(axis=-1, initial=0.0)
    speed = np.abs(np.einsum("...mk,...k->...m", values.C, v) * loops.scales.rows).max(axis=-1, initial=0.0)
    return np.asarray(gap), np.asarray(speed), np.asarray(np.abs(v / loops.scales.columns).max(axis=-1, initial=0.0))


def acceptable_starts(tree: Tree, loops: Analysis, q: Array, v: Array) -> Array:
    """Return a mask of the states with closed loops from which a motion follows.

    Parameters
    ----------
    tree
        The tree with the values of free parameters.
    loops
        Analysis of its loops.
    q, v
        Positions (n, nq) and velocities (n, nv) of n states.
    """
    equations, rank = evaluate_constraints(tree, q), loops.rank
    gap, speed, fastest = gaps(loops, equations, v)
    accepted = (gap <= max(MAX_START_GAP, loops.contradiction_gap)) & (
        speed <= np.maximum(MAX_START_GAP, loops.contradiction_gap * np.maximum(1.0, fastest))
    )
    if not rank.rank:
        return np.asarray(accepted)
    C = scaled_jacobian(tree, rank, equations.C)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(C).all(axis=(1, 2)) & accepted
    accepted &= finite
    C = np.where(finite[:, None, None], C, 0.0)
    size = np.linalg.svd(C, compute_uv=False)
    accepted &= size[:, 0] <= SINGULAR_RATIO * usual_condition(loops) * np.maximum(size[:, rank.rank - 1], 1e-300)
    rows = crba.mass_matrix(tree, list(np.moveaxis(q, -1, 0)))
    M = np.stack([np.stack(np.broadcast_arrays(*row, q[:, 0])[:-1], axis=-1) for row in rows], axis=1)
    C = C / rank.natural(tree.nv)
    accepted &= (
        _motion_inertias(C, np.where(np.isfinite(M), M, 0.0), rank)[0][..., :1].min(axis=-1, initial=1.0)
        >= MIN_INERTIA * tree.nv
    )
    return np.asarray(accepted)


def _motion_inertias(C: Array, M: Array, rank: LoopRank) -> tuple[Array, Array]:
    """Return the inertias of the motions that the loops allow, the least first, and the motions as columns.

    Each coordinate is scaled to an inertia of 1, so that units, sizes and masses do not matter.
    """
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    size = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 1.0)
    rows = C * size[..., None, :]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
    N = np.swapaxes(np.linalg.svd(rows)[2][..., rank.rank :, :], -1, -2)
    values, vectors = np.linalg.eigh(np.swapaxes(N, -1, -2) @ (M * size[..., None, :] * size[..., :, None]) @ N)
    return values, N @ vectors


def open_loop_message(m: Mechanism, jacobian_state: JacobianCondition, v: Array, form: str, t: float) -> str:
    """Return why a step could not end with closed loops.

    Parameters
    ----------
    m
        The mechanism.
    jacobian_state
        Condition of the constraint Jacobian.
    v
        Velocities.
    form
        Form of the closed loops.
    t
        Time before the step, s.
    """
    failure = f"the loops could not be followed in the step after {t:.6g} s: {jacobian_state.words}"
    if not jacobian_state.near:
        k = int(np.argmax(np.abs(v)))
        return (
            f"{failure}, which is not a singular configuration: the step is too long for the motion "
            f'("{m.columns[1][k]}" moves at {v[k]:.3g}). Take a smaller step, and look at gains and stiffnesses.'
        )
    other = "projected" if form == "minimal" else "minimal"
    return (
        f"{failure}. It is at, or passes close to, a singular configuration; the record ends before it. Take a smaller "
        f"step, adaptive steps (integrator=dopri5, tolerance=1e-8), form={other}, or another path."
    )
