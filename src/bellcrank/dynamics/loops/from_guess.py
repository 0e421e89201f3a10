"""`mechanism.assemble(q_guess, v_guess, fixed)`: a configuration and a velocity that close all loops, near a guess."""

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

BESIDE = 0.3  # radians, or of the natural size of a coordinate


def assemble(
    mechanism: Mechanism,
    q_guess: Any = None,
    v_guess: Any = None,
    fixed: Sequence[str] = (),
) -> tuple[Array, Array]:
    """(q, v) that close all loops, the nearest to the guesses that is found.

    Guesses are arrays, or mappings by the names in `mechanism.columns`; without one it is the zero configuration, at
    rest. Joints in `fixed` keep what the guesses say, in position and in velocity; the rest goes along with them from
    the nearest configuration that closes the loops at all, on its branch, and a warning says so where it cannot.
    Where nothing was found to close near zero, the mechanism is analysed from here on where this one is.
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
            f"{where}: the loops do not allow the velocities of {', '.join(fixed)}: they would come apart at "
            f"{summary(names(tree), missed, by.rows)} (m/s, or 1/s). "
            "Fix fewer joints, or give velocities that belong together."
        )
    return found, turned


def _rough(mechanism: Mechanism) -> float:
    """What counts as redundant, if the mechanism closes somewhere to tell."""
    try:
        return analysis(mechanism).rough
    except ModelError:
        return 0.0


def _found(where: str, tree: Tree, guess: Array, free: Array, rough: float) -> tuple[Array, Array, bool]:
    """By the branch of what is nearest to the guess, where joints are fixed; else the nearest that is found."""
    if not free.all():
        on_branch = followed(tree, guess, free, rough)
        if on_branch is not None:
            return on_branch, closed(tree, on_branch).value, True
    found, residual, good = searched(tree, guess, free, rough)
    if good and not free.all() and _near(tree, guess, rough):
        warn(
            f"{where}: the way from the nearest closed configuration to what is fixed could not be followed: it turns "
            "round on the way, or passes a singular configuration. What is returned closes the loops, but may be on "
            "another branch. Go there in smaller steps, each from the last, and look where they stop."
        )
    return found, residual, good


def _near(tree: Tree, guess: Array, rough: float) -> bool:
    """Whether the guess is of a configuration that closes the loops, but for some small change: it has a branch."""
    near, residual = assembled(tree, guess, rough=rough)
    by = scales(tree, closed(tree, near).C)
    return bool(closes(tree, near, residual, rough)) and distance(tree, by, near - guess) < BESIDE


def _advice(tree: Tree, guess: Array, fixed: Sequence[str]) -> str:
    if fixed:
        near, _, good = searched(tree, guess)
        if good:
            moved = {x.joint.name: x.coordinates(near.tolist()) for x in tree.links if x.joint.name in fixed}
            shown = ", ".join(f"{name} at {', '.join(f'{x:.4g}' for x in at)}" for name, at in moved.items())
            return f"Without fixed it closes, with {shown}: fix fewer joints, or fix them nearer to that."
    return (
        "Nothing around the guess closes it either. Try a q_guess nearer to how it should look, and check points, axes "
        "and lengths of these loops."
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
                raise InputError(
                    f'{where}: q_guess: the quaternion of "{j.name}" has the length {length:g}; expected 1.'
                )
            q[at - 4 : at] /= length
    return q


def _free(where: str, mechanism: Mechanism, fixed: Sequence[str]) -> Array:
    """Which elements of v may change; bodies that bend stay as the guess has them."""
    if isinstance(fixed, str):
        raise InputError(f'{where}: fixed is {fixed!r}; expected a list of joints, as in fixed=["{fixed}"].')
    own = [j.name for j in mechanism.own_joints]
    for name in fixed:
        if name not in own:
            raise InputError(f"{where}: fixed: {unknown('joint', name, own)}")
    held = {*fixed, *(node.joint for body in mechanism.flexible for node in body.nodes)}
    return np.array([j.name not in held for j in mechanism.own_joints for _ in range(KINDS[j.kind].nv)], float)
