"""`bc.schedule`: schedule a quantity of a mechanism, or a graph, on the processors of a machine.

The general scheduler takes any graph and most machines. Three cases are separate: the cores of this computer, where the
schedule is the one that a kernel executes; machines with a program of their own (PROGRAMS); and other divisions of the
equations into tasks (CUTS), which papers/ adds. A machine named without numbers gets a size that suits the mechanism.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.build import graphs
from bellcrank.build.compilation import uses_several_cores
from bellcrank.dynamics import Method
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.target import Target
from bellcrank.errors import InputError, brief, check_known, unknown, warn
from bellcrank.graph import Graph, Recursion
from bellcrank.model import Mechanism
from bellcrank.scheduling import Machine, Schedule, Tasks, list_schedule, list_scheduling
from bellcrank.scheduling import machine as by_name
from bellcrank.scheduling.machines import LAYOUTS

if TYPE_CHECKING:
    from bellcrank.build.processor_assignment import ProcessorAssignment
    from bellcrank.build.schedule_search import Candidate

KERNEL_MACHINES = ("threads", "gpu")  # machines whose schedule is that of a kernel, with the kernel's method
MAX_DEFAULT_PROCESSORS = 8  # default number of processors, unless the shape follows from the mechanism
WARP_LANES = 32  # lanes, as graphics processors have them
# Seconds to schedule one operation; seconds above which a warning is given.
OPERATION_SECONDS, WARNING_SECONDS = 1e-4, 30.0


@dataclass(frozen=True)
class MethodSchedule:
    """A schedule, the method that it follows, and the candidates that were compared to find it."""

    method: str  # the method, or the author of the program
    schedule: Schedule
    candidates: tuple[Candidate, ...] = ()


# Machines with a program of their own for (mechanism, numbers after the name, kind), and functions that divide the
# equations of (mechanism, names of strategies, control law) into tasks, of which the best division is used.
PROGRAMS: dict[str, Callable[[Mechanism, str, str], MethodSchedule]] = {}
CUTS: dict[str, Callable[[Mechanism, Sequence[str], str], list[Tasks]]] = {}


def _default_processors(n: int) -> int:
    return max(1, min(n, MAX_DEFAULT_PROCESSORS))


# Sizes of machines named without numbers, for n degrees of freedom.
DEFAULT_SIZES: dict[str, Callable[[int], str]] = {
    "complete": lambda n: f"{_default_processors(n)}",
    "pipeline": lambda n: f"{_default_processors(n)}",
    "bus": lambda n: f"{_default_processors(n)}",
    "mesh": lambda n: f"2,{(_default_processors(n) + 1) // 2}",
    "triangle": lambda n: f"{max(n, 1)}",  # Wong's: as many rows and columns as joints
    "cone": lambda n: f"{max(n, 1)}",
    "hypercube": lambda n: f"{(_default_processors(n) - 1).bit_length()}",
    "warp": lambda n: f"{WARP_LANES}",
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
    layout, numbers = _split_machine_name(name)
    if layout == "threads":
        return _threads_machine(numbers, kind)
    if layout == "gpu":
        raise InputError('machine "gpu" takes its size from the plan for a graph; it has no costs without one.')
    if layout in PROGRAMS:
        raise InputError(f'machine "{layout}" is a program for a mechanism; call bc.schedule with one.')
    if layout not in LAYOUTS:
        known = (*LAYOUTS, "threads", "gpu", *PROGRAMS)
        raise InputError(unknown("machine", layout, known) + _papers_hint("wong" in PROGRAMS))
    if numbers is None and layout in DEFAULT_SIZES:
        numbers = DEFAULT_SIZES[layout](freedoms)
    return by_name(f"{layout}:{numbers}" if numbers else layout, kind or "ideal")


def _split_machine_name(name: str) -> tuple[str, str | None]:
    given = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\)|:(.*))?\s*", name)
    if given is None:
        raise InputError(f'machine "{name}": expected a name and numbers, such as mesh:2,3 or triangle:4.')
    return given[1], given[2] if given[2] is not None else given[3]


def _threads_machine(numbers: str | None, kind: str) -> Machine:
    from bellcrank.emit.cores import target as threads  # loads a compiler, to measure costs

    if kind:
        raise InputError(f'machine "threads" has costs measured on this computer; leave out kind "{kind}".')
    if numbers and not (numbers.strip().isdecimal() and len(numbers) < 10):
        raise InputError(f'machine "threads:{numbers[:40]}": expected threads:p with a whole number.')
    return threads.machine("threads", int(numbers) if numbers else None, "float64")


@explain_argument_errors
def schedule(
    what: Mechanism | Graph,
    quantity: str = "forward_dynamics",
    machine: str | Machine = "",
    *,
    kind: str = "",
    method: str = "auto",
    frame: str = "",
    projection: str = "",
    level: str = "",
    strategy: str = "",
    control: str = "none",
    progress: Any = None,
    assignment: ProcessorAssignment | str | Path | None = None,
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
        As in `bc.kernel`; but "auto" takes the method, the frame of projection and the size of tasks with the shortest
        schedule on this machine. On "threads" and "gpu" it takes the method of the kernel.
    projection : str
        Frame onto which the method projects its equations, if it has a choice: "base", "end" or "body".
    level : str
        Size of the tasks: "cluster" (the operations of one step of the method for one body), "node" (single operations)
        or "auto" (the default: the shortest schedule of these and of sizes between).
    strategy : str
        Divide the equations of motion by the strategies of Schäfer and Schiehlen instead (with `import
        bellcrank.papers`), as in "modules+factorisation": subsystems, modules, factorisation.
    control : str
        The control law that goes with the strategy.
    progress : callable, bool or None
        Function of the share of the search that is done, False for silence, True or None for a bar on a terminal.
    assignment : ProcessorAssignment, str or Path, optional
        Processors for the parts of the equations of motion, or a TOML file with them. Its machine and kind hold unless
        `machine` and `kind` are given.

    Returns
    -------
    Schedule
        The tasks of each processor with their times.

    Raises
    ------
    InputError
        If a name or a combination of options is not valid.
    """
    request = Request(quantity, method, frame)
    if assignment is not None:
        if level or strategy or control != "none":
            raise InputError("assignment= has its own tasks and control law; leave out level=, strategy=, control=.")
        return assigned_schedule(what, request, assignment, machine, kind).schedule
    return method_schedule(
        what, request, machine, kind, level, strategy, control, projection=projection, progress=progress
    ).schedule


