"""A force law that acts on every body: unrolled for few bodies, a called recursion for many (docs/size.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellcrank.build.rolling import as_shipped, rolled_by
from bellcrank.dynamics import field
from bellcrank.dynamics.alike import classes
from bellcrank.dynamics.field import Field
from bellcrank.errors import InputError
from bellcrank.graph import Node
from bellcrank.model import Mechanism
from bellcrank.parameters import depends
from bellcrank.scalar import Scalar
from bellcrank.sim.user_code import called, vector

AXES = ("x", "y", "z")
MANY, ALIKE = 64, 4  # bodies, and mean size of a link class, from which on the law is a recursion
WHAT = "the force on every body"


def checked(mechanism: Mechanism, law: Any) -> Field:
    """Return the force law `law` for all bodies of `mechanism`, or raise an InputError where it cannot be used."""
    if not callable(law):
        raise InputError(f"everywhere is {law!r}; expected a function of (place, velocity, mass) that gives a force.")
    if mechanism.tree.flexible:
        raise InputError(f'everywhere: "{mechanism.name}" has flexible bodies, whose mass is not at one place.')
    if depends(law):
        raise InputError("everywhere: a law for all bodies has no free parameters; use forces= for single frames.")

    def force(place: Sequence[Scalar], velocity: Sequence[Scalar], mass: Scalar) -> Sequence[Scalar]:
        found = called(WHAT, law, place, velocity, mass, expected="(place, velocity, mass)")
        return vector(WHAT, found, AXES)

    return force


def everywhere(mechanism: Mechanism, law: Field, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
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
    symbols = any(isinstance(x, Node) for x in q)
    plain = not (tree.coupled or mechanism.parameters) and as_shipped(tree)
    if not (symbols and plain and len(tree.links) >= MANY and ALIKE * len(classes(tree)) <= len(tree.links)):
        return field.forces(tree, law, list(q), list(v))
    shapes: dict[str, tuple[int, ...]] = {"q": (tree.nq,), "v": (tree.nv,)}
    graph = rolled_by(f"{mechanism.name}.everywhere", tree, field.one_body(law), "everywhere", shapes)
    return list(graph.call(q=list(q), v=list(v))["everywhere"])
