"""The contents of the page of a record: poses, shapes, thinned rows, panels; and the command that writes it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app
from bellcrank.forces import Soil
from bellcrank.model import Body, Frame, Joint, Mechanism, mechanism_of
from bellcrank.record import Column, Record, Stop, state_columns
from bellcrank.view import record_page as page
from bellcrank.view.record_page import decimated, page_data
from bellcrank.view.scene import inertia_box, poses, scene
from runs import rk4
from trees import ALL, few, random_tree, trees


@pytest.fixture(scope="module")
def run() -> Record:
    return rk4(bc.zoo.excavator(), [0.3, 0.5, -0.9, -0.4], [0.6, 0.0, 0.0, 0.0], 0.1, 1e-3)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="record">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def matrix_of(pose: Any) -> Any:
    x, y, z, w = pose[3:]
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


@few(10)
@given(m=trees(ALL, max_bodies=4), seed=st.integers(0, 1000))
def test_body_poses_equal_those_of_kernels(m: Mechanism, seed: int) -> None:
    q = m.random(seed, batch=3)[0]
    found = poses(m, q)
    for i, b in enumerate(m.bodies):
        X = m.pose(q, b.name)
        np.testing.assert_allclose(found[:, i, :3], X[:, :3, 3], atol=1e-12)
        for k in range(3):
            np.testing.assert_allclose(matrix_of(found[k, i]), X[k, :3, :3], atol=1e-12)


def test_a_name_that_was_given_away() -> None:
    """A frame named "arm" by the user does not replace the body "arm" in the drawing."""
    parts = [Body("arm", 1.0, (0.5, 0.0, 0.0))], [Joint("hinge", "revolute", "ground", "arm", point=(0.0, 0.0, 1.0))]
    m = mechanism_of("odd", *parts, [Frame("arm", "arm", point=(9.0, 9.0, 9.0))])
    np.testing.assert_allclose(poses(m, np.zeros((1, 1)))[0, 0], [0, 0, 1, 0, 0, 0, 1], atol=1e-15)


def test_the_box_has_the_mass_and_the_inertia_of_the_body() -> None:
    m = random_tree(5, ["revolute"] * 3)
    for b in m.bodies:
        half, axes = inertia_box(b)
        a, c, d = 2 * half
        moments = b.mass / 12 * np.diag([c * c + d * d, a * a + d * d, a * a + c * c])
        np.testing.assert_allclose(axes @ moments @ axes.T, b.inertia, atol=1e-12)
        assert np.linalg.det(axes) == pytest.approx(1.0)


@pytest.mark.parametrize("name", [*(n for n in bc.zoo.names() if n not in ("chain", "tree", "random_tree")), "tree:7"])
def test_every_body_can_be_seen(name: str) -> None:
    m = bc.zoo.load(name)
    found = scene(m, m.random(0, batch=4)[0])
    beams = {name for outline in m.outlines for name in outline.bodies}  # drawn as a whole, with their nodes
    assert {s["body"] for s in found["shapes"]} >= {i for i, b in enumerate(m.bodies) if b.name not in beams}
    assert [beam["name"] for beam in found["beams"]] == [outline.name for outline in m.outlines]
    assert found["radius"] > 0
    assert np.linalg.norm(found["up"]) == pytest.approx(1.0)
    json.dumps(found, allow_nan=False)


def test_travel_does_not_shrink_the_mechanism() -> None:
    m = bc.zoo.stanford()
    q = np.tile(m.neutral(), (3, 1))
    near = scene(m, q)["radius"]
    q[2, 2] = 1000.0
    assert scene(m, q)["radius"] == pytest.approx(3 * near)
    q[2, 2] = 0.5
    assert near < scene(m, q)["radius"] < 3 * near


def test_thinning_keeps_the_ends() -> None:
    for n in (1, 2, 3, 1999, 2000, 2001, 4001, 100_000):
        kept = decimated(np.arange(n), 2000)
        assert kept[0] == 0
        assert kept[-1] == n - 1
        assert len(kept) <= 2000
        assert len(kept) == n or n > 2000
        assert len(kept) >= min(n, 1000)
        assert len(set(np.diff(kept)[:-1])) <= 1


def test_page_data_of_a_run(run: Record) -> None:
    data = data_of(run.html())
    t = np.frombuffer(base64.b64decode(data["t"]))
    np.testing.assert_array_equal(t, run.t)
    names = [c["name"] for c in data["columns"]]
    values = np.frombuffer(base64.b64decode(data["columns"][names.index("boom.q")]["values"]))
    np.testing.assert_array_equal(values, run["boom.q"])
    assert [p["title"] for p in data["panels"]] == ["Positions", "Velocities", "Energies", "Change of energy"]
    found = np.frombuffer(base64.b64decode(data["replay"]["poses"]), np.float32).reshape(101, 4, 7)
    np.testing.assert_allclose(found[:, 3, 2], run["bucket.z"], rtol=1e-6)
    assert ["integrator", "rk4"] in data["provenance"]
    assert data["stops"] == [["end", "0.1 s", "the time asked for"]]


def test_thinned_rows_are_reported() -> None:
    m = bc.zoo.planar3r()
    n = 5001
    q = np.linspace(0, 1, n)[:, None] * np.ones(3)
    run = Record(state_columns(m, np.arange(n) * 1e-3, q=q, v=np.zeros((n, 3))), mechanism=m)
    data = data_of(run.html())
    assert "1668 of them are on this page" in data["about"]
    assert len(base64.b64decode(data["t"])) == 8 * 1668
    assert np.frombuffer(base64.b64decode(data["replay"]["t"]))[-1] == 5.0


def test_many_bodies_have_fewer_frames(run: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_REPLAY_VALUES", 7 * 4 * 30)
    data = page_data(run, (), "x")
    times = np.frombuffer(base64.b64decode(data["replay"]["t"]))
    assert times.tolist() == [*run.t[:-1:4], run.t[-1]]
    assert len(base64.b64decode(data["replay"]["poses"])) == 4 * 7 * 4 * len(times)
    assert len(base64.b64decode(data["t"])) == 8 * len(run)  # the plots keep all rows


def test_a_run_of_a_batch() -> None:
    m = bc.zoo.planar3r()
    run = rk4(m, np.random.default_rng(0).normal(size=(2, 3, 3)), np.zeros((2, 3, 3)), 0.02, 1e-2)
    data = page_data(run, (1, 2), "x")
    values = np.frombuffer(base64.b64decode(data["columns"][0]["values"]))
    np.testing.assert_array_equal(values, run["joint1.q"][1, 2])
    assert "run 1, 2 of the batch 2 x 3" in data["about"]
    with pytest.raises(bc.InputError, match=r"lane is \(2, 0\); expected .*the batch has the shape \(2, 3\)"):
        run.html((2, 0))


def test_without_a_mechanism() -> None:
    columns = {n: Column(n, u, np.array([1.0, np.nan, np.inf])) for n, u in (("t", "s"), ("p", "Pa"))}
    columns["t"] = Column("t", "s", np.arange(3.0))
    data = data_of(Record(columns, stops=[Stop("not finite", np.nan, "p")]).html())
    assert data["replay"] is None
    assert [(p["title"], p["unit"]) for p in data["panels"]] == [("Pressures", "Pa")]


@pytest.mark.parametrize(
    ("name", "unit", "title"),
    [
        ("boom.q", "rad", "Positions"),
        ("base.qw.q", "1", "Orientation"),
        ("input.first", "", "Inputs"),
        ("parameter.mass", "kg", "Parameters"),
        ("boom.p_in", "psi", "Pressures"),
        ("boom_d", "rad", "Angles"),
        ("boom.spool", "", "Spool"),
        ("q", "", "Q"),
    ],
)
def test_every_panel_has_a_name(name: str, unit: str, title: str) -> None:
    run = Record({"t": Column("t", "s", np.arange(2.0)), name: Column(name, unit, np.zeros(2))})
    assert page_data(run, (), "x")["panels"] == [{"title": title, "unit": unit, "columns": [0]}]


def labels(run: Record) -> dict[str, str]:
    return {label: value for value, _, label in page.facts(run, ())}


def test_degrees_of_freedom_are_those_that_loops_leave() -> None:
    m = bc.zoo.load("excavator_linkage")
    q = np.tile(m.neutral(), (3, 1))
    run = Record(state_columns(m, np.arange(3.0), q=q, v=np.zeros((3, m.nv))), mechanism=m)
    assert m.nv > m.loop_analysis.mobility == 4
    assert labels(run)["degrees of freedom"] == "4"
    assert (
        labels(
            Record(state_columns(bc.zoo.planar3r(), [0.0], q=[[0.0] * 3], v=[[0.0] * 3]), mechanism=bc.zoo.planar3r())
        )["degrees of freedom"]
        == "3"
    )


def test_energy_drift_needs_a_conservative_system() -> None:
    m = bc.zoo.planar3r()
    assert "energy drift" in labels(bc.simulate(m, 0.05, q0=[0.3, 0.2, 0.1], step=1e-3, progress=False))
    driven = bc.system(m, control=lambda t, q, v, x, u: [1.0, 0.0, 0.0])
    assert "energy drift" not in labels(bc.simulate(driven, 0.05, step=1e-3, progress=False))
    motor = bc.system(m, actuators=[bc.actuators.PD("joint1", 1.0, 1.0)])
    assert "energy drift" not in labels(bc.simulate(motor, 0.05, step=1e-3, progress=False))
    soil = bc.system(m, forces={m.bodies[-1].name: Soil()})
    assert "energy drift" not in labels(bc.simulate(soil, 0.05, step=1e-3, progress=False))


def test_part_of_a_record_has_no_stop_of_the_whole(run: Record) -> None:
    broken = Record(
        {name: run.column(name) for name in run.columns},
        mechanism=run.mechanism,
        stops=[Stop("not finite", 0.1, "boom.q is not finite")],
    )
    first, last = broken.between(0.02, 0.05), broken.between(0.05, 0.2)
    assert [s.reason for s in first.stops] == ["end"]
    assert first.stops[0].time == pytest.approx(0.05)
    assert last.stops == broken.stops
    assert labels(first)["shown"] == "0.03"
    assert "not finite" not in str(page_data(first, (), "x")["stops"])
    assert "0.02 to 0.05 s of a longer run" in str(page_data(first, (), "x")["provenance"])
    assert broken.between(0.0, 1.0) is broken


def test_names_cannot_break_out() -> None:
    bad = "</script><script>alert(1)</script>"
    run = Record({"t": Column("t", "s", np.arange(2.0)), bad: Column(bad, "m", np.zeros(2))}, provenance={bad: bad})
    text = run.html()
    assert bad not in text
    assert data_of(text)["columns"][0]["name"] == bad


# -- the command


def test_report_command(run: Record, tmp_path: Path) -> None:
    cli = CliRunner()
    file = run.save(tmp_path / "run.npz")
    done = cli.invoke(app, ["report", str(file)])
    assert done.exit_code == 0, done.output
    assert "Record of excavator: 101 rows, 0.1 s" in done.output
    assert f"wrote{tmp_path / 'run.html'}:" in "".join(done.output.split())  # long paths are wrapped
    assert data_of((tmp_path / "run.html").read_text("utf-8"))["name"] == "excavator"
    assert cli.invoke(app, ["report", str(file)]).exit_code == 0  # overwrites its own page
    (tmp_path / "mine.html").write_text("my notes")
    for args, message in (
        (["--out", str(tmp_path / "mine.html")], "is not a report of bellcrank"),
        (["--out", str(tmp_path / "no" / "x.html")], "there is no directory"),
        (["--run", "1"], "has 1 runs, 0 to 0"),
    ):
        done = cli.invoke(app, ["report", str(file), *args])
        assert done.exit_code == 2
        assert message in " ".join(done.output.split())
    assert (tmp_path / "mine.html").read_text() == "my notes"
    done = cli.invoke(app, ["report", str(tmp_path / "none.npz")])
    assert done.exit_code == 2
    assert "cannot be read" in done.output
    for written in tmp_path.glob("*.html"):
        written.unlink()
    assert cli.invoke(app, ["report", str(file), "--no-page"]).exit_code == 0
    assert list(tmp_path.glob("*.html")) == []


def test_energy_balance_needs_close_rows() -> None:
    """The energy balance is shown only where the rows are close enough.

    Powers between rows 50 ms apart are unreliable: the page once reported a loss of five times the excavator's energy
    for a run that keeps it to a millionth.
    """

    def told(every: float, **how: Any) -> list[str]:
        run = bc.simulate(bc.zoo.planar3r(), 1.0, every=every, control=shaken, **{"step": 1e-3, **how})
        return next(fact for fact in page.facts(run, ()) if "energy" in fact[2])

    def shaken(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [20.0 * bc.sin(50.0 * t) - 0.5 * w for w in v]

    number, _, label = told(0.001)
    assert label == "energy balance"
    assert float(number) < 1e-4
    assert told(0.08) == ["?", "", "energy balance: rows too far apart"]
    number, _, label = told(0.002, step=2e-3, integrator="euler")  # a real error of the run is still shown
    assert label == "energy balance"
    assert float(number) > 1e-3
