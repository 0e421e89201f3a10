"""Execution of chunks in workers of Dask, on this computer's cores or on a given cluster; Dask does the scheduling.

A worker gets the values of one chunk and returns a table; it caches compiled programs. A run that fails is a row with
its reason, and so is one whose values are refused: the others are not affected.

A progress bar on a terminal's stderr estimates the end.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bellcrank.content_digest.libraries import code_versions
from bellcrank.errors import BellcrankError, InputError
from bellcrank.lazy_import import optional_import
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.run_batches import (
    DrawnRun,
    Table,
    block_digests,
    draw_inputs,
    encode_digests,
    run_batch,
    run_groups,
)
from bellcrank.studies.sampling_plans import Array, Points
from bellcrank.studies.study_folder import encode_table, is_row_list
from bellcrank.studies.study_identity import (
    ExpectedDigests,
    digest_differences,
    executed_program,
    program_digest,
    setup_digests,
    study_name,
)
from bellcrank.studies.study_setup import StudySetup, group_key

REFUSED = "refused"  # value of "stop" for a run that could not begin
MAX_CACHED_SETUPS = 4  # setups with their compiled programs that one worker caches

_setups: dict[str, tuple[StudySetup, dict[str, Simulator]]] = {}


def compute_chunk(
    packed: bytes, expected: ExpectedDigests, path: list[str], first: int, values: Mapping[str, Array]
) -> dict[str, Any]:
    """Compute one chunk in a worker.

    Workers whose code, or whose versions of the user's modules, would compute different numbers compute nothing.

    Parameters
    ----------
    packed
        The pickled StudySetup.
    expected
        Digests that the worker must reproduce.
    path
        Folders of the user's modules, for workers on the same computer.
    first
        Number of the first run.
    values
        Values of the runs, by name.

    Returns
    -------
    dict
        The chunk as a Parquet file ("data"), with "seconds", "rows" and "drawn", the digests of its random inputs; or
        "error", a message. "warnings" has the texts of the runs' warnings, which would reach no user from here, without
        those that are in the column "stop".
    """
    began = time.perf_counter()
    sys.path.extend(p for p in path if p not in sys.path)
    try:
        if other := digest_differences(expected.code, code_versions()):
            differences = ", ".join(
                f"{name} {present or 'none'} instead of {wanted or 'none'}" for name, wanted, present in other
            )
            return {"error": f"a worker would compute different numbers: it has {differences}. Install the same there."}
        setup, simulators = unpack_setup(packed, expected)
        drawn = draw_inputs(setup, first + np.arange(len(next(iter(values.values())))), values)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = chunk_table(setup, simulators, first, values, expected.programs, drawn)
    except BellcrankError as error:
        return {"error": str(error)}
    digests = block_digests(drawn)
    data = encode_table(table, expected.study, encode_digests(digests))
    stops = {message for message in table["message"] if message}
    texts = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    issued = [text for text in texts if not any(message in text for message in stops)]
    seconds = time.perf_counter() - began
    return {"data": data, "seconds": seconds, "rows": len(table["run"]), "drawn": digests, "warnings": issued}


def unpack_setup(packed: bytes, expected: ExpectedDigests) -> tuple[StudySetup, dict[str, Simulator]]:
    """Return the StudySetup in `packed` and its compiled simulators, after checking that it arrived as `expected`."""
    key = hashlib.sha256(packed + expected.study.encode()).hexdigest() + study_name({"programs": expected.programs})
    if key not in _setups:
        setup = optional_import("cloudpickle", "study", "a study").loads(packed)
        if other := digest_differences(expected.setup, setup_digests(setup)):
            names = ", ".join(name for name, _, _ in other)
            raise InputError(
                f"a worker would compute different numbers: {names} is different there. Functions of modules are sent "
                "by name: give the workers the same files, and restart them."
            )
        while len(_setups) >= MAX_CACHED_SETUPS:
            _setups.pop(next(iter(_setups)))
        _setups[key] = setup, {}
    return _setups[key]


def chunk_table(
    setup: StudySetup,
    simulators: dict[str, Simulator],
    first: int,
    values: Mapping[str, Array],
    programs: Mapping[str, str] | None = None,
    drawn: Sequence[DrawnRun] | None = None,
) -> Table:
    """Return all columns of the runs of a chunk.

    Parameters
    ----------
    setup
        The study's setup.
    simulators
        Compiled simulators by group, extended here.
    first
        Number of the first run.
    values
        Values of the runs, by name.
    programs
        Expected digests of the graphs, by group.
    drawn
        Random inputs of the runs; drawn here if they are None.
    """
    n = len(next(iter(values.values())))
    table: Table = {"run": np.arange(first, first + n, dtype=np.int64), **values}
    drawn = draw_inputs(setup, table["run"], values) if drawn is None else drawn
    parts: list[tuple[Array, Table]] = []
    for choice, rows in run_groups(setup, values):
        key = group_key(choice)
        part = {name: x[rows] for name, x in values.items()}
        sim = simulators.get(key) or setup.simulator(choice)
        if key not in simulators and _check_program(setup, sim, part, (programs or {}).get(key)):
            simulators[key] = sim
        parts.append((rows, _run_bisecting(setup, sim, table["run"][rows], part, [drawn[k] for k in rows])))
    for name in dict.fromkeys(name for _, part in parts for name in part):  # variants may differ in their columns
        kind = next(part[name] for _, part in parts if name in part)
        empty = None if is_row_list(name) else ""
        column = np.full(n, np.nan) if kind.dtype.kind == "f" else np.full(n, empty, dtype=object)
        for rows, part in parts:
            if name in part:
                column[rows] = part[name]
        table[name] = column
    return table


def _check_program(setup: StudySetup, sim: Simulator, values: Table, expected: str | None) -> bool:
    """Return whether these runs execute any graph, after checking that it is the expected one.

    Raises
    ------
    InputError
        If the digest of the graph differs from `expected`.
    """
    program = executed_program(setup, sim, values)
    if program is not None and expected is not None and program_digest(program) != expected:
        raise InputError(
            "a worker would compute different numbers: it traces different equations from the same plant. They depend "
            "on something that is not sent along: an entry of bellcrank.register, a changed number of a module, a file."
        )
    return program is not None


def _run_bisecting(setup: StudySetup, sim: Simulator, runs: Array, values: Table, drawn: Sequence[DrawnRun]) -> Table:
    """Run a batch; if it is refused, bisect it until the invalid runs stand alone."""
    try:
        if len(runs) > 1:
            return run_rows(setup, sim, run_batch(setup, sim, runs, values, drawn))
        twice = {name: x.repeat(2) for name, x in values.items()}  # a single run would need another compiled program
        rows = run_rows(setup, sim, run_batch(setup, sim, runs.repeat(2), twice, [*drawn, *drawn]))
        return {name: x[:1] for name, x in rows.items()}
    except InputError as error:
        if len(runs) == 1:
            words = {"stop": REFUSED, "message": str(error)}
            return {"stop_time": np.zeros(1), **{k: np.array([x], dtype=object) for k, x in words.items()}}
    half = len(runs) // 2
    parts = [
        _run_bisecting(setup, sim, runs[part], {name: x[part] for name, x in values.items()}, drawn[part])
        for part in (slice(None, half), slice(half, None))
    ]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([_column_or_missing(part, name) for part in parts]) for name in names}


def _column_or_missing(part: Table, name: str) -> Array:
    none = np.full(len(part["stop"]), None, dtype=object) if is_row_list(name) else np.full(len(part["stop"]), np.nan)
    return part.get(name, none)


def run_rows(setup: StudySetup, sim: Simulator, run: Record) -> Table:
    """Return a row for each run: summaries, kept rows or final state, and reason and time of its end.

    Parameters
    ----------
    setup
        The study's setup.
    sim
        The simulator.
    run
        Its record.
    """
    table: Table = {n: np.asarray(run[n])[..., 0] for n in sim.saving.summary}
    if setup.keep == "rows":
        table |= {f"rows({n})": _row_lists(np.asarray(run[n]), run.t) for n in run.columns}
    if setup.keep == "final":
        ends = [n for n in run.columns if n.endswith((".q", ".v")) or n in run.states]
        table |= {f"final({n})": np.asarray(run[n])[..., 0] for n in ends}
    stops = run.stops
    reasons = np.array([s.reason for s in stops], dtype=object)
    table["stop"] = reasons
    table["stop_time"] = np.array([s.time for s in stops], float)
    table["message"] = np.array([s.message for s in stops], dtype=object)
    return table


def _row_lists(column: Array, t: Array) -> Array:
    """Return a list for each run, up to the end of that run."""
    lists = np.empty(len(column), dtype=object)
    for i, (x, times) in enumerate(zip(column, t, strict=True)):
        lists[i] = x[np.isfinite(times)]
    return lists


MAX_LOST_WORKERS = 30  # workers that may die over one chunk before the chunk is blamed
CHUNKS_PER_THREAD = 3  # chunks submitted per thread of the workers
WORKER_START_SECONDS = 120  # s until a new worker must have connected, as the computer may be busy
BAR_WIDTH = 30  # of the progress
NO_WORKER_SECONDS = 180.0  # s without any local worker after which the study ends


class StudyError(BellcrankError, RuntimeError):
    """A study cannot continue; what was computed is in its folder."""


@contextmanager
def dask_client(cluster: Any, workers: int | None) -> Iterator[Any]:
    """Yield a client of dask.distributed.

    Parameters
    ----------
    cluster
        Address, cluster or client; None for processes on this computer.
    workers
        Number of these processes.
    """
    distributed = optional_import("distributed", "study", "a study")
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if cluster is not None:
        if not isinstance(cluster, str) and not hasattr(cluster, "scheduler_address"):
            raise InputError(
                f'cluster is {cluster!r}; expected an address ("tcp://host:8786"), a client or a cluster of dask.'
            )
        try:
            client = distributed.Client(cluster, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(f"cluster {cluster!r} cannot be reached: {error}") from None
        with client:
            yield client
        return
    local_cluster = _local_cluster(distributed, workers or os.cpu_count() or 1)
    with _silenced_logs(), local_cluster as local, distributed.Client(local, set_as_default=False) as client:
        yield client


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a cluster of local processes that, unlike forked or spawned ones, do not run the user's script again."""
    dask = optional_import("dask", "study", "a study")
    with dask.config.set(
        {"distributed.scheduler.allowed-failures": MAX_LOST_WORKERS, "distributed.worker.use-file-locking": False}
    ):
        if os.name == "nt":
            cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        else:
            subprocess_module = optional_import("distributed.deploy.subprocess", "study", "a study")
            shared = {"host": "127.0.0.1", "dashboard": False}
            quiet = {"silence_logs": logging.CRITICAL}
            kwargs = {**shared, **quiet, "nthreads": 1, "death_timeout": WORKER_START_SECONDS}
            worker = {"cls": subprocess_module.SubprocessWorker, "options": {"worker_kwargs": kwargs}}
            # any free port for its statistics, too: another study on this computer may use the default one
            options = {**shared, "port": 0, "dashboard_address": "127.0.0.1:0"}
            scheduler = {"cls": distributed.Scheduler, "options": options}
            workers_by_name = dict.fromkeys(range(workers), worker)
            cluster = distributed.SpecCluster(workers_by_name, scheduler, worker, name="bellcrank", **quiet)
        with cluster:
            yield cluster


