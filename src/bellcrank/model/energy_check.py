"""Check that kinetic energy cannot be negative: sufficient conditions on bodies, then sampled mass matrices.

Robot files hold physically impossible inertias, mostly on parts welded to something large. Only the moving body with
all its welded parts matters: its kinetic energy is m |v_c|^2 / 2 + w.I w / 2, about its centre of mass. Hence

    m >= 0 and w.I w >= 0 for every w the body can turn with   =>   no mass matrix has a negative eigenvalue, at any q

The triangle inequality is not needed for that, nor is any moment about an axis that the body never turns about: a body
in a plane needs one moment only. Where the left side fails the right one may still hold, because a body shares its
motion with its neighbours (as at the hips of a Romeo): then mass matrices are sampled. A negative eigenvalue is an
error; finding none is not a proof, and a warning states that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.model.joints import KINDS
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.part_checks import NEGLIGIBLE_MOMENT
from bellcrank.model.parts import Array, Body, Joint, ReportLine
from bellcrank.parameters import nominal
from bellcrank.spatial.inertia import six_numbers
from bellcrank.spatial.vector import AXES, ZERO, Motion

# Largest sine between axes that count as parallel.
PARALLEL_SINE = 1e-6
# Rounding error of a zero, relative to the largest entry.
RELATIVE_ROUNDING = 1e-9
# Number of mass matrices sampled where there is no proof.
SAMPLED_CONFIGURATIONS = 20
# Fewer remaining digits of the moments than ERROR_DIGITS are an error, fewer than WARNING_DIGITS a warning.
ERROR_DIGITS, WARNING_DIGITS = 3, 8
UNIT_MOTIONS = [*(Motion(e, ZERO) for e in AXES), *(Motion(ZERO, e) for e in AXES)]

# The directions that a body can turn about, as rows: none, one, or all three.
TurningDirections = Array


def turning_directions(joints: Sequence[Joint], ground: str) -> dict[str, TurningDirections]:
    """Return for every body the directions that it can turn about, in its own frame.

    A hinge in a body that turns about another direction lets its child turn about all directions.

    Parameters
    ----------
    joints
        The joints, parents before children.
    ground
        Name of the ground.
    """
    directions, known_directions = {ground: np.zeros((0, 3))}, dict[tuple[object, ...], TurningDirections]()
    unique_directions: dict[bytes, TurningDirections] = {}
    for j in joints:
        rotation, axis = nominal((j.rotation, j.axis))
        key = id(directions[j.parent]), j.kind, rotation, axis
        if key not in known_directions:  # identical joints on identical bodies are computed once
            turned = _child_directions(
                directions[j.parent] @ np.asarray(rotation, dtype=float), j.kind, np.asarray(axis, dtype=float)
            )
            known_directions[key] = unique_directions.setdefault(turned.tobytes(), turned)
        directions[j.child] = known_directions[key]
    return directions


def _child_directions(carried: TurningDirections, kind: str, axis: Array) -> TurningDirections:
    """Return the directions of a child, in the joint's frame; `carried` are those of its parent."""
    columns = KINDS[kind]().subspace(KINDS[kind]().neutral())
    rotation_count = len(np.flatnonzero([any((*s.ang,)) for s in columns]))
    if rotation_count > 1 or (rotation_count == 1 and not _are_parallel(carried, axis)):
        return np.eye(3)
    return axis[None] / np.linalg.norm(axis) if rotation_count == 1 else carried


def _are_parallel(directions: TurningDirections, axis: Array) -> bool:
    return bool(np.all(np.linalg.norm(np.cross(directions, axis / np.linalg.norm(axis)), axis=-1) < PARALLEL_SINE))


def has_planar_inertia(inertia: Array, turns: TurningDirections) -> bool:
    """Return whether a body has one moment only, about the one direction that it turns about: enough in a plane.

    Parameters
    ----------
    inertia
        Inertia about the centre of mass, (3, 3).
    turns
        The directions that the body can turn about, as rows.
    """
    if len(turns) != 1:
        return False
    (n,) = turns
    in_plane = inertia - (n @ inertia @ n) * np.outer(n, n)
    return bool(np.abs(in_plane).max() <= RELATIVE_ROUNDING * np.abs(inertia).max())


def check_energy(m: Mechanism) -> Iterator[ReportLine]:
    """Raise a ModelError if a mass matrix of `m` has a negative eigenvalue; yield a warning if one may have."""
    turns = turning_directions(m.joints, m.ground)
    proven: dict[tuple[object, ...], bool] = {}
    doubtful = []
    for b in m.bodies:
        key = b.mass, b.inertia, id(turns[b.name])
        if key not in proven:
            proven[key] = _is_proven(b, turns[b.name])
        if not proven[key]:
            doubtful.append(b.name)
    if not doubtful:
        return
    listed = ", ".join(f'"{name}"' for name in doubtful[:8]) + (", ..." if len(doubtful) > 8 else "")
    noun = "body" if len(doubtful) == 1 else "bodies"
    inertia = (
        f"The inertia of body {listed}, including its welded parts, has a negative principal moment. Correct it."
        if len(doubtful) == 1
        else f"The inertias of bodies {listed}, including their welded parts, have negative principal moments. Correct "
        "them."
    )
    for q in [m.neutral(), *m.random(0, SAMPLED_CONFIGURATIONS - 1)[0]]:
        moving = _negative_direction(mass_matrix(m, q))
        if moving is not None:
            names = dict.fromkeys(n.partition(".")[0] for n, x in zip(m.columns[1], moving, strict=True) if x > 0.1)
            raise ModelError(
                f"the mass matrix has a negative eigenvalue, at q = {_short_text(q)}: moving "
                f"{', '.join(names)} would have negative kinetic energy. {inertia}"
            )
    what = "a negative principal moment, including welded parts, which is used as it is"
    evidence = (
        f"mass matrices at {SAMPLED_CONFIGURATIONS} configurations have no negative eigenvalue, which does not prove "
        "it for all others"
    )
    yield ReportLine(f"{noun} {listed}", f"{what}; {evidence}", "warning")


