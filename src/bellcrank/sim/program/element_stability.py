"""Stability check of fixed steps against stiff force elements: each with the effective inertia at the start.

    omega^2 = k  r M^-1 r^T         r: derivative of its deflection by v

An explicit step that cannot follow omega diverges. An element that always acts then raises an error; one that acts at
times (a stop, a contact, a cable, teeth with play) gives a warning, because the run may never get there. Mechanisms
with loops are not checked: their constraints make bodies effectively heavier than the tree alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.articulated_compliance import ArticulatedCompliance, sum_by_body
from bellcrank.dynamics.frame_pairs import frame_pair, jacobian_row
from bellcrank.dynamics.singular_mass import MATRIX_CHECK_MAX_NV
from bellcrank.forces.contact import Contact
from bellcrank.forces.element import Between, Coupling, Element
from bellcrank.forces.frame_elements import Bushing, Cable
from bellcrank.forces.gears import Belt, Gear, Worm
from bellcrank.forces.joint_elements import EndStop
from bellcrank.integrate.problem import Integrator
from bellcrank.model import Mechanism, Tree
from bellcrank.parameters import nominal
from bellcrank.scalar import Scalar
from bellcrank.sim.program.implicit_forces import can_be_implicit, mobility
from bellcrank.sim.program.mode_stability import FastMotion, check_modes, check_motions, decay, oscillator, step_advice
from bellcrank.sim.system.systems import System
from bellcrank.spatial.vector import AXES, Vec

Array = np.ndarray[Any, Any]
INTERMITTENT_ELEMENTS = (Contact, EndStop, Cable, Gear)
MOST_SPRINGS = 100  # springs between points of a large mechanism that are checked
COINCIDENT_POINTS_M = 1e-9  # distance of the ends of a spring below which its direction is not determined


@dataclass(frozen=True)
class Spring(Between):
    """A spring between two points of the mechanism, as an element: it acts along the line through them."""

    stiffness: float = 0.0
    damping: float = 0.0
    length: float = 0.0

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Any:
        """Raise an error: the mechanism itself computes the force."""
        raise NotImplementedError("springs of a mechanism are part of its dynamics")

    def directions(self, a: Array, b: Array) -> list[Array]:
        """Return the direction in which the spring acts between the points `a` and `b`, all axes if they coincide."""
        distance = float(np.linalg.norm(b - a))
        if distance > COINCIDENT_POINTS_M:
            return [(b - a) / distance]
        return [] if self.length else list(np.eye(3))


def _springs(m: Mechanism) -> list[Spring]:
    """Return the springs between points of `m` as elements; of many the stiffest ones, and those that damp most."""
    springs = [
        Spring(s.name, s.a, s.b, float(s.stiffness), float(s.damping), float(s.length)) for s in map(nominal, m.springs)
    ]
    stiffest = sorted(springs, key=lambda s: s.stiffness, reverse=True)[:MOST_SPRINGS]
    damping_most = sorted(springs, key=lambda s: s.damping, reverse=True)[:MOST_SPRINGS]
    return list(dict.fromkeys([*stiffest, *damping_most]))


def check_steps(
    s: System, integrator: Integrator, h: float, y: Array, advice: Callable[[float], str] = step_advice
) -> None:
    """Raise an InputError or warn if fixed steps are too long, before anything is compiled for them.

    Parameters
    ----------
    s
        System.
    integrator
        Integrator.
    h
        Step, s.
    y
        Initial state.
    advice
        Function that formats the advice to use a given step.
    """
    check_modes(s.mechanism, integrator, h, advice)
    check_elements(s.mechanism, s.elements, integrator, h, y[: s.mechanism.nq], advice, can_be_implicit(s, integrator))


def check_elements(
    m: Mechanism, elements: Sequence[Element], integrator: Integrator, h: float, q: Array,
    advice: Callable[[float], str] = step_advice, implicit: bool = False,
) -> None:  # fmt: skip
    """Raise an InputError or warn if fixed steps are too long for force elements.

    Parameters
    ----------
    m
        Mechanism.
    elements
        Force elements.
    integrator
        Integrator.
    h
        Step, s.
    q
        Positions at which the inertia is computed.
    advice
        Function that formats the advice to use a given step.
    implicit
        True if contacts are treated implicitly, which is stable in steps of any length.
    """
    if not (elements or m.springs) or m.loops or integrator.stiff:
        return
    tree = (m.at() if m.parameters else m).tree
    large = m.nv > MATRIX_CHECK_MAX_NV and not tree.coupled
    elements = [*elements, *_springs(m)]
    frequencies_of = _frequencies_by_bodies if large else _frequencies_by_matrix
    dampers = [replace(e, stiffness=e.damping) for e in _linear_dampers(elements)]
    rates = frequencies_of(tree, m, dampers, q) ** 2 if dampers else np.zeros(0)
    motions = [
        FastMotion(
            f'{type(e).__name__} "{e.name}" damps what it moves within {1 / rate:.2g} s', rate, ", or damp less", decay,
            is_certain=not isinstance(e, INTERMITTENT_ELEMENTS),
        )
        for e, rate in zip(dampers, rates.tolist(), strict=True) if rate
    ]  # fmt: skip
    for e, omega in zip(elements, frequencies_of(tree, m, elements, q).tolist(), strict=True):
        is_stable = isinstance(e, Contact) and implicit
        consequence = ": it is stable, but bodies bounce off less than its damping implies" if is_stable else ""
        text = f'{type(e).__name__} "{e.name}" oscillates at {omega / (2 * math.pi):.4g} Hz with the mass it moves'
        is_certain = not isinstance(e, INTERMITTENT_ELEMENTS)
        motions.append(FastMotion(text, omega, ", or make it softer", oscillator, consequence, is_certain))
    check_motions(motions, integrator, h, advice)


# Elements that are linear in velocities, with `damping` in the same form as `stiffness`.
LINEAR_DAMPERS = (Bushing, Cable, Belt, Worm, Spring)


def _linear_dampers(elements: Sequence[Element]) -> list[Any]:
    """Return the linear dampers: velocities that decay faster than an explicit step can follow diverge."""
    return [e for e in map(nominal, elements) if isinstance(e, LINEAR_DAMPERS) and np.any(e.damping)]


def _frequencies_by_matrix(tree: Tree, m: Mechanism, elements: Sequence[Element], q: Array) -> Array:
    """Return omega of each element, by the inverse of the mass matrix."""
    inverse = mobility(tree, q)
    if not np.isfinite(inverse).all():
        return np.zeros(len(elements))
    rates = [[k * float(r @ inverse @ r) for k, r in _deflection_rows(tree, m, nominal(e), q)] for e in elements]
    return np.sqrt([max(body_rates, default=0.0) for body_rates in rates])


def _frequencies_by_bodies(tree: Tree, m: Mechanism, elements: Sequence[Element], q: Array) -> Array:
    """Return omega of each element by articulated compliances, for large mechanisms."""
    compliance, zero = ArticulatedCompliance(tree, q.tolist()), np.zeros(3)
    bodies = {k: i for i, link in enumerate(tree.links) for k in link.v_index}
    largest = []
    for e in map(nominal, elements):
        rates = [0.0]
        if isinstance(e, Coupling):
            indices = [bodies[m.columns[1].index(joint)] for joint in e.joints]
            for k, weights in _coupling_weights(e):
                pairs = [f for i, w in zip(indices, weights, strict=True) for f in compliance.joint_force(i, w)]
                rates.append(k * compliance.compliance(sum_by_body(pairs)))
        elif isinstance(e, Spring):
            for u in e.directions(compliance.position(e.a), compliance.position(e.b)) if e.stiffness else ():
                pair = [compliance.frame_force(e.a, -u, zero), compliance.frame_force(e.b, u, zero)]
                rates.append(e.stiffness * compliance.compliance(sum_by_body(compliance.with_reaction(pair))))
        elif isinstance(e, Between) and any(six := _six_stiffnesses(e)):
            for i, axis in enumerate(compliance.axes(e.a)):
                for k, force, moment in ((six[i], axis, zero), (six[3 + i], zero, axis)):
                    pair = [compliance.frame_force(e.a, -force, -moment), compliance.frame_force(e.b, force, moment)]
                    rates.append(k * compliance.compliance(sum_by_body(compliance.with_reaction(pair))) if k else 0.0)
        largest.append(max(rates))
    return np.sqrt(largest)


def _six_stiffnesses(e: Between) -> Sequence[float]:
    """Return the stiffness along and about the axes of a; zeros if unknown."""
    if isinstance(e, Bushing):
        return e.stiffness
    one = e.stiffness if isinstance(e, Cable) or (isinstance(e, Contact) and e.exponent == 1.0) else 0.0
    return one, one, one, 0.0, 0.0, 0.0


def _deflection_rows(tree: Tree, m: Mechanism, e: Element, q: Array) -> Iterator[tuple[float, Array]]:
    """Yield (stiffness, Jacobian row) of the deflections of an element."""
    if isinstance(e, Coupling):
        for k, weights in _coupling_weights(e):
            r = np.zeros(m.nv)
            r[[m.columns[1].index(joint) for joint in e.joints]] = weights
            yield k, r
        return
    assert isinstance(e, Between)
    six = (0.0,) * 6 if isinstance(e, Spring) else _six_stiffnesses(e)
    if not (e.stiffness if isinstance(e, Spring) else any(six)):
        return
    a, b = frame_pair(tree, e.a, e.b, q.tolist(), None)

    def along(part: str, u: Vec) -> Array:
        row = jacobian_row(a, b, lambda s: -u.dot(getattr(s, part)), lambda s: u.dot(getattr(s, part)))
        return np.array([float(row.get(k, 0.0)) for k in range(m.nv)])

    if isinstance(e, Spring):
        for direction in e.directions(np.array([*a.p], float), np.array([*b.p], float)):
            yield e.stiffness, along("lin", Vec(*direction))
        return
    for i, axis in enumerate(AXES):
        yield six[i], along("lin", a.R @ axis)
        yield six[3 + i], along("ang", a.R @ axis)


def _coupling_weights(e: Coupling) -> Iterator[tuple[float, list[float]]]:
    if isinstance(e, EndStop):
        yield e.stiffness, [1.0]
    elif isinstance(e, Gear):
        yield e.stiffness, [-e.ratio, 1.0]
    elif isinstance(e, Belt):
        yield 2.0 * e.stiffness, [e.radius_a, -e.radius_b]
    elif isinstance(e, Worm):
        yield e.stiffness, [e.radius_worm * math.sin(e.lead), -e.radius_wheel * math.cos(e.lead)]
