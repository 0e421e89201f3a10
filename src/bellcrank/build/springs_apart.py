"""Springs of large mechanisms: the law of each class of identical springs is traced once and run in a loop.

    ends of all springs     their positions and velocities: a recursion, one pass outwards
    forces                  each from its two ends, in world axes: a loop over identical springs
    the quantity            a recursion with those forces as wrenches on the ends

A spring from one end of a chain to the other therefore costs no more than one between neighbours. Where bodies are few,
a spring is a force on the coordinates between its ends (dynamics/springs.py), which is less work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bellcrank.build.places import SEEN
from bellcrank.build.rolling import rolled, rolled_by
from bellcrank.build.side_by_side import Kind, side_by_side
from bellcrank.dynamics.alike import folded
from bellcrank.dynamics.bodies import frames_seen
from bellcrank.dynamics.ends import End
from bellcrank.dynamics.springs import pull, stretched
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Graph, Shape, trace
from bellcrank.model import Tree
from bellcrank.model.parts import Spring
from bellcrank.parameters import Parameters
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Vec

LAW = ("stiffness", "length", "damping")
# Quantities that depend on springs.
FELT = ("forward_dynamics", "inverse_dynamics", "reactions", "passive_torque", "potential_energy")


def sprung(
    name: str,
    tree: Tree,
    method: str,
    quantity: str,
    inputs: dict[str, Shape],
    frames: Sequence[str],
    parameters: Parameters,
) -> Graph:
    """Return the graph of a quantity that depends on springs.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism, with springs.
    method
        Name of the method.
    quantity
        Name of the quantity.
    inputs
        Shapes of the inputs.
    frames
        Frames on which external wrenches act.
    parameters
        Free parameters of the model.
    """
    ends = [end for s in tree.springs for end in (s.a, s.b)]
    bare, free = replace(tree, springs=()), {"p": parameters.leaves} if parameters else {}
    shapes: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,)}
    moving = [end for end in ends if tree.frames[end][0] >= 0]  # a recursion has no results for frames on the ground
    seen = rolled_by(f"{name}.ends", bare, frames_seen, "ends", shapes, moving, parameters, SEEN)
    weighs = quantity == "potential_energy"  # energies of springs are added; no forces act
    each = _springs(f"{name}.springs", tree.springs, parameters, *((_stretched, 1) if weighs else (_pulling, 12)))
    pulled = inputs if weighs else {**inputs, "wrench": (len(frames) + len(ends), 6)}
    pushed = [] if weighs else [*frames, *ends]
    whole = rolled(f"{name}.pulled", bare, method, quantity, pulled, pushed, parameters)

    def body(**given: Any) -> dict[str, Any]:
        found = list(seen.call(q=given["q"], v=given.get("v", [0.0] * tree.nv), **free)["ends"])
        rows = iter(found[k : k + 6] for k in range(0, len(found), 6))
        at = [x for end in ends for x in (_on_ground(tree, end) if tree.frames[end][0] < 0 else next(rows))]
        said = list(each.call(ends=at, **free)["springs"])
        if weighs:
            return {quantity: sum(said, whole.call(**given, **free)[quantity][()])}
        wrenches = [*(x for w in given.pop("wrench", ()) for x in w), *said]
        return {quantity: whole.call(**given, wrench=np.reshape(wrenches, (-1, 6)), **free)[quantity]}

    return trace(name, body, inputs, parameters)


def _on_ground(tree: Tree, frame: str) -> Sequence[Scalar]:
    """Return position and velocity of a frame on the ground, which are known."""
    R, origin = tree.ground.pose(IDENTITY, ZERO)
    return [*(origin + R @ tree.frames[frame][2]), 0.0, 0.0, 0.0]


# -- one spring, and all of them


def _pulling(s: Spring, law: Sequence[Scalar], ends: Sequence[Scalar]) -> list[Scalar]:
    """Return [force, moment] on the two ends of a spring."""
    step("spring", s.name)
    f = pull(_with(s, law), *_two(ends))
    return [*f, 0.0, 0.0, 0.0, *(-f), 0.0, 0.0, 0.0]


def _stretched(s: Spring, law: Sequence[Scalar], ends: Sequence[Scalar]) -> list[Scalar]:
    """Return the energy of a spring."""
    return [stretched(_with(s, law), *_two(ends))]


def _with(s: Spring, law: Sequence[Scalar]) -> Spring:
    """Return a spring with these constants."""
    return replace(s, **dict(zip(LAW, law, strict=True)))


def _two(ends: Sequence[Scalar]) -> tuple[End, End]:
    a, b = (End(IDENTITY, Vec(*ends[i : i + 3]), [], ZERO, Vec(*ends[i + 3 : i + 6]), ZERO, ZERO) for i in (0, 6))
    return a, b


def _springs(
    name: str, springs: Sequence[Spring], parameters: Parameters, says: Callable[..., Any], width: int
) -> Graph:
    """Return the graph of `width` results of each spring from its two ends."""
    groups: dict[Any, list[int]] = {}
    for i, s in enumerate(springs):
        groups.setdefault(folded([getattr(s, x) for x in LAW]), []).append(i)
    kinds = []
    for members in groups.values():
        like = springs[members[0]]
        numbers = [[getattr(springs[i], x) for x in LAW] for i in members]
        own = {x: [tuple(range(n * i, n * i + n)) for i in members] for x, n in (("ends", 12), (RESULT, width))}
        kinds.append(Kind(partial(says, like), f"spring as {like.name}", like.name, numbers, own))
    shapes: dict[str, Shape] = {"ends": (12 * len(springs),)}
    return side_by_side(name, shapes, ("springs", width * len(springs)), kinds, parameters)
