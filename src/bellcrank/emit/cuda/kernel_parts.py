"""Kernels of a batch: one for each memory layout, and several parts where one thread cannot hold all values.

Where matrices need more live values than registers and shared memory hold, some go to local memory, which is slow.
Kernels that each compute some columns repeat part of the work, but keep their values in fast memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bellcrank.emit.cuda.array_access import TiledArray
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.cuda.occupancy import SHARED_BYTES
from bellcrank.graph import Graph
from bellcrank.graph.store_coverage import Coverage

MAX_PARTS = 3  # kernels per graph at most


def best_parts(graph: Graph, dtype: str) -> list[BatchKernelText]:
    """Return the kernels of `graph` for the type `dtype` that compute all outputs in the least predicted time."""
    best = [BatchKernelText(graph, dtype)]
    if not best[0].plan.local_values:
        return best
    cost = best[0].cost
    for split in _splits(graph):
        candidate = [BatchKernelText(part, dtype, places=places) for part, places in split]
        if sum(part.cost_bound for part in candidate) < cost and (total := sum(part.cost for part in candidate)) < cost:
            best, cost = candidate, total
    return best


def _splits(graph: Graph) -> Iterator[list[tuple[Graph, dict[str, list[int]]]]]:
    """Yield ways to partition matrix outputs, by their last and by their first axis."""
    if any(array.ndim < 2 for array in graph.outputs.values()):
        return
    for count in range(2, MAX_PARTS + 1):
        for axis in (-1, 0):
            if all(array.shape[axis] >= count for array in graph.outputs.values()):
                split = [_part(graph, count, axis, k) for k in range(count)]
                coverage = Coverage(graph.name, graph.shapes)
                for name, indices in ((name, indices) for _, places in split for name, indices in places.items()):
                    coverage.note(name, indices)
                coverage.check()
                yield split


def _part(graph: Graph, count: int, axis: int, k: int) -> tuple[Graph, dict[str, list[int]]]:
    outputs, indices = {}, {}
    for name, array in graph.outputs.items():
        part_indices = np.array_split(np.arange(array.size).reshape(array.shape), count, axis=axis)[k].ravel()
        outputs[name], indices[name] = array.ravel()[part_indices], part_indices.tolist()
    return Graph(graph.name, graph.inputs, outputs, graph.tape), indices


def layout_texts(graph: Graph, dtype: str) -> dict[str, list[dict[str, Any]]]:
    """Return PTX and launch facts of the kernels of `graph` for each memory layout of a batch, in the type `dtype`.

    Tiles that leave room for fewer blocks on a multiprocessor cost more than they gain.
    """
    facts_by_layout = {"strided": [_launch_facts(kernel_text) for kernel_text in best_parts(graph, dtype)]}
    tiled = BatchKernelText(graph, dtype, tiled=True)
    if len(tiled.plan.team) == 1 and (tiled.shared + 1024) * tiled.plan.blocks <= SHARED_BYTES:
        facts_by_layout["tiled"] = [_launch_facts(tiled)]
    return facts_by_layout


def _launch_facts(batch: BatchKernelText) -> dict[str, Any]:
    plan = batch.plan
    return {
        "ptx": batch.ptx, "threads": plan.threads, "states": plan.states, "shared": batch.shared,
        "registers": plan.registers, "live": batch.max_live, "blocks": plan.blocks, "local": plan.local_values,
        "members": len(plan.team), "per_second": batch.per_second,
        "tiles": [k for k, array in enumerate(batch.arrays.values()) if isinstance(array, TiledArray)],
    }  # fmt: skip
