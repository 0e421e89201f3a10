"""Animated SVG: one group for each time, shown one after the other; moving machines stay in view."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.record import Record, state_columns
from bellcrank.view.mechanism_picture import HEIGHT, WIDTH

SPACE = "{http://www.w3.org/2000/svg}"


def moving(m: bc.Mechanism, q: np.ndarray) -> Record:
    return Record(state_columns(m, np.linspace(0.0, 2.0, len(q)), q=q, v=np.zeros((len(q), m.nv))), mechanism=m)


def test_every_moment_is_shown_in_its_time(tmp_path: Path) -> None:
    arm = bc.zoo.chain(2)
    run = moving(arm, np.linspace([0.0, 0.0], [3.0, 1.0], 200))
    file = run.animation(tmp_path / "arm.svg", frames=20, speed=0.5)
    root = ElementTree.parse(file).getroot()
    groups = root.findall(f"{SPACE}g")
    assert len(groups) == 20
    delays = [float(re.findall(r"[\d.]+", g.attrib["style"])[0]) for g in groups]
    np.testing.assert_allclose(delays, np.arange(20) * 4.0 / 20, atol=1e-3)
    assert len({ElementTree.tostring(g) for g in groups}) == 20  # the groups differ, so it moves
    assert "<script" not in file.read_text("utf-8")


def test_camera_follows_a_moving_mechanism(tmp_path: Path) -> None:
    b = bc.Builder("<sled>")
    b.body("sled", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", "prismatic", "ground", "sled", axis=(1, 0, 0))
    run = moving(b.build(), np.linspace([0.0], [500.0], 50))
    text = run.animation(tmp_path / "sled.svg", frames=10).read_text("utf-8")
    assert "&lt;sled&gt;" in text
    for group in ElementTree.fromstring(text).findall(f"{SPACE}g"):
        corners = [p.attrib["points"] for p in group.findall(f"{SPACE}polygon")]
        x, y = np.array([[float(c) for c in corner.split(",")] for p in corners for corner in p.split()]).T
        assert ((x > 0) & (x < WIDTH) & (y > 0) & (y < HEIGHT)).any()
        assert group.findall(f"{SPACE}path")  # the ground under it


def test_bad_input(tmp_path: Path) -> None:
    arm = bc.zoo.chain(2)
    run = moving(arm, np.zeros((5, 2)))
    for how in ({"frames": 1}, {"frames": 10**6}, {"speed": 0.0}):
        with pytest.raises(InputError, match="expected 2 to 400 frames"):
            run.animation(tmp_path / "it.svg", **how)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fewer than two rows"):
        moving(arm, np.zeros((1, 2))).animation(tmp_path / "it.svg")
    with pytest.raises(InputError, match="nothing to draw"):
        Record(dict(list(state_columns(arm, [0.0], q=np.zeros((1, 2))).items())[:1])).animation(tmp_path / "it.svg")
