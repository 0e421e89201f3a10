"""Map of the best methods: for every number of bodies and processors, the method with the shortest schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.build import schedules
from bellcrank.build.schedule_search import Candidate, search
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.progress import progress_bar
from bellcrank.scheduling import Schedule

COUNTED_LAYOUTS = ("complete", "bus", "pipeline")  # machines that are named by a number of processors alone
MAX_CELLS = 100


@dataclass(frozen=True)
class MapCell:
    """The shortest schedule for a number of bodies and of processors."""

    bodies: int
    processors: int
    winner: Candidate
    schedule: Schedule


def winner_map(
    family: Callable[[int], Mechanism],
    request: Request,
    bodies: Sequence[int],
    processors: Sequence[int],
    layout: str = "complete",
    kind: str = "ideal",
    level: str = "auto",
    progress: Any = None,
) -> list[MapCell]:
    """Return the method with the shortest schedule for each number of bodies and of processors.

    Parameters
    ----------
    family
        Function from a number of bodies to a mechanism.
    request
        The quantity and its options, with method "auto".
    bodies, processors
        Numbers of bodies and of processors.
    layout
        Machine without its number: complete, bus or pipeline.
    kind
        Cost model.
    level
        Size of the tasks, as in `schedules.schedule`.
    progress
        Function of the share done, False for silence, True or None for a bar on a terminal after a second.
    """
    if layout not in COUNTED_LAYOUTS:
        known = ", ".join(COUNTED_LAYOUTS)
        raise InputError(
            f'a map needs a machine with a number of processors: {known}, without the number; got "{layout}".'
        )
    total = len(bodies) * len(processors)
    if not 0 < total <= MAX_CELLS:
        raise InputError(f"a map of {len(bodies)} x {len(processors)} cells; expected 1 to {MAX_CELLS} cells.")
    cells: list[MapCell] = []
    with progress_bar(f"map of {request.quantity}", progress, "") as update:
        for n in bodies:
            mechanism = family(n)
            for p in processors:
                result = search(mechanism, request, schedules.machine(f"{layout}:{p}", kind), level, False)
                cells.append(MapCell(n, p, result.winner, result.schedule))
                if update:
                    update(len(cells) / total)
    return cells
