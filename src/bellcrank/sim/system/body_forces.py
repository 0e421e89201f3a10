"""A force law that acts on every body: unrolled for few bodies, a called recursion for many (docs/size.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.build.recursion_layout import LayoutRequest
from bellcrank.build.rolled_recursion import recursion
from bellcrank.dynamics import force_field
from bellcrank.dynamics.force_field import ForceLaw
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.parameters import has_free
from bellcrank.scalar import Scalar
from bellcrank.sim.system.rolled_frame_motion import uses_recursions
from bellcrank.sim.system.user_code import call_user_function, named_scalars

AXES = ("x", "y", "z")
LAW_DESCRIPTION = "the force on every body"


def checked_law(mechanism: Mechanism, law: Any) -> ForceLaw:
    """Return the force law `law` for all bodies of `mechanism`, or raise an InputError where it cannot be used."""
    if not callable(law):
        raise InputError(f"everywhere is {law!r}; expected a function of (place, velocity, mass) that gives a force.")
    if mechanism.tree.flexible:
        raise InputError(f'everywhere: "{mechanism.name}" has flexible bodies, whose mass is not at one place.')
    if has_free(law):
        raise InputError("everywhere: a law for all bodies has no free parameters; use forces= for single frames.")

    def force(place: Sequence[Scalar], velocity: Sequence[Scalar], mass: Scalar) -> Sequence[Scalar]:
        components = call_user_function(LAW_DESCRIPTION, law, place, velocity, mass, expected="(place, velocity, mass)")
        return named_scalars(LAW_DESCRIPTION, components, AXES)

    return force


def law_forces(mechanism: Mechanism, law: ForceLaw, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return the generalised forces, (nv,), of a force law on all bodies.

    Parameters
    ----------
    mechanism
        The mechanism.
    law
        The force law.
    q, v
        Positions and velocities.
    """
    tree = mechanism.tree
    if mechanism.parameters or not uses_recursions(mechanism, q):
        return force_field.field_forces(tree, law, list(q), list(v))
    shapes: dict[str, tuple[int, ...]] = {"q": (tree.nq,), "v": (tree.nv,)}
    name, body = f"{mechanism.name}.everywhere", force_field.field_recursion(law)
    graph = recursion(name, tree, body, "everywhere", shapes, LayoutRequest())
    return list(graph.call(q=list(q), v=list(v))["everywhere"])
