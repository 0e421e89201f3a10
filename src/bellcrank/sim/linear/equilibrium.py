"""bc.equilibrium: static equilibrium of a system, found by a damped Newton iteration with restarts.

Unknown are the independent joints, the states of actuators and control, and the free inputs. All accelerations and
rates must vanish, and held quantities must keep their values. If the iteration from the guess fails, it is restarted
from points around it: on both sides of kinks at zero, such as a closed valve, and with displaced joints.

The iteration is that of Levenberg and Marquardt, by SVD, for scaled equations, square, under- or overdetermined.
Unknowns are scaled by their typical size, equations by the effect of the unknowns on them. Unknowns that no equation
determines keep their values, and steps that do not reduce the residual are damped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from typing import Any, Generic, TypeVar

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.dynamics.loops import assemble
from bellcrank.dynamics.loops.assembly import CLOSED_RESIDUAL
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.parameters.parameter_table import nominal
from bellcrank.quoting import single_line
from bellcrank.sim.linear.linearisation import prepare
from bellcrank.sim.linear.operating_point import (
    OperatingPoint,
    displaced_positions,
    element_places,
    force_names,
    mechanism_at,
    open_system,
    operating_point,
    operating_values,
)
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.run_arguments import as_tuple, check_known
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.prescribed_motions import prescribed_jet
from bellcrank.sim.system.systems import System
from bellcrank.text_table import Table

Array = np.ndarray[Any, Any]
Location = TypeVar("Location")
MAX_ITERATIONS, MAX_IDLE_ITERATIONS = 60, 8  # iterations in all, and iterations without progress
SOLVED_RESIDUAL = 1e-9  # scaled residual of a solution
FAILED_RESIDUAL = 1e-6  # scaled residual above which there is no solution
# Accelerations at rest: the largest one in m/s^2 or rad/s^2, and the share of the effect of typical changes of the
# unknowns that rounding may leave. Without these limits, stiff contacts would excuse any acceleration.
REST_ACCELERATION, ROUNDING_RESIDUAL = 1e-7, 1e-12
RANK_TOLERANCE = 1e-11  # singular values below this part of the largest count as zero
FIRST_DAMPING, MAX_DAMPING = 1e-6, 1e8  # first damping, and the largest, with which a step hardly moves


@dataclass(frozen=True, eq=False)
class Equations(Generic[Location]):
    """Equations at one place: residuals, and their Jacobian (equations, unknowns)."""

    place: Location
    values: Array
    jacobian: Array
    sizes: Array  # typical sizes of the unknowns
    least_scales: Array  # smallest scale of each equation: smaller effects of the unknowns count as none
    largest: Array  # largest residual of each equation at a solution; infinite if only the scaled one is limited

    @cached_property
    def scales(self) -> Array:
        """Effect of typical changes of the unknowns on each equation."""
        return np.asarray(np.maximum(np.linalg.norm(self.jacobian * self.sizes, axis=1), self.least_scales))

    @cached_property
    def scaled(self) -> Array:
        """Residuals in units of `scales`."""
        return self.values / self.scales

    @property
    def error(self) -> float:
        """Largest scaled residual; infinite if one is not finite."""
        worst = float(np.abs(self.scaled).max(initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    @cached_property
    def excess(self) -> Array:
        """Residuals as a multiple of those that a solution may have."""
        limits = np.minimum(FAILED_RESIDUAL * self.scales, np.maximum(self.largest, ROUNDING_RESIDUAL * self.scales))
        return np.asarray(np.abs(self.values) / limits)

    @property
    def worst_excess(self) -> float:
        """Largest `excess`, at most 1 at a solution; infinite if one is not finite."""
        worst = float(self.excess.max(initial=0.0))
        return worst if np.isfinite(worst) else np.inf

    @cached_property
    def decomposition(self) -> tuple[Array, Array, Array]:
        """Singular value decomposition of the scaled Jacobian."""
        return np.linalg.svd(self.jacobian * self.sizes / self.scales[:, None], full_matrices=True)

    def step(self, damping: float) -> Array:
        """Return the change of the unknowns for the given `damping`."""
        U, s, V = self.decomposition
        n = len(s)
        significant = s > RANK_TOLERANCE * s.max(initial=0.0)
        inverse_values = np.where(significant, s / (s * s + damping + 1e-300), 0.0)
        return np.asarray(-self.sizes * (V[:n].T @ (inverse_values * (U[:, :n].T @ self.scaled))))

    @property
    def undetermined_shares(self) -> Array:
        """Share of each unknown that no equation determines, 0 to 1."""
        _, s, V = self.decomposition
        known = int((s > RANK_TOLERANCE * s.max(initial=0.0)).sum())
        return np.asarray(np.sqrt((V[known:] ** 2).sum(axis=0)))


def solve_damped(
    equations: Equations[Location], moved: Callable[[Equations[Location], Array], Equations[Location]]
) -> tuple[Equations[Location], int]:
    """Return the equations with the smallest residual that is reached, and the number of iterations.

    Parameters
    ----------
    equations
        Equations at the first guess.
    moved
        Function that returns the equations after a change of the unknowns.
    """
    damping, idle = 0.0, 0
    for k in range(MAX_ITERATIONS):
        is_regular = np.isfinite(equations.jacobian).all() and 0.0 < equations.error < np.inf
        if not is_regular or idle == MAX_IDLE_ITERATIONS:
            return equations, k
        trial = moved(equations, equations.step(damping))
        residual, trial_residual = np.linalg.norm(equations.scaled), np.linalg.norm(trial.values / equations.scales)
        if trial_residual < residual:
            idle = idle + 1 if trial_residual > 0.99 * residual else 0
            # Rounding is all that is left.
            small = equations.error < SOLVED_RESIDUAL and trial_residual > 0.1 * residual
            equations, damping = trial, 0.1 * damping if damping > FIRST_DAMPING else 0.0
            if small:
                return equations, k + 1
        elif equations.error < SOLVED_RESIDUAL or damping > MAX_DAMPING:
            return equations, k + 1
        else:
            damping = max(10.0 * damping, FIRST_DAMPING)
    return equations, MAX_ITERATIONS


LONGEST_JOINT_STEP = 0.5  # rad or m: longest displacement of a joint in one iteration
# Pa: scale of a pressure whose guess is zero; and the smallest value used as a scale.
PRESSURE_SCALE_PA, SMALLEST_SCALE = 1e5, 1e-12
NEGLIGIBLE_EFFECTS = 1e-3, 1e-6  # negligible effects: on an acceleration, and on the rate of a state of scale 1
RESTART_SPREADS = (0.03, 0.1, 0.3, 0.3, 1.0, 1.0)  # rad or m: standard deviations of restarts around the guess
MOST_ITERATIONS = 400  # iterations after which no further restart is tried
KINK_STEP, MOST_KINK_RESTARTS = 0.1, 16  # distance of restarts from a kink, and their largest number


@dataclass(frozen=True, eq=False)
class SearchPoint:
    """A point with the coordinates chosen there."""

    point: OperatingPoint
    dynamics: Dynamics
    unknowns: tuple[str, ...]
    equations: tuple[str, ...]
    xi: Array  # displacements of all joints per unit of each unknown, (unknowns, nv)


class RestSearch:
    """Equilibrium search for one plant, guess, and choice of held and free quantities."""

    def __init__(self, plant: Mechanism | System, point: Any, hold: Any, free: Any) -> None:
        held_values = dict(hold) if isinstance(hold, Mapping) else dict.fromkeys(_checked_names("hold", hold))
        free_names = None if free is None else _checked_names("free", free)
        self.plant, start_values = plant, operating_values(plant, point)
        opened_system = open_system(plant, None, force_names((*start_values, *held_values, *(free_names or ())))).system
        self._read_hold(opened_system, held_values)
        self._read_free(opened_system, free_names)
        moving = tuple(n for n in self.free if n in opened_system.inputs or n in opened_system.parameters)
        self.prepared = prepare(plant, moving, tuple(opened_system.inputs))
        self.system = self.prepared.open.system
        m = self.system.mechanism
        joints = [j.name for j in m.own_joints]
        self.joints = [j for j in joints if any(f"{n}.q" in self.hold for n in _joint_columns(m, j, 0))]
        self.held = [n for j in self.joints for n in _joint_columns(m, j, 1)]
        self.places = element_places(self.system)
        self.guess = self._guess(start_values)
        self.scales = self._scales()
        self.targets = self._targets()

    def _read_hold(self, s: System, given: Mapping[str, Any]) -> None:
        known, column_units, groups = element_places(s), observable_units(s), _vector_elements(s)
        self.hold = {n: x for name, x in given.items() for n in groups.get(name, [name])}
        allowed = [n for n, (kind, _) in known.items() if kind in ("q", "x", "u")]
        allowed += [n for n in column_units if n not in known]
        for name in self.hold:
            if name not in allowed:
                raise InputError(
                    f'hold, of "{s.mechanism.name}": {unknown("element or column", name, [*groups, *allowed])} '
                    "Velocities are zero."
                )
        for name in (f"{e.name}.{z.name}" for e in s.latches for z in e.states):
            self.hold.setdefault(name, None)  # only an event closes, opens or moves a latch

    def _read_free(self, s: System, requested: Sequence[str] | None) -> None:
        groups = _vector_elements(s)
        default_names = [n for n in s.inputs if n not in self.hold] if set(groups["q"]) & set(self.hold) else []
        names = default_names if requested is None else requested
        self.free = [n for name in names for n in groups.get(name, [name])]
        allowed = [*s.inputs, *s.parameters, *groups["x"], *groups["q"]]
        check_known(f'free, of "{s.mechanism.name}"', "input", self.free, [*groups, *allowed])
        for name in self.free:
            if name in self.hold:
                raise InputError(f'"{name}" is in hold and in free; leave one of them out.')

    def _guess(self, values: dict[str, Any]) -> OperatingPoint:
        """Return the guess with held values inserted, at rest, and with loops closed."""
        s, m = self.system, self.system.mechanism
        values |= {n: x for n, x in self.hold.items() if x is not None and n in self.places}
        values |= {n: 0.0 for n in self.free if n in s.inputs and n not in values and n not in s.defaults}
        guess = operating_point(s, values)
        if guess.shape:
            raise InputError(f"at: there are {guess.shape} points; equilibrium starts from one guess.")
        y = np.array(guess.y)
        y[:, m.nq : m.nq + m.nv] = 0.0
        mechanism = mechanism_at(s, guess.p[0])
        if np.abs(evaluate_constraints(mechanism.tree, y[0, : m.nq]).value).max(initial=0.0) > CLOSED_RESIDUAL:
            y[0, : m.nq] = assemble(mechanism, y[0, : m.nq], fixed=self.joints)[0]
        return replace(guess, y=y)

    def _scales(self) -> dict[str, float]:
        """Return the scales of all elements except joints, taken from the guess."""
        scales, vectors = {}, self.guess.vectors
        for name, (kind, i) in self.places.items():
            if kind not in ("q", "v"):
                pressure = kind == "x" and self.system.states[i].unit == "Pa"
                scales[name] = max(abs(float(vectors[kind][i])), PRESSURE_SCALE_PA if pressure else 0.0)
        return {name: x if x > SMALLEST_SCALE else 1.0 for name, x in scales.items()}

    def _targets(self) -> dict[str, float]:
        """Return the values at which columns are held: given ones, else those at the guess."""
        given_values = {n: x for n, x in self.hold.items() if x is not None}
        names = tuple(n for n in self.hold if n in observable_units(self.system))
        guess_values = self.prepared.tangents(self._suitable_dynamics(self.guess), names)(self.guess).seen[0]
        return {n: float(x) for n, x in (dict(zip(names, guess_values, strict=True)) | given_values).items()}

    # -- on the way

    def _suitable_dynamics(self, point: OperatingPoint) -> Dynamics:
        """Return dynamics with independent coordinates that suit the point, the held ones among them if possible."""
        closure = self.prepared.dynamics.closure
        try:
            return closure.common_dynamics(point.y, point.p, self.held)
        except InputError:
            return closure.common_dynamics(point.y, point.p)

    def equations(self, point: OperatingPoint) -> Equations[SearchPoint]:
        """Return the equations to be solved, linearised at `point`."""
        s, dynamics = self.system, self._suitable_dynamics(point)
        coordinates, k = self.prepared.tangents(dynamics, ()).names, len(dynamics.independent)
        pinned = [f"{n}.q" for n in self.held if f"{n}.q" in coordinates[:k]]
        dependent_held = [n for n in self.held if f"{n}.q" not in coordinates[:k]]
        non_joints = set(_vector_elements(s)["x"]) | set(s.inputs)
        watched = tuple(
            n for n in self.hold if n not in pinned and n not in non_joints and self._needs_equation(n, dependent_held)
        )
        tangents = self.prepared.tangents(dynamics, watched)
        slopes = tangents(point)
        free = [j for j, n in enumerate(coordinates) if not k <= j < 2 * k and n not in pinned and n not in self.hold]
        columns = [*free, *range(len(coordinates), len(coordinates) + len(tangents.inputs))]
        unknowns = (*(coordinates[j] for j in free), *self.prepared.open.requested)
        hold_errors = slopes.seen[0] - [self.targets[n] for n in watched]
        negligible = (
            [NEGLIGIBLE_EFFECTS[0]] * k
            + [NEGLIGIBLE_EFFECTS[1] * self.scales[n] for n in coordinates[2 * k :]]
            + [NEGLIGIBLE_EFFECTS[1]] * len(watched)
        )
        return Equations(
            SearchPoint(point, dynamics, unknowns, (*coordinates[k:], *watched), slopes.moved[0, columns]),
            np.concatenate([slopes.rate[0, k:], hold_errors]),
            np.concatenate([slopes.derivatives[0, columns][:, k:], slopes.seen_derivatives[0, columns]], axis=1).T,
            np.array([self.scales.get(n, 1.0) for n in unknowns]),
            np.array(negligible),
            np.array([REST_ACCELERATION] * k + [np.inf] * (len(negligible) - k)),
        )

    def _needs_equation(self, name: str, loose: Sequence[str]) -> bool:
        """Return True if a held quantity needs an equation: a column, or a joint that depends on others."""
        m, element = self.system.mechanism, name.removesuffix(".q")
        if not name.endswith(".q") or element not in m.columns[0]:
            return True
        joint = next(j.name for j in m.own_joints if element in _joint_columns(m, j.name, 0))
        return any(n in loose for n in _joint_columns(m, joint, 1))

    def after_step(self, equations: Equations[SearchPoint], step: Array) -> Equations[SearchPoint]:
        """Return the equations at a displaced point.

        Parameters
        ----------
        equations
            The present equations.
        step
            Change of the unknowns; it is shortened if a joint would move too far.
        """
        place, m = equations.place, self.system.mechanism
        xi = step @ place.xi
        share = min(1.0, LONGEST_JOINT_STEP / max(float(np.abs(xi).max(initial=0.0)), 1e-300))
        point = self._changed_point(equations, share * step)
        y = np.array(point.y)
        independent = place.dynamics.independent
        y[0, : m.nq] = displaced_positions(self.system, point.p[0], y[0, : m.nq], share * xi, independent)
        return self.equations(replace(point, y=y))

    def _changed_point(self, equations: Equations[SearchPoint], change: Array) -> OperatingPoint:
        """Return the point with changed states and inputs, clipped to their limits; joints stay."""
        s, m = self.system, self.system.mechanism
        vectors = {key: np.array(x) for key, x in equations.place.point.vectors.items()}
        for name, x in zip(equations.place.unknowns, change, strict=True):
            kind, i = self.places.get(name, ("q", 0))
            if kind != "q":
                vectors[kind][i] += x
        for i, pair in enumerate(s.limits()):
            if pair is not None and all(isinstance(x, float) for x in pair):
                vectors["x"][i] = np.clip(vectors["x"][i], *pair)
        y = np.concatenate([vectors["q"], np.zeros(m.nv), vectors["x"]])
        return replace(equations.place.point, y=y[None], u=vectors["u"][None], p=vectors["p"][None])

    def solve(self) -> tuple[Equations[SearchPoint], int]:
        """Return the equations with the smallest error, and the number of iterations."""
        best, rounds = solve_damped(self.equations(self.guess), self.after_step)
        for start in self._restarts() if best.worst_excess > 1.0 else ():
            if rounds > MOST_ITERATIONS:
                break
            candidate, further_rounds = solve_damped(self.equations(start), self.after_step)
            rounds += further_rounds
            best = min(best, candidate, key=lambda solution: solution.worst_excess)
            if best.worst_excess <= 1.0:
                break
        return best, rounds

    def _restarts(self) -> Iterator[OperatingPoint]:
        """Yield restarts: on all sides of kinks at zero, such as a closed valve; then with displaced joints."""
        equations = self.equations(self.guess)
        kinks = self._kinks(equations)
        for signs in islice(product((1.0, -1.0), repeat=len(kinks)), MOST_KINK_RESTARTS if kinks else 0):
            step = np.zeros(len(equations.sizes))
            step[kinks] = KINK_STEP * np.array(signs)
            yield self._changed_point(equations, step)
        rng = np.random.default_rng(0)
        for far in RESTART_SPREADS:
            yield self._random_restart(far, rng)

    def _kinks(self, equations: Equations[SearchPoint]) -> list[int]:
        """Return the unknowns, joints excluded, that are zero and at which the derivatives have a kink."""
        kinks, vectors = [], equations.place.point.vectors
        for j, name in enumerate(equations.place.unknowns):
            kind, i = self.places.get(name, ("q", 0))
            if kind == "q" or vectors[kind][i]:
                continue
            step = np.where(np.arange(len(equations.sizes)) == j, KINK_STEP, 0.0)
            sides = [equations, *(self.equations(self._changed_point(equations, way * step)) for way in (1.0, -1.0))]
            slopes = np.array([side.jacobian[:, j] for side in sides])
            low, high = slopes.min(axis=0), slopes.max(axis=0)
            if (high - low > np.maximum(0.1 * np.maximum(high, -low), equations.least_scales)).any():
                kinks.append(j)
        return kinks

    def _random_restart(self, far: float, rng: np.random.Generator) -> OperatingPoint:
        """Return the guess with random displacements of the joints that are not held."""
        guess, s = self.guess, self.system
        dynamics = self._suitable_dynamics(guess)
        m, free = s.mechanism, [i for i in dynamics.independent if s.mechanism.columns[1][i] not in self.held]
        xi = np.zeros(m.nv)
        xi[free] = far * rng.normal(size=len(free))
        y = np.array(guess.y)
        y[0, : m.nq] = displaced_positions(s, guess.p[0], guess.y[0, : m.nq], xi, dynamics.independent)
        return replace(guess, y=y)


def _checked_names(what: str, value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else list(as_tuple(what, value, "names"))
    for name in names:
        if not isinstance(name, str):
            raise InputError(f'{what}: {name!r} is not a name; expected names, as in {what}=["elbow.q"].')
    return names


def _vector_elements(s: System) -> dict[str, list[str]]:
    """Return the element names of whole vectors."""
    return {"q": [f"{n}.q" for n in s.mechanism.columns[0]], "x": [z.name for z in s.states], "u": list(s.inputs)}


def _joint_columns(m: Mechanism, joint: str, kind: int) -> list[str]:
    """Return the elements of q (0) or of v (1) that belong to a joint."""
    return [n for n in m.columns[kind] if n == joint or n.rpartition(".")[0] == joint]


UNDETERMINED_SHARE = 1e-3  # share of an unknown in the null space above which it counts as undetermined


class EquilibriumError(InputError):
    """No equilibrium was found near the guess.

    Parameters
    ----------
    text : str
        The message.
    nearest : Equilibrium
        The best state that was reached.
    """

    def __init__(self, text: str, nearest: Equilibrium) -> None:
        super().__init__(text)
        self.nearest = nearest


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Equilibrium of a system, for bc.linearize(plant, at=found) or bc.simulate(plant, q0=found.q, x0=found.x, ...).

    Parameters
    ----------
    plant : Mechanism or System
        The plant.
    system : System
        The plant with all inputs that were given or solved for.
    q : ndarray, shape (nq,)
        Joint positions, rad or m.
    x : ndarray, shape (nx,)
        Further states.
    inputs : dict of str to float
        Values of the inputs.
    parameters : dict of str to float
        Values of the free parameters.
    t : float
        Time, s.
    held : dict of str to float
        Quantities that were to be held, and their values.
    solved : tuple of str
        Names of the unknowns.
    undetermined : tuple of str
        Unknowns that no equation determines: they stay near the guess.
    failures : tuple of str
        A sentence for each quantity that is not at rest, or could not be held.
    rounds : int
        Number of iterations.
    """

    plant: Mechanism | System = field(repr=False)
    system: System = field(repr=False)
    q: Array
    x: Array
    inputs: dict[str, float]
    parameters: dict[str, float]
    t: float
    held: dict[str, float]
    solved: tuple[str, ...]
    undetermined: tuple[str, ...]
    failures: tuple[str, ...]
    rounds: int

    @property
    def v(self) -> Array:
        """Velocities, all zero."""
        return np.zeros(self.system.mechanism.nv)

    @property
    def at(self) -> dict[str, Any]:
        """The point in the form that `at` of bc.linearize accepts."""
        x = {z.name: float(value) for z, value in zip(self.system.states, self.x, strict=True)}
        return {"q": self.q, **x, **self.inputs, **self.parameters, "t": self.t}

    @property
    def rows(self) -> list[tuple[str, float, str]]:
        """Every element: its name, its value, and whether it was held or solved for."""
        m = self.system.mechanism
        values = {f"{n}.q": x for n, x in zip(m.columns[0], self.q, strict=True)}
        values |= {z.name: x for z, x in zip(self.system.states, self.x, strict=True)}
        values |= self.inputs | {n: self.parameters[n] for n in self.solved if n in self.parameters} | self.held
        words = dict.fromkeys(self.solved, "solved") | dict.fromkeys(self.held, "held")
        words |= dict.fromkeys(self.undetermined, "solved, of many")
        return [(name, float(x), words.get(name, "")) for name, x in values.items()]

    def __str__(self) -> str:
        rows = [(name, f"{x:.6g}", word) for name, x, word in self.rows]
        title = f"{single_line(self.system.mechanism.name)}: {'does not rest' if self.failures else 'rests'}"
        title += f", after {self.rounds} rounds"
        return str(Table(title, ("element", "value", ""), rows, (1,), "\n".join(map(single_line, self.failures))))


