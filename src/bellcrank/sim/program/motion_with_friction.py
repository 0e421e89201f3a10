"""Accelerations with the friction of bearings, by superposition: they are linear in the forces of friction.

The motion without friction, and the responses to a unit of friction along each axis of a joint, give the force through
every joint as a function of all friction (joint_loads.py). bearing_friction.py solves for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bellcrank.dynamics.frame_pairs import JacobianRow
from bellcrank.dynamics.loops.constrained_dynamics import sparse_inner, without_forces
from bellcrank.forces.bearings import BearingFriction
from bellcrank.scalar import Scalar, ordered_sum
from bellcrank.sim.program.bearing_friction import BearingForces, LoadedPad, loaded_pads, solved_friction
from bellcrank.sim.program.imposed_motion import dense, requirements
from bellcrank.sim.system.element_forces import ElementResult
from bellcrank.sim.system.joint_loads import (
    BearingPlace,
    FrameWrench,
    bearing_place,
    body_wrenches,
    drive_wrenches,
    transmitted_forces,
)
from bellcrank.sim.system.latch_equations import latched_tree
from bellcrank.sim.system.observed_columns import SolvedMotion

if TYPE_CHECKING:
    from bellcrank.sim.program.system_graphs import Dynamics

State = list[Scalar]


@dataclass(frozen=True)
class _Axis:
    """One axis of a joint with bearing friction."""

    row: JacobianRow
    reaction: list[FrameWrench]


def with_bearing_friction(
    dynamics: Dynamics, t: Scalar, y: Sequence[Scalar], tau: Sequence[Scalar], free: SolvedMotion, shown: bool
) -> SolvedMotion:
    """Return the motion with the friction of all bearings.

    Parameters
    ----------
    dynamics
        Dynamics of the system.
    t, y
        Time and state.
    tau
        Forces on the coordinates, without friction of bearings.
    free
        Motion by these forces.
    shown
        Use a form that is valid in any row of a record.
    """
    s = dynamics.system
    q, v = (list(x) for x in s.split(y)[:2])
    places = [bearing_place(s.mechanism.tree, e, q) for e in s.bearings]
    axes = [_Axis(*pair) for place in places for pair in zip(place.rows, place.reactions, strict=True)]
    responses = [_unit_response(dynamics, y, axis, shown) for axis in axes]
    wrenches = body_wrenches(s, t, y)
    loads = _loads(dynamics, y, free, tau, wrenches, places, shown)
    changes = [
        _loads(dynamics, y, response, dense(axis.row, len(v)), axis.reaction, places, shown, bare=True)
        for axis, response in zip(axes, responses, strict=True)
    ]
    pads_by_bearing, first = list[list[LoadedPad]](), 0
    for k, (e, place) in enumerate(zip(s.bearings, places, strict=True)):
        u = [sparse_inner(row, v) for row in place.rows]
        pads_by_bearing.append(loaded_pads(e, place.kind, u, first, loads[k], [change[k] for change in changes]))
        first += len(place.rows)
    found = solved_friction([pad for pads in pads_by_bearing for pad in pads], first)
    results, resistance = _results(s.bearings, places, pads_by_bearing, found, v)
    total = _superposed(free, responses, found.x)
    return replace(total, bearings=results, resistance=resistance, margin=found.margin)


def _unit_response(dynamics: Dynamics, y: Sequence[Scalar], axis: _Axis, shown: bool) -> SolvedMotion:
    """Return the change of the motion by a unit of friction along an axis."""
    s = dynamics.system
    v = s.split(y)[1]
    response = partial(dynamics.force_response, y, shown=shown)
    a = list(response(dense(axis.row, len(v))))
    imposed = requirements(s, 0.0, y)  # at any time: the rows of motions do not depend on it
    return SolvedMotion(a) if imposed is None else imposed.held().imposed(a, response)


def _loads(
    dynamics: Dynamics, y: Sequence[Scalar], solved: SolvedMotion, tau: Sequence[Scalar],
    wrenches: Sequence[FrameWrench], places: Sequence[BearingPlace], shown: bool, bare: bool = False,
) -> list[list[Scalar]]:  # fmt: skip
    """Return [force, moment] through the joint of each bearing; `bare`: their change by forces alone."""
    s = dynamics.system
    q, v, x = s.split(y)
    driven = [a + b for a, b in zip(tau, solved.motion, strict=True)] if solved.motion else list(tau)
    for act in solved.latches:
        driven = [f + act.torque.get(k, 0.0) for k, f in enumerate(driven)]
    loops = dynamics.multipliers(y, driven, bare, shown)
    tree, velocities = s.mechanism.tree, list(v)
    if bare:
        tree, velocities = without_forces(tree), [0.0] * len(v)
    if s.latches:
        tree = replace(
            latched_tree(tree, s.latches, dict(zip(x.names, x, strict=True))), loops=tree.loops, springs=tree.springs
        )
    acting = [*wrenches, *drive_wrenches(s.mechanism, s.motions, solved.drive)]
    acting += solved.latch_wrenches
    return transmitted_forces(tree, places, (list(q), velocities, solved.accelerations), acting, loops)


def _superposed(free: SolvedMotion, responses: Sequence[SolvedMotion], x: Sequence[Scalar]) -> SolvedMotion:
    """Return the sum of the motion without friction and the responses, each times its friction."""

    def sums(name: str) -> State:
        columns = zip(*(getattr(response, name) for response in responses), strict=True)
        pairs = zip(getattr(free, name), columns, strict=True)
        return [a + ordered_sum(c * f for c, f in zip(column, x, strict=True)) for a, column in pairs]

    latches = list[ElementResult]()
    for i, act in enumerate(free.latches):
        parts = [(1.0, act), *((f, response.latches[i]) for response, f in zip(responses, x, strict=True))]
        torque = {k: ordered_sum(f * part.torque.get(k, 0.0) for f, part in parts) for k in act.torque}
        shown = [ordered_sum(f * part.shown[c] for f, part in parts) for c in range(len(act.shown))]
        latches.append(ElementResult(act.element, torque, [], shown))
    return SolvedMotion(sums("accelerations"), sums("drive"), sums("motion"), latches=latches)


def _results(
    bearings: Sequence[BearingFriction],
    places: Sequence[BearingPlace],
    pads_by_bearing: Sequence[Sequence[LoadedPad]],
    found: BearingForces,
    v: Sequence[Scalar],
) -> tuple[list[ElementResult], list[tuple[JacobianRow, Scalar]]]:
    """Return what each bearing does, and for each axis its row and the slope with which friction opposes."""
    results, resistance = list[ElementResult](), list[tuple[JacobianRow, Scalar]]()
    x, loads = iter(found.x), iter(found.loads)
    first = 0
    for e, place, pads in zip(bearings, places, pads_by_bearing, strict=True):
        friction, carried = [next(x) for _ in place.rows], [next(loads) for _ in pads]
        torque: dict[int, Scalar] = {}
        for row, f in zip(place.rows, friction, strict=True):
            for k, c in row.items():
                torque[k] = torque[k] + c * f if k in torque else c * f
        loss = -ordered_sum(sparse_inner(row, v) * f for row, f in zip(place.rows, friction, strict=True))
        total_load = ordered_sum(carried) if carried else 0.0
        results.append(ElementResult(e, torque, [], [*_shown(place, friction, torque), 0.0, loss, total_load]))
        for i, row in enumerate(place.rows, first):
            slope = ordered_sum(pad.slopes[i] * N for pad, N in zip(pads, carried, strict=True)) if pads else 0.0
            resistance.append((row, slope))
        first += len(place.rows)
    return results, resistance


def _shown(place: BearingPlace, friction: Sequence[Scalar], torque: dict[int, Scalar]) -> list[Scalar]:
    """Return the recorded forces: on the coordinates of the joint, or the wrench on frame b of a cut joint."""
    if place.loop < 0:
        return list(torque.values())
    return [ordered_sum(pair[0][1][c] * f for pair, f in zip(place.reactions, friction, strict=True)) for c in range(6)]
