"""Times of Wong's simulator beside the printed ones: tables 5.4 and 5.5, the deadline, and section 3.5.1.

All our times are operations and messages of the model. A measured OCCAM program is several times as slow, because of
array indices and calls of subroutines, as the thesis explains.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.excavators.sampled_machine import FRAME_STEPS, STEP_SECONDS
from bellcrank.graph import Tape
from bellcrank.papers import Result, Row
from bellcrank.papers.operation_counts import published
from bellcrank.papers.wong.atom_programs import count_cost
from bellcrank.papers.wong.excavator_simulator import (
    MeshSimulator,
    largest_difference,
    line_seconds,
    motion,
    serial_run,
)
from bellcrank.papers.wong.mesh_schedule import mesh
from bellcrank.papers.wong.simulator_cycle import STAGES
from bellcrank.scheduling import Schedule, Task
from bellcrank.spatial.vector import Mat, Vec
from bellcrank.text_table import Table

KINDS = ("hidden", "t800", "explicit")
DEADLINE_US = 1e6 * STEP_SECONDS / STAGES
CYCLES_PER_FRAME = STAGES * FRAME_STEPS
RUN_SECONDS = 0.3
MAX_DIFFERENCE = 1e-10
PUMA_JOINTS, PUMA_STEPS = 6, 1000
# Table 5.5: operation, theory and measurement in us.
PRINTED_OPERATIONS = (
    ("rho - l", "vector subtraction", 1.5, 18),
    ("A t", "matrix times vector", 12.0, 63),
    ("t + k", "vector addition", 1.5, 18),
    ("A c", "matrix times vector", 12.0, 65),
    ("J c", "matrix times vector", 12.0, 63),
    ("rho x c", "cross product", 7.5, 14),
    ("m t", "scalar times vector", 3.0, 34),
)
PHASES = {"inertia": "inertia matrix", "force": "force vector", "actuator": "actuator", "solver": "solver"}


def run() -> Result:
    """Run the simulator and return its tables, and the comparison with the serial run."""
    start, profile = motion()
    simulators = {kind: MeshSimulator(kind) for kind in KINDS}
    done = simulators["t800"].run(RUN_SECONDS, start, profile)
    difference = largest_difference(done, serial_run(RUN_SECONDS, start, profile))
    share = done.share_of_real_time
    below = difference < MAX_DIFFERENCE
    rows = (
        Row("distributed run and serial run differ by", "", "below 1e-10" if below else difference, "", below),
        Row("machine time per simulated second", "below 1 (5.5.1)", share, "s", share < 1.0),
    )
    return Result(rows, tables=(_phase_table(simulators["t800"]), _operation_table(), _cycle_table(simulators),
                                _puma_table()))  # fmt: skip


# -- table 5.4


def phase(task: Task, row: int) -> str:
    """Return the phase of a task of a cycle.

    Parameters
    ----------
    task
        The task.
    row
        Row of its processor.
    """
    name = task.name.partition("[")[0]
    if name in ("alpha", "y"):
        return "solver"
    if name == "tau":
        return "actuator"
    if "." in name:
        return "integration"
    return "force" if row == 0 or name in ("a", "b") else "inertia"


def phase_times(s: Schedule) -> dict[str, float]:
    """Return the time of each phase of a cycle `s` on one processor, us."""
    times = dict.fromkeys((*PHASES, "integration"), 0.0)
    for task, p in zip(s.tasks, s.where, strict=True):
        row = round(s.machine.topology.places[p][1])
        times[phase(task, row)] += task.work(s.machine.cost)
    return times


def _phase_table(simulator: MeshSimulator) -> Table:
    printed = published()["transputer"]
    measured, theory = printed["excavator_one_cpu_ms"], printed["excavator_one_cpu_theory_ms"]
    times = phase_times(simulator.schedules[0])
    total = sum(times.values())
    rows = [
        (name, f"{measured[key]:.2f}", f"{theory[key]:.3f}", f"{times[key] / 1e3:.3f}",
         f"{100 * measured[key] / measured['total']:.0f}", f"{100 * times[key] / total:.0f}")
        for key, name in PHASES.items()
    ]  # fmt: skip
    last = times["integration"]
    rows.append(("integration", "", "", f"{last / 1e3:.3f}", "", f"{100 * last / total:.0f}"))
    sums = (f"{measured['total']:.2f}", f"{theory['total']:.3f}", f"{total / 1e3:.3f}")
    rows.append(("one processor", *sums, "100", "100"))
    head = ("phase", "print, ms", "print, theory", "ours, ms", "print, %", "ours, %")
    below = "Ours: the operations of the mesh that remain for the numbers of this excavator, one after another."
    return Table("Table 5.4: a cycle on one processor", head, rows, range(1, 6), below)


# -- table 5.5


def _operation_table() -> Table:
    tape = Tape()
    numbers = iter(tape.inputs("x", (100,)))

    def vec() -> Vec:
        return Vec(next(numbers), next(numbers), next(numbers))

    operations: dict[str, Callable[[], Vec]] = {
        "vector subtraction": lambda: vec() - vec(),
        "matrix times vector": lambda: Mat(vec(), vec(), vec()) @ vec(),
        "vector addition": lambda: vec() + vec(),
        "cross product": lambda: vec().cross(vec()),
        "scalar times vector": lambda: vec() * next(numbers),
    }
    times = {}
    for name, make in operations.items():
        before = len(tape.nodes)
        make()
        times[name] = count_cost(tape.nodes[before:]).time()
    rows: list[tuple[str, ...]] = [
        (name, kind, f"{a:g}", f"{b}", f"{times[kind]:g}") for name, kind, a, b in PRINTED_OPERATIONS
    ]
    columns = zip(*((a, b, times[kind]) for _, kind, a, b in PRINTED_OPERATIONS), strict=True)
    rows.append(("all", "", *(f"{sum(column):g}" for column in columns)))
    head = ("operation", "type", "print, theory", "print, measured", "ours")
    return Table("Table 5.5: one element of H, us", head, rows, range(2, 5))


# -- cycles and frames


def _cycle_table(simulators: dict[str, MeshSimulator]) -> Table:
    printed = published()["transputer"]
    line_us = 1e6 * line_seconds() / CYCLES_PER_FRAME
    measured = 1e3 * printed["excavator_mesh_ms"]
    rows = []
    for kind, simulator in simulators.items():
        cycle_us = sum(s.makespan for s in simulator.schedules) / STAGES
        with_exchange = cycle_us + simulator.frame.makespan / CYCLES_PER_FRAME
        rows.append(_cycle_row(f"ours, {kind}", cycle_us, with_exchange, with_exchange + line_us))
    rows.append(_cycle_row("print, theory", printed["excavator_mesh_theory_us"]))
    frame = simulators["explicit"].frame.makespan / CYCLES_PER_FRAME
    rows.append(
        _cycle_row("print, measured; our exchange and line", measured, measured + frame, measured + frame + line_us)
    )
    rows.append(("print, measured, with input and output", "", "", "2100", "yes"))
    below = (
        "exchange: tasks 8 and 9 once in a frame of 20 cycles; display: four words at 9600 baud, once in a frame.\n"
        f"in time: below {DEADLINE_US:g} us, a fourth of the step of 0.01 s."
    )
    return Table(
        "One cycle of the mesh, us", ("", "cycle", "with exchange", "with display", "in time"), rows, (1, 2, 3), below
    )


def _cycle_row(name: str, *times_us: float) -> tuple[str, ...]:
    cells = [f"{x:.1f}" for x in times_us] + [""] * (3 - len(times_us))
    return (name, *cells, "yes" if times_us[-1] < DEADLINE_US else "NO")


# -- section 3.5.1


def _puma_table() -> Table:
    """Tabulate one evaluation of any arm of six joints on one processor, and a run of 10 s."""
    ours_ms, evaluations = mesh(PUMA_JOINTS).schedule("hidden").work / 1e3, STAGES * PUMA_STEPS
    ours_s = f"{1e-3 * ours_ms * evaluations:.2f}"
    rows = [
        ("one evaluation, ms", "17.2", "2.02", f"{ours_ms:.2f}"),
        ("4000 evaluations, s", f"{17.2e-3 * evaluations:.1f}", f"{2.02e-3 * evaluations:.2f}", ours_s),
        ("the run of 10 s, s", "71.12", "", ours_s),
        ("measured / theory", f"{17.2 / 2.02:.1f}", "", f"{17.2 / ours_ms:.1f}"),
    ]
    head = ("any arm of six joints, h = 0.01 s", "measured", "theory", "ours")
    below = (
        "Ours: the program of the mesh, one operation after another; it computes some values on several processors.\n"
        "The theory of the thesis is a program for one processor."
    )
    return Table("Section 3.5.1: six joints on one processor", head, rows, range(1, 4), below)