@explain_argument_errors
def equilibrium(
    plant: Mechanism | System, at: Any = None, hold: Any = (), free: Sequence[str] | str | None = None
) -> Equilibrium:
    """Return the equilibrium of a plant that is found from a guess.

        bc.equilibrium(arm)                                              # hanging, or on its springs
        bc.equilibrium(arm, at={"elbow.q": 0.5}, hold="q")               # the torques that hold it there
        bc.equilibrium(plant, hold={"tip.z": 0.3}, free=["boom.command"])

    Velocities are zero. All positions and states that are not held are solved for. Unknowns that no equation determines
    stay near the guess. An equilibrium may be unstable: bc.linearize(plant, at=...).modes() shows that.

    Parameters
    ----------
    plant : Mechanism or System
        The plant.
    at : mapping or Equilibrium, optional
        The guess, as in `bellcrank.linearize`; loops need not be closed in it.
    hold : str, sequence of str, or mapping, optional
        Quantities that are held, by name: elements ("elbow.q"), whole vectors ("q", "x", "u"), or any column of a
        record ("tip.z"). A list holds the values of the guess, a mapping gives values.
    free : str or sequence of str, optional
        Inputs, forces ("boom.tau") and free parameters that are solved for as well. The default is none; where
        positions are held, it is all inputs that are not held.

    Returns
    -------
    Equilibrium
        The state, the inputs and the parameters; prints as a table.

    Raises
    ------
    EquilibriumError
        If no equilibrium is found or a quantity cannot be held; its `nearest` is the best state that was reached.
    """
    search = RestSearch(plant, at, hold, free)
    result = _equilibrium(search, *search.solve())
    if result.failures:
        raise EquilibriumError(
            f'"{result.system.mechanism.name}" could not be brought to rest near the guess:\n  '
            + "\n  ".join(result.failures)
            + "\nGive another guess (at=...), hold fewer quantities, or solve for inputs: free=[...]. Inputs: "
            f"{', '.join(result.system.inputs) or 'none'}. The error's .nearest is the best state that was found.",
            result,
        )
    return result


