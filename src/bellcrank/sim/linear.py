"""bc.linearize: A, B, C and D of a system at a point, or at many, by compiled derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compiling import CPU
from bellcrank.build.stages import Where
from bellcrank.errors import InputError, brief, unknown, warn
from bellcrank.extras import extra
from bellcrank.integrate import integrator as integrator_of
from bellcrank.misfits import explained, explained_class
from bellcrank.model import Mechanism
from bellcrank.quoting import line
from bellcrank.scalar import Scalar
from bellcrank.sim.ambient import ambient
from bellcrank.sim.amounts import duration
from bellcrank.sim.arguments import listed, numbers
from bellcrank.sim.columns import units
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.open_system import Open, command_name, forces_in, opened, where_of
from bellcrank.sim.operating_point import Point, point
from bellcrank.sim.settings import changed
from bellcrank.sim.simulator import Simulator
from bellcrank.sim.systems import Control, System, system
from bellcrank.sim.tangents import Slopes, Tangents, motions
from bellcrank.stairs import view
from bellcrank.text import table

if TYPE_CHECKING:
    from bellcrank.sim.modes import Modes

Array = np.ndarray[Any, Any]
KEPT = 16  # plants whose kernels are at hand
WIDE = 14  # columns of a matrix that is printed


@explained_class("deviation", "feedback", "modes")
@dataclass(frozen=True, eq=False)
class Linear:
    """dz/dt = rate + A z + B u and y = C z + D u for small deviations z and u; of a step, z' = A z + B u.

        A, B, C, D = bc.linearize(plant, at=...)
        lin.states, lin.inputs, lin.outputs               names of z, u and y
        lin.modes(), lin.eigenvalues, lin.to_control()

    All arrays have the leading axes of the points; lin[k] is one of them.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    at: dict[str, Array]  # q, v, x, u, p, t of the point
    rate: Array  # dz/dt at the point itself: zero where it rests; empty for a step
    shapes: Array = field(repr=False)  # how all joints move along v for a unit of each state, (..., nv, n)
    step: float | None
    plant: Open = field(repr=False)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.A, self.B, self.C, self.D))

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes: () for one point."""
        return tuple(self.A.shape[:-2])

    def __getitem__(self, index: Any) -> Linear:
        """One of many points, or some of them."""
        if not self.batch:
            raise InputError("this is the linearisation at one point; an index picks one of many.")
        arrays = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.type == "Array"}
        return replace(self, at={key: x[index] for key, x in self.at.items()}, **arrays)

    @property
    def eigenvalues(self) -> Array:
        """Of A, (..., n), in 1/s; of a step, those of the rate that would do the same."""
        self._whole()
        found = np.linalg.eigvals(self.A).astype(complex)
        return found if self.step is None else np.log(found) / self.step

    def modes(self) -> Modes:
        """Natural frequencies, damping and shapes, the slowest first; prints as a table."""
        from bellcrank.sim.modes import modes

        self._one("modes")
        self._whole()
        return modes(self)

    def to_control(self) -> Any:
        """The same as a state space of python-control, with names."""
        control = extra("control", "control", "to_control")
        self._one("to_control")
        sampled = () if self.step is None else (self.step,)
        names = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        return control.ss(*self, *sampled, **{key: [n.replace(".", "_") for n in x] for key, x in names.items()})

    def deviation(self, q: Any, v: Any, x: Any = ()) -> list[Scalar]:
        """z of a state, over any scalar: inside a control function too. Turns are told to first order."""
        self._one("deviation")
        m, at = self.plant.system.mechanism, self.at
        for name, value in (("q", q), ("v", v), ("x", x)):
            many = (
                hasattr(value, "__len__") and getattr(value, "shape", None) != () and not isinstance(value, str | dict)
            )
            if not many or len(value) != len(at[name]) or not all(map(_is_scalar, value)):
                raise InputError(f"deviation: {name} is {brief(value)}; expected {len(at[name])} numbers.")
        N = motions(m, at["q"])
        gap = [a - float(b) for a, b in zip(q, at["q"], strict=True)]
        back = N / (N * N).sum(axis=-1, keepdims=True)
        moved = [sum((float(k) * g for k, g in zip(row, gap, strict=True) if k), 0.0) for row in back]
        free = [m.columns[1].index(n.removesuffix(".q")) for n in self.states[: self._freedoms]]
        rest = [a - float(b) for a, b in zip(x, at["x"], strict=True)]
        return [*(moved[i] for i in free), *(v[i] - float(at["v"][i]) for i in free), *rest]

    def feedback(self, K: Any) -> Control:
        """The control function u = u0 - K z, for the same plant without control: bc.system(..., control=...)."""
        gains, plain = numbers("feedback: K", K), self.plant.plain
        own = [command_name(plain, n) for n in plain.commands]
        if plain.control is not None or plain.inputs or any(n not in own for n in self.inputs):
            raise InputError(
                f'feedback: inputs of "{plain.mechanism.name}" are {", ".join(self.inputs) or "none"}, and a control '
                f"gives commands ({', '.join(own)}). Linearise the plant without its control, or write u0 - K z where "
                "its inputs come from; lin.deviation(q, v, x) is z."
            )
        if gains.shape != (len(self.inputs), len(self.states)):
            raise InputError(
                f"feedback: K has the shape {gains.shape}; expected ({len(self.inputs)}, {len(self.states)}): inputs "
                "by states."
            )
        u0 = dict(zip(self.plant.system.inputs, self.at["u"], strict=True))

        def feedback(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> list[Scalar]:
            pull = gains.astype(object) @ np.array(self.deviation(q, v, x), object)
            pulls = dict(zip(self.inputs, pull, strict=True))
            return [float(u0[n]) - pulls[n] if n in pulls else 0.0 for n in own]

        return feedback

    @property
    def _freedoms(self) -> int:
        return (len(self.states) - self.plant.system.nx) // 2

    def _one(self, what: str) -> None:
        if self.batch:
            raise InputError(f"{what}: there are {self.batch} points; pick one of them, as in lin[0].{what}(...).")

    def _whole(self) -> None:
        if not np.isfinite(self.A).all():
            raise InputError(
                f'the linearisation of "{self.plant.system.mechanism.name}" is not finite there: the configuration is '
                "singular, or a function of the system has no derivative at this point. Move it a little aside."
            )

    def _repr_html_(self) -> str:
        known = not self.batch and bool(np.isfinite(self.A).all())
        poles = np.linalg.eigvals(self.A) if known else np.zeros(0)
        return str(view("notebook").poles(str(self), poles, self.step is not None))

    def __str__(self) -> str:
        n, m = len(self.states), len(self.inputs)
        of = f"a step of {self.step:g} s" if self.step is not None else "the rate"
        points = f" at {'x'.join(map(str, self.batch))} points" if self.batch else ""
        head = f"{line(self.plant.system.mechanism.name)}: {of}{points}, "
        head += f"{n} states, {m} inputs, {len(self.outputs)} outputs"
        if self.batch or n + m > WIDE:
            states, inputs = (line(", ".join(names)) for names in (self.states, self.inputs))
            return f"{head}\nstates: {states}\ninputs: {inputs or 'none'}"
        rows = [(name, *(f"{x:.5g}" for x in (*a, *b))) for name, a, b in zip(self.states, self.A, self.B, strict=True)]
        return f"{head}\n\n" + table(("A | B", *self.states, *self.inputs), rows, right=range(1, n + m + 1))


class Prepared:
    """A plant with its inputs laid open, and the kernels that were made of it."""

    def __init__(
        self,
        plant: Mechanism | System,
        inputs: tuple[str, ...] | None,
        also: tuple[str, ...],
        integrator: str | None,
        where: Where,
    ) -> None:
        self.where = where
        self.open = opened(plant, inputs, also)
        self.dynamics = Simulator(self.open.system, integrator or "rk4").dynamics
        self.integrator = integrator_of(integrator) if integrator else None
        self._made: dict[Any, Tangents] = {}

    def tangents(self, by: Dynamics, outputs: tuple[str, ...]) -> Tangents:
        key = by, outputs
        if key not in self._made:
            self._made[key] = Tangents(by, tuple(self.open.columns), outputs, self.integrator, self.where)
        return self._made[key]


def prepared(
    plant: Mechanism | System,
    inputs: tuple[str, ...] | None = None,
    also: tuple[str, ...] = (),
    integrator: str | None = None,
    where: Where = CPU,
) -> Prepared:
    """Made once for a plant and what its functions are, so that the next call is machine code and little else."""
    return _prepared(plant, inputs, also, integrator, where, ambient(plant))


@lru_cache(KEPT)
def _prepared(
    plant: Mechanism | System,
    inputs: tuple[str, ...] | None,
    also: tuple[str, ...],
    integrator: str | None,
    where: Where,
    now: tuple[Any, ...],
) -> Prepared:
    """now: what else decides the graphs, which is a part of the key and nothing else."""
    return Prepared(plant, inputs, also, integrator, where)


@explained
def linearize(
    plant: Mechanism | System,
    at: Any = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    step: float | None = None,
    integrator: str | None = None,
    independent: Sequence[str] = (),
    target: str | None = None,
    threads: int | None = None,
) -> Linear:
    """The plant for small deviations from a point: A, B, C and D with names, of its rate or of one step.

        A, B, C, D = bc.linearize(arm, at={"elbow.q": 0.5})
        lin = bc.linearize(plant, at=bc.equilibrium(plant), outputs=["tip.x", "tip.z"])
        lin = bc.linearize(plant, at={"q": many}, step=0.001, integrator="rk4")     # many points, one discrete step

    at: where, by names of elements ("elbow.q", "elbow.v", "boom.p_A", inputs, free numbers, "t") and as whole vectors
    (q, v, x, u, p), with leading axes for many points; or an equilibrium, or the row of a record (run.final).
    States are q and v of the independent joints and all states of actuators and control. A joint with a quaternion has
    three displacements, along its v. Where loops are closed, independent says which joints to take (else those that
    suit all points best), and the others follow. inputs: columns of B: declared inputs, commands ("boom.command"),
    forces ("boom.tau") or free numbers ("boom.mass"); unless told, the declared ones, or all commands of a plant
    without control. outputs: rows of C and D: states and columns that a record has ("tip.x", "energy", outputs of the
    system); unless told, the system's outputs, or its states. step: of one step so long by the integrator (rk4), from
    its own start. A derivative through a switch or a limit is that of the branch taken. Where loops are singular there
    is NaN, and a warning. target, threads: where many points are computed; "cuda" is a GPU.
    """
    if integrator is not None and step is None:
        raise InputError(f'integrator is "{integrator}", and no step is given; say step=0.001, or leave it out.')
    h = 0.0 if step is None else duration("step", step)
    asked = None if inputs is None else listed("inputs", inputs, "names")
    system(plant)  # or an error, before it is looked for among those that are kept
    given = where_of(plant, at)
    place = changed(CPU, {"target": target, "threads": threads})
    made = prepared(plant, asked, forces_in(given), None if step is None else integrator or "rk4", place)
    where = point(made.open.system, given)
    where, bad = _closed(made.dynamics, where)
    by = made.dynamics.closure.common(where.y, where.p, listed("independent", independent, "joints"))
    states = made.tangents(by, ()).names
    names = _outputs(made.open.system, states, outputs)
    tangents = made.tangents(by, tuple(n for n in names if n not in states))
    found = tangents(where, h)
    _warn(made.open.system, bad, found)
    return _linear(made.open, where, tangents, found, names, step, bad)


def _closed(dynamics: Dynamics, at: Point) -> tuple[Point, Array]:
    """The points with their loops closed, and which of them are singular."""
    try:
        y, bad = dynamics.closure.surveyed(at.y, at.p)
    except InputError as error:
        raise InputError(f"at: {error}") from None
    return replace(at, y=y), bad


def _outputs(s: System, states: tuple[str, ...], asked: Sequence[str] | None) -> tuple[str, ...]:
    """The names of y: those asked for, those of the system, or the states."""
    if asked is None:
        return tuple(s.outputs) or states
    names, known = listed("outputs", asked, "names"), [*states, *(n for n in units(s) if n not in states)]
    for name in names:
        if name not in known:
            raise InputError(f'outputs of "{s.mechanism.name}": {unknown("column", name, known)}')
    return names


def _linear(
    plant: Open, at: Point, t: Tangents, s: Slopes, outputs: tuple[str, ...], step: float | None, bad: Array
) -> Linear:
    """The answers as matrices, in the shape of the batch."""
    n, own = len(t.names), np.eye(len(t.names), s.by.shape[1])
    seen = {name: s.seen_by[..., k] for k, name in enumerate(t.outputs)}
    of_states = {name: np.broadcast_to(own[k], s.by.shape[:2]) for k, name in enumerate(t.names)}
    rows = [(of_states if name in of_states else seen)[name] for name in outputs]
    AB = np.swapaxes(s.by, 1, 2)
    CD = np.stack(rows, axis=1) if rows else np.zeros((len(at.y), 0, s.by.shape[1]))
    arrays = [AB[..., :n], AB[..., n:], CD[..., :n], CD[..., n:], s.rate, np.swapaxes(s.moved[:, :n], 1, 2)]
    A, B, C, D, rate, shapes = (_void(x, bad).reshape((*at.shape, *x.shape[1:])) for x in arrays)
    return Linear(A, B, C, D, t.names, plant.asked, outputs, at.named, rate, shapes, step, plant)


def _is_scalar(x: Any) -> bool:
    """Whether a number can be taken away from it, be it a symbol."""
    return hasattr(x, "__sub__") and not isinstance(x, set | frozenset) and not np.ndim(x)


def _void(x: Array, bad: Array) -> Array:
    """A copy without what is not known."""
    out = np.array(x)
    out[bad] = np.nan
    return out


def _warn(s: System, bad: Array, found: Slopes) -> None:
    """A word where there are numbers that are none."""
    broken = bad | ~np.isfinite(found.by).all(axis=(1, 2)) | ~np.isfinite(found.seen_by).all(axis=(1, 2))
    if broken.any():
        some = ", ".join(map(str, np.flatnonzero(broken)[:8])) + (", ..." if broken.sum() > 8 else "")
        why = (
            "is a singular configuration, where loops do not determine the motion" if bad.any() else "has no derivative"
        )
        warn(
            f'linearize: "{s.mechanism.name}" {why}, at {broken.sum()} of {len(broken)} points ({some}); there is NaN.'
        )
