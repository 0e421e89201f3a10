"""Arguments of bc.export as graphs by name and a Stepper, from which every format is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bellcrank.build import graphs
from bellcrank.build.kernels import columns
from bellcrank.build.stages import Where
from bellcrank.dynamics.requests import Request, check
from bellcrank.emit.c.stepper import Stepper
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cpu.target import Cpu
from bellcrank.errors import InputError, brief
from bellcrank.exporting import costs
from bellcrank.graph import Graph, Program
from bellcrank.model import Mechanism
from bellcrank.quoting import shown
from bellcrank.sim.amounts import duration, positive
from bellcrank.sim.arguments import listed
from bellcrank.sim.arguments import state as start_state
from bellcrank.sim.events import Event
from bellcrank.sim.sampling import checked as check_samples
from bellcrank.sim.settings import STEP, TOLERANCE, Solver, changed, chooses_steps
from bellcrank.sim.simulator import Simulator
from bellcrank.sim.single_precision import check_counts
from bellcrank.sim.stiff_damping import check_damping
from bellcrank.sim.stiff_elements import check_steps
from bellcrank.sim.systems import System, system

FUNCTION = re.compile(r"(?P<name>\w+)(\((?P<frame>.+)\))?")
DERIVATIVE = re.compile(r"d\((?P<of>.+)\)/d\((?P<wrt>\w+)\)")

# Advice if that takes long.
WRITTEN_OUT = (
    "A Jacobian is written out element by element: take fewer bodies, or compute it from an FMU's directional "
    "derivatives, which are loops over alike bodies (docs/export.md)."
)
MOST_DERIVATIVES = 8  # occurrences of "d(" in a name, two for each order


def silent(text: str) -> None:
    """Ignore the progress message `text`."""


@dataclass(frozen=True, eq=False)
class Export:
    """Content of an export: its name, its functions, and the stepper if it is a machine that takes steps."""

    name: str
    graphs: Mapping[str, Graph]
    stepper: Stepper | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of the elements of arrays


def export_of(
    thing: Any,
    functions: Sequence[Any],
    name: str,
    solver: Solver,
    events: Sequence[Event] = (),
    dtype: str = "float64",
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
    """
    m = mechanism_of(thing)
    one = isinstance(functions, str | Graph | Kernel)
    wanted = [functions] if one else listed("functions", functions, "names of quantities, graphs or kernels")
    made = {word: graph for f in wanted for word, graph in [function(m, f)]}
    if len(made) < len(wanted):
        raise InputError("functions: two of them have one name; give one of them another: Graph(name, ...).")
    if isinstance(thing, Graph | Kernel | list | tuple):
        own = dict(function(m, g) for g in (thing if isinstance(thing, list | tuple) else [thing]))
        if not own:
            raise InputError("there is nothing to export: the list of graphs is empty.")
        return Export(name or next(iter(own)), own | made)
    if isinstance(thing, Mechanism) and made:
        return Export(name or thing.name, made, columns=columns(thing))
    how = changed(thing.solver, said(solver)) if isinstance(thing, Simulator) else solver
    program = program_of(thing, how, events, dtype)
    step = STEP if how.step is None else duration("step", how.step)
    found = name or (m.name if m is not None else program.tick.name.partition(".")[0])
    made_of = TOLERANCE if how.tolerance is None else positive("tolerance", how.tolerance, "")
    return Export(found, made, Stepper(program, step, made_of), columns(m) if m is not None else {})


def said(solver: Solver) -> dict[str, Any]:
    """Return the settings of `solver` that differ from the defaults."""
    return {f.name: x for f in fields(solver) if (x := getattr(solver, f.name)) != f.default}


def mechanism_of(thing: Any) -> Mechanism | None:
    """Return the mechanism of `thing`, or None."""
    if isinstance(thing, Simulator):
        thing = thing.system
    return thing.mechanism if isinstance(thing, System) else thing if isinstance(thing, Mechanism) else None


def program_of(thing: Any, solver: Solver, events: Sequence[Event], dtype: str) -> Program:
    """Return `thing` as the program of a machine that takes steps, with `solver` settings, `events` and `dtype`."""
    if isinstance(thing, Program):
        thing.check_counters(dtype)
        return thing
    if isinstance(thing, Mechanism):
        thing = driven(thing)
    if isinstance(thing, System):
        thing = Simulator(thing, solver=solver, events=events, where=Where(dtype=dtype))
    if not isinstance(thing, Simulator):
        raise InputError(
            f"export: got {brief(thing)}; expected a Graph or a Kernel (or a list of them), a Mechanism, a System, a "
            "Simulator or a Program."
        )
    adaptive = solver.tolerance is not None and chooses_steps(thing.integrator, solver)
    watched = adaptive or bool(thing.events)
    h = STEP if solver.step is None else solver.step
    check_samples(thing.system, h, watched)
    check_counts(thing.system, h, dtype)
    if not adaptive:
        check_steps(thing.system, thing.integrator, h, start_state(thing.system, None, None, None))
        check_damping(thing.system, thing.dynamics.implicit, thing.integrator, h)
    return thing.whole((adaptive, True) if watched else None, dtype)


def driven(m: Mechanism) -> System:
    """Return the mechanism `m` as a system with a force on every joint as its inputs, "elbow.effort"."""
    names = {f"{name}.effort": 0.0 for name in m.columns[1]}
    return system(m, control=_passed_on, inputs=names)


def _passed_on(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
    return list(u)


def function(m: Mechanism | None, asked: Any, calls: bool = True) -> tuple[str, Graph]:
    """Return the name and the graph of a function.

    Parameters
    ----------
    m
        Mechanism that names of quantities refer to.
    asked
        A graph, a kernel, or a quantity, as in "pose(tool0)" and "d(forward_dynamics)/d(q)".
    calls
        Allow calls to other graphs, as large mechanisms have them.
    """
    if isinstance(asked, Kernel):
        asked = asked.graph
    if isinstance(asked, Graph):
        return asked.name.removeprefix(f"{m.name}." if m is not None else ""), asked
    if not isinstance(asked, str):
        raise InputError(f"functions: got {brief(asked)}; expected the name of a quantity, a Graph or a Kernel.")
    if m is None:
        raise InputError(f'functions: "{asked}" is a quantity of a mechanism, but no mechanism is given; give a Graph.')
    if asked.count("d(") > MOST_DERIVATIVES:
        raise InputError(
            f"functions: {shown(asked)} is a derivative of order {asked.count('d(') // 2} or so; that is too high."
        )
    if found := DERIVATIVE.fullmatch(asked):
        name, graph = function(m, found["of"], calls=False)
        of = next(iter(graph.shapes))
        costs.announce(f"export of {shown(asked)}", costs.jacobian(graph, of, [found["wrt"]]), WRITTEN_OUT)
        return f"d{name}_d{found['wrt']}", graph.jacobian(of, found["wrt"])
    found = FUNCTION.fullmatch(asked)
    if found is None:
        raise InputError(
            f'functions: "{asked}" is not a quantity; expected "mass_matrix", "pose(tool0)" or "d(bias)/d(q)".'
        )
    request = Request(found["name"], frame=found["frame"] or "")
    check(m, request)
    _, graph = graphs.chosen(m, request, Cpu("float64").choose, calls)
    return "_".join(filter(None, (found["name"], found["frame"]))), graph