@contextmanager
def _silenced_logs() -> Iterator[None]:
    """Silence messages about dying workers, whose chunks are computed again."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def computed_chunks(
    client: Any,
    packed: bytes,
    expected: ExpectedDigests,
    points: Points,
    chunks: Sequence[tuple[int, int]],
    local: bool,
) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield (first, last, result) of each chunk in the order of completion; chunks of dead workers are resubmitted.

    Parameters
    ----------
    client
        Client of dask.distributed.
    packed, expected
        As in worked.
    points
        Values of all runs.
    chunks
        First and last run of each chunk; last is exclusive.
    local
        The workers are processes of this computer.
    """
    distributed = optional_import("distributed", "study", "a study")
    path = [p or os.getcwd() for p in sys.path] if local else []
    losses: dict[int, int] = {}
    pending, completions = list(reversed(chunks)), distributed.as_completed(loop=client.loop, raise_errors=False)
    running: dict[Any, tuple[int, int]] = {}

    def give_out() -> None:
        room = CHUNKS_PER_THREAD * max(1, sum(client.nthreads().values())) - len(running)
        while pending and room > 0:
            first, last = pending.pop()
            future = client.submit(compute_chunk, packed, expected, path, first, points.part(first, last), pure=False)
            running[future.key] = (first, last)
            completions.add(future)
            room -= 1

    give_out()
    for future in _completed_futures(client, completions, local):
        first, last = running.pop(future.key)
        loss_reason = _loss_reason(distributed, future)
        if client.status != "running":
            raise StudyError(
                "the cluster is gone. What was computed is in the folder; the same study continues from there."
            )
        if loss_reason:
            losses[first] = losses.get(first, 0) + 1
            if losses[first] > MAX_LOST_WORKERS:
                raise StudyError(
                    f"the runs from {first} to {last - 1} end every worker that takes them ({loss_reason}), most "
                    "likely because memory is too small. Take smaller chunks: chunk=..., in another folder."
                )
            pending.append((first, last))
        elif future.status != "finished":
            error = future.exception()
            raise StudyError(f"a worker failed at the runs from {first} on: {type(error).__name__}: {error}")
        else:
            result = future.result()
            if "error" in result:
                raise StudyError(result["error"])
            yield first, last, result
        future.release()
        give_out()


