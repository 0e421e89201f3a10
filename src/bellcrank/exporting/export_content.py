"""Arguments of bc.export as graphs by name and an ExportedProgram, from which every format is written.

Costs are estimated from sizes alone before an export begins, so that long ones are announced. Rates are those of one
core (build/compile_time_forecast.py) and include a C compiler; they are meant to be right within a factor of two or
three.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bellcrank.buffers import free_memory
from bellcrank.build import compile_time_forecast as forecasts
from bellcrank.build import graphs
from bellcrank.build.compilation import Where
from bellcrank.build.kernels import column_names
from bellcrank.build.policy import check_request
from bellcrank.cockpit.machines import inputs_as_forces
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cpu.target import Cpu
from bellcrank.errors import InputError, brief, warn
from bellcrank.graph import Graph, Program
from bellcrank.model import Mechanism
from bellcrank.quoting import quoted_name
from bellcrank.sim.program.events import Event
from bellcrank.sim.program.step_limits import check_counts, check_fixed_steps
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import as_tuple, duration, positive
from bellcrank.sim.run_arguments import initial_state as start_state
from bellcrank.sim.settings import DEFAULT_STEP_S, DEFAULT_TOLERANCE, Solver, has_adaptive_steps, with_shortcuts
from bellcrank.sim.system.sampling import check_sampling as check_samples
from bellcrank.sim.system.systems import System, system

FUNCTION = re.compile(r"(?P<name>\w+)(\((?P<frame>.+)\))?")
DERIVATIVE = re.compile(r"d\((?P<of>.+)\)/d\((?P<wrt>\w+)\)")

# Advice if that takes long.
JACOBIAN_REMEDY = (
    "A Jacobian is written out element by element: take fewer bodies, or compute it from an FMU's directional "
    "derivatives, which are loops over alike bodies (docs/export.md)."
)
MAX_DERIVATIVE_MARKS = 8  # occurrences of "d(" in a name, two for each order
JACOBIAN_ENTRY_COST = 0.7  # share of the graph's operations per row or column of a Jacobian, whichever are fewer
# Operations in units of those of the rates: rates, outputs, a step, directional derivatives and adjoints. Measured: 4 s
# for a ring of twelve bodies (forecast 6 s), 49 s for Stewart's platform (forecast 32 s).
FMU_COST_FACTOR = 14.0


def ignore_progress(text: str) -> None:
    """Ignore the progress message `text`."""


@dataclass(frozen=True, eq=False)
class Export:
    """Content of an export: its name, its functions, and the stepper if it is a machine that takes steps."""

    name: str
    graphs: Mapping[str, Graph]
    stepper: ExportedProgram | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of the elements of arrays


def export_content(
    thing: Any,
    functions: Sequence[Any],
    name: str,
    solver: Solver,
    events: Sequence[Event] = (),
    dtype: str = "float64",
    has_start: bool = False,
) -> Export:
    """Return the content of an export.

    Parameters
    ----------
    thing
        A Graph, a Kernel or several; a Mechanism with `functions` of it; or a Mechanism, System, Simulator or
        Program as a machine that takes steps, with `functions` beside it.
    functions
        Names of quantities, graphs or kernels.
    name
        Name of the export, or "" for the default.
    solver
        Solver settings of a machine.
    events
        Events of a machine.
    dtype
        Floating-point type of a machine.
    has_start
        The machine begins in a start of its own. Else a state of rest with bodies inside each other is a warning.
    """
    m = mechanism_in(thing)
    is_single = isinstance(functions, str | Graph | Kernel)
    wanted = [functions] if is_single else as_tuple("functions", functions, "names of quantities, graphs or kernels")
    extra_graphs = {word: graph for f in wanted for word, graph in [named_graph(m, f)]}
    if len(extra_graphs) < len(wanted):
        raise InputError("functions: two of them have one name; give one of them another: Graph(name, ...).")
    if isinstance(thing, Graph | Kernel | list | tuple):
        own_graphs = dict(named_graph(m, g) for g in (thing if isinstance(thing, list | tuple) else [thing]))
        if not own_graphs:
            raise InputError("there is nothing to export: the list of graphs is empty.")
        return Export(name or next(iter(own_graphs)), own_graphs | extra_graphs)
    if isinstance(thing, Mechanism) and extra_graphs:
        return Export(name or thing.name, extra_graphs, columns=column_names(thing))
    settings = with_shortcuts(thing.solver, changed_settings(solver)) if isinstance(thing, Simulator) else solver
    program = stepping_program(thing, settings, events, dtype, has_start)
    step = DEFAULT_STEP_S if settings.step is None else duration("step", settings.step)
    export_name = name or (m.name if m is not None else program.tick.name.partition(".")[0])
    tolerance = DEFAULT_TOLERANCE if settings.tolerance is None else positive("tolerance", settings.tolerance, "")
    columns = column_names(m) if m is not None else {}
    return Export(export_name, extra_graphs, ExportedProgram(program, step, tolerance), columns)


def changed_settings(solver: Solver) -> dict[str, Any]:
    """Return the settings of `solver` that differ from the defaults."""
    return {f.name: x for f in fields(solver) if (x := getattr(solver, f.name)) != f.default}


def mechanism_in(thing: Any) -> Mechanism | None:
    """Return the mechanism of `thing`, or None."""
    if isinstance(thing, Simulator):
        thing = thing.system
    return thing.mechanism if isinstance(thing, System) else thing if isinstance(thing, Mechanism) else None


def stepping_program(
    thing: Any, solver: Solver, events: Sequence[Event], dtype: str, has_start: bool = False
) -> Program:
    """Return `thing` as the program of a machine that takes steps.

    Parameters
    ----------
    thing, solver, events, dtype, has_start
        As in `export_content`.
    """
    if isinstance(thing, Program):
        thing.check_counters(dtype)
        return thing
    if isinstance(thing, Mechanism):
        thing = effort_driven(thing)
    if isinstance(thing, System):
        thing = Simulator(thing, solver=solver, events=events, where=Where(dtype=dtype))
    if not isinstance(thing, Simulator):
        raise InputError(
            f"export: got {brief(thing)}; expected a Graph or a Kernel (or a list of them), a Mechanism, a System, a "
            "Simulator or a Program."
        )
    adaptive = solver.tolerance is not None and has_adaptive_steps(thing.integrator, solver)
    watched = adaptive or bool(thing.events)
    h = DEFAULT_STEP_S if solver.step is None else solver.step
    check_samples(thing.system, h, watched)
    check_counts(thing.system, h, dtype)
    if not adaptive:
        check_fixed_steps(thing.dynamics, thing.integrator, h, start_state(thing.system, None, None, None))
    if not has_start:
        _warn_of_rest(thing)
    return thing.self_contained_program((adaptive, True) if watched else None, dtype)


def _warn_of_rest(simulator: Simulator) -> None:
    """Warn if the state of rest, in which an exported machine begins, is no possible start."""
    try:
        simulator.dynamics.check_starts(simulator.dynamics.ports.rest[None], "state of rest")
    except InputError as error:
        warn(f"export: {error} An exported machine begins in the state of rest: set another state before its steps.")


def effort_driven(m: Mechanism) -> System:
    """Return the mechanism `m` as a system with a force on every joint as its inputs, "elbow.effort"."""
    names = {f"{name}.effort": 0.0 for name in m.columns[1]}
    return system(m, control=inputs_as_forces, inputs=names)


def named_graph(m: Mechanism | None, quantity: Any, calls: bool = True) -> tuple[str, Graph]:
    """Return the name and the graph of a function.

    Parameters
    ----------
    m
        Mechanism that names of quantities refer to.
    quantity
        A graph, a kernel, or a quantity, as in "pose(tool0)" and "d(forward_dynamics)/d(q)".
    calls
        Allow calls to other graphs, as large mechanisms have them.
    """
    if isinstance(quantity, Kernel):
        quantity = quantity.graph
    if isinstance(quantity, Graph):
        return quantity.name.removeprefix(f"{m.name}." if m is not None else ""), quantity
    if not isinstance(quantity, str):
        raise InputError(f"functions: got {brief(quantity)}; expected the name of a quantity, a Graph or a Kernel.")
    if m is None:
        raise InputError(
            f'functions: "{quantity}" is a quantity of a mechanism, but no mechanism is given; give a Graph.'
        )
    if quantity.count("d(") > MAX_DERIVATIVE_MARKS:
        raise InputError(
            f"functions: {quoted_name(quantity)} is a derivative of order {quantity.count('d(') // 2} or so; that is "
            "too high."
        )
    if match := DERIVATIVE.fullmatch(quantity):
        name, graph = named_graph(m, match["of"], calls=False)
        output = next(iter(graph.shapes))
        work = jacobian_operations(graph, output, [match["wrt"]])
        announce_cost(f"export of {quoted_name(quantity)}", work, JACOBIAN_REMEDY)
        return f"d{name}_d{match['wrt']}", graph.jacobian(output, match["wrt"])
    match = FUNCTION.fullmatch(quantity)
    if match is None:
        raise InputError(
            f'functions: "{quantity}" is not a quantity; expected "mass_matrix", "pose(tool0)" or "d(bias)/d(q)".'
        )
    request = Request(match["name"], frame=match["frame"] or "")
    check_request(m, request)
    _, graph = graphs.choose_graph(m, request, Cpu("float64").choose, calls)
    return "_".join(filter(None, (match["name"], match["frame"]))), graph


def jacobian_operations(graph: Graph, output: str, wrt: Iterable[str]) -> float:
    """Return the operations of the Jacobian of `output` of `graph` by the inputs `wrt`, with calls inlined."""
    rows = math.prod(graph.shapes[output])
    sizes = [math.prod(graph.inputs[x]) for x in wrt if x in graph.inputs]
    return JACOBIAN_ENTRY_COST * graph.count().arithmetic * sum(min(rows, size) for size in sizes)


def announce_cost(what: str, operations: float, remedy: str) -> None:
    """Raise an error if an export does not fit into free memory; warn if it takes minutes.

    Parameters
    ----------
    what
        Name of the export, for the message.
    operations
        Its estimated operations.
    remedy
        Advice, for the message.
    """
    seconds = (forecasts.TRACE_SECONDS + forecasts.COMPILE_SECONDS) * operations
    forecast = forecasts.Forecast(operations, seconds, forecasts.OPERATION_BYTES * operations)
    if forecast.bytes > (free := free_memory()):
        raise InputError(f"{what}: about {forecast}, but {free / 1e9:.1f} GB are free. Nothing was started. {remedy}")
    if forecast.seconds > forecasts.WARNING_SECONDS:
        warn(f"{what}: about {forecast}. {remedy}")
