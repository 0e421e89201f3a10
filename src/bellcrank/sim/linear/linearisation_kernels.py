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

from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import DEFAULT_TARGET, compile_graph
from bellcrank.dynamics import kinematics
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node, trace
from bellcrank.integrate import Integrator
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.linear.operating_point import OperatingPoint
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.system.observed_columns import StateColumns

Array = np.ndarray[Any, Any]
CPU_CHUNK_NUMBERS = 100_000  # numbers in one argument of a kernel call, so that they stay in the cache
GPU_CHUNK_NUMBERS = 100_000_000  # numbers in one argument of a kernel call on a GPU


@dataclass(frozen=True, eq=False)
class PointDerivatives:
    """Values and derivatives by z and by the inputs at each point."""

    rate: Array  # dz/dt, (points, n); empty for a step
    seen: Array  # outputs, (points, outputs)
    derivatives: Array  # derivatives of the rate, or of z after the step, (points, directions, n)
    seen_derivatives: Array  # derivatives of the outputs, (points, directions, outputs)
    moved: Array  # displacements of all joints, along v, (points, directions, nv)


@dataclass(frozen=True, eq=False)
class LinearisationKernels:
    """Linearisation kernels of one system for one choice of independent coordinates."""

    dynamics: Dynamics
    inputs: tuple[tuple[str, int], ...]  # further directions: elements of u and of p
    outputs: tuple[str, ...]
    integrator: Integrator | None = None  # to linearise a step; None: the rate
    where: Where = DEFAULT_TARGET

    def __post_init__(self) -> None:
        if getattr(self.dynamics, "nonholonomic", False):
            raise InputError(
                f'"{self.dynamics.system.mechanism.name}" rolls without slip, or glides on a blade: with such '
                "nonholonomic constraints its positions and velocities have no common set of independent coordinates. "
                "Simulate it, or replace the constraint by a compliant contact (bellcrank.forces.Contact), and "
                "linearise that."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the elements of z."""
        s, v = self.dynamics.system, self.dynamics.system.mechanism.columns[1]
        moving = [v[i] for i in self.dynamics.independent]
        return (*(f"{n}.q" for n in moving), *(f"{n}.v" for n in moving), *(x.name for x in s.states))

    @cached_property
    def graph(self) -> Graph:
        """Return the graph that is differentiated: state, rate (or state after a step), and outputs."""
        dynamics, method = self.dynamics, self.integrator

        def parts(t: Scalar, y: Any, u: Any = (), h: Scalar = 0.0) -> dict[str, Any]:
            state = dynamics.consistent_state(list(y))
            outputs: dict[str, Any] = {"state": state}
            if self.outputs:
                columns = StateColumns(dynamics.system, dynamics.accelerations, t, state, u)
                outputs["seen"] = [columns[name] for name in self.outputs]
            if method is None:
                return outputs | {"after": dynamics.rate(t, state, u)}
            problem = dynamics.problem(u, h)
            memory = list(method.begin(problem, t, state, h)) if method.memory(problem) else []
            return outputs | {"after": dynamics.constrained_state(method.step(problem, t, state, h, memory).y)}

        shapes = dynamics.arguments | ({"h": ()} if method else {})
        return dynamics.trace(f"{method.name}.tangents" if method else "tangents", parts, shapes)

    @cached_property
    def _kernel(self) -> Any:
        moving = {"y": None} | {key: None for key, _ in self.inputs}
        return compile_graph(self.graph.jvp(list(moving)), self.where)

    @cached_property
    def _rate_matrix_kernel(self) -> Any:
        """Return a kernel (q, xi, dq) -> change of N xi along dq; None if N is constant."""
        m = self.dynamics.system.mechanism
        shapes = {"q": (m.nq,), "xi": (m.nv,)}
        tangent = trace("turning", lambda q, xi: {"dq": kinematics.rate(m.tree, q, xi)}, shapes).jvp(["q"])
        answers = tangent.outputs["d_dq"]
        if not any(isinstance(x, Node) for x in answers.flat):
            return None
        return compile_graph(Graph("turning", tangent.inputs, {"turn": answers}, tangent.tape))

    def __call__(self, points: OperatingPoint, h: float = 0.0) -> PointDerivatives:
        """Return values and derivatives at all points `points`, with the step `h`."""
        chunk_numbers = GPU_CHUNK_NUMBERS if self.where.target == "cuda" else CPU_CHUNK_NUMBERS * self.where.threads
        chunk_points = max(1, chunk_numbers // (self.dynamics.size * max(1, len(self.names) + len(self.inputs))))
        some = (slice(k, k + chunk_points) for k in range(0, len(points.y), chunk_points))
        parts = [self._chunk(points.y[k], points.u[k], points.p[k], points.t[k], h) for k in some]
        names = PointDerivatives.__annotations__
        return PointDerivatives(*(np.concatenate([getattr(x, name) for x in parts]) for name in names))

    def _chunk(self, y: Array, u: Array, p: Array, t: Array, h: float) -> PointDerivatives:
        s, m, free = self.dynamics.system, self.dynamics.system.mechanism, self.dynamics.independent
        n, k, directions = len(self.names), len(free), len(self.names) + len(self.inputs)
        N = position_rate_matrix(m, y[:, : m.nq])
        # Each lane of the kernel is a direction: where nothing can change, one that is zero gives the values.
        lanes = max(1, directions)
        d: dict[str, Array] = {"y": np.zeros((len(y), lanes, self.dynamics.size))}
        d["y"][:, :k, : m.nq] = N[:, free]
        for j, i in enumerate([*(m.nq + i for i in free), *range(m.nq + m.nv, s.size)], k):
            d["y"][:, j, i] = 1.0
        arguments = {"t": t[:, None], "y": y[:, None], "u": u[:, None], "p": p[:, None], "h": np.array(h)}
        for j, (key, i) in enumerate(self.inputs, n):
            d.setdefault(key, np.zeros((lanes, arguments[key].shape[-1])))[j, i] = 1.0
        wanted = {key: x for key, x in arguments.items() if key in self.graph.inputs}
        with np.errstate(all="ignore"):
            results = self._kernel(**wanted, **{f"d_{key}": x for key, x in d.items()})
        state, after, d_after = (results[key] for key in ("state", "after", "d_after"))
        moved = displacement_along_v(N[:, None], results["d_state"][..., : m.nq])
        if self.integrator is None:
            matrix_change = self._rate_matrix_change(y, moved)
            displacements = displacement_along_v(N[:, None], d_after[..., : m.nq] - matrix_change)
            speed = state[:, 0, m.nq :][:, free]
            rate = np.concatenate([speed, after[:, 0, m.nq :][:, self._rate_elements]], axis=-1)
        else:
            N_after = position_rate_matrix(m, after[:, 0, : m.nq])
            displacements = displacement_along_v(N_after[:, None], d_after[..., : m.nq])
            rate = np.zeros((len(y), 0))
        answers = np.concatenate([displacements[..., free], d_after[..., m.nq :][..., self._rate_elements]], axis=-1)
        seen, seen_by = (results[key] if self.outputs else np.zeros((len(y), lanes, 0)) for key in ("seen", "d_seen"))
        by_direction = (x[:, :directions] for x in (answers, seen_by, moved))
        return PointDerivatives(rate, seen[:, 0], *by_direction)

    @property
    def _rate_elements(self) -> list[int]:
        """Return the indices, after q, of independent velocities and x."""
        nv, nx = self.dynamics.system.mechanism.nv, self.dynamics.system.nx
        return [*self.dynamics.independent, *range(nv, nv + nx)]

    def _rate_matrix_change(self, y: Array, moved: Array) -> Array:
        """Return dN xi along the motion of each point."""
        m = self.dynamics.system.mechanism
        q, v = y[:, : m.nq], y[:, m.nq : m.nq + m.nv]
        if self._rate_matrix_kernel is None or not v.any():
            return np.zeros((*moved.shape[:-1], m.nq))
        along = np.einsum("rv,rvq->rq", v, position_rate_matrix(m, q))
        change: Array = self._rate_matrix_kernel(q=q[:, None], xi=moved, d_q=along[:, None])
        return change


def position_rate_matrix(m: Mechanism, q: Array) -> Array:
    """Return N of the mechanism `m` at each `q`, one row for each element of v, (..., nv, nq)."""
    matrix = np.zeros((*q.shape[:-1], m.nv, m.nq))
    for link in m.tree.links:
        joint_q = [q[..., i] for i in link.q_index]
        for i in link.v_index if link.joint.mimic is None else ():
            unit = [1.0 if j == i else 0.0 for j in link.v_index]
            for k, x in zip(link.q_index, link.kind.rate(joint_q, unit), strict=True):
                matrix[..., i, k] = x
    return matrix


def displacement_along_v(N: Array, dq: Array) -> Array:
    """Return xi of `dq` = `N` xi; the rows of N that belong to a joint are orthogonal."""
    return np.asarray(np.einsum("...vq,...q->...v", N / (N * N).sum(axis=-1, keepdims=True), dq))
