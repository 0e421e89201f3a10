"""From loose parts to a Mechanism: check them, connect them to the ground, merge welded bodies, put them in order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bellcrank.errors import ModelError, brief, unknown
from bellcrank.model import check
from bellcrank.model.energy import Turning, check_energy, in_a_plane, turning
from bellcrank.model.joints import KINDS
from bellcrank.model.loops import Ends, check_loops, check_springs
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.modal import Modal
from bellcrank.model.outline import Outline
from bellcrank.model.parts import Array, Body, Frame, Joint, Line, Loop, Report, Spring, matrix, straight, triple
from bellcrank.parameters import Parameters, depends, nominal

Place = tuple[str, Array, Array]  # body, rotation and point in the body's frame
EYE, ZERO = np.eye(3), np.zeros(3)  # identical objects mark bodies that no weld has moved


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
    lines: Sequence[Line] = (),
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
    check.level(checks)
    if len(tuple(gravity)) != 3 or any(_several(g) for g in gravity):
        raise ModelError(f'mechanism "{name}": gravity is {brief(gravity)}; expected three numbers.')
    check.finite(
        f'mechanism "{name}"', "gravity", gravity
    )  # after the check of the length, because a list may contain itself
    found = [*lines, *_checked(bodies, joints, frames, ground)]
    welded = _Welded(bodies, ground)
    for j in _in_order(joints, ground, [b.name for b in bodies]):
        welded.add(j)
    found += [*welded.lines, *_doubts(bodies, welded, checks)]
    final = [_merged(welded.lumped[j.child]) for j in welded.moving]
    for b in final:
        check.mass(b)
    inner = {name for outline in outlines for name in outline.bodies}
    found += _massless(final, welded.moving, checks, inner)
    moving, said = _coupled(welded.moving, {j.name for j in joints}, checks)
    found += said
    placed = {f.name: f for f in _frames(frames, welded.places)}
    ends = Ends({f.name: f for f in frames} | {b: Frame(b, b) for b in welded.places}, placed)
    found += check_loops(loops, ends, moving)
    found += check_springs(springs, ends)
    made = Mechanism(
        name=name,
        ground=ground,
        gravity=triple(gravity),
        bodies=tuple(final),
        joints=tuple(moving),
        frames=placed,
        loops=tuple(loops),
        springs=tuple(springs),
        flexible=tuple(body.seen_from(*welded.places[body.body]) for body in flexible),
        outlines=tuple(outline.seen_from(welded.places) for outline in outlines),
    )
    found += check_energy(made)
    given = Parameters(gravity, bodies, joints, frames, loops, springs)
    idle = [parameter for parameter in given if parameter not in made.parameters]
    found += [Line(f'parameter "{parameter}"', "moves nothing and is not used", "warning") for parameter in idle]
    reported = replace(made, report=Report(source, tuple(found)))
    vars(reported)["parameters"] = made.parameters  # the parts are equal, so their parameters are not searched again
    return reported


def _several(x: object) -> bool:
    """Return whether x is not a single number.

    numpy is not applied to lists: one that contains itself is too deep for it.
    """
    return bool(x.ndim) if isinstance(x, np.ndarray) else isinstance(x, Collection)


def _checked(bodies: Sequence[Body], joints: Sequence[Joint], frames: Sequence[Frame], ground: str) -> list[Line]:
    """Raise a ModelError for invalid names and numbers; return the other report lines of the joints."""
    known = dict.fromkeys([ground, *(b.name for b in bodies)])
    check.names("body", [ground, *(b.name for b in bodies)])
    check.names("joint", [j.name for j in joints])
    check.names("frame", [f.name for f in frames])
    for b in bodies:
        check.numbers(b)
    found = [line for j in joints for line in check.joint(j, known)]
    for f in frames:
        check.frame(f, known)
    return found


class _Welded:
    """The mechanism without fixed joints: joints that move, and the merged bodies."""

    def __init__(self, bodies: Sequence[Body], ground: str) -> None:
        self.ground = ground
        self.bodies = {b.name: b for b in bodies}
        self.places: dict[str, Place] = {ground: (ground, EYE, ZERO)}
        self.lumped = {b.name: [b] for b in bodies}
        self.moving: list[Joint] = []
        self.lines: list[Line] = []

    def add(self, j: Joint) -> None:
        """Add the next joint; the joint of its parent must have been added before."""
        body, R, p = self.places[j.parent]
        if R is EYE and p is ZERO and j.kind != "fixed":  # the usual case: on a body that no weld has moved
            rotation, point = [[x + 0.0 for x in row] for row in j.rotation], [x + 0.0 for x in j.point]  # no -0.0
            self._move(replace(straight(j), parent=body, rotation=matrix(rotation), point=triple(point)))
            return
        R, p = R @ np.asarray(j.rotation), p + R @ np.asarray(j.point)
        if j.kind == "fixed":
            self._weld(j, (body, R, p))
            return
        self._move(replace(straight(j), parent=body, rotation=matrix(R), point=triple(p)))

    def _move(self, j: Joint) -> None:
        self.places[j.child] = (j.child, EYE, ZERO)
        self.moving.append(j)

    def _weld(self, j: Joint, place: Place) -> None:
        body, R, p = self.places[j.child] = place
        link = self.bodies[j.child]
        what, level = f'fixed: "{j.child}" is part of "{body}" and stays as a frame', "ok"
        if body != self.ground:
            moved = replace(link, com=triple(p + R @ link.com), inertia=matrix(R @ link.inertia @ R.T))
            self.lumped[body].append(moved)
        elif link.mass:
            what, level = f"{what}; its {link.mass:g} kg do not move and are not used", "note"
        self.lines.append(Line(f'joint "{j.name}"', what, level))


def _in_order(joints: Sequence[Joint], ground: str, bodies: Sequence[str]) -> list[Joint]:
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


def _doubts(bodies: Sequence[Body], welded: _Welded, checks: str) -> list[Line]:
    """Return warnings about physically impossible inertias; raise a ModelError where `checks` is "error"."""
    turns = turning(welded.moving, welded.ground)
    fine: set[tuple[object, ...]] = set()  # keys of valid bodies, which identical bodies share
    found = []
    for b in bodies:
        body, R, _ = welded.places[b.name]
        key = b.mass, b.inertia, R.tobytes(), id(turns[body])
        if key not in fine:
            found.append(_doubt(b, welded.places[b.name], turns))
            if found[-1] is None:
                fine.add(key)
    for doubt in found if checks == "error" else []:
        check.refuse(doubt)
    return check.doubts([doubt for doubt in found if doubt is not None])


def _doubt(b: Body, place: Place, turns: Mapping[str, Turning]) -> check.Doubt | None:
    body, R, _ = place
    return check.doubt(b, in_a_plane(np.asarray(nominal(b.inertia), dtype=float), turns[body] @ nominal(R)))


def _merged(parts: Sequence[Body]) -> Body:
    """Return one body made of several welded ones."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, links=(first.name,))
    masses = [b.mass for b in parts]
    mass = sum(masses) if depends(masses) else math.fsum(masses)
    com = sum((b.mass * np.asarray(b.com) for b in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    I = np.zeros((3, 3))
    for b in parts:
        d = np.asarray(b.com) - com
        I = I + (np.asarray(b.inertia) + b.mass * (d @ d * np.eye(3) - np.outer(d, d)))
    return Body(
        first.name,
        mass,
        triple(com),
        matrix((I + I.T) / 2),
        any(b.declared for b in parts),
        tuple(b.name for b in parts),
    )


def _massless(bodies: Sequence[Body], joints: Sequence[Joint], checks: str, inner: set[str]) -> list[Line]:
    """Return warnings about massless moving bodies; `inner` are parts of beams, which are massless by design."""
    bare = []
    for b, j in zip(bodies, joints, strict=True):
        where = f'body "{b.name}"'
        if nominal(b.mass) > 0.0 or KINDS[j.kind].name == "modal" or b.name in inner:
            continue  # a node of a flexible body has no mass of its own
        if b.declared and checks == "error" and not depends(b.mass):
            raise ModelError(
                f'{where} moves on joint "{j.name}" but its mass is {b.mass:g} kg; expected a positive mass. '
                "Give it one, make the joint fixed, or leave its inertia out altogether if it is meant to be massless."
            )
        what = "no inertia given" if not b.declared else f"mass {b.mass:g} kg"
        bare.append(Line(where, f'{what}: massless, moving on joint "{j.name}"', "warning"))
    return check.gathered(bare, "move and are massless. The first")


def _coupled(joints: Sequence[Joint], known: set[str], checks: str) -> tuple[list[Joint], list[Line]]:
    """Resolve chains of mimic joints to the joint that has the coordinate; `known` includes fixed joints."""
    by_name = {j.name: j for j in joints}
    lines = []
    for j in joints:
        if j.mimic is not None and j.mimic.joint not in by_name:
            lost = unknown("moving joint", j.mimic.joint, by_name)
            if checks == "error" or j.mimic.joint in known:
                raise ModelError(f'joint "{j.name}" mimics: {lost}')
            by_name[j.name] = replace(j, mimic=None)
            lines.append(Line(f'joint "{j.name}"', f"mimic not used, it moves by itself: {lost}", "warning"))
    resolved = [_resolved(j, by_name) for j in by_name.values()]
    return resolved, check.gathered(lines, "mimic joints that do not exist. The first", "joints")


def _resolved(j: Joint, by_name: Mapping[str, Joint]) -> Joint:
    """Return the joint with multiplier and offset relative to the joint at the end of its chain of mimics."""
    m = j.mimic
    where, seen = f'joint "{j.name}"', {j.name}
    while m is not None:
        if m.joint in seen:
            raise ModelError(
                f'{where} mimics itself through "{m.joint}"; one joint of the cycle must have its own coordinate.'
            )
        check.finite(where, "mimic", [m.multiplier, m.offset])
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


def _frames(frames: Sequence[Frame], places: dict[str, Place]) -> Iterator[Frame]:
    """Yield a frame for every link, merged or not; then the user's own."""
    taken = {f.name for f in frames}
    for link, (body, R, p) in places.items():
        if link not in taken:
            yield Frame(link, body) if R is EYE and p is ZERO else Frame(link, body, matrix(R), triple(p))
    for f in frames:
        body, R, p = places[f.body]
        yield Frame(f.name, body, matrix(R @ np.asarray(f.rotation)), triple(p + R @ np.asarray(f.point)))
