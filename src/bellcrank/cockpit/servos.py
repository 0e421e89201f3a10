"""Position servos for an arbitrary mechanism: choice of the driven joints, gains, and ranges of the sliders.

    a = w^2 e + w^2 c integral(e) + 2 w (dq_d - dq),   e = q_d - q
    tau = hold + D a                          or, where every coordinate of a tree is driven,
    tau = hold + ID(q, dq, a) - ID(start)     computed torque, as in control/trajectory.py

D is diagonal and bounds the inertia Lambda of the driven coordinates on the paths from the start to the ends of the
sliders, including closed loops and undriven joints: the inverse of Lambda maps forces on these coordinates to their
accelerations. hold are the forces that keep the start at rest against gravity and springs; elsewhere the integral
compensates their change. w exceeds the rate of every unstable motion. The desired position q_d begins at the position
of the mechanism, moves to the target at a bounded speed, and is on a leash (control/trajectory.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import pi
from typing import Any

import numpy as np

from bellcrank.actuators import StateVariable
from bellcrank.control.trajectory import InverseDynamics, Leash
from bellcrank.dynamics.loops.assembly import CLOSED_RESIDUAL, assemble_batch
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar, clip

MIN_RATE = 2.0 * pi * 1.5  # rad/s, minimum of w
INTEGRAL_RATE = 2.0  # 1/s, c
ARRIVAL_RATE = 6.0  # 1/s, rate at which the desired position approaches a near target
MAX_POLE_RATE = 2400.0  # 1/s, limit of a servo's poles; rk4 is stable up to 2785 1/s with a step of 1 ms
DIFFERENCE_STEP = 1e-5  # rad or m, step of the finite differences of accelerations
PATH_STEPS = 24  # from the start to the end of a slider
# Share of the least singular value at the start: the limit that keeps sliders away from dead points.
MIN_SINGULAR_SHARE = 0.25
MAX_CORNERS = 64  # number of joint corners of all sliders that are tried
MAX_BRANCH_RATIO = 8.0  # steps of the sliders: a dependent coordinate that moves further has changed to another branch

Array = np.ndarray[Any, Any]


def elastic_coordinates(m: Mechanism) -> list[int]:
    """Return the indices in v of the elastic coordinates of `m`: modes of flexible bodies and joints inside beams."""
    names = {x for o in m.outlines for s in o.slices for x in s.coordinates}
    names |= {x for o in m.outlines if o.skin for x in o.skin.coordinates}
    modes = {k for body in m.tree.flexible for k in body.v_index}
    return [k for k, name in enumerate(m.columns[1]) if k in modes or name in names]


def independent_joints(m: Mechanism, q: Any) -> list[str]:
    """Return the joints of `m` to drive: those with one coordinate, and with loops only as many as are independent.

    Prismatic joints come first, because most are cylinders, then joints on the ground. A joint is taken if the
    remaining coordinates can still close the loops at `q`.
    """
    elastic_indices = elastic_coordinates(m)
    names = [name for k, name in enumerate(m.columns[1]) if name in m.columns[0] and k not in elastic_indices]
    if not m.loops:
        return names
    joints = {j.name: j for j in m.own_joints}
    loops = m.loop_analysis
    J, cut = loops.scales.scaled(np.asarray(m.closure_jacobian(q))), loops.cut
    remaining, chosen = [k for k in range(m.nv) if k not in elastic_indices], list[str]()
    rank = np.linalg.matrix_rank(J[:, remaining], tol=cut)
    for name in sorted(names, key=lambda n: (joints[n].kind != "prismatic", joints[n].parent != m.ground)):
        others = [k for k in remaining if k != m.columns[1].index(name)]
        if len(chosen) < loops.mobility - len(elastic_indices) and np.linalg.matrix_rank(J[:, others], tol=cut) == rank:
            remaining = others
            chosen.append(name)
    return [name for name in names if name in chosen]


def well_conditioned_joints(m: Mechanism, q: Any) -> list[str]:
    """Return other independent joints of `m`, such that the dependent ones are far from a dead point at `q`.

    The dependent coordinates are chosen by Gram-Schmidt with column pivoting of the constraint Jacobian. Joints of a
    track that lie in line, for example, are not chosen as dependent.
    """
    J, elastic_indices = np.array(m.closure_jacobian(q)), elastic_coordinates(m)
    J[:, elastic_indices] = 0.0
    remainder, dependent = J.copy(), list[int]()
    loops = m.loop_analysis
    for _ in range(int(np.linalg.matrix_rank(loops.scales.scaled(J), tol=loops.cut))):
        dependent.append(int(np.argmax((remainder * remainder).sum(axis=0))))
        along = remainder[:, dependent[-1]] / np.linalg.norm(remainder[:, dependent[-1]])
        remainder = remainder - np.outer(along, along @ remainder)
    others = (*dependent, *elastic_indices)
    return [name for k, name in enumerate(m.columns[1]) if k not in others and name in m.columns[0]]


def rigid_accelerations(m: Mechanism, q: Array, forces: Array) -> Array:
    """Return the accelerations from rest with the elastic coordinates locked.

    Servos are slower than elastic vibrations, so they move a beam as a whole.

    Parameters
    ----------
    m
        Mechanism.
    q
        Positions, shape (..., nq).
    forces
        Generalised forces, shape (..., nv).
    """
    elastic_indices, still = elastic_coordinates(m), np.zeros(m.nv)
    a = np.asarray(m.forward_dynamics(q, still, forces))
    if not elastic_indices:
        return a
    units = np.eye(m.nv)[[*elastic_indices]]
    none = np.asarray(m.forward_dynamics(q, still, np.zeros(m.nv)))
    each = np.stack([np.asarray(m.forward_dynamics(q, still, unit)) - none for unit in units], axis=-1)
    each = np.broadcast_to(each, (*a.shape, len(elastic_indices)))
    hold = np.linalg.solve(each[..., elastic_indices, :], -a[..., elastic_indices][..., None])
    return np.asarray(a + (each @ hold)[..., 0])


def driven_inertia(m: Mechanism, q: Array, moved: Sequence[str]) -> tuple[Array, Array]:
    """Return Lambda of the coordinates `moved` of `m`, and the forces that hold them, for all positions `q`."""
    driven_indices = [m.columns[1].index(name) for name in moved]
    forces = np.zeros((len(driven_indices) + 1, m.nv))
    forces[range(1, len(driven_indices) + 1), driven_indices] = 1.0
    a = rigid_accelerations(m, q[:, None], forces)[..., driven_indices]
    inertia = np.linalg.inv(np.swapaxes(a[:, 1:] - a[:, :1], -1, -2))
    inertia = (inertia + np.swapaxes(inertia, -1, -2)) / 2.0
    return inertia, -np.einsum("pij,pj->pi", inertia, a[:, 0])


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of the servos."""

    inertia: Array  # D
    rate: float  # rad/s, w


