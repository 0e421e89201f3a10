"""bc.study: many runs of a plant over varied values, through Dask, into a folder that can be continued."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.argument_errors import checked_seed, explain_argument_errors, explain_methods
from bellcrank.content_digest.libraries import code_versions
from bellcrank.errors import InputError, brief, check_known, warn
from bellcrank.lazy_import import optional_import
from bellcrank.record import Record
from bellcrank.sim.program.events import Event
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.run_arguments import RunArguments, as_tuple, count, duration, whole_multiple
from bellcrank.sim.system.element_forces import CHECKED_RUNS, OverlapError, check_start
from bellcrank.studies.dask_engine import StudyError, StudyProgress, computed_chunks, dask_client
from bellcrank.studies.run_batches import changed_input, check_repeatable, run_arguments, run_batch, run_groups
from bellcrank.studies.sampling_plans import Array, Indices, Points, sobol_indices
from bellcrank.studies.sampling_plans import points as points_of
from bellcrank.studies.study_folder import (
    MANIFEST_VERSION,
    MAX_FILES,
    StudyFolder,
    chunk_ranges,
    is_row_list,
    provenance,
)
from bellcrank.studies.study_identity import (
    ExpectedDigests,
    equation_summary,
    executed_program,
    number_digests,
    program_digest,
    setup_digests,
    study_name,
)
from bellcrank.studies.study_setup import (
    START_ARGUMENTS,
    StudySetup,
    checked_keep,
    drawn_inputs,
    group_key,
    study_setup,
)
from bellcrank.version import __version__

MAX_CHUNK_RUNS, MIN_CHUNK_RUNS = 16384, 64  # most and fewest runs of a chunk
TARGET_CHUNKS = 200  # chunks of a study, within these limits
MAX_CHUNK_RUNS_WITH_ROWS = 256  # most runs of a chunk that keeps all rows
MAX_WORKERS = 10_000
NUMBER = re.compile(r"\d[\d.e+-]*")
DRAWN_HINT = "Its function depends on something outside of its source, such as a file: keep that as it is everywhere."


@explain_methods("replay", "report", "sobol", "table")
@dataclass(frozen=True, eq=False)
class Study:
    """A study and its folder; study["max(elbow.tau)"] is a column over the runs, study.table() has all of them.

    Parameters
    ----------
    folder : Path
        Folder of the study.
    manifest : mapping
        Content of its manifest, study.json.
    points : Points
        Values of all runs.
    setup : StudySetup
        Everything that the runs share.
    """

    folder: Path
    manifest: Mapping[str, Any]
    points: Points = field(repr=False)
    setup: StudySetup = field(repr=False)

    def table(self) -> Any:
        """Return all runs in order.

        Returns
        -------
        pyarrow.Table
            One row for each run; to_pandas() and the like are methods of pyarrow.
        """
        return StudyFolder(self.folder).table()

    def __getitem__(self, name: str) -> Array:
        table = self.table()
        check_known("column", name, table.column_names, "the study")
        column = table.column(name)
        if is_row_list(name):
            return _padded_rows(column.combine_chunks().to_numpy(zero_copy_only=False))
        return np.asarray(column.to_pylist() if str(column.type) == "string" else column.to_numpy())

    def __len__(self) -> int:
        return len(self.points)

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the numeric result columns."""
        known = {"run", "stop", "stop_time", "message", *self.points.columns}
        return tuple(n for n in self.table().column_names if n not in known and not is_row_list(n))

    @property
    def failures(self) -> dict[str, int]:
        """Number of runs that ended early, by reason."""
        reasons, counts = np.unique(self["stop"], return_counts=True)
        return {str(r): int(n) for r, n in zip(reasons, counts, strict=True) if r != "end"}

    def replay(self, run: int, every: float | None = None) -> Record:
        """Repeat one run and return its rows.

        Parameters
        ----------
        run : int
            Number of the run.
        every : float, optional
            Time between rows, s.

        Returns
        -------
        Record
            The run.

        Raises
        ------
        InputError
            If there is no such run.
        """
        if not 0 <= run < len(self):
            raise InputError(f"run is {run}; the study has the runs 0 to {len(self) - 1}.")
        values = self.points.part(run, run + 1)
        bare = replace(self.setup, summary=())
        more: dict[str, Any] = {"keep": "rows"} | ({"every": every} if every is not None else {})
        return run_batch(bare, bare.simulator(bare.choice(values)), np.array([run]), values, **more)

    def sobol(self, result: str) -> Indices:
        """Return the Sobol indices of a result, the share of its variance that each varied number explains.

        Parameters
        ----------
        result : str
            Name of a result.

        Returns
        -------
        Indices
            First-order and total indices with standard errors.

        Raises
        ------
        InputError
            If there is no such result, or the points do not allow it.
        """
        return sobol_indices(self.points, self[result], result)

    def report(self, path: str | Path | None = None) -> Path:
        """Write a page with distributions, sensitivities, and a scatter whose points replay their runs.

        Parameters
        ----------
        path : path, optional
            File to write; by default study.html in the folder.

        Returns
        -------
        Path
            The written file.
        """
        from bellcrank.studies.study_page import write_study_page

        return write_study_page(self, Path(path) if path is not None else self.folder / "study.html")

    def _repr_html_(self) -> str:
        from bellcrank.studies.study_page import study_html
        from bellcrank.view.notebook import frame

        return frame(str(self), study_html(self), 640)

    def __str__(self) -> str:
        failed = self.failures
        text = ", ".join(f"{n} {reason}" for reason, n in failed.items()) or "none"
        return f"study of {len(self)} runs in {self.folder}; {len(self.results)} results; ended early: {text}"

    __repr__ = __str__


