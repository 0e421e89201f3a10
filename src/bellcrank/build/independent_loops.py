"""Loops over independent identical elements, such as springs and other force elements.

Elements of one kind do the same with other constants and other elements of the inputs. Each kind is traced once and is
a cell of a recursion (graph/recursion.py) over places that do not depend on each other.

Springs of large mechanisms are such elements:

    ends of all springs     their positions and velocities: a recursion, one pass outwards
    forces                  each from its two ends, in world axes: a loop over identical springs
    the quantity            a recursion with those forces as wrenches on the ends

A spring from one end of a chain to the other therefore costs no more than one between neighbours. Where bodies are few,
a spring is a force on the coordinates between its ends (dynamics/frame_pairs.py), which is less work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import CellClass, trace_cells
from bellcrank.build.recursion_layout import CONSTANTS_INPUT, MOTION_RESULTS, place_tree
from bellcrank.build.rolled_recursion import frame_graph, rolled_graph, with_free_constants
from bellcrank.dynamics.frame_pairs import FrameEnd, stretch_energy, tension_force
from bellcrank.dynamics.recursion.link_classes import extract_parameters, folding_values
from bellcrank.dynamics.tree_sweeps import FromParent, Send
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Array, Graph, Shape, trace
from bellcrank.model import Tree
from bellcrank.model.parts import Spring
from bellcrank.parameters import Parameters
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Vec

Law = Callable[..., list[Scalar]]  # (constants, elements of each input, in order) -> results
ElementRows = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class ElementClass:
    """A class of identical elements.

    label: what they are. name: of one of them. constants: a row for each. element_rows: for every input the elements
    that each one reads, and under RESULT those that it writes.
    """

    law: Law
    label: str
    name: str
    constants: list[list[Scalar]]
    element_rows: Mapping[str, ElementRows]


def independent_loops(
    name: str,
    inputs: dict[str, Shape],
    output: tuple[str, int],
    kinds: Sequence[ElementClass],
    parameters: Collection[str],
) -> Graph:
    """Return the graph of the results of all elements.

    Parameters
    ----------
    name
        Name of the graph.
    inputs
        Shapes of the inputs.
    output
        Name and size of the output.
    kinds
        The classes of elements.
    parameters
        Free parameters that constants depend on.
    """
    parts, tables, numbers = list[CellClass](), list[Array](), dict[Scalar, int]()
    element_rows = {x: [row for kind in kinds for row in kind.element_rows[x]] for x in (*inputs, RESULT)}
    element_rows[CONSTANTS_INPUT] = []
    for kind in kinds:
        first, table, free = extract_parameters(kind.constants)
        columns, free_columns = [f"k{i}" for i in range(table.shape[1])], [f"n{i}" for i in range(free.shape[1])]
        sizes = {x: len(kind.element_rows[x][0]) for x in inputs}
        start = partial(_isolated_body, kind.law, first)
        parts.append(CellClass(start, kind.label, kind.name, sizes, columns, True, 0, free_columns))
        tables.append(table)
        element_rows[CONSTANTS_INPUT] += [tuple(numbers.setdefault(x, len(numbers)) for x in row) for row in free]
    cell_of_place = [k for k, kind in enumerate(kinds) for _ in kind.constants]
    ends = accumulate(len(kind.constants) for kind in kinds)
    runs = [(begin, end, 1) for begin, end in pairwise([0, *ends])]
    places = place_tree([-1] * len(cell_of_place), cell_of_place, runs, element_rows, chained=False)
    cells = trace_cells(parts, places, list(inputs))
    return with_free_constants(name, inputs, output, cells, tables, places, list(numbers), parameters)


def _isolated_body(
    law: Law, constants: Sequence[Scalar], *given: Sequence[Scalar]
) -> Generator[Any, Any, list[Scalar]]:
    """Evaluate a law as a body that exchanges nothing with its neighbours."""
    yield FromParent(())
    yield Send(())
    return law(constants, *given)


LAW_FIELDS = ("stiffness", "length", "damping")


def graph_with_springs(
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
    tree_without_springs, free = replace(tree, springs=()), {"p": parameters.leaves} if parameters else {}
    moving = [end for end in ends if tree.frames[end][0] >= 0]  # a recursion has no results for frames on the ground
    end_motions = frame_graph(f"{name}.ends", tree_without_springs, moving, parameters, MOTION_RESULTS)
    is_energy = quantity == "potential_energy"  # energies of springs are added; no forces act
    spring_graph = _spring_loops(f"{name}.springs", tree.springs, parameters, is_energy)
    all_inputs = inputs if is_energy else {**inputs, "wrench": (len(frames) + len(ends), 6)}
    wrench_frames = [] if is_energy else [*frames, *ends]
    quantity_graph = rolled_graph(
        f"{name}.pulled", tree_without_springs, method, quantity, all_inputs, wrench_frames, parameters
    )

    def body(**given: Any) -> dict[str, Any]:
        end_values = list(end_motions.call(q=given["q"], v=given.get("v", [0.0] * tree.nv), **free)["frames"])
        rows = iter(end_values[k : k + 6] for k in range(0, len(end_values), 6))
        all_ends = [
            x for end in ends for x in (_ground_frame_motion(tree, end) if tree.frames[end][0] < 0 else next(rows))
        ]
        spring_results = list(spring_graph.call(ends=all_ends, **free)["springs"])
        if is_energy:
            return {quantity: sum(spring_results, quantity_graph.call(**given, **free)[quantity][()])}
        wrenches = [*(x for w in given.pop("wrench", ()) for x in w), *spring_results]
        return {quantity: quantity_graph.call(**given, wrench=np.reshape(wrenches, (-1, 6)), **free)[quantity]}

    return trace(name, body, inputs, parameters)


def _ground_frame_motion(tree: Tree, frame: str) -> Sequence[Scalar]:
    """Return position and velocity of a frame on the ground, which are known."""
    R, origin = tree.ground.pose(IDENTITY, ZERO)
    return [*(origin + R @ tree.frames[frame][2]), 0.0, 0.0, 0.0]


# -- one spring, and all of them


def _spring_results(s: Spring, is_energy: bool, law: Sequence[Scalar], ends: Sequence[Scalar]) -> list[Scalar]:
    """Return the energy of a spring with these constants, or [force, moment] on its two ends."""
    s = replace(s, **dict(zip(LAW_FIELDS, law, strict=True)))
    a, b = (FrameEnd(IDENTITY, Vec(*ends[i : i + 3]), [], ZERO, Vec(*ends[i + 3 : i + 6]), ZERO, ZERO) for i in (0, 6))
    if is_energy:
        return [stretch_energy(s, a, b)]
    step("spring", s.name)
    f = tension_force(s, a, b)
    return [*f, 0.0, 0.0, 0.0, *(-f), 0.0, 0.0, 0.0]


def _spring_loops(name: str, springs: Sequence[Spring], parameters: Parameters, is_energy: bool) -> Graph:
    """Return the graph of the energies of all springs, or of their wrenches, from their ends."""
    groups: dict[Any, list[int]] = {}
    constants = [[getattr(s, x) for x in LAW_FIELDS] for s in springs]
    for i, numbers in enumerate(constants):
        groups.setdefault(folding_values(numbers), []).append(i)
    kinds, sizes = [], {"ends": 12, RESULT: 1 if is_energy else 12}
    for members in groups.values():
        like, rows = springs[members[0]], [constants[i] for i in members]
        element_rows = {x: [tuple(range(n * i, n * i + n)) for i in members] for x, n in sizes.items()}
        law = partial(_spring_results, like, is_energy)
        kinds.append(ElementClass(law, f"spring as {like.name}", like.name, rows, element_rows))
    n = len(springs)
    return independent_loops(name, {"ends": (12 * n,)}, ("springs", sizes[RESULT] * n), kinds, parameters)