def servo_gains(m: Mechanism, places: Array, moved: Sequence[str]) -> Gains:
    """Return gains for a mechanism that is held at any of some positions.

    D is diagonal and greater than Lambda at all of them. w is twice the fastest unstable rate without servos (an
    upright pendulum, a spring over its dead point), and at least MIN_RATE. At the position of least inertia, D is
    limited such that the servo is stable with steps of 1 ms.

    Parameters
    ----------
    m
        Mechanism.
    places
        Positions, shape (positions, nq).
    moved
        Names of the driven coordinates.
    """
    driven_indices = [m.columns[1].index(name) for name in moved]
    inertia, hold = driven_inertia(m, places, moved)
    D = np.diagonal(inertia, axis1=-2, axis2=-1).max(axis=0)
    D = D * np.linalg.eigvals(inertia / D[:, None]).real.max()
    forces = np.zeros((len(places), m.nv))
    forces[:, driven_indices] = hold
    slopes = []
    for name in moved:
        aside = np.zeros(m.nq)
        aside[m.columns[0].index(name)] = DIFFERENCE_STEP
        pair = [close_loops(m, places + way * aside, moved)[0] for way in (-1.0, 1.0)]
        a = [rigid_accelerations(m, q, forces)[:, driven_indices] for q in pair]
        slopes.append((a[1] - a[0]) / (2.0 * DIFFERENCE_STEP))
    away = np.linalg.eigvals(inertia @ np.stack(slopes, axis=-1) / D[:, None]).real.max()
    w = max(MIN_RATE, 2.0 * float(np.sqrt(max(away, 0.0))))
    # At first, before elastic deformation spreads along a boom, a servo acts only on the inertia near its joint.
    none, units = np.asarray(m.forward_dynamics(places, np.zeros(m.nv), np.zeros(m.nv))), np.eye(m.nv)[driven_indices]
    quick = [np.asarray(m.forward_dynamics(places, np.zeros(m.nv), unit)) - none for unit in units]
    lightest = np.linalg.eigvals(np.stack(quick, axis=-1)[:, driven_indices] * D).real.max()
    return Gains(D * min(1.0, MAX_POLE_RATE / (2.0 * w * float(lightest))), w)


