"""Run settings: the groups Solver, Saving and Where of the public interface, and the Plan of a run made from them.

bc.simulate(plant, 10.0, solver=bc.Solver("dopri5", tolerance=1e-8), saving=bc.Saving(every=0.01))
bc.simulate(plant, 10.0, integrator="dopri5", tolerance=1e-8, every=0.01)       equivalent, by shortcuts
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar

from bellcrank.argument_errors import explain_methods
from bellcrank.buffers import UNCHECKED_BYTES, check_memory
from bellcrank.build.compilation import Where
from bellcrank.emit.cuda.device import unavailable_reason
from bellcrank.errors import InputError, unknown, warn
from bellcrank.integrate import INTEGRATORS, Integrator
from bellcrank.sim.run_arguments import MAX_STEPS, count, duration, positive, step_count, whole_multiple

FORMS = ("auto", "minimal", "projected", "lagrange")


@explain_methods("__init__")
@dataclass(frozen=True)
class Solver:
    """Settings of the integration.

    Parameters
    ----------
    integrator : str, default "rk4"
        Name of the integrator.
    step : float, optional
        Fixed step, s (default 1 ms); with a tolerance, the first step.
    tolerance : float, optional
        Error tolerance; the integrator then chooses its steps (rkf45, dopri5, abm2, abm4, adams, rodas4; default 1e-6).
    max_steps : int, optional
        Largest number of steps, repeated ones included, of a run with adaptive steps or events (default: a million, and
        100,000 for each second); the run then ends with the reason "too many steps".
    method : str, default "auto"
        Method of forward dynamics.
    form : {"auto", "minimal", "projected", "lagrange"}
        Formulation of closed loops. "auto" is "minimal", but "projected" for large rings and other mechanisms for which
        that needs less work.
    baumgarte : float, default 20.0
        Gain of the Baumgarte stabilisation in the form "lagrange", 1/s.
    resolve : float, default 0.01
        Relative error of fixed steps above which a run ends as "not resolved"; 0 turns the check off.
    """

    integrator: str = "rk4"
    step: float | None = None
    tolerance: float | None = None
    max_steps: int | None = None
    method: str = "auto"
    form: str = "auto"
    baumgarte: float = 20.0
    resolve: float = 0.01

    def __post_init__(self) -> None:
        """Check settings even if they have no effect, as without loops, so that a mistyped value is reported."""
        if self.form not in FORMS:
            raise InputError(unknown("form", str(self.form), FORMS))
        positive("baumgarte", self.baumgarte, ", in 1/s")
        if self.resolve != 0.0:
            positive("resolve", self.resolve, ", a relative error, or 0 for no check")


@explain_methods("__init__")
@dataclass(frozen=True)
class Saving:
    """Settings of the record.

    Parameters
    ----------
    every : float or "step", optional
        Seconds between rows of the record (default: every step, or 1000 rows with adaptive steps).
    keep : {"rows", "final"}, optional
        "final" keeps only the end of each run.
    summary : sequence of str
        Values that summarise each run, ["max(elbow.tau)", "integral(effort)"]: min, max, t_min, t_max, integral, mean,
        rms or final of any column.
    """

    every: float | str | None = None
    keep: str | None = None
    summary: Sequence[str] = ()


class RunOptions(TypedDict, total=False):
    """Shortcuts that may differ between runs of a Simulator."""

    step: float | None
    tolerance: float | None
    max_steps: int | None
    every: float | str | None
    keep: str | None
    target: str | None
    dtype: str | None
    threads: int | None


SettingsGroup = TypeVar("SettingsGroup", Solver, Saving, Where)


def grouped_settings(
    shortcuts: Mapping[str, Any], solver: Solver | None = None, saving: Saving | None = None, where: Where | None = None
) -> tuple[Solver, Saving, Where]:
    """Return the groups of settings with shortcuts applied; an InputError if a group and a shortcut set one option.

    Parameters
    ----------
    shortcuts
        Options by name; None is not set.
    solver, saving, where
        The groups that were given, or None.
    """
    return (
        _merged(Solver, "solver", solver, shortcuts),
        _merged(Saving, "saving", saving, shortcuts),
        _merged(Where, "where", where, shortcuts),
    )


def _merged(
    kind: type[SettingsGroup], word: str, given: SettingsGroup | None, shortcuts: Mapping[str, Any]
) -> SettingsGroup:
    """Return one group, of the class `kind`, with its shortcuts; `word` is the name of its argument."""
    if given is not None and not isinstance(given, kind):
        raise InputError(f"{word} is {given!r}; expected {kind.__name__}({', '.join(f.name for f in fields(kind))}).")
    defaults = kind()
    for name, x in shortcuts.items():
        group_value = getattr(given, name, None)
        if given is not None and x is not None and group_value != getattr(defaults, name, None):
            raise InputError(
                f"{name} is given twice: {name}={x!r}, and {word}={kind.__name__}({name}={group_value!r}). "
                "Leave one out."
            )
    return with_shortcuts(given or defaults, shortcuts)


def check_options(given: Mapping[str, Any], unused: Sequence[str] = ()) -> None:
    """Raise a TypeError if one of the settings `given` is not one of RunOptions, or is `unused` here."""
    known = [name for name in RunOptions.__annotations__ if name not in unused]
    for name in given:
        if name not in known:
            raise TypeError(f"run() got {name!r}; settings of a run are {', '.join(known)}.")


def check_keywords(caller: type, parts: Mapping[str, Any], system: Callable[..., Any]) -> None:
    """Raise an InputError that names `caller` if one of its further arguments `parts` is not a part of a system.

    Parameters
    ----------
    caller
        Class that passes the arguments on.
    parts
        Further arguments by name.
    system
        Function that takes them after its first argument.
    """
    own = [name for name in inspect.signature(caller).parameters if name != "parts"]
    known = [*own, *list(inspect.signature(system).parameters)[1:]]
    for name in parts:
        if name in known:
            continue
        groups = {"solver": Solver, "saving": Saving, "where": Where}
        group = next((word for word, kind in groups.items() if word in own and hasattr(kind, name)), "")
        hint = f" Give {group}=bellcrank.{groups[group].__name__}({name}=...)." if group else ""
        raise InputError(f"{caller.__name__}: {unknown('argument', name, known)}{hint}")


def with_shortcuts(settings: SettingsGroup, shortcuts: Mapping[str, Any]) -> SettingsGroup:
    """Return `settings` with those `shortcuts` that belong to it and are not None."""
    given = {name: x for name, x in shortcuts.items() if x is not None and hasattr(settings, name)}
    return replace(settings, **given) if given else settings


StepMode = tuple[bool, bool] | None  # (adaptive, rows on a grid), or None: fixed steps with nothing to watch
DEFAULT_TOLERANCE = 1e-6  # default error tolerance of adaptive steps
DEFAULT_STEP_S = 1e-3  # s, default fixed step
DEFAULT_ROWS = 1000  # default number of rows of a record with adaptive steps
# Default limit of tried steps, of runs with adaptive steps or events.
MOST_TRIES, MOST_TRIES_PER_SECOND = 1_000_000, 100_000
KEEP_OPTIONS = ("rows", "final")


@dataclass(frozen=True)
class Plan:
    """Numeric settings of one run, or of every run of a batch."""

    seconds: float
    adaptive: bool
    h: float  # the step, or the first one
    tolerance: float
    steps: int  # 0 if the number is not known in advance
    row_interval: float  # seconds between rows
    stride: int  # steps between rows
    every_step: bool  # a row for every step
    keeps_rows: bool  # True if rows are kept, False if only the end of each run is
    events: int
    max_steps: float  # steps that a run may try
    resolve: float  # relative error of fixed steps from which a run is not resolved; 0: not checked
    where: Where

    @property
    def mode(self) -> StepMode:
        """Return (adaptive, rows on a grid), or None for fixed steps without events."""
        if not self.adaptive and not self.events:
            return None
        return self.adaptive, not self.every_step or not self.adaptive or not self.keeps_rows

    @property
    def rows(self) -> int:
        """Return the initial row capacity of each run: exact with fixed steps, else an estimate; it can grow."""
        if not self.keeps_rows:
            return 0
        if self.mode is None:
            return -(-self.steps // self.stride) + 1
        return round(self.seconds / self.row_interval) + 2 + 8 * self.events if self.mode[1] else 1024

    def initial_fields(self, hold: float, lines: int) -> dict[str, Any]:
        """Return the initial values of the fields of every run's state except y.

        Parameters
        ----------
        hold
            Seconds that each line of inputs holds.
        lines
            Number of lines.
        """
        return {
            "t": 0.0, "live": 1.0, "due": float(self.keeps_rows), "h": self.h, "step": self.h,
            "every": self.row_interval, "end": self.seconds, "last": self.steps, "stride": self.stride,
            "next": self.stride if self.mode is None else 0.0, "rtol": self.tolerance, "atol": self.tolerance,
            "most": self.max_steps, "h_old": 1.0, "input_step": hold, "input_steps": step_count(hold, self.h),
            "input_last": lines - 1, "resolve": self.resolve,
        }  # fmt: skip

    @property
    def provenance(self) -> dict[str, Any]:
        """Return the settings that are stored in the provenance of the record."""
        return {
            "seconds": self.seconds, "step": None if self.adaptive else self.h,
            "tolerance": self.tolerance if self.adaptive else None,
            "every": None if not self.keeps_rows else "step" if self.every_step else self.row_interval,
        }  # fmt: skip

    def check_room(self, runs: int, row: int) -> None:
        """Raise an InputError if the record of `runs` runs with `row` numbers per row exceeds the free memory."""
        size = runs * self.rows * row * 8
        if size > UNCHECKED_BYTES:
            check_memory(f"the record of {runs} runs with {self.rows} rows each", size, "record less often (every=...)")


def make_plan(
    seconds: float, integrator: Integrator, events: int, solver: Solver, saving: Saving, where: Where
) -> Plan:
    """Return the settings of a run as numbers.

    Parameters
    ----------
    seconds
        Duration of the run.
    integrator
        Integrator.
    events
        Number of events.
    solver, saving, where
        Groups of settings.

    Raises
    ------
    InputError
        If a setting is invalid or does not go with another.
    """
    seconds = duration("seconds", seconds)
    where, with_rows, adaptive = available_target(where), keeps_rows(saving), has_adaptive_steps(integrator, solver)
    usual_step = min(DEFAULT_STEP_S, seconds / 100) if adaptive else DEFAULT_STEP_S
    h = usual_step if solver.step is None else duration("step", solver.step)
    tolerance = positive("tolerance", solver.tolerance, "") if solver.tolerance is not None else DEFAULT_TOLERANCE
    steps = 0 if adaptive else whole_multiple("seconds", seconds, h, "step")
    row_interval, every_step = _row_interval(saving.every, seconds, h, adaptive), saving.every == "step"
    stride = 1 if adaptive or every_step else whole_multiple("every", row_interval, h, "step")
    max_steps = _step_limit(solver.max_steps, adaptive or events > 0, seconds, steps)
    rows = row_interval, stride, every_step, with_rows
    plan = Plan(seconds, adaptive, h, tolerance, steps, *rows, events, max_steps, solver.resolve, where)
    if where.dtype == "float32" and plan.mode is not None:
        raise InputError(
            "float32 does not resolve times as finely as adaptive steps and events need; "
            'give dtype="float64", or fixed steps (step=...) without events.'
        )
    return plan


def keeps_rows(saving: Saving) -> bool:
    """Return True if `saving` keeps rows, False if only the end of each run."""
    keep = saving.keep if saving.keep is not None else "final" if saving.summary else "rows"
    if keep not in KEEP_OPTIONS:
        raise InputError(unknown("keep", keep, KEEP_OPTIONS))
    if keep == "rows" and saving.summary:
        raise InputError(
            'a summary is one row for each run, so it cannot be combined with keep="rows"; to keep all rows, run '
            "without a summary, and use numpy's min and max on the columns."
        )
    if keep == "final" and saving.every is not None:
        raise InputError(f"every is {saving.every!r}, the time between rows, but only the end of each run is kept.")
    return keep == "rows"


def has_adaptive_steps(integrator: Integrator, solver: Solver) -> bool:
    """Return True if the `integrator` chooses its steps under these `solver` settings."""
    if solver.tolerance is not None and not integrator.adaptive:
        adaptive_names = [name for name, i in INTEGRATORS.items() if i.adaptive]
        raise InputError(
            f'integrator "{integrator.name}" does not estimate its error, so it cannot keep a tolerance; '
            f"give step=..., or use one of {', '.join(adaptive_names)}."
        )
    return integrator.adaptive and (solver.tolerance is not None or solver.step is None)


def available_target(where: Where) -> Where:
    """Return the settings `where` after checking that they go together.

    Without a GPU, return those of the CPU, with a warning.
    """
    if where.machine:
        raise InputError("where: machine= divides the work on one state; runs are distributed by threads=.")
    if where.target == "cuda" and (why := unavailable_reason()):
        warn(f"{why} The CPU runs it instead, in float64.")
        return Where(threads=where.threads)
    if where.target == "cpu" and where.dtype != "float64":
        raise InputError('simulations on the CPU are in float64; dtype="float32" goes with target="cuda".')
    return where


def _row_interval(every: float | str | None, seconds: float, h: float, adaptive: bool) -> float:
    """Return the seconds between rows."""
    if every is None:
        return min(seconds / DEFAULT_ROWS if adaptive else h, seconds)
    if isinstance(every, str):
        if every != "step":
            raise InputError(f'every is "{every}"; expected seconds between rows, or "step" for one row per step.')
        return h
    return min(duration("every", every), seconds)


def _step_limit(max_steps: int | None, open_ended: bool, seconds: float, steps: int) -> float:
    """Return the limit of tried steps: their number is unknown with adaptive steps or events."""
    if max_steps is None:
        return min(steps + MOST_TRIES + MOST_TRIES_PER_SECOND * seconds, MAX_STEPS)
    if not open_ended:
        raise InputError(
            f"max_steps is {max_steps!r}, but this run takes exactly {steps} steps: its step is fixed and "
            "there are no events. It goes with adaptive steps (tolerance=...) or events."
        )
    return float(count("max_steps", max_steps, MAX_STEPS))
