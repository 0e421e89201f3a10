"""Stability check of fixed steps against joint damping that they do not treat implicitly.

A velocity that decays at the rate d (M^-1)_kk diverges in explicit steps that are too long for it. Fixed steps are
implicit in such damping (implicit_forces.py), but not in every system, nor if they are longer than the step for which
the Simulator was made. Mechanisms with loops or with prescribed frame motions are not checked: their constraints make
bodies effectively heavier than the tree alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bellcrank.dynamics.articulated_compliance import ArticulatedCompliance, sum_by_body
from bellcrank.dynamics.singular_mass import MATRIX_CHECK_MAX_NV
from bellcrank.integrate.problem import Integrator
from bellcrank.model import Tree
from bellcrank.parameters import nominal
from bellcrank.sim.program.implicit_forces import ImplicitForces, is_large, mobility
from bellcrank.sim.program.mode_stability import FastMotion, check_motions, decay, step_advice
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]


def check_damping(
    s: System, implicit: ImplicitForces | None, integrator: Integrator, h: float,
    advice: Callable[[float], str] = step_advice,
) -> None:  # fmt: skip
    """Raise an InputError if viscous damping is too stiff for explicit steps, and warn about dry friction.

    Parameters
    ----------
    s
        System.
    implicit
        Forces that fixed steps treat implicitly, or None.
    integrator
        Integrator.
    h
        Step, s.
    advice
        Function that formats the advice to use a given step.
    """
    if integrator.stiff or s.mechanism.loops or any(name not in s.mechanism.columns[1] for name in s.motions):
        return
    if motions := list(_damped_motions(s, implicit, h)):
        check_motions(motions, integrator, h, advice)


def _damped_motions(s: System, implicit: ImplicitForces | None, h: float) -> Iterator[FastMotion]:
    """Yield the fastest motion that explicit damping ends, and the fastest one that explicit dry friction ends."""
    tree = (s.mechanism.at() if s.mechanism.parameters else s.mechanism).tree
    slopes = [(k, slope, viscous) for k, slope, viscous in _explicit_damping(s, tree, implicit, h) if slope > 0.0]
    if not slopes:
        return
    prescribed = [s.mechanism.columns[1].index(name) for name in s.motions]
    compliances = _compliances(tree, s.mechanism.neutral(), sorted({k for k, _, _ in slopes}), prescribed)
    for viscous in (True, False):
        rate, k = max(((slope * compliances[k], k) for k, slope, kind in slopes if kind == viscous), default=(0.0, 0))
        if rate and np.isfinite(rate):
            problem = "damping ends a motion" if viscous else "dry friction ends a slow motion"
            consequence = "the simulation would diverge" if viscous else "the velocity would oscillate"
            text = f'the {problem} of joint "{s.mechanism.columns[1][k]}" in {1 / rate:.2g} s'
            yield FastMotion(text, rate, _why_explicit(s), decay, f": {consequence}", viscous)


def _why_explicit(s: System) -> str:
    """Return why the damping is not implicit, as far as that can be changed."""
    if s.motions:
        return ". (Fixed steps are not implicit in damping where motions are prescribed)"
    if is_large(s):
        return ". (Fixed steps are not implicit in damping of mechanisms that large)"
    return ", or give the step to the Simulator where it is made, so that its steps are implicit in the damping"


def _explicit_damping(
    s: System, tree: Tree, implicit: ImplicitForces | None, h: float
) -> Iterator[tuple[int, float, bool]]:
    """Yield (element of v, explicit damping coefficient at rest, True if viscous)."""
    joints, actuators = (implicit.joints, implicit.actuators) if implicit else ({}, {})
    for link in tree.links:
        for k, slope in zip(link.v_index, link.resistance([0.0] * tree.nv), strict=True):
            explicit = min(float(slope), joints.get(k, np.inf) / h)
            yield k, explicit, k in joints or not link.joint.friction
    for number, a in enumerate(map(nominal, s.actuators)):
        slope = a.resistance(0.0, 0.0, 0.0, [0.0] * len(a.states), 0.0)
        explicit = min(float(slope), actuators.get(number, np.inf) / h)
        yield s.mechanism.columns[1].index(a.joint), explicit, True


def _compliances(tree: Tree, q: Array, wanted: list[int], held: list[int]) -> dict[int, float]:
    """Return (M^-1)_kk of the requested elements of v; for a large mechanism only of joints with one coordinate."""
    if tree.nv <= MATRIX_CHECK_MAX_NV or tree.coupled:
        inverse = mobility(tree, q, held)
        return {k: float(inverse[k, k]) for k in wanted}
    compliance = ArticulatedCompliance(tree, q.tolist())
    single = {link.v_index[0]: i for i, link in enumerate(tree.links) if len(link.v_index) == 1}
    return {
        k: float(compliance.compliance(sum_by_body(compliance.joint_force(single[k], 1.0)))) if k in single else 0.0
        for k in wanted
    }
