"""One law of force for every body: written out for few bodies, a recursion that is called for many (docs/size.md)."""

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
MANY, ALIKE = 64, 4  # bodies from which on alike ones share their code, and how many a class has on average
WHAT = "the force on every body"


def checked(mechanism: Mechanism, law: Any) -> Field:
    if not callable(law):
        raise InputError(f"everywhere is {law!r}; expected a function of (place, velocity, mass) that gives a force.")
    if mechanism.tree.flexible:
        raise InputError(f'everywhere: "{mechanism.name}" has bodies that bend, whose mass has no one place.')
    if depends(law):
        raise InputError("everywhere: a law for all bodies has no free parameters; forces= takes them frame by frame.")

    def force(place: Sequence[Scalar], velocity: Sequence[Scalar], mass: Scalar) -> Sequence[Scalar]:
        found = called(WHAT, law, place, velocity, mass, expected="(place, velocity, mass)")
        return vector(WHAT, found, AXES)

    return force


def everywhere(mechanism: Mechanism, law: Field, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """What it does to each element of v."""
    tree = mechanism.tree
    symbols = any(isinstance(x, Node) for x in q)
    plain = not (tree.coupled or mechanism.parameters) and as_shipped(tree)
    if not (symbols and plain and len(tree.links) >= MANY and ALIKE * len(classes(tree)) <= len(tree.links)):
        return field.forces(tree, law, list(q), list(v))
    shapes: dict[str, tuple[int, ...]] = {"q": (tree.nq,), "v": (tree.nv,)}
    graph = rolled_by(f"{mechanism.name}.everywhere", tree, field.one_body(law), "everywhere", shapes)
    return list(graph.call(q=list(q), v=list(v))["everywhere"])
