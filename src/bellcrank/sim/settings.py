"""How a system is integrated, what is kept of it, and where it runs: what people write, in three groups, and what a run
is then to do, in numbers.

bc.simulate(plant, 10.0, solver=bc.Solver("dopri5", tolerance=1e-8), saving=bc.Saving(every=0.01))
bc.simulate(plant, 10.0, integrator="dopri5", tolerance=1e-8, every=0.01)       the same, by shortcuts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar

from bellcrank.build.stages import Where
from bellcrank.emit.cuda.device import missing
from bellcrank.errors import InputError, unknown, warn
from bellcrank.integrate import INTEGRATORS, Integrator
from bellcrank.misfits import explained_class
from bellcrank.room import KEEP, check_room
from bellcrank.sim.amounts import MOST_STEPS, count, duration, positive, steps_of, whole

FORMS = ("auto", "minimal", "projected", "lagrange")


@explained_class("__init__")
@dataclass(frozen=True)
class Solver:
    """How a system is integrated.

    step: fixed, in seconds (1 ms where nothing is said); or tolerance: the integrator chooses its steps, and step is
    the first. max_steps: so many may a run try that chooses them or has events. method: of forward dynamics. form: how
    closed loops are kept closed (minimal, projected, lagrange; auto: minimal, but projected in large rings and other
    places where that is less work); baumgarte: how fast the last of them closes them, 1/s. resolve: relative error of
    fixed steps from which a run ends with the reason "not resolved"; 0 turns the check off.
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
        """Also where nothing comes of it, as without loops: what is mistyped is not passed over."""
        if self.form not in FORMS:
            raise InputError(unknown("form", str(self.form), FORMS))
        positive("baumgarte", self.baumgarte, ", in 1/s")
        if self.resolve != 0.0:
            positive("resolve", self.resolve, ", a relative error, or 0 for no check")


@explained_class("__init__")
@dataclass(frozen=True)
class Saving:
    """What is kept of runs.

    every: seconds between rows, or "step"; keep: "rows", or "final" for the end of each run alone; summary: what to say
    of each run as a whole, as in ["max(elbow.tau)"].
    """

    every: float | str | None = None
    keep: str | None = None
    summary: Sequence[str] = ()


class OneRun(TypedDict, total=False):
    """Shortcuts that may be other for every run of a Simulator."""

    step: float | None
    tolerance: float | None
    max_steps: int | None
    every: float | str | None
    keep: str | None
    target: str | None
    dtype: str | None
    threads: int | None


Group = TypeVar("Group", Solver, Saving, Where)


def grouped(kind: type[Group], word: str, given: Group | None, shortcuts: Mapping[str, Any]) -> Group:
    """The settings given as `word`, with shortcuts in their places; an error where both say the same thing."""
    if given is None:
        return changed(kind(), shortcuts)
    if not isinstance(given, kind):
        raise InputError(f"{word} is {given!r}; expected {kind.__name__}({', '.join(f.name for f in fields(kind))}).")
    usual = kind()
    for name, x in shortcuts.items():
        said = getattr(given, name)
        if x is not None and said != getattr(usual, name):
            raise InputError(
                f"{name} is given twice: {name}={x!r}, and {word}={kind.__name__}({name}={said!r}). Leave one out."
            )
    return changed(given, shortcuts)


def changed(settings: Group, shortcuts: Mapping[str, Any]) -> Group:
    """Settings with those of the shortcuts that say something."""
    said = {name: x for name, x in shortcuts.items() if x is not None and hasattr(settings, name)}
    return replace(settings, **said) if said else settings


Mode = tuple[bool, bool] | None  # (adaptive, rows on a grid), or None: fixed steps with nothing to watch
TOLERANCE = 1e-6  # where none is asked for
STEP = 1e-3
ROWS = 1000  # of a record, where the integrator chooses its steps and nobody says how often
TRIES, TRIES_A_SECOND = 1_000_000, 100_000  # steps that a run may try where it chooses them, or stops at events
KEEPS = ("rows", "final")


