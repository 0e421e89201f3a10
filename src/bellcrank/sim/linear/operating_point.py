"""Operating points of a system whose commands and forces are inputs, and derivatives there.

Declared inputs, commands, joint forces and free parameters can all be inputs, selected by name. A command or force that
is not declared becomes an additional input, which is added to the output of the control and is zero by default.
Linearisation and equilibrium therefore deal with inputs only.

Derivatives of the rate, or of a step, are taken along admissible displacements. One kernel computes the derivative in
one direction of y and inputs (the jvp of the traced graph) and runs over all directions and points as lanes: its code
is three times that of the rate for any number of directions. The coordinates z of a displacement are those of
independent joints (along v: a quaternion has three), then velocities, then all of x:

    q = q0 (+) xi,   dxi/dt = N^+ (d(N v) - dN xi),   dq/dt = N v,   N^+ N = 1

d(N v) is the change of the rate by the displacement, dN the change of N along the motion of the point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from bellcrank.actuators import IdealTorque
from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import DEFAULT_TARGET, compile_graph
from bellcrank.dynamics import kinematics
from bellcrank.dynamics.loops.assembly import assemble_batch
from bellcrank.dynamics.loops.constraint_values import displace
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node, trace
from bellcrank.integrate import Integrator
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.run_arguments import (
    RunArguments,
    as_tuple,
    check_known,
    check_unique_names,
    common_shape,
    real_array,
    vector_argument,
)
from bellcrank.sim.system.observed_columns import StateColumns
from bellcrank.sim.system.systems import System, system


@dataclass(frozen=True, eq=False)
class OpenSystem:
    """A system with the names of the inputs and free parameters that were requested."""

    system: System
    requested: tuple[str, ...]
    original: System  # the system without additional inputs

    @property
    def columns(self) -> list[tuple[str, int]]:
        """Return, for each requested name, the input of a graph ("u" or "p") and the index in it."""
        u, p = list(self.system.inputs), list(self.system.parameters)
        return [("u", u.index(name)) if name in u else ("p", p.index(name)) for name in self.requested]


def open_system(plant: Mechanism | System, inputs: Sequence[str] | None = None, also: Sequence[str] = ()) -> OpenSystem:
    """Return a system with additional inputs for requested commands and forces.

    Parameters
    ----------
    plant
        Mechanism or system.
    inputs
        Names of the requested inputs; None selects the declared inputs, or all commands of a system without inputs and
        control.
    also
        Names of commands and forces that must be inputs even if they are not requested; other names are ignored.
    """
    s = system(plant)
    if s.sampled:
        raise InputError(
            f'"{s.mechanism.name}" has sampled controllers, which hold their outputs between samples: neither its rate '
            "nor one of its steps describes it. Use the plant without them, with its commands as inputs."
        )
    commands = {command_name(s, n): n for n in s.commands}
    default_names = s.inputs or (tuple(commands) if s.control is None else ())
    requested = default_names if inputs is None else as_tuple("inputs", inputs, "names")
    check_unique_names("input", requested)
    single = [n for n in s.mechanism.columns[1] if n in s.mechanism.columns[0]]
    forces = {f"{n}.tau": n for n in single if f"{n}.tau" not in commands}
    known = [*s.inputs, *commands, *forces, *s.parameters]
    check_known(f'inputs of "{s.mechanism.name}"', "input", requested, known)
    added = [n for n in (*requested, *also) if n not in s.inputs and n not in s.parameters]
    return OpenSystem(_widened(s, [n for n in commands if n in added], [n for n in forces if n in added]), requested, s)


def operating_values(plant: Mechanism | System, point: Any) -> dict[str, Any]:
    """Return an operating point as a mapping.

    Parameters
    ----------
    plant
        Mechanism or system.
    point
        None, an array (q), a mapping, a row of a record, or an equilibrium. An equilibrium of another plant, such as
        one without control, contributes the elements that this plant has.
    """
    if point is None:
        return {}
    if isinstance(point, Mapping):
        return dict(point)  # for a row of a record: the columns that it stores
    if not hasattr(point, "plant"):
        return {"q": point}
    if point.plant is plant:
        return dict(point.at)
    s = open_system(plant).system
    known = ("q", "t", *(x.name for x in s.states), *s.inputs, *s.parameters)
    return {name: x for name, x in point.at.items() if name in known}


def force_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return the commands and forces among `names`: inputs that exist only if a caller gives them."""
    return tuple(n for n in names if isinstance(n, str) and n.endswith((".tau", ".command")))


