"""Derivatives along a direction by jets agree with those of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import TraceError
from bellcrank.jets import Jet

FUNCTIONS: dict[str, Any] = {
    "polynomial": lambda x: 3.0 * x**3 - x * x / 2 + 1.0 / (x + 2.0) - (-x),
    "trigonometry": lambda x: bc.sin(x) * bc.cos(2.0 * x) + bc.tan(x / 3.0),
    "inverse": lambda x: bc.asin(x / 3.0) + bc.acos(x / 4.0) + bc.atan2(bc.sin(x), 2.0 + x),
    "growth": lambda x: bc.exp(-x) + bc.log(x + 2.0) + bc.tanh(x) + bc.sqrt(x + 2.0) + (x + 3.0) ** 0.5,
    "choices": lambda x: bc.where(x > 0.1, x * x, bc.sin(x)) + bc.minimum(x, 0.3 * x * x) + bc.maximum(1.0, x) + abs(x),
    "points": lambda x: bc.interp(x, [-1.0, 0.2, 0.9, 2.0], [0.0, 1.0, 0.4, 2.0], "smooth"),
    "rounding": lambda x: x * bc.floor(x + 0.01),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jets_equal_graph_derivatives(name: str) -> None:
    f = bc.compile(FUNCTIONS[name], inputs={"x": ()}, name="f")
    first = f.derivative("x")
    for x in (-0.83, 0.07, 0.55, 1.31):
        found = FUNCTIONS[name](Jet(x, 1.0))
        second = (first(x + 1e-5) - first(x - 1e-5)) / 2e-5
        np.testing.assert_allclose([found.x, found.d], [f(x), first(x)], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(found.c, second, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_their_parts_may_be_symbols(name: str) -> None:
    def both(x: Any, k: Any) -> Any:
        found = FUNCTIONS[name](k * Jet(x, 1.0))
        return [found.x, found.d, found.c]

    f = bc.compile(both, inputs={"x": (), "k": ()}, name="f")
    here = FUNCTIONS[name](1.1 * Jet(0.6, 1.0))
    np.testing.assert_allclose(f(0.6, 1.1), [here.x, here.d, here.c], rtol=1e-12)


def test_symbols_on_the_left() -> None:
    def g(x: Any) -> Any:
        j = Jet(x, 1.0)
        parts = [x + j, x - j, x * j, x / j, bc.minimum(x, j), bc.maximum(x, j), bc.atan2(x, j), bc.where(x < j, x, j)]
        return [p.d for p in parts]

    f = bc.compile(g, inputs={"x": ()}, name="f")
    np.testing.assert_allclose(f(0.5), [1.0, -1.0, 0.5, -2.0, 0.0, 0.0, -1.0, 1.0])


def test_jet_has_no_truth_value() -> None:
    with pytest.raises(TraceError, match="where"):
        bool(Jet(1.0))