def close_loops(m: Mechanism, q: Array, moved: Sequence[str]) -> tuple[Array, Array]:
    """Close loops of `m` near `q` with `moved` coordinates fixed; return the positions, and which are closed."""
    if not m.loops:
        return q, np.ones(len(q), bool)
    plain = m.at() if m.parameters else m
    dependent_mask = np.array([name not in moved for name in m.columns[1]], float)
    dependent_mask[elastic_coordinates(m)] = 0.0
    positions, residual = assemble_batch(plain.tree, q, dependent_mask)
    return positions, np.abs(residual).max(axis=-1) < CLOSED_RESIDUAL


@dataclass(frozen=True, eq=False)
class SliderRanges:
    """Ranges of sliders."""

    ends: list[tuple[float, float]]  # of each slider
    paths: Array  # (steps, paths, nq), paths from the start to ends of single sliders and of all together


def slider_ranges(m: Mechanism, q: Array, moved: Sequence[str], ends: Sequence[tuple[float, float]]) -> SliderRanges:
    """Return the ranges of sliders.

    Each range is first limited by `ends` and by the loops, with the other sliders at the start. The ranges of all
    coordinates that move loops are then reduced by the same factor, such that all sliders can be anywhere in their
    ranges at the same time.

    Parameters
    ----------
    m
        Mechanism.
    q
        Start, shape (nq,).
    moved
        Names of the driven coordinates.
    ends
        Lower and upper limit of each.
    """
    driven_indices = [m.columns[0].index(name) for name in moved]
    home, n = q[driven_indices], len(moved)
    single_ends = np.tile(home, (2 * n, 1))
    single_ends[np.arange(2 * n), np.repeat(np.arange(n), 2)] = np.ravel(ends)
    ways, _ = reachable_paths(m, q, moved, single_ends)
    box = np.array([[ways[-1, 2 * k, i], ways[-1, 2 * k + 1, i]] for k, i in enumerate(driven_indices)])
    looped = _moves_loops(m, moved)
    if m.loops and looped.sum() > 1:
        corners = _corners(home, np.where(looped[:, None], box, home[:, None]))
        more, share = reachable_paths(m, q, moved, corners)
        count = max(1, int(np.ceil(share.min() * PATH_STEPS)))
        factor = np.where(looped, share.min(), 1.0)[:, None]
        box, ways = home[:, None] + factor * (box - home[:, None]), np.concatenate([ways, more], axis=1)[:count]
    return SliderRanges([(float(low), float(high)) for low, high in box], ways)


def _moves_loops(m: Mechanism, moved: Sequence[str]) -> Array:
    """Return for each of the coordinates whether an equation of a loop contains it."""
    if not m.loops:
        return np.zeros(len(moved), bool)
    C = np.abs(m.loop_analysis.pattern).any(axis=0)
    return np.array([C[m.columns[1].index(name)] for name in moved], bool)


def _corners(home: Array, box: Array) -> Array:
    """Return corners of the box around home and points on its faces; all corners if they are few, else random ones."""
    n, rng = len(home), np.random.default_rng(0)
    few = 2**n <= MAX_CORNERS
    signs = np.array(list(product((-1.0, 1.0), repeat=n))) if few else rng.choice([-1.0, 1.0], (MAX_CORNERS, n))
    sides = rng.uniform(-1.0, 1.0, (MAX_CORNERS, n))
    sides /= np.abs(sides).max(axis=-1, keepdims=True)
    ways = np.concatenate([signs, sides])
    return np.asarray(home + np.where(ways < 0.0, -ways * (box[:, 0] - home), ways * (box[:, 1] - home)))


