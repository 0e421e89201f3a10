"""What waits in shared memory: where more values are alive than registers can hold, those that are needed last leave.

The rule is Belady's (IBM Systems Journal 5, 1966): of all values in registers, park the one whose next use is furthest
away. A parked value has a slot in shared memory, one word for each thread of the block, and is fetched before that use.
An input is never parked: it is dropped, and read again from where it came. So is what another member of a team made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bellcrank.emit.cuda.units import Unit
from bellcrank.graph import Node


@dataclass(frozen=True)
class Step:
    """One thing to do: compute a unit, park a node in a slot, fetch it from there, or drop an input."""

    what: str
    unit: Unit | None = None
    node: Node | None = None
    slot: int = 0


@dataclass(frozen=True)
class Parking:
    steps: Sequence[Step]
    slots: int
    most: int  # values in registers at once


def parked(sequence: Sequence[Unit], room: int, elsewhere: Collection[int] = ()) -> Parking:
    """The same units with values parked so that at most `room` are in registers (and what one unit needs at once).

    elsewhere: values that can be read again, as inputs can.
    """
    uses: dict[int, list[int]] = {}
    for i, unit in enumerate(sequence):
        for n in unit.uses:
            uses.setdefault(n.serial, []).append(i)
    steps: list[Step] = []
    held: dict[int, Node] = {}
    slots: dict[int, int] = {}
    free: list[int] = []
    count = most = 0

    def next_use(serial: int, i: int) -> int:
        later = uses.get(serial, ())
        k = bisect_right(later, i)
        return later[k] if k < len(later) else -1

    def make_room(i: int, wanted: int, keep: set[int]) -> None:
        nonlocal count
        while len(held) + wanted > room:
            candidates = [s for s in held if s not in keep]
            if not candidates:
                return
            serial = max(candidates, key=lambda s: (next_use(s, i - 1), s))
            node = held.pop(serial)
            if node.op == "input" or serial in elsewhere:
                steps.append(Step("drop", node=node))
            elif serial not in slots:
                if not free:
                    free.append(count)
                    count += 1
                slots[serial] = free.pop()
                steps.append(Step("park", node=node, slot=slots[serial]))
            else:
                steps.append(Step("drop", node=node))

    for i, unit in enumerate(sequence):
        needed = {n.serial: n for n in unit.uses}
        for serial, n in needed.items():
            if serial not in held:
                make_room(i, 1, set(needed))
                if n.op != "input" and serial not in elsewhere:
                    steps.append(Step("fetch", node=n, slot=slots[serial]))
                held[serial] = n
        for serial in needed:
            if next_use(serial, i) < 0:
                del held[serial]
                if serial in slots:
                    free.append(slots.pop(serial))
        wanted = [n for n in unit.defines if n.serial in uses]
        make_room(i, len(wanted), {s for s in needed if s in held})
        steps.append(Step("compute", unit))
        held.update({n.serial: n for n in wanted})
        most = max(most, len(held))
    return Parking(steps, count, most)
