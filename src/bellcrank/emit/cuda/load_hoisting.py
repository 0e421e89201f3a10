"""Load hoisting: inputs are read well before their first use to hide memory latency of about a thousand cycles.

Where register pressure is low anyway, early in a sweep, one more live value costs nothing. So the first read of every
input moves up by as many units as possible without raising the maximum number of live values.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cuda.register_pressure import live_counts
from bellcrank.emit.cuda.units import Unit

HOIST_DISTANCE_UNITS = 300  # units by which a read is hoisted at most


def hoist_loads(sequence: Sequence[Unit], distance: int = HOIST_DISTANCE_UNITS) -> list[Unit]:
    """Return `sequence` with one additional unit for each input, which reads it up to `distance` units early."""
    counts = live_counts(sequence)
    most = max(counts, default=0)
    first = {}
    for i, unit in enumerate(sequence):
        for n in unit.uses:
            if n.op == "input" and n.serial not in first:
                first[n.serial] = i, n
    hoisted: dict[int, list[Unit]] = {}
    for i, node in first.values():
        position = i
        while position > max(0, i - distance) and counts[position - 1] < most - 1:
            position -= 1
            counts[position] += 1
        hoisted.setdefault(position, []).append(Unit((node,), ()))
    result: list[Unit] = []
    for i, unit in enumerate(sequence):
        result += [*hoisted.get(i, []), unit]
    return result
