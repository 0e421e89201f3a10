"""`bc.schedule`: schedule a quantity of a mechanism, or a graph, on the processors of a machine.

The general scheduler takes any graph and most machines. Three cases are separate: the cores of this computer, where the
schedule is the one that a kernel executes; machines with a program of their own (PROGRAMS); and other divisions of the
equations into tasks (CUTS), which papers/ adds. A machine named without numbers gets a size that suits the mechanism.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.build import graphs
from bellcrank.build.stages import fitted, shared_out
from bellcrank.dynamics import Method
from bellcrank.dynamics.requests import Request
from bellcrank.emit.target import Target
from bellcrank.errors import InputError, unknown, warn
from bellcrank.graph import Graph, Recursion
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.scheduling import Machine, Schedule, Tasks, laid_out, listing
from bellcrank.scheduling import machine as by_name
from bellcrank.scheduling.machines import LAYOUTS

MOST_PROCESSORS = 8  # default number of processors, unless the shape follows from the mechanism
WARP = 32  # lanes, as graphics processors have them
LAYING, PATIENCE = 1e-4, 30.0  # seconds to schedule one operation; seconds above which a warning is given


@dataclass(frozen=True)
class Laid:
    """A schedule and the method that it follows."""

    by: str  # the method, or the author of the program
    schedule: Schedule


# Machines with a program of their own for (mechanism, numbers after the name, kind), and functions that divide the
# equations of (mechanism, names of strategies, control law) into tasks, of which the best division is used.
PROGRAMS: dict[str, Callable[[Mechanism, str, str], Laid]] = {}
CUTS: dict[str, Callable[[Mechanism, Sequence[str], str], list[Tasks]]] = {}


def _few(n: int) -> int:
    return max(1, min(n, MOST_PROCESSORS))


# Sizes of machines named without numbers, for n degrees of freedom.
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
    """Return a machine by its name.

    Parameters
    ----------
    name
        "mesh:2,3" or "mesh(2, 3)", or without numbers: then its size suits a mechanism.
    kind
        Cost model, such as "ideal" or "t800".
    freedoms
        Degrees of freedom of that mechanism.
    """
    layout, numbers = _split(name)
    if layout == "threads":
        return _threads(numbers, kind)
    if layout == "gpu":
        raise InputError('machine "gpu" takes its size from the plan for a graph; it has no costs without one.')
    if layout in PROGRAMS:
        raise InputError(f'machine "{layout}" is a program for a mechanism; call bc.schedule with one.')
    if layout not in LAYOUTS:
        known = (*LAYOUTS, "threads", "gpu", *PROGRAMS)
        raise InputError(unknown("machine", layout, known) + _more("wong" in PROGRAMS))
    if numbers is None and layout in SIZES:
        numbers = SIZES[layout](freedoms)
    return by_name(f"{layout}:{numbers}" if numbers else layout, kind or "ideal")


def _split(name: str) -> tuple[str, str | None]:
    given = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\)|:(.*))?\s*", name)
    if given is None:
        raise InputError(f'machine "{name}": expected a name and numbers, such as mesh:2,3 or triangle:4.')
    return given[1], given[2] if given[2] is not None else given[3]


def _threads(numbers: str | None, kind: str) -> Machine:
    from bellcrank.emit.cores import kernel as threads  # imported here because it loads a compiler, to measure costs

    if kind:
        raise InputError(f'machine "threads" has costs measured on this computer; leave out kind "{kind}".')
    if numbers and not (numbers.strip().isdecimal() and len(numbers) < 10):
        raise InputError(f'machine "threads:{numbers[:40]}": expected threads:p with a whole number.')
    return threads.machine("threads", int(numbers) if numbers else None, "float64")


@explained
def schedule(
    what: Mechanism | Graph,
    quantity: str = "forward_dynamics",
    machine: str | Machine = "",
    *,
    kind: str = "",
    method: str = "auto",
    frame: str = "",
    level: str = "",
    strategy: str = "",
    control: str = "none",
) -> Schedule:
    """Schedule a quantity of a mechanism, or any graph, on the processors of a machine.

        plan = bc.schedule(arm, "mass_matrix", "mesh:2,3")
        print(plan); plan.makespan, plan.speedup; plan.html()         # a page to look at

    Parameters
    ----------
    what : Mechanism or Graph
        The mechanism or the graph.
    quantity : str
        Quantity of a mechanism, as in `bc.kernel`; not needed for a graph.
    machine : str or Machine
        single, complete, pipeline, mesh, triangle, cone, hypercube, bus or warp, with numbers ("mesh:2,3") or without,
        or a Machine. "threads" is this computer, as a kernel with machine="threads" uses it; "gpu" is the team of
        threads that computes one state on a GPU; "wong" (with `import bellcrank.papers`) is Wong's own program on his
        mesh.
    kind : str
        Cost model: "ideal" (unit steps, free messages), "t800" (transputers, us), "hidden" (their messages are free) or
        "explicit" (their messages occupy both ends).
    method, frame : str
        As in `bc.kernel`.
    level : str
        Size of the tasks: "cluster" (the operations of one step of the method for one body), "node" (single operations)
        or "auto" (the default: the shortest schedule of these and of sizes between).
    strategy : str
        Divide the equations of motion by the strategies of Schäfer and Schiehlen instead (with `import
        bellcrank.papers`), as in "modules+factorisation": subsystems, modules, factorisation.
    control : str
        The control law that goes with the strategy.

    Returns
    -------
    Schedule
        The tasks of each processor with their times.

    Raises
    ------
    InputError
        If a name or a combination of options is not valid.
    """
    return laid(what, Request(quantity, method, frame), machine, kind, level, strategy, control).schedule


def laid(
    what: Mechanism | Graph,
    request: Request,
    machine: str | Machine = "",
    kind: str = "",
    level: str = "",
    strategy: str = "",
    control: str = "none",
) -> Laid:
    """Return the schedule together with the method that it follows.

    Parameters
    ----------
    what
        The mechanism or the graph.
    request
        The quantity and its options.
    machine, kind, level, strategy, control
        As in `schedule`.
    """
    own, numbers = _split(machine) if isinstance(machine, str) and machine else ("", None)
    if strategy or own in PROGRAMS:
        who = "a strategy" if strategy else f'machine "{own}"'
        if isinstance(what, Graph):
            raise InputError(f"{who} needs a mechanism; got a graph.")
        if (request.quantity, request.method, level) != ("forward_dynamics", "auto", ""):
            raise InputError(
                f"{who} has its own equations and tasks: forward dynamics only, without method= and level=."
            )
        return _cut(what, strategy, control, machine, kind) if strategy else PROGRAMS[own](what, numbers or "", kind)
    if control != "none":
        raise InputError(f'control "{control}" goes with a strategy, such as modules.')
    if isinstance(what, Graph):
        by, graph, freedoms = "", what, max((shape[0] for shape in what.inputs.values() if shape), default=1)
    else:
        found, graph = _chosen(what, request, own, numbers, kind)
        by, freedoms = found.name, what.nv
    if own == "gpu":
        return Laid(by, _gpu(graph, numbers, kind))
    on = _made(machine or "complete", kind, freedoms)
    if on.name.startswith("threads("):
        from bellcrank.emit.cores.target import Cores

        target = Cores(on)
        return Laid(by, target.schedule(fitted(by, graph, target)[1]))
    if not (isinstance(graph, Recursion) and listing.by_places(graph, on)):
        _announced(graph)
    return Laid(by, listing.schedule(graph, on, level or "auto"))


def _announced(graph: Graph) -> None:
    """Warn where scheduling will take long."""
    operations = graph.count().arithmetic
    if (seconds := LAYING * operations) > PATIENCE:
        warn(
            f"{graph.name}: {operations:,} operations are scheduled one by one, which takes about {seconds / 60:.0f} "
            "minutes. Identical bodies are scheduled body by body, in seconds, on every machine but a warp."
        )


def _chosen(what: Mechanism, request: Request, own: str, numbers: str | None, kind: str) -> tuple[Method, Graph]:
    """Return the method and the graph of a kernel; on several cores long branches are divided."""
    if own == "threads":
        from bellcrank.emit.cores.target import Cores

        on = Cores(_threads(numbers, kind))
        if wide := graphs.side_by_side(what, request, lambda g: shared_out(g, on)):
            return wide
    return graphs.chosen(what, request, _target(own).choose)


def _target(machine: str) -> Target:
    if machine == "gpu":
        from bellcrank.emit.cuda.target import Cuda

        return Cuda()
    from bellcrank.emit.cpu.target import Cpu

    return Cpu()


def _gpu(graph: Graph, numbers: str | None, kind: str) -> Schedule:
    from bellcrank.emit.cuda import team_schedule as shown  # imported here because it loads a compiler
    from bellcrank.emit.cuda.choice import STATES

    if kind:
        raise InputError(f'machine "gpu" has costs measured on a GPU; leave out kind "{kind}".')
    if numbers is not None and numbers.strip() not in map(str, STATES):
        sizes = ", ".join(f"gpu:{k}" for k in STATES)
        raise InputError(f'machine "gpu:{numbers}": expected {sizes}, or gpu for the fastest by prediction.')
    return shown.schedule(graph, int(numbers or 0))


def _cut(m: Mechanism, strategy: str, control: str, machine: str | Machine, kind: str) -> Laid:
    """Return the best schedule by strategies; by default on three transputers, as in the paper."""
    names = [name.strip() for name in re.split(r"[+,]", strategy)]
    for name in names:
        if name not in CUTS:
            raise InputError(unknown("strategy", name, CUTS) + _more(bool(CUTS)))
    on = _made(machine or "complete:3", kind or "t800", m.nv)
    found = [laid_out(tasks, on) for tasks in CUTS[names[0]](m, names, control)]
    return Laid(" + ".join(names), min(found, key=lambda s: s.makespan))


def _more(known: bool) -> str:
    """Return a hint where the machines and strategies of the papers are not imported."""
    return "" if known else " `import bellcrank.papers` adds those of the papers."


def _made(asked: str | Machine, kind: str, freedoms: int) -> Machine:
    if isinstance(asked, Machine):
        return asked
    if not isinstance(asked, str):
        raise InputError(f'machine is {asked!r}; expected a name such as "complete:2", or a Machine.')
    return machine(asked, kind, freedoms)