@dataclass(frozen=True)
class Plan:
    """What one run is to do, or every run of a batch."""

    seconds: float
    adaptive: bool
    h: float  # the step, or the first one
    tolerance: float
    steps: int  # 0 where nobody knows
    gap: float  # seconds between rows
    stride: int  # steps between rows
    each: bool  # a row for every step
    in_rows: bool  # whether rows are kept, or the end of each run alone
    events: int
    most: float  # steps that a run may try
    resolve: float  # relative error of fixed steps from which a run is not resolved; 0: not checked
    where: Where

    @property
    def mode(self) -> Mode:
        if not self.adaptive and not self.events:
            return None
        return self.adaptive, not self.each or not self.adaptive or not self.in_rows

    @property
    def rows(self) -> int:
        """Room for so many rows of each run: exact with fixed steps, else what is likely, for it can grow."""
        if not self.in_rows:
            return 0
        if self.mode is None:
            return -(-self.steps // self.stride) + 1
        return round(self.seconds / self.gap) + 2 + 8 * self.events if self.mode[1] else 1024

    def first(self, hold: float, lines: int) -> dict[str, Any]:
        """What the state of every run begins with, beside y; each line of its inputs holds for so long."""
        return {
            "t": 0.0, "live": 1.0, "due": float(self.in_rows), "h": self.h, "step": self.h, "every": self.gap,
            "end": self.seconds, "last": self.steps, "stride": self.stride,
            "next": self.stride if self.mode is None else 0.0, "rtol": self.tolerance, "atol": self.tolerance,
            "most": self.most, "h_old": 1.0, "input_step": hold, "input_steps": steps_of(hold, self.h),
            "input_last": lines - 1, "resolve": self.resolve,
        }  # fmt: skip

    @property
    def told(self) -> dict[str, Any]:
        """What the record's provenance says of it."""
        return {
            "seconds": self.seconds, "step": None if self.adaptive else self.h,
            "tolerance": self.tolerance if self.adaptive else None,
            "every": None if not self.in_rows else "step" if self.each else self.gap,
        }  # fmt: skip

    def check_room(self, runs: int, row: int) -> None:
        """An error where the record does not fit the memory that is free."""
        size = runs * self.rows * row * 8
        if size > KEEP:
            check_room(f"the record of {runs} runs with {self.rows} rows each", size, "record less often (every=...)")


def planned(seconds: float, integrator: Integrator, events: int, solver: Solver, saving: Saving, where: Where) -> Plan:
    """The settings of a run as numbers, or an error where they do not go together."""
    seconds = duration("seconds", seconds)
    where, in_rows, adaptive = available(where), rows_kept(saving), chooses_steps(integrator, solver)
    h = duration("step", solver.step) if solver.step is not None else min(STEP, seconds / 100 if adaptive else STEP)
    tolerance = positive("tolerance", solver.tolerance, "") if solver.tolerance is not None else TOLERANCE
    steps = 0 if adaptive else whole("seconds", seconds, h, "step")
    gap, each = _gap(saving.every, seconds, h, adaptive), saving.every == "step"
    stride = 1 if adaptive or each else whole("every", gap, h, "step")
    most = _most(solver.max_steps, adaptive or events > 0, seconds, steps)
    plan = Plan(seconds, adaptive, h, tolerance, steps, gap, stride, each, in_rows, events, most, solver.resolve, where)
    _check_float32(plan)
    return plan


def rows_kept(saving: Saving) -> bool:
    """Whether rows are kept, or the end of each run alone."""
    keep = saving.keep if saving.keep is not None else "final" if saving.summary else "rows"
    if keep not in KEEPS:
        raise InputError(unknown("keep", keep, KEEPS))
    if keep == "rows" and saving.summary:
        raise InputError(
            'a summary is one row for each run, so that keep="rows" does not go with it; all rows have all there '
            "is: run without a summary, and take numpy's min and max of their columns."
        )
    if keep == "final" and saving.every is not None:
        raise InputError(f"every is {saving.every!r}, the time between rows, but only the end of each run is kept.")
    return keep == "rows"


def chooses_steps(integrator: Integrator, solver: Solver) -> bool:
    """Whether the integrator chooses its steps."""
    if solver.tolerance is not None and not integrator.adaptive:
        able = [name for name, i in INTEGRATORS.items() if i.adaptive]
        raise InputError(
            f'integrator "{integrator.name}" does not estimate its error, so it cannot keep a tolerance; '
            f"give step=..., or take one of {', '.join(able)}."
        )
    return integrator.adaptive and (solver.tolerance is not None or solver.step is None)


def available(where: Where) -> Where:
    """Where it will run, if all that was asked for goes together."""
    if where.machine:
        raise InputError("where: machine= shares out the work on a state; runs are shared out by threads=.")
    if where.target == "cuda" and (why := missing()):
        warn(f"{why} The CPU runs it instead, in float64.")
        return Where(threads=where.threads)
    if where.target == "cpu" and where.dtype != "float64":
        raise InputError('simulations on the CPU are in float64; dtype="float32" goes with target="cuda".')
    return where


def _gap(every: float | str | None, seconds: float, h: float, adaptive: bool) -> float:
    """Seconds between rows."""
    if every is None:
        return min(seconds / ROWS if adaptive else h, seconds)
    if isinstance(every, str):
        if every != "step":
            raise InputError(f'every is "{every}"; expected seconds between rows, or "step" for one row per step.')
        return h
    return min(duration("every", every), seconds)


def _most(asked: int | None, open_ended: bool, seconds: float, steps: int) -> float:
    """Steps that a run may try: nobody knows how many it will take where it chooses them, or stops at events."""
    if asked is None:
        return min(steps + TRIES + TRIES_A_SECOND * seconds, MOST_STEPS)
    if not open_ended:
        raise InputError(
            f"max_steps is {asked!r}, and this run takes {steps} steps, no more and no less: its step is fixed and "
            "there are no events. It goes with chosen steps (tolerance=...) or events."
        )
    return float(count("max_steps", asked, MOST_STEPS))


def _check_float32(plan: Plan) -> None:
    if plan.where.dtype != "float32":
        return
    if plan.mode is not None:
        raise InputError(
            "float32 does not tell times apart as finely as chosen steps and events need; "
            'give dtype="float64", or fixed steps (step=...) without events.'
        )
