"""Springs between bodies of a large mechanism: what each pulls with is said once for alike ones, and loops do the rest.

    ends of all springs     where they are and how they move: a recursion, one pass outwards
    forces                  each from its two ends, in world axes: a loop over alike springs
    the quantity            a recursion with those forces as wrenches on the ends

So a spring from one end of a chain to the other costs no more than one between neighbours. Where bodies are few, a
spring is a force on the coordinates between its ends (dynamics/springs.py), which is less work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import Part, traced
from bellcrank.build.places import NUMBERS, SEEN, elements
from bellcrank.build.rolling import of_numbers, rolled, rolled_by
from bellcrank.dynamics.alike import columns, folded
from bellcrank.dynamics.bodies import frames_seen
from bellcrank.dynamics.ends import End
from bellcrank.dynamics.neighbours import FromParent, Hands
from bellcrank.dynamics.springs import pull, stretched
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Array, Graph, Shape, trace
from bellcrank.graph.recursion import Run
from bellcrank.graph.recursion import Tree as Places
from bellcrank.model import Tree
from bellcrank.model.parts import Spring
from bellcrank.parameters import Parameters
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Vec

LAW = ("stiffness", "length", "damping")
# Quantities that springs are a part of; others have none in them.
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
    """The graph of a quantity that springs are a part of."""
    ends = [end for s in tree.springs for end in (s.a, s.b)]
    bare, free = replace(tree, springs=()), {"p": parameters.leaves} if parameters else {}
    shapes: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,)}
    seen = rolled_by(f"{name}.ends", bare, frames_seen, "ends", shapes, ends, parameters, SEEN)
    weighs = quantity == "potential_energy"  # which has energies added to it, and nobody pulls
    each = _springs(f"{name}.springs", tree.springs, parameters, *((_stretched, 1) if weighs else (_pulling, 12)))
    pulled = inputs if weighs else {**inputs, "wrench": (len(frames) + len(ends), 6)}
    pushed = [] if weighs else [*frames, *ends]
    whole = rolled(f"{name}.pulled", bare, method, quantity, pulled, pushed, parameters)

    def body(**given: Any) -> dict[str, Any]:
        found = list(seen.call(q=given["q"], v=given.get("v", [0.0] * tree.nv), **free)["ends"])
        at = [x for k, end in enumerate(ends) for x in _end(tree, end, found[6 * k : 6 * k + 6])]
        said = list(each.call(ends=at, **free)["springs"])
        if weighs:
            return {quantity: sum(said, whole.call(**given, **free)[quantity][()])}
        wrenches = [*(x for w in given.pop("wrench", ()) for x in w), *said]
        return {quantity: whole.call(**given, wrench=np.reshape(wrenches, (-1, 6)), **free)[quantity]}

    return trace(name, body, inputs, parameters)


def _end(tree: Tree, frame: str, found: Sequence[Scalar]) -> Sequence[Scalar]:
    """Place and velocity; the ground's are known."""
    body, _, p = tree.frames[frame]
    if body >= 0:
        return found
    R, origin = tree.ground.pose(IDENTITY, ZERO)
    return [*(origin + R @ p), 0.0, 0.0, 0.0]


# -- one spring, and all of them


def _pulling(s: Spring, ends: Sequence[Scalar]) -> Generator[Any, Any, list[Scalar]]:
    """[force, moment] on its two ends. It asks nobody."""
    yield FromParent(())
    yield Hands(())
    step("spring", s.name)
    f = pull(s, *_two(ends))
    return [*f, 0.0, 0.0, 0.0, *(-f), 0.0, 0.0, 0.0]


def _stretched(s: Spring, ends: Sequence[Scalar]) -> Generator[Any, Any, list[Scalar]]:
    """Its energy."""
    yield FromParent(())
    yield Hands(())
    return [stretched(s, *_two(ends))]


def _two(ends: Sequence[Scalar]) -> tuple[End, End]:
    a, b = (End(IDENTITY, Vec(*ends[i : i + 3]), [], ZERO, Vec(*ends[i + 3 : i + 6]), ZERO, ZERO) for i in (0, 6))
    return a, b


def _springs(
    name: str, springs: Sequence[Spring], parameters: Parameters, says: Callable[..., Any], width: int
) -> Graph:
    """What each says, so many numbers: a recursion over places none of which hangs on another, with a cell for each
    class of springs.
    """
    groups: dict[Any, list[int]] = {}
    for i, s in enumerate(springs):
        groups.setdefault(folded([getattr(s, x) for x in LAW]), []).append(i)
    parts, tables, runs, order = list[Part](), list[Array](), list[Run](), list[int]()
    numbers: dict[Scalar, int] = {}
    own: list[tuple[int, ...]] = []
    for k, members in enumerate(groups.values()):
        first, table, free = columns([[getattr(springs[i], x) for x in LAW] for i in members])
        like = replace(springs[members[0]], **dict(zip(LAW, first, strict=True)))
        names = [f"k{i}" for i in range(table.shape[1])], [f"n{i}" for i in range(free.shape[1])]
        label = f"spring as {like.name}"
        parts.append(Part(partial(says, like), label, like.name, {"ends": 12}, names[0], True, 0, names[1]))
        tables.append(table)
        runs.append(Run((k,), len(order), len(order) + len(members), (0,)))
        own += [tuple(numbers.setdefault(x, len(numbers)) for x in row) for row in free]
        order += members
    mine = elements([tuple(range(12 * i, 12 * i + 12)) for i in order])
    results = elements([tuple(range(width * i, width * i + width)) for i in order])
    at = {"ends": mine, RESULT: results, NUMBERS: elements(own)}
    places = Places(np.full(len(order), -1), np.full((len(order), 1), -1), at, tuple(runs), False)
    inputs: dict[str, Shape] = {"ends": (12 * len(springs),)}
    output = "springs", width * len(springs)
    return of_numbers(name, inputs, output, traced(parts, places, ["ends"]), tables, places, list(numbers), parameters)
