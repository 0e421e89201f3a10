"""Inputs are read well before they are needed: a thread that waits for memory waits for a thousand arithmetic cycles.

Where values are few anyway, early in a sweep, a register more costs nothing. So every first reading moves up by as many
units as it can without raising the most values that are ever alive at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cuda.few import live
from bellcrank.emit.cuda.units import Unit

DISTANCE = 300  # units ahead


def ahead(sequence: Sequence[Unit], distance: int = DISTANCE) -> list[Unit]:
    """The same units with one more for each input, which reads it."""
    counts = live(sequence)
    most = max(counts, default=0)
    first = {}
    for i, unit in enumerate(sequence):
        for n in unit.uses:
            if n.op == "input" and n.serial not in first:
                first[n.serial] = i, n
    places: dict[int, list[Unit]] = {}
    for i, node in first.values():
        at = i
        while at > max(0, i - distance) and counts[at - 1] < most - 1:
            at -= 1
            counts[at] += 1
        places.setdefault(at, []).append(Unit((node,), ()))
    result: list[Unit] = []
    for i, unit in enumerate(sequence):
        result += [*places.get(i, []), unit]
    return result