@explain_argument_errors
def study(
    plant: Any,
    over: Mapping[str, Any] | None = None,
    runs: int | None = None,
    *,
    seconds: float,
    to: str | Path,
    summary: Sequence[str] = (),
    keep: str | None = None,
    every: float | None = None,
    cluster: Any = None,
    points: Any = None,
    seed: int = 0,
    q0: Mapping[str, float] | Any = None,
    v0: Mapping[str, float] | Any = None,
    x0: Mapping[str, float] | Any = None,
    inputs: Mapping[str, Any] | None = None,
    input_step: float | None = None,
    parameters: Mapping[str, float] | None = None,
    events: Sequence[Event] = (),
    integrator: str | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    max_steps: int | None = None,
    method: str | None = None,
    form: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    workers: int | None = None,
    chunk: int | None = None,
    progress: Any = None,
) -> Study:
    """Run a plant many times over varied values and store a row for each run in a folder of Parquet files.

        bc.study(arm, {"boom.mass": bc.uniform(1500, 2100), "boom.q": [0.1, 0.2]}, runs=10_000, seconds=2.0,
                 summary=["max(boom.v)"], to="folder")

    A run that fails is a row, too: its column "stop" is the reason of its end ("end" for those that did not fail).

    Parameters
    ----------
    plant : Mechanism, System, or mapping of these by name
        With several plants, over={"variant": [...]} chooses.
    over : mapping
        For each name a distribution (bc.uniform, bc.log_uniform, bc.normal) or a list. A name is that of a free
        parameter, of any number that mechanism.free accepts, of an element of the start ("boom.q", "boom.v",
        "boom.integral"), of an input (numbers, or names of files of samples), "integrator", "method", "form", "step",
        "tolerance", or "seed".
    runs : int, optional
        Number of runs; not needed for a grid or a table.
    seconds : float
        Duration of each run, s.
    to : path
        Folder of the study; if it contains a part of this study, only the rest is computed.
    summary : sequence of str
        Summaries of each run, as in bc.simulate.
    keep : {"final", "rows"}, optional
        "final" also stores the final state of each run, "rows" all its rows as lists ("rows(t)", "rows(boom.q)", ...).
    every : float, optional
        Time between these rows, s.
    cluster : str, client or cluster of dask, optional
        By default processes on this computer.
    points : str, mapping or path, optional
        "random", "latin", "sobol", "grid" (lists only), "saltelli" (for Sobol indices), or a table: a mapping of
        columns, or a CSV or Parquet file.
    seed : int
        Seed of the points and of drawn inputs.
    q0, v0, x0 : mapping or array_like, optional
        Start that all runs share, as in bc.simulate.
    inputs : mapping, optional
        As in bc.simulate, or functions of (times, random generator) that are drawn for each run, from its "seed" if
        that varies.
    input_step : float, optional
        Time that each sample of an input holds, s.
    parameters : mapping of str to float, optional
        Parameters that all runs share, as in bc.simulate.
    events, integrator, step, tolerance, max_steps, method, form
        As in bc.simulate.
    target : str, optional
        As in bc.simulate; "auto" uses the GPU on those workers that have one.
    threads : int, optional
        As in bc.simulate.
    workers : int, optional
        Number of processes on this computer.
    chunk : int, optional
        Number of runs per file.
    progress : callable or bool, optional
        Called with the share done; False for silence, True for a bar; by default a bar on a terminal.

    Returns
    -------
    Study
        The study and its folder.

    Raises
    ------
    InputError
        If an argument is invalid, or the folder contains a different study.
    StudyError
        If the workers cannot finish it; what was computed is in the folder.
    """
    if not isinstance(to, str | PathLike) or not str(to) or "\0" in str(to):
        raise InputError(f"to is {brief(to)}; expected the name of a folder.")
    summaries = as_tuple("summary", summary, 'names of summaries, as in "max(elbow.tau)"')
    seed = checked_seed(seed)
    run_points = points_of(over, runs, points, seed)
    given = {"q0": q0, "v0": v0, "x0": x0, "inputs": inputs, "input_step": input_step, "parameters": parameters}
    settings = {
        "integrator": integrator, "method": method, "form": form, "step": step, "tolerance": tolerance,
        "max_steps": max_steps, "target": target, "threads": threads,
    }  # fmt: skip
    if workers is not None:
        count("workers", workers, MAX_WORKERS)
    if every is not None:
        settings["every"] = duration("every", every)
    if drawn_inputs(inputs) and input_step is None:
        first = next(iter(drawn_inputs(inputs)))
        raise InputError(f"inputs: {first} is drawn; give the time that each number holds: input_step=....")
    setup = study_setup(
        plant, run_points, settings, seconds=duration("seconds", seconds), given=given, summary=summaries,
        keep=checked_keep(keep, summaries, every), seed=seed, events=tuple(events),
    )  # fmt: skip
    study_folder = StudyFolder(Path(to))
    known = (study_folder.manifest() or {}).get("methods", {})
    setup, simulators = _simulators(setup, run_points, known)
    _trial_run(setup, run_points, simulators)
    check_repeatable(setup, len(run_points), run_points.part)
    with study_folder.locked():
        manifest = study_folder.open_study(_manifest(setup, simulators, run_points, chunk))
        missing_chunks = list(study_folder.missing_chunks(manifest))
        stored_chunks = sorted({*chunk_ranges(manifest)} - {*missing_chunks})
        if changed := changed_input(setup, stored_chunks, run_points.part, study_folder.drawn_digests):
            raise study_folder.refusal(f"its {changed}")
        if missing_chunks:
            _compute(setup, run_points, study_folder, manifest, missing_chunks, cluster, workers, progress)
            manifest = study_folder.manifest() or manifest
    return Study(study_folder.path, manifest, run_points, setup)


