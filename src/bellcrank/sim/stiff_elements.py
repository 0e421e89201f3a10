"""Stability check of fixed steps against stiff force elements: each with the effective inertia at the start.

    omega^2 = k  r M^-1 r^T         r: derivative of its deflection by v

An explicit step that cannot follow omega diverges. An element that always acts then raises an error; one that acts at
times (a stop, a contact, a cable, teeth with play) gives a warning, because the run may never get there. Mechanisms
with loops are not checked: their constraints make bodies effectively heavier than the tree alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.ends import ends, row
from bellcrank.dynamics.immobility import LARGE
from bellcrank.dynamics.yielding import Yielding, together
from bellcrank.errors import InputError, warn
from bellcrank.forces.bushing import Bushing
from bellcrank.forces.contact import Contact
from bellcrank.forces.element import Between, Coupling, Element
from bellcrank.forces.gears import Belt, Gear, Worm
from bellcrank.forces.lines import Cable
from bellcrank.forces.stops import EndStop
from bellcrank.integrate.problem import Integrator
from bellcrank.model import Mechanism, Tree
from bellcrank.parameters import nominal
from bellcrank.sim.between import ASKED, check_start
from bellcrank.sim.fast_modes import check_modes, decays, grown, longest, shorter
from bellcrank.sim.implicit_forces import possible
from bellcrank.sim.motions import check_start as on_motions
from bellcrank.sim.systems import System
from bellcrank.spatial.vector import AXES

Array = np.ndarray[Any, Any]
AT_TIMES = (Contact, EndStop, Cable, Gear)
DAMPERS = (Bushing, Cable, Belt, Worm)  # linear in velocities, with `damping` in the same form as `stiffness`


def check_resolved(s: System, integrator: Integrator, h: float, y: Array) -> None:
    """Check force elements and prescribed motions of a run before it begins.

    Parameters
    ----------
    s
        System.
    integrator
        Integrator.
    h
        Fixed step, s; 0 for adaptive steps.
    y
        Initial states, (runs, size).
    """
    m = s.mechanism
    if h:
        check_steps(s, integrator, h, y[0])
    check_start(m, s.elements, y[:, : m.nq])
    on_motions(m, s.motions, y[:ASKED])


def check_steps(s: System, integrator: Integrator, h: float, y: Array, asked: Callable[[float], str] = shorter) -> None:
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
    asked
        Function that formats the advice to use a given step.
    """
    check_modes(s.mechanism, integrator, h, asked)
    check_elements(s.mechanism, s.elements, integrator, h, y[: s.mechanism.nq], asked, possible(s, integrator))


