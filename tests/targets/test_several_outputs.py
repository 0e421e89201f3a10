"""Functions with several outputs, made of loops over identical bodies: every output is right on every target.

The functions are the rate of a system with its outputs, and their tangents; batch sizes surround every number of lanes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import compile_graph
from bellcrank.emit.cuda.rolled_kernels import StateKernel
from bellcrank.graph import Graph
from bellcrank.sim.linear.linearisation import prepare
from large_paths import large_paths
from laws.test_path_thresholds import PLANTS, SEEN
from targets.test_c99 import compiled, needs_cc
from targets.test_gpu_loops import memory  # noqa: F401 - a fixture

Array = np.ndarray[Any, Any]
TOLERANCE = {"float64": 1e-9, "float32": 2e-3}


def tangents(name: str) -> Graph:
    """Return rate and outputs, and their changes along one direction: six outputs, and calls of recursions."""
    plant = PLANTS[name](6)
    made = prepare(plant)
    y = np.concatenate([made.open.system.mechanism.neutral(), np.zeros(made.dynamics.size)])[: made.dynamics.size]
    by = made.dynamics.closure.common_dynamics(y[None], np.zeros((1, 0)))
    graph = made.tangents(by, SEEN).graph.jvp(["y"])
    assert any(g.opaque for g in graph.calls)
    assert len(graph.shapes) == 6
    return graph


def states(graph: Graph, rows: tuple[int, ...]) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {name: 0.2 + 0.1 * rng.normal(size=(*rows, *shape)) for name, shape in graph.inputs.items()}


def agree(found: dict[str, Array], graph: Graph, given: dict[str, Array], tolerance: float) -> None:
    expected = graph.evaluate(**given)
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        np.testing.assert_allclose(found[name], x, rtol=tolerance, atol=tolerance * (1.0 + np.abs(x).max()))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["tree", "floating", "springs"])
def test_on_the_cpu(name: str, dtype: str) -> None:
    """All batch sizes agree on the CPU, on one thread and on two.

    The sizes are one state, fewer than lanes, as many, one more, and two blocks and a rest.
    """
    with large_paths():
        graph = tangents(name)
        kernels = [compile_graph(graph, Where(dtype=dtype, threads=threads)) for threads in (1, 2)]
        for rows in ((), (1,), (3,), (8,), (9,), (16,), (2, 17), (70,)):
            given = states(graph, rows)
            for kernel in kernels:
                agree(kernel(**given), graph, given, TOLERANCE[dtype])


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", ["tree", "springs"])
def test_on_a_gpu(name: str) -> None:
    with large_paths():
        graph = tangents(name)
        kernel = compile_graph(graph, Where("cuda"))
        assert isinstance(kernel, StateKernel)
        for rows in ((), (1,), (33,)):
            given = states(graph, rows)
            agree(kernel(**given), graph, given, TOLERANCE["float64"])


@needs_cc
def test_in_c(tmp_path: Path) -> None:
    with large_paths():
        graph = tangents("tree")
        given = states(graph, ())
        agree(compiled(graph, tmp_path)(**given), graph, given, TOLERANCE["float64"])
