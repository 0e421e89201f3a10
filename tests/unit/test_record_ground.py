"""The ground in a record: dug heights at every time, in every file format, and on its page."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit.scene_poses import with_ground
from bellcrank.cockpit.session import Session
from bellcrank.errors import ReadError
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.excavators.offline import dug as dug_offline
from bellcrank.ground.field import CELL_SIZE, MIN_CHANGE, Ground, Tool
from bellcrank.record import Record, state_columns
from bellcrank.record.dug_ground import HEIGHT_UNIT_M, MERGE_SECONDS, dug_ground, read_ground
from fake_drive import FakeDrive

TOOL = Tool((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), 1.2, 0.8)


def dug() -> tuple[Ground, list[tuple[float, Any]]]:
    """Dig three buckets; return the record and the heights at some times."""
    g, seen, t = Ground(TOOL, 0.0), [(0.0, np.zeros((105, 105)))], 0.0
    for k in range(3):
        for a, b, mouth in (((7, k, -0.4), (5, k, -0.4), 0.5), ((5, k, 2.0), (5, -3, 2.0), -1.0)):
            for s in np.linspace(0.0, 1.0, 60):
                t += 1 / 60
                p = np.asarray(a) + s * (np.asarray(b) - a)
                g.work(t, p, (0.0, 1.0, 0.0), mouth, p)
                g.take_changes()
            t += MERGE_SECONDS  # so that the next change is reported separately
            seen.append((t, g.heights.copy()))
    return g, seen


def recorded(g: Ground, seconds: float) -> Record:
    m, t = bc.zoo.excavator(), np.arange(0.0, seconds, 0.05)
    columns = state_columns(m, t, q=np.tile(m.neutral(), (len(t), 1)), v=np.zeros((len(t), m.nv)))
    return with_ground(Record(columns, mechanism=m), g)


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet", "mcap"])
def test_every_format_keeps_the_ground(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip({"parquet": "pyarrow", "mcap": "mcap"}.get(suffix, "numpy"))
    g, seen = dug()
    run = recorded(g, seen[-1][0] + 0.5)
    run.save(tmp_path / f"run.{suffix}")
    kept = bc.load_record(tmp_path / f"run.{suffix}").ground
    assert kept is not None
    for t, heights in seen:
        np.testing.assert_allclose(kept.at(t + 1e-9), heights, atol=0.5 * HEIGHT_UNIT_M + MIN_CHANGE)
    assert np.ptp(seen[-1][1]) > 0.5
    assert abs(kept.volume(seen[-1][0]) + g.load) < 0.02  # the missing volume is in the bucket, except for rounding
    assert len(run.provenance["ground"]["heights"]) < 100_000
    assert len(str(run)) < 20_000  # heights are not written as text
    assert run.between(0.0, 1.0).ground is not None


def test_a_drive_saves_its_ground() -> None:
    session = Session(excavator.machine(), FakeDrive)
    assert session.ground is not None
    session.ground.heights[50, 60] = -0.7
    session.ground.take_changes()
    found = session.record_with_ground(0.0, 9.0)
    assert found.ground is not None
    assert found.ground.at(9.0)[50, 60] == pytest.approx(-0.7)
    assert (found.ground.cell, found.provenance["soil"]) == (CELL_SIZE, "loam")


def test_an_offline_run_has_its_ground_too() -> None:
    """An offline run records its ground too: record and field agree, and the load equals the missing volume."""
    m = excavator.machine()
    run = dug_offline(m, 14.0, m.pilots["dig"](), integrator="rk4")
    assert run.ground is not None
    np.testing.assert_allclose(run.t, np.linspace(0.0, 14.0, 701))
    lack = -np.array([run.ground.volume(t) for t in run.t[::50]])
    felt = run["parameter.load.mass"][::50] / 1540.0
    assert felt.max() > 0.3
    assert np.abs(lack - felt).max() < 0.06  # heights are rounded, and reported ten times a second
    assert "energy" not in run.residuals()  # the work of its drives was not recorded


def test_damaged_grounds_are_named() -> None:
    good = dug_ground(0.0, 0.2, np.zeros((5, 5)), [(0.5, {3: -0.1}), (1.0, {24: 0.2})]).plain
    assert read_ground(good).at(0.7)[0, 3] == pytest.approx(-0.1)
    assert read_ground(good).at(0.7)[4, 4] == 0.0
    bomb = base64.b64encode(zlib.compress(b"\0" * 10_000_000)).decode()
    for bad in ({"rows": 6}, {"changes": 1e9}, {"heights": "?"}, {"heights": bomb}, {"cell": 0.0}, {"rows": 10**9}):
        with pytest.raises(ReadError, match="damaged"):
            read_ground(good | bad)
    outside = dug_ground(0.0, 0.2, np.zeros((5, 5)), [(0.5, {25: -0.1})]).plain
    for other in (outside, "heights", None, {}):
        with pytest.raises(ReadError, match="Save the record again"):
            read_ground(other)


def test_page_has_the_ground() -> None:
    g, seen = dug()
    page = recorded(g, seen[-1][0]).html()
    assert "groundFaces" in page
    assert '"ground": {"level": 0.0' in page
