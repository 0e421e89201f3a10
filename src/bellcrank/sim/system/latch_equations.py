"""Equations of latches: joints that exist where their state `active` is 1 (Wong 1991, sections 1.1.1 and 6.4.3).

A latch adds the rows J of its joint to the equations of motion, on top of the tree, its loops and prescribed motions:

    J a = -bias - 2 k rate - k^2 value,    s = 1 for the rows of an active latch, else 0
    N = S J W J^T S                        W: response of the accelerations to generalised forces, loops closed

so that one compiled program serves all states: with S = 0 the rows vanish. N is singular then, and also where a latch
is over-constrained, as in a planar mechanism. With its diagonal scaled to 1, the multipliers z follow from the proximal
iteration (J. Carpentier, R. Budhiraja and N. Mansard, Proximal and sparse resolution of constrained dynamic equations,
Robotics: Science and Systems, 2021), which converges for every right side that N can reach:

    (N + mu 1)(z' - z) = r - N z

Closing is an impulse of the joint: the velocity changes by W J^T z with J v' = 0, which is the projection by the mass
matrix, so that momentum is conserved and kinetic energy is lost. Opening changes no velocity.

The joint is made at frame b, where it is at that moment. Its pose in frame a is part of the state, so that the
equations are zero when it closes. Errors of integration decay at the rate k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.frame_pairs import Equation, frame_pair
from bellcrank.dynamics.loops.constrained_dynamics import sparse_inner
from bellcrank.dynamics.loops.constraint_equations import equation_families, loop_equations
from bellcrank.dynamics.loops.loop_layer import loop_wrenches
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.errors import InputError
from bellcrank.forces.latch import ACTIVE, Latch, LatchAction
from bellcrank.integrate.implicit import lu_factors
from bellcrank.model import Loop, Mechanism, Tree
from bellcrank.model.parts import EQUATIONS
from bellcrank.record.contents import COMPONENTS
from bellcrank.scalar import Scalar, is_zero, maximum, sqrt, step, where
from bellcrank.sim.run_arguments import check_known
from bellcrank.spatial.vector import Mat, vec

Vector = Sequence[Scalar]
Array = np.ndarray[Any, Any]
STABILISATION_GAIN = 20.0  # 1/s, k: errors of integration decay at this rate
PROXIMAL_WEIGHT = 1e-7  # mu, of rows that are scaled to 1
PROXIMAL_STEPS = 4  # the error of a row with the scaled stiffness n is (mu/(n + mu))^PROXIMAL_STEPS
NEGLIGIBLE_ROW = 1e-10  # inertia of a row, relative to those of its latch in the same unit, that is rounding
MAX_GAP = 1e-3  # m, or 1 for directions: largest gap of a closed latch at the end of a run
START_GAP = 1e-6  # m, or 1 for directions: largest gap of a latch that is closed at the start


def checked_latches(mechanism: Mechanism, latches: Sequence[Latch]) -> tuple[Latch, ...]:
    """Return `latches`, or raise an InputError for one that `mechanism` cannot have."""
    for e in latches:
        where_it_is = f'Latch "{e.name}" of "{mechanism.name}"'
        check_known(where_it_is, "frame", (e.a, e.b), mechanism.frames)
        if mechanism.frames[e.a].body == mechanism.frames[e.b].body:
            raise InputError(f'{where_it_is}: "{e.a}" and "{e.b}" are on one body, which is rigid.')
    return tuple(latches)


def latch_columns(latches: Sequence[Latch]) -> dict[str, str]:
    """Return the record columns of `latches` with their units: the wrench on frame b, and two zeros as of elements."""
    shown = {**{c: "N" if c[0] == "f" else "N m" for c in COMPONENTS}, "energy": "J", "loss": "W"}
    return {f"{e.name}.{key}": unit for e in latches for key, unit in shown.items()}


@dataclass(frozen=True)
class LatchRows:
    """Equations of all latches of a system in one state."""

    tree: Tree  # with the latches as its only loops, and the places where they closed as frames
    equations: list[Equation]
    flags: list[Scalar]  # s, by equation
    families: list[list[int]]  # equations of one latch in one unit
    counts: list[int]  # equations of each latch

    def wrenches(self, lam: Vector, q: Vector, v: Vector) -> list[tuple[str, list[Scalar]]]:
        """Return the wrenches of multipliers `lam` at `q` and `v`, on frames b and a in turn, in world axes."""
        return loop_wrenches(self.tree, LoopRank(rows=tuple(range(len(self.equations)))), lam, q, v)


def latch_rows(
    mechanism: Mechanism, latches: Sequence[Latch], q: Vector, v: Vector, x: Mapping[str, Scalar]
) -> LatchRows:
    """Return the equations of latches.

    Parameters
    ----------
    mechanism
        The mechanism.
    latches
        The latches.
    q, v
        Positions and velocities.
    x
        States of the latches by name.
    """
    tree = latched_tree(mechanism.tree, latches, x)
    equations = loop_equations(tree, q, v)
    counts = [EQUATIONS[e.kind] for e in latches]
    flags = [_flag(e, x) for e, n in zip(latches, counts, strict=True) for _ in range(n)]
    families = [rows for rows, _ in equation_families(tree)]
    return LatchRows(tree, equations, flags, families, counts)


def _flag(e: Latch, x: Mapping[str, Scalar]) -> Scalar:
    return where(x[f"{e.name}.{ACTIVE}"] > 0.5, 1.0, 0.0)


def latched_tree(tree: Tree, latches: Sequence[Latch], x: Mapping[str, Scalar]) -> Tree:
    """Return `tree` with `latches` as its only loops, from frame b to the place in `x` where each of them closed."""
    frames, loops = dict(tree.frames), list[Loop]()
    for e in latches:
        place, x_axis, y_axis = (
            vec([x[f"{e.name}.{part}{axis}"] for axis in "xyz"]) for part in ("", "x", "y")
        )  # fmt: skip
        body, R, p = tree.frames[e.a]
        turn = Mat(x_axis, y_axis, x_axis.cross(y_axis)).T  # its columns are the axes
        frames[f"{e.name}.place"] = body, R.times(turn), p + R @ place
        loops.append(Loop(e.name, e.kind, f"{e.name}.place", e.b))
    return replace(tree, frames=frames, loops=tuple(loops), springs=())


# -- closing and opening


def switched_states(
    mechanism: Mechanism, latches: Sequence[Latch], action: LatchAction, q: Vector, x: Mapping[str, Scalar]
) -> dict[str, Scalar]:
    """Return the states that an action changes, by name.

    Parameters
    ----------
    mechanism
        The mechanism.
    latches
        Its latches.
    action
        What happens to them.
    q
        Positions.
    x
        States by name.
    """
    if not latches:
        raise InputError("attach and release: the system has no latch; add one, elements=[bc.forces.Latch(...)].")
    check_known("attach and release", "latch", action.names, [e.name for e in latches])
    changed: dict[str, Scalar] = {}
    for e in latches:
        if action.names and e.name not in action.names:
            continue
        changed[f"{e.name}.{ACTIVE}"] = 1.0 if action.closes else 0.0
        if action.closes:
            is_open = x[f"{e.name}.{ACTIVE}"] < 0.5  # a closed one keeps its place
            for name, value in _place(mechanism.tree, e, q).items():
                changed[name] = where(is_open, value, x[name])
    return changed


def commanded_states(
    mechanism: Mechanism, latches: Sequence[Latch], wanted: Vector, q: Vector, x: Mapping[str, Scalar]
) -> tuple[dict[str, Scalar], Scalar]:
    """Return the states of latches with commands, by name, and 1 if one of them closes now, else 0.

    Parameters
    ----------
    mechanism
        The mechanism.
    latches
        The latches.
    wanted
        Value of the command of each: positive where it is to be closed.
    q
        Positions.
    x
        States by name.
    """
    changed, closes = dict[str, Scalar](), 0.0
    for e, command in zip(latches, wanted, strict=True):
        closed = switched_states(mechanism, (e,), LatchAction((e.name,), True), q, x)
        changed |= {name: where(command > 0.0, value, x[name]) for name, value in closed.items()}
        changed[f"{e.name}.{ACTIVE}"] = where(command > 0.0, 1.0, 0.0)
        closes = where(command > 0.0, where(x[f"{e.name}.{ACTIVE}"] < 0.5, 1.0, closes), closes)
    return changed, closes


def _place(tree: Tree, e: Latch, q: Vector) -> dict[str, Scalar]:
    """Return the origin and the x and y axes of frame b in frame a, by the names of the states."""
    a, b = frame_pair(tree, e.a, e.b, q, None)
    R, p = a.R.T.times(b.R).T, a.R.T @ (b.p - a.p)
    parts = {"": p, "x": R.a, "y": R.b}
    return {f"{e.name}.{of}{axis}": y for of, three in parts.items() for axis, y in zip("xyz", three, strict=True)}


def check_latch_starts(mechanism: Mechanism, latches: Sequence[Latch], names: Sequence[str], y: Array) -> None:
    """Raise an InputError if a latch that is closed at the start does not meet there, or moves apart.

    Parameters
    ----------
    mechanism
        The mechanism.
    latches
        Its latches.
    names
        Names of the further states.
    y
        Starts, (runs, size).
    """
    m = mechanism.at() if mechanism.parameters else mechanism
    for k, state in enumerate(y):
        run = f" (run {k})" if len(y) > 1 else ""
        for name, gap, speed in latch_gaps(m, latches, names, state):
            if max(gap, speed) > START_GAP:
                raise InputError(
                    f'latch "{name}" is closed at the start{run}, but its frames are {gap:.3g} apart (m, or 1 for '
                    f"directions) and move apart with {speed:.3g} per second; expected at most {START_GAP:g}. Start "
                    "where they meet, or let an event close it (bc.attach)."
                )


def latch_gaps(
    mechanism: Mechanism, latches: Sequence[Latch], names: Sequence[str], y: Array
) -> list[tuple[str, float, float]]:
    """Return name, largest gap and largest speed of the gap of each latch that is closed in a state.

    Parameters
    ----------
    mechanism
        The mechanism without free parameters.
    latches
        Its latches.
    names
        Names of the further states.
    y
        State, (size,).
    """
    q, v = y[: mechanism.nq].tolist(), y[mechanism.nq : mechanism.nq + mechanism.nv].tolist()
    x = dict(zip(names, y[mechanism.nq + mechanism.nv :].tolist(), strict=False))
    rows, found, first = latch_rows(mechanism, latches, q, v, x), list[tuple[str, float, float]](), 0
    for e, n in zip(latches, rows.counts, strict=True):
        own = rows.equations[first : first + n]
        if rows.flags[first] > 0.5:
            found.append((e.name, max(abs(z.value) for z in own), max(abs(z.rate) for z in own)))
        first += n
    return found


# -- the linear system of rows that are switched


def switched_multipliers(
    rows: Sequence[Mapping[int, Scalar]],
    responses: Sequence[Vector],
    flags: Vector,
    families: Sequence[Sequence[int]],
    right: Vector,
) -> list[Scalar]:
    """Return the multipliers z of rows with J W J^T z = right; zero for rows that are switched off.

    Parameters
    ----------
    rows
        J, by rows.
    responses
        W J^T, by columns.
    flags
        1 for each row that is switched on, else 0.
    families
        Sets of rows with one unit, which together decide what is rounding.
    right
        Right side.
    """
    step("switched rows")
    n = len(rows)
    diagonal = [sparse_inner(row, move) for row, move in zip(rows, responses, strict=True)]
    size: list[Scalar] = [1.0] * n
    for family in families:
        largest: Scalar = 1e-300
        for k in family:
            largest = maximum(largest, diagonal[k])
        for k in family:
            counts = diagonal[k] > NEGLIGIBLE_ROW * largest
            size[k] = where(counts, flags[k] / sqrt(where(counts, diagonal[k], 1.0)), 0.0)
    N = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            x = sparse_inner(rows[i], responses[j])
            N[i][j] = N[j][i] = x if is_zero(x) else x * (size[i] * size[j])
    r = [x * k for x, k in zip(right, size, strict=True)]
    factors = lu_factors([[x + PROXIMAL_WEIGHT if i == j else x for j, x in enumerate(row)] for i, row in enumerate(N)])
    z = factors.solve(r)
    for _ in range(PROXIMAL_STEPS - 1):
        missing = [b - sparse_inner(dict(enumerate(row)), z) for b, row in zip(r, N, strict=True)]
        z = [a + b for a, b in zip(z, factors.solve(missing), strict=True)]
    return [x * k for x, k in zip(z, size, strict=True)]


def impulse(rows: LatchRows, response: Callable[[Vector], Vector], v: Vector) -> list[Scalar]:
    """Return the velocity after the impulses that active latches need, which is the projection by the mass matrix.

    Parameters
    ----------
    rows
        Equations of the latches.
    response
        Function that returns the change of the velocity by a generalised impulse.
    v
        Velocity before.
    """
    sparse = [e.row for e in rows.equations]
    moves = [response([row.get(k, 0.0) for k in range(len(v))]) for row in sparse]
    right = [-sparse_inner(row, v) for row in sparse]
    z = switched_multipliers(sparse, moves, rows.flags, rows.families, right)
    out = list(v)
    for x, move in zip(z, moves, strict=True):
        out = [a + x * b for a, b in zip(out, move, strict=True)]
    return out
