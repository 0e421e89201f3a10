"""Accelerations under requirements on top of the mechanism: prescribed motions, and latches that are closed.

A requirement is a Jacobian row J with the acceleration along it, J a = c. Its multiplier is the force of a drive, or of
the joint of a latch; W is the response of the accelerations to forces, with closed loops:

    a' = a + W J^T z,   J W J^T z = c - J a
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bellcrank.dynamics.frame_pairs import JacobianRow
from bellcrank.dynamics.loops.constrained_dynamics import sparse_inner
from bellcrank.scalar import Scalar, step
from bellcrank.sim.system.element_forces import ElementResult
from bellcrank.sim.system.latch_equations import STABILISATION_GAIN, LatchRows, latch_rows, switched_multipliers
from bellcrank.sim.system.observed_columns import SolvedMotion
from bellcrank.sim.system.prescribed_motions import prescribed_rows, solve_positive_definite

if TYPE_CHECKING:
    from bellcrank.sim.system.systems import System

State = list[Scalar]
Response = Callable[[Sequence[Scalar]], Sequence[Scalar]]


@dataclass(frozen=True)
class Requirements:
    """Requirements of a system in one state: first those of prescribed motions, then those of latches."""

    system: System
    rows: list[JacobianRow]
    required: State
    drives: int  # number of prescribed motions
    latches: LatchRows | None
    motion: tuple[State, State]  # positions and velocities

    def imposed(self, a: Sequence[Scalar], response: Response) -> SolvedMotion:
        """Return the motion that satisfies the requirements.

        Parameters
        ----------
        a
            Accelerations without them.
        response
            Function that returns the change of the accelerations by a generalised force.
        """
        nv = len(self.motion[1])
        missing = [x - sparse_inner(r, a) for x, r in zip(self.required, self.rows, strict=True)]
        responses = [response(dense(r, nv)) for r in self.rows]
        step("motion")
        z = self._multipliers(responses, missing)
        total, driven = list(a), [0.0] * nv
        for x, move in zip(z, responses, strict=True):
            total = [p + x * s for p, s in zip(total, move, strict=True)]
        for x, r in zip(z[: self.drives], self.rows, strict=False):
            for k, y in r.items():
                driven[k] = driven[k] + x * y
        if self.latches is None:
            return SolvedMotion(total, z, driven)
        lam = z[self.drives :]
        wrenches = self.latches.wrenches(lam, *self.motion)
        acts = self._latch_results(self.latches, lam, wrenches)
        return SolvedMotion(total, z[: self.drives], driven, latches=acts, latch_wrenches=wrenches)

    def held(self) -> Requirements:
        """Return the requirements that accelerations along the rows do not change, for responses to further forces."""
        return replace(self, required=[0.0] * len(self.rows))

    def _multipliers(self, responses: Sequence[Sequence[Scalar]], missing: State) -> State:
        if self.latches is None:
            return solve_positive_definite([[sparse_inner(r, move) for move in responses] for r in self.rows], missing)
        n = self.drives
        flags = [*[1.0] * n, *self.latches.flags]
        families = [*([i] for i in range(n)), *([n + k for k in rows] for rows in self.latches.families)]
        return switched_multipliers(self.rows, responses, flags, families, missing)

    def _latch_results(
        self, latches: LatchRows, lam: State, wrenches: Sequence[tuple[str, list[Scalar]]]
    ) -> list[ElementResult]:
        """Return the force of each latch on the coordinates, and its wrench on frame b."""
        pairs, results = iter(zip(lam, self.rows[self.drives :], strict=True)), []
        for e, count, (_, on_b) in zip(self.system.latches, latches.counts, wrenches[::2], strict=True):
            torque: dict[int, Scalar] = {}
            for x, r in (next(pairs) for _ in range(count)):
                torque = {k: torque.get(k, 0.0) + x * r.get(k, 0.0) for k in {**torque, **r}}
            results.append(ElementResult(e, torque, [], [*on_b, 0.0, 0.0]))
        return results


def requirements(system: System, t: Scalar, y: Sequence[Scalar]) -> Requirements | None:
    """Return the requirements of prescribed motions and latches on the accelerations; None without any.

    Parameters
    ----------
    system
        The system.
    t, y
        Time and state.
    """
    if not (system.motions or system.latches):
        return None
    q, v, x = system.split(y)
    state = list(q), list(v)
    rows, required = prescribed_rows(system.mechanism, system.motions, t, *state)
    if not system.latches:
        return Requirements(system, rows, required, len(rows), None, state)
    latches, k = (
        latch_rows(system.mechanism, system.latches, *state, dict(zip(x.names, x, strict=True))),
        STABILISATION_GAIN,
    )
    wanted = [-e.bias - 2.0 * k * e.rate - k * k * e.value for e in latches.equations]
    every = [*rows, *(e.row for e in latches.equations)]
    return Requirements(system, every, [*required, *wanted], len(rows), latches, state)


def dense(row: JacobianRow, n: int) -> State:
    """Return a Jacobian `row` as a list of `n` numbers."""
    return [row.get(k, 0.0) for k in range(n)]
