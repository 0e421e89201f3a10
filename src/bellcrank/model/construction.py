"""From loose parts to a Mechanism: check them, connect them to the ground, merge welded bodies, put them in order.

A record stores the mechanism after these steps. An edited file may violate what later steps rely on: a mechanism from a
record is checked again (`check_consistency`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.argument_errors import sequence_elements
from bellcrank.errors import ModelError, brief, unknown
from bellcrank.model import part_checks
from bellcrank.model.energy_check import check_digits, check_energy, has_planar_inertia, turning_directions
from bellcrank.model.flexible_body import Modal
from bellcrank.model.joints import KINDS
from bellcrank.model.loop_checks import FrameEnds, check_couplings, check_loops, check_springs
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.outline import Outline
from bellcrank.model.parts import (
    Array,
    Body,
    Frame,
    Joint,
    Loop,
    Report,
    ReportLine,
    Spring,
    matrix,
    triple,
    with_unit_axes,
)
from bellcrank.parameters import Parameters, has_free, nominal

WeldedPose = tuple[str, Array, Array]  # body, rotation and point in the body's frame
# Distance (m) from which digits of the moments are checked: a body at a distance of d metres adds m d^2 about the other
# axes, with rounding.
FAR_METRES = 100.0
UNMOVED_ROTATION, UNMOVED_POINT = np.eye(3), np.zeros(3)  # identical objects mark bodies that no weld has moved


def mechanism_of(
    name: str,
    bodies: Sequence[Body],
    joints: Sequence[Joint],
    frames: Sequence[Frame] = (),
    loops: Sequence[Loop] = (),
    springs: Sequence[Spring] = (),
    flexible: Sequence[Modal] = (),
    outlines: Sequence[Outline] = (),
    *,
    ground: str = "ground",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    source: str = "builder",
    lines: Sequence[ReportLine] = (),
    checks: str = "error",
) -> Mechanism:
    """Return the mechanism of checked, merged and sorted parts.

    Parameters
    ----------
    name
        Name of the mechanism.
    bodies, joints, frames, loops, springs, flexible, outlines
        Its parts.
    ground
        Name of the ground.
    gravity
        In the world, m/s^2.
    source
        Origin of the parts, for the report.
    lines
        First lines of the report.
    checks
        "error", or "warn" to turn impossible inertias, and mimics of missing joints, into warnings of the report.
        Invalid names, topology or NaN, and a mass matrix with a negative eigenvalue, are always errors.
    """
    part_checks.checked_level(checks)
    gravity = _checked_gravity(f'mechanism "{name}"', gravity)
    report_lines = [*lines, *_check_parts(bodies, joints, frames, ground)]
    welded = _WeldMerger(bodies, ground)
    for j in _parents_first(joints, ground, [b.name for b in bodies]):
        welded.add(j)
    doubtful = _doubtful_bodies(bodies)
    report_lines += [*welded.lines, *_inertia_warnings(doubtful, welded, checks)]
    final = [_merge_bodies(welded.merged_parts[j.child]) for j in welded.moving_joints]
    for b in final:
        part_checks.check_mass(b)
    inner = {name for outline in outlines for name in outline.bodies}
    report_lines += _massless_warnings(final, welded.moving_joints, checks, inner)
    moving, mimic_lines = _resolve_mimics(welded.moving_joints, {j.name for j in joints}, checks)
    report_lines += mimic_lines
    placed = {f.name: f for f in _all_frames(frames, welded.poses)}
    if loops or springs:
        ends = FrameEnds({f.name: f for f in frames} | {b: Frame(b, b) for b in welded.poses}, placed)
        report_lines += check_loops(loops, ends, moving)
        check_couplings(loops, moving)
        report_lines += check_springs(springs, ends)
    mechanism = Mechanism(
        name=name,
        ground=ground,
        gravity=triple(gravity),
        bodies=tuple(final),
        joints=tuple(moving),
        frames=placed,
        loops=tuple(loops),
        springs=tuple(springs),
        flexible=tuple(body.seen_from(*welded.poses[body.body]) for body in flexible),
        outlines=tuple(outline.seen_from(welded.poses) for outline in outlines),
    )
    report_lines += _energy_warnings(mechanism, bool(doubtful))
    given_parameters = Parameters(gravity, bodies, joints, frames, loops, springs)
    unused = [parameter for parameter in given_parameters if parameter not in mechanism.parameters]
    report_lines += [
        ReportLine(f'parameter "{parameter}"', "moves nothing and is not used", "warning") for parameter in unused
    ]
    reported = replace(mechanism, report=Report(source, tuple(report_lines)))
    # The parts are equal, so their parameters are not searched again.
    vars(reported)["parameters"] = mechanism.parameters
    return reported


def _checked_gravity(where: str, gravity: Sequence[float]) -> Sequence[float]:
    """Return the three numbers of `gravity`; raise a ModelError, which names `where`, for anything else."""
    components = sequence_elements(gravity)
    if components is None or len(components) != 3 or any(_is_not_scalar(g) for g in components):
        raise ModelError(f"{where}: gravity is {brief(gravity)}; expected three numbers.")
    part_checks.check_finite(where, "gravity", components)  # after the length, because a list may contain itself
    return components


def _is_not_scalar(x: object) -> bool:
    """Return whether x is not a single number.

    numpy is not applied to lists: one that contains itself is too deep for it.
    """
    return bool(x.ndim) if isinstance(x, np.ndarray) else isinstance(x, Collection)


def _check_parts(
    bodies: Sequence[Body], joints: Sequence[Joint], frames: Sequence[Frame], ground: str
) -> list[ReportLine]:
    """Raise a ModelError for invalid names and numbers; return the other report lines of the joints."""
    known = dict.fromkeys([ground, *(b.name for b in bodies)])
    part_checks.check_names("body", [ground, *(b.name for b in bodies)])
    part_checks.check_names("joint", [j.name for j in joints])
    part_checks.check_names("frame", [f.name for f in frames])
    for b in bodies:
        part_checks.check_body_numbers(b)
    lines = [line for j in joints for line in part_checks.check_joint(j, known)]
    for f in frames:
        part_checks.check_frame(f, known)
    return lines


class _WeldMerger:
    """The mechanism without fixed joints: joints that move, and the merged bodies."""

    def __init__(self, bodies: Sequence[Body], ground: str) -> None:
        self.ground = ground
        self.bodies = {b.name: b for b in bodies}
        self.poses: dict[str, WeldedPose] = {ground: (ground, UNMOVED_ROTATION, UNMOVED_POINT)}
        self.merged_parts = {b.name: [b] for b in bodies}
        self.moving_joints: list[Joint] = []
        self.lines: list[ReportLine] = []

    def add(self, j: Joint) -> None:
        """Add the next joint; the joint of its parent must have been added before."""
        body, R, p = self.poses[j.parent]
        rotation: Any = [[x + 0.0 for x in row] for row in j.rotation]  # no -0.0
        point: Any = [x + 0.0 for x in j.point]
        if j.kind == "fixed" or not (R is UNMOVED_ROTATION and p is UNMOVED_POINT):  # else no weld has moved the body
            rotation, point = R @ np.asarray(j.rotation), p + R @ np.asarray(j.point)
        if j.kind == "fixed":
            self._add_weld(j, (body, rotation, point))
            return
        self.poses[j.child] = (j.child, UNMOVED_ROTATION, UNMOVED_POINT)
        moved = replace(with_unit_axes(j), parent=body, rotation=matrix(rotation), point=triple(point))
        self.moving_joints.append(moved)

    def _add_weld(self, j: Joint, place: WeldedPose) -> None:
        body, R, p = self.poses[j.child] = place
        link = self.bodies[j.child]
        what, level = f'fixed: "{j.child}" is part of "{body}" and stays as a frame', "ok"
        if body != self.ground:
            moved = replace(link, com=triple(p + R @ link.com), inertia=matrix(R @ link.inertia @ R.T))
            self.merged_parts[body].append(moved)
        elif link.mass:
            what, level = f"{what}; its {link.mass:g} kg do not move and are not used", "note"
        self.lines.append(ReportLine(f'joint "{j.name}"', what, level))


def _parents_first(joints: Sequence[Joint], ground: str, bodies: Sequence[str]) -> list[Joint]:
    """Return joints so that parents come first, in the given order where possible."""
    owner: dict[str, Joint] = {}
    for j in joints:
        if j.child == ground:
            raise ModelError(
                f'joint "{j.name}" has the ground "{ground}" as its child; the ground can only be a parent.'
            )
        if j.child in owner:
            raise ModelError(
                f'body "{j.child}" is the child of two joints, "{owner[j.child].name}" and "{j.name}": that is a '
                "closed loop. Keep one of the two, and close the loop with the other (docs/loops.md)."
            )
        owner[j.child] = j
    reached, order = {ground}, []
    hanging: dict[str, list[int]] = {}
    for i, j in enumerate(joints):
        hanging.setdefault(j.parent, []).append(i)
    ready = list(hanging.get(ground, ()))  # a heap: the earliest given joint that can be placed
    while ready:
        j = joints[heapq.heappop(ready)]
        order.append(j)
        reached.add(j.child)
        for i in hanging.get(j.child, ()):
            heapq.heappush(ready, i)
    waiting = [j for j in joints if j.child not in reached]
    if waiting:
        chain = [waiting[0].child]
        while chain[-1] in owner and owner[chain[-1]].parent not in chain:
            chain.append(owner[chain[-1]].parent)
        end = owner.get(chain[-1])
        trail = " <- ".join(f'"{c}"' for c in ([*chain, end.parent] if end else chain))
        why = "the parent relation closes on itself" if end else f'"{chain[-1]}" has no joint to the ground'
        raise ModelError(
            f"bodies are not connected to the ground: {trail}: {why}. Every body needs one chain of joints to "
            f'"{ground}".'
        )
    for b in bodies:
        if b not in reached:
            raise ModelError(
                f'body "{b}" has no joint: nothing connects it to "{ground}". Add a joint, or remove the body.'
            )
    return order


def _doubtful_bodies(bodies: Sequence[Body]) -> list[Body]:
    """Return the bodies with a negative mass or an inertia that is impossible for a body that moves in space.

    The others, and all that consist of them, have no negative kinetic energy in any motion (energy_check.py).
    """
    distinct = {(b.mass, b.inertia): b for b in bodies}  # identical bodies are examined once
    defective = {key for key, b in distinct.items() if part_checks.find_inertia_defect(b) is not None}
    return [b for b in bodies if (b.mass, b.inertia) in defective]


def _energy_warnings(m: Mechanism, doubtful: bool) -> Iterator[ReportLine]:
    """Yield warnings about distant parts, and about negative kinetic energy where inertias are `doubtful`."""
    m = m.at() if m.parameters else m
    # From frame to frame; the position of the roots on the ground has no effect.
    offsets = [*(b.com for b in m.bodies), *(j.point for j in m.joints if j.parent != m.ground)]
    if (farthest := max((math.hypot(*x) for x in offsets), default=0.0)) > FAR_METRES:
        yield from check_digits(m, farthest)
    if doubtful:
        yield from check_energy(m)


def _inertia_warnings(bodies: Sequence[Body], welded: _WeldMerger, checks: str) -> list[ReportLine]:
    """Return warnings about physically impossible inertias; raise a ModelError where `checks` is "error"."""
    if not bodies:
        return []
    turns = turning_directions(welded.moving_joints, welded.ground)
    valid_keys: set[tuple[object, ...]] = set()  # keys of valid bodies, which identical bodies share
    defects = []
    for b in bodies:
        body, R, _ = welded.poses[b.name]
        key = b.mass, b.inertia, R.tobytes(), id(turns[body])
        if key not in valid_keys:
            defects.append(_inertia_defect(b, welded.poses[b.name], turns))
            if defects[-1] is None:
                valid_keys.add(key)
    for doubt in defects if checks == "error" else []:
        part_checks.raise_inertia_defect(doubt)
    return part_checks.defect_lines([doubt for doubt in defects if doubt is not None])


def _inertia_defect(b: Body, place: WeldedPose, turns: Mapping[str, Array]) -> part_checks.InertiaDefect | None:
    """Return the defect of a body, given the directions that each body can turn about, or None."""
    body, R, _ = place
    return part_checks.find_inertia_defect(
        b, has_planar_inertia(np.asarray(nominal(b.inertia), dtype=float), turns[body] @ nominal(R))
    )


def _merge_bodies(parts: Sequence[Body]) -> Body:
    """Return one body made of several welded ones."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, links=(first.name,))
    masses = [b.mass for b in parts]
    mass = sum(masses) if has_free(masses) else math.fsum(masses)
    com = sum((b.mass * np.asarray(b.com) for b in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    I = np.zeros((3, 3))
    for b in parts:
        d = np.asarray(b.com) - com
        I = I + (np.asarray(b.inertia) + b.mass * (d @ d * np.eye(3) - np.outer(d, d)))
    declared, links = any(b.declared for b in parts), tuple(b.name for b in parts)
    return Body(first.name, mass, triple(com), matrix((I + I.T) / 2), declared, links)


def _massless_warnings(
    bodies: Sequence[Body], joints: Sequence[Joint], checks: str, inner: set[str]
) -> list[ReportLine]:
    """Return warnings about massless moving bodies; `inner` are parts of beams, which are massless by design."""
    bare = []
    for b, j in zip(bodies, joints, strict=True):
        where = f'body "{b.name}"'
        if nominal(b.mass) > 0.0 or KINDS[j.kind].name == "modal" or b.name in inner:
            continue  # a node of a flexible body has no mass of its own
        if b.declared and checks == "error" and not has_free(b.mass):
            raise ModelError(
                f'{where} moves on joint "{j.name}" but its mass is {b.mass:g} kg; expected a positive mass. '
                "Give it one, make the joint fixed, or leave its inertia out altogether if it is meant to be massless."
            )
        what = "no inertia given" if not b.declared else f"mass {b.mass:g} kg"
        bare.append(ReportLine(where, f'{what}: massless, moving on joint "{j.name}"', "warning"))
    return part_checks.summarize_lines(bare, "move and are massless. The first")


def _resolve_mimics(joints: Sequence[Joint], known: set[str], checks: str) -> tuple[list[Joint], list[ReportLine]]:
    """Resolve chains of mimic joints to the joint that has the coordinate; `known` includes fixed joints."""
    by_name = {j.name: j for j in joints}
    lines = []
    for j in joints:
        if j.mimic is not None and j.mimic.joint not in by_name:
            lost = unknown("moving joint", j.mimic.joint, by_name)
            if checks == "error" or j.mimic.joint in known:
                raise ModelError(f'joint "{j.name}" mimics: {lost}')
            by_name[j.name] = replace(j, mimic=None)
            lines.append(ReportLine(f'joint "{j.name}"', f"mimic not used, it moves by itself: {lost}", "warning"))
    resolved = [_resolve_mimic(j, by_name) for j in by_name.values()]
    return resolved, part_checks.summarize_lines(lines, "mimic joints that do not exist. The first", "joints")


def _resolve_mimic(j: Joint, by_name: Mapping[str, Joint]) -> Joint:
    """Return the joint with multiplier and offset relative to the joint at the end of its chain of mimics."""
    m = j.mimic
    where, seen = f'joint "{j.name}"', {j.name}
    while m is not None:
        if m.joint in seen:
            raise ModelError(
                f'{where} mimics itself through "{m.joint}"; one joint of the cycle must have its own coordinate.'
            )
        part_checks.check_finite(where, "mimic", [m.multiplier, m.offset])
        master = by_name[m.joint]
        if (KINDS[j.kind].nv != 1 or KINDS[master.kind].nv != 1) and KINDS[j.kind].name != "modal":
            raise ModelError(
                f'{where} ({j.kind}) mimics "{master.name}" ({master.kind}); both must have one coordinate.'
            )
        seen.add(m.joint)
        up = master.mimic
        if up is None:
            break
        m = replace(
            m, joint=up.joint, multiplier=m.multiplier * up.multiplier, offset=m.multiplier * up.offset + m.offset
        )
    return j if m is j.mimic else replace(j, mimic=m)


def _all_frames(frames: Sequence[Frame], places: dict[str, WeldedPose]) -> Iterator[Frame]:
    """Yield a frame for every link, merged or not; then the user's own."""
    user_names = {f.name for f in frames}
    for link, (body, R, p) in places.items():
        if link not in user_names:
            is_unmoved = R is UNMOVED_ROTATION and p is UNMOVED_POINT
            yield Frame(link, body) if is_unmoved else Frame(link, body, matrix(R), triple(p))
    for f in frames:
        body, R, p = places[f.body]
        yield Frame(f.name, body, matrix(R @ np.asarray(f.rotation)), triple(p + R @ np.asarray(f.point)))


# -- finished mechanisms that did not come from `mechanism_of`


def check_consistency(m: Mechanism) -> None:
    """Raise a ModelError unless all numbers of mechanism `m` are finite and parts refer to existing parts, in order."""
    part_checks.check_finite(f'mechanism "{m.name}"', "gravity", m.gravity)
    _check_parts(m.bodies, m.joints, tuple(m.frames.values()), m.ground)  # its notes are in the report already
    for b in m.bodies:
        part_checks.check_mass(b)
    _check_order(m)
    for name, frame in m.frames.items():
        if name != frame.name:
            raise ModelError(f'the frame "{frame.name}" is listed as "{name}"; expected the same name.')
    for modes in m.flexible:
        _check_modes(modes, {m.ground, *(b.name for b in m.bodies)})
    ends = FrameEnds(m.frames, m.frames)
    for _ in (*check_loops(m.loops, ends, m.joints), *check_springs(m.springs, ends)):
        pass  # warnings, which the report of the mechanism already holds


def _check_order(m: Mechanism) -> None:
    """Check that every joint moves its body, after its parent and the joint that it mimics."""
    if len(m.joints) != len(m.bodies):
        raise ModelError(f"there are {len(m.joints)} joints for {len(m.bodies)} bodies; expected one for each.")
    earlier_bodies, own_joints = {m.ground: None}, dict[str, Joint]()
    for joint, body in zip(m.joints, m.bodies, strict=True):
        where = f'joint "{joint.name}"'
        if joint.child != body.name:
            raise ModelError(f'{where}: joins "{joint.parent}" to "{joint.child}"; expected it to move "{body.name}".')
        if joint.parent not in earlier_bodies:
            raise ModelError(f"{where}: {unknown('earlier body', joint.parent, earlier_bodies)}")
        if joint.kind == "fixed":
            raise ModelError(f"{where}: is fixed; expected one that moves, because welded bodies are merged into one.")
        if joint.mimic is None:
            own_joints[joint.name] = joint
        elif joint.mimic.joint not in own_joints:
            raise ModelError(f"{where}: {unknown('joint to follow', joint.mimic.joint, own_joints)}")
        else:
            part_checks.check_finite(where, "mimic", [joint.mimic.multiplier, joint.mimic.offset])
        earlier_bodies[body.name] = None


def _check_modes(modes: Modal, bodies: Collection[str]) -> None:
    where, n = f'flexible body "{modes.body}"', modes.modes
    if modes.body not in bodies:
        raise ModelError(f"{where}: {unknown('body', modes.body, bodies)}")
    if len(modes.damping) != n:
        raise ModelError(
            f"{where}: {n} stiffnesses and {len(modes.damping)} damping coefficients; expected equal numbers."
        )
    shapes = {"A": (n, 3), "B": (n, 3, 3), "D": (n, n, 3, 3), "E": (n, n, 3), "F": (n, n, 3, 3)}
    for letter, shape in shapes.items():
        part_checks.check_finite(where, letter, getattr(modes, letter))
        if (actual_shape := np.shape(getattr(modes, letter))) != shape:
            raise ModelError(f"{where}: {letter} has the shape {actual_shape}; expected {shape} for {n} modes.")
