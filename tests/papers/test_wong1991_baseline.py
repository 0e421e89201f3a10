"""Wong 1991, tables 5.4 and 5.5: the speed-up of the mesh against the best serial program, and the cost of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.papers.operation_counts import published
from bellcrank.papers.wong.comparison import excavator_times, overhead
from bellcrank.papers.wong.serial_baseline import METHODS_TRIED, any_arm_graph, arm_numbers, best_serial
from bellcrank.scheduling.machines import T800_COSTS_US
from bellcrank.zoo.families import general_chain


@pytest.mark.parametrize("method", METHODS_TRIED)
def test_the_serial_program_computes_the_accelerations_of_any_arm(method: str) -> None:
    """One graph for several arms: their numbers are its inputs."""
    graph = any_arm_graph(general_chain(4), method)
    for seed in (0, 1, 2):
        arm = general_chain(4, seed=seed)
        q, v, tau = np.random.default_rng(seed).normal(size=(3, 4))
        found = graph.evaluate(q=q, v=v, tau=tau, number=np.array(arm_numbers(arm, method)))["a"]
        np.testing.assert_allclose(found, arm.forward_dynamics(q, v, tau), 1e-9, 1e-9)


def test_the_baseline_is_the_fastest_serial_program() -> None:
    for arm in (4, zoo.excavator()):
        best = best_serial(arm)
        assert best.method == "crba"
        assert best.microseconds == best.graph.work(T800_COSTS_US)
    tried = [any_arm_graph(general_chain(4), method).work(T800_COSTS_US) for method in METHODS_TRIED]
    assert best_serial(4).microseconds == min(tried) == 604.5


def test_speed_ups_against_the_best_serial_program_are_smaller() -> None:
    times = excavator_times()
    rounded = {name: round(x["true speedup"], 2) for name, x in times.items() if "true speedup" in x}
    assert list(rounded.values()) == [3.0, 1.45, 0.56, 3.08, 2.19, 0.75]
    assert all(times[name]["true speedup"] < times[name]["speedup"] for name in rounded)
    assert all(x["best serial"] == x["true speedup"] * x["mesh"] for x in times.values() if "best serial" in x)


def test_one_processor_is_slower_than_its_operations_by_more_than_the_mesh() -> None:
    """The thesis prints 7.83 and 6.75, and 275 us for table 5.5; so the factor of the mesh needs no messages."""
    factors = overhead()
    assert factors["one processor"] == pytest.approx(7.83, abs=0.01)
    assert factors["mesh"] == pytest.approx(6.75, abs=0.005)
    assert factors["mesh"] < factors["one processor"]
    steps = published()["transputer"]["overhead"].values()
    assert sum(us for *_, us in steps) == 275
    assert factors["steps of H"] == pytest.approx(275 / 49.5)
