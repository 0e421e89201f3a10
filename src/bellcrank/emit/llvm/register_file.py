"""Values in registers, for the spill plans of a processor and of a GPU thread.

If a value must leave the registers, it is the one whose next use is farthest away: no other choice needs fewer loads
(L. A. Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems J. 5, 1966).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from bellcrank.graph import Node


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
