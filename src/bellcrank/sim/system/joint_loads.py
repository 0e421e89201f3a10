"""Loads of joints with bearing friction: the constraint force of a joint, and the motion and forces along its axes.

The force through a joint of the tree follows from the accelerations by one more Newton-Euler sweep, with every force on
a body as a wrench on one of its frames: external forces, force elements, springs, drives of frames and loops. That of a
cut joint follows from the multipliers of its loop. Both are linear in the accelerations and multipliers.

A bearing needs force and moment about the origin of the child's body frame, in axes with z along that of the joint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics import aba, crba, kinematics, rnea
from bellcrank.dynamics.force_field import ForceLaw
from bellcrank.dynamics.frame_pairs import FrameEnd, JacobianRow, frame_pair, jacobian_row
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.constrained_dynamics import lagrange, without_forces
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.loop_layer import common_axes, loop_forces, loop_wrenches
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.dynamics.tree_sweeps import poses
from bellcrank.errors import InputError
from bellcrank.forces.bearings import BearingFriction, product
from bellcrank.forces.element import Between
from bellcrank.model import Mechanism, Tree
from bellcrank.model.joints import KINDS
from bellcrank.parameters import nominal
from bellcrank.record.contents import COMPONENTS, RATES
from bellcrank.record.contents import units as joint_units
from bellcrank.scalar import Scalar, is_real, is_zero, step
from bellcrank.sim.run_arguments import check_known
from bellcrank.sim.system.element_forces import end_forces
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Motion, Vec, vec

FrameWrench = tuple[str, list[Scalar]]  # frame, and [force, moment] there in world axes
NO_LOOPS = LoopRank()
SELF_STRESS = 1e-9  # relative size of a singular value, or of a load, that is rounding


def checked_bearings(mechanism: Mechanism, bearings: Sequence[BearingFriction]) -> tuple[BearingFriction, ...]:
    """Return `bearings`, or raise an InputError for one that has no joint of `mechanism` to act in."""
    kinds = {j.name: j.kind for j in mechanism.joints} | {x.name: x.kind for x in mechanism.loops if not x.joints}
    for e in bearings:
        check_known(f'BearingFriction "{e.name}" of "{mechanism.name}"', "joint", [e.joint], kinds)
        e.check_kind(kinds[e.joint])
        others = [other.name for other in bearings if other is not e and other.joint == e.joint]
        if others:
            raise InputError(
                f'BearingFriction "{e.name}" and "{others[0]}" are both in the joint "{e.joint}", which transmits one '
                "force; expected one of them for each joint."
            )
    return tuple(bearings)


def coordinates(mechanism: Mechanism, e: BearingFriction) -> tuple[str, ...]:
    """Return the names in `mechanism` of the velocities of the joint of the bearing `e`; none for a cut joint."""
    link = next((x for x in mechanism.tree.links if x.joint.name == e.joint), None)
    return () if link is None else tuple(mechanism.columns[1][k] for k in link.v_index)


def is_cut(mechanism: Mechanism, e: BearingFriction) -> bool:
    """Return whether the joint of the bearing `e` is a cut joint of `mechanism`."""
    return any(loop.name == e.joint for loop in mechanism.loops)


def bearing_columns(mechanism: Mechanism, bearings: Sequence[BearingFriction]) -> dict[str, str]:
    """Return the record columns of `bearings` in `mechanism` with their units: forces, energy, power loss, load."""
    measured = dict(zip(mechanism.columns[1], joint_units(mechanism)[1], strict=True))
    units_by_column: dict[str, str] = {}
    for e in bearings:
        force = {name: RATES[measured[name]][2] for name in coordinates(mechanism, e)}
        if is_cut(mechanism, e):
            force = {c: "N" if c[0] == "f" else "N m" for c in COMPONENTS}
        shown = {**force, "energy": "J", "loss": "W", "load": "N"}
        units_by_column |= {f"{e.name}.{key}": unit for key, unit in shown.items()}
    return units_by_column


def bearing_description(mechanism: Mechanism, e: BearingFriction) -> dict[str, Any]:
    """Return the description of the bearing `e` in `mechanism` that a record keeps."""
    if is_cut(mechanism, e):
        loop = next(x for x in mechanism.loops if x.name == e.joint)
        return {"what": str(e), "frames": [loop.a, loop.b]}
    return {"what": str(e), "joints": list(coordinates(mechanism, e))}


@dataclass(frozen=True)
class BearingPlace:
    """Place and directions of the forces of a bearing, in one configuration."""

    kind: str
    rows: list[JacobianRow]  # velocity of each axis of the joint, as rows by v
    # Wrenches on frames for a unit of force along each axis: those of a cut joint; in the tree none, because forces
    # along the axes of its joints are not constraint forces.
    reactions: list[list[FrameWrench]]
    link: int = -1  # number of the joint in the tree
    loop: int = -1  # number of the loop
    frame: str = ""  # frame b of the loop


def bearing_place(tree: Tree, e: BearingFriction, q: Sequence[Scalar]) -> BearingPlace:
    """Return where the bearing `e` acts in `tree` at the positions `q`."""
    for i, link in enumerate(tree.links):
        if link.joint.name == e.joint:
            ratio = 1.0 if link.joint.mimic is None else link.joint.mimic.multiplier
            rows: list[JacobianRow] = [{k: ratio} for k in link.v_index]
            return BearingPlace(link.kind.name, rows, [[] for _ in rows], link=i)
    number = next(i for i, loop in enumerate(tree.loops) if loop.name == e.joint)
    loop = tree.loops[number]
    a, b = frame_pair(tree, loop.a, loop.b, q, None)
    axes = _free_axes(loop.kind, b.R)
    R, d = common_axes(tree, loop.a, loop.b, q), b.p - a.p
    return BearingPlace(
        loop.kind,
        [_relative_row(a, b, d, axis) for axis in axes],
        [_pair_of_wrenches((loop.a, loop.b), R, d, axis) for axis in axes],
        loop=number,
        frame=loop.b,
    )


def _free_axes(kind: str, R: Mat) -> list[Motion]:
    """Return the motions that a cut joint of this kind allows frame b, in the common axes."""
    return [Motion(R @ s.ang, R @ s.lin) for s in KINDS[kind].columns]


def _relative_row(a: FrameEnd, b: FrameEnd, d: Vec, axis: Motion) -> JacobianRow:
    """Return the velocity of b relative to a along an axis through the origin of b, as a row by v."""
    return jacobian_row(
        a, b,
        lambda s: -(axis.ang.dot(s.ang) + axis.lin.dot(s.lin + s.ang.cross(d))),
        lambda s: axis.ang.dot(s.ang) + axis.lin.dot(s.lin),
    )  # fmt: skip


def _pair_of_wrenches(frames: tuple[str, str], R: Mat, d: Vec, axis: Motion) -> list[FrameWrench]:
    """Return a unit force and moment along an axis at frame b, and the opposite one on a, as wrenches on the frames."""
    f, n, arm = R @ axis.lin, R @ axis.ang, R @ d
    return [(frames[1], [*f, *n]), (frames[0], [*(-f), *(-(n + arm.cross(f)))])]


def transmitted_forces(
    tree: Tree,
    places: Sequence[BearingPlace],
    motion: tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]],
    wrenches: Sequence[FrameWrench],
    loops: tuple[LoopRank, Sequence[Scalar]] = (NO_LOOPS, ()),
) -> list[list[Scalar]]:
    """Return [force, moment] that the joint of each bearing transmits, in axes with z along that of the joint.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism, with its true bodies.
    places
        Places of the bearings.
    motion
        Positions, velocities and accelerations.
    wrenches
        Wrenches on frames, without those of springs and loops.
    loops
        Rank of the loop equations, and multipliers.
    """
    q, v, a = motion
    every = [*wrenches, *loop_wrenches(tree, *loops, q, v)]
    frames, acting = [frame for frame, _ in every], [w for _, w in every]
    through = rnea.joint_forces(replace(tree, loops=(), springs=()), q, v, a, frames, acting)
    cut = loop_forces(tree, *loops, q) if any(x.loop >= 0 for x in places) else []
    out: list[list[Scalar]] = []
    for place in places:
        step("bearing load")
        if place.loop >= 0:
            W, R = cut[place.loop], _axes_in_world(tree, place.frame, q).T
            out.append([*(R @ vec(W[:3])), *(R @ vec(W[3:]))])
            continue
        f, (_, _, p) = through[place.link], tree.frames[tree.links[place.link].name]
        out.append([*f.lin, *(f.ang - p.cross(f.lin))])
    return out


def _axes_in_world(tree: Tree, frame: str, q: Sequence[Scalar]) -> Mat:
    body, R, _ = tree.frames[frame]
    return (poses(tree, q)[body][0] if body >= 0 else tree.ground.pose(IDENTITY, ZERO)[0]).times(R)


def undetermined_bearings(system: Any) -> list[str]:
    """Return the bearings whose load rigid bodies do not determine, because loops are over-constrained.

    Forces of the loops that do not act on any coordinate, a self-stress, load the joints of the loops. The load of a
    bearing is the smallest possible one if it is orthogonal to all of them, as that of a planar mechanism with forces
    in its plane. This is tested in one configuration in motion, with forces in all joints.

    Parameters
    ----------
    system
        The system.
    """
    m = system.mechanism.at() if system.mechanism.parameters else system.mechanism
    loops, bearings = analysis(system.mechanism), [nominal(e) for e in system.bearings]
    q, rng = np.asarray(loops.samples[0], float), np.random.default_rng(0)
    C = evaluate_constraints(m.tree, q).C
    left, singular, right = np.linalg.svd(C)
    rank = int((singular > SELF_STRESS * max(float(singular.max(initial=0.0)), 1e-300)).sum())
    v, tau = (right[rank:].T @ rng.normal(size=m.nv - rank)).tolist(), rng.normal(size=m.nv).tolist()
    forward = (crba if m.tree.coupled else aba).forward_dynamics
    a, lam = lagrange(m.tree, forward, loops.rank, q.tolist(), v, tau)
    places = [bearing_place(m.tree, e, q.tolist()) for e in bearings]
    state = replace(system, mechanism=m), [*q, *v, *(z.initial for z in system.states)]
    wrenches = [w for w in body_wrenches(state[0], 0.0, state[1]) if all(map(is_real, w[1]))]
    carried = transmitted_forces(m.tree, places, (q.tolist(), v, a), wrenches, (loops.rank, lam.values))
    empty, still, found = without_forces(m.tree), [0.0] * m.nv, dict[str, None]()
    for stress in left[:, rank:].T:
        stressed = LoopRank(rows=tuple(range(len(C)))), stress.tolist()
        through = transmitted_forces(empty, places, (q.tolist(), still, still), [], stressed)
        for e, place, W, S in zip(bearings, places, carried, through, strict=True):
            rows = [row for pad in e.pads(place.kind) for row in pad.load]
            load, own = (np.array([float(product(row, x)) for row in rows]) for x in (W, S))
            if abs(load @ own) > SELF_STRESS * np.linalg.norm(load) * np.linalg.norm(S):
                found[e.name] = None
    return list(found)


def body_wrenches(system: Any, t: Scalar, y: Sequence[Scalar]) -> list[FrameWrench]:
    """Return the wrenches of external forces, force elements and the force everywhere, on frames in world axes.

    Parameters
    ----------
    system
        The system.
    t, y
        Time and state.
    """
    m, (q, v, x) = system.mechanism, system.split(y)
    q, v = list(q), list(v)
    found = list(system.outside(t, y)[1].items())
    for e, own_states in system.elements_with_states(x):
        if isinstance(e, Between):
            found += _element_wrenches(m.tree, e, t, q, v, own_states)
    if system.everywhere is not None:
        found += _field_wrenches(m.tree, system.everywhere, q, v)
    return found


def _element_wrenches(tree: Tree, e: Between, t: Scalar, q: Any, v: Any, x: Any) -> list[FrameWrench]:
    a, b = frame_pair(tree, e.a, e.b, q, v)
    pull = end_forces(e, t, a, b, x)
    R = common_axes(tree, e.a, e.b, q)
    return [(e.b, [*(R @ pull.f), *(R @ pull.n)]), (e.a, [*(R @ -pull.f), *(R @ -pull.moment_on_a)])]


def _field_wrenches(tree: Tree, law: ForceLaw, q: Any, v: Any) -> list[FrameWrench]:
    found: list[FrameWrench] = []
    for link, (R_WF, p) in zip(tree.links, poses(tree, q), strict=True):
        if is_zero(mass := link.inertia.m):
            continue
        _, _, origin = tree.frames[link.name]
        arm = R_WF @ (link.inertia.h * (1.0 / mass) - origin)
        velocity = kinematics.velocity(tree, q, v, link.name)
        moving = vec(velocity[:3]) + vec(velocity[3:]).cross(arm)
        f = Vec(*law([*(p + R_WF @ origin + arm)], [*moving], mass))
        found.append((link.name, [*f, *arm.cross(f)]))
    return found


def drive_wrenches(m: Mechanism, motions: Mapping[str, Any], drive: Sequence[Scalar]) -> list[FrameWrench]:
    """Return the wrenches of the drives of prescribed motions of frames; those of joints act along their axes.

    Parameters
    ----------
    m
        Mechanism.
    motions
        Prescribed motions by name.
    drive
        Force of each drive.
    """
    found = []
    for name, force in zip(motions, drive, strict=True):
        if name not in m.columns[1]:
            frame, _, axis = name.rpartition(".")
            found.append((frame, [force if c == axis else 0.0 for c in ("x", "y", "z", "", "", "")]))
    return found