def _completed_futures(client: Any, ending: Any, local: bool) -> Iterator[Any]:
    """Yield futures as they end.

    Raise an error if all local workers are gone for good, since no future would ever end. Those of another cluster may
    be queued for as long as necessary.
    """
    seen = looked = time.monotonic()
    while not ending.is_empty():
        now = time.monotonic()
        if ending.has_ready():
            yield next(ending)
            seen = looked = time.monotonic()
        elif local and now - looked > min(1.0, NO_WORKER_SECONDS / 4.0):
            looked, seen = now, now if client.nthreads() else seen
            if now - seen > NO_WORKER_SECONDS:
                raise StudyError(
                    f"no worker has been there for {NO_WORKER_SECONDS:g} s: none could be started, or all were ended. "
                    "What was computed is in the folder; the same study continues from there. Fewer may do: workers=1."
                )
        else:
            with ending.thread_condition:
                ending.thread_condition.wait(0.1)


def _loss_reason(distributed: Any, future: Any) -> str:
    """Return why a chunk was not computed, if its worker was lost and the chunk itself did not fail."""
    if future.status in ("cancelled", "lost"):
        return "its worker was lost"
    if future.status == "error" and isinstance(future.exception(), distributed.KilledWorker):
        return "its worker was killed"
    return ""


