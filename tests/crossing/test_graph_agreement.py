"""Every case, traced and evaluated by numpy without a compiler: all pairs of features that change a graph.

test_pairs.py takes the same cases through machine code, exports and files, which is too long for `make test`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import applicable_methods
from crossing.laws import applied_forces, element_forces, same
from crossing.pair_coverage import note
from crossing.quantities import TOLERANCE, answerable, expected, inputs, request
from crossing.systems import MOTION_ACCELERATION, World
from crossing.test_pairs import GROUPS, group
from crossing.thresholds import SEGMENTED, small_thresholds

Array = np.ndarray[Any, Any]
NO_GRAPH = {"integrator", "steps", "event", "way"}  # dimensions of a system that do not change its accelerations
NO_TRACE = {"dtype", "threads", "use", "layout"}  # dimensions of a kernel that do not change its graph


@pytest.mark.parametrize("k", range(GROUPS))
def test_accelerations_of_a_traced_system_are_forward_dynamics(k: int, tmp_path: Path, held: Path) -> None:
    for seed, case in group("systems", k):
        world = World(case, seed)
        with small_thresholds(world.one("path"), tmp_path):
            _check_accelerations(world)
        note(held, "traced systems", [x for x in case if x[0] not in NO_GRAPH])


def _check_accelerations(w: World) -> None:
    """Compare the rate of a system with forward dynamics by another method, or with its prescribed motion."""
    s, m = w.system, w.mechanism
    t = 0.0 if s.motions else 0.1  # where a motion begins, the start is on it
    dynamics = bc.Simulator(s, w.how["integrator"], **{x: w.how[x] for x in ("form",) if x in w.how}).dynamics
    q, v = w.start
    y = np.concatenate([q, v, [x.initial for x in s.states], np.zeros(dynamics.size - s.size)])
    u = np.array([s.defaults[name] for name in s.inputs])
    arguments = {"t": np.array(t), "y": y, "u": u, "p": np.array(s.parameters.nominal)}
    rate = dynamics.f.evaluate(**{name: arguments[name] for name in dynamics.f.inputs})
    accelerations = np.asarray(rate["dy"])[m.nq : m.nq + m.nv]
    if s.motions:
        driven = [m.columns[1].index(name) for name in s.motions]
        same(accelerations[driven], np.full(len(driven), MOTION_ACCELERATION), 1e-9, "driven accelerations")
        return
    segmented = w.one("path") == SEGMENTED
    methods = [x for x in applicable_methods("forward_dynamics", m.tree) if (x.name == "dca") is segmented]
    method = next((x for x in methods if x.name in ("crba", "denoc")), methods[0])
    graph = graphs.trace_quantity(m, request(w, "forward_dynamics", method.name), method)
    tau = applied_forces(w, t, y)
    if s.solved_elements:  # of the forces that are solved with the accelerations, the outputs tell
        outputs = dynamics.outputs.evaluate(**{name: arguments[name] for name in dynamics.outputs.inputs})
        tau = tau + np.asarray(outputs["element"], float) - element_forces(w, t, y)
    state = {"q": q, "v": v, "tau": tau}
    parameters = {"p": np.array(m.parameters.nominal)} if m.parameters else {}
    same(accelerations, graph.evaluate(**state, **parameters)["forward_dynamics"], 1e-8, "accelerations")


@pytest.mark.parametrize("k", range(GROUPS))
def test_traced_quantities_agree_by_all_methods(k: int, tmp_path: Path, held: Path) -> None:
    for seed, case in group("quantities", k):
        world = World(case, seed)
        answered: set[str] = set()
        with small_thresholds(world.one("path"), tmp_path):
            for quantity in world.of("quantity"):
                answered |= {quantity} if _check_methods(world, quantity) else set()
        features = [x for x in case if x[0] not in NO_TRACE and (x[0] != "quantity" or x[1] in answered)]
        note(held, "traced quantities", features)


def first_of(candidates: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Choose the first of several methods and their graphs."""
    return candidates[0]


def _check_methods(w: World, quantity: str) -> bool:
    """Compare the graphs of a quantity by the methods of the case; return whether there was one."""
    methods = answerable(w, quantity)
    if not methods:
        return False
    states = inputs(w, quantity)
    values = expected(w, quantity, states)
    parameters = {"p": np.tile(w.mechanism.parameters.nominal, (len(values), 1))} if w.mechanism.parameters else {}
    for name in methods:
        _, graph = graphs.choose_graph(w.mechanism, request(w, quantity, name), first_of)
        same(graph.evaluate(**states, **parameters)[quantity], values, TOLERANCE["float64"], f"{quantity} by {name}")
    return True
