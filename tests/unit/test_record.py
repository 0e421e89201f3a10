"""A record: columns by name, the state, derived quantities, residuals, and its text."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.record import Column, Record, Stop, state_columns, units
from runs import rk4


@pytest.fixture(scope="module")
def run() -> Record:
    m = bc.zoo.excavator()
    return rk4(m, [0.3, 0.5, -0.9, -0.4], [0.6, 0.0, 0.0, 0.0], 0.5, 1e-3, every=5)


@pytest.fixture(scope="module")
def batch() -> Record:
    m = bc.zoo.excavator()
    rng = np.random.default_rng(0)
    return rk4(m, rng.uniform(-1, 1, (2, 3, 4)), np.zeros((2, 3, 4)), 0.05, 1e-2)


def flier() -> bc.Mechanism:
    b = bc.Builder("flier")
    b.body("hull", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25))
    b.joint("free", "floating", "ground", "hull")
    b.body("arm", mass=1.0, com=(0.5, 0, 0.2), inertia=(0.02, 0.02, 0.02))
    b.joint("ball", "spherical", "hull", "arm", point=(0.5, 0, 0))
    return b.build()


def test_the_state(run: Record, batch: Record) -> None:
    assert run.columns[:5] == ("t", "cab.q", "boom.q", "stick.q", "bucket.q")
    assert len(run) == 101
    assert run.q.shape == run.v.shape == (101, 4)
    assert run.x.shape == (101, 0)
    np.testing.assert_array_equal(run.q[:, 1], run["boom.q"])
    np.testing.assert_array_equal(run.v[:, 3], run["bucket.v"])
    assert (batch.batch, batch.runs, len(batch)) == ((2, 3), 6, 6)
    assert batch.q.shape == (2, 3, 6, 4)
    assert batch.t.shape == (2, 3, 6)  # one time for all runs


def test_derived_columns_are_the_mechanisms_own_numbers(run: Record, batch: Record) -> None:
    for r in (run, batch):
        m = r.mechanism
        assert m is not None
        np.testing.assert_array_equal(r["kinetic_energy"], m.kinetic_energy(r.q, r.v))
        np.testing.assert_array_equal(r.energy(), m.kinetic_energy(r.q, r.v) + m.potential_energy(r.q))
        np.testing.assert_array_equal(r["bucket.z"], m.pose(r.q, "bucket")[..., 2, 3])
        speed = np.linalg.norm(m.velocity(r.q, r.v, "bucket")[..., :3], axis=-1)
        np.testing.assert_allclose(r["bucket.speed"], speed, rtol=1e-15)
    assert {"energy", "bucket.x", "bucket.speed", "boom.q"} <= set(run.names)
    assert "bucket.x" in run
    assert "bucket.x" not in run.columns
    assert [run.column(n).unit for n in ("boom.q", "boom.v", "energy", "bucket.x", "bucket.speed")] == [
        "rad", "rad/s", "J", "m", "m/s"
    ]  # fmt: skip


def test_nothing_changes(run: Record) -> None:
    for values in (run.t, run["boom.q"], run.q, run["energy"], run["bucket.z"]):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0
    with pytest.raises(TypeError):
        run.provenance["step"] = 2  # type: ignore[index]


def test_simulator_may_derive_further_columns() -> None:
    m, asked = bc.zoo.planar3r(), []

    def derived(name: str) -> Column | None:
        asked.append(name)
        return Column(name, "rad/s^2", np.arange(3.0)) if name == "joint1.a" else None

    columns = state_columns(m, [0.0, 1.0, 2.0], q=np.zeros((3, 3)), v=np.zeros((3, 3)))
    run = Record(columns, mechanism=m, derived=derived, derivable=["joint1.a"])
    assert "joint1.a" in run.names
    np.testing.assert_array_equal(run["joint1.a"], [0, 1, 2])
    run["joint1.a"]
    assert asked == ["joint1.a"]  # once
    assert run["energy"].shape == (3,)  # columns that it lacks are computed as usual
    kept = run.including("joint1.a", "link3.x")
    assert kept.columns[-2:] == ("joint1.a", "link3.x")
    assert kept.column("joint1.a").unit == "rad/s^2"
    assert run.columns[-1] == "joint3.v"


def test_units_of_every_joint_type() -> None:
    m = flier()
    q, v = units(m)
    assert q == ("m", "m", "m", "1", "1", "1", "1", "1", "1", "1", "1")
    assert v == ("m", "m", "m", "rad", "rad", "rad", "rad", "rad", "rad")
    b = bc.Builder("mixed")
    kinds = ("revolute", "prismatic", "helical", "cylindrical", "planar", "universal")
    for i, kind in enumerate(kinds):
        b.body(f"b{i}", mass=1.0, com=(i + 0.5, 0, 0), inertia=(1, 1, 1))
        more: dict[str, Any] = {"pitch": 0.1} if kind == "helical" else {}
        more |= {"second_axis": (1, 0, 0)} if kind == "universal" else {}
        b.joint(f"j{i}", kind, f"b{i - 1}" if i else "ground", f"b{i}", point=(i, 0, 0), **more)
    q, v = units(b.build())
    assert q == v == ("rad", "m", "rad", "rad", "m", "m", "m", "rad", "rad", "rad")
    tau = state_columns(b.build(), [0.0], tau=np.zeros((1, 10)))
    assert [c.unit for c in tau.values()][1:4] == ["N m", "N", "N m"]


def test_rows_after_the_end_of_a_run_are_nan(batch: Record) -> None:
    q, v, t = batch.q.copy(), batch.v.copy(), batch.t.copy()
    for a in (q, v, t):
        a[1, 2, 4:] = np.nan
    m = batch.mechanism
    assert m is not None
    run = Record(state_columns(m, t, q=q, v=v), mechanism=m)
    assert np.isnan(run["energy"][1, 2, 4:]).all()
    assert np.isfinite(run["energy"][1, 2, :4]).all()
    assert np.isfinite(run["bucket.z"][0]).all()
    assert run.final["t"][1, 2] == batch.t[1, 2, 3]
    assert run.final["boom.q"][1, 2] == q[1, 2, 3, 1]
    assert run.final["boom.q"][0, 0] == q[0, 0, -1, 1]
    assert np.isfinite(run.residuals()["energy"]).all()
    with pytest.raises(bc.InputError, match=r"outside the record of run \(1, 2\), which is from 0 to 0\.03 s"):
        run.at(0.05)


def test_between_rows(run: Record, batch: Record) -> None:
    found = run.at(0.0075)  # halfway between two rows
    assert found["t"] == pytest.approx(0.0075)
    assert found["boom.q"] == pytest.approx((run["boom.q"][1] + run["boom.q"][2]) / 2, rel=1e-12)
    assert run.at([0.0, 0.5])["boom.q"].tolist() == [run["boom.q"][0], run["boom.q"][-1]]
    assert batch.at(0.02)["boom.q"].shape == (2, 3)
    np.testing.assert_allclose(batch.at(0.02)["boom.q"], batch["boom.q"][..., 2], rtol=1e-12)
    for bad in (-0.1, 0.6, np.nan):
        with pytest.raises(bc.InputError, match=r"outside the record, which is from 0 to 0\.5 s"):
            run.at(bad)


def test_between_quaternions() -> None:
    m = flier()
    q = np.tile(m.neutral(), (2, 1))
    half = np.sqrt(0.5)
    q[1, 3:7] = [0, 0, -half, -half]  # a quarter turn about z, with the other sign
    run = Record(state_columns(m, [0.0, 1.0], q=q, v=np.zeros((2, 9))), mechanism=m)
    found = run.at(0.5)
    turned = [found[f"free.{c}.q"] for c in ("qx", "qy", "qz", "qw")]
    np.testing.assert_allclose(turned, [0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)], atol=1e-15)


def test_residuals() -> None:
    m = flier()
    v = np.array([0.1, 0.2, 0.3, 1.0, -2.0, 0.5, 0.3, 0.2, 0.1])
    fine, coarse = (rk4(m, m.neutral(), v, 0.5, h).residuals() for h in (0.005, 0.05))
    assert set(fine) == {"energy", "quaternion free", "quaternion ball"}
    # Adding the stages as if velocities in one frame were those in another gives second order on rotations.
    assert coarse["energy"] / fine["energy"] == pytest.approx(100, rel=0.1)
    assert 0 < fine["quaternion free"] < 1e-13
    q = np.tile(m.neutral(), (2, 1))
    q[1, 6] = 1.01
    run = Record(state_columns(m, [0.0, 1.0], q=q, v=np.zeros((2, 9))), mechanism=m)
    assert run.residuals()["quaternion free"] == pytest.approx(0.01)
    still = Record(state_columns(m, [0.0, 1.0], q=q[:1].repeat(2, 0), v=np.zeros((2, 9))), mechanism=m)
    assert still.residuals()["energy"] == 0.0


def test_energy_drift_is_relative_to_the_largest_kinetic_energy() -> None:
    columns = {"t": [0, 1, 2], "energy": [100, 101, 99.5], "kinetic_energy": [0, 50, 20]}
    run = Record({k: Column(k, "J", np.array(v, float)) for k, v in columns.items()})
    assert run.residuals() == {"energy": pytest.approx(1 / 50)}


def test_other_states() -> None:
    columns = {n: Column(n, "1", np.arange(3.0) + i) for i, n in enumerate(("t", "pump.pressure", "j.q", "pump.flow"))}
    run = Record(columns, states=["pump.flow", "pump.pressure"])
    assert run.x.tolist() == [[3, 1], [4, 2], [5, 3]]
    assert run.q.tolist() == [[2], [3], [4]]  # without a mechanism q has the columns that end in .q
    assert run.including("j.q").states == run.states
    with pytest.raises(bc.InputError, match="no mechanism"):
        run.poses("hand")


def test_bad_columns() -> None:
    t = Column("t", "s", np.arange(3.0))
    cases: list[tuple[dict[str, Column], str]] = [
        ({}, 'first column of a record is "t"'),
        ({"x": t}, 'first column of a record is "t"'),
        ({"t": t, "a": Column("a", "", np.arange(4.0))}, r'column "a" has the shape \(4,\)|column "t" has the shape'),
        ({"t": t, "a": Column("b", "", t.values)}, 'named "b" and stored as "a"'),
        ({"t": t, "run": Column("run", "", t.values)}, "number of the run"),
        ({"t": t, "a": Column("a", "", np.array(["x", "y", "z"]))}, "expected an array of numbers"),
        ({"t": Column("t", "s", np.array(1.0))}, r"expected .*\(\*batch, rows\)"),
    ]
    for columns, message in cases:
        with pytest.raises(bc.InputError, match=message):
            Record(columns)
    with pytest.raises(bc.InputError, match="2 stops for 1 runs"):
        Record({"t": t}, stops=[Stop("end", 1.0)] * 2)
    with pytest.raises(bc.InputError, match=r'states: There is no column "x"'):
        Record({"t": t}, states=["x"])
    with pytest.raises(bc.InputError, match=r"q has the shape \(3, 2\); expected \(..., rows, 3\)"):
        state_columns(bc.zoo.planar3r(), [0.0], q=np.zeros((3, 2)))


def test_unknown_names(run: Record) -> None:
    with pytest.raises(bc.InputError, match=r'no column "buckt.z". Did you mean "bucket.z"\? Known: t, cab.q'):
        run["buckt.z"]
    with pytest.raises(bc.InputError, match='no frame "hand"'):
        run.poses("hand")
    m = run.mechanism
    assert m is not None
    part = Record({n: run.column(n) for n in ("t", "boom.q")}, mechanism=m)
    with pytest.raises(bc.InputError, match=r"has no q: the columns \['cab.q', 'stick.q', 'bucket.q'\]"):
        part.q  # noqa: B018
    assert part.names == ("t", "boom.q")
    assert part.residuals() == {}


def test_no_rows() -> None:
    m = bc.zoo.planar3r()
    run = Record(state_columns(m, [], q=np.zeros((0, 3)), v=np.zeros((0, 3))), mechanism=m)
    assert len(run) == 0
    assert run["energy"].shape == (0,)
    assert "no time" in str(run)
    for fails in (lambda: run.final, lambda: run.at(0.0), run.html):
        with pytest.raises(bc.InputError, match=r"no rows|without rows"):
            fails()


def test_a_part_of_it(run: Record, batch: Record) -> None:
    part = run.between(0.1, 0.2)
    inside = (run.t >= 0.1) & (run.t <= 0.2)
    assert 0 < len(part) < len(run)
    for name in ("t", "boom.q", "energy", "bucket.z"):
        np.testing.assert_array_equal(part[name], run[name][inside])
    assert part.provenance == {**run.provenance, "part": "0.1 to 0.2 s of a longer run"}
    made = Record({"t": run.column("t")}, derived=lambda name: Column(name, "", 2.0 * run.t), derivable=("twice",))
    np.testing.assert_array_equal(made.between(0.1, 0.2)["twice"], 2.0 * part.t)
    assert batch.between(0.0, 0.02)["boom.q"].shape == (*batch.batch, 3)
    assert len(run.between(7.0, 8.0)) == 0


def test_provenance_is_converted_to_plain_data() -> None:
    odd = {"a": np.float64(1.5), "b": (1, 2), "c": np.arange(2), 3: {"d": np.inf}, "e": object, "f": True, "g": None}
    run = Record({"t": Column("t", "s", np.zeros(1))}, provenance=odd)
    assert run.provenance["a"] == 1.5
    assert run.provenance["b"] == [1, 2]
    assert run.provenance["c"] == [0, 1]
    assert run.provenance["3"] == {"d": "inf"}
    assert run.provenance["e"] == str(object)
    assert (run.provenance["f"], run.provenance["g"]) == (True, None)


def test_record_prints(run: Record, batch: Record) -> None:
    text = str(run)
    assert text.startswith("Record of excavator: 101 rows, 0.5 s\n")
    row = next(line for line in text.splitlines() if line.startswith("boom.q"))
    values = run["boom.q"]
    assert row.split() == ["boom.q", *(f"{x:.6g}" for x in (0.5, values[-1], values.min(), values.max())), "rad"]
    assert "step: 0.001" in text
    assert "stopped at 0.5 s: end (the time asked for)" in text
    assert repr(run) == "<Record of excavator: 101 rows, 9 columns>"
    assert "6 runs (2, 3) of 6 rows" in str(batch)
    assert "stopped (1, 2) at 0.05 s: end" in str(batch)
    many = Record(
        {"t": Column("t", "s", np.zeros((20, 1)))}, stops=[Stop("end", 1.0)] * 19 + [Stop("not finite", 0.5, "boom.v")]
    )
    assert "stopped: 19 x end, 1 x not finite" in str(many)


def test_plot(run: Record, batch: Record, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    figure = run.plot()
    assert [ax.get_ylabel() for ax in figure.axes] == ["Positions [rad]", "Velocities [rad/s]", "Energies [J]"]
    assert len(figure.axes[0].lines) == 4
    np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), run["boom.q"])
    chosen = batch.plot("boom.q", "bucket.z", "stick.q", path=tmp_path / "p.png")
    assert [ax.get_ylabel() for ax in chosen.axes] == ["[rad]", "[m]"]
    assert len(chosen.axes[0].lines) == 12
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(bc.InputError, match=r'a figure can be written as .*png.*; got "\.xyz"'):
        run.plot(path=tmp_path / "p.xyz")
    with pytest.raises(bc.InputError, match="no column"):
        run.plot("elbow.q")
    with pytest.raises(bc.InputError, match="still in memory"):
        run.plot(path=tmp_path / "nowhere" / "p.png")
    sys.modules["matplotlib.pyplot"].close("all")


def test_no_matplotlib(run: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(bc.InputError, match=r'plotting needs matplotlib.*pip install "bellcrank\[plot\]"'):
        run.plot()


# -- display and plots


def arm_run(**more: Any) -> bc.Record:
    m = bc.zoo.chain(2)
    s = bc.system(m, control=lambda t, q, v, x, u: [0.0, 0.0], outputs={"bend": lambda t, q, v, x, u: q[0] - q[1]})
    return bc.simulate(s, 0.02, step=1e-3, **more)


def test_last_row_and_rows_between_have_every_column() -> None:
    run = arm_run(q0=[0.5, 0.1])
    frame = next(iter(run.mechanism.frames)) if run.mechanism is not None else ""
    for name in ("energy", f"{frame}.x", "bend", "joint1.a", "drive_power", "joint1.q"):
        assert run.final[name] == run[name][-1]
        assert name in run.final
        assert run.at(0.0105)[name] == pytest.approx((run[name][10] + run[name][11]) / 2, rel=1e-12, abs=1e-15)
    assert list(run.final) == list(run.columns)
    assert dict(run.final) == {name: run[name][-1] for name in run.columns}
    with pytest.raises(bc.InputError, match=r'no column "com.x".*Known: t, joint1.q'):
        _ = run.final["com.x"]


def test_a_run_of_a_batch_is_named_by_a_number(tmp_path: Path) -> None:
    run = arm_run(q0=np.linspace(0.0, 1.0, 6).reshape(3, 2))
    assert run.html(2) == run.html((2,)) == run.html(np.int64(2)) != run.html()  # type: ignore[arg-type]
    assert "run 2 of the batch" in run.report(tmp_path / "page.html", lane=2).read_text()
    for wrong in (3, -1, 0.5, (0, 1), "a"):
        with pytest.raises(bc.InputError, match=r"lane is .*the batch has the shape \(3,\)"):
            run.html(wrong)  # type: ignore[arg-type]
    with pytest.raises(bc.InputError, match="there is no batch"):
        arm_run().html(1)


def test_a_notebook_shows_a_plot_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook shows a plot once; IPython is replaced by the part that the figure uses."""
    plt = pytest.importorskip("matplotlib.pyplot")

    shown: list[Any] = []
    there = types.SimpleNamespace(display=shown.append, Image=lambda data: data)
    monkeypatch.setitem(sys.modules, "IPython.display", there)  # type: ignore[arg-type]
    figure = arm_run().plot()
    figure._ipython_display_()
    assert shown == []  # pyplot keeps it, and shows it at the end of the cell
    plt.close(figure)
    figure._ipython_display_()
    assert shown[0].startswith(b"\x89PNG")


def test_every_line_of_a_plot_has_a_name() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")

    run = bc.simulate(bc.zoo.chain(30), 0.002, step=1e-3)
    figure = run.plot("joint1.q", "joint2.v", "energy", *(f"joint{k}.a" for k in range(1, 31)))
    legends = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in figure.axes]
    assert legends[:3] == [["joint1.q"], ["joint2.v"], ["energy"]]
    assert len(legends[3]) == 24
    assert legends[3][-1] == "... and 7 more"
    assert all("[]" not in ax.get_ylabel() for ax in arm_run().plot("bend", "joint1.q").axes)
    plt.close("all")


def test_parts_of_a_record_without_rows() -> None:
    whole = bc.simulate(bc.zoo.pendulum(), seconds=0.01)
    none = whole.between(5.0, 6.0)
    assert len(none) == 0
    assert len(none.between(0.0, 1.0)) == 0
    assert len(none.between(-1.0, -2.0).stops) == 1
