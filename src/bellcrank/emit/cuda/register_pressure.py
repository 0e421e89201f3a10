"""Schedules with low register pressure: a GPU thread has at most 255 registers of 32 bits.

Creation order sweeps over all bodies before it returns, so values of whole branches stay live. Here an element of an
input (a joint) is opened only when nothing is left to compute with the open ones: a branch is swept outwards, swept
inwards and eliminated before the next one is started. Then every value is computed as late as possible where that ends
no live range, and as early as possible where it ends two. Creation order is the other candidate; the schedule with
fewer live values is chosen. A graph that calls others (a step of an integrator) has its own order, because there values
are live mainly across the calls.

Refinement runs dozens of times on thousands of units, so all its data are arrays: pairs of unit and value for each
read, and a permutation for the position of every unit.

Last, loads are hoisted: inputs are read well before their first use, to hide a memory latency of about a thousand
cycles. Where register pressure is low anyway, early in a sweep, one more live value costs nothing. So the first read of
every input moves up by as many units as possible without raising the maximum number of live values.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from bellcrank.emit.cuda.thread_code import Unit, Units
from bellcrank.graph import Graph

MAX_ROUNDS = 20  # iterations at most; it converges much earlier
HOIST_DISTANCE_UNITS = 300  # units by which a read is hoisted at most


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


Numbers: TypeAlias = np.ndarray[Any, Any]


def refine_schedule(sequence: Sequence[Unit]) -> list[Unit]:
    """Return `sequence` with units moved to shorten live ranges, as long as that helps."""
    if not sequence:
        return []
    wires = _UseDefArrays(sequence)
    best = np.arange(len(sequence))
    score = wires.score(best)
    for _ in range(MAX_ROUNDS):
        moved = wires.move_units(best)
        if (new := wires.score(moved)) >= score:
            break
        best, score = moved, new
    return [sequence[i] for i in best.tolist()]


class _UseDefArrays:
    """Reads and definitions as indices of units and of values."""

    def __init__(self, sequence: Sequence[Unit]) -> None:
        numbers: dict[int, int] = {}
        reads = [[numbers.setdefault(serial, len(numbers)) for serial in unit.used_serials] for unit in sequence]
        makes = [[numbers.setdefault(serial, len(numbers)) for serial in unit.defined_serials] for unit in sequence]
        self.units, self.values = len(sequence), len(numbers)
        self.reader, self.read = _flat(reads)
        self.maker, self.defined = _flat(makes)
        self.definer = np.full(self.values, -1)  # unit that defines each value; -1 for inputs
        self.definer[self.defined] = self.maker
        self.makes = np.bincount(self.maker, minlength=self.units)
        self.count = np.bincount(self.read, minlength=self.values)  # number of reads of each value
        self.end = np.cumsum(self.count)
        definers = self.definer.tolist()
        # units that each unit depends on
        self.dependencies = [[definers[v] for v in row if definers[v] >= 0] for row in reads]

    def positions(self, order: Numbers) -> Numbers:
        position = np.empty_like(order)
        position[order] = np.arange(self.units)
        return position

    def score(self, order: Numbers) -> tuple[int, int]:
        """Return the maximum number of live values, and the sum over all units.

        An input is live from its first to its last use.
        """
        position = self.positions(order)
        uses = self._use_positions(position)
        known = self.count > 0
        since = np.where(self.definer >= 0, position[self.definer], uses[self._nth_use(0)])[known]
        until = uses[self._nth_use(-1)][known]
        n = self.units
        alive = np.cumsum(np.bincount(since, minlength=n) - np.bincount(until, minlength=n))
        return int(alive.max()), int(alive.sum())

    def _use_positions(self, position: Numbers) -> Numbers:
        """Return positions of all reads, by value and ascending, and a last entry for values that are never read."""
        read_positions = position[self.reader]
        return np.append(read_positions[np.lexsort((read_positions, self.read))], -1)

    def _nth_use(self, n: int) -> Numbers:
        """Return the index in `_use_positions` of each value's first (0), last (-1) or last but one (-2) use."""
        index = self.end - self.count if n == 0 else self.end + n
        return np.where(self.count >= max(1, -n), index, len(self.read))

    def move_units(self, order: Numbers) -> Numbers:
        """Return the order with each unit at its desired position, or as close to it as its operands allow."""
        position = self.positions(order)
        position_list, rests = position.tolist(), self.dependencies
        done = bytearray(self.units)
        new_order: list[int] = []
        for first in self._desired_order(position).tolist():
            stack = [first]
            while stack:
                i = stack[-1]
                pending = [j for j in rests[i] if not done[j]]
                if done[i] or not pending:
                    stack.pop()
                    if not done[i]:
                        done[i] = 1
                        new_order.append(i)
                else:
                    stack.extend(sorted(pending, key=position_list.__getitem__, reverse=True))
        return np.array(new_order)

    def _desired_order(self, position: Numbers) -> Numbers:
        """Return all units in the order of their desired positions."""
        uses = self._use_positions(position)
        first, last, last_but_one = (uses[self._nth_use(n)] for n in (0, -1, -2))
        frees = last[self.read] == position[self.reader]  # reads that end the live range of their value
        freed = np.bincount(self.reader[frees], minlength=self.units)
        first_use = np.full(self.units, self.units)
        used = self.count[self.defined] > 0
        np.minimum.at(first_use, self.maker[used], first[self.defined[used]])
        ready = np.full(self.units, -1)  # position after all operands and after other reads of values that it frees
        is_computed = self.definer[self.read] >= 0
        np.maximum.at(ready, self.reader[is_computed], position[self.definer[self.read[is_computed]]])
        np.maximum.at(ready, self.reader[frees], last_but_one[self.read[frees]])
        wish = position.astype(float)
        late = (freed == 0) & (first_use < self.units)
        early = ~late & (freed > self.makes)
        wish[late] = first_use[late] - 0.5
        wish[early] = np.minimum(wish[early], ready[early] + 0.5)
        return np.lexsort((position, wish))


def _flat(rows: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Return the row index and the value of each element."""
    return np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.array([x for row in rows for x in row], int)


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