def assigned_schedule(
    what: Mechanism | Graph,
    request: Request,
    assignment: ProcessorAssignment | str | Path,
    machine: str | Machine = "",
    kind: str = "",
) -> MethodSchedule:
    """Return the schedule of the equations of motion on assigned processors.

    Parameters
    ----------
    what
        The mechanism.
    request
        The quantity: forward dynamics without options.
    assignment
        The assignment, or its file.
    machine, kind
        As in `schedule`; they replace those of the assignment.
    """
    from bellcrank.build import processor_assignment, subsystem_tasks  # a feature that few calls need

    if isinstance(assignment, str | Path):
        assignment = processor_assignment.read_assignment(assignment)
    if not isinstance(assignment, processor_assignment.ProcessorAssignment):
        raise InputError(f"assignment is {brief(assignment)}; expected a ProcessorAssignment, or the name of its file.")
    if isinstance(what, Graph) or (request.quantity, request.method) != ("forward_dynamics", "auto"):
        raise InputError(
            "an assignment divides the forward dynamics of a mechanism; got "
            + ("a graph." if isinstance(what, Graph) else f"{request.quantity} by {request.method}.")
        )
    target_machine = _checked_machine(machine or assignment.machine, kind or assignment.kind, what.nv)
    return MethodSchedule("assigned processors", subsystem_tasks.assigned_schedule(what, assignment, target_machine))