def _simulators(setup: StudySetup, run_points: Points, methods: Any) -> tuple[StudySetup, dict[str, Simulator]]:
    """Return a Simulator for every group of runs, and the StudySetup with the methods that "auto" chose for them.

    "auto" depends on measured costs of operations on this computer. Workers, and a study that is continued on another
    computer, use the methods that were chosen first: `methods`, by group_key.
    """
    known = {str(k): str(x) for k, x in methods.items()} if isinstance(methods, Mapping) else {}
    pinned = replace(setup, methods=known)
    choices = {group_key(choice): choice for choice, _ in run_groups(setup, run_points.columns)}
    simulators = {key: pinned.simulator(choice) for key, choice in choices.items()}
    return replace(setup, methods={key: s.dynamics.method.name for key, s in simulators.items()}), simulators


def _compute(
    setup: StudySetup, run_points: Points, study_folder: StudyFolder, manifest: Mapping[str, Any],
    todo: list[tuple[int, int]], cluster: Any, workers: int | None, progress: Any,
) -> None:  # fmt: skip
    packed = optional_import("cloudpickle", "study", "a study").dumps(setup)
    identity = manifest["identity"]
    expected = ExpectedDigests(identity["code"], identity["setup"], identity["programs"], manifest["name"])
    began = time.perf_counter()
    issued = dict[str, str]()  # first warning of each kind: they differ in numbers only
    try:
        with dask_client(cluster, workers) as client, StudyProgress(len(run_points), todo, progress) as bar:
            for first, last, chunk in computed_chunks(client, packed, expected, run_points, todo, cluster is None):
                digests = {first: chunk["drawn"]}
                if changed := changed_input(setup, [(first, last)], run_points.part, digests.__getitem__, sample=True):
                    raise StudyError(
                        f"a worker would compute different numbers: its {changed} differs from that of the first "
                        f"process. {DRAWN_HINT}"
                    )
                study_folder.add_chunk(first, chunk["data"])
                for text in chunk["warnings"]:
                    issued.setdefault(NUMBER.sub("", text), f"in the runs {first} to {last - 1}: {text}")
                bar.count_done(last - first)
        if changed := changed_input(setup, todo, run_points.part, study_folder.drawn_digests, sample=True):
            raise StudyError(
                f"the {changed} changed while the study was running, so that its rows are not comparable. {DRAWN_HINT} "
                "Then remove the folder, and start again."
            )
    finally:
        if (stored := study_folder.manifest()) is not None:
            study_folder.write_manifest({**stored, "wall": stored["wall"] + time.perf_counter() - began})
    for text in issued.values():
        warn(f"study: {text}")