def check_elements(
    m: Mechanism, elements: Sequence[Element], integrator: Integrator, h: float, q: Array,
    asked: Callable[[float], str] = shorter, implicit: bool = False,
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
    asked
        Function that formats the advice to use a given step.
    implicit
        True if contacts are treated implicitly, which is stable in steps of any length.
    """
    if not elements or m.loops or integrator.stiff:
        return
    tree = (m.at() if m.parameters else m).tree
    large = m.nv > LARGE and not tree.coupled
    of = _of_bodies if large else _of_matrix
    _check_dampers(elements, integrator, h, asked, lambda dampers: of(tree, m, dampers, q) ** 2)
    omegas = of(tree, m, elements, q)
    for e, omega, fast in zip(elements, omegas, grown(integrator, omegas * h), strict=True):
        if not fast:
            continue
        holds = (
            ": it is stable, but bodies bounce off less than its damping implies"
            if isinstance(e, Contact) and implicit
            else ""
        )
        said = (
            f'{type(e).__name__} "{e.name}" oscillates at {omega / (2 * math.pi):.4g} Hz with the mass it moves, which '
            f"{integrator.name} cannot follow with a step of {h:g} s{holds}. Take "
            f"{asked(longest(integrator, omega, h))}, integrator=rodas4 or midpoint, or make it softer."
        )
        if not isinstance(e, AT_TIMES):
            raise InputError(said)
        warn(said)


def _check_dampers(
    elements: Sequence[Element], integrator: Integrator, h: float, asked: Callable[[float], str],
    rates_of: Callable[[Sequence[Element]], Array],
) -> None:  # fmt: skip
    """Check linear dampers: velocities that decay faster than an explicit step can follow diverge."""
    known = [e for e in map(nominal, elements) if isinstance(e, DAMPERS)]
    dampers = [replace(e, stiffness=e.damping) for e in known if np.any(e.damping)]
    rates = rates_of(dampers) if dampers else np.zeros(0)
    for e, rate, fast in zip(dampers, rates, grown(integrator, rates * h, decays), strict=True):
        if not fast:
            continue
        best = longest(integrator, float(rate), h, decays)
        would = f"Take {asked(best)}, integrator=rodas4" if best else "Take integrator=rodas4"
        said = (
            f'{type(e).__name__} "{e.name}" damps what it moves within {1 / rate:.2g} s, which {integrator.name} '
            f"cannot follow with a step of {h:g} s: the simulation would diverge. {would} or midpoint, or damp less."
        )
        if not isinstance(e, AT_TIMES):
            raise InputError(said)
        warn(said)


def _of_matrix(tree: Tree, m: Mechanism, elements: Sequence[Element], q: Array) -> Array:
    """Return omega of each element, by the inverse of the mass matrix."""
    M = np.array(crba.mass_matrix(tree, q.tolist()), float)
    if np.linalg.cond(M) > 1e14:
        return np.zeros(len(elements))
    inverse = np.linalg.inv(M)
    rates = [[k * float(r @ inverse @ r) for k, r in _rows(tree, m, nominal(e), q)] for e in elements]
    return np.sqrt([max(mine, default=0.0) for mine in rates])


def _of_bodies(tree: Tree, m: Mechanism, elements: Sequence[Element], q: Array) -> Array:
    """Return omega of each element by articulated compliances, for large mechanisms."""
    by, still = Yielding(tree, q.tolist()), np.zeros(3)
    bodies = {k: i for i, link in enumerate(tree.links) for k in link.v_index}
    found = []
    for e in map(nominal, elements):
        rates = [0.0]
        if isinstance(e, Coupling):
            at = [bodies[m.columns[1].index(joint)] for joint in e.joints]
            for k, weights in _couplings(e):
                pairs = [f for i, w in zip(at, weights, strict=True) for f in by.on_joint(i, w)]
                rates.append(k * by.rate(together(pairs)))
        elif isinstance(e, Between) and any(six := _six(e)):
            for i, axis in enumerate(by.axes(e.a)):
                for k, force, moment in ((six[i], axis, still), (six[3 + i], still, axis)):
                    pair = [by.on_frame(e.a, -force, -moment), by.on_frame(e.b, force, moment)]
                    rates.append(k * by.rate(together(by.between(pair))) if k else 0.0)
        found.append(max(rates))
    return np.sqrt(found)


def _six(e: Between) -> Sequence[float]:
    """Return the stiffness along and about the axes of a; zeros if unknown."""
    if isinstance(e, Bushing):
        return e.stiffness
    one = e.stiffness if isinstance(e, Cable) or (isinstance(e, Contact) and e.exponent == 1.0) else 0.0
    return one, one, one, 0.0, 0.0, 0.0


def _rows(tree: Tree, m: Mechanism, e: Element, q: Array) -> Iterator[tuple[float, Array]]:
    """Yield (stiffness, Jacobian row) of the deflections of an element."""
    if isinstance(e, Coupling):
        for k, weights in _couplings(e):
            r = np.zeros(m.nv)
            r[[m.columns[1].index(joint) for joint in e.joints]] = weights
            yield k, r
        return
    assert isinstance(e, Between)
    six = _six(e)
    if not any(six):
        return
    a, b = ends(tree, e.a, e.b, q.tolist(), None)
    for i, axis in enumerate(AXES):
        u = a.R @ axis
        found = row(a, b, lambda s, u=u: -u.dot(s.lin), lambda s, u=u: u.dot(s.lin))  # type: ignore[misc]
        turned = row(a, b, lambda s, u=u: -u.dot(s.ang), lambda s, u=u: u.dot(s.ang))  # type: ignore[misc]
        yield six[i], _dense(found, m.nv)
        yield six[3 + i], _dense(turned, m.nv)


def _couplings(e: Coupling) -> Iterator[tuple[float, list[float]]]:
    if isinstance(e, EndStop):
        yield e.stiffness, [1.0]
    elif isinstance(e, Gear):
        yield e.stiffness, [-e.ratio, 1.0]
    elif isinstance(e, Belt):
        yield 2.0 * e.stiffness, [e.radius_a, -e.radius_b]
    elif isinstance(e, Worm):
        yield e.stiffness, [e.radius_worm * math.sin(e.lead), -e.radius_wheel * math.cos(e.lead)]


def _dense(r: dict[int, Any], n: int) -> Array:
    out = np.zeros(n)
    for k, x in r.items():
        out[k] = x
    return out
