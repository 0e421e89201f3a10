"""Detection of mass matrices that are singular, exactly or to rounding, also for values of free parameters.

A singular mass matrix, with which forces do not determine accelerations, is a mistake in the model. For example, a
point mass on a ball joint can spin about the line to it without moving any inertia. Rounding would make the pivot 1e-17
instead of zero, and the accelerations about 1e16; so M is checked once numerically before a kernel is made.

A small body that carries a very large one gives the same picture: its own inertia disappears in the rounding errors of
what it carries, and accelerations would be wrong by their size. Both are refused, but for different reasons. They are
distinguished in natural sizes: a motion without inertia moves no body that has inertia about it, however large that
inertia is. So the inertias of all bodies may be multiplied by any positive factors, and with factors that make what a
body carries as large as the body itself, only a mechanism that is singular by construction stays singular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.aba import Subtree, add_initial_modes, no_open_terms
from bellcrank.dynamics.shared_coordinates import (
    SharedCoordinates,
    collect_shared_coordinates,
    modal_constants,
    sharing_link,
)
from bellcrank.dynamics.tree_sweeps import Body, localise
from bellcrank.errors import InputError, ModelError
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.tree import Link, Tree
from bellcrank.parameters import Free, evaluate, replace_free
from bellcrank.spatial.inertia import Inertia, articulated_inertia
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, ZERO, SymMat

Array = np.ndarray[Any, Any]

# Smallest eigenvalue of the matrix scaled to a unit diagonal; regular mechanisms have 1e-9 and more.
SINGULAR_EIGENVALUE = 1e-13
NEGLIGIBLE_DIAGONAL = 1e-15  # element of the diagonal relative to what its coordinate moves
CLEAR_PIVOT_RATIO = 1e-10  # pivots relative to the body's own inertia, well above rounding
HEAVY_EIGENVALUE = 1e-6  # the same for one body without its subtree, with a large margin
MOVING_SHARE = 1e-3  # coordinates with a larger share in a singular motion are named
MATRIX_CHECK_MAX_NV = 150  # number of coordinates above which the matrix itself is not computed
MOST_EXACT_CHECKS = 20  # values of parameters that are checked exactly: those with the smallest pivots
MATRIX_NUMBERS = 1_000_000  # numbers in the mass matrices that are computed at once for values of parameters
MOST_LISTED_PARAMETERS = 6


def check_mass_matrix(mechanism: Mechanism) -> None:
    """Check that the mass matrix of `mechanism` is regular.

    Parameters
    ----------
    mechanism
        Mechanism, with its parameters at nominal values.

    Raises
    ------
    ModelError
        If joints move no inertia, alone or together; the message names them.
    """
    mechanism = mechanism.at() if mechanism.parameters else mechanism  # free parameters are checked at nominal values
    if not mechanism.nv:
        return
    q = mechanism.random(seed=0)[0].tolist()
    tree = mechanism.tree
    if mechanism.nv > MATRIX_CHECK_MAX_NV:
        if not tree.coupled and _clearly_massive(tree):
            return
        common = collect_shared_coordinates(tree) if tree.coupled else None
        if common:
            motion = _shared_singular_pivots(tree, common, q)
        else:
            motion = _singular_motion(tree, q) if tree.coupled else _singular_pivots(tree, q)
    else:
        # Bodies of very different sizes and masses look singular in the matrix, but not when each is checked alone.
        motion = _singular_motion(tree, q)
        if not tree.coupled and (motion.any() or _has_negligible_diagonal(tree, q)):
            small_pivots = _singular_pivots(tree, q, CLEAR_PIVOT_RATIO)
            motion = (motion if motion.any() else small_pivots) * small_pivots.any()
    if motion.any() and _is_regular_in_natural_sizes(tree, q):
        _raise_unresolved(mechanism, *_hidden_inertia(tree, q, motion))
    if motion.any():
        _raise_singular(mechanism, motion)


def _is_regular_in_natural_sizes(tree: Tree, q: Sequence[float]) -> bool:
    """Return whether the mass matrix is regular if no inertia is hidden by the rounding of a larger one."""
    if tree.flexible:
        return False
    for compared in ("turning", "sliding"):
        natural = _in_natural_sizes(tree, q, compared)
        if tree.nv <= MATRIX_CHECK_MAX_NV and not _singular_motion(natural, q).any():
            return True
        if not tree.coupled and not _singular_pivots(natural, q, CLEAR_PIVOT_RATIO).any():
            return True
    return False


def _in_natural_sizes(tree: Tree, q: Sequence[float], compared: str) -> Tree:
    """Return the tree with inertias multiplied so that no body carries more than its own inertia.

    compared: the inertias that are compared, "turning" (moments of inertia) or "sliding" (masses).
    """

    def size(inertia: Inertia) -> float:
        I = inertia.I
        return float(max(I.xx, I.yy, I.zz) if compared == "turning" else inertia.m)

    carried = [link.inertia for link in tree.links]
    share = [1.0] * len(tree.links)  # factor of each subtree relative to its parent
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0:
            subtree, own = link.transform(q).inertia(carried[i]), size(tree.links[link.parent].inertia)
            share[i] = own / size(subtree) if 0.0 < own < size(subtree) else 1.0
            carried[link.parent] = carried[link.parent] + _multiplied(subtree, share[i])
    links: list[Link] = []
    factors: list[float] = []
    for i, link in enumerate(tree.links):
        factors.append(share[i] * (factors[link.parent] if link.parent >= 0 else 1.0))
        joint = replace(link.joint, armature=link.joint.armature * factors[i])
        links.append(replace(link, joint=joint, inertia=_multiplied(link.inertia, factors[i])))
    return replace(tree, links=tuple(links))


def _multiplied(inertia: Inertia, factor: float) -> Inertia:
    I = inertia.I
    moments = SymMat(*(x * factor for x in (I.xx, I.yy, I.zz, I.xy, I.xz, I.yz)))
    return Inertia(inertia.m * factor, inertia.h * factor, moments)


def _hidden_inertia(tree: Tree, q: Sequence[float], motion: Array) -> tuple[int, float]:
    """Return the coordinate whose own inertia is the smallest relative to what it carries, and the ratio.

    The ratio is 0 if none of these bodies has an inertia of its own. motion: share of each coordinate in the motion
    that seems to be without inertia.
    """
    ratio = carried_ratios(tree, q, np.diag(np.array(crba.mass_matrix(tree, list(q)), dtype=float)))
    k = int(np.argmax(np.where(motion > MOVING_SHARE, ratio, -1.0)))
    return k, float(ratio[k])


def carried_ratios(tree: Tree, q: Sequence[float], carried: Array) -> Array:
    """Return the inertia `carried` by each coordinate of `tree` at `q`, relative to its bodies' own; 0 without any."""
    own = np.zeros(tree.nv)
    for link in tree.links:
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            own[k] += float(s.dot(link.inertia @ s) + link.armature)
    return np.divide(carried, own, out=np.zeros(tree.nv), where=own > 0.0)


