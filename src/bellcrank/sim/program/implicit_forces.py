"""Damping, dry friction and contacts, treated implicitly in explicit steps that are too long for them.

Near rest, dry friction and contacts are very stiff dampers: a foot of a walking robot loses its sliding speed within
0.1 ms, and an explicit step of 1 ms makes it oscillate. Let G be the matrix of slopes with which such forces oppose v.
An explicit method then integrates not a but

    a' = a - (1 - S)^2 a,    S = (M + g G)^-1 M,  (1 - S) x = (M + g G)^-1 g G x,  g = 2 h

For a single mode with the rate L = G/M the filtered rate is h L (1 + 4 h L)/(1 + 2 h L)^2, which is below 1 for every
h L: a method that damps rates up to h L = 1 without overshoot damps all of them (the new speed has the sign of the old
one). For a method with a smaller limit, such as abm4, g is larger. Where h L is small the filter is 1 - O(h^2 L^2).
Where a is 0, a' is 0 too: a body at rest, and the forces on it, are not changed. For any symmetric G the matrix that
replaces M^-1 is symmetric and positive, and smaller than M^-1.

G has slopes of chords, from the force at rest to the present force. A chord is no flatter than the tangent, so that
friction which saturates is not overshot. Only the part of a slope above m/h enters G (or above half of the rate that
the method damps without overshoot, if that is less), with m the least inertia that the force meets in the neutral
configuration. Forces that the method resolves by itself are therefore unchanged to the last bit, and every method keeps
its order. Linearly implicit methods of this kind are known as W-methods: T. Steihaug, A. Wolfbrandt. An attempt to
avoid exact Jacobian and nonlinear equations in the numerical solution of stiff differential equations. Mathematics of
Computation 33, 521-534, 1979.

A contact's normal force rises with the depth as well; its increase during a step of h is part of G. Bristles that slip
within a step do so by backward Euler (`Contact.stepped`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build import policy
from bellcrank.dynamics import METHODS, crba
from bellcrank.dynamics.frame_pairs import frame_pair
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.ltl_factorisation import Rows, factorise, nonzero_triangle, substitute
from bellcrank.forces.contact import Contact
from bellcrank.forces.element import Between, Resistance
from bellcrank.forces.shapes import outer_radius
from bellcrank.integrate import Integrator, Problem, integrator
from bellcrank.integrate.problem import Rate
from bellcrank.model import Tree
from bellcrank.parameters import nominal
from bellcrank.scalar import Scalar, is_zero, maximum, step
from bellcrank.sim.settings import DEFAULT_STEP_S, Solver
from bellcrank.sim.system.element_forces import relative_motion
from bellcrank.sim.system.joint_loads import bearing_place
from bellcrank.spatial.vector import Vec, vec

if TYPE_CHECKING:
    from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]
State = list[Scalar]
MAX_TESTED_RATE = 2.0  # largest h L at which methods are tested for damping without overshoot
TESTED_RATES, DECAYING_STEPS = 40, 40  # rates of the test, and its steps
# A joint's slope below this part of the resolved one, in the neutral configuration, is always explicit.
EXPLICIT_SHARE = 0.25
# Products of the largest unrolled factorisation of M: a chain of 35 bodies, or any humanoid.
MAX_FACTOR_PRODUCTS = 15_000
MAX_MASS_CONDITION = 1e14  # of a mass matrix that can be inverted


@dataclass(frozen=True)
class ImplicitForces:
    """Forces of a system that are implicit, each with the slope m/h that its steps resolve explicitly."""

    filter_steps: float  # g/h
    joints: Mapping[int, float]  # element of v -> resolved slope times h, kg or kg m^2
    actuators: Mapping[int, float]  # number of the actuator -> resolved slope times h
    elements: Mapping[int, float]  # number of the element -> resolved slope times h
    bearings: Sequence[float] = ()  # for each axis of a joint with bearing friction: resolved slope times h

    def matrix(
        self, s: System, t: Scalar, y: Sequence[Scalar], commands: Sequence[Scalar], h: Scalar,
        resistance: Sequence[tuple[Mapping[int, Scalar], Scalar]] = (),
    ) -> Rows:  # fmt: skip
        """Return the lower triangle of g G, without elements that are always zero.

        Parameters
        ----------
        s
            The system.
        t
            Time, s.
        y
            State.
        commands
            Commands of the drives.
        h
            Length of a step, s.
        resistance
            Jacobian row of each axis of a joint with bearing friction, and the slope with which it opposes.
        """
        G: Rows = [{} for _ in range(s.mechanism.nv)]
        step("implicit forces")
        for k, slope in (*self._joint_slopes(s, y, h), *self._actuator_slopes(s, t, y, commands, h)):
            _add_entry(G, k, k, slope)
        for e, x, resolved in self._implicit_elements(s, y):
            _add_element(G, s, e, (t, y, x, h), resolved / h)
        for (row, slope), resolved in zip(resistance, self.bearings, strict=True):
            unresolved = _unresolved_slope(slope, resolved / h)
            for i, x in row.items():
                for j, y_j in row.items():
                    if j <= i:
                        _add_entry(G, i, j, x * y_j * unresolved)
        g = self.filter_steps * h
        return [{j: g * x for j, x in row.items()} for row in G]

    def implicit_system(self, s: System, h: Scalar) -> System:
        """Return the system `s` with its force elements as steps of `h` use them."""
        elements = [e.stepped(h) if isinstance(e, Between) else e for e in s.elements]
        same = all(a is b for a, b in zip(elements, s.elements, strict=True))
        return s if same else replace(s, elements=tuple(elements))

    def _joint_slopes(self, s: System, y: Sequence[Scalar], h: Scalar) -> Iterator[tuple[int, Scalar]]:
        v = list(s.split(y)[1])
        for link in s.mechanism.tree.links:
            if not any(k in self.joints for k in link.v_index):
                continue
            for k, slope in zip(link.v_index, link.resistance(v), strict=True):
                if k in self.joints:
                    yield k, _unresolved_slope(slope, self.joints[k] / h)

    def _actuator_slopes(
        self, s: System, t: Scalar, y: Sequence[Scalar], commands: Sequence[Scalar], h: Scalar
    ) -> Iterator[tuple[int, Scalar]]:
        q, v, x = s.split(y)
        for number, (a, own_states, command) in enumerate(s.driven_actuators(x, commands)):
            if number in self.actuators:
                slope = a.resistance(t, q[a.joint], v[a.joint], own_states, command)
                yield v.names.index(a.joint), _unresolved_slope(slope, self.actuators[number] / h)

    def _implicit_elements(self, s: System, y: Sequence[Scalar]) -> Iterator[tuple[Between, Sequence[Scalar], float]]:
        for number, (e, own_states) in enumerate(s.elements_with_states(s.split(y)[2])):
            if number in self.elements:
                assert isinstance(e, Between)
                yield e, own_states, self.elements[number]


def _unresolved_slope(slope: Scalar, resolved: Scalar) -> Scalar:
    return 0.0 if is_zero(slope) else maximum(slope - resolved, 0.0)


def _add_entry(G: Rows, i: int, j: int, x: Scalar) -> None:
    if not is_zero(x):
        low, high = min(i, j), max(i, j)
        G[high][low] = G[high][low] + x if low in G[high] else x


def _add_element(G: Rows, s: System, e: Between, arguments: tuple[Any, ...], resolved: Scalar) -> None:
    """Add J^T C J for each contact point: C = across + (along - across) n n^T, J v is the relative velocity there."""
    t, y, x, h = arguments
    q, v, _ = s.split(y)
    a, b = frame_pair(s.mechanism.tree, e.a, e.b, list(q), list(v))
    pose, velocity, d = relative_motion(a, b)
    turn = a.R.T
    for r in e.resistance(t, pose, velocity, x, h):
        place = a.R @ vec(r.place)
        columns: dict[int, Vec] = {}
        for sign, end, arm in ((1.0, b, place - d), (-1.0, a, place)):
            for k, motion in end.columns:
                u = turn @ ((motion.lin + motion.ang.cross(arm)) * sign)
                columns[k] = columns[k] + u if k in columns else u
        _add_contact_point(G, columns, r, resolved)


def _add_contact_point(G: Rows, columns: Mapping[int, Vec], r: Resistance, resolved: Scalar) -> None:
    along, across = _unresolved_slope(r.along, resolved), _unresolved_slope(r.across, resolved)
    n, more = vec(r.normal), along - across
    normals = {k: n.dot(u) for k, u in columns.items()}
    for i, u in columns.items():
        pulled, pushed = u * across, normals[i] * more
        for j, w in columns.items():
            if j <= i:
                _add_entry(G, i, j, w.dot(pulled) + normals[j] * pushed)


# -- choice of the implicit forces, before a run


def can_be_implicit(s: System, method: Integrator) -> bool:
    """Return whether fixed steps of the `method` can treat forces of the system `s` implicitly."""
    return not (method.stiff or s.motions or s.latches or is_large(s))


def is_large(s: System) -> bool:
    """Return whether the system `s` is too large: its mass matrix for every step, or its elements are rolled."""
    links = s.mechanism.tree.links
    if len(links) >= policy.MIN_PASS_BODIES:
        return True
    carrying, work = [0] * len(links), 0  # elements of v down to the ground; products of a factorisation
    for i, link in enumerate(links):
        carrying[i] = len(link.v_index) + (carrying[link.parent] if link.parent >= 0 else 0)
        work += len(link.v_index) * carrying[i] ** 2
    return work > MAX_FACTOR_PRODUCTS


def decay(z: Any) -> tuple[Rate, list[Scalar]]:
    """Return the rate and the initial state of a speed that decays at the rate `z` per unit of time."""
    return lambda t, y: [0.0 * y[1], -z * y[1]], [0.0, z]


@cache
def damped_rate(method: Integrator) -> float:
    """Return the largest h L with which the `method` damps dv/dt = -L v without overshoot, up to MAX_TESTED_RATE."""
    rates = np.linspace(MAX_TESTED_RATE / TESTED_RATES, MAX_TESTED_RATE, TESTED_RATES)
    rate, y = decay(rates)
    problem = Problem(rate, 1, 1, 0)
    memory, is_damped = method.begin(problem, 0.0, y, 1.0), np.ones(TESTED_RATES, bool)
    for k in range(DECAYING_STEPS):
        stepped = method.step(problem, float(k), y, 1.0, memory)
        is_damped &= (stepped.y[1] >= 0.0) & (stepped.y[1] <= y[1])
        y, memory = stepped.y, stepped.memory
    return MAX_TESTED_RATE if is_damped.all() else float(np.argmin(is_damped)) * MAX_TESTED_RATE / TESTED_RATES


def implicit_forces(s: System, solver: Solver) -> ImplicitForces | None:
    """Return the forces of the system `s` that fixed steps of the `solver` need implicit, or None if there are none.

    It is None as well where forces cannot be implicit.
    """
    m, method = s.mechanism, integrator(solver.integrator)
    if not can_be_implicit(s, method) or not has_resistance(s):
        return None
    if not (limit := damped_rate(method)):
        return None
    resolved = min(1.0, 0.5 * limit)
    tree = (m.at() if m.parameters else m).tree
    inverse = mobility(tree, m.neutral())
    h = solver.step if solver.step is not None else DEFAULT_STEP_S
    slow = [0.0] * m.nv

    def stiff(k: int, slope: float) -> bool:
        return h * slope * float(inverse[k, k]) > EXPLICIT_SHARE * resolved

    joints = {
        k: resolved / float(inverse[k, k])
        for link in tree.links
        for k, slope in zip(link.v_index, link.resistance(slow), strict=True)
        if stiff(k, float(slope))
    }
    actuators = {}
    for number, a in enumerate(map(nominal, s.actuators)):
        k = m.columns[1].index(a.joint)
        if stiff(k, float(a.resistance(0.0, 0.0, 0.0, [0.0] * len(a.states), 0.0))):
            actuators[number] = resolved / float(inverse[k, k])
    elements = {
        number: resolved / _contact_mobility(tree, inverse, nominal(e), m.neutral())
        for number, e in enumerate(s.elements)
        if isinstance(e, Contact)
    }
    bearings = [resolved / x if x else 0.0 for x in _bearing_mobilities(s, tree)]
    if not (joints or actuators or elements or bearings):
        return None
    return ImplicitForces(2.0 / min(1.0, limit), joints, actuators, elements, bearings)


def has_resistance(s: System) -> bool:
    """Return whether the system `s` has any force that could be implicit."""
    joints = any(j.damping or j.friction for j in s.mechanism.joints)
    return joints or any(isinstance(e, Contact) for e in s.elements) or bool(s.actuators) or bool(s.bearings)


def mobility(tree: Tree, q: Array, held: Sequence[int] = ()) -> Array:
    """Return M^-1 with some elements of v prescribed.

    Parameters
    ----------
    tree
        The tree of bodies.
    q
        Positions.
    held
        Prescribed elements of v; their rows and columns are zero.

    Returns
    -------
    ndarray, shape (nv, nv)
        The inverse; infinite where it does not exist.
    """
    M = np.array(crba.mass_matrix(tree, q.tolist()), float).reshape(tree.nv, tree.nv)
    free = np.setdiff1d(np.arange(tree.nv), held)
    free_mass, inverse = M[np.ix_(free, free)], np.zeros_like(M)
    if not free.size:
        return inverse  # all elements are prescribed, so that no force has an effect
    is_regular = np.isfinite(free_mass).all() and np.linalg.cond(free_mass) <= MAX_MASS_CONDITION
    inverse[np.ix_(free, free)] = np.linalg.inv(free_mass) if is_regular else np.inf
    return inverse


def _bearing_mobilities(s: System, tree: Tree) -> Iterator[float]:
    """Yield 1/mass that friction meets along each axis of each joint with bearing friction, infinite if unknown.

    The neutral configuration of a mechanism with loops may be singular, so that a sample of the analysis is used.
    """
    m = s.mechanism
    q = np.asarray(analysis(m).samples[0], float) if m.loops else m.neutral()
    inverse = mobility(tree, q) if s.bearings else np.zeros((0, 0))
    for e in s.bearings:
        for sparse_row in bearing_place(tree, nominal(e), q.tolist()).rows:
            row = np.zeros(tree.nv)
            row[list(sparse_row)] = [float(x) for x in sparse_row.values()]
            yield float(row @ inverse @ row) if np.isfinite(inverse).all() else np.inf


def _contact_mobility(tree: Tree, inverse: Array, e: Contact, q: Array) -> float:
    """Return the largest 1/mass that a force meets at any point of shape b, relative to shape a."""
    a, b = frame_pair(tree, e.a, e.b, q.tolist(), None)
    d, moved = b.p - a.p, {"lin": np.zeros((3, tree.nv)), "ang": np.zeros((3, tree.nv))}
    for sign, end in ((1.0, b), (-1.0, a)):
        for k, motion in end.columns:
            lin = motion.lin if end is b else motion.lin + motion.ang.cross(d)
            moved["lin"][:, k] += sign * np.array(list(lin), float)
            moved["ang"][:, k] += sign * np.array(list(motion.ang), float)
    if not np.isfinite(inverse).all():
        return np.inf
    linear, angular = (float(np.linalg.eigvalsh(J @ inverse @ J.T)[-1]) for J in moved.values())
    return float((max(linear, 0.0) ** 0.5 + outer_radius(e.shape_b) * max(angular, 0.0) ** 0.5) ** 2)


# -- the filter


def filtered_accelerations(a: State, added: Rows, answer: Callable[[State], State]) -> State:
    """Return a - (1 - S)^2 a.

    Parameters
    ----------
    a
        Accelerations.
    added
        Lower triangle of the matrix that is added to M.
    answer
        Map from forces to accelerations with the inertia M + added.
    """
    lost = answer(symmetric_product(added, answer(symmetric_product(added, a))))
    return [x - y for x, y in zip(a, lost, strict=True)]


def symmetric_product(G: Rows, x: Sequence[Scalar]) -> State:
    """Return the product of the symmetric matrix `G`, given by its lower triangle, and the vector `x`."""
    out: State = [0.0] * len(G)
    for i, row in enumerate(G):
        for j, g in row.items():
            out[i] = out[i] + g * x[j]
            if j != i:
                out[j] = out[j] + g * x[i]
    return out


def augmented_solver(tree: Tree, q: Sequence[Scalar], added: Rows) -> Callable[[State], State]:
    """Return the function b -> x with (M + added) x = b.

    Parameters
    ----------
    tree
        The tree of bodies.
    q
        Positions.
    added
        Lower triangle of the matrix that is added to M.
    """
    names = [str(k) for k in range(tree.nv)]
    M = augmented_mass(METHODS["crba"].function("mass_matrix")(tree, list(q)), added)
    L, _, inverse_D = factorise(M, names)
    return lambda b: substitute(L, b, names, lambda x, k: x * inverse_D[k])


def augmented_mass(M: Sequence[Sequence[Scalar]], added: Rows) -> Rows:
    """Return the lower triangle of `M` + `added` without its zeros."""
    rows = nonzero_triangle(M)
    for i, row in enumerate(added):
        for j, x in row.items():
            rows[i][j] = rows[i][j] + x if j in rows[i] else x
    return rows
