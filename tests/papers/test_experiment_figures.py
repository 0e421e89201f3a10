"""The plots in docs/experiments agree with current runs.

`bellcrank papers NAME --figures docs/experiments` writes them. They are compared as drawings: another processor rounds
differently, and a point may move slightly.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from reruns import rerun

from bellcrank.papers import EXPERIMENTS

RUNS = [name for name in EXPERIMENTS if "-" in name]  # the others have tables
FOLDER = Path(__file__).parents[2] / "docs/experiments"
SVG = "{http://www.w3.org/2000/svg}"
HAIR = 2.0  # tolerance in units of the drawing; a panel is 330 wide


@pytest.mark.parametrize("name", RUNS)
def test_there_is_a_page_with_all_plots_and_no_others(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text("utf-8")
    assert f"bellcrank papers {name} --figures" in page
    made = {f"{name}-{what}.svg" for what in rerun(name).figures}
    assert made == {path.name for path in FOLDER.glob(f"{name}-*.svg")}
    assert all(f"({file})" in page for file in made)


@pytest.mark.parametrize("name", RUNS)
def test_plots_are_current(name: str) -> None:
    for what, svg in rerun(name).figures.items():
        old, new = ET.fromstring((FOLDER / f"{name}-{what}.svg").read_text("utf-8")), ET.fromstring(svg)
        assert words(old) == words(new), f"{name}-{what}"
        pairs = list(zip(lines(old), lines(new), strict=True))
        assert pairs
        for a, b in pairs:
            assert max(distance(a, b).max(), distance(b, a).max()) < HAIR, f"{name}-{what}"


def test_the_plots_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.svg")) < 400_000


def words(root: ET.Element) -> list[str | None]:
    return [text.text for text in root.iter(f"{SVG}text")]


def lines(root: ET.Element) -> list[np.ndarray]:
    drawn = [line.attrib["points"] for line in root.iter(f"{SVG}polyline")]
    return [np.array([[float(x) for x in point.split(",")] for point in points.split()]) for points in drawn]


def distance(points: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Distance of each point from a polyline."""
    a, b = line[:-1], line[1:]
    way = b - a
    along = ((points[:, None] - a) * way).sum(-1) / np.maximum((way * way).sum(-1), 1e-12)
    nearest = a + np.clip(along, 0.0, 1.0)[..., None] * way
    return np.linalg.norm(points[:, None] - nearest, axis=-1).min(axis=1)
