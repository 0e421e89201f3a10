"""Numerical experiments of five papers, reproduced: `bellcrank papers` lists them, `bellcrank papers NAME` runs one.

Only the command line imports this package. The import registers two additions with build/schedules.py: the machine
"wong", which has its own program, and the strategies of Schäfer and Schiehlen.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.build.schedules import CUTS, PROGRAMS, MethodSchedule
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.papers.results import Experiment, Result, Row
from bellcrank.scheduling import Tasks

# Ordered by paper: name, section, title, and the module inside bellcrank.papers.
TABLE = {
    "Nikravesh 1989": (
        ("nikravesh1989", "6", "Upper bound of the speed-up on any machine", "nikravesh.speedup_limits"),
        ("nikravesh-7", "7", "Four-bar on a slide, absolute and joint coordinates", "nikravesh.fourbar_times"),
    ),
    "Fijany 1989": (
        ("fijany1989", "3, 4", "The mass matrix on n and on n (n + 1)/2 processors", "fijany.processor_arrays"),
        ("critical_path", "4", "O(log n): critical path, and times on one GPU", "critical_path"),
    ),
    "Wong 1991": (
        ("wong1991", "4 to 6", "The mesh of transputers, its solver, the excavator", "wong.tables"),
        ("wong-3.5.1", "3.5.1", "PUMA 600, open-loop inverse dynamics", "wong.puma600"),
        ("wong-3.5.2", "3.5.2", "Human torso, open-loop inverse dynamics", "wong.torso"),
        ("wong-5.5.2", "5.5.2", "Excavator in JOINT and RESOLVED mode", "wong.excavator"),
    ),
    "Schäfer 1992": (
        ("schaefer1992", "3, 5", "Three strategies; the Stanford arm on three transputers", "schaefer.transputers"),
    ),
    "Saha 2001": (
        ("saha-planar", "4", "Planar arm against its explicit equations", "saha.planar_arm"),
        ("saha-stanford", "4", "Stanford arm, free fall and forced", "saha.stanford"),
        ("saha-puma", "4", "PUMA robot, free fall and forced", "saha.puma"),
    ),
}
EXPERIMENTS = {name: Experiment(name, paper, *row) for paper, rows in TABLE.items() for name, *row in rows}

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Row", "experiment"]


def experiment(name: str) -> Experiment:
    """Return the experiment called `name`.

    Parameters
    ----------
    name : str
        A key of `EXPERIMENTS`, such as "wong-3.5.1".

    Returns
    -------
    Experiment
        The experiment; its method `run` computes the results.

    Raises
    ------
    InputError
        If there is no experiment of that name.
    """
    if name not in EXPERIMENTS:
        raise InputError(unknown("experiment", name, EXPERIMENTS))
    return EXPERIMENTS[name]


# -- additions to build/schedules.py


def _wong_schedule(m: Mechanism, numbers: str, kind: str) -> MethodSchedule:
    from bellcrank.papers.wong import wong_mesh

    if numbers:
        raise InputError(
            f'machine "wong:{numbers}": Wong\'s mesh always has one column per joint; leave out the numbers.'
        )
    return MethodSchedule("Wong's own program", wong_mesh(m, kind or "t800"))


def _strategy_tasks(m: Mechanism, names: Sequence[str], control: str) -> list[Tasks]:
    from bellcrank.papers.schaefer.strategies import SHARING_MODES, tasks_of

    return [tasks_of(m, *names, control=control, shared=shared) for shared in SHARING_MODES]


PROGRAMS["wong"] = _wong_schedule
CUTS |= dict.fromkeys(("subsystems", "modules", "factorisation"), _strategy_tasks)
