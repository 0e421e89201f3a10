"""Why the runs of a batch ended: words and times in arrays, and a sentence for a run when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from bellcrank.model.parts import Array
from bellcrank.record.column import Stop


class Stops(Sequence[Stop]):
    """As a tuple of Stops, one for each run; a million of them take no longer than their arrays."""

    def __init__(self, words: Sequence[str], which: Array, times: Array, message: Callable[[int], str]) -> None:
        """words: the reasons that there are. which: the place of each run's among them."""
        self._words, self._which, self._times, self._message = tuple(words), which, times, message
        self._said: dict[int, str] = {}

    @overload
    def __getitem__(self, run: int) -> Stop: ...

    @overload
    def __getitem__(self, run: slice) -> tuple[Stop, ...]: ...

    def __getitem__(self, run: int | slice) -> Stop | tuple[Stop, ...]:
        if isinstance(run, slice):
            return tuple(self[k] for k in range(*run.indices(len(self))))
        k = range(len(self))[run]  # an IndexError where there is none
        if k not in self._said:
            self._said[k] = self._message(k)
        return Stop(self._words[int(self._which[k])], float(self._times[k]), self._said[k])

    def __len__(self) -> int:
        return len(self._which)

    def counts(self) -> dict[str, int]:
        """How many runs ended for which reason, the most frequent first."""
        found = np.bincount(self._which, minlength=len(self._words))
        return {self._words[k]: int(found[k]) for k in np.argsort(-found, kind="stable") if found[k]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def stop_of_part(whole: Stop, t: Array, part: Array) -> Stop:
    """Of a run with these times, why its rows in `part` end: as the run does if its last row is there."""
    times, kept = t[np.isfinite(t)], part[np.isfinite(part)]
    if not kept.size:
        return Stop("end", float("nan"), "none of its rows is in this part")
    if kept[-1] == times[-1]:
        return whole
    return Stop("end", float(kept[-1]), "the end of this part; the run went on")
