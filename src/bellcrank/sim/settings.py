"""How a system is integrated, what is kept of it, and where it runs: what people write, in three groups.

bc.simulate(plant, 10.0, solver=bc.Solver("dopri5", tolerance=1e-8), saving=bc.Saving(every=0.01))
bc.simulate(plant, 10.0, integrator="dopri5", tolerance=1e-8, every=0.01)       the same, by shortcuts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar

from bellcrank.build.stages import Where
from bellcrank.errors import InputError, unknown
from bellcrank.misfits import explained_class
from bellcrank.sim.arguments import positive

FORMS = ("auto", "minimal", "projected", "lagrange")


@explained_class("__init__")
@dataclass(frozen=True)
class Solver:
    """How a system is integrated.

    step: fixed, in seconds (1 ms where nothing is said); or tolerance: the integrator chooses its steps, and step is
    the first. max_steps: so many may a run try that chooses them or has events. method: of forward dynamics. form: how
    closed loops are kept closed (minimal, projected, lagrange; auto: minimal, but projected in large rings and other
    places where that is less work); baumgarte: how fast the last of them closes them, 1/s.
    """

    integrator: str = "rk4"
    step: float | None = None
    tolerance: float | None = None
    max_steps: int | None = None
    method: str = "auto"
    form: str = "auto"
    baumgarte: float = 20.0

    def __post_init__(self) -> None:
        """Also where nothing comes of it, as without loops: what is mistyped is not passed over."""
        if self.form not in FORMS:
            raise InputError(unknown("form", str(self.form), FORMS))
        positive("baumgarte", self.baumgarte, ", in 1/s")


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
