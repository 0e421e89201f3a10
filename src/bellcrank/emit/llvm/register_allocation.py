"""Register allocation for straight-line code: spills, slots for arguments and results of calls, and base pointers.

If a value must leave the registers, it is the one whose next use is farthest away: no other choice needs fewer loads
(L. A. Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems J. 5, 1966). Code for a GPU
thread is spilled by the same rule. LLVM, whose allocator is made for code with branches, stores half as many values
again, and has little left to do if spills are explicit. Arguments and results of calls are placed so that contiguous
values need not be copied.

Base pointers in registers (`rebase`) shorten addresses: one near such a pointer needs a displacement of one byte
instead of four. AVX-512 instructions count short displacements in vectors, so that one byte reaches 256 of them. Half
of the workspace accesses of a large graph become a third shorter, and code that exceeds the instruction cache is
fetched faster. LLVM would add the displacements up again; an empty inline assembly statement prevents that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bellcrank.emit.llvm.scheduling import Item
from bellcrank.graph import Graph, Node
from bellcrank.quoting import symbol

TEMPORARY_REGISTERS = 2  # registers for temporaries: a negated factor, rows that are exchanged with lanes
MAX_BASE_POINTERS = 12  # base pointers in registers, beside those of the arrays
MIN_NEAR_ADDRESSES = 4  # addresses that must be near a base pointer to make it worthwhile
ADDRESS_PATTERN = re.compile(r"(%p\d+ = getelementptr i8), ptr %ws, i64 (\d+)")


class RegisterFile:
    """Values in registers while the steps of a piece of straight-line code are executed in order."""

    def __init__(self, reads: Sequence[Iterable[int]], limit: int, rank: Callable[[int], Any]) -> None:
        """Start before the first step.

        Parameters
        ----------
        reads
            Serial numbers of the values that each step reads, each once.
        limit
            Values that the registers hold.
        rank
            Of several values with the same next use, the one of highest rank is evicted.
        """
        self.limit, self.rank = limit, rank
        self.uses: dict[int, list[int]] = {}  # future uses of each value, the next one last
        for step in range(len(reads) - 1, -1, -1):
            for serial in reads[step]:
                self.uses.setdefault(serial, []).append(step)
        self.resident: dict[int, Node] = {}

    def read(self, serial: int) -> bool:
        """Record the next use of the value `serial`; return whether it has no further use."""
        later = self.uses[serial]
        later.pop()
        return not later

    def evict(self, wanted: int = 0, keep: Collection[int] = ()) -> Iterator[Node]:
        """Evict values, except those of `keep`, until there is room for as many more as `wanted`."""
        while len(self.resident) + wanted > self.limit:
            candidates = [(self.uses[s][-1], self.rank(s), s) for s in self.resident if s not in keep]
            if not candidates:
                return
            yield self.resident.pop(max(candidates, key=lambda candidate: candidate[:2])[2])


def spills(
    piece: Sequence[Item], reads: Callable[[Item], Iterable[Node]], inline: Callable[[Node], bool], registers: int
) -> list[list[Node]]:
    """Return the values to spill after each item.

    Parameters
    ----------
    piece
        The items of a chunk.
    reads
        Nodes that an item needs, looking through inline ones.
    inline
        True for nodes that are emitted at their use and never wait.
    registers
        Vector registers of the processor.
    """
    needs = [[] if _uses_no_registers(item, inline) else [n for n in reads(item) if not inline(n)] for item in piece]
    in_memory: set[int] = set()  # has a spill slot, and need not be stored again
    file = RegisterFile(
        [{n.serial for n in needed} for needed in needs], registers - TEMPORARY_REGISTERS, in_memory.__contains__
    )
    spilled: list[list[Node]] = []
    for item, needed in zip(piece, needs, strict=True):
        for serial in {n.serial for n in needed}:
            file.read(serial)
        if item.kind in ("trig", "call"):
            in_memory.update(n.serial for n in item.defines)
        elif not _uses_no_registers(item, inline):
            file.resident |= {n.serial: n for n in item.defines}
        file.resident |= {n.serial: n for n in needed}
        file.resident = {serial: n for serial, n in file.resident.items() if file.uses.get(serial)}
        spilled.append(list(file.evict()))
        in_memory.update(n.serial for n in spilled[-1])
    return spilled


def _uses_no_registers(item: Item, inline: Callable[[Node], bool]) -> bool:
    """Return True for items without register use: inline nodes, and matrices, which are stored from the workspace."""
    return (item.kind == "op" and inline(item.defines[0])) or (item.tile is not None and item.tile.is_matrix)


def matrix_elements(pieces: Sequence[Sequence[Item]]) -> set[int]:
    """Return the elements of all matrices in `pieces` that are stored at once, by serial."""
    matrix_items = (item for piece in pieces for item in piece if item.tile is not None and item.tile.is_matrix)
    return {n.serial for item in matrix_items for n in item.uses}


@dataclass
class SlotAllocator:
    """Slot allocator for the results of calls; a row of slots is reused once no later chunk reads any of it."""

    chunk: int = 0  # the chunk being printed
    last_chunk: Mapping[int, int] = field(default_factory=dict)  # node -> the last chunk that reads it
    residents: set[int] = field(default_factory=set)  # serials of nodes that reside here
    rows: list[tuple[int, int, int]] = field(default_factory=list)  # (last chunk that reads it, length, first slot)

    def allocate(self, results: Sequence[Node], size: int, end: int) -> tuple[int, int]:
        """Allocate a row of `size` slots for `results`; return its first slot and the new end of the workspace.

        `end` is the end of the workspace before.
        """
        self.residents |= {n.serial for n in results}
        last_reader = max((self.last_chunk.get(n.serial, self.chunk) for n in results), default=self.chunk)
        idle = [row for row in self.rows if row[0] < self.chunk and row[1] >= size]
        if idle:
            row = min(idle, key=lambda row: row[1])
            self.rows.remove(row)
            self.rows.append((last_reader, row[1], row[2]))
            return row[2], end
        self.rows.append((last_reader, size, end))
        return end, end + size


def contiguous_location(values: Sequence[tuple[int, Node | float]], slots: Mapping[int, int]) -> tuple[str, int] | None:
    """Return the array and the position where all `values` lie contiguously, at given distances; None if nowhere.

    The array is an input, or the workspace with the given `slots`. Constants lie nowhere.
    """
    locations = {_location(i, x, slots) for i, x in values}
    return locations.pop() if len(locations) == 1 else None


def _location(i: int, x: Node | float, slots: Mapping[int, int]) -> tuple[str, int] | None:
    if not isinstance(x, Node):
        return None
    if x.op == "input":
        array, place = x.args
        return f"in_{symbol(array)}", place - i
    return ("ws", slots[x.serial] - i) if x.serial in slots else None


def read_elements(graph: Graph) -> set[tuple[str, int]]:
    """Return the elements of its inputs that `graph` reads, also to decide if it is needed; all if it is opaque."""
    if graph.opaque:
        return set(graph.elements)
    return {n.args for n in graph.nodes if n.op == "input"} | ({(graph.only, 0)} if graph.only else set())


def known_outputs(graph: Graph) -> dict[str, set[int]]:
    """Return the elements of outputs of `graph` that a caller knows already: constants, and inputs passed through."""
    return {
        name: {i for i, x in enumerate(array.flat) if not isinstance(x, Node) or x.op == "input"}
        for name, array in graph.outputs.items()
    }


def rebase(lines: Sequence[str], size: int) -> list[str]:
    """Return the `lines` of a function with base pointers, computed first; `size` is the bytes of a vector."""
    reach_bytes = 256 * size
    matches = [ADDRESS_PATTERN.fullmatch(line) for line in lines]
    address_counts = Counter(int(m[2]) // reach_bytes for m in matches if m)
    base_offsets = {
        k: k * reach_bytes + reach_bytes // 2
        for k, n in address_counts.most_common(MAX_BASE_POINTERS)
        if n > MIN_NEAR_ADDRESSES
    }
    pointer_lines = []
    for k, middle in base_offsets.items():
        pointer_lines.append(f"%middle{k} = getelementptr i8, ptr %ws, i64 {middle}")
        pointer_lines.append(f'%near{k} = call ptr asm "", "=r,0"(ptr %middle{k})')
    return pointer_lines + [
        f"{m[1]}, ptr %near{k}, i64 {int(m[2]) - base_offsets[k]}"
        if m and (k := int(m[2]) // reach_bytes) in base_offsets
        else line
        for m, line in zip(matches, lines, strict=True)
    ]
