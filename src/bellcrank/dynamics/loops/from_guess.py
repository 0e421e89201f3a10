"""Assembly from a guess: `mechanism.assemble(q_guess, v_guess, fixed)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.assembly import (
    CLOSED,
    OPEN,
    assembled,
    closes,
    consistent,
    distance,
    followed,
    open_ends,
    searched,
    summary,
)
from bellcrank.dynamics.loops.equation_analysis import analysis
from bellcrank.dynamics.loops.numbers import Array, closed
from bellcrank.dynamics.loops.rows import names
from bellcrank.dynamics.loops.scaling import scales
from bellcrank.errors import InputError, ModelError, unknown, warn
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.model.tree import Tree

BESIDE = 0.3  # largest distance of a guess from its branch: rad, or a fraction of the coordinate's natural size


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
    plain = mechanism.at() if mechanism.parameters else mechanism
    where = f'assemble "{mechanism.name}"'
    q = _vector(f"{where}: q_guess", q_guess, mechanism.columns[0], plain.neutral())
    v = _vector(f"{where}: v_guess", v_guess, mechanism.columns[1], np.zeros(mechanism.nv))
    q = _unit(where, mechanism, q)
    free = _free(where, mechanism, fixed)
    tree, rough = plain.tree, _rough(mechanism)
    found, residual, good = _found(where, tree, q, free, rough)
    if not good:
        size = scales(tree, closed(tree, found).C).rows
        raise InputError(f"{where}: {open_ends(names(tree), residual, size)}. {_advice(tree, q, fixed)}")
    analysis(mechanism, near=found)
    turned = consistent(tree, found, v, free, rough)
    C = closed(tree, found).C
    by, missed = scales(tree, C), C @ turned
    fastest = float(np.abs(v / by.columns).max(initial=0.0))
    if np.abs(missed * by.rows).max(initial=0.0) > max(CLOSED, OPEN * rough) * max(1.0, fastest):
        raise InputError(
            f"{where}: the loops do not allow the velocities of {', '.join(fixed)}: they would open at "
            f"{summary(names(tree), missed, by.rows)} (m/s, or 1/s). "
            "Fix fewer joints, or give consistent velocities."
        )
    return found, turned


def _rough(mechanism: Mechanism) -> float:
    """Return the tolerance of redundant equations, 0 if the mechanism has not been assembled."""
    try:
        return analysis(mechanism).rough
    except ModelError:
        return 0.0


def _found(where: str, tree: Tree, guess: Array, free: Array, rough: float) -> tuple[Array, Array, bool]:
    """Assemble along the branch nearest to the guess if joints are fixed, otherwise to the nearest assembly found."""
    if not free.all():
        on_branch = followed(tree, guess, free, rough)
        if on_branch is not None:
            return on_branch, closed(tree, on_branch).value, True
    found, residual, good = searched(tree, guess, free, rough)
    if good and not free.all() and _near(tree, guess, rough):
        warn(
            f"{where}: the branch from the nearest assembly to the fixed joints could not be followed: it turns back, "
            "or passes through a singular configuration. The result closes the loops, but may be on another branch. "
            "Approach it in smaller steps, each starting from the last result, and check where they stop."
        )
    return found, residual, good


def _near(tree: Tree, guess: Array, rough: float) -> bool:
    """Return True if the guess nearly closes the loops, so that it has a branch."""
    near, residual = assembled(tree, guess, rough=rough)
    by = scales(tree, closed(tree, near).C)
    return bool(closes(tree, near, residual, rough)) and distance(tree, by, near - guess) < BESIDE


def _advice(tree: Tree, guess: Array, fixed: Sequence[str]) -> str:
    if fixed:
        near, _, good = searched(tree, guess)
        if good:
            moved = {x.joint.name: x.coordinates(near.tolist()) for x in tree.links if x.joint.name in fixed}
            shown = ", ".join(f"{name} at {', '.join(f'{x:.4g}' for x in at)}" for name, at in moved.items())
            return f"Without fixed joints it closes, with {shown}: fix fewer joints, or fix them nearer to that."
    return (
        "No configuration around the guess closes them either. Try a q_guess nearer to the intended configuration, and "
        "check points, axes and lengths of these loops."
    )


def _vector(what: str, given: Any, columns: Sequence[str], default: Array) -> Array:
    if given is None:
        return default
    if isinstance(given, Mapping):
        out = np.array(default, float)
        for name, x in given.items():
            if name not in columns:
                raise InputError(f"{what}: {unknown('element', name, columns)}")
            out[columns.index(name)] = _number(f'{what} "{name}"', x)
        return out
    array = _number(what, given, (len(columns),))
    return np.asarray(array)


def _number(what: str, given: Any, shape: tuple[int, ...] = ()) -> Any:
    try:
        array = np.array(given, float)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if array.shape != shape or not np.isfinite(array).all():
        expected = f"{shape[0]} finite numbers" if shape else "a finite number"
        raise InputError(f"{what} is {given!r}; expected {expected}.")
    return array


def _unit(where: str, mechanism: Mechanism, q: Array) -> Array:
    q, at = np.array(q), 0
    for j in mechanism.own_joints:
        kind = KINDS[j.kind]
        at += kind.nq
        if kind.nq > kind.nv:
            length = float(np.linalg.norm(q[at - 4 : at]))
            if abs(length - 1.0) > 1e-6:
                raise InputError(f'{where}: q_guess: the quaternion of "{j.name}" has length {length:g}; expected 1.')
            q[at - 4 : at] /= length
    return q


def _free(where: str, mechanism: Mechanism, fixed: Sequence[str]) -> Array:
    """Return a mask of the elements of v that may change; flexible bodies keep their guessed deformation."""
    if isinstance(fixed, str):
        raise InputError(f'{where}: fixed is {fixed!r}; expected a list of joints, as in fixed=["{fixed}"].')
    own = [j.name for j in mechanism.own_joints]
    for name in fixed:
        if name not in own:
            raise InputError(f"{where}: fixed: {unknown('joint', name, own)}")
    held = {*fixed, *(node.joint for body in mechanism.flexible for node in body.nodes)}
    return np.array([j.name not in held for j in mechanism.own_joints for _ in range(KINDS[j.kind].nv)], float)