def method_schedule(
    what: Mechanism | Graph,
    request: Request,
    machine: str | Machine = "",
    kind: str = "",
    level: str = "",
    strategy: str = "",
    control: str = "none",
    *,
    projection: str = "",
    progress: Any = False,
) -> MethodSchedule:
    """Return the schedule together with the method that it follows, and the candidates of a search.

    Parameters
    ----------
    what
        The mechanism or the graph.
    request
        The quantity and its options.
    machine, kind, level, strategy, control, projection, progress
        As in `schedule`.
    """
    machine_name, numbers = _split_machine_name(machine) if isinstance(machine, str) and machine else ("", None)
    if strategy or machine_name in PROGRAMS:
        return _special_schedule(what, request, machine, kind, level, strategy, control)
    if control != "none":
        raise InputError(f'control="{control}" needs strategy=..., such as strategy="modules".')
    if projection and (isinstance(what, Graph) or request.method == "auto"):
        raise InputError(f'projection="{projection}" needs a method that has it, such as method="vcrb_parallel".')
    if isinstance(what, Mechanism) and request.method == "auto" and not _is_kernel_machine(machine, machine_name):
        target_machine = _checked_machine(machine or "complete", kind, what.nv)
        return _searched_schedule(what, request, target_machine, level, progress)
    if isinstance(what, Graph):
        method_name, graph, freedoms = "", what, max((shape[0] for shape in what.inputs.values() if shape), default=1)
    else:
        chosen_method, graph = _choose_graph(what, request, machine_name, numbers, kind, projection)
        method_name, freedoms = ", ".join(filter(None, (chosen_method.name, projection))), what.nv
    if machine_name == "gpu":
        return MethodSchedule(method_name, _gpu_schedule(graph, numbers, kind))
    target_machine = _checked_machine(machine or "complete", kind, freedoms)
    return MethodSchedule(method_name, _graph_schedule(graph, target_machine, level))


def _graph_schedule(graph: Graph, machine: Machine, level: str) -> Schedule:
    if _is_threads(machine):
        from bellcrank.emit.cores.target import Cores

        target = Cores(machine)
        return target.schedule(graph.divided(*target.segments))
    if not (isinstance(graph, Recursion) and list_scheduling.is_place_scheduled(graph, machine)):
        _warn_if_long(graph)
    return list_scheduling.schedule(graph, machine, level or "auto")


def _is_kernel_machine(machine: str | Machine, machine_name: str) -> bool:
    """Return whether the schedule on a machine is that of a kernel, which chooses its method itself."""
    return machine_name in KERNEL_MACHINES or (isinstance(machine, Machine) and _is_threads(machine))


def _is_threads(machine: Machine) -> bool:
    return machine.name.startswith("threads(")


def _special_schedule(
    what: Mechanism | Graph,
    request: Request,
    machine: str | Machine,
    kind: str,
    level: str,
    strategy: str,
    control: str,
) -> MethodSchedule:
    """Return the schedule of a machine with its own program, or of the strategies of Schäfer and Schiehlen."""
    machine_name, numbers = _split_machine_name(machine) if isinstance(machine, str) and machine else ("", None)
    option_text = "a strategy" if strategy else f'machine "{machine_name}"'
    if isinstance(what, Graph):
        raise InputError(f"{option_text} needs a mechanism; got a graph.")
    if (request.quantity, request.method, level) != ("forward_dynamics", "auto", ""):
        raise InputError(
            f"{option_text} has its own equations and tasks: forward dynamics only, without method= and level=."
        )
    if strategy:
        return _strategy_schedule(what, strategy, control, machine, kind)
    return PROGRAMS[machine_name](what, numbers or "", kind)