def _equilibrium(search: RestSearch, best: Equations[SearchPoint], rounds: int) -> Equilibrium:
    s, place = search.system, best.place
    point_values, loose = place.point.vectors, best.undetermined_shares
    held_values = {n: point_values[kind][i] for n, (kind, i) in search.places.items() if n in search.hold}
    inputs, parameters = (
        dict(zip(names, point_values[key].tolist(), strict=True))
        for names, key in ((s.inputs, "u"), (s.parameters, "p"))
    )
    point = point_values["q"], point_values["x"], inputs, parameters, float(point_values["t"])
    held = {n: float(held_values.get(n, search.targets.get(n, np.nan))) for n in search.hold}
    undetermined = tuple(n for n, x in zip(place.unknowns, loose, strict=True) if x > UNDETERMINED_SHARE)
    failures = tuple(_failures(search, best))
    return Equilibrium(search.plant, s, *point, held, place.unknowns, undetermined, failures, rounds)


def _failures(search: RestSearch, best: Equations[SearchPoint]) -> list[str]:
    """Return a sentence for each quantity that is not at rest, or is not held."""
    sentences = _prescribed_motions(search.system, float(best.place.point.vectors["t"]))
    for i, name in enumerate(best.place.equations):
        if best.excess[i] <= 1.0:
            continue
        value, idle = best.values[i], not (best.scales[i] > best.least_scales[i])
        if name in search.targets and i >= len(best.place.equations) - len(search.targets) and name in search.hold:
            text = f"{name} is {search.targets[name] + value:.6g}, but was to be held at {search.targets[name]:.6g}"
        else:
            text = f"{name} changes by {value:.6g} a second"
        sentences.append(text + ("; none of the unknowns acts on it" if idle else ""))
    return sentences


def _prescribed_motions(s: System, t: float) -> list[str]:
    """Return a line for each prescribed motion that has a speed or an acceleration at the time t."""
    lines = []
    for name, motion in s.motions.items():
        place = prescribed_jet(name, motion, t)
        speed, acceleration = nominal(place.d), nominal(place.c)
        if speed or acceleration:
            lines.append(f'the motion of "{name}" goes on: speed {speed:.6g}, acceleration {acceleration:.6g}')
    return lines
