"""Schedules of the papers, executed: predicted and observed makespan side by side.

Every schedule is translated to one program for each processor and executed on a simulated machine with numbers
(scheduling/event_machine.py). The observed makespan equals the predicted one; it differs where channels carry the
message that is ready first, as links without a timetable do, and where a plan for free messages is executed on
transputers, whose messages cost time. The results are those of one core of this computer.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellcrank.build.checked_execution import checked_execution, random_inputs
from bellcrank.build.graphs import graph
from bellcrank.papers.fijany import ARRAYS, schedule_on_array
from bellcrank.papers.schaefer import STRATEGIES, figure_8, tasks_of
from bellcrank.papers.wong import mesh
from bellcrank.scheduling import Machine, Schedule, list_schedule, machine, schedule
from bellcrank.text_table import Table
from bellcrank.zoo import excavator, stanford, torso

KINDS = ("ideal", "hidden", "t800", "explicit")
MACHINES = ("complete:4", "pipeline:4", "mesh:2,2", "hypercube:2", "triangle:3", "bus:3")
ARRAY_JOINTS = 6
HEAD = ("schedule", "machine", "predicted", "executed", "idle", "messages", "waiting", "first ready", "difference")


def tables() -> list[Table]:
    """Return the executed schedules of the papers, those of the general scheduler, and plans on another machine."""
    return [_paper_table(), _machine_table(), _other_machine_table()]


def paper_schedules() -> Iterator[tuple[str, Schedule]]:
    """Yield the schedules of the papers with their names."""
    for m in (excavator(), torso()):
        program = mesh(m)
        for kind in KINDS:
            yield f"Wong, {m.name}", program.schedule(kind)
    for control in ("none", "computed_torque"):
        with_control = ", computed torque" if control != "none" else ""
        yield f"Schäfer, figure 8{with_control}", figure_8(control).three
    for m in (stanford(), torso()):
        for bits in range(1, 8):
            names = [name for i, name in enumerate(STRATEGIES) if bits >> i & 1]
            yield (
                f"Schäfer, {m.name}, {' + '.join(names)}",
                list_schedule(tasks_of(m, *names), machine("complete:3", "t800")),
            )
    for array in ARRAYS:
        yield f"Fijany, {array.key}", schedule_on_array(array, ARRAY_JOINTS)


def _row(name: str, s: Schedule, on: Machine | None = None) -> tuple[str, ...]:
    inputs = random_inputs(s)
    done, difference = checked_execution(s, inputs, on)
    first_ready = s.execute(links="fifo", machine=on, **inputs)
    numbers = (s.makespan, done.makespan, done.idle, done.message_time, done.waiting_time, first_ready.makespan)
    return name, _label(on or s.machine), *(f"{x:.1f}".removesuffix(".0") for x in numbers), _size(difference)


def _label(on: Machine) -> str:
    return on.name if on.overlapped else f"{on.name}, both ends busy"


def _size(difference: float) -> str:
    return "below 1e-12" if difference < 1e-12 else f"{difference:.0e}"


def _paper_table() -> Table:
    below = (
        "waiting: time that messages wait for a channel or the other end, added up. first ready: makespan where a\n"
        "channel carries the first message that is ready. difference: of the results from those of one core, relative."
    )
    rows = [_row(name, s) for name, s in paper_schedules()]
    return Table("Schedules of the papers, executed", HEAD, rows, range(2, 8), below)


def _machine_table() -> Table:
    g = graph(excavator(), "forward_dynamics", "aba")
    rows = [_row("excavator", schedule(g, machine(name, kind), "cluster")) for name in MACHINES for kind in KINDS]
    return Table("The excavator by the general scheduler, executed", HEAD, rows, range(2, 8))


def _other_machine_table() -> Table:
    """Tabulate plans for free messages that are executed on transputers."""
    g = graph(excavator(), "forward_dynamics", "aba")
    rows = []
    for name in MACHINES:
        plan, on = schedule(g, machine(name, "hidden"), "cluster"), machine(name, "t800")
        rows.append(_row("excavator, planned for free messages", plan, on))
    program = mesh(excavator())
    plan, on = program.schedule("hidden"), program.schedule("t800").machine
    rows.append(_row("Wong, excavator, planned for free messages", plan, on))
    return Table("Plans for free messages on transputers", HEAD, rows, range(2, 8))