def _searched_schedule(
    what: Mechanism, request: Request, machine: Machine, level: str, progress: Any
) -> MethodSchedule:
    from bellcrank.build.schedule_search import search

    result = search(what, request, machine, level or "auto", progress)
    return MethodSchedule(result.winner.name, result.schedule, result.candidates)


def _warn_if_long(graph: Graph) -> None:
    """Warn where scheduling will take long."""
    operations = graph.count().arithmetic
    if (seconds := OPERATION_SECONDS * operations) > WARNING_SECONDS:
        warn(
            f"{graph.name}: {operations:,} operations are scheduled one by one, which takes about {seconds / 60:.0f} "
            "minutes. Identical bodies are scheduled body by body, in seconds, on every machine but a warp."
        )


def _choose_graph(
    what: Mechanism, request: Request, machine_name: str, numbers: str | None, kind: str, projection: str
) -> tuple[Method, Graph]:
    """Return the method and the graph of a kernel; on several cores long branches are divided."""
    if projection:
        strategy = graphs.checked_strategy(what, request)
        by = strategy.plans[0].method
        plan = replace(strategy.plans[0], method=by.projected(projection))
        return by, graphs.flat_graph(graphs.trace_plan(what, request, plan))
    if machine_name == "threads":
        from bellcrank.emit.cores.target import Cores

        cores = Cores(_threads_machine(numbers, kind))
        strategy = graphs.checked_strategy(what, request, cores=True)
        if wide := graphs.wide_graph(what, strategy, lambda g: uses_several_cores(g, cores)):
            return wide
    return graphs.choose_graph(what, request, _default_target(machine_name).choose)


def _default_target(machine: str) -> Target:
    if machine == "gpu":
        from bellcrank.emit.cuda.target import Cuda

        return Cuda()
    from bellcrank.emit.cpu.target import Cpu

    return Cpu()


def _gpu_schedule(graph: Graph, numbers: str | None, kind: str) -> Schedule:
    from bellcrank.emit.cuda.batch_kernel import BatchKernelText  # imported here because it loads a compiler
    from bellcrank.emit.cuda.occupancy import STATES_PER_BLOCK
    from bellcrank.emit.cuda.team import team_schedule

    if kind:
        raise InputError(f'machine "gpu" has costs measured on a GPU; leave out kind "{kind}".')
    if numbers is not None and numbers.strip() not in map(str, STATES_PER_BLOCK):
        sizes = ", ".join(f"gpu:{k}" for k in STATES_PER_BLOCK)
        raise InputError(f'machine "gpu:{numbers}": expected {sizes}, or gpu for the fastest by prediction.')
    batch = BatchKernelText(graph, members=int(numbers or 0))
    return team_schedule(graph.name, batch.units, batch.plan.team)


def _strategy_schedule(m: Mechanism, strategy: str, control: str, machine: str | Machine, kind: str) -> MethodSchedule:
    """Return the best schedule by strategies; by default on three transputers, as in the paper."""
    names = [name.strip() for name in re.split(r"[+,]", strategy)]
    for name in names:
        check_known("strategy", name, CUTS, advice=_papers_hint(bool(CUTS)))
    target_machine = _checked_machine(machine or "complete:3", kind or "t800", m.nv)
    schedules = [list_schedule(tasks, target_machine) for tasks in CUTS[names[0]](m, names, control)]
    return MethodSchedule(" + ".join(names), min(schedules, key=lambda s: s.makespan))


def _papers_hint(known: bool) -> str:
    """Return a hint where the machines and strategies of the papers are not imported."""
    return "" if known else " `import bellcrank.papers` adds those of the papers."


def _checked_machine(requested_machine: str | Machine, kind: str, freedoms: int) -> Machine:
    if isinstance(requested_machine, Machine):
        return requested_machine
    if not isinstance(requested_machine, str):
        raise InputError(f'machine is {requested_machine!r}; expected a name such as "complete:2", or a Machine.')
    return machine(requested_machine, kind, freedoms)
