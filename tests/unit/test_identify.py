"""Identification: base parameters by name, valid confidence bounds, motions within limits, messages for bad input."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app
from bellcrank.errors import InputError, ReadError
from bellcrank.identify.experiments import read_measurement
from bellcrank.identify.least_squares import estimate_from_regressor, pseudo_inertia, qr_factors
from bellcrank.identify.regressors import inertial_numbers
from bellcrank.model import Mechanism

pytest.importorskip("scipy")
idf = bc.identify
FOLDERS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)
robots = pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]


def robot(name: str, **how: Any) -> Mechanism:
    assert ROBOTS is not None
    return bc.read(ROBOTS / name, **how)


def panda() -> Mechanism:
    """Return a Panda with friction, which the real robot has and its file lacks."""
    m = robot("panda_description/urdf/panda.urdf", lock=FINGERS)
    worn = (
        replace(j, damping=1.0 + 0.1 * i, friction=0.5 + 0.05 * i, friction_speed=0.02) for i, j in enumerate(m.joints)
    )
    return replace(m, joints=tuple(worn))


@robots
def test_ur10_has_36_and_panda_43() -> None:
    ur10 = robot("ur_description/urdf/ur10_robot.urdf").frictionless()
    assert len(idf.base_parameters(ur10)) == 36
    assert len(idf.base_parameters(robot("panda_description/urdf/panda.urdf", lock=FINGERS).frictionless())) == 43


@robots
def test_pinocchio_has_the_same_regressor() -> None:
    pin = pytest.importorskip("pinocchio")
    assert ROBOTS is not None
    path = ROBOTS / "ur_description/urdf/ur10_robot.urdf"
    m = bc.read(path, right_angles=0.0).frictionless()
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    theirs = ("mass", "mx", "my", "mz", "ixx", "ixy", "iyy", "ixz", "iyz", "izz")
    numbers = [idf.Number(b.name, kind) for b in m.bodies for kind in theirs]
    q, v, a = m.random(0, 3)
    ours = idf.regressor(m, q, v, a, numbers)
    for k in range(3):
        peer = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])
        assert np.abs(ours[k] - peer).max() < 1e-11 * np.abs(peer).max()
    values = np.concatenate([model.inertias[i].toDynamicParameters() for i in range(1, model.njoints)])
    assert np.allclose(idf.values_of(m, numbers), values, atol=1e-12)


def two_links() -> Mechanism:
    b = bc.Builder("two links")
    for k, (m, length) in enumerate(((3.0, 0.5), (2.0, 0.4))):
        b.body(f"link{k + 1}", mass=m, com=(length / 2, 0.02, 0), inertia=(0.01, 0.05, 0.06))
        b.joint(
            f"joint{k + 1}", "revolute", f"link{k}" if k else "ground", f"link{k + 1}", axis=(0, 0, 1),
            point=(0.5 * k, 0, 0), damping=0.4, lower=-1.5, upper=1.5, velocity=3.0,
        )  # fmt: skip
    return replace(b.build(), gravity=(0.0, -9.81, 0.0))


def test_the_base_of_a_planar_arm_is_the_textbooks() -> None:
    """The base parameters of a planar arm are the textbook's: m1 c1 + m2 l, I1 + m2 l^2, m2 c2 and I2.

    The centres of mass also have components perpendicular to the links.
    """
    base = idf.base_parameters(two_links())
    named = dict(zip(base.names, (base.combination(k) for k in range(len(base)))))
    assert named["link1.izz"] == "link1.izz + 0.25 link2.mass"
    assert named["link1.mx"] == "link1.mx + 0.5 link2.mass"
    assert named["link2.izz"] == "link2.izz"
    assert set(named) >= {"link1.my", "link2.mx", "link2.my", "joint1.damping", "joint2.damping"}
    assert len(base) == 8
    assert "link1.mz" in str(base)  # no force depends on it


def test_estimates_are_inside_their_errors() -> None:
    m = two_links()
    base = idf.base_parameters(m)
    go = idf.excite(base, 10.0, 50.0, harmonics=3)
    limits = m.limits
    assert (go.q >= limits.lower).all()
    assert (go.q <= limits.upper).all()
    assert (np.abs(go.v) <= limits.velocity).all()
    assert np.abs(go.v[[0, -1]]).max() < 1e-12
    assert np.abs(go.a[[0, -1]]).max() < 1e-9
    assert np.allclose(np.gradient(go.q, go.t, axis=0)[5:-5], go.v[5:-5], atol=0.05)
    assert go.cost < go.begun
    Y = base.regressor(go.q, go.v, go.a)
    clean = Y @ base.nominal
    rng = np.random.default_rng(0)
    sigma = 0.05 * np.sqrt((clean**2).mean(axis=0))
    found = [estimate_from_regressor(base, Y, clean + sigma * rng.normal(size=clean.shape)) for _ in range(200)]
    inside = np.mean([np.abs(f.values - base.nominal) < 1.96 * f.errors for f in found])
    assert abs(inside - 0.95) < 0.025
    assert np.allclose(np.mean([f.noise for f in found], axis=0), sigma, rtol=0.02)
    assert "lost" not in str(found[0]).partition("link2")[0] or found[0].lost


def test_unidentifiable_parameters_are_reported_and_unchanged() -> None:
    m = two_links()
    base = idf.base_parameters(m)
    t = np.linspace(0, 5, 400)
    q = np.stack([np.sin(t), 0 * t], axis=1)  # the second joint never moves
    v = np.stack([np.cos(t), 0 * t], axis=1)
    a = np.stack([-np.sin(t), 0 * t], axis=1)
    tau = np.asarray(m.inverse_dynamics(q, v, a))
    found = idf.estimate(base, q, v, a, tau + 1e-3 * np.random.default_rng(0).normal(size=tau.shape))
    untold = found.base.names.index("joint2.damping")
    assert found.errors[untold] == np.inf
    assert found.values[untold] == base.nominal[untold]
    assert any("joint2.damping" in words for words in found.untold)
    assert np.abs(found.predicted(q, v, a) - tau).max() < 2e-3


def test_a_mechanism_that_can_be() -> None:
    """Estimates are physically feasible even if the torques are too noisy for plain least squares."""
    m = two_links()
    wrong = idf.mechanism_with(m, [idf.Number("link2", "mass")], np.array([2.6]))
    base = idf.base_parameters(wrong)
    rng = np.random.default_rng(3)
    q, v, a = m.random(0, 200)
    tau = np.asarray(m.inverse_dynamics(q, v, a))
    noisy = tau + 0.3 * np.abs(tau).mean() * rng.normal(size=tau.shape)
    found = idf.consistent_estimate(idf.estimate(base, q, v, a, noisy), q, v, a, noisy)
    for b in found.mechanism.bodies:
        assert np.linalg.eigvalsh(pseudo_inertia(inertial_numbers(b))).min() > 0
    assert abs(found.misfit - 1.0) < 0.1
    assert all(j.damping >= 0 for j in found.mechanism.joints)
    before = np.abs(np.asarray(wrong.inverse_dynamics(q, v, a)) - tau).mean()
    assert np.abs(np.asarray(found.mechanism.inverse_dynamics(q, v, a)) - tau).mean() < before


@robots
def test_a_panda_from_noisy_torques() -> None:
    """Bounds hold for 5 % noise, 20 s of an optimised motion at 1 kHz, 200 repetitions."""
    m = panda()
    base = idf.base_parameters(m)
    go = idf.excite(base, 20.0, 1000.0)
    Y = base.regressor(go.q, go.v, go.a)
    clean = np.asarray(m.inverse_dynamics(go.q, go.v, go.a))
    assert np.abs(Y @ base.nominal - clean).max() < 1e-10 * np.abs(clean).max()
    sigma = 0.05 * np.sqrt((clean**2).mean(axis=0))
    rng = np.random.default_rng(0)
    wrong, inside, factors = [], [], qr_factors(Y)
    for _ in range(200):
        found = estimate_from_regressor(base, Y, clean + sigma * rng.normal(size=clean.shape), factors)
        off = np.abs(found.values - base.nominal)
        wrong.append(off.mean() / np.abs(base.nominal).mean())
        inside.append(off < 1.96 * found.errors)
    assert np.mean(wrong) < 0.01, np.mean(wrong)
    assert abs(np.mean(inside) - 0.95) < 0.01, np.mean(inside)


# -- bad input


def test_shapes_and_numbers() -> None:
    m = two_links()
    base = idf.base_parameters(m)
    q, v, a = m.random(0, 10)
    with pytest.raises(InputError, match=r"tau has the shape \(9, 2\); expected \(10, 2\)"):
        idf.estimate(base, q, v, a, np.zeros((9, 2)))
    with pytest.raises(InputError, match=r"tau\[3, 1\] is nan"):
        idf.estimate(base, q, v, a, np.where(np.arange(20).reshape(10, 2) == 7, np.nan, 0.0))
    with pytest.raises(InputError, match=r"q has the shape"):
        idf.regressor(m, q[:, :1], v, a)
    with pytest.raises(InputError, match="name the driven joints"):
        idf.base_parameters(bc.zoo.four_bar())
    for prior in (0.0, -1.0, 1e-300, np.nan, np.inf, "x"):
        with pytest.raises(InputError, match="expected a number above zero, about 1"):
            idf.consistent_estimate(idf.estimate(base, q, v, a, q), q, v, a, q, prior)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has free parameters"):
        idf.numbers_of(m.free("link1.mass"))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("time,joint1.q\n0,1\n", 'no column "t"'),
        ("t,joint1.q\n0,1\n1,nan\n2,0\n", 'column "joint1.q", row 1 is nan'),
        ("t,joint1.q\n0,1\n2,1\n1,1\n", "runs backwards"),
        ("t,joint1.q\n0,1\n1,1\n2,fast\n", "has text"),
        ("t,joint1.q\n0,1\n1,1\n2,1\n", 'no column "joint2.q"'),
        ("t\n0\n", "at least three"),
    ],
)
def test_files_of_measurements(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(ReadError, match=word):
        read_measurement(two_links(), tmp_path / "m.csv")


def test_the_command(tmp_path: Path) -> None:
    """The command identifies a mechanism from a motion file that the mechanism itself has made."""
    run = CliRunner()
    done = run.invoke(app, ["identify", "chain:2", "--excite", str(tmp_path / "go.csv"), "--seconds", "5", "--json"])
    assert done.exit_code == 0, done.output
    wanted = json.loads(done.stdout)["base"]
    rows = np.loadtxt(tmp_path / "go.csv", delimiter=",", skiprows=1)
    m = bc.zoo.chain(2)
    names = m.columns[1]
    q, v, a = rows[:, 1:3], rows[:, 3:5], rows[:, 5:7]
    tau = np.asarray(m.inverse_dynamics(q, v, a))
    head = ",".join(["t", *(f"{n}.{k}" for k in ("q", "v", "a", "tau") for n in names)])
    np.savetxt(tmp_path / "back.csv", np.column_stack([rows, tau]), delimiter=",", header=head, comments="")
    done = run.invoke(app, ["identify", "chain:2", "--data", str(tmp_path / "back.csv"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["base"]
    assert [f["name"] for f in found] == [w["name"] for w in wanted]
    assert np.allclose([f["value"] for f in found], [w["value"] for w in wanted], atol=1e-9)
    assert run.invoke(app, ["identify", "chain:2"]).exit_code == 0


def test_measurements_whose_squares_are_no_numbers() -> None:
    m = bc.zoo.chain(2)
    base, one = bc.identify.base_parameters(m), np.ones((40, 2))
    for v, tau, word in ((1e200, 1.0, r"v\[0, 0\] is 1e\+200"), (1.0, 1e200, r"tau\[0, 0\] is 1e\+200")):
        with pytest.raises(bc.InputError, match=word):
            bc.identify.estimate(base, one, v * one, one, tau * one)
