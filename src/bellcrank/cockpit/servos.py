"""Servos for a mechanism that nobody has described: which joints get one, what holds them, and how they go to a target.

    a = w^2 e + w^2 c integral(e) + 2 w (dq_d - dq),   e = q_d - q
    tau = hold + D a                          or, where every coordinate of a tree is driven,
    tau = hold + ID(q, dq, a) - ID(start)     computed torque, as in control/inverse_dynamics.py

D is diagonal, and made for the inertia Lambda that the driven coordinates meet on the way from the start to the ends of
the sliders, with closed loops and with all that gives way: the inverse of Lambda is what their accelerations gain from
forces on them, by the mechanism's own dynamics. hold is what keeps the start at rest, against gravity and springs;
elsewhere the integral makes up for what has changed. w is faster than anything that wants to fall. The desired place
q_d begins where the mechanism is, goes to the target at a bounded speed, and is on a leash (control/leash.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import pi
from typing import Any

import numpy as np

from bellcrank.actuators import StateVariable
from bellcrank.control.inverse_dynamics import InverseDynamics
from bellcrank.control.leash import Leash
from bellcrank.dynamics.loops.assembly import CLOSED, assembled
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar, clip

SWING = 2.0 * pi * 1.5  # rad/s, the least w
CATCH_UP = 2.0  # 1/s, c
ARRIVE = 6.0  # 1/s, how fast a desired place comes to a target that is near
FASTEST = 2400.0  # 1/s; rk4 is stable up to 2785 with a step of 1 ms
NUDGE = 1e-5  # rad or m, to see where a mechanism falls
STEPS = 24  # from the start to where a slider ends
SHARE = 0.25  # of the loops' least singular value at the start: nearer to a dead point no slider goes
CORNERS = 64  # of all sliders together that are tried
LEAP = 8.0  # times its last step: a dependent coordinate that moves further has changed to another branch

Array = np.ndarray[Any, Any]


def elastic(m: Mechanism) -> list[int]:
    """Elements of v that steel moves and nobody drives: modes of bodies that bend, and joints inside of large beams."""
    names = {x for o in m.outlines for s in o.slices for x in s.coordinates}
    names |= {x for o in m.outlines if o.skin for x in o.skin.coordinates}
    modes = {k for body in m.tree.flexible for k in body.v_index}
    return [k for k, name in enumerate(m.columns[1]) if k in modes or name in names]


def movable(m: Mechanism, q: Any) -> list[str]:
    """Joints with a single coordinate. Where loops tie them, only as many as are free: the others follow.

    Slides first, for they are mostly somebody's cylinders, then joints on the ground; each is taken if what is left
    can still close the loops at q.
    """
    bends = elastic(m)
    names = [name for k, name in enumerate(m.columns[1]) if name in m.columns[0] and k not in bends]
    if not m.loops:
        return names
    joints = {j.name: j for j in m.own_joints}
    loops = m.loop_analysis
    J, cut = loops.scales.applied(np.asarray(m.closure_jacobian(q))), loops.cut
    left, found = [k for k in range(m.nv) if k not in bends], list[str]()
    rank = np.linalg.matrix_rank(J[:, left], tol=cut)
    for name in sorted(names, key=lambda n: (joints[n].kind != "prismatic", joints[n].parent != m.ground)):
        rest = [k for k in left if k != m.columns[1].index(name)]
        if len(found) < loops.mobility - len(bends) and np.linalg.matrix_rank(J[:, rest], tol=cut) == rank:
            left = rest
            found.append(name)
    return [name for name in names if name in found]


def steadiest(m: Mechanism, q: Any) -> list[str]:
    """Another choice: those follow that are furthest from a dead point at q, as a track's do not that lie in line. They
    are chosen one by one, each for the most that those before it cannot do.
    """
    J, bends = np.array(m.closure_jacobian(q)), elastic(m)
    J[:, bends] = 0.0
    left, follow = J.copy(), list[int]()
    loops = m.loop_analysis
    for _ in range(int(np.linalg.matrix_rank(loops.scales.applied(J), tol=loops.cut))):
        follow.append(int(np.argmax((left * left).sum(axis=0))))
        along = left[:, follow[-1]] / np.linalg.norm(left[:, follow[-1]])
        left = left - np.outer(along, along @ left)
    return [name for k, name in enumerate(m.columns[1]) if k not in (*follow, *bends) and name in m.columns[0]]


def stiff(m: Mechanism, q: Array, forces: Array) -> Array:
    """Accelerations from rest while nothing bends: what steel moves is held by forces of its own. Servos are slower
    than steel, and it is the whole boom that they swing.
    """
    a, bends, still = np.asarray(m.forward_dynamics(q, np.zeros(m.nv), forces)), elastic(m), np.zeros(m.nv)
    if not bends:
        return a
    units = np.eye(m.nv)[[*bends]]
    none = np.asarray(m.forward_dynamics(q, still, np.zeros(m.nv)))
    each = np.stack([np.asarray(m.forward_dynamics(q, still, unit)) - none for unit in units], axis=-1)
    each = np.broadcast_to(each, (*a.shape, len(bends)))
    hold = np.linalg.solve(each[..., bends, :], -a[..., bends][..., None])
    return np.asarray(a + (each @ hold)[..., 0])


def met(m: Mechanism, q: Array, moved: Sequence[str]) -> tuple[Array, Array]:
    """Lambda, and the forces that hold the moved coordinates, at each of some places q (places, nq)."""
    at = [m.columns[1].index(name) for name in moved]
    forces = np.zeros((len(at) + 1, m.nv))
    forces[range(1, len(at) + 1), at] = 1.0
    a = stiff(m, q[:, None], forces)[..., at]
    inertia = np.linalg.inv(np.swapaxes(a[:, 1:] - a[:, :1], -1, -2))
    inertia = (inertia + np.swapaxes(inertia, -1, -2)) / 2.0
    return inertia, -np.einsum("pij,pj->pi", inertia, a[:, 0])


@dataclass(frozen=True, eq=False)
class Gains:
    inertia: Array  # D
    quick: float  # rad/s, w


def gains(m: Mechanism, places: Array, moved: Sequence[str]) -> Gains:
    """For mechanisms held at any of these places.

    D is diagonal and more than any Lambda there. w is twice as fast as the mechanism would run away from there, were it
    let go (an upright pendulum, a spring over its dead point), and never slower than SWING. But where there is least
    inertia nothing is faster than a step of 1 ms can bear.
    """
    at = [m.columns[1].index(name) for name in moved]
    inertia, hold = met(m, places, moved)
    D = np.diagonal(inertia, axis1=-2, axis2=-1).max(axis=0)
    D = D * np.linalg.eigvals(inertia / D[:, None]).real.max()
    forces = np.zeros((len(places), m.nv))
    forces[:, at] = hold
    slopes = []
    for name in moved:
        aside = np.zeros(m.nq)
        aside[m.columns[0].index(name)] = NUDGE
        pair = [closed(m, places + way * aside, moved)[0] for way in (-1.0, 1.0)]
        a = [stiff(m, q, forces)[:, at] for q in pair]
        slopes.append((a[1] - a[0]) / (2.0 * NUDGE))
    away = np.linalg.eigvals(inertia @ np.stack(slopes, axis=-1) / D[:, None]).real.max()
    w = max(SWING, 2.0 * float(np.sqrt(max(away, 0.0))))
    # In the first moment, before a boom has passed it on, a servo feels no more than its foot.
    none, units = np.asarray(m.forward_dynamics(places, np.zeros(m.nv), np.zeros(m.nv))), np.eye(m.nv)[at]
    quick = [np.asarray(m.forward_dynamics(places, np.zeros(m.nv), unit)) - none for unit in units]
    lightest = np.linalg.eigvals(np.stack(quick, axis=-1)[:, at] * D).real.max()
    return Gains(D * min(1.0, FASTEST / (2.0 * w * float(lightest))), w)


def closed(m: Mechanism, q: Array, moved: Sequence[str]) -> tuple[Array, Array]:
    """The configurations nearest to q in which the loops are closed and the moved coordinates as they are; whether."""
    if not m.loops:
        return q, np.ones(len(q), bool)
    plain = m.at() if m.parameters else m
    follows = np.array([name not in moved for name in m.columns[1]], float)
    follows[elastic(m)] = 0.0
    found, residual = assembled(plain.tree, q, follows)
    return found, np.abs(residual).max(axis=-1) < CLOSED


@dataclass(frozen=True, eq=False)
class Sliders:
    ends: list[tuple[float, float]]  # of each
    ways: Array  # (steps, ways, nq), from the start to the ends of some of them and of all together


def sliders(m: Mechanism, q: Array, moved: Sequence[str], ends: Sequence[tuple[float, float]]) -> Sliders:
    """How far sliders go: each alone as far as `ends`, or as the loops let it go; then all of them by the same share of
    that, such that they may stand anywhere at the same time.
    """
    at = [m.columns[0].index(name) for name in moved]
    home, n = q[at], len(moved)
    alone = np.tile(home, (2 * n, 1))
    alone[np.arange(2 * n), np.repeat(np.arange(n), 2)] = np.ravel(ends)
    ways, _ = reach(m, q, moved, alone)
    box = np.array([[ways[-1, 2 * k, i], ways[-1, 2 * k + 1, i]] for k, i in enumerate(at)])
    if m.loops and n > 1:
        more, share = reach(m, q, moved, _corners(home, box))
        kept = max(1, int(np.ceil(share.min() * STEPS)))
        box, ways = home[:, None] + share.min() * (box - home[:, None]), np.concatenate([ways, more], axis=1)[:kept]
    return Sliders([(float(low), float(high)) for low, high in box], ways)


def _corners(home: Array, box: Array) -> Array:
    """Corners of the box around home, and places on its sides: all of the corners where they are few."""
    n, rng = len(home), np.random.default_rng(0)
    signs = np.array(list(product((-1.0, 1.0), repeat=n))) if 2**n <= CORNERS else rng.choice([-1.0, 1.0], (CORNERS, n))
    sides = rng.uniform(-1.0, 1.0, (CORNERS, n))
    sides /= np.abs(sides).max(axis=-1, keepdims=True)
    ways = np.concatenate([signs, sides])
    return np.asarray(home + np.where(ways < 0.0, -ways * (box[:, 0] - home), ways * (box[:, 1] - home)))


def reach(m: Mechanism, q: Array, moved: Sequence[str], ends: Array) -> tuple[Array, Array]:
    """Straight ways of the moved coordinates to each of `ends` (ways, moved): (steps, ways, nq), and the share of each
    that the loops let it go. They stay closed, on their branch and away from dead points.
    """
    at = [m.columns[0].index(name) for name in moved]
    places = np.tile(q, (len(ends), 1))
    going, gone = np.ones(len(ends), bool), np.zeros(len(ends))
    least, way = SHARE * _freedom(m, places, moved), []
    for share in np.linspace(0.0, 1.0, STEPS + 1)[1:]:
        guess = places.copy()
        guess[:, at] = q[at] + share * (ends - q[at])
        then, good = closed(m, guess, moved)
        far = np.abs(guess[:, at] - places[:, at]).max(axis=-1)
        near = np.abs(then - places).max(axis=-1) <= LEAP * far
        going &= good & near & (_freedom(m, then, moved) >= least)
        places[going], gone[going] = then[going], share
        way.append(places.copy())
    return np.array(way), gone


def _freedom(m: Mechanism, q: Array, moved: Sequence[str]) -> Array:
    """The least singular value of the loops' Jacobian without the moved coordinates: 0 at a dead point."""
    bends = elastic(m)
    rest = [k for k, name in enumerate(m.columns[1]) if name not in moved and k not in bends]
    if not m.loops or not rest:
        return np.ones(len(q))
    values = np.linalg.svd(np.asarray(m.closure_jacobian(q))[..., rest], compute_uv=False)
    rank = int((values[0] > 1e-9 * values[0, 0]).sum())
    return np.asarray(values[:, rank - 1])


