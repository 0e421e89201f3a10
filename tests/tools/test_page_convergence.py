"""Printed results of runs in docs/ are converged: half the step and tighter tolerances print the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tables
from bellcrank.sim import settings
from bellcrank.sim.run import simulator
from bellcrank.sim.settings import Plan, Saving, Solver
from bellcrank.sim.stepper import stepper_factory
from prose import CHECKED, ROOT, blocks

RUNS = re.compile(r"\b(simulate|Simulator|stepper|study)\(")
TIGHTER = 0.1  # factor on the tolerance of adaptive steps
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
# Expressions about steps that are too long, as the page explains; or that compare a run with a program of fixed steps:
# another program, a study, an optimum.
ABOUT_STEPS = {
    "simulation.md": r"coarse\.stops",
    "integrators.md": r'energy\["euler"\]',
    "export.md": r'result\["hinge\.q"\]',
    "studies.md": r"replayed",
    "optimiser.md": r"coarse\.q",
}


def pages() -> list[Path]:
    return [p for p in sorted((ROOT / "docs").rglob("*.md")) if any(map(RUNS.search, blocks(p, "python")))]


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Halve the step of every run and keep its rows; the list collects the steps."""
    found: list[float] = []

    def planned(seconds: float, integrator: Any, events: int, solver: Solver, saving: Saving, where: Any) -> Plan:
        plan = settings.make_plan(seconds, integrator, events, solver, saving, where)
        found.append(plan.h)
        if plan.adaptive:
            return replace(plan, tolerance=TIGHTER * plan.tolerance)
        every = plan.row_interval if plan.keeps_rows else None
        fine = replace(saving, every=every)
        return settings.make_plan(seconds, integrator, events, replace(solver, step=plan.h / 2), fine, where)

    def times(step: float | None, every: float | None) -> tuple[float, float]:
        h, action = stepper_times(step, every)
        found.append(h)
        return h / 2, action

    stepper_times = stepper_factory._step_and_duration
    monkeypatch.setattr(simulator, "make_plan", planned)
    monkeypatch.setattr(stepper_factory, "_step_and_duration", times)
    return found


def alike(one: str, other: str) -> bool:
    """Return whether texts are equal up to one in the last digit of their numbers."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= 1.001 * max(map(last_digit, (a, b))) for a, b in pairs)


def last_digit(number: str) -> float:
    """Return the value of one in the last digit."""
    mantissa, _, power = number.partition("e")
    return float(10.0 ** (int(power or 0) - len(mantissa.partition(".")[2])))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.23", "1.24", True),
        ("1.23", "1.25", False),
        ("[1.0, True]", "[1.0, False]", False),
        ("(2, 10)", "(2, 11)", True),
        ("1e-05", "2e-05", True),
        ("1e-05", "3e-05", False),
        ("-0.5", "0.5", False),
    ],
)
def test_texts_agree_up_to_tolerance(one: str, other: str, same: bool) -> None:
    assert alike(one, other) == same


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_with_half_the_step_a_page_prints_the_same(page: Path, halved: list[float]) -> None:
    scope: dict[str, Any] = {"__name__": "page"}
    wrong = []
    with tables.restored():
        for block in blocks(page, "python"):
            exec(compile(block, str(page), "exec"), scope)
            for _, expression, shown in CHECKED.findall(block):
                if re.search(ABOUT_STEPS.get(page.name, "(?!)"), expression):
                    continue
                printed = str(eval(expression, scope))
                if not alike(printed, shown):
                    wrong.append(f"{expression}: {shown}, and with half the step {printed}")
    assert halved, f"{page.name}: nothing ran"
    assert wrong == [], f"{page.name}: shorten the steps, print fewer digits, or say that it is not converged"
