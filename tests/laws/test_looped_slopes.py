"""df/dy of a closed mechanism as a product of two narrow matrices is df/dy as the graph's own derivative has it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from bellcrank.errors import BellcrankError
from bellcrank.integrate.linear import Woodbury, implicit
from bellcrank.integrate.problem import Product
from bellcrank.sim import looped_slopes as slopes
from bellcrank.sim.looped_dynamics import looped_dynamics
from bellcrank.sim.settings import Solver
from bellcrank.sim.systems import system
from loops import Closed
from loops import looped as mechanisms
from trees import few


@pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning")
@few(12)
@given(mechanisms(most=2, springs=1, max_bodies=4))
def test_the_product_is_the_jacobian(example: Closed) -> None:
    """Also where one displacement is done after the other, by code that is called."""
    m, q = example
    assume(m.loops)
    try:
        by = looped_dynamics(system(m), Solver("rodas4"))
    except BellcrankError:
        assume(False)
    assume(by.closure.condition(np.array(q), np.zeros(0)).number < 1e3)
    y = by.correction.evaluate(y=np.concatenate([q, np.random.default_rng(len(q)).normal(size=m.nv)]))["y"]
    full = by.by_state.evaluate(t=0.0, y=y)["ddy_dy"]
    for large in (0, slopes.LARGE):
        found = slopes.product(by, by.tree, by.mass, by.part, large).evaluate(t=0.0, y=y)
        made = found["left"] @ found["right"]
        assert np.abs(made - full).max() <= 1e-9 * max(1.0, np.abs(full).max())


@pytest.mark.parametrize(("n", "k"), [(5, 2), (4, 4), (6, 1), (3, 0)])
def test_woodbury_solves_the_whole_system(n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    left, right, b, g = rng.normal(size=(n, k)), rng.normal(size=(k, n)), rng.normal(size=n), 0.1
    made = implicit(Product(left.tolist(), right.tolist()), g)
    assert isinstance(made, Woodbury)
    assert np.abs(made.solve(b.tolist()) - np.linalg.solve(np.eye(n) - g * left @ right, b)).max() < 1e-12
