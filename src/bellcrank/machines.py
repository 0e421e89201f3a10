"""From a mechanism and the name of a machine to a Schedule: `bc.schedule(arm, machine="complete:2")`.

Beside build.py the one place where schedules meet mechanisms: a machine without numbers gets those that suit one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bellcrank import build
from bellcrank.errors import InputError
from bellcrank.graph import Graph
from bellcrank.model import Mechanism
from bellcrank.schedule import Machine, Schedule, listing
from bellcrank.schedule import machine as by_name

MOST = 8  # processors of a machine whose size nobody gave, unless its shape follows from the mechanism


def _few(n: int) -> int:
    return max(1, min(n, MOST))


# What a bare name means for n degrees of freedom.
SIZES: dict[str, Callable[[int], str]] = {
    "complete": lambda n: f"{_few(n)}",
    "pipeline": lambda n: f"{_few(n)}",
    "bus": lambda n: f"{_few(n)}",
    "mesh": lambda n: f"2,{(_few(n) + 1) // 2}",
    "triangle": lambda n: f"{max(n, 1)}",  # Wong's: as many rows and columns as joints
    "hypercube": lambda n: f"{(_few(n) - 1).bit_length()}",
}


def machine(name: str, kind: str = "ideal", freedoms: int = 1) -> Machine:
    """By its name with numbers, "mesh:2,3" or "mesh(2, 3)", or without: then as large as suits a mechanism."""
    given = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\)|:(.*))?\s*", name)
    if given is None:
        raise InputError(f'machine "{name}": expected a name and numbers, such as mesh:2,3 or triangle:4.')
    layout, numbers = given[1], given[2] if given[2] is not None else given[3]
    if numbers is None and layout in SIZES:
        numbers = SIZES[layout](freedoms)
    return by_name(f"{layout}:{numbers}" if numbers else layout, kind)


def schedule(
    what: Mechanism | Graph,
    quantity: str = "forward_dynamics",
    machine: str | Machine = "complete:2",
    *,
    kind: str = "ideal",
    method: str = "auto",
    frame: str = "",
    level: str = "cluster",
) -> Schedule:
    """A quantity of a mechanism, or any graph, laid out on the processors of a machine.

    machine: single, complete, pipeline, mesh, triangle, hypercube, bus, with numbers ("mesh:2,3") or without, or a
    Machine. kind: "ideal" (steps, messages free) or "t800" (transputers, us). level: tasks are "cluster"s of operations
    that one step of the method makes for one body, or each "node" on its own.
    """
    if isinstance(what, Graph):
        graph, freedoms = what, max((shape[0] for shape in what.inputs.values() if shape), default=1)
    else:
        graph = build.graph(what, quantity, method, frame)
        freedoms = what.nv
    return listing.schedule(graph, _made(machine, kind, freedoms), level)


def _made(asked: str | Machine, kind: str, freedoms: int) -> Machine:
    if isinstance(asked, Machine):
        return asked
    if not isinstance(asked, str):
        raise InputError(f'machine is {asked!r}; expected a name such as "complete:2", or a Machine.')
    return machine(asked, kind, freedoms)
