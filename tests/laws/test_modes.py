"""Frequencies, damping and shapes against closed forms, and the conversion for control libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.excavators.linkage_system import parts
from trees import close

G = 9.81


def pendulum(damping: float = 0.0) -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=2.0, com=(0, 0, -0.5), inertia=(0, 0, 0))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=damping)
    return b.build()


def masses(n: int) -> bc.Mechanism:
    """n masses of 3 kg in a row, on springs of 50 N/m between them and to the ground on the left."""
    b = bc.Builder("row", gravity=(0, 0, 0))
    for i in range(n):
        b.body(f"m{i}", mass=3.0, com=(0, 0, 0), inertia=(1, 1, 1))
        b.joint(
            f"x{i}", "prismatic", f"m{i - 1}" if i else "ground", f"m{i}", axis=(1, 0, 0), stiffness=50.0, damping=0.6
        )
    return b.build()


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_modes_of_a_pendulum(damping: float) -> None:
    modes = bc.linearize(pendulum(damping)).modes()
    w = np.sqrt(G / 0.5)
    close(modes.frequencies, [w / (2 * np.pi)])
    close(modes.dampings, [damping / (2.0 * 0.25) / (2 * w)])


def test_modes_of_a_double_pendulum() -> None:
    b = bc.Builder("double")
    b.body("upper", mass=1.0, com=(0, 0, -1), inertia=(0, 0, 0))
    b.body("lower", mass=1.0, com=(0, 0, -2), inertia=(0, 0, 0))
    b.joint("first", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("second", "revolute", "upper", "lower", point=(0, 0, -1), axis=(0, 1, 0))
    modes = bc.linearize(b.build()).modes()
    close(2 * np.pi * modes.frequencies, np.sqrt(G * np.array([2 - np.sqrt(2), 2 + np.sqrt(2)])))
    # the lower string is at sqrt(2) times the angle of the upper one, in phase or in antiphase
    for mode, ratio in zip(modes, (np.sqrt(2), -np.sqrt(2)), strict=True):
        first, second = mode.shape
        close((second / first).real, ratio - 1.0, 1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_modes_of_masses_in_a_row(n: int) -> None:
    """w = 2 sqrt(k/m) sin((2 j - 1) pi / (2 (2 n + 1))); for damping proportional to stiffness it is c w / (2 k)."""
    modes = bc.linearize(masses(n)).modes()
    j = np.arange(1, n + 1)
    w = 2 * np.sqrt(50.0 / 3.0) * np.sin((2 * j - 1) * np.pi / (2 * (2 * n + 1)))
    close(2 * np.pi * modes.frequencies, w)
    close(modes.dampings, 0.6 * w / (2 * 50.0))


def test_a_rod_without_mass_is_a_pendulum() -> None:
    """A closed loop gives the motion of a pendulum; the rotation of the ball about itself has no stiffness."""
    m = bc.zoo.rod_pendulum(0.7)
    down, _ = m.assemble({"plane.x": 0.7, "plane.y": -0.7})
    modes = bc.linearize(m, at=bc.equilibrium(m, at=down)).modes()
    close(modes.frequencies, [np.sqrt(G / 0.7) / (2 * np.pi)], 1e-9)
    assert sum(mode.eigenvalue == 0 for mode in modes) == 2


def test_a_step_has_the_same_modes() -> None:
    modes = bc.linearize(masses(3)).modes()
    step = bc.linearize(masses(3), step=1e-3, integrator="rk4").modes()
    close(step.frequencies, modes.frequencies, 1e-9)
    close(step.dampings, modes.dampings, 1e-9)


def test_a_body_in_space_rests_anywhere() -> None:
    b = bc.Builder("free", gravity=(0, 0, 0))
    b.body("body", mass=3.0, com=(0, 0, 0), inertia=(1, 2, 3))
    b.joint("base", "floating", "ground", "body")
    modes = bc.linearize(b.build()).modes()
    assert len(modes) == 12
    assert {mode.eigenvalue for mode in modes} == {0j}
    assert "rests anywhere" in str(modes)


def test_run_follows_the_mode() -> None:
    m = masses(3)
    modes = bc.linearize(m).modes()
    mode = modes[1]
    run = bc.simulate(m, 2.0, q0=0.1 * mode.shape.real, v0=0.1 * (mode.eigenvalue * mode.shape).real, every=0.5)
    expected = 0.1 * (mode.shape * np.exp(mode.eigenvalue * run.t)[:, None]).real
    close(run.q, expected, 1e-9)


def test_table_names_moving_columns_and_missing_equilibria() -> None:
    m = masses(2)
    assert "x0" in str(bc.linearize(m).modes())
    assert "not at rest" not in str(bc.linearize(m).modes())
    assert "x0.v changes by -1.67" in str(bc.linearize(m, at={"x0.q": 0.1}).modes())


def test_a_record_moves_along_the_mode_with_closed_loops(tmp_path: Path) -> None:
    given = {key: x for key, x in parts().items() if key not in ("control", "inputs")}
    plant = bc.system(**given)
    modes = bc.linearize(plant).modes()
    run = modes.oscillating[-1].record(amplitude=0.1)
    m = plant.mechanism
    assert np.abs(evaluate_constraints(m.tree, run.q).value).max() < 1e-9
    assert np.abs(np.einsum("...ij,...j->...i", evaluate_constraints(m.tree, run.q).C, run.v)).max() < 1e-8
    name, _ = next(iter(modes.oscillating[-1].moves.items()))
    close(np.abs(run[f"{name}.q"]).max(), 0.1, 1e-9)
    close(run.t[-1], 3.0 * 2 * np.pi / modes.oscillating[-1].eigenvalue.imag)
    assert "<html" in modes.oscillating[-1].record().report(tmp_path / "mode.html").read_text("utf-8")
    lag = next(mode for mode in modes if not mode.moves)
    with pytest.raises(bc.InputError, match="no joint moves"):
        lag.record()


def test_a_mode_that_grows_and_one_that_rests_anywhere_can_be_watched() -> None:
    up = bc.linearize(pendulum(), at={"hinge.q": np.pi}).modes()
    for mode in up:
        run = mode.record(amplitude=0.1)
        close(np.abs(run.q - np.pi).max(), 0.1)
        close(np.gradient(run.q[:, 0], run.t)[5:-5], run.v[5:-5, 0], 1e-3)
    free = masses(1).frictionless()
    for mode in bc.linearize(free).modes():
        close(np.abs(mode.record(amplitude=0.1).q).max(), 0.1)


def test_python_control_has_the_same_names_and_numbers() -> None:
    control = pytest.importorskip("control")
    lin = bc.linearize(masses(2), outputs=["x1.q"])
    same = lin.to_control()
    assert same.state_labels == ["x0_q", "x1_q", "x0_v", "x1_v"]
    assert same.input_labels == ["x0_tau", "x1_tau"]
    assert same.output_labels == ["x1_q"]
    close(same.A, lin.A)
    w, _, _ = control.damp(same, doprint=False)
    close(np.sort(w)[::2], 2 * np.pi * lin.modes().frequencies)
    assert bc.linearize(masses(2), step=0.01).to_control().dt == 0.01


def test_missing_python_control_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "control", None)
    with pytest.raises(bc.InputError, match=r"bellcrank\[control\]"):
        bc.linearize(masses(1)).to_control()