def reachable_paths(m: Mechanism, q: Array, moved: Sequence[str], ends: Array) -> tuple[Array, Array]:
    """Move coordinates along straight lines until the loops stop them.

    The loops stay closed, on their branch and away from dead points.

    Parameters
    ----------
    m
        Mechanism.
    q
        Start, shape (nq,).
    moved
        Names of the driven coordinates.
    ends
        Ends of the lines, shape (paths, moved).

    Returns
    -------
    paths, shape (steps, paths, nq)
        Positions on the way.
    shares, shape (paths,)
        Fraction of each line that was reached.
    """
    driven_indices = [m.columns[0].index(name) for name in moved]
    places = np.tile(q, (len(ends), 1))
    moving, shares = np.ones(len(ends), bool), np.zeros(len(ends))
    least, way = MIN_SINGULAR_SHARE * _least_singular_value(m, places, moved), []
    for share in np.linspace(0.0, 1.0, PATH_STEPS + 1)[1:]:
        guess = places.copy()
        guess[:, driven_indices] = q[driven_indices] + share * (ends - q[driven_indices])
        next_positions, closed_mask = close_loops(m, guess, moved)
        step_size = np.abs(guess[:, driven_indices] - places[:, driven_indices]).max(axis=-1)
        same_branch = np.abs(next_positions - places).max(axis=-1) <= MAX_BRANCH_RATIO * step_size
        moving &= closed_mask & same_branch & (_least_singular_value(m, next_positions, moved) >= least)
        places[moving], shares[moving] = next_positions[moving], share
        way.append(places.copy())
    return np.array(way), shares


def _least_singular_value(m: Mechanism, q: Array, moved: Sequence[str]) -> Array:
    """Return the least singular value of the constraint Jacobian of the dependent coordinates: 0 at a dead point."""
    bends = elastic_coordinates(m)
    others = [k for k, name in enumerate(m.columns[1]) if name not in moved and k not in bends]
    if not m.loops or not others:
        return np.ones(len(q))
    values = np.linalg.svd(np.asarray(m.closure_jacobian(q))[..., others], compute_uv=False)
    rank = int((values[0] > 1e-9 * values[0, 0]).sum())
    return np.asarray(values[:, rank - 1])


@dataclass(frozen=True, eq=False)
class Servos:
    """Controller: maps (t, q, v, x, u), with the targets u, to the forces on the driven coordinates."""

    moved: tuple[str, ...]
    start: tuple[float, ...]
    speeds: tuple[float, ...]  # limits of the desired positions' rates
    gains: Gains
    hold: Array
    tree: InverseDynamics | None = None  # computed torque, if all coordinates of a tree are driven

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Desired positions and integrals of the errors."""
        places = [StateVariable(f"{n}.desired", "", x) for n, x in zip(self.moved, self.start, strict=True)]
        return (*places, *(StateVariable(f"{n}.error", "") for n in self.moved))

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[list[Scalar], list[Scalar]]:
        """Return the forces on the driven coordinates and the rates of the states."""
        w, accelerations, forces = self.gains.rate, list[Scalar](), list[Scalar]()
        rates, errors = list[Scalar](), list[Scalar]()
        for name, most, inertia, held in zip(self.moved, self.speeds, self.gains.inertia, self.hold, strict=True):
            desired = x[f"{name}.desired"]
            leash = Leash(0.02 * most, 0.3, 0.3 * most)
            rate = leash(desired, clip(ARRIVAL_RATE * (u[name] - desired), -most, most), q[name])
            error = desired - q[name]
            wanted = w * w * (error + INTEGRAL_RATE * x[f"{name}.error"]) + 2.0 * w * (rate - v[name])
            accelerations.append(wanted)
            forces.append(float(held) + float(inertia) * wanted)
            rates.append(rate)
            errors.append(error)
        if self.tree is not None:
            still = [0.0] * len(self.moved)
            torques = self.tree.torque(list(q), list(v), accelerations)
            first = self.tree.torque(self.start, still, still)
            forces = [float(h) + a - b for h, a, b in zip(self.hold, torques, first, strict=True)]
        return forces, [*rates, *errors]
