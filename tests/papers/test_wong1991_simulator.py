"""Wong's simulator as distributed programs: the same trajectory as on one core, and the printed times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reruns import rerun

from bellcrank.cockpit.session import Session, Settings
from bellcrank.excavators import sampled_machine
from bellcrank.papers.wong import excavator_simulator, simulator_tables
from bellcrank.papers.wong.excavator_simulator import (
    MeshSimulator,
    exchange,
    largest_difference,
    line_seconds,
    modelled_times,
    motion,
    serial_run,
    stage_programs,
)
from bellcrank.scheduling import ScheduleError
from bellcrank.scheduling.machines import cone_cells
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Solver
from fake_drive import FakeDrive

SECONDS = 0.07  # two samples of the control


def test_the_distributed_program_follows_the_serial_one() -> None:
    start, profile = motion()
    run = MeshSimulator().run(SECONDS, start, profile)
    record = serial_run(SECONDS, start, profile)
    assert largest_difference(run, record) < 1e-10
    assert np.abs(run.state["q"][-1] - start).max() > 1e-5  # it moves
    assert run.share_of_real_time < 1.0


@pytest.mark.parametrize("kind", ["hidden", "t800", "explicit"])
def test_every_stage_is_possible_and_meets_the_deadline(kind: str) -> None:
    simulator = MeshSimulator(kind)
    for s in (*simulator.schedules, simulator.frame):
        s.check()
        assert s.makespan < simulator_tables.DEADLINE_US


def test_the_state_is_known_only_where_it_lives() -> None:
    """Without the message of theta, no program can be made: row 1 has no angle of its own."""
    program = stage_programs()[1]
    todo, where = program.tasks
    cells = cone_cells(4)
    sent = {(cells[m.source], cells[m.target]) for m in program.schedule().messages
            if todo[m.task].name.startswith("theta")}  # fmt: skip
    assert sent == {((0, i), (1, i)) for i in range(1, 5)}
    s = program.schedule()
    theta = next(i for i, task in enumerate(todo) if task.name == "theta[3]")
    moved = replace(s, where=tuple(0 if i == theta else p for i, p in enumerate(where)))
    inputs = {name: np.zeros(shape) for name, shape in program.mesh.graph.inputs.items()}
    with pytest.raises(ScheduleError):
        moved.execute(**inputs)


def test_control_takes_differences_and_sums() -> None:
    simulator = MeshSimulator()
    theta, before, theta_d, command = np.random.default_rng(0).uniform(-0.01, 0.01, (4, 4))
    done = exchange(simulator.drives).execute(theta=theta, before=before, theta_d=theta_d, command=command)
    T, kp, kv = 0.05, np.array([2.0, 3.0, 2.0, 2.0]), np.array([1.0, 2.0, 1.0, 1.0])
    volts = kv * (command - (theta - before) / T) + kp * (theta_d - theta)
    opening = excavator_simulator.spool_control.OPENING * volts
    expected = np.sign(opening) * np.clip(np.abs(opening) - 0.005, 0.0, 0.05)
    assert np.abs(done.results["x"] - expected).max() < 1e-15
    assert np.abs(expected).max() > 1e-3
    assert np.abs(done.results["following"] - (theta_d + T * command)).max() < 1e-15


def test_tables() -> None:
    result = rerun("wong_simulator")
    assert [row.verdict for row in result.rows] == ["agrees", "agrees"]
    phases, operations, cycles, _ = result.tables
    assert [row[2] for row in operations.rows[:-1]] == [row[4] for row in operations.rows[:-1]]
    assert float(phases.rows[-1][3]) == pytest.approx(MeshSimulator().schedules[0].work / 1e3, abs=1e-3)
    by_name = {row[0]: row for row in cycles.rows}
    assert float(by_name["print, measured; our exchange and line"][3]) == pytest.approx(2100, rel=0.06)
    assert all(row[4] == "yes" for row in cycles.rows)
    assert line_seconds() == pytest.approx(16 * 10 / 9600)


def test_the_simulator_can_be_driven() -> None:
    machine = sampled_machine.machine()
    session = Session(machine, FakeDrive, Settings(machine.rate, machine.integrator))
    assert [lever.name for lever in machine.levers] == ["cab", "boom", "stick", "bucket"]
    assert (session.drive.rate, session.drive.integrator) == (100.0, "rk4")
    simulator = Simulator(machine.system, solver=Solver(resolve=0))
    run = simulator.run(2.0, q0=list(machine.start or ()), step=0.01, every=0.05, inputs={"cab": 0.2})
    assert run["cab.d"][-1] == pytest.approx(0.2 * 2.0, abs=0.011)  # a sum of one sample after another
    assert 0.1 < run["cab.q"][-1] < 0.4
    mesh, with_display = modelled_times()
    assert mesh == pytest.approx(MeshSimulator().run(0.05, *motion()).share_of_real_time)
    assert with_display - mesh == pytest.approx(20 * line_seconds())