def _singular_motion(tree: Tree, q: Sequence[float]) -> Array:
    """Return the share of each coordinate in a motion without inertia, from the matrix itself; zeros if none."""
    M = np.array(crba.mass_matrix(tree, list(q)), dtype=float)
    diagonal = np.diag(M)
    scale = np.sqrt(np.where(diagonal > NEGLIGIBLE_DIAGONAL * carried_sizes(tree, q), diagonal, np.inf))
    if np.isinf(scale).any():
        return np.isinf(scale).astype(float)
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    return np.abs(vectors[:, 0]) if values[0] <= SINGULAR_EIGENVALUE else np.zeros(len(M))


def _has_negligible_diagonal(tree: Tree, q: Sequence[float]) -> bool:
    """Return whether an element of the diagonal of the mass matrix is rounding in comparison with another one."""
    diagonal = np.diag(np.array(crba.mass_matrix(tree, list(q)), dtype=float))
    return bool((diagonal <= NEGLIGIBLE_DIAGONAL * diagonal.max(initial=0.0)).any())


def carried_sizes(tree: Tree, q: Sequence[float]) -> Array:
    """Return the largest inertia, about any axis, of what each coordinate of `tree` moves at `q`.

    It is the natural size of the coordinate's element in the diagonal of the mass matrix.
    """
    carried, sizes = tree.link_inertias(q), np.zeros(tree.nv)
    for i, link in reversed(list(enumerate(tree.links))):
        I = carried[i].I
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            sizes[k] += s.ang.dot(s.ang) * max(I.xx, I.yy, I.zz) + s.lin.dot(s.lin) * carried[i].m
        if link.parent >= 0:
            carried[link.parent] = carried[link.parent] + link.transform(q).inertia(carried[i])
    return sizes


def _clearly_massive(tree: Tree) -> bool:
    """Return True if every joint moves a body whose own inertia resists all its motions; the subtree adds to that."""
    massive_by_key: dict[tuple[object, ...], bool] = {}
    for link in tree.links:
        key = type(link.kind), link.inertia.numbers
        if key not in massive_by_key:
            at_rest = link.kind.neutral()
            columns = link.kind.subspace(at_rest)
            if any(x != 0.0 for s in link.kind.subspace_rate(at_rest, [1.0] * link.kind.nv) for x in (*s.ang, *s.lin)):
                return False  # its axes rotate: one configuration is not sufficient
            S = np.array([[*s.ang, *s.lin] for s in columns], float)
            forces = [link.inertia @ s for s in columns]
            matrix = S @ np.array([[*f.ang, *f.lin] for f in forces], float).T
            I, m = link.inertia.I, link.inertia.m
            scale = np.sqrt([max(I.xx, I.yy, I.zz) if any(s[:3]) else m for s in S.tolist()])
            massive_by_key[key] = (
                bool(scale.all()) and np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] > HEAVY_EIGENVALUE
            )
        if not massive_by_key[key]:
            return False
    return True


