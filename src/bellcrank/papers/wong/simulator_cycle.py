"""One cycle of Wong's simulator on the mesh: tasks 1 to 7 of table 5.1, with the state distributed over row 0.

    1   torque and pressure rates of actuator i, on (0, i)
    2-5 force vector, inertia matrix and solution, as in processor_assignment.py; the solution leaves cell (0, 1)
    6   acceleration i travels from (0, 1) to (0, i)
    7   (0, i) advances y_i = [dtheta_i, theta_i, p_in, p_out] by a stage of Runge and Kutta; theta_i goes to (1, i)

The state is in the memory of its processor: all others know only what messages bring. The four stages are (5.1)

    y_t = y + h/2 k_1;   y_t = y + h/2 k_2;   y_t = y + h k_3, k_m = k_2 + k_3;   y = y + h/6 (k_1 + k_4 + 2 k_m)

Difference from the thesis: our cycle sends theta at its beginning instead of its end, so that each stage is a schedule
of its own, and a stage begins when the one before it has ended on all processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from bellcrank.actuators import RotaryHydraulics
from bellcrank.graph import Graph, Node
from bellcrank.model import Mechanism
from bellcrank.papers.wong import atom_programs
from bellcrank.papers.wong.atom_programs import Atom, MeshProgram
from bellcrank.papers.wong.mesh_bodies import MeshArm, arm_of, symbols_of
from bellcrank.papers.wong.mesh_schedule import Mesh
from bellcrank.papers.wong.processor_assignment import tree_equations, write_program
from bellcrank.scalar import Scalar
from bellcrank.scheduling import Schedule, Tasks, fixed_order_schedule
from bellcrank.scheduling.machines import cone, cone_cells, machine_of_kind

STAGES = 4
ROWS = ("v", "q", "p_in", "p_out")  # the state of a link, in the order of y
MEMORY = {1: (), 2: ("k1",), 3: ("k1", "k2"), 4: ("k1", "km")}  # derivatives that a stage finds in its memory


@dataclass(frozen=True)
class OpenedHydraulics(RotaryHydraulics):
    """A rotary hydraulic actuator whose command is the opening of the spool, cm."""

    def spool(self, command: Scalar) -> Scalar:
        """Return the opening `command`."""
        return command


@dataclass(frozen=True, eq=False)
class Cycle:
    """Program of one stage on the mesh, with the inputs that each processor of row 0 owns."""

    mesh: Mesh
    owned: tuple[tuple[Node, ...], ...]  # by link, without theta

    @cached_property
    def tasks(self) -> tuple[Tasks, tuple[int, ...]]:
        """Tasks, and the processor of each."""
        todo, where = self.mesh.tasks
        tasks = []
        for task in todo:
            name, _, rest = task.name.partition("[")
            if name == "state":
                values = self.owned[int(rest.rstrip("]")) - 1]
                task = replace(task, values=values, gives=len(values), owns_inputs=True)
            tasks.append(replace(task, owns_inputs=True) if name == "theta" else task)
        return replace(todo, tasks=tuple(tasks)), where

    def schedule(self, kind: str = "t800") -> Schedule:
        """Return the schedule on transputers of a `kind`."""
        todo, where = self.tasks
        return fixed_order_schedule(todo, machine_of_kind(self.mesh.topology, kind), where)


def cycle(mechanism: Mechanism, drives: Sequence[RotaryHydraulics], stage: int, h: float, passed: bool = True) -> Cycle:
    """Return the program of a stage.

    Parameters
    ----------
    mechanism
        Chain of revolute joints.
    drives
        Actuator of each joint, in order.
    stage
        1 to 4.
    h
        Time step, s.
    passed
        If True, rho x c is sent north, as for `mesh`.
    """
    tape = atom_programs.ProcessorTape()
    n = len(mechanism.tree.links)
    names = (
        "p_in",
        "p_out",
        "x",
        *(f"y.{row}" for row in ROWS),
        *(f"{k}.{row}" for k in MEMORY[stage] for row in ROWS),
    )
    inputs: dict[str, tuple[int, ...]] = dict.fromkeys(("q", "v", *names), (n,))
    values = {name: tape.inputs(name, shape) for name, shape in inputs.items()}
    torques: dict[int, Scalar] = {}
    plain = arm_of(mechanism, symbols_of(tape, mechanism, driven=True))
    bodies = tuple(
        replace(b, axes=(replace(b.axes[0], force=partial(torques.__getitem__, b.number)),)) for b in plain.bodies
    )
    arm = MeshArm(f"{mechanism.name}, stage {stage}", bodies, plain.gravity, plain.ground_motion, 0.0, inputs)
    program = write_program(arm, passed=passed)
    for i in range(1, n + 1):
        _add_state(program, i, values, drives[i - 1], torques)
        _add_stage(program, i, values, stage, h)
    traced = atom_programs.trace_program(tape, program)
    results = [f"{name}.{row}" for name in _results(stage) for row in ROWS]
    outputs = {name: np.array([traced.values[f"{name}[{i}]"] for i in range(1, n + 1)], dtype=object)
               for name in results}  # fmt: skip
    scalars = {
        name: tuple(x for x in atom_programs.scalars_of(value) if isinstance(x, Node))
        for name, value in traced.values.items()
    }
    graph = Graph(arm.name, inputs, outputs, traced.tape)
    symbols = {name: traced.tape.inputs(name, shape) for name, shape in inputs.items()}
    owned = tuple(tuple(symbols[name][i] for name in inputs if name != "q") for i in range(n))
    return Cycle(Mesh(arm, program, cone(n), tuple(cone_cells(n)), graph, traced.nodes, scalars), owned)


def _results(stage: int) -> tuple[str, ...]:
    """Return the names of the results of a stage: the next state, and the derivative that is kept."""
    return ("next",) if stage == STAGES else ("next", {1: "k1", 2: "k2", 3: "km"}[stage])


def _add_state(p: MeshProgram, i: int, values: Any, drive: RotaryHydraulics, torques: dict[int, Scalar]) -> None:
    """Put the state and task 1 before the program of (0, i), and the arrival of theta before that of (1, i)."""
    cpu, k = (0, i), i - 1
    q, v, p_in, p_out, x = (values[name][k] for name in ("q", "v", "p_in", "p_out", "x"))

    def actuate() -> tuple[Scalar, ...]:
        tau, rates = drive(0.0, q, v, [p_in, p_out], x)
        torques[i] = tau
        return (*rates, tau)

    p.atoms[cpu][:0] = [
        Atom(cpu, (f"state[{i}]",), (), lambda: 0.0),
        Atom(cpu, (f"theta[{i}]",), (), lambda: q),
        Atom(cpu, (f"dp_in[{i}]", f"dp_out[{i}]", f"tau[{i}]"), (), actuate),
    ]
    p.add_route(f"theta[{i}]", [cpu, (1, i)])
    row_1 = p.atoms[1, i]
    place = next(n for n, atom in enumerate(row_1) if atom.name == f"A'[{i}]")
    rotation: Callable[..., Any] = row_1[place].function
    row_1[place] = replace(row_1[place], operands=(f"theta[{i}]",), function=lambda _: rotation())


def _add_stage(p: MeshProgram, i: int, values: Any, stage: int, h: float) -> None:
    """Append tasks 6 and 7 to the program of (0, i)."""
    cpu, k, ydd = (0, i), i - 1, tree_equations(p.arm, {}).solution_names[i - 1]
    p.add_route(ydd, [(0, column) for column in range(1, i + 1)])
    base = [values[f"y.{row}"][k] for row in ROWS]
    kept = {name: [values[f"{name}.{row}"][k] for row in ROWS] for name in MEMORY[stage]}

    def advance(acceleration: Scalar, dp_in: Scalar, dp_out: Scalar) -> tuple[Scalar, ...]:
        rate = [acceleration, values["v"][k], dp_in, dp_out]
        if stage == STAGES:
            total = [a + b + 2.0 * c for a, b, c in zip(kept["k1"], rate, kept["km"], strict=True)]
            return tuple(y + h / 6.0 * d for y, d in zip(base, total, strict=True))
        step = h if stage == 3 else h / 2.0
        after = [y + step * d for y, d in zip(base, rate, strict=True)]
        keep = [a + b for a, b in zip(kept["k2"], rate, strict=True)] if stage == 3 else rate
        return (*after, *keep)

    results = " ".join(f"{name}.{row}[{i}]" for name in _results(stage) for row in ROWS)
    p.append(cpu, results, (ydd, f"dp_in[{i}]", f"dp_out[{i}]"), advance)
