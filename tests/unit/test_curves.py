"""Panels of curves as SVG: ticks, thinning, ranges, escaping and clipping."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.view.curves import MAX_DEVIATION_PX, Line, Panel, figure, simplified, ticks

SVG = "{http://www.w3.org/2000/svg}"
T = np.linspace(0.0, 10.0, 1001)


def drawn(*panels: Panel, columns: int = 2) -> ET.Element:
    return ET.fromstring(figure("a < b", panels, columns))


def test_every_line_is_drawn_and_named_once() -> None:
    two = [Line("one", T, np.sin(T)), Line("two & more", T, np.cos(T), dotted=True)]
    root = drawn(Panel("p", two), Panel("q", two), Panel("r", two[:1]))
    assert len(list(root.iter(f"{SVG}polyline"))) == 5
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert [words.count(w) for w in ("one", "two & more", "p", "q", "r", "a < b", "t [s]")] == [1] * 7


def test_a_name_has_one_colour_in_all_panels() -> None:
    root = drawn(Panel("p", [Line("a", T, T), Line("b", T, -T)]), Panel("q", [Line("b", T, T)]))
    colours = [line.attrib["stroke"] for line in root.iter(f"{SVG}polyline")]
    assert colours[1] == colours[2] != colours[0]


@pytest.mark.parametrize("y", [np.zeros_like(T), np.full_like(T, 3e7), 1e-9 * T, -1e12 * T])
def test_any_range_fits(y: np.ndarray) -> None:
    root = drawn(Panel("p", [Line("a", T, y)]))
    points = [float(x) for p in next(root.iter(f"{SVG}polyline")).attrib["points"].split() for x in p.split(",")]
    assert all(0.0 <= x <= 330.0 for x in points)


def test_rows_that_are_not_finite_are_left_out() -> None:
    y = np.where(T < 5.0, T, np.nan)
    points = next(drawn(Panel("p", [Line("a", T, y)])).iter(f"{SVG}polyline")).attrib["points"]
    assert "nan" not in points


def test_limits_cut_off() -> None:
    root = drawn(Panel("p", [Line("a", T, np.exp(T))], top=10.0, bottom=0.0))
    ys = [float(p.split(",")[1]) for p in next(root.iter(f"{SVG}polyline")).attrib["points"].split()]
    assert min(ys) < 0.0  # above the panel, where the clip path hides it
    assert len(list(root.iter(f"{SVG}clipPath"))) == 1


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_are_round_inside_and_about_as_many_as_wanted(low: float, span: float, wanted: int) -> None:
    found = ticks(low, low + span, wanted)
    edge = 1e-6 * max(abs(low), span)
    assert all(low - edge <= x <= low + span + edge for x in found)
    assert len(found) <= wanted + 2


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 10, [0, 2, 4, 6, 8, 10]), (-47, 47, [-40, -20, 0, 20, 40])])
def test_ticks_by_example(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, 5) == expected


def test_thinning_misses_no_point() -> None:
    points = np.stack([30 * T, 50 * np.sin(T**1.5)], -1)
    kept = simplified(points)
    assert len(kept) < 0.3 * len(points)
    assert (kept[0] == points[0]).all()
    assert (kept[-1] == points[-1]).all()
    assert distance(points, kept).max() <= MAX_DEVIATION_PX + 1e-9


def distance(points: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Return the distance of each point from a polyline."""
    a, b = line[:-1], line[1:]
    way = b - a
    along = ((points[:, None] - a) * way).sum(-1) / np.maximum((way * way).sum(-1), 1e-12)
    nearest = a + np.clip(along, 0.0, 1.0)[..., None] * way
    return np.linalg.norm(points[:, None] - nearest, axis=-1).min(axis=1)
