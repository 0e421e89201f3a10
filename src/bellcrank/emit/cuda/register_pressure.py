"""Schedules with low register pressure: a GPU thread has at most 255 registers of 32 bits.

Creation order sweeps over all bodies before it returns, so values of whole branches stay live. Here an element of an
input (a joint) is opened only when nothing is left to compute with the open ones: a branch is swept outwards, swept
inwards and eliminated before the next one is started. Then every value is computed as late as possible where that ends
no live range, and as early as possible where it ends two. Creation order is the other candidate; the schedule with
fewer live values is chosen. A graph that calls others (a step of an integrator) has its own order, because there values
are live mainly across the calls.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate

from bellcrank.emit.cuda.schedule_refinement import refine_schedule
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.graph import Graph


def low_pressure_order(units: Units) -> list[Unit]:
    """Return all `units` in topological order with few values live at any time."""
    if units.graph.calls:
        candidates = [eager_order(units), refine_schedule(eager_order(units))]
    else:
        candidates = [refine_schedule(sequence) for sequence in (units.all, limb_order(units))]
    return min(candidates, key=lambda sequence: (max(live_counts(sequence), default=0), sum(live_counts(sequence))))


def max_live(graph: Graph) -> int:
    """Return the maximum number of live values of `graph`."""
    return max(live_counts(low_pressure_order(Units(graph))), default=0)


def live_counts(sequence: Sequence[Unit]) -> list[int]:
    """Return the number of live values after each unit of `sequence`.

    An input is live from its first to its last use.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, unit in enumerate(sequence):
        for serial in unit.used_serials:
            if serial not in first:
                first[serial] = i
            last[serial] = i
        for serial in unit.defined_serials:
            first[serial] = i
    change = [0] * (len(sequence) + 1)
    for serial, end in last.items():
        change[first[serial]] += 1
        change[end] -= 1
    return list(accumulate(change[:-1]))


def limb_order(units: Units) -> list[Unit]:
    """Return `units` in an order that opens the fewest new input elements first.

    Elements with the same index in q, v and tau belong to one joint.
    """
    makes = {n.serial: unit for unit in units.all for n in unit.defines}
    joints: dict[int, int] = {}  # bit set of the input indices that a unit depends on
    pending: dict[int, int] = {}
    users: dict[int, list[Unit]] = {}
    for unit in units.all:
        bits = 0
        predecessors = {makes[n.serial].serial: makes[n.serial] for n in unit.uses if n.op != "input"}
        for n in unit.uses:
            bits |= 1 << n.args[1] if n.op == "input" else joints[makes[n.serial].serial]
        joints[unit.serial], pending[unit.serial] = bits, len(predecessors)
        for serial in predecessors:
            users.setdefault(serial, []).append(unit)

    open_now, result = 0, []
    queue = [(joints[u.serial].bit_count(), u.serial, u) for u in units.all if not pending[u.serial]]
    heapq.heapify(queue)
    while queue:
        cost, serial, unit = heapq.heappop(queue)
        current_cost = (joints[serial] & ~open_now).bit_count()
        if current_cost < cost:  # joints were opened since it was queued: its cost has fallen
            heapq.heappush(queue, (current_cost, serial, unit))
            continue
        open_now |= joints[serial]
        result.append(unit)
        for user in users.get(serial, ()):
            pending[user.serial] -= 1
            if not pending[user.serial]:
                heapq.heappush(queue, ((joints[user.serial] & ~open_now).bit_count(), user.serial, user))
        if cost:  # the costs of all queued units have changed
            queue = [((joints[s] & ~open_now).bit_count(), s, u) for _, s, u in queue]
            heapq.heapify(queue)
    return result


def eager_order(units: Units) -> list[Unit]:
    """Return `units` such that each is computed as soon as the calls that it depends on are done.

    A sum over stages then accumulates, and the stages need not stay live.
    """
    after: dict[int, int] = {}
    for unit in units.all:
        called = unit.defines[0].op == "call"
        call_count = max((after[n.serial] for n in unit.uses if n.op != "input"), default=0)
        after.update({n.serial: call_count + called for n in unit.defines})
    return sorted(units.all, key=lambda unit: (after[unit.serial] - 0.5 * (unit.defines[0].op == "call"), unit.serial))
