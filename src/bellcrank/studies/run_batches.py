"""Runs of a study as arguments of Simulator.run: groups, arguments of each group, and random inputs.

The function of a random input may depend on more than its source, such as a file or the environment, and perhaps in
some runs alone. So each file of rows has digests of all inputs that were drawn for it, in blocks of runs: of the first
run alone, which is quickly drawn again, and of up to BLOCK_RUNS others each. A continued study draws them again, and
compares them with those that stored rows were computed with.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import unavailable_reason
from bellcrank.errors import InputError, warn
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.sampling_plans import Array
from bellcrank.studies.study_setup import NUMBER_SETTINGS, START_ARGUMENTS, WORD_SETTINGS, StudySetup, drawn_inputs

AUTO_TARGET = "auto"  # value of target: use the GPU on those workers that have one
Table = dict[str, Array]
BLOCK_RUNS = 64  # runs of one digest
MAX_COMPARISON_SECONDS = 30.0  # s for drawing the inputs of stored rows again; what is left then is stated
REPEATED_RUNS = 16  # runs whose inputs are drawn twice before a study begins
DIGEST_DIGITS = 32

DrawnRun = Mapping[str, Any]  # of one run: samples by the name of the input, or the InputError that its function raised
BlockDigests = dict[str, list[str]]  # by the name of the input, a digest for each block of runs


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


def draw_inputs(setup: StudySetup, runs: Array, values: Mapping[str, Array]) -> list[DrawnRun]:
    """Return the random inputs of each run.

    Parameters
    ----------
    setup
        The study's setup.
    runs
        Numbers of the runs.
    values
        Their values, by name; an input that varies is not drawn.
    """
    varied = {name for name in values if setup.meaning.get(name) in ("input", "samples")}
    functions = {name: x for name, x in drawn_inputs(setup.given.get("inputs")).items() if name not in varied}
    if not functions:
        return [{} for _ in runs]
    hold = setup.given["input_step"]
    t = np.arange(int(np.ceil(setup.seconds / hold - 1e-9))) * hold
    ordered = list(enumerate(sorted(functions.items())))
    return [
        {name: _draw(draw, t.copy(), [setup.seed, k, int(seed)]) for k, (name, draw) in ordered}
        for seed in values.get("seed", runs)
    ]


def _draw(draw: Callable[..., Any], t: Array, seed: list[int]) -> Any:
    try:
        return np.asarray(draw(t, np.random.default_rng(seed)), float)
    except InputError as error:  # the run is refused, and others are not affected
        return error


def input_tables(drawn: Sequence[DrawnRun]) -> dict[str, Array]:
    """Return the inputs in `drawn` as arrays (runs, samples); raise the first InputError that one of them is."""
    for run in drawn:
        for x in run.values():
            if isinstance(x, InputError):
                raise x
    return {name: np.stack([run[name] for run in drawn]) for name in drawn[0]}


# -- digests


def block_ranges(runs: int) -> list[tuple[int, int]]:
    """Return (first, last) of the blocks of a chunk of `runs` runs; last is exclusive."""
    bounds = [0, 1, *range(BLOCK_RUNS, runs, BLOCK_RUNS), runs] if runs > 1 else [0, runs]
    return list(pairwise(bounds))


def block_digests(drawn: Sequence[DrawnRun]) -> BlockDigests:
    """Return digests of the inputs that were `drawn` for a chunk."""
    ranges = block_ranges(len(drawn))
    return {name: [_digest(drawn[a:b], name) for a, b in ranges] for name in drawn[0]}


def _digest(drawn: Sequence[DrawnRun], name: str) -> str:
    digest = hashlib.sha256()
    for run in drawn:
        x = run[name]
        if isinstance(x, InputError):
            digest.update(f"refused {x}\0".encode())
        else:
            digest.update(f"{x.shape}\0".encode() + np.ascontiguousarray(x, "<f8").tobytes())
    return digest.hexdigest()[:DIGEST_DIGITS]


def encode_digests(digests: BlockDigests) -> bytes:
    """Return `digests` for the metadata of a file of rows; nothing if no input was drawn."""
    return json.dumps(digests).encode() if digests else b""


def decode_digests(data: bytes) -> BlockDigests:
    """Return the digests in `data`."""
    digests: BlockDigests = json.loads(data) if data else {}
    return digests


# -- comparisons

ValuesOf = Callable[[int, int], Mapping[str, Array]]  # values of the runs from a first to a last one, exclusive


def check_repeatable(setup: StudySetup, runs: int, values: ValuesOf) -> None:
    """Raise InputError if a random input is not the same for the same generator, in a sample of the runs.

    Parameters
    ----------
    setup
        The study's setup.
    runs
        Number of runs.
    values
        Their values.
    """
    for run in np.unique(np.linspace(0, runs - 1, REPEATED_RUNS).astype(int)) if _draws(setup) else ():
        one, two = (draw_inputs(setup, np.array([run]), values(run, run + 1)) for _ in range(2))
        if names := _differing_names(block_digests(one), block_digests(two)):
            raise InputError(
                f"inputs: {', '.join(names)} gave different numbers for the same times and the same random generator, "
                "so that no run could be repeated. Draw every number from the generator that is the second argument."
            )


def changed_input(
    setup: StudySetup, chunks: Sequence[tuple[int, int]], values: ValuesOf, stored: Callable[[int], BlockDigests],
    sample: bool = False,
) -> str:  # fmt: skip
    """Return which random input of which runs is not what stored rows were computed with; "" if all agree.

    The first runs of all chunks are drawn again, and then all others in random order, for MAX_COMPARISON_SECONDS. A
    warning states how many runs were not compared.

    Parameters
    ----------
    setup
        The study's setup.
    chunks
        First and last run of each chunk that has rows; last is exclusive.
    values
        Values of the runs.
    stored
        Digests of the chunk that begins with a run.
    sample
        Compare the first run of each chunk alone.
    """
    if not _draws(setup):
        return ""
    began, compared = time.monotonic(), 0
    for chunk, k in _blocks(chunks, sample):
        if compared >= len(chunks) and time.monotonic() - began > MAX_COMPARISON_SECONDS:
            total = sum(last - first for first, last in chunks)
            warn(
                f"The random inputs of {compared:,} of {total:,} stored runs were drawn again and are as they were. "
                f"Those of the other {total - compared:,} were not drawn, because that takes longer than "
                f"{MAX_COMPARISON_SECONDS:g} s. If their functions depend on something outside of their source that "
                "has changed, use another folder."
            )
            return ""
        a, b = block_ranges(chunk[1] - chunk[0])[k]
        first, last = chunk[0] + a, chunk[0] + b
        drawn = draw_inputs(setup, np.arange(first, last), values(first, last))
        computed = {name: [_digest(drawn, name)] for name in drawn[0]}
        known = {name: digests[k : k + 1] for name, digests in stored(chunk[0]).items()}
        if names := _differing_names(known, computed):
            run_range = f"run {first}" if last == first + 1 else f"runs {first} to {last - 1}"
            return f"random input {', '.join(names)} of the {run_range}"
        compared += b - a
    return ""


def _draws(setup: StudySetup) -> bool:
    return bool(drawn_inputs(setup.given.get("inputs")))


def _blocks(chunks: Sequence[tuple[int, int]], sample: bool) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield (chunk, index of a block in it): first blocks of all chunks, then the others in random order."""
    yield from ((chunk, 0) for chunk in chunks)
    if sample:
        return
    counts = [len(block_ranges(last - first)) - 1 for first, last in chunks]
    ends = np.cumsum(counts)
    for place in np.random.default_rng(0).permutation(int(ends[-1]) if len(ends) else 0):
        c = int(np.searchsorted(ends, place, side="right"))
        yield chunks[c], 1 + int(place - (ends[c] - counts[c]))


def _differing_names(known: BlockDigests, computed: BlockDigests) -> list[str]:
    return [name for name in dict.fromkeys([*known, *computed]) if known.get(name) != computed.get(name)]
