"""Sines and cosines of emitted C, four at a time: accurate to two ulp in their range, and libm's beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bellcrank.emit.c import c99, sincos_text
from bellcrank.graph import Graph, trace
from bellcrank.scalar import cos, sin
from targets.test_c99 import compiled, needs_cc

Array = npt.NDArray[Any]
SIX = 6


def rotations(count: int = SIX) -> Graph:
    def both(x: Any) -> Any:
        return {"s": [sin(a) for a in x], "c": [cos(a) for a in x]}

    return trace("turns of mine", both, {"x": (count,)})


def angles(dtype: str, most: float) -> Array:
    """Return angles of all sizes, and some as close to multiples of pi/2 as numbers can be."""
    draw = np.random.default_rng(3)
    quarters = np.arange(0, 300) * (np.pi / 2)
    near = [quarters, np.nextafter(quarters, 9e9), np.nextafter(quarters, -9e9)]
    spread = [draw.uniform(-x, x, 600) for x in (1e-9, 1.0, 7.0, 300.0, most)]
    made = np.concatenate([*near, *spread]).astype(dtype)
    return made[: len(made) // SIX * SIX].reshape(-1, SIX)


@needs_cc
@pytest.mark.parametrize(("dtype", "most", "least"), [("float64", 1.02e5, 2.0**-101), ("float32", 3.2e3, 2.0**-38)])
@pytest.mark.parametrize("how", ["-O1", "-O3"])
def test_two_ulp(dtype: str, most: float, least: float, how: str, tmp_path: Path) -> None:
    """Errors are below two ulp. least: the accuracy of pi/2 itself, times the number of quarters."""
    call, x = compiled(rotations(), tmp_path, dtype, how), angles(dtype, most)
    made = [call(x=row) for row in x]
    for key, exact in (("s", np.sin), ("c", np.cos)):
        right = exact(x.astype(np.longdouble))
        found = np.array([row[key] for row in made]).astype(np.longdouble)
        ulp = np.spacing(np.abs(right).astype(dtype)).astype(np.longdouble)
        assert (np.abs(found - right) <= 2.0 * ulp + least).all(), float((np.abs(found - right) / ulp).max())


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_far_away_and_nowhere(dtype: str, tmp_path: Path) -> None:
    call = compiled(rotations(), tmp_path, dtype)
    x = np.array([1e9, 0.5, -3e30, np.inf, np.nan, -0.25], dtype)
    found = call(x=x)
    with np.errstate(invalid="ignore"):
        for key, exact in (("s", np.sin), ("c", np.cos)):
            np.testing.assert_allclose(found[key], exact(x.astype(float)), rtol=2 * np.finfo(dtype).eps)


def test_a_single_angle_is_libms_and_many_share_their_calls() -> None:
    assert "turned(" not in c99.source(rotations(1))["turns_of_mine.c"]
    text = c99.source(rotations(9))["turns_of_mine.c"]
    assert text.count("    turned(x[") == 3
    assert text.count("static void turned(") == 1


def test_angles_that_depend_on_others_come_later() -> None:
    def twice(x: Any) -> Any:
        first = [sin(a) for a in x]
        return {"s": [sin(a + b) for a, b in zip(first, x, strict=True)]}

    text = c99.source(trace("twice", twice, {"x": (2,)}))["twice.c"]
    assert text.count("    turned(") == 2


def test_a_function_of_that_name_keeps_it(tmp_path: Path) -> None:
    text = c99.source(rotations(), name="turned")["turned.c"]
    assert "static void turned_1(" in text
    assert "void turned(const double *restrict x" in text


def test_pi_is_cut_where_quarters_of_turns_are_exact() -> None:
    for dtype, bits in (("float64", 53), ("float32", 24)):
        first, second, third = sincos_text.half_pi_parts(dtype)
        for part in (first, second):
            mantissa = np.array(part).astype(dtype) * np.arange(sincos_text.ARGUMENT_REDUCTIONS[dtype].quarters + 1)
            assert (mantissa.astype(dtype).astype(np.longdouble) == mantissa.astype(np.longdouble)).all(), bits
            whole, power = float(part).as_integer_ratio()
            assert (whole * sincos_text.ARGUMENT_REDUCTIONS[dtype].quarters).bit_length() <= bits, power
        assert abs(first + second + third - np.pi / 2) <= np.spacing(np.pi / 2)