def command_name(s: System, joint: str) -> str:
    """Return the name of the command of a `joint` of the system `s`; without actuators it is the force itself."""
    return f"{joint}.{'command' if s.actuators else 'tau'}"


def _widened(s: System, commands: Sequence[str], forces: Sequence[str]) -> System:
    """Return the system with these commands and forces as inputs after its own."""
    if not commands and not forces:
        return s
    names = (*s.inputs, *commands, *forces)
    pushed = tuple(IdealTorque(name.removesuffix(".tau")) for name in forces)
    return replace(
        s,
        actuators=(*s.actuators, *pushed),
        control=WidenedControl(s, tuple(commands), tuple(forces)),
        inputs=names,
        defaults={**s.defaults, **dict.fromkeys((*commands, *forces), 0.0)},
        free=(*s.free, s.control),
    )


@dataclass(frozen=True, eq=False)
class WidenedControl:
    """The control of a system, if it has one, plus the additional commands and forces."""

    system: System
    commands: tuple[str, ...]
    forces: tuple[str, ...]

    @property
    def __name__(self) -> str:
        """Return the name of the wrapped control."""
        return self.system.control_name if self.system.control is not None else "inputs"

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        """Return the commands plus the additional inputs, and the rates of the control's states if it has any."""
        s = self.system
        commands, rates = s.commanded(t, [*q, *v, *x], list(u)[: len(s.inputs)])
        command_names = [command_name(s, n) for n in s.commands]
        total = [g + u[n] if n in self.commands else g for g, n in zip(commands, command_names, strict=True)]
        total += [u[n] for n in self.forces]
        return (total, rates) if s.control_states else total


Array = np.ndarray[Any, Any]
VECTOR_NAMES = ("q", "v", "x", "u", "p")


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """One operating point or a batch of them.

    Attributes
    ----------
    system
        The system that the point belongs to.
    y
        States, (points, size).
    u
        Inputs, (points, nu).
    p
        Free parameters, (points, np).
    t
        Times, (points,).
    shape
        Shape of the batch, () for one point.
    """

    system: System
    y: Array
    u: Array
    p: Array
    t: Array
    shape: tuple[int, ...]

    @property
    def vectors(self) -> dict[str, Array]:
        """Return q, v, x, u, p and t in the shape of the batch, as the argument `at` takes them."""
        m = self.system.mechanism
        q, v, x = np.split(self.y, [m.nq, m.nq + m.nv], axis=-1)
        vectors = {"q": q, "v": v, "x": x, "u": self.u, "p": self.p}
        shaped = {key: a.reshape((*self.shape, a.shape[-1])) for key, a in vectors.items()}
        return shaped | {"t": self.t.reshape(self.shape)}


def element_places(s: System) -> dict[str, tuple[str, int]]:
    """Return group and index of every element of a point of the system `s`, by all its names, those of records too."""
    q, v = s.mechanism.columns
    input_names = {"u": list(s.inputs), "p": list(s.parameters)}
    names = {"q": [f"{n}.q" for n in q], "v": [f"{n}.v" for n in v], "x": [z.name for z in s.states], **input_names}
    places = {name: (key, i) for key, group_names in names.items() for i, name in enumerate(group_names)}
    prefixes = {"u": "input", "p": "parameter"}
    prefixed = [(f"{prefixes[key]}.{name}", key, i) for key in prefixes for i, name in enumerate(input_names[key])]
    return places | {name: (key, i) for name, key, i in prefixed}