def _is_proven(b: Body, turns: TurningDirections) -> bool:
    felt = turns @ np.asarray(b.inertia, dtype=float) @ turns.T
    least = np.linalg.eigvalsh(felt).min(initial=0.0)
    return bool(b.mass >= 0.0 and least >= -max(RELATIVE_ROUNDING * np.abs(b.inertia).max(), NEGLIGIBLE_MOMENT))


def check_digits(m: Mechanism, farthest: float) -> Iterator[ReportLine]:
    """Raise a ModelError if the moments of a joint are rounding error, because parts are up to `farthest` m away.

    Yield a warning if few digits are left.
    """
    configurations = [m.neutral(), *m.random(0, 3)[0]]
    digits, (name, least, about) = min(x for q in configurations for x in _remaining_digits(m, q))
    description = (
        f"carries parts up to {farthest:.3g} m away, which have {about:.3g} kg m^2 about all axes together: for the "
        f"{least:.3g} that it turns"
    )
    if digits < ERROR_DIGITS:
        raise ModelError(
            f'joint "{name}" {description} only rounding error is left. Correct the distances, or shift origins '
            "towards the bodies."
        )
    if digits < WARNING_DIGITS:
        yield ReportLine(f'joint "{name}"', f"{description} {digits:.0f} digits are left", "warning")


def _remaining_digits(m: Mechanism, q: Array) -> Iterator[tuple[float, tuple[str, float, float]]]:
    """Yield for each joint at q the digits that rounding leaves, and (joint, least moment, moments about all axes)."""
    coordinates = [float(x) for x in q]
    carried = list(m.tree.link_inertias(coordinates))
    yield math.inf, ("", 0.0, 0.0)
    for i, link in reversed(list(enumerate(m.tree.links))):
        turned = [s for s in link.subspace(coordinates) if any((*s.ang,))]
        felt = np.array([[float(s.dot(carried[i] @ r)) for r in turned] for s in turned]).reshape(2 * [len(turned)])
        least = float(np.linalg.eigvalsh(felt + float(link.armature) * np.eye(len(turned))).min(initial=math.inf))
        about = sum(float(e.dot(carried[i] @ e)) for e in UNIT_MOTIONS[:3])
        if turned and np.diag(felt).all() and about > 0.0:  # a zero moment is singular, which other checks report
            left = max(least / about, 1e-300) * 2.0**52
            yield math.log10(left), (link.joint.name, least, about)
        if link.parent >= 0:
            carried[link.parent] = carried[link.parent] + link.transform(coordinates).inertia(carried[i])


def mass_matrix(m: Mechanism, q: Sequence[float] | Array) -> Array:
    """Return the mass matrix of `m` at `q`, (nv, nv), as the sum of J^T I J over the bodies.

    The methods in dynamics/ are faster, but belong to a higher layer.
    """
    coordinates = [float(x) for x in q]
    J: dict[int, Array] = {-1: np.zeros((6, m.nv))}
    M = np.zeros((m.nv, m.nv))
    for i, link in enumerate(m.tree.links):
        X = link.transform(coordinates)
        J[i] = np.transpose([six_numbers(X.motion(e)) for e in UNIT_MOTIONS]) @ J[link.parent]
        for column, s in zip(link.v_index, link.subspace(coordinates), strict=True):
            J[i][:, column] += six_numbers(s)
            M[column, column] += float(link.armature)
        M += J[i].T @ np.transpose([six_numbers(link.inertia @ e) for e in UNIT_MOTIONS]) @ J[i]
    return M


def _negative_direction(M: Array) -> Array | None:
    """Return how much each coordinate moves along a negative eigenvector, or None."""
    diagonal = np.diag(M)
    tiny = 1e-14 * np.abs(diagonal).max(initial=0.0)
    if diagonal.min(initial=0.0) < -tiny:
        return np.asarray(diagonal == diagonal.min(), dtype=float)
    # A coordinate that moves nothing is singular, not negative.
    scale = np.sqrt(np.where(diagonal > tiny, diagonal, np.inf))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    return np.abs(vectors[:, 0]) if len(values) and values[0] < -RELATIVE_ROUNDING else None


def _short_text(q: Array) -> str:
    return "(" + ", ".join(f"{x:.3g}" for x in q[:6]) + (", ...)" if len(q) > 6 else ")")
