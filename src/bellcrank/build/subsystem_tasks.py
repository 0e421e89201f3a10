"""Tasks of the equations of motion of subsystems, and their schedule on the assigned processors (Schäfer 1992).

    M s, k s, q s   inertia matrix, Coriolis and applied forces of subsystem s (9); projected by I_s (10) where
                    coordinates couple the subsystems
    drives, u       springs, dampers and friction of the joints; the control law
    C               equations of the loops, and of the cut joints where forces couple the subsystems
    L, L s          factors of the inertia matrix: of the sum, or of each subsystem with its response to forces
    a s             accelerations of subsystem s without the forces at its cuts (8)
    g               forces at cuts and loops (7)
    end             accelerations
    reactions       forces and moments that all joints transmit (7), independent of the accelerations

Modules of the first three rows compute what they share again ("copied"), or get it from module J ("sent"). The later
ones receive all that others compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.build.processor_assignment import ProcessorAssignment
from bellcrank.build.subsystem_equations import Equations, Part, subsystem_equations
from bellcrank.dynamics.historical.free_bodies import place_bodies
from bellcrank.dynamics.historical.subsystems import (
    CutTree,
    PlacedSubsystems,
)
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node
from bellcrank.graph.graph import trace
from bellcrank.model import Mechanism
from bellcrank.model.tree import Tree
from bellcrank.parameters import nominal
from bellcrank.quoting import quoted_name
from bellcrank.scalar import Scalar
from bellcrank.scheduling import Machine, Schedule, Task, Tasks
from bellcrank.scheduling.placement import Placement, Plan

MIN_RELATIVE_EIGENVALUE = 1e-12  # of the inertia matrix of a subsystem with unit diagonal
STATE_INPUTS = ("q", "v")
NodesBySerial = dict[int, Node]


def assigned_schedule(m: Mechanism, assignment: ProcessorAssignment, on: Machine) -> Schedule:
    """Return the schedule of the forward dynamics of a mechanism on the assigned processors.

    Parameters
    ----------
    m
        Mechanism.
    assignment
        The assignment.
    on
        The machine.
    """
    for key, p in assignment.processors.items():
        if p >= on.processors:
            raise InputError(
                f"assignment: the processor of {quoted_name(key)} is {p}; {on.name} has {on.processors}, from 0 to "
                f"{on.processors - 1}. Choose another processor, or a larger machine."
            )
    _check_mechanism(m, assignment)
    todo, where = assigned_tasks(m, assignment)
    return Placement(Plan(todo, on)).run(range(len(todo)), where)


def _check_mechanism(m: Mechanism, assignment: ProcessorAssignment) -> None:
    tree, (members, names) = m.tree, assignment.members(m)
    name = quoted_name(m.name)
    if tree.flexible:
        raise InputError(f"assignment: {name} has flexible bodies; the equations of subsystems are for rigid ones.")
    if assignment.control != "none" and tree.nq != tree.nv:
        raise InputError(
            f"assignment: control law {quoted_name(assignment.control)} needs one coordinate for each velocity; {name} "
            f'has {tree.nq} for {tree.nv}. Expected control = "none", with joint forces as inputs.'
        )
    if "reactions" in assignment.processors and (m.loops or tree.coupled):
        raise InputError(f"assignment: {name} has loops or shared coordinates; reactions are for trees without them.")
    if assignment.coupling == "forces":
        if tree.coupled:
            raise InputError(f'assignment: {name} has shared coordinates, which need coupling = "coordinates".')
        _check_inertias(tree, CutTree(tree, members), names, m)


def _check_inertias(tree: Tree, cut: CutTree, names: Sequence[str], m: Mechanism) -> None:
    """Raise InputError if a subsystem can move without inertia, so that its local equations have no solution."""
    q = [float(x) for x in m.random(0)[0]]
    tree = nominal(tree)
    plain = PlacedSubsystems(CutTree(tree, cut.members), place_bodies(tree, q), q)
    for s, name in enumerate(names):
        order = {key: n for n, key in enumerate(cut.keys(s))}
        M = np.zeros((len(order), len(order)))
        for (a, b), x in plain.inertia(s).items():
            M[order[a], order[b]] = M[order[b], order[a]] = float(x)
        size = np.sqrt(np.diag(M))
        scaled = M / np.outer(size, size) if (size > 0.0).all() else np.zeros((1, 1))
        if not np.linalg.eigvalsh(scaled)[0] > MIN_RELATIVE_EIGENVALUE:
            raise InputError(
                f"assignment: subsystem {quoted_name(name)} can move without inertia once it is cut off, so that its "
                'equations have no solution of their own. Cut elsewhere, or use coupling = "coordinates".'
            )


def assigned_tasks(m: Mechanism, assignment: ProcessorAssignment) -> tuple[Tasks, list[int]]:
    """Return the tasks of the equations of motion in topological order, and the processor of each.

    Parameters
    ----------
    m
        Mechanism.
    assignment
        The assignment.
    """
    tree, kept = m.tree, list[Equations]()
    rank = analysis(m).rank if m.loops else None
    force = "tau" if assignment.control == "none" else "w"

    def motion(q: Vector, v: Vector, **driven: Vector) -> dict[str, Any]:
        kept.append(subsystem_equations(m, assignment, q, v, driven[force], rank))
        return kept[0].outputs

    g = trace(f"{m.name}.forward_dynamics", motion, {"q": (tree.nq,), "v": (tree.nv,), force: (tree.nv,)}, m.parameters)
    parts = _node_sets(kept[0], assignment.shared)
    where = {part: assignment.processor(*part) for part in parts}
    return _tasks(f"{m.name} on assigned processors", parts, where, g, assignment.processors.get("state"))


def _closure(values: Sequence[Scalar], without: set[int]) -> NodesBySerial:
    """Return all operations that `values` depend on, except those in `without`."""
    nodes: NodesBySerial = {}
    todo = [x for x in values if isinstance(x, Node)]
    while todo:
        n = todo.pop()
        if n.op != "input" and n.serial not in nodes and n.serial not in without:
            nodes[n.serial] = n
            todo += n.operands
    return nodes


def _node_sets(equations: Equations, shared: str) -> dict[Part, NodesBySerial]:
    """Return the operations of every part that has some."""
    parts = {part: _closure(values, set()) for part, values in equations.first.items()}
    if shared == "sent":
        uses: dict[int, int] = {}
        for serial in (serial for nodes in parts.values() for serial in nodes):
            uses[serial] = uses.get(serial, 0) + 1
        common = {s: n for nodes in parts.values() for s, n in nodes.items() if uses[s] > 1}
        own = {part: {s: n for s, n in nodes.items() if s not in common} for part, nodes in parts.items()}
        parts = {("J", ""): common} | own
    done = {serial for nodes in parts.values() for serial in nodes}
    for part, values in equations.later.items():
        parts[part] = _closure(values, done)
        done |= parts[part].keys()
    return {part: nodes for part, nodes in parts.items() if nodes}


@dataclass
class _Groups:
    """Operations of each task, with its name and its processor."""

    names: list[str] = field(default_factory=list)
    on: list[int] = field(default_factory=list)
    nodes: list[list[Node]] = field(default_factory=list)

    def append(self, name: str, p: int, nodes: list[Node]) -> None:
        self.names.append(name)
        self.on.append(p)
        self.nodes.append(nodes)

    def computed_on(self, p: int) -> set[int]:
        """Return the operations that processor `p` has, by serial number."""
        return {n.serial for q, group in zip(self.on, self.nodes, strict=True) if q == p for n in group}

    def operands(self, i: int) -> list[Node]:
        """Return the operands of task i that it does not compute itself."""
        own = {n.serial for n in self.nodes[i]}
        return [a for n in self.nodes[i] for a in n.operands if a.serial not in own]


def _tasks(
    name: str, parts: Mapping[Part, NodesBySerial], where: Mapping[Part, int], g: Graph, state: int | None
) -> tuple[Tasks, list[int]]:
    """Return tasks and their processors; a processor computes nothing twice."""
    groups = _Groups()
    if state is not None:
        groups.append("state", state, [])
    for part, nodes in parts.items():
        known = groups.computed_on(where[part])
        if own := [nodes[s] for s in sorted(nodes) if s not in known]:
            groups.append(" ".join(filter(None, part)), where[part], own)
    needs = _operands_by_maker(groups, state is not None)
    given: dict[int, dict[int, Node]] = {}
    for maker, received in (item for need in needs for item in need.items()):
        given.setdefault(maker, {}).update(received)
    tasks = []
    for i, own in enumerate(groups.nodes):
        counts = {j: len(received) for j, received in sorted(needs[i].items())}
        values = tuple(x for _, x in sorted(given.get(i, {}).items()))
        tasks.append(Task(i, groups.names[i], tuple(own), counts, len(values), values, state is not None and i == 0))
    return Tasks(name, "strategy", tuple(tasks), g), groups.on


def _operands_by_maker(groups: _Groups, with_state: bool) -> list[dict[int, dict[int, Node]]]:
    """Return what each task needs from each other: values of its own processor first, and the state from task 0."""
    makers: dict[int, list[int]] = {}
    for i, group in enumerate(groups.nodes):
        for n in group:
            makers.setdefault(n.serial, []).append(i)
    needs: list[dict[int, dict[int, Node]]] = [{} for _ in groups.nodes]
    for i, p in enumerate(groups.on):
        for a in groups.operands(i):
            if a.op != "input":
                maker = next((j for j in makers[a.serial] if groups.on[j] == p), makers[a.serial][0])
                needs[i].setdefault(maker, {})[a.serial] = a
            elif with_state and a.args[0] in STATE_INPUTS:
                needs[i].setdefault(0, {})[a.serial] = a
    return needs
