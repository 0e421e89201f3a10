"""Checks of loops and springs: their ends exist and can move relative to each other, and no two contradict each other.

Equations that are contradictory only in combination with others are found with the equations themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.model import part_checks
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import COUPLINGS, EQUATIONS, Array, Frame, Joint, Loop, ReportLine, Spring
from bellcrank.parameters import nominal

TURNING_JOINTS = ("revolute", "helical")
RELATIONS = ("combination", "cam")  # also between coordinates, but not a ratio of two
# Two ends whose positions agree to within this (metres, or cosines) are one end.
SAME_END_TOLERANCE = 1e-9


EndPose = tuple[str, Array]


@dataclass(frozen=True)
class FrameEnds:
    """Frames as given, and on the merged bodies of welded parts."""

    given_frames: Mapping[str, Frame]
    merged_frames: Mapping[str, Frame]

    def check_ends(self, where: str, verb: str, a: str, b: str) -> None:
        """Raise a ModelError unless two frames exist and are on bodies that can move relative to each other.

        Parameters
        ----------
        where
            The element, for the message.
        verb
            Its action, for the message.
        a, b
            Names of the frames.
        """
        for end in (a, b):
            if end not in self.merged_frames:
                raise ModelError(f"{where}: {unknown('frame', end, self.merged_frames)}")
        first, second = (self.given_frames.get(end, self.merged_frames[end]).body for end in (a, b))
        if first == second:
            raise ModelError(f'{where}: {verb} "{first}" to itself; its two ends must be on different bodies.')
        if self.merged_frames[a].body == self.merged_frames[b].body:
            raise ModelError(
                f'{where}: {verb} "{first}" to "{second}", but fixed joints make them one rigid body '
                f'("{self.merged_frames[a].body}") already. Leave it out, or let one of the fixed joints move.'
            )

    def end_pose(self, end: str) -> tuple[str, Array]:
        """Return the body of frame `end` and its pose there: three rows of rotation, and the point."""
        f = nominal(self.merged_frames[end])
        return f.body, np.array([*f.rotation, f.point], dtype=float)


def check_loops(loops: Sequence[Loop], ends: FrameEnds, joints: Sequence[Joint]) -> Iterator[ReportLine]:
    """Raise a ModelError for invalid loops; yield warnings about redundant ones.

    Parameters
    ----------
    loops
        The loops.
    ends
        The frames.
    joints
        The joints that move.
    """
    by_name = {j.name: j for j in joints}
    part_checks.check_names("joint or loop", [*by_name, *(loop.name for loop in loops)])
    for loop in loops:
        where = f'loop "{loop.name}"'
        if loop.kind not in EQUATIONS:
            raise ModelError(f"{where}: {unknown('loop type', loop.kind, EQUATIONS)}")
        for what in ("value", "offset", "weights"):
            part_checks.check_finite(where, what, getattr(loop, what))
        if loop.kind in (*COUPLINGS, *RELATIONS):
            _check_joints(where, loop, by_name)
        else:
            ends.check_ends(where, "joins", loop.a, loop.b)
        if loop.kind == "distance" and not nominal(loop.value) > 0.0:
            raise ModelError(
                f"{where}: distance is {nominal(loop.value):g} m; expected a positive distance. "
                "To make the points coincide, use a spherical joint."
            )
    yield from _duplicate_loops(loops, ends)
    yield from _duplicate_couplings(loops, by_name)


def check_springs(springs: Sequence[Spring], ends: FrameEnds) -> Iterator[ReportLine]:
    """Raise a ModelError for invalid `springs` between the frames `ends`; yield warnings about suspicious ones."""
    part_checks.check_names("spring", [s.name for s in springs])
    for s in springs:
        where = f'spring "{s.name}"'
        ends.check_ends(where, "ties", s.a, s.b)
        for what in ("stiffness", "length", "damping"):
            part_checks.check_finite(where, what, getattr(s, what))
        part_checks.check_not_negative(where, nominal(s))
        if nominal(s.stiffness) < 0.0:
            yield ReportLine(
                where, f"stiffness {s.stiffness:g} is negative: it pushes away from its rest length", "warning"
            )
        if isinstance(s.stiffness, float) and isinstance(s.damping, float) and s.stiffness == s.damping == 0.0:
            yield ReportLine(where, "has neither stiffness nor damping: it does nothing", "warning")


def _check_joints(where: str, loop: Loop, joints: Mapping[str, Joint]) -> None:
    """Check that a loop couples different existing joints with one coordinate each."""
    for name in loop.joints:
        if name not in joints:
            raise ModelError(f"{where} couples: {unknown('moving joint', name, joints)}")
        kind = joints[name].kind
        if KINDS[kind].nv != 1:
            raise ModelError(
                f'{where}: joint "{name}" is {kind} and has {KINDS[kind].nv} coordinates; a {loop.kind} couples joints '
                "with one each (revolute, prismatic or helical)."
            )
    count, expected = len(loop.joints), "two" if loop.kind in COUPLINGS else "two or more"
    if len(set(loop.joints)) != count or count < 2 or (loop.kind in COUPLINGS and count > 2):
        raise ModelError(f"{where}: joints is {list(loop.joints)}; expected {expected} different names.")
    if loop.kind == "combination" and (len(loop.weights) != count or any(nominal(w) == 0.0 for w in loop.weights)):
        raise ModelError(
            f"{where}: weights is {list(loop.weights)}; expected a number for each of {list(loop.joints)}, none zero."
        )


def check_couplings(loops: Sequence[Loop], joints: Sequence[Joint]) -> None:
    """Raise a ModelError for a gear or rack among `loops` between types of `joints` that it does not couple.

    Mechanisms of records may have them: their equation is well defined, and a record must not be lost.
    """
    kinds = {j.name: j for j in joints}
    for loop in loops:
        if loop.kind in COUPLINGS:
            _check_coupling(f'loop "{loop.name}"', loop, kinds)


def _check_coupling(where: str, loop: Loop, joints: Mapping[str, Joint]) -> None:
    if nominal(loop.value) == 0.0:
        raise ModelError(
            f'{where}: the ratio is 0: "{loop.joints[1]}" could not move. Make it a fixed joint if that is meant.'
        )
    first, second = (joints[name].kind in TURNING_JOINTS for name in loop.joints)
    if loop.kind == "rack" and not (first and not second):
        raise ModelError(
            f"{where}: a rack couples a joint that turns and one that slides, in this order; got "
            f"{', '.join(f'{name} ({joints[name].kind})' for name in loop.joints)}."
        )
    if loop.kind == "gear" and first != second:
        raise ModelError(
            f'{where}: a gear couples two joints that turn, or two that slide; between one of each it is a "rack", '
            "with the one that turns first."
        )


def _duplicate_loops(loops: Sequence[Loop], ends: FrameEnds) -> Iterator[ReportLine]:
    """Yield warnings about loops of the same kind at the same place."""
    by_bodies: dict[tuple[str, frozenset[str]], list[tuple[Loop, EndPose, EndPose]]] = {}
    for loop in loops:
        if loop.kind in COUPLINGS or loop.kind in RELATIONS:
            continue
        a, b = ends.end_pose(loop.a), ends.end_pose(loop.b)
        earlier = by_bodies.setdefault((loop.kind, frozenset((a[0], b[0]))), [])
        has_distinct_ends = loop.kind in ("universal", "point_on_line")  # types whose two ends differ
        for other, c, d in earlier:
            if (_same_end(a, c) and _same_end(b, d)) or (not has_distinct_ends and _same_end(a, d) and _same_end(b, c)):
                yield from _report_duplicate(loop, other, nominal((loop.value,)), nominal((other.value,)))
                break
        else:  # one loop of each kind is enough for comparison
            earlier.append((loop, a, b))


def _same_end(one: EndPose, other: EndPose) -> bool:
    """Return whether two places are the same."""
    return one[0] == other[0] and bool(np.abs(one[1] - other[1]).max() <= SAME_END_TOLERANCE)


def _duplicate_couplings(loops: Sequence[Loop], joints: Mapping[str, Joint]) -> Iterator[ReportLine]:
    """Yield warnings about gears, racks and mimics between the same two joints."""
    known_laws: dict[tuple[str, str], tuple[str, tuple[float, float]]] = {}
    mimics = [
        Loop(f"mimic of {j.name}", "gear", "", "", m.multiplier, m.offset, (m.joint, j.name))
        for j in joints.values()
        if (m := j.mimic) is not None and nominal(m.multiplier) != 0.0
    ]
    for loop in [*mimics, *(loop for loop in loops if loop.kind in COUPLINGS)]:
        (first, second), (k, c) = loop.joints, nominal((loop.value, loop.offset))
        pair, law = ((first, second), (k, c)) if first < second else ((second, first), (1.0 / k, -c / k))
        if pair in known_laws:
            other, earlier_law = known_laws[pair]
            yield from _report_duplicate(loop, Loop(other, loop.kind), law, earlier_law)
        known_laws.setdefault(pair, (loop.name, law))


def _report_duplicate(
    loop: Loop, other: Loop, law: Sequence[float], earlier_law: Sequence[float]
) -> Iterator[ReportLine]:
    if not np.allclose(law, earlier_law, rtol=SAME_END_TOLERANCE, atol=SAME_END_TOLERANCE):
        raise ModelError(
            f'loop "{loop.name}" contradicts "{other.name}": between the same two ends one requires {_law_text(law)} '
            f"and the other {_law_text(earlier_law)}. Remove one of them."
        )
    yield ReportLine(f'loop "{loop.name}"', f'equals "{other.name}": redundant', "warning")


def _law_text(law: Sequence[float]) -> str:
    return f"{law[0]:g}" if len(law) == 1 else f"ratio {law[0]:g} and offset {law[1]:g}"