def _trial_run(setup: StudySetup, run_points: Points, simulators: Mapping[str, Simulator]) -> None:
    """Execute one short run here, to find errors before a cluster is used, and to compile the code."""
    h = setup.settings["step"]
    sim, fixed = _first_run(setup, run_points, simulators)
    if h and not sim.integrator.adaptive and "step" not in setup.meaning:
        whole_multiple("seconds", setup.seconds, h, "step")
    short = replace(setup, seconds=h if h is not None and not sim.integrator.adaptive else setup.seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the runs themselves issue them again
            run_batch(short, sim, np.arange(2), fixed)
    except OverlapError:  # of all starts that were tried; the study lists its refused runs
        if not {"q0", "x0", "parameter"} & {*setup.meaning.values()}:
            raise


def _first_run(
    setup: StudySetup, run_points: Points, simulators: Mapping[str, Simulator]
) -> tuple[Simulator, dict[str, Array]]:
    """Return the simulator of the first run, and that run's values, twice, without starts and parameters.

    If bodies overlap in the start without these, the values are those of the first run in which they do not.
    """
    values = {n: x[:1].repeat(2) for n, x in run_points.columns.items()}
    fixed = {n: x for n, x in values.items() if setup.meaning[n] not in ("parameter", "q0", "v0", "x0")}
    sim = simulators[group_key(setup.choice(values))]
    if not _overlaps(setup, sim, fixed):
        return sim, fixed
    for k in range(min(len(run_points), CHECKED_RUNS)):
        values = {n: x[k : k + 1].repeat(2) for n, x in run_points.columns.items()}
        is_same_group = all(values[n][0] == run_points.columns[n][0] for n in setup.grouped)
        if is_same_group and not _overlaps(setup, sim, values):
            return sim, values
    return sim, fixed


def _overlaps(setup: StudySetup, sim: Simulator, values: dict[str, Array]) -> bool:
    """Return whether runs with these values are refused because bodies start inside each other."""
    given, _ = run_arguments(setup, np.arange(2), values)
    try:
        q0, v0, x0 = (given.get(name) for name in START_ARGUMENTS)
        y = RunArguments(sim.system, q0, v0, x0, None, None, None, 2).y
        check_start(sim.system.mechanism, sim.system.elements, y[:, : sim.system.mechanism.nq])
    except OverlapError:
        return True
    except InputError:  # reported by the trial run, or by the run itself
        return False
    return False


def _padded_rows(lists: Array) -> Array:
    """Return runs as rows of a matrix; runs that ended early are padded with NaN, refused ones are all NaN."""
    longest = max((len(x) for x in lists if x is not None), default=0)
    padded = np.full((len(lists), longest), np.nan)
    for i, x in enumerate(lists):
        if x is not None:
            padded[i, : len(x)] = x
    return padded


def _manifest(
    setup: StudySetup, simulators: Mapping[str, Simulator], run_points: Points, chunk: int | None
) -> dict[str, Any]:
    n = len(run_points)
    most = MAX_CHUNK_RUNS_WITH_ROWS if setup.keep == "rows" else MAX_CHUNK_RUNS
    size = min(most, max(MIN_CHUNK_RUNS, math.ceil(n / TARGET_CHUNKS))) if chunk is None else count("chunk", chunk)
    if n > MAX_FILES * size:
        raise InputError(
            f"chunk is {size}, which gives {n / size:.3g} files of {n} runs; expected at most {MAX_FILES:,}. Take a "
            f"chunk of {math.ceil(n / MAX_FILES)} or more."
        )
    shared = {k: x for k, x in setup.given.items() if x is not None}
    if shared.get("inputs"):
        shared["inputs"] = {k: getattr(x, "__name__", x) if callable(x) else x for k, x in shared["inputs"].items()}
    programs, equations = _programs(setup, run_points, simulators)
    sim, fixed = _first_run(setup, run_points, simulators)
    identity = {  # digests of everything that decides the numbers (study_identity.py)
        "code": code_versions(), "points": {"values": run_points.digest}, "setup": setup_digests(setup),
        "programs": programs, "numbers": number_digests(setup, sim, np.arange(2), fixed),
    }  # fmt: skip
    return {
        "study": MANIFEST_VERSION, "bellcrank": __version__,
        "mechanisms": {name or "plant": s.mechanism.name for name, s in setup.plants.items()},
        "over": {name: str(r) for name, r in run_points.ranges.items()} or "a table", "meaning": setup.meaning,
        "points": run_points.design, "values": run_points.digest, "runs": n, "seed": setup.seed,
        "seconds": setup.seconds, "summary": list(setup.summary), "keep": setup.keep, "given": shared,
        "settings": {k: x for k, x in setup.settings.items() if x is not None and k != "threads"},
        "methods": setup.methods, "equations": equations,
        "identity": identity, "name": study_name(identity),
        "chunk": size, "provenance": provenance(),
    }  # fmt: skip


def _programs(
    setup: StudySetup, run_points: Points, simulators: Mapping[str, Simulator]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the digest of the equations of each group of runs, and their summary, for the message if they change."""
    digests: dict[str, str] = {}
    summaries: dict[str, Any] = {}
    for choice, rows in run_groups(setup, run_points.columns):
        key, values = group_key(choice), {n: x[rows] for n, x in run_points.columns.items()}
        if key in digests:  # the first of a group, as in a worker
            continue
        program = executed_program(setup, simulators[key], values)
        if program is not None:
            digests[key], summaries[key] = program_digest(program), equation_summary(simulators[key], program)
    return digests, summaries
