"""Load hoisting: inputs are read well before their first use to hide memory latency of about a thousand cycles.

Where register pressure is low anyway, early in a sweep, one more live value costs nothing. So the first read of every
input moves up by as many units as possible without raising the maximum number of live values.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cuda.few import live
from bellcrank.emit.cuda.units import Unit

DISTANCE = 300  # units by which a read is hoisted at most


def ahead(sequence: Sequence[Unit], distance: int = DISTANCE) -> list[Unit]:
    """Return `sequence` with one additional unit for each input, which reads it up to `distance` units early."""
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
