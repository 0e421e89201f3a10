"""Record columns as functions of the state over any scalar, their units, and nominal magnitudes of the state.

The names are those of the record: elements of the state, accelerations, forces of the drives (tau), of springs, dampers
and friction (passive), external forces (external, and the wrenches themselves), commands, outputs of the system,
energies and powers, positions and speeds of frames, and section loads of beams.

Nominal magnitudes of the elements of the state scale absolute errors, as in an importer of an FMU:

    an angle              1 rad
    a sliding joint       its limits, else the largest distance inside a body of the mechanism
    a mode                its deflection under the body's own weight: g sqrt(m_k m) / k_k, with its modal mass m_k
    a velocity            its limit; else the coordinate per second, or for a mode its frequency times the coordinate
    a state of a part     the value given by the part (a pressure: that of its pump); else the least of the nominal
                          values of states in that unit; else its start or 1, whichever is larger

They follow from the model and from nominal values of its free parameters; no run is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.actuators import StateVariable
from bellcrank.build import graphs, policy
from bellcrank.dynamics import candidates
from bellcrank.dynamics.quantities import Request
from bellcrank.model import Mechanism
from bellcrank.model.flexible_body import Modal
from bellcrank.model.joints import KINDS
from bellcrank.model.outline import LOAD_NAMES, STRESS_NAME, BeamSlice
from bellcrank.parameters import nominal
from bellcrank.record import state_columns
from bellcrank.record.contents import COMPONENTS, ENERGIES, FORCES, FRAME_COLUMNS, POWERS, sections, units
from bellcrank.scalar import Scalar, fabs, maximum, sqrt
from bellcrank.sim.system.element_forces import ElementResult
from bellcrank.sim.system.systems import System


@dataclass(frozen=True)
class SolvedMotion:
    """Accelerations at one state, and the forces that follow from them."""

    accelerations: list[Scalar]
    drive: Sequence[Scalar] = ()  # force of the drive of each prescribed motion
    motion: Sequence[Scalar] = ()  # the same on the coordinates
    bearings: Sequence[ElementResult] = ()  # friction of each bearing
    resistance: Sequence[tuple[Mapping[int, Scalar], Scalar]] = ()  # Jacobian rows, and how strongly friction opposes
    latches: Sequence[ElementResult] = ()  # force of each latch
    latch_wrenches: Sequence[tuple[str, list[Scalar]]] = ()  # on frames of `latched_tree`, in world axes
    margin: Scalar = 1.0  # positive if the friction of bearings has exactly one solution (bearing_friction.py)


SolveMotion = Callable[[Sequence[Scalar], Sequence[Scalar]], SolvedMotion]  # function of (y, tau)


def observable_units(s: System) -> dict[str, str]:
    """Return every column of the system `s` that can be observed, with its unit."""
    m = s.mechanism
    sizes = {"q": m.nq} | dict.fromkeys(("v", "a", *s.kinds), m.nv)
    empty = state_columns(m, np.zeros(1), **{key: np.zeros((1, n)) for key, n in sizes.items()})
    units_by_column = {name: column.unit for name, column in empty.items() if name != "t"}
    units_by_column |= {z.name: z.unit for z in s.states}
    if s.actuators:
        units_by_column |= {f"{name}.command": "" for name in s.commands}
    units_by_column |= dict.fromkeys(s.outputs, "")
    units_by_column |= {f"{frame}.{c}": "N" if c[0] == "f" else "N m" for frame in s.wrenches for c in COMPONENTS}
    units_by_column |= s.element_units
    units_by_column |= {name: "J" for name in ENERGIES if name not in units_by_column}
    units_by_column |= {name: "W" for name, kind in POWERS.items() if kind in s.kinds and name not in units_by_column}
    frames = {f"{frame}.{p}": "m/s" if p == "speed" else "m" for frame in m.frames for p in FRAME_COLUMNS}
    more = frames | section_units(m)
    return units_by_column | {name: unit for name, unit in more.items() if name not in units_by_column}


class StateColumns:
    """Columns at one state; each group of them is computed on first use."""

    def __init__(self, s: System, solve: SolveMotion, t: Scalar, y: Sequence[Scalar], u: Any) -> None:
        self.system, self.solve, self.t, self.y, self.u = s, solve, t, list(y), u

    def __getitem__(self, name: str) -> Scalar:
        s, m = self.system, self.system.mechanism
        element, _, kind = name.rpartition(".")
        names = m.columns[0] if kind == "q" else s.commands if kind == "command" else m.columns[1]
        states = [z.name for z in s.states]
        if name in s.outputs:
            return self._outputs[name]
        if name in states:
            return self._state[2][states.index(name)]
        if kind in ("q", "v", "a", *FORCES, "command") and element in names:
            return self._vector(kind)[names.index(element)]
        if kind in COMPONENTS and element in s.wrenches:
            return self._external[1][element][COMPONENTS.index(kind)]
        if name in s.element_units:
            return [x for a in self._acts for x in a.shown][list(s.element_units).index(name)]
        if name in ENERGIES:
            return sum((self._quantity(f"{what}_energy") for what in self._energy_kinds(name)), 0.0)
        if name in POWERS:
            return self._power(POWERS[name])
        if name in section_units(m):
            return section_column(m, name, self._state[0])
        if kind == "speed":
            velocity = self._quantity("velocity", element)[:3]
            return sqrt(sum((x * x for x in velocity[1:]), velocity[0] * velocity[0]))
        return self._quantity("pose", element)[FRAME_COLUMNS.index(kind)][3]

    def _vector(self, kind: str) -> list[Scalar]:
        if kind in ("q", "v"):
            return self._state[kind == "v"]
        if kind in ("tau", "command"):
            return self._forces[kind == "command"]
        if kind == "element":
            return self.system.summed(self._acts, self.y)
        return self._a if kind == "a" else self._external[0] if kind == "external" else self._passive

    def _power(self, kind: str) -> Scalar:
        q, v, _ = self._state
        force = self._vector(kind)
        if kind == "passive":  # springs store energy
            still = _function(self.system.mechanism, "passive_torque", "")(q, [0.0] * len(v))
            force = [a - b for a, b in zip(force, still, strict=True)]
        return sum((f * u for f, u in zip(force, v, strict=True)), 0.0)

    def _energy_kinds(self, energy: str) -> tuple[str, ...]:
        return ("kinetic", "potential") if energy == "energy" else (energy.partition("_")[0],)

    def _quantity(self, quantity: str, frame: str = "") -> Any:
        """Return a quantity of the mechanism in this state."""
        q, v, _ = self._state
        given = (q, v) if quantity in ("kinetic_energy", "velocity", "passive_torque") else (q,)
        return _function(self.system.mechanism, quantity, frame)(*given)

    @cached_property
    def _state(self) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        q, v, x = self.system.split(self.y)
        return list(q), list(v), list(x)

    @cached_property
    def _forces(self) -> tuple[list[Scalar], list[Scalar]]:
        """Forces of the drives, and their commands."""
        commands, _ = self.system.commanded(self.t, self.y, self.u)
        return self.system.forces(self.t, self.y, commands)[0], commands

    @cached_property
    def _external(self) -> tuple[list[Scalar], dict[str, list[Scalar]]]:
        return self.system.outside(self.t, self.y)

    @cached_property
    def _acts(self) -> list[ElementResult]:
        own = self.system.acts(self.t, self.y, shown=True)
        return [*own, *self._motion.latches, *self._motion.bearings] if self.system.solved_elements else own

    @cached_property
    def _passive(self) -> list[Scalar]:
        return list(self._quantity("passive_torque"))

    @cached_property
    def _motion(self) -> SolvedMotion:
        return self.solve(self.y, self.system.pushed(self.t, self.y, self._forces[0]))

    @property
    def _a(self) -> list[Scalar]:
        return self._motion.accelerations

    @cached_property
    def _outputs(self) -> dict[str, Scalar]:
        return self.system.observed(self.t, self.y, self.u)


def _function(m: Mechanism, quantity: str, frame: str) -> Callable[..., Any]:
    method, request = candidates(quantity, m.tree)[0], Request(quantity, frame=frame)
    function = graphs.with_layer(m, request, policy.plan(m, request, method)).function(quantity)
    tree, options = graphs.quantity_tree(m, quantity, method), {"frame": frame} if frame else {}
    return lambda *given: function(tree, *given, **options)


def section_units(m: Mechanism) -> dict[str, str]:
    """Return the columns of all sections of the mechanism `m`, with their units."""
    units_by_load = {STRESS_NAME: "Pa", "N": "N", "Vy": "N", "Vz": "N"}
    return {name: units_by_load.get(what, "N m") for name, (_, what) in sections(m).items()}


def section_column(m: Mechanism, name: str, q: Sequence[Scalar]) -> Scalar:
    """Return the column `name` of a section of the mechanism `m` at the positions `q`."""
    place, what = sections(m)[name]
    coordinates = [q[m.columns[0].index(x)] for x in place.coordinates]
    if what == STRESS_NAME:
        return _stress(place, *(_load(place, coordinates, x) for x in ("N", "My", "Mz")))
    return _load(place, coordinates, what)


def _load(place: BeamSlice, coordinates: Sequence[Scalar], what: str) -> Scalar:
    total: Scalar = 0.0
    for x, row in zip(coordinates, place.loads, strict=True):
        total = total + x * row[LOAD_NAMES.index(what)]
    return total


def _stress(place: BeamSlice, N: Scalar, My: Scalar, Mz: Scalar) -> Scalar:
    """Return the largest absolute axial stress of any fibre."""
    if place.round:  # the most stressed fibre lies between two corners
        pull, y, z = place.fibres[0]
        return fabs(N * pull) + sqrt((My * My + Mz * Mz) * (y * y + z * z))
    largest: Scalar = 0.0
    for pull, y, z in place.fibres:
        largest = maximum(largest, fabs(N * pull + My * y + Mz * z))
    return largest


Array = np.ndarray[Any, Any]
GRAVITY_M_S2 = 9.81  # m/s^2: also for models without gravity, in which other forces have this magnitude


def nominals(s: System) -> Array:
    """Return the nominal magnitudes of q, v and x of the system `s`, in this order; all are finite and positive."""
    q, v = _joint_nominals(s.mechanism)
    known = dict[str, float]()
    for z in (z for z in s.states if z.unit and _finite_magnitude(z.nominal)):
        known[z.unit] = min(_finite_magnitude(z.nominal), known.get(z.unit, math.inf))
    return np.array([*q, *v, *(_state_nominal(z, known) for z in s.states)], float)


def _state_nominal(z: StateVariable, known: Mapping[str, float]) -> float:
    return _finite_magnitude(z.nominal) or known.get(z.unit) or max(1.0, abs(z.initial))


def _finite_magnitude(x: Any) -> float:
    """Return the magnitude of x; 0 if it is infinite, zero or not a number."""
    size = abs(float(nominal(x)))
    return size if math.isfinite(size) else 0.0


def _joint_nominals(m: Mechanism) -> tuple[list[float], list[float]]:
    (q_unit, v_unit), limits, length = units(m), m.limits, _largest_distance(m)
    ends = zip(q_unit, limits.lower, limits.upper, strict=True)
    q = [(_largest_limit(low, high) or length) if unit == "m" else 1.0 for unit, low, high in ends]
    v = [length if unit == "m" else 1.0 for unit in v_unit]
    i = k = 0
    for kind in (KINDS[j.kind] for j in m.own_joints):
        if kind.nq == kind.nv:  # the rate of a quaternion is not its angular velocity
            v[k : k + kind.nv] = q[i : i + kind.nq]
        i, k = i + kind.nq, k + kind.nv
    v = [_finite_magnitude(most) or usual for most, usual in zip(limits.velocity, v, strict=True)]
    plain = (m.at() if m.parameters else m).tree
    for flexible, given in zip(plain.flexible, m.flexible, strict=True):
        for n, (i, k) in enumerate(zip(flexible.q_index, flexible.v_index, strict=True)):
            q[i], v[k] = _modal_nominals(m, given, n) or (q[i], v[k])
    return q, v


def _modal_nominals(m: Mechanism, given: Modal, n: int) -> tuple[float, float] | None:
    """Return nominal deflection and velocity of a mode; None without stiffness or mass."""
    modal, stiff = _finite_magnitude(np.trace(np.array(given.D[n][n], float))), _finite_magnitude(given.stiffness[n])
    if not modal or not stiff:
        return None
    mass = next((_finite_magnitude(b.mass) for b in m.bodies if b.name == given.body), 0.0) or modal
    deflection = GRAVITY_M_S2 * math.sqrt(modal * mass) / stiff
    return deflection, deflection * math.sqrt(stiff / modal)


def _largest_limit(lower: float, upper: float) -> float:
    """Return the largest distance from zero that finite limits allow, else 0."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return 0.0
    return max(_finite_magnitude(lower), _finite_magnitude(upper))


def _largest_distance(m: Mechanism) -> float:
    """Return the largest distance between the origin of a body and a joint on it or its centre of mass."""
    points = [*(j.point for j in m.joints), *(b.com for b in m.bodies)]
    return max((_finite_magnitude(math.hypot(*map(float, nominal(p)))) for p in points), default=0.0) or 1.0
