"""An order of computation in which few values wait: a GPU thread has 255 registers of 32 bits, and no more.

Creation order sweeps over all bodies before it comes back, so whole limbs wait for their turn. Here an element of an
input (a joint) is opened only when nothing is left to do with those that are open: a limb is swept out, swept back and
eliminated before the next one is touched. Then every value is computed as late as possible where that frees nothing,
and as early as possible where it frees two. Creation order is the other candidate; the one with fewer live values wins.
A graph that calls others, a step of an integrator, has its own order: there, all that waits does so while they run.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate

from bellcrank.emit.cuda.settling import settled
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.graph import Graph


def order(units: Units) -> list[Unit]:
    """All units, arguments first, with few values alive at any time."""
    if units.graph.calls:
        found = [eager(units), settled(eager(units))]
    else:
        found = [settled(sequence) for sequence in (units.all, opened(units))]
    return min(found, key=lambda sequence: (max(live(sequence), default=0), sum(live(sequence))))


def predicted(graph: Graph) -> int:
    """The most values that are alive at once."""
    return max(live(order(Units(graph))), default=0)


def live(sequence: Sequence[Unit]) -> list[int]:
    """How many values are alive behind each unit. An input is alive from its first use to its last."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, unit in enumerate(sequence):
        for serial in unit.reads:
            if serial not in first:
                first[serial] = i
            last[serial] = i
        for serial in unit.makes:
            first[serial] = i
    change = [0] * (len(sequence) + 1)
    for serial, end in last.items():
        change[first[serial]] += 1
        change[end] -= 1
    return list(accumulate(change[:-1]))


def opened(units: Units) -> list[Unit]:
    """Units that need no further element of the inputs first; elements of one place in q, v and tau belong together."""
    makes = {n.serial: unit for unit in units.all for n in unit.defines}
    joints: dict[int, int] = {}  # a bit for each place of the inputs that a unit rests on
    missing: dict[int, int] = {}
    users: dict[int, list[Unit]] = {}
    for unit in units.all:
        bits = 0
        before = {makes[n.serial].serial: makes[n.serial] for n in unit.uses if n.op != "input"}
        for n in unit.uses:
            bits |= 1 << n.args[1] if n.op == "input" else joints[makes[n.serial].serial]
        joints[unit.serial], missing[unit.serial] = bits, len(before)
        for serial in before:
            users.setdefault(serial, []).append(unit)

    open_now, result = 0, []
    queue = [(joints[u.serial].bit_count(), u.serial, u) for u in units.all if not missing[u.serial]]
    heapq.heapify(queue)
    while queue:
        cost, serial, unit = heapq.heappop(queue)
        now = (joints[serial] & ~open_now).bit_count()
        if now < cost:  # others were opened since it was queued: it may be cheaper than its neighbours by now
            heapq.heappush(queue, (now, serial, unit))
            continue
        open_now |= joints[serial]
        result.append(unit)
        for user in users.get(serial, ()):
            missing[user.serial] -= 1
            if not missing[user.serial]:
                heapq.heappush(queue, ((joints[user.serial] & ~open_now).bit_count(), user.serial, user))
        if cost:  # the costs of all that waits have changed
            queue = [((joints[s] & ~open_now).bit_count(), s, u) for _, s, u in queue]
            heapq.heapify(queue)
    return result


def eager(units: Units) -> list[Unit]:
    """Everything as soon as the calls that it rests on are done: a sum over stages grows, and the stages can go."""
    after: dict[int, int] = {}
    for unit in units.all:
        called = unit.defines[0].op == "call"
        before = max((after[n.serial] for n in unit.uses if n.op != "input"), default=0)
        after.update({n.serial: before + called for n in unit.defines})
    return sorted(units.all, key=lambda unit: (after[unit.serial] - 0.5 * (unit.defines[0].op == "call"), unit.serial))
