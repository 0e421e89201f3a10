"""Inlining: copy the nodes of called graphs into the caller.

A call is a barrier: all its arguments go through memory, and no later node starts before it returns. The stages of a
Runge-Kutta step do not need this barrier. The positions of one stage follow from velocities of the stage before, so
its sines and much of its mass matrix can be computed while the accelerations of that stage are still being solved for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.graph.graph import Graph, mapped_outputs
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import SCALAR_OPERATIONS, Tape
from bellcrank.scalar import step

INLINE_LIMIT_OPERATIONS = 5000  # operations; a larger graph gains little and takes long to compile


def inline_small(graph: Graph, limit: int | None = None) -> Graph:
    """Inline all calls of a small graph; return a larger one unchanged, and one with calls that may be skipped.

    Parameters
    ----------
    graph
        The graph.
    limit
        Number of operations up to which inlining pays; the constant of this module unless given.
    """
    limit = INLINE_LIMIT_OPERATIONS if limit is None else limit
    small = graph.calls and graph.count().arithmetic <= limit and not any(g.only for g in graph.calls)
    return inline(graph) if small else graph


def inline(graph: Graph, recursions: bool = True) -> Graph:
    """Return `graph` with all calls inlined; calls of opaque graphs such as recursions only if `recursions` is true."""
    tape = Tape()
    input_nodes = {place: tape.node("input", *place) for place in graph.elements}
    return Graph(
        graph.name, graph.inputs, copy_to_tape(graph, tape, input_nodes, calls=False, recursions=recursions), tape
    )


def without_calls(graph: Graph) -> Graph:
    """Return `graph` with all calls inlined, ready for `along` and for sparse derivatives in many directions.

    A call of a tangent would compute all rates of the called graph in each direction, also those that are zero.
    """
    return inline(graph) if graph.calls else graph


def copy_to_tape(
    graph: Graph, tape: Tape, input_values: Mapping[tuple[str, int], Any], calls: bool = True, recursions: bool = True
) -> dict[str, np.ndarray[Any, Any]]:
    """Copy a graph to another tape and return its outputs there.

    Parameters
    ----------
    graph
        The graph.
    tape
        The tape that receives its nodes.
    input_values
        Node of that tape, or number, for each element of the inputs.
    calls
        Keep calls as calls, and the labels of nodes.
    recursions
        If calls are inlined: inline those of opaque graphs such as recursions, too.
    """
    known: dict[int, Any] = {}  # counterpart on the new tape: a node or a number; a list for a call
    for node in graph.nodes:
        if node.op == "input":
            known[node.serial] = input_values[node.args]
            continue
        if calls:
            step(node.label)
        args = [known[a.serial] if isinstance(a, Node) else a for a in node.args]
        if node.op == "call" and (calls or (node.args[0].opaque and not recursions)):
            known[node.serial] = tape.call(*args)
        elif node.op == "call":
            function, *values = args
            results = copy_to_tape(function, tape, dict(zip(function.elements, values, strict=True)), calls, recursions)
            known[node.serial] = [x for array in results.values() for x in array.flat]
        elif node.op == "result":
            known[node.serial] = args[0][args[1]]
        elif sum(isinstance(a, Node) for a in args) == len(node.operands):
            known[node.serial] = tape.node(node.op, *args)
        else:  # some arguments have become numbers: fold as a trace does
            known[node.serial] = SCALAR_OPERATIONS[node.op](*args)
    if calls:
        step("")
    return mapped_outputs(graph, lambda x: known[x.serial])
