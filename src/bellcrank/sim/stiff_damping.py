"""Whether fixed steps are short enough for damping in joints that they do not take implicitly.

A speed that decays at the rate d (M^-1)_kk runs away in explicit steps that are too long for it. Fixed steps are
implicit in such damping (implicit_forces.py), but not in every system, nor where they are longer than those that the
Simulator was made for. Mechanisms with loops, or with frames whose motion is prescribed, are not judged: what
holds their bodies together makes them heavier than the tree says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bellcrank.dynamics.immobility import LARGE
from bellcrank.dynamics.yielding import Yielding, together
from bellcrank.errors import InputError, warn
from bellcrank.integrate.problem import Integrator
from bellcrank.model import Tree
from bellcrank.parameters import nominal
from bellcrank.sim.fast_modes import decays, grows, longest, shorter
from bellcrank.sim.implicit_forces import ImplicitForces, is_large, mobility
from bellcrank.sim.systems import System

Array = np.ndarray[Any, Any]


def check_damping(
    s: System, implicit: ImplicitForces | None, integrator: Integrator, h: float,
    asked: Callable[[float], str] = shorter,
) -> None:  # fmt: skip
    """Raise an InputError where viscous damping is too stiff for explicit steps of h, and warn of dry friction."""
    if integrator.stiff or s.mechanism.loops or any(name not in s.mechanism.columns[1] for name in s.motions):
        return
    for said, viscous in _too_fast(s, implicit, integrator, h, asked):
        if viscous:
            raise InputError(said)
        warn(said)


def _too_fast(
    s: System, implicit: ImplicitForces | None, integrator: Integrator, h: float, asked: Callable[[float], str]
) -> Iterator[tuple[str, bool]]:
    """What to say of the joint that is worst, by damping and by dry friction."""
    tree = (s.mechanism.at() if s.mechanism.parameters else s.mechanism).tree
    slopes = [(k, slope, viscous) for k, slope, viscous in _slopes(s, tree, implicit, h) if slope > 0.0]
    if not slopes:
        return
    held = [s.mechanism.columns[1].index(name) for name in s.motions]
    yields = _yields(tree, s.mechanism.neutral(), sorted({k for k, _, _ in slopes}), held)
    for viscous in (True, False):
        rates = [(slope * yields[k], k) for k, slope, kind in slopes if kind == viscous]
        rate, k = max(rates, default=(0.0, 0))
        if not np.isfinite(rate) or not grows(integrator, rate * h, decays):
            continue
        best = longest(integrator, rate, h, decays)
        would = f"take {asked(best)}, or" if best else "take"
        what = "damping ends a motion" if viscous else "dry friction ends a slow motion"
        then = "it would run away" if viscous else "it would be thrown to and fro"
        said = (
            f'the {what} of joint "{s.mechanism.columns[1][k]}" in {1 / rate:.2g} s, which {integrator.name} cannot '
            f"follow with a step of {h:g} s: {then}. {would[0].upper()}{would[1:]} integrator=rodas4 or midpoint"
            f"{_why(s)}."
        )
        yield said, viscous


def _why(s: System) -> str:
    """Return what keeps the damping from being implicit, as far as it can be changed."""
    if s.motions:
        return ". (Fixed steps are not implicit in damping where motions are prescribed)"
    if is_large(s):
        return ". (Fixed steps are not implicit in damping of mechanisms that large)"
    return ", or give the step to the Simulator where it is made, so that its steps are implicit in the damping"


def _slopes(s: System, tree: Tree, implicit: ImplicitForces | None, h: float) -> Iterator[tuple[int, float, bool]]:
    """(element of v, slope at rest, whether it is the same at all speeds) of what is explicit."""
    joints, actuators = (implicit.joints, implicit.actuators) if implicit else ({}, {})
    for link in tree.links:
        for k, slope in zip(link.v_index, link.resistance([0.0] * tree.nv), strict=True):
            explicit = min(float(slope), joints.get(k, np.inf) / h)
            yield k, explicit, k in joints or not link.joint.friction
    for number, a in enumerate(map(nominal, s.actuators)):
        slope = a.resistance(0.0, 0.0, 0.0, [0.0] * len(a.states), 0.0)
        explicit = min(float(slope), actuators.get(number, np.inf) / h)
        yield s.mechanism.columns[1].index(a.joint), explicit, True


def _yields(tree: Tree, q: Array, wanted: list[int], held: list[int]) -> dict[int, float]:
    """(M^-1)_kk of these elements of v; of a large mechanism, for joints with one coordinate."""
    if tree.nv <= LARGE or tree.coupled:
        found = mobility(tree, q, held)
        return {k: float(found[k, k]) for k in wanted}
    by = Yielding(tree, q.tolist())
    single = {link.v_index[0]: i for i, link in enumerate(tree.links) if len(link.v_index) == 1}
    return {k: float(by.rate(together(by.on_joint(single[k], 1.0)))) if k in single else 0.0 for k in wanted}
