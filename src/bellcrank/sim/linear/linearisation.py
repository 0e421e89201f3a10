"""bc.linearize: A, B, C and D of a system at one or many operating points, by compiled derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, explain_methods, sequence_elements
from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import DEFAULT_TARGET
from bellcrank.content_digest import ContentDigest, UnidentifiedError
from bellcrank.emit.constant_changes import changed_constants
from bellcrank.errors import InputError, brief, warn
from bellcrank.integrate import integrator as integrator_of
from bellcrank.lazy_import import discard_count, lazy_import, optional_import
from bellcrank.model import Mechanism
from bellcrank.parameters.free import Free
from bellcrank.quoting import single_line
from bellcrank.scalar import Scalar, is_scalar
from bellcrank.sim.linear.operating_point import (
    LinearisationKernels,
    OpenSystem,
    OperatingPoint,
    PointDerivatives,
    command_name,
    force_names,
    open_system,
    operating_point,
    operating_values,
    position_rate_matrix,
)
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.run.simulator import system_dynamics
from bellcrank.sim.run_arguments import as_tuple, check_known, duration, real_array
from bellcrank.sim.settings import Solver, with_shortcuts
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.systems import Control, System, system
from bellcrank.text_table import table

if TYPE_CHECKING:
    from bellcrank.sim.linear.modes import Modes

Array = np.ndarray[Any, Any]
CACHED_PLANTS = 16  # plants whose kernels are cached
MAX_PRINTED_COLUMNS = 14  # largest number of columns of a printed matrix


@explain_methods("deviation", "feedback", "modes")
@dataclass(frozen=True, eq=False)
class Linear:
    """Linearisation dz/dt = rate + A z + B u, y = C z + D u for small deviations z and u; of a step, z' = A z + B u.

        A, B, C, D = bc.linearize(plant, at=...)
        lin.states, lin.inputs, lin.outputs               names of z, u and y
        lin.modes(), lin.eigenvalues, lin.to_control()

    All arrays have the leading axes of the points; lin[k] is the linearisation at one of them.

    Parameters
    ----------
    A, B, C, D : ndarray
        The matrices.
    states, inputs, outputs : tuple of str
        Names of z, u and y.
    at : dict of str to ndarray
        q, v, x, u, p and t of the operating point.
    rate : ndarray, shape (..., n)
        dz/dt at the operating point: zero in equilibrium; empty for a step.
    shapes : ndarray, shape (..., nv, n)
        Displacement of all joints along v per unit of each state.
    step : float or None
        Time between samples, s; None in continuous time.
    plant : System
        The system.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    at: dict[str, Array]
    rate: Array
    shapes: Array = field(repr=False)
    step: float | None
    plant: OpenSystem = field(repr=False)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.A, self.B, self.C, self.D))

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading axes: () for one point."""
        return tuple(self.A.shape[:-2])

    def __getitem__(self, index: Any) -> Linear:
        """Return the linearisation at one of many points, or at some of them."""
        if not self.batch:
            raise InputError("this is the linearisation at one point; an index picks one of many.")
        arrays = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.type == "Array"}
        return replace(self, at={key: x[index] for key, x in self.at.items()}, **arrays)

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of A, (..., n), 1/s; for a step, those of the equivalent continuous rate."""
        self._check_finite()
        values = np.linalg.eigvals(self.A).astype(complex)
        return values if self.step is None else np.log(values) / self.step

    def modes(self) -> Modes:
        """Return natural frequencies, damping and mode shapes, the slowest first; prints as a table.

        Returns
        -------
        Modes
            The modes.

        Raises
        ------
        InputError
            If there are several points, or A is not finite.
        """
        from bellcrank.sim.linear.modes import modes

        self._check_single("modes")
        self._check_finite()
        return modes(self)

    def to_control(self) -> Any:
        """Return the linearisation as a state space of python-control, with names.

        Returns
        -------
        control.StateSpace
            Continuous, or sampled for a step. Dots in names become underscores.
        """
        control = optional_import("control", "control", "to_control")
        self._check_single("to_control")
        sampled = () if self.step is None else (self.step,)
        names = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        return control.ss(*self, *sampled, **{key: [n.replace(".", "_") for n in x] for key, x in names.items()})

    def deviation(self, q: Any, v: Any, x: Any = ()) -> list[Scalar]:
        """Return the deviation z of a state from the operating point, over any scalar, also inside a control function.

        Parameters
        ----------
        q : sequence, shape (nq,)
            Positions. Rotations by quaternions enter to first order.
        v : sequence, shape (nv,)
            Velocities.
        x : sequence, shape (nx,)
            States of actuators and control.

        Returns
        -------
        list
            z, in the order of `states`.

        Raises
        ------
        InputError
            If there are several points, or an argument has another length.
        """
        self._check_single("deviation")
        m, point = self.plant.system.mechanism, self.at
        for name, value in (("q", q), ("v", v), ("x", x)):
            elements = sequence_elements(value)
            if elements is None or len(elements) != len(point[name]) or not all(map(is_scalar, elements)):
                raise InputError(f"deviation: {name} is {brief(value)}; expected {len(point[name])} numbers.")
        N = position_rate_matrix(m, point["q"])
        gap = [a - float(b) for a, b in zip(q, point["q"], strict=True)]
        inverse_motions = N / (N * N).sum(axis=-1, keepdims=True)
        moved = [sum((float(k) * g for k, g in zip(row, gap, strict=True) if k), 0.0) for row in inverse_motions]
        free = [m.columns[1].index(n.removesuffix(".q")) for n in self.states[: self._freedom_count]]
        state_changes = [a - float(b) for a, b in zip(x, point["x"], strict=True)]
        return [*(moved[i] for i in free), *(v[i] - float(point["v"][i]) for i in free), *state_changes]

    def feedback(self, K: Any) -> Control:
        """Return the control function u = u0 - K z for the same plant without control, for bc.system(..., control=...).

        Parameters
        ----------
        K : array_like, shape (inputs, states)
            Gains.

        Returns
        -------
        callable
            The control function (t, q, v, x, u) -> commands.

        Raises
        ------
        InputError
            If K has another shape, or the inputs are not commands of the plant.
        """
        gains, plain = real_array("feedback: K", K), self.plant.original
        command_names = [command_name(plain, n) for n in plain.commands]
        if plain.control is not None or plain.inputs or any(n not in command_names for n in self.inputs):
            raise InputError(
                f'feedback: inputs of "{plain.mechanism.name}" are {", ".join(self.inputs) or "none"}, and a control '
                f"gives commands ({', '.join(command_names)}). Linearise the plant without its control, or write "
                "u0 - K z in the code that gives its inputs; lin.deviation(q, v, x) is z."
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
            return [float(u0[n]) - pulls[n] if n in pulls else 0.0 for n in command_names]

        return feedback

    @property
    def _freedom_count(self) -> int:
        return (len(self.states) - self.plant.system.nx) // 2

    def _check_single(self, what: str) -> None:
        if self.batch:
            raise InputError(f"{what}: there are {self.batch} points; pick one of them, as in lin[0].{what}(...).")

    def _check_finite(self) -> None:
        if not np.isfinite(self.A).all():
            raise InputError(
                f'the linearisation of "{self.plant.system.mechanism.name}" is not finite there: the configuration is '
                "singular, or a function of the system has no derivative at this point. Move the point slightly."
            )

    def _repr_html_(self) -> str:
        known = not self.batch and bool(np.isfinite(self.A).all())
        poles = np.linalg.eigvals(self.A) if known else np.zeros(0)
        return str(lazy_import("view.notebook:poles")(str(self), poles, self.step is not None))

    def __str__(self) -> str:
        n, m = len(self.states), len(self.inputs)
        target = f"a step of {self.step:g} s" if self.step is not None else "the rate"
        points = f" at {'x'.join(map(str, self.batch))} points" if self.batch else ""
        head = f"{single_line(self.plant.system.mechanism.name)}: {target}{points}, "
        head += f"{n} states, {m} inputs, {len(self.outputs)} outputs"
        if self.batch or n + m > MAX_PRINTED_COLUMNS:
            states, inputs = (single_line(", ".join(names)) for names in (self.states, self.inputs))
            return f"{head}\nstates: {states}\ninputs: {inputs or 'none'}"
        rows = [(name, *(f"{x:.5g}" for x in (*a, *b))) for name, a, b in zip(self.states, self.A, self.B, strict=True)]
        return f"{head}\n\n" + table(("A | B", *self.states, *self.inputs), rows, right=range(1, n + m + 1))


class PreparedPlant:
    """A plant with open inputs, and its compiled kernels. `cache_key` is what else decides its graphs."""

    def __init__(
        self,
        plant: Mechanism | System,
        inputs: tuple[str, ...] | None,
        also: tuple[str, ...],
        integrator: str | None,
        where: Where,
        cache_key: tuple[Any, ...],
    ) -> None:
        self.where = where
        self.open = open_system(plant, inputs, also)
        self.dynamics = system_dynamics(self.open.system, Solver(integrator or "rk4"))
        self.integrator = integrator_of(integrator) if integrator else None
        self._tangents: dict[Any, LinearisationKernels] = {}

    def tangents(self, dynamics: Dynamics, outputs: tuple[str, ...]) -> LinearisationKernels:
        """Return the cached derivatives of the dynamics `dynamics` with the given `outputs`."""
        key = dynamics, outputs
        if key not in self._tangents:
            moving = tuple(self.open.columns)
            self._tangents[key] = LinearisationKernels(dynamics, moving, outputs, self.integrator, self.where)
        return self._tangents[key]


_cached_plant = lru_cache(CACHED_PLANTS)(PreparedPlant)


def prepare(
    plant: Mechanism | System,
    inputs: tuple[str, ...] | None = None,
    also: tuple[str, ...] = (),
    integrator: str | None = None,
    where: Where = DEFAULT_TARGET,
) -> PreparedPlant:
    """Return the cached PreparedPlant and its functions, so that the next call runs compiled code only.

    Parameters
    ----------
    plant
        The plant.
    inputs
        Names of the inputs; None for the default.
    also
        Forces that the operating point gives.
    integrator
        Integrator of a step; None for the rate.
    where
        Target of the compilation.
    """
    return _cached_plant(plant, inputs, also, integrator, where, graph_cache_key(plant))


@explain_argument_errors
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
    """Return the linearisation of a plant at operating points: A, B, C and D with names, of its rate or of one step.

        A, B, C, D = bc.linearize(arm, at={"elbow.q": 0.5})
        lin = bc.linearize(plant, at=bc.equilibrium(plant), outputs=["tip.x", "tip.z"])
        lin = bc.linearize(plant, at={"q": many}, step=0.001, integrator="rk4")     # many points, one discrete step

    States are q and v of the independent joints and all states of actuators and control. A joint with a quaternion has
    three displacements, along its v. A derivative through a switch or a limit is that of the active branch. In singular
    configurations of loops the result is NaN, with a warning.

    Parameters
    ----------
    plant : Mechanism or System
        The plant.
    at : mapping, Equilibrium or record row, optional
        Operating point: names of elements ("elbow.q", "elbow.v", "boom.p_A", inputs, free parameters, "t") and whole
        vectors (q, v, x, u, p), with leading axes for many points; or an equilibrium, or the row of a record
        (run.final).
    inputs : sequence of str, optional
        Columns of B: declared inputs, commands ("boom.command"), forces ("boom.tau") or free parameters ("boom.mass").
        The default is the declared inputs, or all commands of a plant without control.
    outputs : sequence of str, optional
        Rows of C and D: states and columns of a record ("tip.x", "energy", outputs of the system). The default is the
        outputs of the system, or else its states.
    step : float, optional
        Length of one step, s: linearise the step of the integrator, from its own start, and not the rate.
    integrator : str, optional
        Integrator of the step; "rk4" by default.
    independent : sequence of str, optional
        Independent joints where loops are closed; the others follow. The default is the choice that suits all points
        best.
    target : str, optional
        Where many points are computed; "cuda" is a GPU.
    threads : int, optional
        Number of DEFAULT_TARGET threads.

    Returns
    -------
    Linear
        The matrices with the names of states, inputs and outputs.

    Raises
    ------
    InputError
        If an argument is invalid or a point is impossible.
    """
    if integrator is not None and step is None:
        raise InputError(
            f'integrator is "{integrator}", and no step is given; add step=0.001, or leave integrator= out.'
        )
    h = 0.0 if step is None else duration("step", step)
    input_names = None if inputs is None else as_tuple("inputs", inputs, "names")
    system(plant)  # raises an error for an invalid plant before the cache is searched
    point_values = operating_values(plant, at)
    compile_target = with_shortcuts(DEFAULT_TARGET, {"target": target, "threads": threads})
    method = None if step is None else integrator or "rk4"
    prepared = prepare(plant, input_names, force_names(point_values), method, compile_target)
    s = prepared.open.system
    point, bad = _closed_points(prepared.dynamics, operating_point(s, point_values))
    joints = as_tuple("independent", independent, "joints")
    dynamics = prepared.dynamics.closure.common_dynamics(point.y, point.p, joints)
    states = prepared.tangents(dynamics, ()).names
    names = _output_names(s, states, outputs)
    tangents = prepared.tangents(dynamics, tuple(n for n in names if n not in states))
    slopes = tangents(point, h)
    _warn_not_finite(s, bad, slopes)
    return _matrices(prepared.open, point, tangents, slopes, names, step, bad)


def _closed_points(dynamics: Dynamics, point: OperatingPoint) -> tuple[OperatingPoint, Array]:
    """Return the points with their loops closed, and a mask of the singular ones."""
    try:
        y, bad = dynamics.closure.closed_points(point.y, point.p)
    except InputError as error:
        raise InputError(f"at: {error}") from None
    return replace(point, y=y), bad


def _output_names(s: System, states: tuple[str, ...], requested: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of y: the requested ones, else those of the system, else the states."""
    if requested is None:
        return tuple(s.outputs) or states
    names = as_tuple("outputs", requested, "names")
    known = [*states, *(n for n in observable_units(s) if n not in states)]
    check_known(f'outputs of "{s.mechanism.name}"', "column", names, known)
    return names


def _matrices(
    plant: OpenSystem,
    point: OperatingPoint,
    t: LinearisationKernels,
    s: PointDerivatives,
    outputs: tuple[str, ...],
    step: float | None,
    bad: Array,
) -> Linear:
    """Return the derivatives as matrices, in the shape of the batch."""
    n, identity = len(t.names), np.eye(len(t.names), s.derivatives.shape[1])
    seen = {name: s.seen_derivatives[..., k] for k, name in enumerate(t.outputs)}
    of_states = {name: np.broadcast_to(identity[k], s.derivatives.shape[:2]) for k, name in enumerate(t.names)}
    rows = [(of_states if name in of_states else seen)[name] for name in outputs]
    AB = np.swapaxes(s.derivatives, 1, 2)
    CD = np.stack(rows, axis=1) if rows else np.zeros((len(point.y), 0, s.derivatives.shape[1]))
    arrays = [AB[..., :n], AB[..., n:], CD[..., :n], CD[..., n:], s.rate, np.swapaxes(s.moved[:, :n], 1, 2)]
    A, B, C, D, rate, shapes = (_masked(x, bad).reshape((*point.shape, *x.shape[1:])) for x in arrays)
    return Linear(A, B, C, D, t.names, plant.requested, outputs, point.vectors, rate, shapes, step, plant)


def _masked(x: Array, bad: Array) -> Array:
    """Return a copy with NaN at the points `bad`."""
    out = np.array(x)
    out[bad] = np.nan
    return out


def _warn_not_finite(s: System, bad: Array, slopes: PointDerivatives) -> None:
    """Warn about points where derivatives are not finite."""
    by_state, by_seen = (np.isfinite(x).all(axis=(1, 2)) for x in (slopes.derivatives, slopes.seen_derivatives))
    broken = bad | ~by_state | ~by_seen
    if broken.any():
        indices = ", ".join(map(str, np.flatnonzero(broken)[:8])) + (", ..." if broken.sum() > 8 else "")
        why = (
            "is a singular configuration, where loops do not determine the motion" if bad.any() else "has no derivative"
        )
        warn(
            f'linearize: "{s.mechanism.name}" {why}, at {broken.sum()} of {len(broken)} points ({indices}); the result '
            "there is NaN."
        )


def graph_cache_key(plant: Mechanism | System) -> tuple[Any, ...]:
    """Return a key that stays equal as long as `plant` gives the same graphs.

    A plant with functions that cannot be identified gets a key that equals no other: it is traced each time.
    """
    functions: Any = ""
    if isinstance(plant, System):
        digest = ContentDigest(instead={Free: lambda x: x.digest}, without={System: ("mechanism",)})
        try:
            functions = digest.digest(plant)
        except UnidentifiedError:
            functions = object()
    return discard_count(), changed_constants(), functions
