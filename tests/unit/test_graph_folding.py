"""Construction of nodes: constant folding, sharing, and refused operands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.errors import TraceError
from bellcrank.graph import Node, Tape, trace
from bellcrank.nodes.ops import OPS
from bellcrank.scalar import atan2, clip, cos, fabs, floor, maximum, minimum, sin, sqrt, where


@pytest.fixture
def xyz() -> tuple[Node, Node, Node]:
    x, y, z = Tape().inputs("x", (3,))
    return x, y, z


def test_zero_and_one_vanish(xyz: tuple[Node, ...]) -> None:
    x, *_ = xyz
    assert x + 0.0 is x
    assert 0.0 + x is x
    assert x - 0.0 is x
    assert x * 1.0 is x
    assert 1 * x is x
    assert x / 1.0 is x
    assert x * 0.0 == 0.0
    assert 0 * x == 0.0
    assert 0.0 / x == 0.0
    assert x**1 is x
    assert +x is x


def test_signs(xyz: tuple[Node, ...]) -> None:
    x, y, _ = xyz
    negative = -x
    assert -negative is x
    assert x * -1.0 is -x
    assert x / -1.0 is -x
    assert 0.0 - x is -x
    # x*y and its three negated forms are one product.
    assert (-x) * y is -(x * y)
    assert x * (-y) is -(x * y)
    assert (-x) * (-y) is x * y
    assert (-x) / y is -(x / y)
    assert x / (-y) is -(x / y)
    assert -2.0 * x is -(x * 2.0)
    assert x + (-y) is x - y
    assert x - (-y) is x + y
    assert (-x) - y is -(x + y)
    assert (-x) + y is y - x


def test_operations_on_equal_operands(xyz: tuple[Node, ...]) -> None:
    x, y, _ = xyz
    assert x - x == 0.0
    assert x + (-x) == 0.0
    assert x / x == 1.0
    assert minimum(x, x) is x
    assert maximum(x, x) is x
    assert where(x < y, x, x) is x
    difference = x - y
    assert y - x is -difference  # computed only once


def test_constants_meet(xyz: tuple[Node, ...]) -> None:
    x, *_ = xyz
    assert 2.0 * (3.0 * x) is 6.0 * x
    assert (x * 3.0) * 2.0 is 6.0 * x
    assert 2.0 + (3.0 + x) is 5.0 + x
    assert (x / 2.0) is 0.5 * x
    assert (2.0 * x) / 4.0 is 0.5 * x
    assert (x - 3.0) + 3.0 is x


def test_common_subexpressions_through_commutativity(xyz: tuple[Node, ...]) -> None:
    x, y, z = xyz
    assert x + y is y + x
    assert x * y is y * x
    assert minimum(x, y) is minimum(y, x)
    assert maximum(x, 2.0) is maximum(2.0, x)
    assert (x + y) * z is z * (y + x)
    assert sin(x * y) is sin(y * x)
    assert x - y is not y - x
    assert x / y is not y / x


def test_even_and_odd_functions(xyz: tuple[Node, ...]) -> None:
    x, *_ = xyz
    assert sin(-x) is -sin(x)
    assert cos(-x) is cos(x)


def test_functions_of_constants_are_constants() -> None:
    x = Tape().inputs("x", ())[()]
    assert x * 0.0 + 3.0 == 3.0
    for f, value in ((sin, 0.3), (cos, 0.3), (sqrt, 2.0), (fabs, -2.0)):
        assert f(value) == getattr(np, f.__name__)(value)
    assert isinstance(where(x < 1.0, 2.0, 2.0), float)


def test_powers(xyz: tuple[Node, ...]) -> None:
    x, *_ = xyz
    assert x**2 is x * x
    assert x**0.5 is sqrt(x)
    assert x**3 is (x * x) * x
    for exponent in (-1, 1.5, 0):
        with pytest.raises(TraceError, match="positive integer"):
            x**exponent


def test_comparisons_are_two(xyz: tuple[Node, ...]) -> None:
    x, y, _ = xyz
    assert (x > y) is (y < x)
    assert (x >= y) is (y <= x)
    assert (x < 2.0).op == (x > 2.0).op == "lt"


def test_truth_and_floats_of_nodes_are_refused(xyz: tuple[Node, ...]) -> None:
    x, y, _ = xyz
    with pytest.raises(TraceError, match="where"):
        bool(x < y)
    with pytest.raises(TraceError, match="no truth value"):
        max(x, y)
    with pytest.raises(TraceError, match=r"bellcrank\.scalar"):
        float(x)
    with pytest.raises(TraceError):
        math.sin(x)
    with pytest.raises(TraceError, match="'three' of type str"):
        x + "three"
    with pytest.raises(TraceError, match="NaN"):
        x * math.nan
    with pytest.raises(TraceError, match="constant zero"):
        x / 0.0


def test_numpy_on_object_arrays_traces(xyz: tuple[Node, ...]) -> None:
    x, y, z = xyz
    v = np.array([x, y, z], dtype=object)
    assert np.sin(v)[1] is sin(y)
    assert (2.0 * v)[2] is 2.0 * z
    assert (v @ np.array([0.0, 1.0, 0.0])) is y
    assert (v + np.zeros(3))[0] is x
    assert (x * np.ones(2)).tolist() == [x, x]
    assert (v * x)[1] is x * y
    assert (v - x)[0] == 0.0
    assert (v / x)[0] == 1.0
    assert ((v @ v) * x) is x * (x * x + y * y + z * z)
    assert np.float64(2.0) * x is 2.0 * x


# Folding keeps the value: random expressions, built twice.
SCALAR: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a, b: -a,
    "div": lambda a, b: a / (b * b + 1.0),
    "sin": lambda a, b: sin(a),
    "cos": lambda a, b: cos(a),
    "sqrt": lambda a, b: sqrt(a * a + 0.5),
    "abs": lambda a, b: fabs(a),
    "floor": lambda a, b: floor(a),
    "min": minimum,
    "max": maximum,
    "where": lambda a, b: where(a < b, a, b * 2.0),
    "atan2": lambda a, b: atan2(a, b * b + 0.1),
    "clip": lambda a, b: clip(a, -1.0, 1.0),
}
steps = st.lists(
    st.tuples(st.sampled_from(sorted(SCALAR)), st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=15
)


def chain(x: Any, program: list[tuple[str, int, int]]) -> Any:
    stack: list[Any] = [*x, 0.0, 1.0, -1.0, 0.5, -2.0]
    for name, i, j in program:
        stack.append(SCALAR[name](stack[i % len(stack)], stack[j % len(stack)]))
    return stack[-1]


@given(steps, st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_folding_never_changes_a_value(program: list[tuple[str, int, int]], x: list[float]) -> None:
    g = trace("random", lambda x: {"y": chain(x, program)}, {"x": (3,)})
    expected = float(chain(x, program))
    assert g.evaluate(x=x)["y"] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_table_of_operations_is_complete() -> None:
    """Every operation of the table has a value, a derivative for each argument, and a spelling or a name."""
    for name, op in OPS.items():
        assert op.name == name
        assert op.cost >= 0
        assert not op.commutative or op.arity == 2
