"""Nikravesh et al. 1989, figure 7: the maximum speed-up of the Stanford arm by its joints, as numbers and as a plot.

The text gives only the ends of the printed curve, 11 and 76. tests/papers/test_nikravesh1989.py derives ours.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from bellcrank.papers.nikravesh import figure_7, maximum_speedup, tables
from bellcrank.papers.operation_counts import published
from bellcrank.view.curves import line_chart

PAGE = Path(__file__).parents[2] / "docs/counting.md"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_curve() -> None:
    found = maximum_speedup()
    least, most = published()["dataflow"]["stanford_max_speedup_n1_to_n6"]
    full = found["full matrices"]
    assert list(full) == [1, 2, 3, 4, 5, 6]
    assert full[1] == pytest.approx(least, rel=0.2)  # with one joint a few operations decide
    assert full[6] == pytest.approx(most, rel=0.1)
    for row in found.values():
        assert all(a < b for a, b in pairwise(row.values()))
    assert all(found["this arm"][n] < found["any arm"][n] <= full[n] * (1 + 1e-12) for n in full)


def test_the_plot_has_every_point() -> None:
    root = ET.fromstring(figure_7())
    drawn = [line.attrib["points"].split() for line in root.iter(f"{SVG}polyline")]
    assert [len(points) for points in drawn] == [6, 6, 6]
    assert len([c for c in root.iter(f"{SVG}circle") if c.attrib["fill"] == "none"]) == 2
    words = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    assert all(name in words for name in (*maximum_speedup(), "nikravesh1989", "joints"))
    heights = [float(p.split(",")[1]) for p in drawn[0]]
    assert heights == sorted(heights, reverse=True)


def test_the_report_has_both_ends() -> None:
    first, *_, last = tables()[0].rows[0][1:]
    assert (first, last) == ("11", "76")


def test_names_are_escaped_and_points_keep_inside() -> None:
    root = ET.fromstring(line_chart("a < b", "x & y", "z", {"<one>": {1.0: 3.0}, "flat": {1.0: 0.0}}))
    for circle in root.iter(f"{SVG}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= 560
        assert 0 <= float(circle.attrib["cy"]) <= 360


def test_the_page_has_the_ends_of_the_curves() -> None:
    page = PAGE.read_text("utf-8")
    for row in maximum_speedup().values():
        assert f"{row[1]:.1f} to {row[6]:.1f}" in page