class StudyProgress:
    """Progress of a study.

    Parameters
    ----------
    runs
        Number of all runs.
    todo
        First and last run of each chunk that is missing.
    progress
        Function that is called with the share done, False for silence, True or None for a bar on a terminal.
    """

    def __init__(self, runs: int, todo: Sequence[tuple[int, int]], progress: Any) -> None:
        self.runs, self.to_do = runs, sum(last - first for first, last in todo)
        self.done_before = runs - self.to_do
        self.finished = 0
        self._callback = progress if callable(progress) else None
        self._shows_bar = progress is not False and self._callback is None and (progress is True or sys.stderr.isatty())
        self._began = time.monotonic()

    def __enter__(self) -> StudyProgress:
        return self

    def count_done(self, runs: int) -> None:
        """Count `runs` that are finished."""
        self.finished += runs
        if self._callback is not None:
            self._callback((self.done_before + self.finished) / self.runs)
        if self._shows_bar:
            sys.stderr.write(f"\r{self}\x1b[K")
            sys.stderr.flush()

    def __str__(self) -> str:
        share = (self.done_before + self.finished) / self.runs
        spent = time.monotonic() - self._began
        rate = self.finished / spent if spent > 0 else 0.0
        left = (self.to_do - self.finished) / rate if rate else 0.0
        end = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        full = round(BAR_WIDTH * share)
        bar = "\u2588" * full + "\u2591" * (BAR_WIDTH - full)
        return f"{bar} {share:4.0%} of {self.runs} runs, {rate:.0f} a second, {left:.0f} s left, until {end}"

    def __exit__(self, *_: object) -> None:
        if self._shows_bar:
            sys.stderr.write("\n")
