"""How many blocks share a multiprocessor: few with many registers each, or many with values parked in shared memory.

More warps hide more of the latency of memory and arithmetic; fewer registers make more values wait in shared memory,
and every parked value costs two instructions. The efficiencies are those measured on an H200 (docs/gpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bellcrank.emit.cuda.few import live
from bellcrank.emit.cuda.park import Parking, parked
from bellcrank.emit.cuda.units import Unit

FILE = 65536  # registers of a multiprocessor
SHARED = 227 * 1024  # bytes of its shared memory, of which each block costs one KB more than it asks for
REGISTERS = 255  # that a thread may have
MOST = 16  # blocks of 128 threads
OWN = 12  # values' worth of registers for addresses, constants and results on their way
PARKED = 0.25  # the same where values are parked, as a share of those alive: what is fetched early waits, too
COSTS = {"sin": 30.0, "cos": 30.0, "div": 10.0, "sqrt": 20.0}  # instructions; anything else is about one
# By warps on a multiprocessor, how much of its speed a kernel reaches that does nothing but arithmetic.
EFFICIENCY = {4: 0.55, 8: 0.87, 12: 0.97, 16: 1.0}


@dataclass(frozen=True)
class Plan:
    blocks: int
    registers: int  # predicted, of a thread
    parking: Parking
    fits: bool


def plan(sequence: Sequence[Unit], words: int, threads: int, blocks: int) -> Plan:
    limit = min(REGISTERS, FILE // (threads * blocks) // 8 * 8)
    most = max(live(sequence), default=0)
    free = (most + OWN) * words <= limit
    own = OWN if free else max(OWN, round(PARKED * most))
    room = most if free else max(8, limit // words - own)
    parking = parked(sequence, room)
    shared = (parking.slots * threads * 4 * words + 1024) * blocks
    registers = min(limit, (parking.most + own) * words)
    return Plan(blocks, registers, parking, shared <= SHARED)


def chosen(sequence: Sequence[Unit], words: int, threads: int) -> Plan:
    """The plan with the least predicted time."""
    best, least = plan(sequence, words, threads, 1), math.inf
    for blocks in range(2, min(32, MOST * 128 // threads) + 1):
        p = plan(sequence, words, threads, blocks)
        now = cost(sequence, p, threads)
        if not p.fits or now > 1.02 * least:  # from here on it only becomes narrower
            break
        if now < least:
            best, least = p, now
    return best


def cost(sequence: Sequence[Unit], p: Plan, threads: int) -> float:
    """Instructions of a thread, over how well the warps hide each other's waiting."""
    moves = sum(step.unit is None for step in p.parking.steps)
    work = sum(COSTS.get(unit.defines[0].op, 1.0) for unit in sequence)
    return (work + 2.0 * moves) / _efficiency(p.blocks * threads // 32)


def _efficiency(warps: int) -> float:
    points = sorted(EFFICIENCY.items())
    for (a, low), (b, high) in pairwise(points):
        if warps <= b:
            return low + (high - low) * max(0, warps - a) / (b - a)
    return points[-1][1] + 0.002 * (warps - points[-1][0])
