"""Wong's excavator simulator, whole: the mesh, the transputer with the sampled control, and the display (section 5.4).

    every step h      four cycles (5.1): tasks 1 to 7 of table 5.1, on the mesh
    every frame 5 h   task 8: theta_i passes from (0, i) over (0, 1) to the control transputer and to the display;
                      the control computes the openings x; task 9: x_i passes back to (0, i)

The control law is that of excavators/sampled_machine.py.

Every number is computed by the processor to which the thesis assigns it, on a simulated machine with one memory for
each processor. The same equations with the same samples in one system, and RK4 on one core, are the reference.

The display is a computer at the end of an RS232 line of 9600 baud. In a frame it takes four angles and sends four
commands at the same time; a word has four bytes of ten bits each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from time import perf_counter
from typing import Any

import numpy as np

from bellcrank.actuators import RotaryHydraulics
from bellcrank.excavators import spool_control
from bellcrank.excavators.sampled_machine import FRAME_STEPS, STEP_SECONDS, sampled_system, spool_voltages
from bellcrank.graph import Graph, Node, trace
from bellcrank.papers.wong.simulator_cycle import MEMORY, ROWS, STAGES, Cycle, OpenedHydraulics, cycle
from bellcrank.record import Record
from bellcrank.scalar import Scalar
from bellcrank.scheduling import Schedule, Task, Tasks
from bellcrank.scheduling.machines import Topology, cone, cone_cells, machine_of_kind
from bellcrank.scheduling.placement import Placement, Plan
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Solver
from bellcrank.zoo import excavator

RS232_BAUD, BITS_PER_WORD = 9600, 40  # four bytes, each with a start and a stop bit
Array = np.ndarray[Any, Any]
Profile = Callable[[float], Sequence[float]]  # desired joint rates by time, rad/s


def line_seconds(words: int = 4) -> float:
    """Return the time of a number of `words` on the line to the display, s."""
    return words * BITS_PER_WORD / RS232_BAUD


# -- tasks 8 and 9


def with_control(mesh: Topology) -> Topology:
    """Return the `mesh` with the control transputer, which is connected to (0, 1), as its last processor."""
    control = mesh.processors
    first = (*mesh.neighbours[0], control)
    places = (*mesh.places, (mesh.places[0][0] - 1.0, mesh.places[0][1]))
    return Topology(f"{mesh.name} and control", (first, *mesh.neighbours[1:], (0,)), places)


def exchange(drives: Sequence[RotaryHydraulics], kind: str = "t800") -> Schedule:
    """Return the schedule of a frame: angles to the control transputer, its computation, and openings back.

    Parameters
    ----------
    drives
        Actuators, which have the dead band and the limit of the spool.
    kind
        Kind of transputers.
    """
    n = len(drives)

    def control(theta: Any, before: Any, theta_d: Any, command: Any) -> dict[str, Any]:
        volts, following = spool_voltages(theta, before, theta_d, command)
        return {"x": [d.spool(v) for d, v in zip(drives, volts, strict=True)], "following": following}

    g = trace("exchange", control, dict.fromkeys(("theta", "before", "theta_d", "command"), (n,)))
    symbols = {name: list(g.tape.inputs(name, shape)) for name, shape in g.inputs.items()}
    row_0 = [cone_cells(n).index((0, i)) for i in range(1, n + 1)]
    topology = with_control(cone(n))
    own = tuple(x for name in ("before", "theta_d", "command") for x in symbols[name])
    tasks = [Task(i, f"theta[{i + 1}]", (), {}, 1, (x,), True) for i, x in enumerate(symbols["theta"])]
    tasks.append(Task(n, "memory", (), {}, len(own), own, True))
    for i in range(n):
        x = g.outputs["x"][i]
        nodes = _operations(g, (x, g.outputs["following"][i]))
        tasks.append(Task(n + 1 + i, f"control[{i + 1}]", nodes, {i: 1, n: len(own)}, 1, (x,)))
    tasks += [Task(2 * n + 1 + i, f"x[{i + 1}]", (), {n + 1 + i: 1}) for i in range(n)]
    where = [*row_0, *[topology.processors - 1] * (n + 1), *row_0]
    plan = Plan(Tasks("exchange", "frame", tuple(tasks), g), machine_of_kind(topology, kind))
    return Placement(plan).run(range(len(tasks)), where)


def _operations(g: Graph, values: Sequence[Any]) -> tuple[Node, ...]:
    """Return the operations that `values` depend on, in the order of the trace."""
    part = Graph("part", g.inputs, {"y": np.array([x for x in values if isinstance(x, Node)], dtype=object)}, g.tape)
    return tuple(n for n in part.nodes if n.op != "input")


@cache
def stage_programs(passed: bool = True) -> tuple[Cycle, ...]:
    """Return the programs of the four stages for the excavator; `passed` is that of `mesh`."""
    opened = [OpenedHydraulics(**{x.name: getattr(d, x.name) for x in fields(d)}) for d in spool_control.hydraulics()]
    return tuple(cycle(excavator(), opened, stage, STEP_SECONDS, passed) for stage in range(1, STAGES + 1))


# -- the simulator


@dataclass(frozen=True)
class Trajectory:
    """Run of the distributed program: states at the steps, and the time that the simulated machine took.

    Parameters
    ----------
    t : ndarray
        Times, s.
    state : mapping of str to ndarray
        v, q, p_in and p_out by steps and links.
    machine_seconds : float
        Time of the simulated machine.
    wall_seconds : float
        Time that this computer took to simulate the machine.
    """

    t: Array
    state: dict[str, Array]
    machine_seconds: float
    wall_seconds: float

    @property
    def share_of_real_time(self) -> float:
        """Machine time relative to simulated time; below 1 the machine holds real time."""
        return self.machine_seconds / float(self.t[-1])


class MeshSimulator:
    """The program of all processors for the excavator, with one schedule for each stage and one for a frame."""

    def __init__(self, kind: str = "t800") -> None:
        """Prepare the schedules on transputers of a `kind`."""
        self.kind, self.drives = kind, spool_control.hydraulics()
        self.cycles = stage_programs(kind != "explicit")  # where messages keep both ends busy, rho x c is not sent

    @cached_property
    def schedules(self) -> list[Schedule]:
        """Schedules of the four stages."""
        return [x.schedule(self.kind) for x in self.cycles]

    @cached_property
    def frame(self) -> Schedule:
        """Schedule of tasks 8 and 9."""
        return exchange(self.drives, self.kind)

    def run(self, seconds: float, start: Sequence[float], profile: Profile) -> Trajectory:
        """Run the programs of all processors.

        Parameters
        ----------
        seconds
            Duration, a whole number of steps.
        start
            Joint angles at the start, rad; all else is zero.
        profile
            Desired joint rates.
        """
        began, n, steps = perf_counter(), len(start), round(seconds / STEP_SECONDS)
        y = {row: np.zeros(n) for row in ROWS} | {"q": np.array(start, float)}
        states = [y]
        before, theta_d, elapsed, x = y["q"], y["q"], 0.0, np.zeros(n)
        for k in range(steps):
            if k % FRAME_STEPS == 0:
                command = np.array(profile(k * STEP_SECONDS), float)
                done = self.frame.execute(theta=y["q"], before=before, theta_d=theta_d, command=command)
                before, theta_d, x = y["q"], done.results["following"], done.results["x"]
                elapsed += done.makespan
            y, took = self.step(y, x)
            elapsed += took
            states.append(y)
        table = {row: np.array([state[row] for state in states]) for row in ROWS}
        return Trajectory(STEP_SECONDS * np.arange(steps + 1), table, 1e-6 * elapsed, perf_counter() - began)

    def step(self, y: dict[str, Array], x: Array) -> tuple[dict[str, Array], float]:
        """Return the state after a step, and the time of its four cycles, us.

        Parameters
        ----------
        y
            State by rows.
        x
            Openings of the spools, cm.
        """
        base = {f"y.{row}": values for row, values in y.items()}
        kept: dict[str, Array] = {}
        elapsed = 0.0
        for stage, s in enumerate(self.schedules, 1):
            memory = {name: kept[name] for k in MEMORY[stage] for name in (f"{k}.{row}" for row in ROWS)}
            inputs: dict[str, Any] = {**y, "x": x, **base, **memory}
            done = s.execute(**inputs)
            kept.update(done.results)
            y = {row: done.results[f"next.{row}"] for row in ROWS}
            elapsed += done.makespan
        return y, elapsed


def serial_run(seconds: float, start: Sequence[float], profile: Callable[[Scalar], Sequence[Scalar]]) -> Record:
    """Return the run of the same equations on one core: RK4 with the same step, and the same sampled control.

    Parameters
    ----------
    seconds
        Duration.
    start
        Joint angles at the start, rad.
    profile
        Desired joint rates by time.
    """
    plant = sampled_system(start, lambda t, u: profile(t))
    return Simulator(plant, solver=Solver(resolve=0)).run(
        seconds, q0=list(start), step=STEP_SECONDS, every=STEP_SECONDS
    )


def largest_difference(run: Trajectory, record: Record) -> float:
    """Return the largest difference of any state from the serial run, relative to the largest value of its row.

    Parameters
    ----------
    run
        Run of the distributed program.
    record
        Serial run at the same times.
    """
    joints, worst = spool_control.JOINTS, 0.0
    for row in ROWS:
        serial = np.array([record[f"{j}.{row}"] for j in joints]).T
        worst = max(worst, float(np.abs(run.state[row] - serial).max() / np.abs(serial).max()))
    return worst


def motion(mode: Any = None) -> tuple[list[float], Callable[[Scalar], Sequence[Scalar]]]:
    """Return the start and the rates of the run in JOINT mode, from the moment when the motion begins."""
    control = mode or spool_control.joint_mode()
    assert control.profile is not None
    profile = control.profile
    return list(control.start), lambda t: profile(t + spool_control.REST_SECONDS)


def modelled_times(kind: str = "t800") -> tuple[float, float]:
    """Return the time that the mesh needs for a simulated second, without and with the line to the display, s.

    Parameters
    ----------
    kind
        Kind of transputers.
    """
    simulator = MeshSimulator(kind)
    frame_us = FRAME_STEPS * sum(s.makespan for s in simulator.schedules) + simulator.frame.makespan
    frames = 1.0 / (FRAME_STEPS * STEP_SECONDS)
    return 1e-6 * frame_us * frames, (1e-6 * frame_us + line_seconds()) * frames
