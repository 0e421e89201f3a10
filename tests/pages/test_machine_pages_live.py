"""Pages of records draw machines and robots with meshes as the cockpit does: in headless Chromium with WebGL."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.excavators.machines import MACHINES
from bellcrank.record import Column, Record, state_columns
from bellcrank.record.dug_ground import dug_ground
from bellcrank.view.record_page import MACHINE_SHAPES, script, shape_of
from chromium import opening, settled

BUILT = pytest.mark.skipif(not script(), reason="the page's scripts are not built: make page")


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[Any]:
    with opening(browser) as opened:

        def show(run: Record) -> Any:
            run.report(tmp_path / "page.html")
            return opened(tmp_path / "page.html", 1100, 700)

        yield show


def picture(page: Any) -> Any:
    from matplotlib.image import imread

    page.wait_for_timeout(800)
    return imread(io.BytesIO(page.locator("#world").screenshot()))[..., :3]


def yellow(seen: Any) -> Any:
    return (seen[..., 0] > 0.5) & (seen[..., 1] > 0.3) & (seen[..., 2] < 0.25)


@BUILT
def test_an_excavator_its_hole_and_its_heap(shown: Any) -> None:
    m = bc.zoo.excavator_linkage()
    q = np.zeros((3, m.nq)) + m.neutral()
    q[2, 0] = 0.5  # it swings
    columns = state_columns(m, [0.0, 1.0, 2.0], q=q, v=np.zeros((3, m.nv)))
    columns["payload"] = Column("payload", "kg", np.array([0.0, 1500.0, 1500.0]))
    first = 48 * 105 + 82  # ahead of it
    changed = {first + 105 * j + k: -0.5 if k < 4 else 0.6 for j in range(8) for k in range(8)}
    ground = dug_ground(0.0, 0.2, np.zeros((105, 105)), [(0.9, changed)])
    page = shown(Record(columns, mechanism=m).noting({"ground": ground.plain}))
    assert page.is_hidden("#stage")
    before = picture(page)
    assert yellow(before).mean() > 0.02
    page.evaluate("seek(1)")
    dug = picture(page)
    assert (np.abs(dug - before).max(axis=-1) > 0.08).mean() > 0.001
    page.evaluate("seek(2)")
    assert (np.abs(picture(page) - dug).max(axis=-1) > 0.1).mean() > 0.01
    page.evaluate("seek(0)")
    assert np.abs(picture(page) - before).mean() < 2e-3  # the ground is restored
    page.click("#theme")
    settled(page)
    assert picture(page)[:40].mean() < 0.5 < before[:40].mean()


def test_appearance_belongs_to_the_machine_only() -> None:
    b = bc.Builder("excavator_linkage")
    b.body("cab", mass=1.0, inertia=(1, 1, 1))
    b.joint("swing", "revolute", "ground", "cab")
    assert shape_of(b.build()) is None
    made = {name: make() for name, make in MACHINES.items()}
    assert {name for name, machine in made.items() if machine.look} == set(MACHINE_SHAPES)
    for machine in made.values():
        found = shape_of(machine.mechanism)
        assert (found.name if found else "") == machine.look
        assert found is None or found.ground_level == machine.ground


def test_other_pages_do_not_carry_its_scripts(tmp_path: Path) -> None:
    m = bc.zoo.puma600()
    run = Record(state_columns(m, [0.0], q=m.neutral()[None], v=np.zeros((1, m.nv))), mechanism=m)
    run.report(tmp_path / "page.html")
    assert "BellcrankReport=" not in (tmp_path / "page.html").read_text("utf-8")
