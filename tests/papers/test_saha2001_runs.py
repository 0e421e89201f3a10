"""Saha 2001, section 4: his runs repeated. docs/experiments has the pages and the deviations from the print."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from reruns import rerun

import bellcrank as bc
from bellcrank.papers import explicit_3r, saha


def test_explicit_equations_of_the_planar_arm_keep_energy() -> None:
    """Hand-written equations must satisfy the energy balance dE/dt = tau . dtheta."""
    rng = np.random.default_rng(3)

    def energy(q: np.ndarray, v: np.ndarray) -> float:
        phi, w = np.cumsum(q), np.cumsum(v)
        apart = np.cos(phi[:, None] - phi[None, :])
        return float(0.5 * w @ (explicit_3r.C * apart) @ w + 9.81 * explicit_3r.W @ np.sin(phi))

    for _ in range(20):
        q, v, tau = rng.normal(size=(3, 3))
        a, h = explicit_3r.acceleration(q, v, tau), 1e-6
        power = (energy(q + h * v, v + h * a) - energy(q - h * v, v - h * a)) / (2 * h)
        assert power == pytest.approx(tau @ v, abs=1e-6)
        np.testing.assert_allclose(explicit_3r.torque(q, v, a), tau, atol=1e-12)


def test_difference_from_the_explicit_equations_shows_a_heavier_rod() -> None:
    """A hundredth more mass in one rod changes accelerations by about a hundredth; equal arms by rounding only."""
    arm = bc.zoo.planar3r().free("link2.mass")
    assert saha._difference_of_accelerations(arm.at()) < 1e-11
    heavier = arm.at({"link2.mass": 1.01 * arm.parameters["link2.mass"]})
    assert 1e-3 < saha._difference_of_accelerations(heavier) < 0.1


def test_scan_changes_one_number_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masses and moments are halved and doubled, coordinates are moved by 0.1 and 0.3 m."""
    arm, given = bc.zoo.stanford(), {}

    class ScannedError(Exception):
        pass

    def run(*_: object, parameters: dict[str, np.ndarray], **__: object) -> None:
        given.update(parameters)
        raise ScannedError

    monkeypatch.setattr(saha, "Simulator", lambda free: SimpleNamespace(run=run, free=free))
    with pytest.raises(ScannedError):
        saha._scan_numbers(arm)
    nominal = arm.free(*given).parameters
    changed = np.array([x != nominal[name] for name, x in given.items()])
    assert (changed.sum(axis=0) == 1).all()
    factors = {round(y / nominal[n], 9) for n, x in given.items() if "mass" in n or "inertia" in n for y in x}
    moves = {round(y - nominal[n], 9) for n, x in given.items() if "com" in n or "point" in n for y in x}
    assert factors == {0.5, 1.0, 2.0}
    assert moves == {-0.3, -0.1, 0.0, 0.1, 0.3}


def test_planar_arm_matches_its_explicit_equations() -> None:
    rows = [row for row in rerun("saha-planar").rows if row.printed]
    assert len(rows) == 3
    assert all(row.agrees for row in rows)


def test_stanford_leaves_its_path_at_the_published_time() -> None:
    found = rerun("saha-stanford")
    times = [float(found[f"forced, {name}: off by 0.01 at"].ours) for name in ("rkf45", "abm4")]
    assert times == pytest.approx([2.5, 2.5], abs=0.5)
    assert times[0] == pytest.approx(times[1], abs=0.2)  # both integrators agree on the time


def test_stanford_in_free_fall_is_not_as_printed() -> None:
    """The paper's result is that of the arm with its slide held.

    Only one change of a single number in the table would explain it.
    """
    found = rerun("saha-stanford")
    assert found["free fall: theta_2 passes zero at"].agrees is False
    assert found["free fall: theta_2 passes zero at"].ours == pytest.approx(2.25, abs=0.02)
    assert found["free fall with the slide held: theta_2 passes zero at"].ours == pytest.approx(0.59, abs=0.01)
    scan = found["free fall with link2.com.y = 0.3 instead of 0: theta_2 passes zero at"]
    assert scan.ours == pytest.approx(0.56, abs=0.01)


def test_a_forearm_on_a_free_slide_falls_nearly_straight_down() -> None:
    """theta_2 creeps to zero because the centre of mass of the sliding links (3 to 6) does not move sideways."""
    run, m = rerun("saha-stanford").records["free-fall"], bc.zoo.stanford()
    sliding = m.bodies[2:]

    def centre(q: np.ndarray) -> np.ndarray:
        moments = [b.mass * (m.pose(q, b.name) @ [*b.com, 1.0])[:3] for b in sliding]
        return np.sum(moments, axis=0) / sum(b.mass for b in sliding)

    moved = centre(run.q[100]) - centre(run.q[0])  # in the first second
    assert moved[2] < -3.0
    assert np.hypot(moved[0], moved[1]) < 0.02 * abs(moved[2])


def test_puma_falls_as_printed_and_leaves_its_path_later() -> None:
    """Ours leaves at 7.7 s; ten times the error would make it 2.9 s. The paper has about 6 s."""
    found = rerun("saha-puma")
    assert found["free fall: theta_2 at 0.5 s"].agrees
    for name in ("rkf45", "abm4"):
        row = found[f"forced, {name}: off by 0.01 at"]
        assert float(row.ours) == pytest.approx(7.7, abs=0.15)
        assert row.agrees is False
    early = found["forced, rkf45, tolerance 0.0001: off by 0.01 at"].ours
    assert float(str(early).removesuffix(" s")) < 6.0
    rest = found["growth factor of a small error in 6 s"].ours / found["growth factor of a small error in 3 s"].ours  # type: ignore[operator]
    assert rest < 5.0  # in the other six seconds it is ten million


def test_puma_numbers_that_differ_from_wongs_do_not_matter() -> None:
    """With Wong's values of m_2 and r_3x, which differ from table II, the arm leaves at the same time."""
    given = bc.zoo.data("puma_saha")
    given["mass"][1], given["r"][2][0] = 15.781, 0.02
    arm = bc.from_saha(
        "puma",
        **{k: given[k] for k in ("joints", "a", "b", "mass", "r", "inertia")},
        alpha=[np.radians(x) for x in given["alpha_deg"]],
    )
    from bellcrank.papers.open_loop import departure_time, simulator

    path = bc.control.Cycloid((0.0,) * 6, (np.pi,) * 6, 10.0)
    run = simulator(arm, path, "rkf45").run(10.0, tolerance=1e-6, every=0.01)
    assert departure_time(run, path, 0.01) == pytest.approx(7.7, abs=0.15)


def test_minus_signs_before_the_moments_of_inertia_cannot_be_meant() -> None:
    given = bc.zoo.data("puma_saha")
    for i, j in ((0, 1), (2, 2), (3, 1), (4, 2)):
        given["inertia"][i][j] *= -1
    alpha = [np.radians(x) for x in given["alpha_deg"]]
    numbers = {k: given[k] for k in ("joints", "a", "b", "mass", "r", "inertia")}
    with pytest.raises(bc.ModelError, match="the mass matrix has a negative eigenvalue"):
        bc.from_saha("puma", **numbers, alpha=alpha, check="warn")
