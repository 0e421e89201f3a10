"""Stanford arm on one and on three transputers (schaefer1992, figures 7 and 8), partitioned by strategies.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from bellcrank.model import Mechanism
from bellcrank.papers.operation_counts import published
from bellcrank.papers.strategies import SHARING_MODES, STRATEGIES, tasks_of
from bellcrank.scheduling import Schedule, Task, Tasks, list_schedule, machine
from bellcrank.scheduling.placement import Placement, Plan
from bellcrank.text_table import Table
from bellcrank.view.schedule_picture import diagram
from bellcrank.zoo import stanford, torso


@dataclass(frozen=True)
class TransputerTimes:
    """Schedules on one and on three transputers."""

    one: Schedule
    three: Schedule

    @property
    def speedup(self) -> float:
        """Ratio of the makespans."""
        return self.one.makespan / self.three.makespan

    @property
    def third_idle(self) -> float:
        """Idle time of the third processor per cycle, us."""
        return self.three.makespan - self.three.busy[2]


TASK_PROCESSORS = {"state": 0, "M": 0, "L": 0, "end": 0, "k": 1, "q": 2, "u": 2}  # processor of each task in figure 8


def figure_8(control: str = "none", make: Callable[[], Mechanism] = stanford, state: bool = True) -> TransputerTimes:
    """Schedule strategies 2 and 3: M and its factors, k, and q with the control law on three processors.

    Parameters
    ----------
    control
        Name of the control law.
    make
        Function that builds the mechanism.
    state
        If True, the first processor has y and yd, for example from the integrator, and sends them to the others.
    """
    m = make()
    one = list_schedule(tasks_of(m, control=control), machine("single", "t800"))
    todo = tasks_of(m, "modules", "factorisation", control=control)
    return TransputerTimes(one, schedule_at(with_state(todo, m.nq + m.nv) if state else todo, TASK_PROCESSORS))


def with_state(todo: Tasks, words: int) -> Tasks:
    """Prepend a task without duration that supplies the state to all tasks without other operands.

    Parameters
    ----------
    todo
        Tasks.
    words
        Number of values in the state.
    """
    first = Task(0, "state", (), {}, words)
    later = [
        replace(task, index=task.index + 1, needs={j + 1: n for j, n in task.needs.items()} or {0: words})
        for task in todo
    ]
    return replace(todo, tasks=(first, *later))


def schedule_at(todo: Tasks, places: Mapping[str, int]) -> Schedule:
    """Schedule tasks on three fully connected transputers.

    Parameters
    ----------
    todo
        Tasks.
    places
        Processor of each task, by name.
    """
    transputers = machine("complete:3", "t800")
    processors = [places[task.name] for task in todo]
    return Placement(Plan(todo, transputers)).run(range(len(todo)), processors)


def combinations(m: Mechanism, control: str = "none", processors: int = 3) -> Iterable[tuple[str, str, Schedule]]:
    """Yield all combinations of the strategies, with both ways to share values, placed by the general scheduler.

    Parameters
    ----------
    m
        Mechanism without loops.
    control
        Name of the control law.
    processors
        Number of transputers.
    """
    transputers = machine(f"complete:{processors}", "t800")
    for bits in range(1, 8):
        names = [name for i, name in enumerate(STRATEGIES) if bits >> i & 1]
        for shared in SHARING_MODES:
            todo = tasks_of(m, *names, control=control, shared=shared)
            yield " + ".join(names), shared, list_schedule(todo, transputers)


def tables() -> list[Table]:
    """Return figure 8 beside the paper's numbers, and all combinations of the strategies."""
    return [_figure_8_table(), _combination_table()]


def _figure_8_table() -> Table:
    printed_times = published()["transputer"]
    plain, with_control, state_known = figure_8(), figure_8("computed_torque"), figure_8(state=False)
    rows = [
        ("one transputer, us", f"{printed_times['stanford_one_transputer_us']}", f"{plain.one.makespan:.0f}"),
        ("three transputers, us", f"{printed_times['stanford_three_transputers_us']}", f"{plain.three.makespan:.0f}"),
        ("  if all know the state", "", f"{state_known.three.makespan:.0f}"),
        ("speed-up", f"{printed_times['stanford_speedup']}", f"{plain.speedup:.2f}"),
        ("  if all know the state", "", f"{state_known.speedup:.2f}"),
        ("left on the third, us", "500", f"{plain.third_idle:.0f}"),
        ("speed-up with that much control", f"{printed_times['stanford_speedup_with_control']}",
         f"{(plain.one.makespan + plain.third_idle) / plain.three.makespan:.2f}"),
        ("speed-up with computed torque", "", f"{with_control.speedup:.2f}"),
    ]  # fmt: skip
    title = "Figures 7 and 8: the Stanford arm, modules and factorisation"
    return Table(title, ("", "print", "ours"), rows, (1, 2), diagram(plain.three))


def _combination_table() -> Table:
    """Tabulate the makespan of each combination, with shared values copied or sent."""
    makespans: dict[str, list[str]] = {}
    for m in (stanford(), torso()):
        for cut, _, s in combinations(m):
            makespans.setdefault(cut, []).append(f"{s.makespan:.0f}")
    head = ("strategies", *(f"{name}, {shared}" for name in ("stanford", "torso") for shared in SHARING_MODES))
    title = "All combinations on three transputers, us: what modules share is copied or sent"
    return Table(title, head, [(cut, *times) for cut, times in makespans.items()], range(1, 5))


FIGURES: Mapping[str, Callable[[], str]] = {
    "schaefer1992_figure_8.svg": lambda: figure_8().three.svg(),
    "schaefer1992_figure_8.html": lambda: figure_8().three.html(),
}
