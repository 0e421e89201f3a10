"""Program of the mesh, assigned to cycles, counted, and converted to a Schedule.

In a cycle every processor executes one atom, and every link carries one value: a value computed in one cycle reaches
the neighbour in the next, and is used in the cycle after that ("the one atom delay" of section 4.3). This rule and the
order of the program determine the cycle of every atom: tables 4.2, 4.3, 4.5 and 4.6 follow.

A count follows one chain of atoms through all cycles, back from the last result: the atom of the processor, or, while
it waits for a message, the atom that the sender executes meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node
from bellcrank.model import Mechanism
from bellcrank.papers.wong import atom_programs
from bellcrank.papers.wong.applied_forces import applied_forces
from bellcrank.papers.wong.atom_programs import Atom, Cost, Cpu, MeshProgram, ProcessorTape, count_cost
from bellcrank.papers.wong.closed_mesh import coordinate_processor, write_closed_program
from bellcrank.papers.wong.mesh_bodies import MeshArm, arm_of, general_arm, symbols_of
from bellcrank.papers.wong.mesh_solver import Equations
from bellcrank.papers.wong.mesh_tasks import MeshTasks
from bellcrank.papers.wong.processor_assignment import HOST, tree_equations, write_program
from bellcrank.scheduling import Schedule, Tasks, fixed_order_schedule
from bellcrank.scheduling.machines import Topology, cone_cells, grid_of_cells, machine_of_kind
from bellcrank.sim.system.systems import System
from bellcrank.text_table import Table


@dataclass(frozen=True, eq=False)
class Mesh:
    """Traced program of an arm on the mesh of processors."""

    arm: MeshArm
    program: MeshProgram
    topology: Topology
    cells: tuple[Cpu, ...]  # row and column of each processor of the topology
    graph: Graph
    nodes: Mapping[str, tuple[Node, ...]]  # nodes of an atom, by its name
    scalars: Mapping[str, tuple[Node, ...]]  # words of a value; none for constants

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.arm.n

    @cached_property
    def words(self) -> dict[str, int]:
        """Length of each value in words; 0 for constants."""
        return {value: len(scalars) for value, scalars in self.scalars.items()}

    @cached_property
    def index(self) -> dict[Cpu, int]:
        """Index of each processor in the topology."""
        return {cell: k for k, cell in enumerate(self.cells)}

    @cached_property
    def atoms(self) -> dict[str, Atom]:
        """Atoms by the names of their results."""
        return {value: atom for them in self.program.atoms.values() for atom in them for value in atom.results}

    @cached_property
    def message_routes(self) -> dict[tuple[str, Cpu], Cpu]:
        """Routes that carry messages: constants are available on every processor."""
        needed: dict[tuple[str, Cpu], Cpu] = {}
        for atoms in self.program.atoms.values():
            for atom in atoms:
                for value in atom.operands:
                    cpu = atom.cpu
                    while self.words[value] and cpu != self.atoms[value].cpu and (value, cpu) not in needed:
                        needed[value, cpu] = cpu = self._sender(value, cpu, atom)
        return needed

    def _sender(self, value: str, cpu: Cpu, atom: Atom) -> Cpu:
        if (value, cpu) not in self.program.ways:
            raise InputError(f'"{atom.name}" on {atom.cpu} takes "{value}", and nothing brings it to processor {cpu}.')
        sender = self.program.ways[value, cpu]
        if self.index[cpu] not in self.topology.neighbours[self.index[sender]]:
            raise InputError(f'"{value}" is routed from {sender} to {cpu}, which are no neighbours.')
        return sender

    # -- cycles

    @cached_property
    def arrivals(self) -> dict[tuple[str, Cpu], int]:
        """Cycle in which each value is computed on, or arrives at, a processor."""
        receivers: dict[tuple[str, Cpu], list[Cpu]] = {}
        for (value, receiver), sender in self.message_routes.items():
            receivers.setdefault((value, sender), []).append(receiver)
        cycles: dict[tuple[str, Cpu], int] = {}
        links: dict[tuple[int, int], list[tuple[str, Cpu]]] = {}  # by channel, or bus
        pending = {cpu: list(reversed(atoms)) for cpu, atoms in self.program.atoms.items()}
        cycle = 0
        while any(pending.values()):
            cycle += 1
            new_values = [queue.pop(0) for queue in links.values() if queue]
            busy = bool(new_values)
            for cpu, atoms in pending.items():
                if atoms and all(self._is_available(cycles, value, cpu, cycle) for value in atoms[-1].operands):
                    new_values += [(value, cpu) for value in atoms.pop().results]
                    busy = True
            if not busy:
                stuck = next(atoms[-1] for atoms in pending.values() if atoms)
                raise InputError(
                    f'the mesh is stuck: "{stuck.name}" on {stuck.cpu} waits for a value that never arrives.'
                )
            for value, cpu in new_values:
                cycles[value, cpu] = cycle
                for receiver in receivers.get((value, cpu), ()):
                    channel = self.topology.medium((self.index[cpu], self.index[receiver]))
                    links.setdefault(channel, []).append((value, receiver))
        return cycles

    def _is_available(self, cycles: Mapping[tuple[str, Cpu], int], value: str, cpu: Cpu, cycle: int) -> bool:
        if (value, cpu) in cycles:
            return cycles[value, cpu] < cycle
        return not self.words[value] and self.atoms[value].cpu != cpu

    @cached_property
    def table(self) -> dict[Cpu, dict[int, Atom]]:
        """Atoms by processor and cycle."""
        return {
            cpu: {self.arrivals[atom.name, cpu]: atom for atom in atoms} for cpu, atoms in self.program.atoms.items()
        }

    def cycle(self, value: str) -> int:
        """Return the cycle in which `value` is computed."""
        return self.arrivals[value, self.atoms[value].cpu]

    def cost(self, value: str) -> Cost:
        """Return the cost of the atom that computes `value`."""
        return count_cost(self.nodes[self.atoms[value].name])

    def cycles(self, row: int, until: int | None = None) -> Table:
        """Tabulate the atoms of a row by cycle, with the cost on its last processor: a table of chapter 4.

        Parameters
        ----------
        row
            Row of the mesh.
        until
            Last cycle; None for all.
        """
        columns = sorted(cpu for cpu in self.table if cpu[0] == row)
        end = max(max(self.table[cpu]) for cpu in columns) if until is None else until
        rows = []
        for cycle in range(1, end + 1):
            row_atoms = [self.table[cpu].get(cycle) for cpu in columns]
            last_cost = count_cost(self.nodes[row_atoms[-1].name]) if row_atoms[-1] else None
            rows.append((str(cycle), *(atom.name if atom else "" for atom in row_atoms), str(last_cost or "")))
        head = ("cycle", *(f"cpu {r}{k}" for r, k in columns), f"cost to {row}{self.n}")
        return Table("", head, rows, (0,))

    def chain(self, last: str) -> list[tuple[int, Cpu, Atom | None]]:
        """Return one processor for every cycle up to that of the value `last`, in the order of the cycles."""
        atom = self.atoms[last]
        cpu, steps = atom.cpu, list[tuple[int, Cpu, Atom | None]]()
        awaited: Sequence[str] = ()
        for cycle in range(self.cycle(last), 0, -1):
            operation = self.table[cpu].get(cycle)
            if operation is None:  # the processor waits: follow the sender of the late message
                late = [v for v in awaited if self.words[v] and self.arrivals[v, cpu] == cycle]
                if late:
                    cpu = self.message_routes[late[0], cpu]
                    awaited, operation = (late[0],), self.table.get(cpu, {}).get(cycle)
            steps.append((cycle, cpu, operation))
            awaited = operation.operands if operation else awaited
        return steps[::-1]

    def count(self, last: str, since: int = 1) -> Cost:
        """Count the operations of the chain that ends with a value, as the thesis does.

        Parameters
        ----------
        last
            Value at the end of the chain.
        since
            First cycle that is counted.
        """
        steps = [atom for cycle, _, atom in self.chain(last) if atom and cycle >= since]
        return sum((count_cost(self.nodes[atom.name]) for atom in steps), Cost(0, 0))

    # -- as a schedule

    @cached_property
    def tasks(self) -> tuple[Tasks, tuple[int, ...]]:
        """Tasks for atoms and for values that a processor forwards, with the processor of each task."""
        routes = self.message_routes
        of_mesh = MeshTasks(self.graph, self.program, self.atoms, self.nodes, self.scalars, routes, self.arrivals)
        return of_mesh.tasks(), tuple(self.index[cpu] for _, cpu, _, _ in of_mesh.entries)

    def schedule(self, kind: str = "t800") -> Schedule:
        """Return the schedule on transputers.

        Parameters
        ----------
        kind
            "hidden" (messages are free), "t800" (messages overlap with the computation), "explicit" (messages keep both
            ends busy, as in the thesis' own program), or any other kind of machine.
        """
        todo, processors = self.tasks
        return fixed_order_schedule(todo, machine_of_kind(self.topology, kind), processors)


def wong_mesh(what: Mechanism | System | Sequence[int] | int, kind: str = "t800") -> Schedule:
    """Return the schedule of the mesh of a mechanism.

    Parameters
    ----------
    what
        Mechanism, system, parents or number of joints, as for `mesh`.
    kind
        Kind of machine, as for `Mesh.schedule`.
    """
    return mesh(what).schedule(kind)


def mesh(
    what: Mechanism | System | Sequence[int] | int,
    *,
    balanced: bool = True,
    passed: bool = True,
    solver: bool = True,
    actuator_row: bool = False,
) -> Mesh:
    """Trace the program of the mesh.

    mesh(4) is that of tables 4.1 to 4.7; balanced=False that of 4.2 and 4.3; passed=False that of 4.13 and 4.14.

    Parameters
    ----------
    what
        Mechanism, mechanism with actuators, number of joints of a general arm, or parents of a general tree (0 is the
        ground). Loops and mimic joints have a program of their own (closed_mesh.py), without the following options.
    balanced
        If True, row 1 computes J w and J dw for row 0.
    passed
        If True, rho x c is sent north; else it is computed again on every processor that needs it.
    solver
        If True, the equations are solved on the mesh too.
    actuator_row
        If True, actuators and friction have a row of processors of their own, above row 0 (section 6.4.4).
    """
    tape = ProcessorTape()
    if not isinstance(what, Mechanism | System):
        arm = general_arm(tape, range(what) if isinstance(what, int) else what)
        equations = tree_equations(arm, {})
        written = write_program(arm, balanced, passed, solver)
        return _traced(tape, written, equations, {"a": equations.solution_names if solver else []})
    return _mechanism_mesh(tape, what, {"balanced": balanced, "passed": passed, "solver": solver}, actuator_row)


def _mechanism_mesh(
    tape: ProcessorTape, what: Mechanism | System, options: Mapping[str, bool], actuator_row: bool
) -> Mesh:
    mechanism = what if isinstance(what, Mechanism) else what.mechanism
    symbols = symbols_of(tape, mechanism, isinstance(what, System), actuator_row)
    forces = applied_forces(tape, what, symbols, actuator_row)
    if mechanism.loops or mechanism.tree.has_mimics:
        if not all(options.values()):
            raise InputError(f"{mechanism.name} has loops or mimic joints: the mesh has one program for these.")
        written, equations = write_closed_program(mechanism, symbols, forces.names)
        forces.append_to(written, lambda k: coordinate_processor(written.arm, k))
        names = [f"a[{k}]" for k in range(1, mechanism.nv + 1)]
    else:
        arm = arm_of(mechanism, symbols)
        column = {k + 1: c for c, k in enumerate(arm.coordinates, 1)}
        applied = {column[k]: names for k, names in forces.names.items()}
        written, equations = write_program(arm, **options, applied=applied), tree_equations(arm, applied)
        forces.append_to(written, lambda k: (0, column[k]))
        names = [equations.solution_names[column[k + 1] - 1] for k in range(mechanism.nv)]
    outputs = {"a": names if options["solver"] else [], "dx": forces.rates}
    return _traced(tape, written, equations, outputs)


def _traced(
    tape: ProcessorTape, written: MeshProgram, equations: Equations, names: Mapping[str, Sequence[str]]
) -> Mesh:
    """Trace a program; `names` are those of the elements of each output."""
    traced = atom_programs.trace_program(tape, written)
    outputs = {
        key: np.array([traced.values[name] for name in found], dtype=object) for key, found in names.items() if found
    }
    graph = Graph(f"{written.arm.name}.mesh", written.arm.inputs, outputs, traced.tape)
    scalars = {
        name: tuple(x for x in atom_programs.scalars_of(value) if isinstance(x, Node))
        for name, value in traced.values.items()
    }
    topology, cells = _topology(written, equations)
    return Mesh(written.arm, written, topology, tuple(cells), graph, traced.nodes, scalars)


def _topology(written: MeshProgram, equations: Equations) -> tuple[Topology, list[Cpu]]:
    """Return the processors and their connections: links to neighbours, the links of the cone, and a bus."""
    arm, n, column = written.arm, equations.n, equations.column
    used = set(written.atoms) | {cpu for route in written.ways.items() for cpu in (route[0][1], route[1])}
    name, cells = f"cone({n})", cone_cells(n)
    if equations.offset or ((n, 1) in used and n > 1):
        name, cells = f"mesh({n}, {column(n)})", [(r, k) for r in range(n + 1) for k in range(1, column(n) + 1)]
    more = sorted(used - set(cells))
    on_bus = [((r, a), (r, b)) for r in (0, 1) for a, b in arm.branches]
    on_bus += [((-1, k), (0, k)) for r, k in more if r < 0]
    cone_links = [((0, column(k)), (n + 1 - k, column(n))) for k in range(1, n)]
    name += " + host" * (HOST in used) + " + actuator row" * any(r < 0 for r, _ in used)
    return grid_of_cells(name, [*cells, *more], cone_links, on_bus), [*cells, *more]
