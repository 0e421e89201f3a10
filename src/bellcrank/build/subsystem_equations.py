"""Equations of motion of subsystems in parts, by module and subsystem (Schäfer 1992, sections 2 and 3).

The parts are those of subsystem_tasks.py; the mathematics is in dynamics/historical/subsystems.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bellcrank.build.processor_assignment import ProcessorAssignment
from bellcrank.dynamics.historical import newton_euler_symbolic
from bellcrank.dynamics.historical.control_laws import CONTROL_LAWS
from bellcrank.dynamics.historical.free_bodies import applied_forces, place_bodies
from bellcrank.dynamics.historical.newton_euler_symbolic import coriolis
from bellcrank.dynamics.historical.subsystems import (
    CoupledRow,
    CutTree,
    LocalVector,
    PlacedSubsystems,
    inner,
    total,
)
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.rank import LoopRank, RedundancyGroup, solve_multipliers
from bellcrank.dynamics.ltl_factorisation import Rows, coordinate_names, factorise, solve
from bellcrank.dynamics.tree_sweeps import Vector, passive_torque
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar, step

Part = tuple[str, str]  # module, subsystem


@dataclass
class Equations:
    """Values of each part of the equations, in the order in which later parts need earlier ones."""

    first: dict[Part, list[Scalar]] = field(default_factory=dict)  # parts that only need the inputs
    later: dict[Part, list[Scalar]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)


# -- equations


def subsystem_equations(
    m: Mechanism, assignment: ProcessorAssignment, q: Vector, v: Vector, w: Vector, rank: LoopRank | None = None
) -> Equations:
    """Return the equations of motion in parts; scalars may be numbers or symbols.

    Parameters
    ----------
    m
        Mechanism.
    assignment
        Subsystems, coupling and control law.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    w
        Joint forces, or desired coordinates of the control law.
    rank
        Rank of the loop equations, if there are loops.
    """
    tree, (members, names) = m.tree, assignment.members(m)
    whole = PlacedSubsystems(CutTree(tree, members), place_bodies(tree, q, v), q)
    out = Equations()
    kbar, qbar = coriolis(tree, whole.bodies, v), applied_forces(tree, q, whole.bodies)
    k = [whole.projected(s, kbar, "k") for s in range(len(names))]
    qa = [whole.projected(s, qbar, "q") for s in range(len(names))]
    drives, u = passive_torque(tree, q, v), CONTROL_LAWS[assignment.control](tree, q, v, w)
    out.first |= {("drives", ""): list(drives), ("u", ""): list(u)}
    loops = rank.select(loop_equations(tree, q, v)) if rank else []
    forces = [a + b for a, b in zip(drives, u, strict=True)]
    couple = _coupled_by_forces if assignment.coupling == "forces" else _coupled_by_coordinates
    ydd = couple(out, whole, names, (k, qa, forces), loops, rank or LoopRank())
    out.later["end", ""] = ydd
    out.outputs["forward_dynamics"] = ydd
    if "reactions" in assignment.processors:
        out.outputs["reactions"] = newton_euler_symbolic.reactions(tree, q, v, u)
        out.first["reactions", ""] = [x for row in out.outputs["reactions"] for x in row]
    return out


def _coupled_by_coordinates(
    out: Equations, whole: PlacedSubsystems, names: Sequence[str], terms: Any, loops: Any, rank: LoopRank
) -> list[Scalar]:
    """Return the accelerations by the global equations (6): sums of the projected ones of the subsystems."""
    (k, qa, forces), nv = terms, whole.tree.nv
    inertias = [whole.coupled_inertia(s) for s in range(len(names))]
    k, qa = ([whole.coupled_force(f) for f in local] for local in (k, qa))
    _note_local(out, names, inertias, k, qa)
    step("M")
    M: Rows = [{} for _ in range(nv)]
    for (i, j), x in (item for inertia in inertias for item in inertia.items()):
        M[i][j] = M[i].get(j, 0.0) + x
    joints = coordinate_names(whole.tree)
    out.later["L", ""] = _factors(M, joints)
    step("q - k")
    b = [f + total(x.get(i, 0.0) for x in qa) - total(x.get(i, 0.0) for x in k) for i, f in enumerate(forces)]
    free = solve(M, b, joints)
    if not loops:
        return free
    out.first["C", ""] = [x for e in loops for x in (*e.row.values(), e.bias)]
    moves = [solve(M, [e.row.get(i, 0.0) for i in range(nv)], joints) for e in loops]
    return _closed_loops(out, free, moves, loops, rank)


def _closed_loops(
    out: Equations, free: Sequence[Scalar], moves: Sequence[Sequence[Scalar]], loops: Any, rank: LoopRank
) -> list[Scalar]:
    """Return the accelerations with the forces of the loops, from those without and the responses to unit forces."""
    step("N")
    missing = [-e.bias - total(x * free[i] for i, x in e.row.items()) for e in loops]

    def product(i: int, j: int) -> Scalar:
        return total(x * moves[j][c] for c, x in loops[i].row.items())

    g = solve_multipliers(rank, product, missing).values
    out.later["g", ""] = g
    step("ydd")
    return [x + total(y * move[i] for y, move in zip(g, moves, strict=True)) for i, x in enumerate(free)]


def _note_local(out: Equations, names: Sequence[str], inertias: Any, k: Any, qa: Any) -> None:
    """Note the values of M, k and q of every subsystem."""
    for name, *values in zip(names, inertias, k, qa, strict=True):
        out.first |= {(module, name): list(x.values()) for module, x in zip(("M", "k", "q"), values, strict=True)}


def _factors(M: Rows, names: Sequence[str]) -> list[Scalar]:
    """Return all numbers of the factors of `M`; a later solution finds them on the tape."""
    L, D, inverse_D = factorise(M, names)
    return [*(x for row in L for x in row.values()), *D, *inverse_D]


def _coupled_by_forces(
    out: Equations, whole: PlacedSubsystems, names: Sequence[str], terms: Any, loops: Any, rank: LoopRank
) -> list[Scalar]:
    """Return the accelerations by the local equations (9), each solved alone, and the forces between them (7)."""
    (k, qa, forces), count = terms, range(len(names))
    rows = _coupling_rows(whole, loops)
    if rows:
        elements = [x for row in rows for part in row.parts.values() for x in part.values()]
        out.first["C", ""] = [*elements, *(row.rate for row in rows)]
    inertias = [whole.inertia(s) for s in count]
    _note_local(out, names, inertias, k, qa)
    driven = whole.generalised(dict(enumerate(forces)))
    X = [{n: whole.solved(s, inertias[s], row.parts[s]) for n, row in enumerate(rows) if s in row.parts} for s in count]
    for s, name in enumerate(names):
        responses = [x for move in X[s].values() for x in move.values()]
        out.later["L", name] = [*_factors(*whole.triangle(s, inertias[s])), *responses]
    free = []
    for s, name in enumerate(names):
        step("q - k", name)
        f, local_q, local_k = driven.get(s, {}), qa[s], k[s]
        right = {key: f.get(key, 0.0) + local_q.get(key, 0.0) - local_k.get(key, 0.0) for key in whole.cut.keys(s)}
        free.append(whole.solved(s, inertias[s], right))
        out.later["a", name] = list(free[-1].values())
    moved = _held_together(out, rows, X, free, _with_cuts(rank, len(rows) - len(loops))) if rows else free
    return [total(inner(part, moved[s]) for s, part in unit.items()) for unit in whole.coordinate_forces]


def _coupling_rows(whole: PlacedSubsystems, loops: Any) -> list[CoupledRow]:
    """Return the equations of the cut joints, and then those of the loops."""
    cuts = [CoupledRow(whole.shares(row.T), 0.0, row.E) for row in whole.cut_rows[0]] if whole.cut.cuts else []
    return [*cuts, *(CoupledRow(whole.generalised(e.row), -e.bias) for e in loops)]


def _held_together(
    out: Equations, rows: Sequence[CoupledRow], X: Any, free: Sequence[LocalVector], rank: LoopRank
) -> list[LocalVector]:
    """Return the accelerations of the subsystems with the forces g at cuts and loops.

    Parameters
    ----------
    out
        Receives g.
    rows
        Equations that couple the subsystems.
    X
        Response of each subsystem to a unit force of each row.
    free
        Accelerations without these forces.
    rank
        Rank of the equations.
    """
    step("N")

    def product(i: int, j: int) -> Scalar:
        common = [s for s in rows[i].parts if s in rows[j].parts]
        return total(inner(rows[i].parts[s], X[s][j]) for s in common) + (rows[i].compliance if i == j else 0.0)

    missing = [row.rate - total(inner(part, free[s]) for s, part in row.parts.items()) for row in rows]
    g = solve_multipliers(rank, product, missing).values
    out.later["g", ""] = g
    step("ydd")
    return [
        {key: x + total(g[n] * move[key] for n, move in responses.items()) for key, x in local.items()}
        for local, responses in zip(free, X, strict=True)
    ]


def _with_cuts(rank: LoopRank, cuts: int) -> LoopRank:
    """Return the rank of the equations of cut joints, which are independent, followed by those of loops."""
    groups = tuple(RedundancyGroup(tuple(k + cuts for k in group.places), group.rank) for group in rank.groups)
    scale, loop = (1.0,) * cuts + rank.scale, tuple(-k - 1 for k in range(cuts)) + rank.loop
    return LoopRank(tuple(range(cuts + len(rank.rows))), groups, scale, loop)
