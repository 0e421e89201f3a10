"""Checks of loops and springs: their ends exist and can move relative to each other, and no two contradict each other.

Equations that are contradictory only in combination with others are found with the equations themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.model import check
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import COUPLINGS, EQUATIONS, Array, Frame, Joint, Line, Loop, Spring
from bellcrank.parameters import nominal

TURNING = ("revolute", "helical")
JOINED = ("combination", "cam")  # also between coordinates, but not a ratio of two
# Two ends whose positions agree to within this (metres, or cosines) are one end.
SAME_LAW = 1e-9


Place = tuple[str, Array]


@dataclass(frozen=True)
class Ends:
    """Frames as given, and on the merged bodies of welded parts."""

    given: Mapping[str, Frame]
    found: Mapping[str, Frame]

    def check(self, where: str, verb: str, a: str, b: str) -> None:
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
            if end not in self.found:
                raise ModelError(f"{where}: {unknown('frame', end, self.found)}")
        first, second = (self.given.get(end, self.found[end]).body for end in (a, b))
        if first == second:
            raise ModelError(f'{where}: {verb} "{first}" to itself; its two ends must be on different bodies.')
        if self.found[a].body == self.found[b].body:
            raise ModelError(
                f'{where}: {verb} "{first}" to "{second}", but fixed joints make them one rigid body '
                f'("{self.found[a].body}") already. Leave it out, or let one of the fixed joints move.'
            )

    def place(self, end: str) -> tuple[str, Array]:
        """Return the body of frame `end` and its pose there: three rows of rotation, and the point."""
        f = nominal(self.found[end])
        return f.body, np.array([*f.rotation, f.point], dtype=float)


def check_loops(loops: Sequence[Loop], ends: Ends, joints: Sequence[Joint]) -> Iterator[Line]:
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
    check.names("joint or loop", [*by_name, *(loop.name for loop in loops)])
    for loop in loops:
        where = f'loop "{loop.name}"'
        if loop.kind not in EQUATIONS:
            raise ModelError(f"{where}: {unknown('loop type', loop.kind, EQUATIONS)}")
        for what in ("value", "offset"):
            check.finite(where, what, getattr(loop, what))
        if loop.kind in COUPLINGS:
            _coupling(where, loop, by_name)
        elif loop.kind in JOINED:
            _joined(where, loop, by_name)
        else:
            ends.check(where, "joins", loop.a, loop.b)
        if loop.kind == "distance" and not nominal(loop.value) > 0.0:
            raise ModelError(
                f"{where}: distance is {nominal(loop.value):g} m; expected a positive distance. "
                "To make the points coincide, use a spherical joint."
            )
    yield from _twice(loops, ends)
    yield from _couplings_twice(loops, by_name)


def check_springs(springs: Sequence[Spring], ends: Ends) -> Iterator[Line]:
    """Raise a ModelError for invalid `springs` between the frames `ends`; yield warnings about suspicious ones."""
    check.names("spring", [s.name for s in springs])
    for s in springs:
        where = f'spring "{s.name}"'
        ends.check(where, "ties", s.a, s.b)
        for what in ("stiffness", "length", "damping"):
            check.finite(where, what, getattr(s, what))
        for what in ("length", "damping"):
            if nominal(getattr(s, what)) < 0.0:
                raise ModelError(f"{where}: {what} is {nominal(getattr(s, what)):g}; expected zero or more.")
        if nominal(s.stiffness) < 0.0:
            yield Line(where, f"stiffness {s.stiffness:g} is negative: it pushes away from its rest length", "warning")
        if isinstance(s.stiffness, float) and isinstance(s.damping, float) and s.stiffness == s.damping == 0.0:
            yield Line(where, "has neither stiffness nor damping: it does nothing", "warning")


def _joined(where: str, loop: Loop, joints: Mapping[str, Joint]) -> None:
    """Check that a combination or cam couples different existing joints with one coordinate each."""
    for name in loop.joints:
        if name not in joints:
            raise ModelError(f"{where} couples: {unknown('moving joint', name, joints)}")
        if KINDS[joints[name].kind].nv != 1:
            raise ModelError(
                f'{where}: joint "{name}" is {joints[name].kind}; a {loop.kind} takes joints with one '
                "coordinate each (revolute, prismatic or helical)."
            )
    if len(set(loop.joints)) != len(loop.joints) or len(loop.joints) < 2:
        raise ModelError(f"{where}: joints is {list(loop.joints)}; expected two or more different names.")
    if loop.kind == "combination" and (
        len(loop.weights) != len(loop.joints) or any(nominal(w) == 0.0 for w in loop.weights)
    ):
        raise ModelError(
            f"{where}: weights is {list(loop.weights)}; expected a number for each of {list(loop.joints)}, none zero."
        )


def _coupling(where: str, loop: Loop, joints: Mapping[str, Joint]) -> None:
    if len(loop.joints) != 2:
        raise ModelError(f"{where}: a {loop.kind} couples two joints; got {list(loop.joints)}.")
    for name in loop.joints:
        if name not in joints:
            raise ModelError(f"{where} couples: {unknown('moving joint', name, joints)}")
        kind = joints[name].kind
        if KINDS[kind].nv != 1:
            raise ModelError(
                f'{where}: joint "{name}" is {kind} and has {KINDS[kind].nv} coordinates; a {loop.kind} couples joints '
                "with one each (revolute, prismatic or helical)."
            )
    if loop.joints[0] == loop.joints[1]:
        raise ModelError(f'{where}: couples "{loop.joints[0]}" to itself; name two joints.')
    if nominal(loop.value) == 0.0:
        raise ModelError(
            f'{where}: the ratio is 0: "{loop.joints[1]}" could not move. Make it a fixed joint if that is meant.'
        )
    first, second = (joints[name].kind in TURNING for name in loop.joints)
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


def _twice(loops: Sequence[Loop], ends: Ends) -> Iterator[Line]:
    """Yield warnings about loops of the same kind at the same place."""
    by_bodies: dict[tuple[str, frozenset[str]], list[tuple[Loop, Place, Place]]] = {}
    for loop in loops:
        if loop.kind in COUPLINGS or loop.kind in JOINED:
            continue
        a, b = ends.place(loop.a), ends.place(loop.b)
        earlier = by_bodies.setdefault((loop.kind, frozenset((a[0], b[0]))), [])
        turned = loop.kind in ("universal", "point_on_line")  # types whose two ends differ
        for other, c, d in earlier:
            if (_alike(a, c) and _alike(b, d)) or (not turned and _alike(a, d) and _alike(b, c)):
                yield from _said(loop, other, nominal((loop.value,)), nominal((other.value,)))
                break
        else:  # one loop of each kind is enough for comparison
            earlier.append((loop, a, b))


def _alike(one: Place, other: Place) -> bool:
    """Return whether two places are the same."""
    return one[0] == other[0] and bool(np.abs(one[1] - other[1]).max() <= SAME_LAW)


def _couplings_twice(loops: Sequence[Loop], joints: Mapping[str, Joint]) -> Iterator[Line]:
    """Yield warnings about gears, racks and mimics between the same two joints."""
    known: dict[tuple[str, str], tuple[str, tuple[float, float]]] = {}
    mimics = [
        Loop(f"mimic of {j.name}", "gear", "", "", m.multiplier, m.offset, (m.joint, j.name))
        for j in joints.values()
        if (m := j.mimic) is not None and nominal(m.multiplier) != 0.0
    ]
    for loop in [*mimics, *(loop for loop in loops if loop.kind in COUPLINGS)]:
        (first, second), (k, c) = loop.joints, nominal((loop.value, loop.offset))
        pair, law = ((first, second), (k, c)) if first < second else ((second, first), (1.0 / k, -c / k))
        if pair in known:
            other, before = known[pair]
            yield from _said(loop, Loop(other, loop.kind), law, before)
        known.setdefault(pair, (loop.name, law))


def _said(loop: Loop, other: Loop, law: Sequence[float], before: Sequence[float]) -> Iterator[Line]:
    if not np.allclose(law, before, rtol=SAME_LAW, atol=SAME_LAW):
        raise ModelError(
            f'loop "{loop.name}" contradicts "{other.name}": between the same two ends one requires {_shown(law)} and '
            f"the other {_shown(before)}. Remove one of them."
        )
    yield Line(f'loop "{loop.name}"', f'equals "{other.name}": redundant', "warning")


def _shown(law: Sequence[float]) -> str:
    return f"{law[0]:g}" if len(law) == 1 else f"ratio {law[0]:g} and offset {law[1]:g}"
