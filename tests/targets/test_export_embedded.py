"""C packages on emulated small processors: a UR5 and an excavator take our steps, as far as their numbers go."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.c.package import Package
from bellcrank.errors import InputError
from bellcrank.excavators.machines import MACHINES
from bellcrank.exporting import embedded_targets
from bellcrank.exporting.export_content import effort_driven, export_content
from targets.test_c99 import ROBOTS

needs_qemu = pytest.mark.skipif(
    bool(embedded_targets.missing_tools()),
    reason=f"not installed: {', '.join(embedded_targets.missing_tools())}; {embedded_targets.DEBIAN_INSTALL}",
)
STEPS = 20


def excavator() -> bc.System:
    return MACHINES["excavator"]().system


def ur5() -> bc.System:
    if ROBOTS is None:
        pytest.skip("example-robot-data is not installed")
    return effort_driven(bc.read(ROBOTS / "ur_description/urdf/ur5_robot.urdf"))


def package(s: bc.System, dtype: str) -> Package:
    found = export_content(s, (), "it", bc.Solver("rk4", 1e-3))
    return Package(found.name, {}, found.stepper, dtype)


def native(s: bc.System, u: list[float]) -> Any:
    run = bc.simulate(s, STEPS * 1e-3, inputs=dict(zip(s.inputs, u, strict=True)), step=1e-3)
    return np.column_stack([run.q, run.v, *(run[x.name] for x in s.states)])


@needs_qemu
@pytest.mark.parametrize("machine", [excavator, ur5])
@pytest.mark.parametrize(
    ("processor", "dtype", "tolerance"), [("Cortex-M7", "float64", 1e-12), ("Cortex-M4F", "float32", 2e-4)]
)
def test_steps_equal_native_ones(machine: Any, processor: str, dtype: str, tolerance: float) -> None:
    """Relative to the largest number of its kind; in single precision, to a few thousand of its last digits."""
    s = machine()
    u = [s.defaults.get(n, 0.0) + 0.3 * (k < 2) for k, n in enumerate(s.inputs)]
    made, rows = package(s, dtype), native(s, u)
    found = embedded_targets.emulate(made, processor, STEPS, u)
    assert found.status == 0
    assert found.state is not None
    y = found.state[1 : 1 + rows.shape[1]]
    nq = s.mechanism.nq
    for some in (slice(0, nq), slice(nq, nq + s.mechanism.nv), slice(nq + s.mechanism.nv, None)):
        size = np.abs(rows[:, some]).max(initial=0.0)
        np.testing.assert_allclose(y[some], rows[-1, some], rtol=0, atol=tolerance * size)
    tick = next(t for t in made.routines if t.name == made.program_functions["tick"])
    assert found.stack is not None
    assert found.instructions is not None
    assert found.stack < tick.stack + 2048  # libm's is in it, too
    operations = sum(tick.graph.count().by_kind.values())
    assert operations < found.instructions < 10 * operations  # hardware for these numbers
    assert 1000 < found.code < 200_000


@needs_qemu
def test_an_error_on_the_processor_is_one_here() -> None:
    found = embedded_targets.emulate(
        package(excavator(), "float64"), "Cortex-M7", 3, [float("nan")] * len(excavator().inputs)
    )
    assert found.status == 2


def test_functions_have_no_step_to_measure() -> None:
    found = export_content(bc.zoo.pendulum(), ["mass_matrix"], "it", bc.Solver())
    with pytest.raises(InputError, match="takes steps"):
        embedded_targets.model_header(Package("it", found.graphs), 3, [])


def test_missing_emulator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_targets.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="apt install gcc-arm-none-eabi"):
        embedded_targets.emulate(package(effort_driven(bc.zoo.pendulum()), "float64"), "Cortex-M7")


@needs_qemu
def test_the_command_prints_a_row_for_each(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from bellcrank.cli import app

    given = ["export", "pendulum", "--to", "c", "--out", str(tmp_path / "it"), "--report", "--json"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["report"]
    assert [row["processor"] for row in rows] == ["this computer", *embedded_targets.PROCESSORS]
    assert all(row["instructions"] > row["operations"] for row in rows[1:])
