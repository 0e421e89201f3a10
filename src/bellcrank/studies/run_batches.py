"""Runs of a study as arguments of Simulator.run: their division into groups, and the arguments of each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import unavailable_reason
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.distributions import Array
from bellcrank.studies.random_inputs import DrawnRun, draw_inputs, input_tables
from bellcrank.studies.study_setup import NUMBER_SETTINGS, START_ARGUMENTS, WORD_SETTINGS, StudySetup

AUTO_TARGET = "auto"  # value of target: use the GPU on those workers that have one
Table = dict[str, Array]


def run_groups(setup: StudySetup, values: Mapping[str, Array]) -> Iterator[tuple[dict[str, str], Array]]:
    """Yield groups of runs that one compiled program can execute as a batch.

    Parameters
    ----------
    setup
        The study's setup.
    values
        Values of the runs, by name.

    Yields
    ------
    tuple
        Variant and words that the group shares, and the indices of its rows in `values`.
    """
    names, n = setup.grouped, len(next(iter(values.values())))
    if not names:
        yield {}, np.arange(n)
        return
    codes = np.stack([np.unique(values[name], return_inverse=True)[1] for name in names], axis=1)
    for code in np.unique(codes, axis=0):
        rows = np.flatnonzero((codes == code).all(axis=1))
        yield setup.choice(values, rows[0]), rows


def run_batch(
    setup: StudySetup, sim: Simulator, runs: Array, values: Table, drawn: Sequence[DrawnRun] | None = None, **more: Any
) -> Record:
    """Execute runs as a batch.

    Parameters
    ----------
    setup
        The study's setup.
    sim
        Simulator of these runs.
    runs
        Their numbers.
    values
        Their values, by name.
    drawn
        Their random inputs; drawn here if they are None.
    **more
        Settings that replace those of the study.
    """
    given, settings = run_arguments(setup, runs, values, drawn)
    return sim.run(setup.seconds, batch=len(runs), progress=False, **given, **{**settings, **more})


def run_arguments(
    setup: StudySetup, runs: Array, values: Table, drawn: Sequence[DrawnRun] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of Simulator.run: starts, inputs and parameters of these runs, and settings.

    Parameters
    ----------
    setup
        The study's setup.
    runs
        Numbers of the runs.
    values
        Their values, by name.
    drawn
        Their random inputs; drawn here if they are None.
    """
    meaning = setup.meaning
    given = dict(setup.given)
    for start in START_ARGUMENTS:
        start_values = {n: x for n, x in values.items() if meaning[n] == start}
        if start_values:
            plain = {n.rpartition(".")[0] if start != "x0" else n: x for n, x in start_values.items()}
            given[start] = {**(given.get(start) or {}), **plain}
    free = {n: x for n, x in values.items() if meaning[n] == "parameter"}
    given["parameters"] = {**(given.get("parameters") or {}), **free}
    given["inputs"] = _run_inputs(setup, values, draw_inputs(setup, runs, values) if drawn is None else drawn)
    return given, shared_settings(setup) | {n: float(values[n][0]) for n in NUMBER_SETTINGS if n in values}


def shared_settings(setup: StudySetup) -> dict[str, Any]:
    """Return the settings that all runs of `setup` share."""
    settings = {n: x for n, x in setup.settings.items() if n not in WORD_SETTINGS and x is not None}
    if settings.get("target") == AUTO_TARGET:
        settings["target"] = "cpu" if unavailable_reason() else "cuda"
    if not setup.summary:
        settings["keep"] = setup.keep or "final"
    return settings


def _run_inputs(setup: StudySetup, values: Table, drawn: Sequence[DrawnRun]) -> dict[str, Any]:
    hold = setup.given.get("input_step")
    inputs = dict(setup.given.get("inputs") or {})
    for name, what in setup.meaning.items():
        if what == "input" and name in values:
            x = values[name]
            inputs[name] = x if hold is None else x[:, None]
        elif what == "samples" and name in values:
            inputs[name] = np.stack([setup.samples[str(file)] for file in values[name]])
    return inputs | input_tables(drawn)
