"""Best serial program for Wong's arms on the processor of his mesh: the baseline of a speed-up (wong1991, section 5.5).

The work of a parallel program, added up, is no serial program that anybody would write: the mesh computes values again
where sending them takes longer, and its method was chosen for its structure. So the mesh is compared with the program
of this package that takes the least time on one transputer, by any of several methods.

    best_serial(excavator())     the parameters of the arm are constants
    best_serial(4)               a program for any arm of four revolute joints: its parameters are inputs

A program for any arm has frames as Denavit and Hartenberg choose them, and regrouped inertias: both are computed once
for an arm, off-line, as Wong's constants are. So some parameters of any arm are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, Tree, regrouped
from bellcrank.model.kind import Revolute
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar
from bellcrank.scheduling.machines import T800_COSTS_US
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Move, Shift, Transform, Turn
from bellcrank.spatial.vector import SymMat, Vec
from bellcrank.zoo.families import general_chain

METHODS_TRIED = ("crba", "aba", "denoc", "ness", "walker_orin")


@dataclass(frozen=True)
class SerialProgram:
    """Program for the accelerations on one processor."""

    method: str
    graph: Graph

    @property
    def microseconds(self) -> float:
        """Time on one T800 transputer, us."""
        return self.graph.work(T800_COSTS_US)


def best_serial(arm: Mechanism | int) -> SerialProgram:
    """Return the program that takes the least time on one transputer.

    Parameters
    ----------
    arm
        Mechanism, or number of joints of any arm.
    """
    if isinstance(arm, Mechanism):
        traced = {method: graphs.graph(arm, "forward_dynamics", method) for method in METHODS_TRIED}
    else:
        traced = {method: any_arm_graph(general_chain(arm), method) for method in METHODS_TRIED}
    programs = [SerialProgram(method, graph) for method, graph in traced.items()]
    return min(programs, key=lambda program: program.microseconds)


def any_arm_graph(chain: Mechanism, method: str) -> Graph:
    """Trace forward dynamics of any arm with the joints of `chain` by a `method`; its parameters are inputs."""
    base = _general_tree(chain, method)
    f = METHODS[method].function("forward_dynamics")

    def body(q: Any, v: Any, tau: Any, number: Any) -> dict[str, Any]:
        return {"a": f(_with_numbers(base, iter(number)), q, v, tau)}

    shapes = {"q": (chain.nq,), "v": (chain.nv,), "tau": (chain.nv,), "number": (len(arm_numbers(chain, method)),)}
    return trace(f"any arm of {chain.nv} joints", body, shapes)


def arm_numbers(chain: Mechanism, method: str) -> list[float]:
    """Return the values of the inputs of `any_arm_graph` that make it the program of this `chain`, for a `method`."""
    numbers: list[float] = []
    for link in _general_tree(chain, method).links:
        for move in link.placement.moves:
            parts = [move.c, move.s] if isinstance(move, Turn) else [x for x in _shift(move).r if x]
            numbers += map(float, parts)
        numbers += [float(x) for x in (*link.inertia.numbers, *_zero_pose(link)) if x]
    return [*numbers, *map(float, chain.tree.gravity)]


def _general_tree(chain: Mechanism, method: str) -> Tree:
    return regrouped(chain.tree) if METHODS[method].regrouped else chain.tree


def _shift(move: Move) -> Shift:
    """Return `move`, which is a shift in frames as Denavit and Hartenberg choose them, unless it is a turn."""
    assert isinstance(move, Shift), move
    return move


def _zero_pose(link: Link) -> tuple[Scalar, Scalar]:
    """Return the angle and the distance of a revolute joint where its coordinate is zero."""
    assert isinstance(link.kind, Revolute), link.kind
    return link.kind.angle0, link.kind.distance0


def _with_numbers(tree: Tree, numbers: Iterator[Scalar]) -> Tree:
    """Return `tree` with the numbers that are not zero in a general arm replaced by inputs."""
    links = []
    for link in tree.links:
        moves: list[Move] = [
            Turn(move.axis, next(numbers), next(numbers))
            if isinstance(move, Turn)
            else Shift(Vec(*(next(numbers) if x else 0.0 for x in _shift(move).r)))
            for move in link.placement.moves
        ]
        m, hx, hy, hz, xx, yy, zz, xy, xz, yz = (next(numbers) if x else 0.0 for x in link.inertia.numbers)
        angle, distance = (next(numbers) if x else 0.0 for x in _zero_pose(link))
        kind = replace(link.kind, angle0=angle, distance0=distance)
        inertia = Inertia(m, Vec(hx, hy, hz), SymMat(xx, yy, zz, xy, xz, yz))
        links.append(replace(link, placement=Transform(moves), kind=kind, inertia=inertia))
    return replace(tree, links=tuple(links), gravity=Vec(next(numbers), next(numbers), next(numbers)))
