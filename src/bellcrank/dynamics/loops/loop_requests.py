"""Requests about loops: `mechanism.assemble(q_guess, v_guess, fixed)`, and the actuated joints of inverse dynamics.

There must be as many actuated coordinates as degrees of freedom, and with them locked nothing else may move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.assembly import (
    CLOSED_RESIDUAL,
    OPEN_FACTOR,
    assemble_batch,
    consistent_velocity,
    describe_residual,
    follow_branch,
    is_assembled,
    relative_change,
    residual_summary,
    search_assembly,
)
from bellcrank.dynamics.loops.constraint_equations import equation_names
from bellcrank.dynamics.loops.constraint_values import Array, evaluate_constraints, natural_scales
from bellcrank.dynamics.loops.equation_analysis import Analysis, analysis
from bellcrank.dynamics.quantities import check_moving_body
from bellcrank.errors import InputError, ModelError, unknown, warn
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.model.tree import Tree

NEAR_BRANCH = 0.3  # largest distance of a guess from its branch: rad, or a fraction of the coordinate's natural size


def assemble(
    mechanism: Mechanism,
    q_guess: Any = None,
    v_guess: Any = None,
    fixed: Sequence[str] = (),
) -> tuple[Array, Array]:
    """Return positions and velocities that close all loops, the nearest to the guesses that are found.

    Joints in `fixed` keep the guessed positions and velocities; the other coordinates follow on the branch of the
    nearest assembly, with a warning if that is not possible. If the loops could not be closed near the zero
    configuration, the mechanism is analysed at the assembly found here.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism with loops; free parameters have their nominal values.
    q_guess : array_like, shape (nq,), or mapping, optional
        Positions, rad or m, or a mapping by the names in `mechanism.columns`. Default: the zero configuration.
    v_guess : array_like, shape (nv,), or mapping, optional
        Velocities, likewise. Default: at rest.
    fixed : sequence of str, optional
        Names of joints that must not deviate from the guesses.

    Returns
    -------
    q : ndarray, shape (nq,)
        Positions.
    v : ndarray, shape (nv,)
        Velocities.

    Raises
    ------
    InputError
        If an argument is invalid, or the loops do not close with these fixed joints and velocities.
    """
    check_moving_body(mechanism)
    plain = mechanism.at() if mechanism.parameters else mechanism
    where = f'assemble "{mechanism.name}"'
    q = _parse_vector(f"{where}: q_guess", q_guess, mechanism.columns[0], plain.neutral())
    v = _parse_vector(f"{where}: v_guess", v_guess, mechanism.columns[1], np.zeros(mechanism.nv))
    q = _normalise_quaternions(where, mechanism, q)
    free = _free_mask(where, mechanism, fixed)
    tree, rough = plain.tree, _rough_tolerance(mechanism)
    q_assembled, residual, success = _assemble_near(where, tree, q, free, rough)
    if not success:
        size = natural_scales(tree, evaluate_constraints(tree, q_assembled).C).rows
        raise InputError(
            f"{where}: {describe_residual(equation_names(tree), residual, size)}. {_advice(tree, q, fixed)}"
        )
    analysis(mechanism, near=q_assembled)
    v_consistent = consistent_velocity(tree, q_assembled, v, free, rough)
    C = evaluate_constraints(tree, q_assembled).C
    natural, missed = natural_scales(tree, C), C @ v_consistent
    fastest = float(np.abs(v / natural.columns).max(initial=0.0))
    if np.abs(missed * natural.rows).max(initial=0.0) > max(CLOSED_RESIDUAL, OPEN_FACTOR * rough) * max(1.0, fastest):
        raise InputError(
            f"{where}: the loops do not allow the velocities of {', '.join(fixed)}: they would open at "
            f"{residual_summary(equation_names(tree), missed, natural.rows)} (m/s, or 1/s). "
            "Fix fewer joints, or give consistent velocities."
        )
    return q_assembled, v_consistent


def _rough_tolerance(mechanism: Mechanism) -> float:
    """Return the tolerance of redundant equations, 0 if the mechanism has not been assembled."""
    try:
        return analysis(mechanism).zero_threshold
    except ModelError:
        return 0.0


def _assemble_near(where: str, tree: Tree, guess: Array, free: Array, rough: float) -> tuple[Array, Array, bool]:
    """Assemble along the branch nearest to the guess if joints are fixed, otherwise to the nearest assembly found."""
    if not free.all():
        on_branch = follow_branch(tree, guess, free, rough)
        if on_branch is not None:
            return on_branch, evaluate_constraints(tree, on_branch).value, True
    q_found, residual, success = search_assembly(tree, guess, free, rough)
    if success and not free.all() and _has_branch(tree, guess, rough):
        warn(
            f"{where}: the branch from the nearest assembly to the fixed joints could not be followed: it turns back, "
            "or passes through a singular configuration. The result closes the loops, but may be on another branch. "
            "Approach it in smaller steps, each starting from the last result, and check where they stop."
        )
    return q_found, residual, success


def _has_branch(tree: Tree, guess: Array, rough: float) -> bool:
    """Return True if the guess nearly closes the loops, so that it has a branch."""
    near, residual = assemble_batch(tree, guess, rough=rough)
    scales = natural_scales(tree, evaluate_constraints(tree, near).C)
    return bool(is_assembled(tree, near, residual, rough)) and relative_change(tree, scales, near - guess) < NEAR_BRANCH


def _advice(tree: Tree, guess: Array, fixed: Sequence[str]) -> str:
    if fixed:
        near, _, good = search_assembly(tree, guess)
        if good:
            moved = {x.joint.name: x.coordinates(near.tolist()) for x in tree.links if x.joint.name in fixed}
            shown = ", ".join(f"{name} at {', '.join(f'{x:.4g}' for x in values)}" for name, values in moved.items())
            return f"Without fixed joints it closes, with {shown}: fix fewer joints, or fix them nearer to that."
    return (
        "No configuration around the guess closes them either. Try a q_guess nearer to the intended configuration, and "
        "check points, axes and lengths of these loops."
    )


def _parse_vector(what: str, given: Any, columns: Sequence[str], default: Array) -> Array:
    if given is None:
        return default
    if isinstance(given, Mapping):
        out = np.array(default, float)
        for name, x in given.items():
            if name not in columns:
                raise InputError(f"{what}: {unknown('element', name, columns)}")
            out[columns.index(name)] = _parse_numbers(f'{what} "{name}"', x)
        return out
    array = _parse_numbers(what, given, (len(columns),))
    return np.asarray(array)


def _parse_numbers(what: str, given: Any, shape: tuple[int, ...] = ()) -> Any:
    try:
        array = np.array(given, float)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if array.shape != shape or not np.isfinite(array).all():
        expected = f"{shape[0]} finite numbers" if shape else "a finite number"
        raise InputError(f"{what} is {given!r}; expected {expected}.")
    return array


def _normalise_quaternions(where: str, mechanism: Mechanism, q: Array) -> Array:
    q, end_index = np.array(q), 0
    for j in mechanism.own_joints:
        kind = KINDS[j.kind]
        end_index += kind.nq
        if kind.nq > kind.nv:
            length = float(np.linalg.norm(q[end_index - 4 : end_index]))
            if abs(length - 1.0) > 1e-6:
                raise InputError(f'{where}: q_guess: the quaternion of "{j.name}" has length {length:g}; expected 1.')
            q[end_index - 4 : end_index] /= length
    return q


def _free_mask(where: str, mechanism: Mechanism, fixed: Sequence[str]) -> Array:
    """Return a mask of the elements of v that may change; flexible bodies keep their guessed deformation."""
    if isinstance(fixed, str):
        raise InputError(f'{where}: fixed is {fixed!r}; expected a list of joints, as in fixed=["{fixed}"].')
    names = [j.name for j in mechanism.own_joints]
    for name in fixed:
        if name not in names:
            raise InputError(f"{where}: fixed: {unknown('joint', name, names)}")
    held = {*fixed, *(node.joint for body in mechanism.flexible for node in body.nodes)}
    return np.array([j.name not in held for j in mechanism.own_joints for _ in range(KINDS[j.kind].nv)], float)


def actuated_indices(mechanism: Mechanism, loop_analysis: Analysis, names: Sequence[str]) -> tuple[int, ...]:
    """Return the elements of v that the named joints drive.

    Parameters
    ----------
    mechanism
        Mechanism with loops.
    loop_analysis
        Analysis of its loop equations.
    names
        Names of the actuated joints.

    Raises
    ------
    InputError
        If the names are not valid joints, or these joints do not determine the motion.
    """
    indices: dict[str, list[int]] = {}
    first_index = 0
    for j in mechanism.own_joints:
        indices[j.name] = list(range(first_index, first_index + KINDS[j.kind].nv))
        first_index += KINDS[j.kind].nv
    where = f'inverse_dynamics of "{mechanism.name}"'
    joint_list = f"Its joints are: {', '.join(indices)}."
    if not names:
        raise InputError(
            f"{where}: the mechanism has loops, so its joints cannot all be actuated. Name the actuated joints: "
            f"actuated=[...] with {_format_freedoms(loop_analysis.mobility)} in total. {joint_list}"
        )
    followers = {j.name: j.mimic.joint for j in mechanism.joints if j.mimic is not None}
    for k, name in enumerate(names):
        if name in followers:
            raise InputError(f'{where}: actuated joint "{name}" mimics "{followers[name]}"; name that one instead.')
        if any(loop.name == name for loop in mechanism.loops):
            raise InputError(
                f'{where}: actuated: "{name}" closes a loop and has no coordinate. Actuate another joint, or build the '
                f"mechanism so that another joint closes the loop. {joint_list}"
            )
        if name not in indices:
            raise InputError(f"{where}: actuated: {unknown('joint', name, indices)}")
        if name in names[:k]:
            raise InputError(f'{where}: actuated has "{name}" twice.')
    active = tuple(i for name in names for i in indices[name])
    if len(active) != loop_analysis.mobility:
        kind = (
            "over-actuated: their forces are not determined"
            if len(active) > loop_analysis.mobility
            else "under-actuated"
        )
        raise InputError(
            f"{where}: {', '.join(names)} drive {len(active)} coordinates, but the mechanism has "
            f"{_format_freedoms(loop_analysis.mobility)}: it would be {kind}. {joint_list}"
        )
    plain = mechanism.at() if mechanism.parameters else mechanism
    C = loop_analysis.scales.scaled(evaluate_constraints(plain.tree, loop_analysis.samples).C)
    left = _remaining_motion(C, active, loop_analysis.cut)
    if left is not None:
        moving = dict.fromkeys(c.partition(".")[0] for c, x in zip(mechanism.columns[1], left, strict=True) if x > 1e-6)
        raise InputError(
            f"{where}: {', '.join(names)} cannot drive it: with these locked {', '.join(moving)} can still move. "
            f"Actuate one of those instead. {joint_list}"
        )
    return active


def _remaining_motion(C: Array, active: Sequence[int], least: float) -> Array | None:
    """Return a motion that remains in every configuration with the driven coordinates locked; None if there is none."""
    locked = np.array(C)
    locked[..., list(active)] = 0.0
    hold = np.zeros((len(active), C.shape[-1]))
    hold[range(len(active)), list(active)] = 1.0
    whole = np.concatenate([locked, np.broadcast_to(hold, (len(C), *hold.shape))], axis=1)
    _, s, V = np.linalg.svd(whole)
    last = s[:, -1] / np.maximum(s[:, 0], 1e-300) if s.shape[1] else np.ones(len(C))
    best = int(np.argmax(last))
    return None if last[best] > least else np.abs(V[best, -1])


def _format_freedoms(n: int) -> str:
    return f"{n} freedom{'' if n == 1 else 's'}"