def operating_point(s: System, given: Mapping[str, Any]) -> OperatingPoint:
    """Return an operating point from a mapping such as {"q": [...], "elbow.v": 0.3, "target": 1.0}.

    Defaults: neutral positions, velocities 0, initial values of states, default inputs, nominal parameters.

    Parameters
    ----------
    s
        System.
    given
        Whole vectors by q, v, x, u (inputs) and p (free parameters), the time by t, single elements by their names.
    """
    known = element_places(s)
    check_known(f'at, of "{s.mechanism.name}"', "element", given, [*VECTOR_NAMES, "t", *known])
    m, free = s.mechanism, s.parameters
    q = _vector("q", given, known, m.columns[0], m.neutral())
    v = _vector("v", given, known, m.columns[1], np.zeros(m.nv))
    x = _vector("x", given, known, [z.name for z in s.states], [z.initial for z in s.states])
    u = _vector("u", given, known, s.inputs, [s.defaults.get(n, np.nan) for n in s.inputs])
    p = _vector("p", given, known, list(free), list(free.values()))
    given_inputs = {n: u[..., i] for i, n in enumerate(s.inputs) if not np.isnan(u[..., i]).any()}
    t = real_array("at: t", given.get("t", 0.0))
    q, v, x = (np.broadcast_to(a, (*np.broadcast_shapes(a.shape[:-1], t.shape), a.shape[-1])) for a in (q, v, x))
    batch = RunArguments(s, q, v, x, given_inputs, None, {n: p[..., i] for i, n in enumerate(free)}, None)
    times = np.broadcast_to(t, batch.shape).reshape(-1)
    return OperatingPoint(s, batch.y, batch.table[:, 0], batch.parameters, times, batch.shape)


def mechanism_at(s: System, p: Array) -> Mechanism:
    """Return the mechanism of the system `s` with the values `p` of the free parameters of the system."""
    m, names = s.mechanism, list(s.parameters)
    return m.at({n: float(p[names.index(n)]) for n in m.parameters}) if m.parameters else m


def displaced_positions(s: System, p: Array, q: Array, xi: Array, independent: Sequence[int]) -> Array:
    """Return positions after a displacement, with the dependent joints solved so that the loops close.

    Parameters
    ----------
    s
        System.
    p
        Values of its free parameters.
    q
        Positions, (..., nq).
    xi
        Displacements along v, (..., nv).
    independent
        Elements of v that keep their displacement.
    """
    tree = mechanism_at(s, p).tree
    moved_there = displace(tree, np.broadcast_to(q, (*xi.shape[:-1], q.shape[-1])), xi)
    if not tree.loops:
        return moved_there
    return assemble_batch(tree, moved_there, free=dependent_mask(s, independent))[0]


def dependent_mask(s: System, independent: Sequence[int]) -> Array:
    """Return a mask over v of the system `s`: 0 for the `independent` elements, 1 for the others."""
    return np.array([0.0 if i in independent else 1.0 for i in range(s.mechanism.nv)])


def _vector(
    key: str, given: Mapping[str, Any], known: Mapping[str, tuple[str, int]], names: Any, default: Any
) -> Array:
    """Return one of the vectors: given as a whole, overridden by single elements."""
    vector = vector_argument(f"at: {key}", given.get(key), list(names), default)
    single = {known[n][1]: real_array(f'at: "{n}"', x) for n, x in given.items() if n in known and known[n][0] == key}
    shapes = ", ".join(f"{names[i]} {x.shape}" for i, x in single.items())
    problem = f"at: elements of {key} do not broadcast: {shapes}, with {vector.shape[:-1]}."
    shape = common_shape((vector.shape[:-1], *(x.shape for x in single.values())), problem)
    out = np.array(np.broadcast_to(vector, (*shape, len(names))))
    for i, x in single.items():
        out[..., i] = x
    return out


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
                columns = StateColumns(dynamics.system, partial(dynamics.solved_motion, t), t, state, u)
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