def _singular_pivots(tree: Tree, q: Sequence[float], least: float = SINGULAR_EIGENVALUE) -> Array:
    """Return 1 for the coordinates that move no inertia with everything beyond them free to move.

    Their pivots in the elimination of the mass matrix are compared with the inertia of which they are a part. Work
    O(n); a long chain, whose matrix is as ill-conditioned as a very soft spring, is not mistaken for singular.
    """
    X = [link.transform(q) for link in tree.links]
    IA = [articulated_inertia(link.inertia) for link in tree.links]
    singular = np.zeros(tree.nv)
    for i, link in reversed(list(enumerate(tree.links))):
        I, M = IA[i].I, IA[i].M  # with all axes of the joint locked, because the remainder behind them may be rounding
        for s, k in reversed(list(zip(link.subspace(q), link.v_index, strict=True))):
            turns, slides = (any(x != 0.0 for x in part) for part in (s.ang, s.lin))
            size = max(turns * max(I.xx, I.yy, I.zz), slides * max(M.xx, M.yy, M.zz), float(link.armature))
            D = s.dot(IA[i] @ s) + link.armature
            if not least * size < D:
                singular[k] = 1.0
                continue
            IA[i] = IA[i].across_joint(s, link.armature).rest
        if link.parent >= 0:
            IA[link.parent] = IA[link.parent] + X[i].articulated(IA[i])
    return singular


def _shared_singular_pivots(tree: Tree, common: SharedCoordinates, q: Sequence[float]) -> Array:
    """Return the same as `_singular_pivots` for shared coordinates.

    Their pivots are known where they end (aba.py).
    """
    singular, size = np.zeros(tree.nv), np.zeros(tree.nv)
    child_values: list[list[tuple[Any, ...]]] = [[] for _ in tree.links]
    for i, link in reversed(list(enumerate(tree.links))):
        link_q, share, spare_slot = [q[k] for k in common.q[i]], common.share[i], common.share[i].slots
        sharing_link_i = sharing_link(localise(link), share, common.bending[i], modal_constants(common.bending[i]))
        one = Body(link=sharing_link_i, q=link_q, v=[0.0] * len(common.v[i]), passive=False)
        body = Subtree(articulated_inertia(one.inertia), NO_FORCE, no_open_terms(spare_slot + 1), range(spare_slot + 1))
        add_initial_modes(one, ZERO, body)
        for k, slot in zip(common.v[i][len(link.v_index) :], share.modes, strict=True):
            size[k] += body.open_terms.element(slot, slot)
        for IA, _, more in child_values[i]:
            body.IA, body.open_terms = body.IA + IA, body.open_terms + more
        ends = [k for k in common.answers[i] if k not in link.v_index]
        closing = list(zip(share.ends, ends, strict=True))
        for slot, k in reversed(closing):
            singular[k] = not _eliminate_slot(body, slot, size[k])
        for j, s in reversed(list(enumerate(sharing_link_i.subspace(link_q)))):
            k, slot = link.v_index[j], share.axes[j] if share.axes[j] >= 0 else spare_slot
            I, M = body.IA.I, body.IA.M
            size[k] += s.ang.dot(s.ang) * max(I.xx, I.yy, I.zz) + s.lin.dot(s.lin) * max(M.xx, M.yy, M.zz)
            size[k] += float(sharing_link_i.armature)
            body.open_axis(slot, s, 0.0, sharing_link_i.armature)
            if share.closes[j]:
                singular[k] = not _eliminate_slot(body, slot, size[k])
        if link.parent >= 0:
            X = sharing_link_i.transform(link_q)
            child_values[link.parent].append(tuple(body.in_parent_frame(sharing_link_i, X, NO_MOTION)))
    return singular


def _eliminate_slot(body: Subtree, slot: int, size: float) -> bool:
    """Eliminate a coordinate and return True, or remove it and return False if its pivot is too small."""
    if not SINGULAR_EIGENVALUE * size < body.open_terms.element(slot, slot):
        body.clear(slot)
        return False
    body.eliminate(slot)
    return True


