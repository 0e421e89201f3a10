"""Machine code is reused for the same program, and for no other."""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.graph import trace
from bellcrank.graph.graph import structure
from bellcrank.sim.run import lane_blocks
from carts import plant


def test_equal_functions_have_equal_structure() -> None:
    def made(k: float) -> Any:
        return trace("f", lambda x: {"y": [k * bc.sin(x[0]), x[1]]}, {"x": (2,)})

    assert structure(made(2.0)) == structure(made(2.0))
    assert structure(made(2.0)) != structure(made(np.nextafter(2.0, 3.0)))
    assert structure(trace("f", lambda x: {"y": [x[0]]}, {"x": (2,)})) != structure(made(2.0))
    zeros = [trace("f", lambda x, z=z: {"y": [bc.where(x[0] < 1.0, x[0], z)]}, {"x": (1,)}) for z in (0.0, -0.0)]
    assert structure(zeros[0]) != structure(zeros[1])


def test_calls_of_different_graphs_differ() -> None:
    inner = [trace("g", lambda x, k=k: {"y": [k * x[0] * x[0]]}, {"x": (1,)}) for k in (2.0, 3.0)]
    outer = [trace("f", lambda x, g=g: {"y": g.call(x=x)["y"]}, {"x": (1,)}) for g in (*inner, inner[0])]
    assert structure(outer[0]) == structure(outer[2]) != structure(outer[1])


def test_a_second_run_finds_the_code_and_another_plant_does_not() -> None:
    gain = [10.0]
    s = bc.system(plant().mechanism, control=lambda t, q, v, x, u: {"slide": gain[0] - v["slide"]})
    first = bc.simulate(s, 0.1, step=0.01)
    known = dict(lane_blocks._libraries)
    again = bc.simulate(s, 0.1, step=0.01)
    assert dict(lane_blocks._libraries) == known
    np.testing.assert_array_equal(again.q, first.q)
    gain[0] = 20.0  # objects that a function refers to may change, so it is traced again
    assert bc.simulate(s, 0.1, step=0.01).q[-1, 0] > 1.5 * first.q[-1, 0]


def test_cache_of_libraries_is_bounded() -> None:
    for k in range(lane_blocks.MOST_CACHED_LIBRARIES + 3):
        bc.simulate(bc.zoo.pendulum(length=1.0 + 0.1 * k), 0.01, step=0.01)
    assert len(lane_blocks._libraries) == lane_blocks.MOST_CACHED_LIBRARIES
