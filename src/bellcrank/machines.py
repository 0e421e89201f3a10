"""From a mechanism and the name of a machine to a Schedule: `bc.schedule(arm, machine="complete:2")`.

Beside build.py the one place where schedules meet mechanisms. Most machines take any graph, and the general scheduler
lays it out. Three ways are their own: the cores of this computer, on which it is what a kernel really does; Wong's
program for his mesh; and the cuts of Schäfer and Schiehlen. A machine without numbers gets those that suit a mechanism.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bellcrank import build
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph
from bellcrank.model import Mechanism
from bellcrank.schedule import Machine, Schedule, laid_out, listing
from bellcrank.schedule import machine as by_name
from bellcrank.schedule.machine import LAYOUTS

MOST = 8  # processors of a machine whose size nobody gave, unless its shape follows from the mechanism
WARP = 32  # lanes, as graphics processors have them
NAMES = (*LAYOUTS, "threads", "gpu", "wong")


def _few(n: int) -> int:
    return max(1, min(n, MOST))


# What a bare name means for n degrees of freedom.
SIZES: dict[str, Callable[[int], str]] = {
    "complete": lambda n: f"{_few(n)}",
    "pipeline": lambda n: f"{_few(n)}",
    "bus": lambda n: f"{_few(n)}",
    "mesh": lambda n: f"2,{(_few(n) + 1) // 2}",
    "triangle": lambda n: f"{max(n, 1)}",  # Wong's: as many rows and columns as joints
    "cone": lambda n: f"{max(n, 1)}",
    "hypercube": lambda n: f"{(_few(n) - 1).bit_length()}",
    "warp": lambda n: f"{WARP}",
}


def machine(name: str, kind: str = "", freedoms: int = 1) -> Machine:
    """By its name with numbers, "mesh:2,3" or "mesh(2, 3)", or without: then as large as suits a mechanism."""
    layout, numbers = _split(name)
    if layout == "threads":
        return _threads(numbers, kind)
    if layout == "gpu":
        raise InputError('machine "gpu" is as large as the plan for a graph says; it has no costs without one.')
    if layout == "wong":
        raise InputError('machine "wong" is a program for a mechanism with a mesh around it; the mesh alone is cone:4.')
    if layout not in LAYOUTS:
        raise InputError(unknown("machine", layout, NAMES))
    if numbers is None and layout in SIZES:
        numbers = SIZES[layout](freedoms)
    return by_name(f"{layout}:{numbers}" if numbers else layout, kind or "ideal")


def _split(name: str) -> tuple[str, str | None]:
    given = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\)|:(.*))?\s*", name)
    if given is None:
        raise InputError(f'machine "{name}": expected a name and numbers, such as mesh:2,3 or triangle:4.')
    return given[1], given[2] if given[2] is not None else given[3]


def _threads(numbers: str | None, kind: str) -> Machine:
    from bellcrank.emit import threads  # a compiler comes with it, to measure

    if kind:
        raise InputError(f'machine "threads" costs what is measured on this computer; leave out kind "{kind}".')
    if numbers and not (numbers.strip().isdecimal() and len(numbers) < 10):
        raise InputError(f'machine "threads:{numbers[:40]}": expected threads:p with a whole number.')
    return threads.machine("threads", int(numbers) if numbers else None, "float64")


def schedule(
    what: Mechanism | Graph,
    quantity: str = "forward_dynamics",
    machine: str | Machine = "",
    *,
    kind: str = "",
    method: str = "auto",
    frame: str = "",
    level: str = "cluster",
    strategy: str = "",
    control: str = "none",
) -> Schedule:
    """A quantity of a mechanism, or any graph, laid out on the processors of a machine.

    machine: single, complete, pipeline, mesh, triangle, cone, hypercube, bus, warp, with numbers ("mesh:2,3") or
    without, or a Machine; "threads" is this computer, as a kernel with machine="threads" uses it; "gpu" is the team of
    threads that computes one state on a GPU; "wong" is Wong's own program on his mesh. kind: "ideal" (steps, messages
    free), "t800" (transputers, us), "hidden" (their messages free) or "explicit" (their messages keep both ends busy).
    level: tasks are "cluster"s of operations that one step of the method makes for one body, or each "node" on its own,
    or "auto", the shortest of these and sizes between.

    strategy: "modules+factorisation" and so on cuts the equations of motion by the strategies of Schäfer and Schiehlen
    instead: subsystems, modules, factorisation; `control` is the law that goes with them.
    """
    return laid(what, build.Request(quantity, method, frame), machine, kind, level, strategy, control).schedule


@dataclass(frozen=True)
class Laid:
    by: str  # the method, or whose program it is
    schedule: Schedule


def laid(
    what: Mechanism | Graph,
    request: build.Request,
    machine: str | Machine = "",
    kind: str = "",
    level: str = "cluster",
    strategy: str = "",
    control: str = "none",
) -> Laid:
    """The same, and by what."""
    if strategy or (isinstance(machine, str) and machine and _split(machine)[0] == "wong"):
        if isinstance(what, Graph):
            raise InputError("a strategy and Wong's mesh begin with a mechanism; a graph is on its way already.")
        if (request.quantity, request.method, level) != ("forward_dynamics", "auto", "cluster"):
            raise InputError("a strategy and Wong's mesh have equations and tasks of their own: forward dynamics only.")
        return _by_strategy(what, strategy, control, machine, kind) if strategy else _wong(what, str(machine), kind)
    if control != "none":
        raise InputError(f'control "{control}" goes with a strategy, such as modules.')
    if isinstance(what, Graph):
        by, graph, freedoms = "", what, max((shape[0] for shape in what.inputs.values() if shape), default=1)
    else:
        target = "cuda" if isinstance(machine, str) and machine and _split(machine)[0] == "gpu" else "cpu"
        found, graph = build.chosen(what, request, target=target)
        by, freedoms = found.name, what.nv
    if isinstance(machine, str) and machine and _split(machine)[0] == "gpu":
        return Laid(by, _gpu(graph, _split(machine)[1], kind))
    on = _made(machine or "complete", kind, freedoms)
    if on.name.startswith("threads("):
        from bellcrank.emit import threads

        return Laid(by, threads.planned(graph, on, "float64"))
    return Laid(by, listing.schedule(graph, on, level))


def _gpu(graph: Graph, numbers: str | None, kind: str) -> Schedule:
    from bellcrank.emit.cuda import shown  # a compiler comes with it
    from bellcrank.emit.cuda.choice import STATES

    if kind:
        raise InputError(f'machine "gpu" costs what was measured on one; leave out kind "{kind}".')
    if numbers is not None and numbers.strip() not in map(str, STATES):
        sizes = ", ".join(f"gpu:{k}" for k in STATES)
        raise InputError(f'machine "gpu:{numbers}": expected {sizes}, or gpu for what is predicted to be fastest.')
    return shown.schedule(graph, int(numbers or 0))


def _by_strategy(m: Mechanism, strategy: str, control: str, machine: str | Machine, kind: str) -> Laid:
    """On three transputers, as in the paper, unless another machine is given."""
    from bellcrank.strategies import SHARED, tasks_of

    names = [name.strip() for name in re.split(r"[+,]", strategy)]
    on = _made(machine or "complete:3", kind or "t800", m.nv)
    found = [laid_out(tasks_of(m, *names, control=control, shared=shared), on) for shared in SHARED]
    return Laid(" + ".join(names), min(found, key=lambda s: s.makespan))


def _wong(m: Mechanism, name: str, kind: str) -> Laid:
    from bellcrank.wong import wong_mesh

    if _split(name)[1]:
        raise InputError(f'machine "{name}": Wong\'s mesh has a column for each joint; leave out the numbers.')
    return Laid("Wong's own program", wong_mesh(m, kind or "t800"))


def _made(asked: str | Machine, kind: str, freedoms: int) -> Machine:
    if isinstance(asked, Machine):
        return asked
    if not isinstance(asked, str):
        raise InputError(f'machine is {asked!r}; expected a name such as "complete:2", or a Machine.')
    return machine(asked, kind, freedoms)