@dataclass(frozen=True, eq=False)
class Servos:
    """The control: call it with (t, q, v, x, u), u being the targets; it gives the forces on the moved coordinates."""

    moved: tuple[str, ...]
    start: tuple[float, ...]
    speeds: tuple[float, ...]  # of the desired places
    gains: Gains
    hold: Array
    tree: InverseDynamics | None = None  # of a mechanism with all its coordinates driven

    @property
    def states(self) -> tuple[StateVariable, ...]:
        places = [StateVariable(f"{n}.desired", "", x) for n, x in zip(self.moved, self.start, strict=True)]
        return (*places, *(StateVariable(f"{n}.error", "") for n in self.moved))

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[list[Scalar], list[Scalar]]:
        w, accelerations, forces = self.gains.quick, list[Scalar](), list[Scalar]()
        rates, errors = list[Scalar](), list[Scalar]()
        for name, most, inertia, held in zip(self.moved, self.speeds, self.gains.inertia, self.hold, strict=True):
            desired = x[f"{name}.desired"]
            leash = Leash(0.02 * most, 0.3, 0.3 * most)
            rate = leash(desired, clip(ARRIVE * (u[name] - desired), -most, most), q[name])
            error = desired - q[name]
            wanted = w * w * (error + CATCH_UP * x[f"{name}.error"]) + 2.0 * w * (rate - v[name])
            accelerations.append(wanted)
            forces.append(float(held) + float(inertia) * wanted)
            rates.append(rate)
            errors.append(error)
        if self.tree is not None:
            still = [0.0] * len(self.moved)
            now, first = self.tree.torque(list(q), list(v), accelerations), self.tree.torque(self.start, still, still)
            forces = [float(h) + a - b for h, a, b in zip(self.hold, now, first, strict=True)]
        return forces, [*rates, *errors]
