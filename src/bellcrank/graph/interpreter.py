"""Interpreters of graphs, node after node: values with numpy, and times on unlimited processors.

The values are the reference for every target.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import BellcrankError, InputError, brief, check_known
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS, PLUMBING

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def evaluate_outputs(
    nodes: Sequence[Node], outputs: Mapping[str, Array], arrays: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the outputs by name for checked inputs with any leading axes.

    Parameters
    ----------
    nodes
        The live nodes in topological order.
    outputs
        Arrays of nodes and numbers, by name.
    arrays
        The inputs by name, shape (..., size).
    """
    known = _evaluate_nodes(nodes, outputs, arrays)
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values())) if arrays else ()
    dtype = np.result_type(np.float32, *(a.dtype for a in arrays.values())) if arrays else np.dtype(np.float64)
    outputs_by_name = {}
    for name, array in outputs.items():
        out = np.empty((*batch, array.size), dtype=dtype)
        for flat, x in enumerate(array.flat):
            out[..., flat] = known[x.serial] if isinstance(x, Node) else x
        outputs_by_name[name] = out.reshape((*batch, *array.shape))
    return outputs_by_name


def arrays_by_name(values: Sequence[Any], inputs: Mapping[str, Shape]) -> dict[str, Array]:
    """Return arrays for all `inputs` (shapes by name) from the flat list `values` of all their elements."""
    named, start = {}, 0
    for name, shape in inputs.items():
        size = math.prod(shape)
        columns = np.broadcast_arrays(*values[start : start + size]) if size else []
        array = np.stack(columns, axis=-1) if size else np.zeros(0)
        named[name] = array.reshape((*array.shape[:-1], *shape))
        start += size
    return named


def _evaluate_nodes(nodes: Sequence[Node], outputs: Mapping[str, Array], arrays: Mapping[str, Array]) -> dict[int, Any]:
    """Return the value of every node that is an output."""
    known: dict[int, Any] = {}
    uses = Counter(a.serial for node in nodes for a in node.operands)
    output_serials = {x.serial for array in outputs.values() for x in array.flat if isinstance(x, Node)}
    with np.errstate(all="ignore"):
        for node in nodes:
            if node.op == "input":
                name, flat = node.args
                known[node.serial] = arrays[name][..., flat]
                continue
            args = [known[a.serial] if isinstance(a, Node) else a for a in node.args]
            if node.op == "call":
                known[node.serial] = args[0].flat(args[1:])
            elif node.op == "result":
                known[node.serial] = args[0][args[1]]
            else:
                known[node.serial] = OPS[node.op].value(*args)
            for a in node.operands:  # free intermediate results: a batch of a large graph would not fit into memory
                uses[a.serial] -= 1
                if not uses[a.serial] and a.serial not in output_serials:
                    del known[a.serial]
    return known


def checked_inputs(graph: str, inputs: Mapping[str, Shape], values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the inputs as float arrays of shape (..., size); raise InputError if one does not fit.

    Parameters
    ----------
    graph
        Name of the graph, for messages.
    inputs
        Shapes of the inputs, by name.
    values
        The given arrays, by name.
    """
    for name in values:
        check_known("input", name, inputs)
    arrays = {}
    for name, shape in inputs.items():
        if name not in values:
            raise InputError(f'{graph}: input "{name}" is missing; expected {", ".join(inputs)}.')
        array = _numbers(graph, name, values[name])
        if array.shape[array.ndim - len(shape) :] != shape or array.ndim < len(shape):
            raise InputError(
                f'{graph}: input "{name}" has shape {array.shape}; expected (..., {", ".join(map(str, shape))}).'
            )
        arrays[name] = array.reshape((*array.shape[: array.ndim - len(shape)], math.prod(shape)))
    return arrays


def _numbers(graph: str, name: str, value: Any) -> Array:
    """Return an array of floats; a value that is not a number is an error, not NaN."""
    try:
        array = np.asanyarray(value)
        if np.ma.is_masked(array):
            raise TypeError
        array = np.asarray(array)
        if array.dtype in (np.float32, np.float64):
            return array
        if array.dtype.kind not in "fiubO" or any(x is None for x in (array.flat if array.dtype == object else ())):
            raise TypeError
        return array.astype(np.float64)
    except BellcrankError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(f'{graph}: input "{name}" is {value!r:.200}; expected real numbers.') from None


def operation_costs(cost: Mapping[str, float] | None) -> dict[str, float]:
    """Return the cost of every operation: from `cost`, otherwise from the operation table."""
    if cost is not None and not isinstance(cost, Mapping):
        raise InputError(f"cost is {brief(cost)}; expected a mapping, {{operation: cost}}.")
    return {name: op.cost for name, op in OPS.items()} | dict(cost or {}) | dict.fromkeys(PLUMBING, 0.0)


def finish_times(nodes: Sequence[Node], cost: Mapping[str, float] | None) -> dict[int, float]:
    """Return the finish time of each node by serial number; `nodes` are in topological order, `cost` by operation."""
    weight = operation_costs(cost)
    finish: dict[int, float] = {}
    for node in nodes:
        duration = node.args[0].span(cost) if node.op == "call" else weight[node.op]
        finish[node.serial] = duration + max((finish[a.serial] for a in node.operands), default=0.0)
    return finish


def longest_path(nodes: Sequence[Node], cost: Mapping[str, float] | None) -> list[Node]:
    """Return one longest path through `nodes` from an input to an output, with `cost` by operation."""
    finish = finish_times(nodes, cost)
    node: Node | None = max(nodes, key=lambda n: finish[n.serial], default=None)
    path = []
    while node is not None:
        path.append(node)
        node = max(node.operands, key=lambda n: finish[n.serial], default=None)
    return path[::-1]