def _raise_unresolved(mechanism: Mechanism, coordinate: int, ratio: float) -> NoReturn:
    name = mechanism.columns[1][coordinate].partition(".")[0]
    body = next(link.name for link in mechanism.tree.links if coordinate in link.v_index)
    carried = f"{ratio:.0e} times" if ratio else "too many times"
    raise ModelError(
        f'mechanism "{mechanism.name}": accelerations cannot be computed in float64, because inertias differ by more '
        f'than it resolves: about joint "{name}" the inertia of everything that it moves is {carried} that of '
        f'"{body}" alone, expected at most about {1.0 / SINGULAR_EIGENVALUE:.0e}. Give "{body}" the inertia of a part '
        "that can carry such a load, give the joint an armature, lock it, or model only one of the sizes."
    )


def _raise_singular(mechanism: Mechanism, motion: Array) -> NoReturn:
    names = dict.fromkeys(
        name.partition(".")[0] for name, x in zip(mechanism.columns[1], motion, strict=True) if x > MOVING_SHARE
    )
    listed = ", ".join(f'"{name}"' for name in names)
    raise ModelError(
        f'mechanism "{mechanism.name}": no force determines the accelerations, because {listed} can move '
        f"{'together ' if len(names) > 1 else ''}without moving any inertia (the mass matrix is singular). Give the "
        "bodies there a mass and an inertia, give the joints an armature, or lock them."
    )


def check_parameter_values(mechanism: Mechanism, names: Sequence[str], p: Array, where: str) -> None:
    """Raise an InputError if values of free parameters make the mass matrix singular.

    Parameters
    ----------
    mechanism
        Mechanism, whose parameters may be among others.
    names
        Names of the parameters.
    p
        Their values, (..., len(names)).
    where
        Start of the message.
    """
    own = [names.index(name) for name in mechanism.parameters]
    if not own:
        return
    values = np.unique(p.reshape(-1, len(names))[:, own], axis=0)
    large = mechanism.nv > MATRIX_CHECK_MAX_NV
    rows = values[:MOST_EXACT_CHECKS] if large else values[_doubtful_rows(mechanism, values)]
    for row in rows:
        given = dict(zip(mechanism.parameters, row.tolist(), strict=True))
        try:
            check_mass_matrix(mechanism.at(given))
        except InputError:
            raise
        except ModelError as error:
            listed = ", ".join(f"{name} = {x:g}" for name, x in list(given.items())[:MOST_LISTED_PARAMETERS])
            raise InputError(f"{where}: with the parameters {listed}: {error}") from None


def _doubtful_rows(mechanism: Mechanism, values: Array) -> Array:
    """Return the indices of the `values` with the smallest pivots of the mass matrix, if these are small at all."""
    names, q, smallest = list(mechanism.parameters), mechanism.random(seed=0)[0].tolist(), np.zeros(len(values))
    chunk = max(1, MATRIX_NUMBERS // max(1, mechanism.nv**2))
    for begin in range(0, len(values), chunk):
        part, evaluated = values[begin : begin + chunk], dict[Any, Any]()

        def number(x: Free, part: Array = part, evaluated: dict[Any, Any] = evaluated) -> Any:
            return evaluate(x, lambda leaf: part[:, names.index(leaf.args[0])], evaluated)

        with np.errstate(all="ignore"):
            elements = crba.mass_matrix(replace_free(mechanism.tree, number), q)
            if not any(isinstance(x, np.ndarray) and x.ndim for row in elements for x in row):
                return np.zeros(0, int)  # the mass matrix does not depend on the parameters
            M = np.stack([np.stack([np.broadcast_to(x, len(part)) for x in row], axis=-1) for row in elements], axis=-2)
            diagonal = np.diagonal(M, axis1=-2, axis2=-1)
            scale = 1.0 / np.sqrt(diagonal)
            scaled = M * scale[:, :, None] * scale[:, None, :]
            some_zero = diagonal.min(axis=-1) <= CLEAR_PIVOT_RATIO * SINGULAR_EIGENVALUE * diagonal.max(axis=-1)
            bad = some_zero | ~np.isfinite(scaled).all(axis=(-2, -1))
            scaled[bad] = np.eye(mechanism.nv)
            smallest[begin : begin + chunk] = np.where(bad, 0.0, _smallest_pivots(scaled))
    small = np.flatnonzero(smallest < CLEAR_PIVOT_RATIO)
    return np.asarray(small[np.argsort(smallest[small], kind="stable")][:MOST_EXACT_CHECKS])


def _smallest_pivots(M: Array) -> Array:
    """Return the smallest pivot in the Cholesky factorisation of each matrix, or a bound below it."""
    try:
        factors = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:  # one of them is not positive definite
        return np.asarray(np.linalg.eigvalsh(M)[..., 0])
    return np.asarray(np.diagonal(factors, axis1=-2, axis2=-1).min(axis=-1) ** 2)
