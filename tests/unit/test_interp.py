"""Interpolation of given points for numbers, arrays and symbols: smoothness and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.errors import InputError

XS, YS = [0.0, 0.2, 1.0, 1.5, 4.0], [0.0, 1.0, 1.5, 1.5, -2.0]


def test_linear_is_numpys() -> None:
    x = np.linspace(-1.0, 5.0, 601)
    np.testing.assert_allclose(bc.interp(x, XS, YS), np.interp(x, XS, YS), atol=1e-15)
    f = bc.compile(lambda x: bc.interp(x, XS, YS), inputs={"x": ()}, name="f")
    np.testing.assert_allclose(f(x), np.interp(x, XS, YS), atol=1e-15)
    assert bc.interp(0.1, XS, YS) == pytest.approx(0.5)


def test_the_slope_is_that_of_the_piece() -> None:
    f = bc.compile(lambda x: bc.interp(x, XS, YS), inputs={"x": ()}, name="f").derivative("x")
    np.testing.assert_allclose(f(np.array([-1.0, 0.1, 0.5, 1.2, 3.0, 9.0])), [0.0, 5.0, 0.625, 0.0, -1.4, 0.0])


@given(st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(-100.0, 100.0)), min_size=2, max_size=8))
def test_smooth_ones_stay_between_their_points(points: list[tuple[float, float]]) -> None:
    xs, ys = np.cumsum([x for x, _ in points]), np.array([y for _, y in points])
    scale = 1.0 + np.abs(ys).max()
    np.testing.assert_allclose(bc.interp(xs, xs, ys, "smooth"), ys, atol=1e-10 * scale)
    for a, b, ya, yb in zip(xs, xs[1:], ys, ys[1:], strict=False):
        found = bc.interp(np.linspace(a, b, 50), xs, ys, "smooth")
        assert found.min() >= min(ya, yb) - 1e-9 * scale
        assert found.max() <= max(ya, yb) + 1e-9 * scale


def test_slopes_of_smooth_ones_agree_where_pieces_meet() -> None:
    slope = bc.compile(lambda x: bc.interp(x, XS, YS, "smooth"), inputs={"x": ()}, name="f").derivative("x")
    inner = np.array(XS[1:-1])
    np.testing.assert_allclose(slope(inner - 1e-9), slope(inner + 1e-9), atol=1e-6)


@pytest.mark.parametrize(
    ("xs", "ys", "word"),
    [
        ([0.0, 1.0], [0.0], "the same length"),
        ([0.0], [0.0], "at least 2"),
        ([0.0, 2.0, 1.0], [0.0, 1.0, 2.0], r"xs\[1\] is 2 and xs\[2\] is 1"),
        ([0.0, float("nan")], [0.0, 1.0], "finite"),
        ([0.0, "a"], [0.0, 1.0], "numbers"),
    ],
)
def test_points_that_are_none(xs: list[float], ys: list[float], word: str) -> None:
    with pytest.raises(InputError, match=word):
        bc.interp(0.5, xs, ys)


def test_an_unknown_kind() -> None:
    with pytest.raises(InputError, match="linear, smooth"):
        bc.interp(0.5, XS, YS, "cubic")


def test_non_numbers_raise() -> None:
    for x in (int, "0.5", None):
        with pytest.raises(bc.InputError, match=r"interp: x is .*; expected a number"):
            bc.interp(x, [0.0, 1.0], [0.0, 1.0])  # type: ignore[arg-type]
