"""df/dy of a closed mechanism as a product of two narrow matrices equals the graph's own Jacobian."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given

import bellcrank as bc
from bellcrank.errors import BellcrankError
from bellcrank.integrate.implicit import WoodburySolver, implicit_solver
from bellcrank.integrate.problem import LowRankMatrix
from bellcrank.sim.constraints import loop_jacobian as slopes
from bellcrank.sim.constraints.loop_jacobian import is_applicable
from bellcrank.sim.constraints.looped_dynamics import looped_dynamics
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.systems import system
from loops import Closed, at_random, closed
from loops import looped as mechanisms
from trees import HOLONOMIC, few, random_tree

# Loops with so few equations that they are independent of each other in most trees.
INDEPENDENT = ("distance", "point_on_line", "planar", "spherical", "universal")


@at_random
@few(12)
@given(mechanisms(most=2, springs=1, max_bodies=4))
@example(
    closed(random_tree(276, ["revolute", "revolute", "revolute", "spherical"], [], rooted=False), 163356, ["revolute"])
)
@example(closed(random_tree(290157, ["helical", "revolute", "planar", "revolute"], [0]), 3408, ["gear", "distance"]))
def test_the_product_is_the_jacobian(found: Closed) -> None:
    """The product is also correct if displacements are computed one after the other by called code.

    The accuracy of a sum is limited by its largest terms and by the last bits of the state.
    """
    m, q = found
    assume(m.loops)
    try:
        by = looped_dynamics(system(m), Solver("rodas4"))
    except BellcrankError:
        assume(False)
    assume(by.closure.condition(np.array(q), np.zeros(0)).number < 1e3)
    y = by.correction.evaluate(y=np.concatenate([q, np.random.default_rng(len(q)).normal(size=m.nv)]))["y"]
    full = by.state_jacobian.evaluate(t=0.0, y=y)["ddy_dy"]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(8, len(y)))
    noise = np.abs(by.state_jacobian.evaluate(t=0.0, y=y * (1.0 + 2.0**-52 * signs))["ddy_dy"] - full).max()
    for large in (0, slopes.MAX_UNROLLED_OPERATIONS):
        made = slopes.jacobian_product(by, by.tree, by.mass_operator, by.part, large).evaluate(t=0.0, y=y)
        left, right = made["left"], made["right"]
        terms = (np.abs(left) @ np.abs(right)).max()
        assert np.abs(left @ right - full).max() <= max(1e-12 * max(1.0, terms), 3.0 * noise)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (4, 4), (6, 1), (3, 0)])
def test_woodbury_solves_the_whole_system(n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    left, right, b, g = rng.normal(size=(n, k)), rng.normal(size=(k, n)), rng.normal(size=n), 0.1
    made = implicit_solver(LowRankMatrix(left.tolist(), right.tolist()), g)
    assert isinstance(made, WoodburySolver)
    assert np.abs(made.solve(b.tolist()) - np.linalg.solve(np.eye(n) - g * left @ right, b)).max() < 1e-12


@at_random
@pytest.mark.parametrize("form", ["projected", "lagrange"])
@few(3)
@given(example=mechanisms(INDEPENDENT, most=1, joints=HOLONOMIC, base="cylindrical", max_bodies=3))
def test_slopes_at_known_accelerations_are_the_jacobian(form: str, example: Closed) -> None:
    """At any state, closed or not, because the differentiated equations hold at all states."""
    m, q = example
    assume(m.loops)
    try:
        by = looped_dynamics(system(m), Solver("rodas4", form=form))
    except BellcrankError:
        assume(False)
    assume(is_applicable(by))
    assume(by.closure.condition(np.array(q), np.zeros(0)).number < 1e3)
    rng = np.random.default_rng(len(q))
    y = np.concatenate([np.array(q) + 1e-3 * rng.normal(size=m.nq), rng.normal(size=m.nv)])
    full = by.f.jacobian("dy", "y").evaluate(t=0.0, y=y)["ddy_dy"]
    assert np.abs(by.state_jacobian.evaluate(t=0.0, y=y)["ddy_dy"] - full).max() <= 1e-9 * max(1.0, np.abs(full).max())


def test_slopes_of_a_machine_that_bends_are_less_work() -> None:
    """A slider-crank with a flexible rod; for the flexible excavator the work is half (docs/flexible.md)."""
    b = bc.Builder("crank")
    b.body("crank", mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.joint("shaft", "revolute", "ground", "crank", axis=(0, -1, 0), damping=0.1)
    b.beam(
        "rod",
        length=0.8,
        start=(0.2, 0, 0),
        section=bc.Section.circle(0.02),
        material=bc.Material.steel(),
        modes=1,
        motions=("bend_y",),
    )
    b.joint("pin", "revolute", "crank", "rod", point=(0.2, 0, 0), axis=(0, -1, 0))
    b.body("slider", mass=2.0, com=(1, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("rail", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.close("eye", "revolute", "rod.end", "slider", point=(1, 0, 0), axis=(0, -1, 0))
    m = b.build()
    by = looped_dynamics(system(m), Solver("rodas4", form="projected"))
    assert is_applicable(by)
    rng = np.random.default_rng(1)
    y = np.concatenate([1e-3 * rng.normal(size=m.nq), rng.normal(size=m.nv)])
    written, called = by.f.jacobian("dy", "y"), by.state_jacobian
    full = written.evaluate(t=0.0, y=y)["ddy_dy"]
    assert np.abs(called.evaluate(t=0.0, y=y)["ddy_dy"] - full).max() < 1e-11 * np.abs(full).max()
    assert called.count().arithmetic < written.count().arithmetic
