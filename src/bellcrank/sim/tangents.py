"""Linearisation kernels: derivatives of the rate, or of a step, along admissible displacements.

One kernel computes the derivative in one direction of y and inputs (the jvp of the traced graph) and runs over all
directions and points as lanes: its code is three times that of the rate for any number of directions. The coordinates z
of a displacement are those of independent joints (along v: a quaternion has three), then velocities, then all of x:

    q = q0 (+) xi,   dxi/dt = N^+ (d(N v) - dN xi),   dq/dt = N v,   N^+ N = 1

d(N v) is the change of the rate by the displacement, dN the change of N along the motion of the point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.build.compiling import CPU, of_graph
from bellcrank.build.stages import Where
from bellcrank.dynamics import kinematics
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node, trace
from bellcrank.integrate import Integrator
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.columns import Columns
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.operating_point import Point

Array = np.ndarray[Any, Any]
ROOM = 100_000  # numbers in one argument of a kernel call, so that they stay in the cache
WIDE = 100_000_000  # numbers in one argument of a kernel call on a GPU


@dataclass(frozen=True, eq=False)
class Slopes:
    """Values and derivatives by z and by the inputs at each point."""

    rate: Array  # dz/dt, (points, n); empty for a step
    seen: Array  # outputs, (points, outputs)
    by: Array  # derivatives of the rate, or of z after the step, (points, directions, n)
    seen_by: Array  # derivatives of the outputs, (points, directions, outputs)
    moved: Array  # displacements of all joints, along v, (points, directions, nv)


@dataclass(frozen=True, eq=False)
class Tangents:
    """Linearisation kernels of one system for one choice of independent coordinates."""

    by: Dynamics
    inputs: tuple[tuple[str, int], ...]  # further directions: elements of u and of p
    outputs: tuple[str, ...]
    integrator: Integrator | None = None  # to linearise a step; None: the rate
    where: Where = CPU

    def __post_init__(self) -> None:
        if getattr(self.by, "nonholonomic", False):
            raise InputError(
                f'"{self.by.system.mechanism.name}" rolls without slip, or glides on a blade: with such nonholonomic '
                "constraints its positions and velocities have no common set of independent coordinates. Simulate it, "
                "or replace the constraint by a compliant contact (bellcrank.forces.Contact), and linearise that."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the elements of z."""
        s, v = self.by.system, self.by.system.mechanism.columns[1]
        moving = [v[i] for i in self.by.independent]
        return (*(f"{n}.q" for n in moving), *(f"{n}.v" for n in moving), *(x.name for x in s.states))

    @cached_property
    def graph(self) -> Graph:
        """Return the graph that is differentiated: state, rate (or state after a step), and outputs."""
        by, method = self.by, self.integrator

        def parts(t: Scalar, y: Any, u: Any = (), h: Scalar = 0.0) -> dict[str, Any]:
            now = by.determined(list(y))
            found: dict[str, Any] = {"state": now}
            if self.outputs:
                columns = Columns(by.system, by.accelerations, t, now, u)
                found["seen"] = [columns[name] for name in self.outputs]
            if method is None:
                return found | {"after": by.rate(t, now, u)}
            problem = by.problem(u, h)
            memory = list(method.begin(problem, t, now, h)) if method.memory(problem) else []
            return found | {"after": by.rejoined(method.step(problem, t, now, h, memory).y)}

        shapes = by.arguments | ({"h": ()} if method else {})
        return by.trace(f"{method.name}.tangents" if method else "tangents", parts, shapes)

    @cached_property
    def _kernel(self) -> Any:
        moving = {"y": None} | {key: None for key, _ in self.inputs}
        return of_graph(self.graph.jvp(list(moving)), self.where)

    @cached_property
    def _turning(self) -> Any:
        """Return a kernel (q, xi, dq) -> change of N xi along dq; None if N is constant."""
        m = self.by.system.mechanism
        shapes = {"q": (m.nq,), "xi": (m.nv,)}
        found = trace("turning", lambda q, xi: {"dq": kinematics.rate(m.tree, q, xi)}, shapes).jvp(["q"])
        answers = found.outputs["d_dq"]
        if not any(isinstance(x, Node) for x in answers.flat):
            return None
        return of_graph(Graph("turning", found.inputs, {"turn": answers}, found.tape))

    def __call__(self, at: Point, h: float = 0.0) -> Slopes:
        """Return values and derivatives at all points `at`, with the step `h`."""
        room = WIDE if self.where.target == "cuda" else ROOM * self.where.threads
        some = max(1, room // (self.by.size * max(1, len(self.names) + len(self.inputs))))
        parts = [
            self._some(at.y[k : k + some], at.u[k : k + some], at.p[k : k + some], at.t[k : k + some], h)
            for k in range(0, len(at.y), some)
        ]
        return Slopes(*(np.concatenate([getattr(x, name) for x in parts]) for name in Slopes.__annotations__))

    def _some(self, y: Array, u: Array, p: Array, t: Array, h: float) -> Slopes:
        s, m, free = self.by.system, self.by.system.mechanism, self.by.independent
        n, k, every = len(self.names), len(free), len(self.names) + len(self.inputs)
        N = motions(m, y[:, : m.nq])
        d: dict[str, Array] = {"y": np.zeros((len(y), every, self.by.size))}
        d["y"][:, :k, : m.nq] = N[:, free]
        for j, i in enumerate([*(m.nq + i for i in free), *range(m.nq + m.nv, s.size)], k):
            d["y"][:, j, i] = 1.0
        given: dict[str, Array] = {"t": t[:, None], "y": y[:, None], "u": u[:, None], "p": p[:, None], "h": np.array(h)}
        for j, (key, i) in enumerate(self.inputs, n):
            d.setdefault(key, np.zeros((every, given[key].shape[-1])))[j, i] = 1.0
        wanted = {key: x for key, x in given.items() if key in self.graph.inputs}
        with np.errstate(all="ignore"):
            found = self._kernel(**wanted, **{f"d_{key}": x for key, x in d.items()})
        state, after, d_after = (found[key] for key in ("state", "after", "d_after"))
        moved = displacement(N[:, None], found["d_state"][..., : m.nq])
        if self.integrator is None:
            turn = self._turn(y, moved)
            shift = displacement(N[:, None], d_after[..., : m.nq] - turn)
            speed = state[:, 0, m.nq :][:, free]
            rate = np.concatenate([speed, after[:, 0, m.nq :][:, self._rest]], axis=-1)
        else:
            shift = displacement(motions(m, after[:, 0, : m.nq])[:, None], d_after[..., : m.nq])
            rate = np.zeros((len(y), 0))
        answers = np.concatenate([shift[..., free], d_after[..., m.nq :][..., self._rest]], axis=-1)
        seen, seen_by = (found[key] if self.outputs else np.zeros((len(y), every, 0)) for key in ("seen", "d_seen"))
        return Slopes(rate, seen[:, 0], answers, seen_by, moved)

    @property
    def _rest(self) -> list[int]:
        """Return the indices, after q, of independent velocities and x."""
        nv, nx = self.by.system.mechanism.nv, self.by.system.nx
        return [*self.by.independent, *range(nv, nv + nx)]

    def _turn(self, y: Array, moved: Array) -> Array:
        """Return dN xi along the motion of each point."""
        m = self.by.system.mechanism
        q, v = y[:, : m.nq], y[:, m.nq : m.nq + m.nv]
        if self._turning is None or not v.any():
            return np.zeros((*moved.shape[:-1], m.nq))
        along = np.einsum("rv,rvq->rq", v, motions(m, q))
        found: Array = self._turning(q=q[:, None], xi=moved, d_q=along[:, None])
        return found


def motions(m: Mechanism, q: Array) -> Array:
    """Return N of the mechanism `m` at each `q`, one row for each element of v, (..., nv, nq)."""
    found = np.zeros((*q.shape[:-1], m.nv, m.nq))
    for link in m.tree.links:
        own = [q[..., i] for i in link.q_index]
        for i in link.v_index if link.joint.mimic is None else ():
            unit = [1.0 if j == i else 0.0 for j in link.v_index]
            for k, x in zip(link.q_index, link.kind.rate(own, unit), strict=True):
                found[..., i, k] = x
    return found


def displacement(N: Array, dq: Array) -> Array:
    """Return xi of `dq` = `N` xi; the rows of N that belong to a joint are orthogonal."""
    return np.asarray(np.einsum("...vq,...q->...v", N / (N * N).sum(axis=-1, keepdims=True), dq))
